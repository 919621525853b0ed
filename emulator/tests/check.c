/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Tests of the checker: each class of violation, reported when it is one and
 * not when it is none
 */
#include "check.h"

u64 root, old, new;

void start(void)
{
	expect(tlb_check_present());
	root = new_root();
	old = new_page();
	new = new_page();
	for (u64 i = 0; i < 4; i++)
		map(root, UVA + i * PAGE, old, P | RW | US | D);
	map_user_code(root);
	set_cr3(root);
	tlb_check_call(TLB_CHECK_RESET, 0, 0, 0, 0);
}

void make_stale(void)
{
	expect_eq(read8(UVA), old);
	remap(root, UVA, new);
}

/* A stale use that nothing forbids yet. */
static void transient(void)
{
	start();
	make_stale();
	expect_eq(read8(UVA), old);
	expect_eq(read8(UVA), old);
	expect_eq(N(TRANSIENT), 2);
	expect_eq(N(VIOLATIONS), 0);
	invlpg(UVA);
	expect_eq(read8(UVA), new);
	expect_eq(read8(UVA), new);
	expect_eq(N(TRANSIENT), 2);
	expect(N(CHECKS) >= 3);
}

static void armed(void)
{
	start();
	make_stale();
	expect_eq(tlb_check_arm((void *)UVA, PAGE), 0);
	expect_eq(read8(UVA), old);
	expect_eq(N(ARMED), 1);
	expect_eq(N(VIOLATIONS), 1);
	expect_eq(N(TRANSIENT), 0);
	/* What is right may be used in an armed range. */
	invlpg(UVA);
	expect_eq(read8(UVA), new);
	expect_eq(read8(UVA), new);
	expect_eq(N(VIOLATIONS), 1);
}

static void armed_elsewhere(void)
{
	u64 other;

	start();
	make_stale();
	/* Beside the page; before disarm; another address space. */
	expect_eq(tlb_check_arm((void *)(UVA + PAGE), PAGE), 0);
	expect_eq(tlb_check_arm((void *)(UVA - PAGE), PAGE), 0);
	expect_eq(tlb_check_arm((void *)UVA, PAGE), 0);
	expect_eq(tlb_check_disarm((void *)UVA, PAGE), 0);
	expect_eq(tlb_check_disarm((void *)UVA, PAGE), TLB_CHECK_ENOENT);
	expect_eq(read8(UVA), old);
	expect_eq(N(VIOLATIONS), 0);
	other = new_root();
	*(u64 *)(other + (UVA >> 39 & 511) * 8) =
		*(u64 *)(root + (UVA >> 39 & 511) * 8);
	expect_eq(tlb_check_arm((void *)UVA, PAGE), 0);
	set_cr3(other);
	expect_eq(read8(UVA), new);
	remap(root, UVA, old);
	expect_eq(read8(UVA), new);
	expect_eq(N(VIOLATIONS), 0);
	expect_eq(N(TRANSIENT), 2);
}

/* When the root's frame goes, so do the ranges of its address space. */
static void armed_process_gone(void)
{
	start();
	make_stale();
	expect_eq(tlb_check_arm((void *)UVA, PAGE), 0);
	tlb_check_frames(root / PAGE, 1, TLB_CHECK_FREED);
	expect_eq(tlb_check_disarm((void *)UVA, PAGE), TLB_CHECK_ENOENT);
}

/* Each event of a frame, after the fill and before it. */
static void frame_events(void)
{
	static const struct { enum tlb_check_event event; int counter; } of[] = {
		{ TLB_CHECK_FREED, TLB_CHECK_N_FREED },
		{ TLB_CHECK_OWNER, TLB_CHECK_N_OWNER },
		{ TLB_CHECK_CACHE, TLB_CHECK_N_CACHE },
	};

	for (unsigned int i = 0; i < 3; i++) {
		start();
		/* Before the fill, and of a neighbour after it. */
		tlb_check_frames(old / PAGE, 1, of[i].event);
		make_stale();
		tlb_check_frames(old / PAGE + 1, 1, of[i].event);
		expect_eq(read8(UVA), old);
		expect_eq(N(VIOLATIONS), 0);
		expect_eq(N(TRANSIENT), 1);
		/* Now this one; the entry is used, then no more. */
		tlb_check_frames(old / PAGE, 2, of[i].event);
		expect_eq(N(VIOLATIONS), 0);
		expect_eq(read8(UVA), old);
		expect_eq(N(VIOLATIONS), 1);
		expect_eq(tlb_check_counter(of[i].counter), 1);
		expect_eq(N(EVENTS), 4);
		invlpg(UVA);
		expect_eq(read8(UVA), new);
		expect_eq(read8(UVA), new);
		expect_eq(N(VIOLATIONS), 1);
	}
	tlb_check_frames(1ul << 40, 3, TLB_CHECK_FREED);
	expect_eq(N(NOT_RAM), 3);
}

