/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Tests of process-context identifiers: which entries survive what
 *
 * Each test says what must still be stale and what must not, so that neither
 * a TLB that forgets too much nor one that keeps too much passes.
 */
#include "guest.h"

/* Two address spaces that map UVA to different pages, and KVA globally. */
struct space {
	u64 root, old, new;
};

static struct space a, b, c;

static void make_space(struct space *s)
{
	s->root = new_root();
	s->old = new_page();
	s->new = new_page();
	map(s->root, UVA, s->old, P | RW | US);
	map(s->root, UVA + PAGE, s->old, P | RW | US);
}

static void enable(void)
{
	make_space(&a);
	make_space(&b);
	make_space(&c);
	set_cr3((u64)boot_pml4);
	set_cr4(get_cr4() | CR4_PCIDE);
}

/* Read UVA so that its entry is cached, then remap it: stale from now on. */
static void make_stale(const struct space *s)
{
	expect_eq(read8(UVA), s->old);
	remap(s->root, UVA, s->new);
	expect_eq(read8(UVA), s->old);
}

/* One global page, of one frame, in the kernel half of a, b and c. */
static u64 map_global(void)
{
	u64 page = new_page();

	map(a.root, KVA, page, P | RW | G);
	map(b.root, KVA, page, P | RW | G);
	map(c.root, KVA, page, P | RW | G);
	return page;
}

static u64 remap_global(void)
{
	u64 page = new_page();

	remap(a.root, KVA, page);
	remap(b.root, KVA, page);
	remap(c.root, KVA, page);
	return page;
}

static void cr3_keeps(void)
{
	enable();
	set_cr3(a.root | 1);
	make_stale(&a);
	set_cr3(b.root | 2);
	expect_eq(read8(UVA), b.old);
	set_cr3(a.root | 1 | KEEP);
	expect_eq(read8(UVA), a.old);
	/* Bit 63 is no part of the register. */
	expect_eq(get_cr3(), a.root | 1);
	set_cr3(a.root | 1 | KEEP);
	expect_eq(read8(UVA), a.old);
}

static void cr3_flushes(void)
{
	enable();
	set_cr3(a.root | 1);
	make_stale(&a);
	set_cr3(a.root | 1);
	expect_eq(read8(UVA), a.new);
	remap(a.root, UVA, a.old);
	set_cr3(b.root | 2);
	set_cr3(a.root | 1);
	expect_eq(read8(UVA), a.old);
}

/* A flush of one tag is none of another. */
static void cr3_flushes_one(void)
{
	enable();
	set_cr3(a.root | 1);
	make_stale(&a);
	set_cr3(b.root | 2);
	make_stale(&b);
	set_cr3(b.root | 2);
	expect_eq(read8(UVA), b.new);
	set_cr3(a.root | 1 | KEEP);
	expect_eq(read8(UVA), a.old);
}

static void cr3_without_pcid(void)
{
	make_space(&a);
	set_cr3(a.root);
	make_stale(&a);
	set_cr3(a.root);
	expect_eq(read8(UVA), a.new);
}

static void load_cr3(void *value)
{
	set_cr3((u64)value);
}

static void load_cr4(void *value)
{
	set_cr4((u64)value);
}

static void paging_off(void *unused)
{
	u64 cr0;

	(void)unused;
	asm volatile("mov %%cr0, %0" : "=r" (cr0));
	asm volatile("mov %0, %%cr0" : : "r" (cr0 & ~(1ul << 31)));
}

static void faults(void)
{
	u64 pcide = get_cr4() | CR4_PCIDE;

	make_space(&a);
	/* Bit 63 of CR3 without PCIDE; PCIDE with a PCID; outside long mode. */
	expect_eq(catch_call(load_cr3, (void *)((u64)boot_pml4 | KEEP)), GP);
	set_cr3((u64)boot_pml4 | 8);
	expect_eq(catch_call(load_cr4, (void *)pcide), GP);
	expect(!(get_cr4() & CR4_PCIDE));
	set_cr3((u64)boot_pml4);
	expect_eq(catch_call(load_cr4, (void *)pcide), 0);
	expect_eq(gp_outside_long_mode, 1);
	/* No way out of paging with PCIDs, and PCIDE stays set with one. */
	expect_eq(catch_call(paging_off, 0), GP);
	set_cr3((u64)boot_pml4 | 8);
	expect_eq(catch_call(load_cr4, (void *)pcide), 0);
}

