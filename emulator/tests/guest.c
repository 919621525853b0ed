/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The test guest: page tables, the serial port, and the loop over the tests
 *
 * The command line names tests or groups; none means all of group "pcid" and
 * "check". Results are KTAP on the serial port. The exit status comes from
 * isa-debug-exit: 33 when all passed, 35 when not, 37 when it gave up.
 */
#include "guest.h"

#define POOL_START 0x2000000ul
#define POOL_END 0x7000000ul

extern u32 multiboot_info;
extern char isr_6[], isr_13[], isr_14[], isr_syscall[];
extern char user_read[];

static u64 pool = POOL_START;
static int failed;

static void outb(unsigned short port, unsigned char value)
{
	asm volatile("outb %0, %1" : : "a" (value), "Nd" (port));
}

static void put(const char *s)
{
	for (; *s; s++)
		outb(0x3f8, *s);
}

static void put_hex(u64 v)
{
	put("0x");
	for (int shift = 60; shift >= 0; shift -= 4)
		if (v >> shift || !shift)
			outb(0x3f8, "0123456789abcdef"[v >> shift & 15]);
}

static void put_dec(u64 v)
{
	if (v >= 10)
		put_dec(v / 10);
	outb(0x3f8, '0' + v % 10);
}

static void give_up(void *unused)
{
	(void)unused;
	asm volatile("ud2");
}

void expect_(int holds, const char *text, int line, u64 is)
{
	if (holds)
		return;
	put("# line ");
	put_dec(line);
	put(": expected ");
	put(text);
	put(", is ");
	put_hex(is);
	put("\n");
	failed = 1;
	give_up(0);
}

void fault_uncaught(int vector)
{
	put("Bail out! exception ");
	put_dec(vector);
	put(" at address ");
	put_hex(fault_address);
	put("\n");
	outb(0xf4, 18);
	for (;;)
		asm volatile("hlt");
}

void *memset(void *to, int c, u64 n)
{
	asm volatile("rep stosb" : "+D" (to), "+c" (n) : "a" (c) : "memory");
	return to;
}

u64 new_pages(unsigned int order)
{
	u64 size = PAGE << order, start = (pool + size - 1) & -size;

	if (start + size > POOL_END)
		fault_uncaught(255);
	pool = start + size;
	memset((void *)start, 0, size);
	for (u64 p = start; p < pool; p += PAGE)
		*(u64 *)p = p;
	return start;
}

u64 new_page(void)
{
	return new_pages(0);
}

u64 new_frame(void)
{
	u64 p = new_pages(0);

	*(u64 *)p = 0;
	return p;
}

u64 new_root(void)
{
	u64 root = new_frame();

	*(u64 *)root = *(u64 *)boot_pml4;
	return root;
}

u64 new_root_pair(void)
{
	u64 root = new_pages(1);

	*(u64 *)root = *(u64 *)(root + PAGE) = *(u64 *)boot_pml4;
	return root;
}

/* The entry for va at a level; tables in between are made as needed. */
u64 *entry_of(u64 root, u64 va, int level)
{
	u64 *table = (u64 *)(root & ~0xffful);

	for (int l = 4; ; l--) {
		u64 *entry = &table[va >> (12 + 9 * (l - 1)) & 511];

		if (l == level)
			return entry;
		if (!(*entry & P))
			*entry = new_frame() | P | RW | US;
		table = (u64 *)(*entry & 0x000ffffffffff000ul);
	}
}

void map(u64 root, u64 va, u64 pa, u64 flags)
{
	*entry_of(root, va, 1) = pa | flags;
}

void map_large(u64 root, u64 va, u64 pa, u64 flags)
{
	*entry_of(root, va, 2) = pa | flags | PS;
}

void map_user_code(u64 root)
{
	map(root, USER_CODE, (u64)user_read & ~0xffful, P | US);
	map(root, USER_STACK, new_page(), P | RW | US);
}

struct gate {
	unsigned short low, selector, type, middle;
	u32 high, zero;
} __attribute__((packed));

static struct gate idt[129];

static void set_gate(int vector, char *handler, int type)
{
	u64 at = (u64)handler;

	idt[vector] = (struct gate) {
		at & 0xffff, 8, type << 8, at >> 16 & 0xffff, at >> 32, 0
	};
}

static int same(const char *a, const char *b, u64 n)
{
	while (n && *a == *b && *a)
		a++, b++, n--;
	return !n || *a == *b;
}

static u64 length(const char *s)
{
	u64 n = 0;

	while (s[n])
		n++;
	return n;
}

/* Is the test, or its group, a word of the command line? */
static int wanted(const char *line, const struct test *t)
{
	int any = 0;

	while (*line) {
		u64 n = 0;

		while (line[n] && line[n] != ' ')
			n++;
		if (n) {
			any = 1;
			if ((n == length(t->name) && same(line, t->name, n)) ||
			    (n == length(t->group) && same(line, t->group, n)))
				return 1;
		}
		line += n;
		while (*line == ' ')
			line++;
	}
	return !any && (same(t->group, "pcid", 5) || same(t->group, "check", 6));
}

static void run_test(void *arg)
{
	((const struct test *)arg)->run();
}

static void clean_up(void *unused)
{
	(void)unused;
	set_cr3((u64)boot_pml4);
	set_cr4((get_cr4() | CR4_PGE) & ~CR4_PCIDE);
	/* With their roots the address spaces go, and what they had armed. */
	if (tlb_check_present())
		tlb_check_frames(POOL_START / PAGE,
				 (POOL_END - POOL_START) / PAGE,
				 TLB_CHECK_FREED);
}

static const struct test *const all[] = {
	tests_pcid, tests_check, tests_control, tests_flushes,
	tests_upper, tests_ahead, tests_modes,
};

#define SETS	(sizeof(all) / sizeof(all[0]))

void guest_main(void)
{
	struct { unsigned short limit; u64 base; } __attribute__((packed))
		idtr = { sizeof(idt) - 1, (u64)idt };
	const u32 *info = (u32 *)(u64)multiboot_info;
	const char *line = info[0] & 4 ? (const char *)(u64)info[4] : "";
	int number = 0, count = 0, bad = 0;

	/* The first word is the name of the image. */
	while (*line && *line != ' ')
		line++;
	set_gate(6, isr_6, 0x8e);
	set_gate(13, isr_13, 0x8e);
	set_gate(14, isr_14, 0x8e);
	set_gate(128, isr_syscall, 0xee);
	asm volatile("lidt %0" : : "m" (idtr));
	set_cr4(get_cr4() | CR4_SMAP);
	asm volatile("stac");

	for (unsigned int i = 0; i < SETS; i++)
		for (const struct test *t = all[i]; t->name; t++)
			count += wanted(line, t);
	put("KTAP version 1\n1..");
	put_dec(count);
	put("\n");
	for (unsigned int i = 0; i < SETS; i++) {
		for (const struct test *t = all[i]; t->name; t++) {
			int vector;

			if (!wanted(line, t))
				continue;
			failed = 0;
			vector = catch_call(run_test, (void *)t);
			if (vector && !failed) {
				put("# exception ");
				put_dec(vector);
				put(" at address ");
				put_hex(fault_address);
				put("\n");
			}
			bad |= !!vector;
			put(vector ? "not ok " : "ok ");
			put_dec(++number);
			put(" - ");
			put(t->name);
			put("\n");
			if (catch_call(clean_up, 0))
				fault_uncaught(254);
		}
	}
	outb(0xf4, 16 + bad);
}