static u64 table_of(u64 va)
{
	return *entry_of(root, va, 2) & 0x000ffffffffff000ul;
}

/* An entry whose page table was given away, though it still is right. */
static void table_of_entry(void)
{
	start();
	expect_eq(read8(UVA), old);
	tlb_check_frames(table_of(UVA) / PAGE, 1, TLB_CHECK_TABLE);
	expect_eq(read8(UVA), old);
	expect_eq(N(VIOLATIONS), 1);
	expect_eq(N(TABLE), 1);
	invlpg(UVA);
	expect_eq(read8(UVA), old);
	expect_eq(read8(UVA), old);
	expect_eq(N(VIOLATIONS), 1);
}

/* Another table takes the place of the one for UVA; the old one is freed. */
static void replace_table(void)
{
	u64 *entry = entry_of(root, UVA, 2), before = table_of(UVA);
	u64 table = new_frame();

	for (int i = 0; i < 512; i++)
		((u64 *)table)[i] = ((u64 *)before)[i];
	*(volatile u64 *)entry = table | P | RW | US;
	tlb_check_frames(before / PAGE, 1, TLB_CHECK_FREED);
}

/* A walk that could start at a freed table. */
static void table_of_walk(void)
{
	start();
	expect_eq(read8(UVA), old);
	replace_table();
	expect_eq(N(VIOLATIONS), 0);
	expect_eq(read8(UVA + PAGE), old);
	expect_eq(N(TABLE), 1);
	/* Any INVLPG drops all that is cached of tables, */
	start();
	expect_eq(read8(UVA), old);
	replace_table();
	invlpg(UVA + 3 * PAGE);
	expect_eq(read8(UVA + PAGE), old);
	expect_eq(N(VIOLATIONS), 0);
	/* as does a load of CR3. */
	start();
	expect_eq(read8(UVA), old);
	replace_table();
	set_cr3(root);
	expect_eq(read8(UVA + PAGE), old);
	expect_eq(N(VIOLATIONS), 0);
}

static void table_of_walk_pcid(void)
{
	start();
	set_cr4(get_cr4() | CR4_PCIDE);
	set_cr3(root | 1);
	expect_eq(read8(UVA), old);
	replace_table();
	/* Another tag, and another region of this one: kept. */
	set_cr3((u64)boot_pml4 | 2);
	invpcid(0, 1, UVA + (1ul << 40));
	set_cr3(root | 1 | KEEP);
	expect_eq(read8(UVA + PAGE), old);
	expect_eq(N(TABLE), 1);
	replace_table();
	set_cr3((u64)boot_pml4 | 2);
	invpcid(0, 1, UVA + 3 * PAGE);
	set_cr3(root | 1 | KEEP);
	expect_eq(read8(UVA + 2 * PAGE), old);
	expect_eq(N(TABLE), 1);
	replace_table();
	invpcid(1, 1, 0);
	expect_eq(read8(UVA + 3 * PAGE), old);
	expect_eq(N(TABLE), 1);
}

/* Stale for longer than old-ms, which is 200 here. */
static void old_entry(void)
{
	u64 begin;

	start();
	make_stale();
	expect_eq(read8(UVA), old);
	expect_eq(N(OLD), 0);
	/* At 5 GHz and below that is long enough. */
	for (begin = rdtsc(); rdtsc() - begin < 1500000000ul;)
		;
	expect_eq(read8(UVA), old);
	expect_eq(N(OLD), 1);
	expect_eq(N(VIOLATIONS), 1);
}

static void rights(void)
{
	start();
	write8(UVA + 16, 1);
	expect_eq(tlb_check_arm((void *)UVA, PAGE), 0);
	*pte_of(root, UVA) &= ~RW;
	/* To read it is right still. */
	expect_eq(read8(UVA), old);
	expect_eq(N(VIOLATIONS), 0);
	write8(UVA + 16, 2);
	expect_eq(N(ARMED), 1);
}