static void pcide_off_flushes(void)
{
	enable();
	set_cr3(a.root | 1);
	make_stale(&a);
	set_cr3(b.root | 2);
	make_stale(&b);
	set_cr3(b.root | 2 | KEEP);
	set_cr4(get_cr4() & ~CR4_PCIDE);
	expect_eq(read8(UVA), b.new);
	set_cr3((u64)boot_pml4);
	set_cr4(get_cr4() | CR4_PCIDE);
	set_cr3(a.root | 1 | KEEP);
	expect_eq(read8(UVA), a.new);
}

static void pge_flushes(void)
{
	enable();
	set_cr3(a.root | 1);
	make_stale(&a);
	set_cr3(b.root | 2);
	set_cr4(get_cr4() & ~CR4_PGE);
	set_cr4(get_cr4() | CR4_PGE);
	set_cr3(a.root | 1 | KEEP);
	expect_eq(read8(UVA), a.new);
}

static void invlpg_current(void)
{
	enable();
	set_cr3(a.root | 1);
	make_stale(&a);
	expect_eq(read8(UVA + PAGE), a.old);
	remap(a.root, UVA + PAGE, a.new);
	invlpg(UVA);
	expect_eq(read8(UVA), a.new);
	/* Not its neighbour, and not another tag. */
	expect_eq(read8(UVA + PAGE), a.old);
	set_cr3(b.root | 2);
	invlpg(UVA + PAGE);
	set_cr3(a.root | 1 | KEEP);
	expect_eq(read8(UVA + PAGE), a.old);
}

static void invlpg_large(void)
{
	u64 old, new;

	enable();
	old = new_pages(9);
	new = new_pages(9);
	map_large(a.root, UVA + LARGE, old, P | RW | US);
	map_large(a.root, UVA + 2 * LARGE, old, P | RW | US);
	set_cr3(a.root | 1);
	/* Places of their own in the TLB, not those of UVA and of each other. */
	for (u64 i = 1; i <= 2; i++) {
		u64 at = UVA + i * LARGE, offset = i * 16 * PAGE;

		expect_eq(read8(at + offset), old + offset);
		expect_eq(read8(at + offset + 5 * PAGE), old + offset + 5 * PAGE);
		*entry_of(a.root, at, 2) = new | P | RW | US | PS;
	}
	make_stale(&a);
	/* All of the page, wherever the address is, and nothing else. */
	invlpg(UVA + LARGE + 7 * PAGE);
	expect_eq(read8(UVA + LARGE + 16 * PAGE), new + 16 * PAGE);
	expect_eq(read8(UVA + LARGE + 21 * PAGE), new + 21 * PAGE);
	expect_eq(read8(UVA + 2 * LARGE + 32 * PAGE), old + 32 * PAGE);
	expect_eq(read8(UVA + 2 * LARGE + 37 * PAGE), old + 37 * PAGE);
	expect_eq(read8(UVA), a.old);
}

static void global_survives(void)
{
	u64 old, new;

	enable();
	old = map_global();
	set_cr3(a.root | 1);
	expect_eq(read8(KVA), old);
	new = remap_global();
	set_cr3(a.root | 1);
	expect_eq(read8(KVA), old);
	/* Another tag uses it too, one that never had an entry. */
	set_cr3(b.root | 2);
	expect_eq(read8(KVA), old);
	/* An INVLPG drops it from all tags, also from those before. */
	invlpg(KVA);
	set_cr3(a.root | 1 | KEEP);
	expect_eq(read8(KVA), new);
	set_cr3(b.root | 2 | KEEP);
	expect_eq(read8(KVA), new);
}

static void invpcid_address(void)
{
	u64 old;

	enable();
	old = map_global();
	set_cr3(a.root | 1);
	make_stale(&a);
	expect_eq(read8(UVA + PAGE), a.old);
	remap(a.root, UVA + PAGE, a.new);
	set_cr3(b.root | 2);
	make_stale(&b);
	expect_eq(read8(KVA), old);
	remap_global();
	/* Of another tag, then of this one, then not a global one. */
	invpcid(0, 1, UVA);
	expect_eq(read8(UVA), b.old);
	set_cr3(a.root | 1 | KEEP);
	expect_eq(read8(UVA), a.new);
	expect_eq(read8(UVA + PAGE), a.old);
	invpcid(0, 1, UVA + PAGE);
	expect_eq(read8(UVA + PAGE), a.new);
	invpcid(0, 1, KVA);
	expect_eq(read8(KVA), old);
	set_cr3(b.root | 2 | KEEP);
	expect_eq(read8(UVA), b.old);
}