static void unmapped(void)
{
	start();
	expect_eq(read8(UVA), old);
	expect_eq(tlb_check_arm((void *)UVA, PAGE), 0);
	*pte_of(root, UVA) = 0;
	expect_eq(read8(UVA), old);
	expect_eq(N(ARMED), 1);
}

/* A write by an entry that remembers a dirty bit which is no more. */
static void dirty(void)
{
	start();
	write8(UVA + 16, 1);
	write8(UVA + 16, 1);
	expect_eq(N(DIRTY), 0);
	*pte_of(root, UVA) &= ~D;
	expect_eq(read8(UVA), old);
	expect_eq(N(DIRTY), 0);
	write8(UVA + 16, 2);
	expect_eq(N(DIRTY), 1);
}

static void atomic(void)
{
	u64 v = 1;

	start();
	write8(UVA + 16, 1);
	expect_eq(tlb_check_arm((void *)UVA, PAGE), 0);
	*pte_of(root, UVA) = 0;
	asm volatile("lock xadd %0, (%1)" : "+r" (v) : "r" (UVA + 16) : "memory");
	expect_eq(v, 1);
	/* With one thread for all vCPUs it is a load and a store. */
	expect(N(ARMED) == 1 || N(ARMED) == 2);
}

/* An access that begins in a right page and ends in a stale one. */
static void crossing(void)
{
	start();
	expect_eq(read8(UVA), old);
	read8(UVA + PAGE);
	expect_eq(tlb_check_arm((void *)(UVA + PAGE), PAGE), 0);
	remap(root, UVA + PAGE, new);
	read8(UVA + PAGE - 16);
	expect_eq(N(ARMED), 0);
	read8(UVA + PAGE - 4);
	expect_eq(N(ARMED), 1);
}

/* Two pages that take one place in a direct-mapped TLB: the victim TLB. */
static void victim(void)
{
	u64 va = UVA + 100 * PAGE;

	start();
	for (u64 size = 256; size <= 4096; size *= 2)
		map(root, va + size * PAGE, old, P | RW | US);
	map(root, va, old, P | RW | US);
	expect_eq(read8(va), old);
	for (u64 size = 256; size <= 4096; size *= 2)
		read8(va + size * PAGE);
	expect_eq(tlb_check_arm((void *)va, PAGE), 0);
	*pte_of(root, va) = 0;
	expect_eq(read8(va), old);
	expect_eq(N(ARMED), 1);
}

/* A function that returns 7, called a few times. */
static int (*code_at(u64 va))(void)
{
	int (*f)(void) = (int (*)(void))va;
	u64 page = new_page();

	*(volatile unsigned char *)page = 0xb8;		/* mov $7, %eax; ret */
	*(volatile u32 *)(page + 1) = 7;
	*(volatile unsigned char *)(page + 5) = 0xc3;
	map(root, va, page, P | US);
	for (int i = 0; i < 10; i++)
		expect_eq(f(), 7);
	expect_eq(N(VIOLATIONS), 0);
	return f;
}

void fetch(void)
{
	int (*f)(void);

	start();
	f = code_at(UVA + 8 * PAGE);
	expect_eq(tlb_check_arm((void *)(UVA + 8 * PAGE), PAGE), 0);
	*pte_of(root, UVA + 8 * PAGE) = 0;
	expect_eq(f(), 7);
	expect(N(ARMED) >= 1);
}

/* Code whose entry had to make room, but that runs from the jump cache. */
static void fetch_victim(void)
{
	u64 va = UVA + 100 * PAGE;
	int (*f)(void);

	start();
	for (u64 size = 256; size <= 4096; size *= 2)
		map(root, va + size * PAGE, old, P | RW | US);
	f = code_at(va);
	for (u64 size = 256; size <= 4096; size *= 2)
		read8(va + size * PAGE);
	expect_eq(tlb_check_arm((void *)va, PAGE), 0);
	*pte_of(root, va) = 0;
	expect_eq(f(), 7);
	expect(N(ARMED) >= 1);
}

u64 user(char *entry, u64 a, u64 b, u64 c, u64 d)
{
	static struct user_call call;

	call.entry = (void *)(USER_CODE + (entry - user_read));
	call.stack = USER_STACK + PAGE;
	call.arg[0] = a;
	call.arg[1] = b;
	call.arg[2] = c;
	call.arg[3] = d;
	return run_user(&call);
}

static void user_mode(void)
{
	start();
	expect_eq(user(user_read, UVA, 0, 0, 0), old);
	expect_eq(tlb_check_arm((void *)UVA, PAGE), 0);
	remap(root, UVA, new);
	expect_eq(user(user_read, UVA, 0, 0, 0), old);
	expect_eq(N(ARMED), 1);
	expect_eq(user(user_write, UVA + PAGE, old, 0, 0), 0);
	*pte_of(root, UVA + PAGE) = 0;
	expect_eq(tlb_check_arm((void *)(UVA + PAGE), PAGE), 0);
	expect_eq(user(user_write, UVA + PAGE, old, 0, 0), 0);
	expect_eq(N(ARMED), 2);
}

/* An entry of a tag outlives other tags, and is a violation when it is used */
static void stale_across_tags(void)
{
	start();
	set_cr4(get_cr4() | CR4_PCIDE);
	set_cr3(root | 1);
	make_stale();
	tlb_check_frames(old / PAGE, 1, TLB_CHECK_FREED);
	set_cr3((u64)boot_pml4 | 2);
	expect_eq(N(VIOLATIONS), 0);
	set_cr3(root | 1 | KEEP);
	expect_eq(N(VIOLATIONS), 0);
	expect_eq(read8(UVA), old);
	expect_eq(N(FREED), 1);
	expect(N(RESTORED) >= 1);
}

/* Another root under the same tag, and nothing was dropped. */
static void other_space(void)
{
	u64 other;

	start();
	other = new_root();
	map(other, UVA, new, P | RW | US | D);
	map(other, UVA + PAGE, old, P | RW | US | D);
	set_cr4(get_cr4() | CR4_PCIDE);
	set_cr3(root | 1);
	expect_eq(read8(UVA), old);
	expect_eq(read8(UVA + PAGE), old);
	set_cr3(other | 1 | KEEP);
	/* What both have is right, wherever it comes from. */
	expect_eq(read8(UVA + PAGE), old);
	expect_eq(N(VIOLATIONS), 0);
	expect_eq(read8(UVA), old);
	expect_eq(N(SPACE), 1);
	expect_eq(N(VIOLATIONS), 1);
	set_cr3(other | 1);
	expect_eq(read8(UVA), new);
	expect_eq(read8(UVA), new);
	expect_eq(N(VIOLATIONS), 1);
}

/* One for each page that is used first, none for what is there. */
static void fills(void)
{
	u64 before = 0;

	start();
	for (u64 i = 0; i < 9; i++)
		map(root, UVA + i * PAGE, old, P | RW | US);
	set_cr3(root);
	/* What this code itself needs is there after the first round. */
	for (u64 i = 0; i < 2; i++) {
		expect_eq(read8(UVA + 8 * PAGE), old);
		before = N(FILLS);
	}
	for (u64 i = 0; i < 8; i++)
		expect_eq(read8(UVA + i * PAGE), old);
	expect_eq(N(FILLS) - before, 8);
	for (u64 i = 0; i < 8; i++)
		expect_eq(read8(UVA + i * PAGE), old);
	expect_eq(N(FILLS) - before, 8);
	invlpg(UVA);
	expect_eq(read8(UVA), old);
	expect_eq(N(FILLS) - before, 9);
}

const struct test tests_check[] = {
	{ "transient", transient, "check" },
	{ "armed", armed, "check" },
	{ "armed_elsewhere", armed_elsewhere, "check" },
	{ "armed_process_gone", armed_process_gone, "check" },
	{ "frame_events", frame_events, "check" },
	{ "table_of_entry", table_of_entry, "check" },
	{ "table_of_walk", table_of_walk, "check" },
	{ "table_of_walk_pcid", table_of_walk_pcid, "check" },
	{ "old_entry", old_entry, "check" },
	{ "rights", rights, "check" },
	{ "unmapped", unmapped, "check" },
	{ "dirty", dirty, "check" },
	{ "atomic", atomic, "check" },
	{ "crossing", crossing, "check" },
	{ "victim", victim, "check" },
	{ "fetch", fetch, "check" },
	{ "fetch_victim", fetch_victim, "check" },
	{ "user_mode", user_mode, "check" },
	{ "stale_across_tags", stale_across_tags, "check" },
	{ "other_space", other_space, "check" },
	{ "fills", fills, "check" },
	{ 0, 0, 0 }
};