static void invpcid_single(void)
{
	u64 old;

	enable();
	old = map_global();
	set_cr3(a.root | 1);
	make_stale(&a);
	set_cr3(b.root | 2);
	make_stale(&b);
	set_cr3(c.root | 3);
	make_stale(&c);
	expect_eq(read8(KVA), old);
	remap_global();
	invpcid(1, 1, 0);
	expect_eq(read8(UVA), c.old);
	invpcid(1, 3, 0);
	expect_eq(read8(UVA), c.new);
	expect_eq(read8(KVA), old);
	set_cr3(b.root | 2 | KEEP);
	expect_eq(read8(UVA), b.old);
	set_cr3(a.root | 1 | KEEP);
	expect_eq(read8(UVA), a.new);
}

static void invpcid_all(void)
{
	u64 old, new;

	enable();
	old = map_global();
	set_cr3(a.root | 1);
	make_stale(&a);
	set_cr3(b.root | 2);
	make_stale(&b);
	expect_eq(read8(KVA), old);
	new = remap_global();
	invpcid(2, 0, 0);
	expect_eq(read8(UVA), b.new);
	expect_eq(read8(KVA), new);
	set_cr3(a.root | 1 | KEEP);
	expect_eq(read8(UVA), a.new);
}

static void invpcid_all_not_global(void)
{
	u64 old;

	enable();
	old = map_global();
	set_cr3(a.root | 1);
	make_stale(&a);
	set_cr3(b.root | 2);
	make_stale(&b);
	expect_eq(read8(KVA), old);
	remap_global();
	invpcid(3, 0, 0);
	expect_eq(read8(UVA), b.new);
	expect_eq(read8(KVA), old);
	set_cr3(a.root | 1 | KEEP);
	expect_eq(read8(UVA), a.new);
	expect_eq(read8(KVA), old);
}

static u64 invpcid_args[3];

static void do_invpcid(void *unused)
{
	(void)unused;
	invpcid(invpcid_args[0], invpcid_args[1], invpcid_args[2]);
}

static int try_invpcid(u64 type, u64 pcid, u64 va)
{
	invpcid_args[0] = type;
	invpcid_args[1] = pcid;
	invpcid_args[2] = va;
	return catch_call(do_invpcid, 0);
}

static void run_user_catch(void *call)
{
	run_user(call);
}

extern char user_invpcid[], user_read[];

static void invpcid_faults(void)
{
	static struct user_call call;

	enable();
	expect_eq(try_invpcid(4, 0, 0), GP);
	expect_eq(try_invpcid(1ul << 32, 0, 0), GP);
	expect_eq(try_invpcid(1, 0x1000, 0), GP);
	expect_eq(try_invpcid(2, 1ul << 63, 0), GP);
	expect_eq(try_invpcid(0, 1, 0x0000800000000000ul), GP);
	expect_eq(try_invpcid(1, 1, 0x0000800000000000ul), 0);
	expect_eq(try_invpcid(1, 0xfff, 0), 0);
	/* Without PCIDE only PCID 0 exists. */
	set_cr4(get_cr4() & ~CR4_PCIDE);
	expect_eq(try_invpcid(0, 1, UVA), GP);
	expect_eq(try_invpcid(1, 1, 0), GP);
	expect_eq(try_invpcid(1, 0, 0), 0);
	expect_eq(try_invpcid(2, 0, 0), 0);
	/* Ring 3. */
	map_user_code(a.root);
	set_cr3(a.root);
	call.entry = (void *)(USER_CODE + (user_invpcid - user_read));
	call.stack = USER_STACK + PAGE;
	call.arg[0] = USER_STACK;
	call.arg[1] = 2;
	expect_eq(catch_call(run_user_catch, &call), GP);
}

/* As many tags as fit keep their entries; one more costs the oldest its own. */
static void eviction(void)
{
	tlb_check_u64 r[3];
	u64 n;
	static struct space s[64];

	tlb_check_call(TLB_CHECK_FEATURES, 0, 0, 0, r);
	n = r[2];
	expect(n >= 2 && n < 63);
	enable();
	for (u64 i = 0; i < n + 1; i++)
		make_space(&s[i]);
	for (u64 i = 0; i < n; i++) {
		set_cr3(s[i].root | (i + 1));
		make_stale(&s[i]);
	}
	for (u64 i = 0; i < n; i++) {
		set_cr3(s[i].root | (i + 1) | KEEP);
		expect_eq(read8(UVA), s[i].old);
	}
	/* The new tag gets nothing of the one that made room. */
	set_cr3(s[n].root | (n + 1) | KEEP);
	expect_eq(read8(UVA), s[n].old);
	for (u64 i = 1; i < n; i++) {
		set_cr3(s[i].root | (i + 1) | KEEP);
		expect_eq(read8(UVA), s[i].old);
	}
	/* Tag 1 is the one that was not used for longest. */
	set_cr3(s[0].root | 1 | KEEP);
	expect_eq(read8(UVA), s[0].new);
}

/* What Linux does with page table isolation: a root and a tag for each half. */
static void two_halves(void)
{
	u64 root = new_root_pair(), user = root + PAGE;
	u64 old = new_page(), new = new_page();

	enable();
	map(root, UVA, old, P | RW | US);
	*(u64 *)(user + (UVA >> 39 & 511) * 8) =
		*(u64 *)(root + (UVA >> 39 & 511) * 8);
	set_cr3(root | 1);
	expect_eq(read8(UVA), old);
	set_cr3(user | 0x801);
	expect_eq(read8(UVA), old);
	remap(root, UVA, new);
	set_cr3(root | 1 | KEEP);
	invlpg(UVA);
	expect_eq(read8(UVA), new);
	/* The kernel has to think of the other half as well. */
	set_cr3(user | 0x801 | KEEP);
	expect_eq(read8(UVA), old);
	invpcid(0, 0x801, UVA);
	expect_eq(read8(UVA), new);
}

/* Code that is written by a tag that could write its page before it ran. */
static void new_code(void)
{
	static const unsigned char code[] = { 0xb8, 1, 0, 0, 0, 0xc3 };
	u64 page = new_page();
	int (*f)(void) = (int (*)(void))(UVA + 4 * PAGE);

	enable();
	map(a.root, UVA + 4 * PAGE, page, P | RW);
	map(b.root, UVA + 4 * PAGE, page, P | RW);
	set_cr3(a.root | 1);
	for (unsigned int i = 0; i < sizeof(code); i++)
		*(volatile char *)(UVA + 4 * PAGE + i) = code[i];
	set_cr3(b.root | 2);
	expect_eq(f(), 1);
	set_cr3(a.root | 1 | KEEP);
	*(volatile char *)(UVA + 4 * PAGE + 1) = 2;
	set_cr3(b.root | 2 | KEEP);
	expect_eq(f(), 2);
}

const struct test tests_pcid[] = {
	{ "cr3_keeps", cr3_keeps, "pcid" },
	{ "cr3_flushes", cr3_flushes, "pcid" },
	{ "cr3_flushes_one", cr3_flushes_one, "pcid" },
	{ "cr3_without_pcid", cr3_without_pcid, "pcid" },
	{ "faults", faults, "pcid" },
	{ "pcide_off_flushes", pcide_off_flushes, "pcid" },
	{ "pge_flushes", pge_flushes, "pcid" },
	{ "invlpg_current", invlpg_current, "pcid" },
	{ "invlpg_large", invlpg_large, "pcid" },
	{ "global_survives", global_survives, "pcid" },
	{ "invpcid_address", invpcid_address, "pcid" },
	{ "invpcid_single", invpcid_single, "pcid" },
	{ "invpcid_all", invpcid_all, "pcid" },
	{ "invpcid_all_not_global", invpcid_all_not_global, "pcid" },
	{ "invpcid_faults", invpcid_faults, "pcid" },
	{ "eviction", eviction, "pcid" },
	{ "two_halves", two_halves, "pcid" },
	{ "new_code", new_code, "pcid" },
	{ 0, 0, 0 }
};
