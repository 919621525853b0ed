/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Tests of cached upper levels: what walks use, and what drops it
 *
 * Each maps another table where one was, without a flush: a walk that finds the
 * page that only the old one has began at the cached entry. With upper=1024 and
 * flushes=on.
 */
#include "check.h"

/* Another table takes the place of an entry's; it maps @page at UVA + PAGE. */
static u64 replace(int level, u64 va, u64 page)
{
	u64 *entry = entry_of(root, va, level), was = *entry;

	*(volatile u64 *)entry = 0;
	map(root, va, page, P | RW | US | D);
	return was & 0x000ffffffffff000ul;
}

/* Cache the way to UVA, then let it lead elsewhere; the old table. */
static u64 begin(void)
{
	start();
	expect_eq(read8(UVA), old);
	return replace(2, UVA + PAGE, new);
}

static void upper_walk(void)
{
	begin();
	expect_eq(N(TRANSIENT), 0);
	expect_eq(read8(UVA + PAGE), old);
	expect_eq(N(TRANSIENT), 1);
	expect_eq(N(VIOLATIONS), 0);
	expect(N(UPPER) >= 1);
}

/* The table is given away before the walk, and after it. */
static void upper_freed(void)
{
	tlb_check_frames(begin() / PAGE, 1, TLB_CHECK_FREED);
	expect_eq(N(VIOLATIONS), 0);
	expect_eq(read8(UVA + PAGE), old);
	expect_eq(N(TABLE), 1);
	expect_eq(N(VIOLATIONS), 1);
	tlb_check_frames(begin() / PAGE, 1, TLB_CHECK_FREED);
	invlpg(UVA + 9 * PAGE);
	expect_eq(read8(UVA + PAGE), new);
	expect_eq(read8(UVA + PAGE), new);
	expect_eq(N(VIOLATIONS), 0);
}

static void missed(u64 from, u64 to)
{
	tlb_check_u64 r[3];

	expect_eq(tlb_check_call(TLB_CHECK_FLUSH_BEGIN, root | 12, from, to, r), 0);
	expect_eq(tlb_check_call(TLB_CHECK_FLUSH_DONE, r[0], 0, 0, 0), 0);
}

/* A flush was missed: what comes by the cached way is as old as that. */
static void upper_flushed(void)
{
	begin();
	missed(UVA + LARGE, UVA + 2 * LARGE);
	missed(UVA - LARGE, UVA);
	expect_eq(read8(UVA + PAGE), old);
	expect_eq(N(VIOLATIONS), 0);
	begin();
	missed(UVA + 9 * PAGE, UVA + 10 * PAGE);
	expect_eq(read8(UVA + PAGE), old);
	expect_eq(N(FLUSHED), 1);
	/* Where the way is right what comes by it is new. */
	start();
	expect_eq(read8(UVA), old);
	missed(UVA, UVA + LARGE);
	expect_eq(read8(UVA + PAGE), old);
	remap(root, UVA + PAGE, new);
	expect_eq(read8(UVA + PAGE), old);
	expect_eq(N(TRANSIENT), 1);
	expect_eq(N(VIOLATIONS), 0);
}

/* Whatever drops all of the current tag. */
static void upper_drops(void)
{
	for (int how = 0; how < 5; how++) {
		begin();
		switch (how) {
		case 0:
			invlpg(KVA);
			break;
		case 1:
			set_cr3(root);
			break;
		case 2:
			set_cr4(get_cr4() & ~CR4_PGE);
			break;
		case 3:
			invpcid(1, 0, 0);
			break;
		case 4:
			invpcid(2, 0, 0);
			break;
		}
		expect_eq(read8(UVA + PAGE), new);
		expect_eq(N(TRANSIENT), 0);
	}
}

/* Each tag has its own, and keeps it while it is away. */
static void upper_tags(void)
{
	start();
	set_cr4(get_cr4() | CR4_PCIDE);
	set_cr3(root | 1);
	expect_eq(read8(UVA), old);
	replace(2, UVA + PAGE, new);
	set_cr3(root | 2);
	expect_eq(read8(UVA + PAGE), new);
	/* Of another tag, and of another region of this one: nothing. */
	invlpg(UVA);
	invpcid(0, 1, UVA + (1ul << 40));
	set_cr3(root | 1 | KEEP);
	expect_eq(read8(UVA + PAGE), old);
	invpcid(0, 1, UVA + PAGE);
	expect_eq(read8(UVA + PAGE), new);
	/* All but global ones. */
	replace(2, UVA + PAGE, old);
	set_cr3((u64)boot_pml4 | 2);
	invpcid(3, 0, 0);
	set_cr3(root | 1 | KEEP);
	expect_eq(read8(UVA + PAGE), old);
}

/* Under another root, with the same tag and without a flush. */
static void upper_space(void)
{
	u64 other;

	start();
	other = new_root();
	map(other, UVA + PAGE, new, P | RW | US | D);
	set_cr4(get_cr4() | CR4_PCIDE);
	set_cr3(root | 1);
	expect_eq(read8(UVA), old);
	set_cr3(other | 1 | KEEP);
	expect_eq(read8(UVA + PAGE), old);
	expect_eq(N(SPACE), 1);
}

static void touch(void *va)
{
	read8((u64)va);
}

static void poke(void *va)
{
	write8((u64)va + 16, 1);
}

/* A fault drops the way to its address: the next walk begins at the root. */
static void upper_fault(void)
{
	u64 *entry;

	start();
	entry = pte_of(root, UVA + PAGE);
	expect_eq(read8(UVA), old);
	*(volatile u64 *)entry = 0;
	replace(2, UVA + PAGE, new);
	expect_eq(catch_call(touch, (void *)(UVA + PAGE)), PF);
	expect_eq(read8(UVA + PAGE), new);
}

/* The rights on the way are cached with it. */
static void upper_rights(void)
{
	u64 *entry;

	start();
	entry = entry_of(root, UVA, 2);
	*entry &= ~RW;
	set_cr3(root);
	expect_eq(read8(UVA), old);
	*(volatile u64 *)entry |= RW;
	expect_eq(catch_call(poke, (void *)(UVA + PAGE)), PF);
	poke((void *)(UVA + PAGE));
	*(volatile u64 *)entry &= ~RW;
	poke((void *)(UVA + 2 * PAGE));
	expect_eq(N(TRANSIENT), 1);
	invlpg(KVA);
	expect_eq(catch_call(poke, (void *)(UVA + 3 * PAGE)), PF);
}

/* Cached with its accessed bit set, and used without setting it again. */
static void upper_accessed(void)
{
	volatile u64 *entry;

	start();
	entry = entry_of(root, UVA, 2);
	expect(!(*entry & A));
	expect_eq(read8(UVA), old);
	expect(*entry & A);
	*entry &= ~A;
	expect_eq(read8(UVA + PAGE), old);
	expect(!(*entry & A));
	invlpg(KVA);
	expect_eq(read8(UVA + 2 * PAGE), old);
	expect(*entry & A);
}

/* What is absent is not cached, at no level. */
static void upper_absent(void)
{
	start();
	expect_eq(read8(UVA), old);
	for (int shift = 21; shift < 48; shift += 9) {
		u64 va = UVA + (1ul << shift);

		expect_eq(catch_call(touch, (void *)va), PF);
		map(root, va, new, P | US);
		expect_eq(read8(va), new);
	}
}

/* Each level: what is beside a region goes by the entry above it. */
static void upper_levels(void)
{
	for (int level = 2; level < 5; level++) {
		u64 va = UVA + (1ul << (12 + 9 * (level - 2)));

		start();
		map(root, va, old, P | US);
		expect_eq(read8(UVA), old);
		replace(level, va, new);
		expect_eq(read8(va), old);
		expect_eq(N(TRANSIENT), 1);
		invlpg(va);
		expect_eq(read8(va), new);
	}
}

/* With upper=1: the last one that was read takes the place. */
static void one_upper(void)
{
	start();
	map(root, UVA + LARGE, old, P | US);
	expect_eq(read8(UVA), old);
	expect_eq(read8(UVA + LARGE), old);
	replace(2, UVA + PAGE, new);
	expect_eq(read8(UVA + PAGE), new);
	expect_eq(N(TRANSIENT), 0);
}

const struct test tests_upper[] = {
	{ "upper_walk", upper_walk, "upper" },
	{ "upper_freed", upper_freed, "upper" },
	{ "upper_flushed", upper_flushed, "upper" },
	{ "upper_drops", upper_drops, "upper" },
	{ "upper_tags", upper_tags, "upper" },
	{ "upper_space", upper_space, "upper" },
	{ "upper_fault", upper_fault, "upper" },
	{ "upper_rights", upper_rights, "upper" },
	{ "upper_accessed", upper_accessed, "upper" },
	{ "upper_absent", upper_absent, "upper" },
	{ "upper_levels", upper_levels, "upper" },
	{ "one_upper", one_upper, "one-upper" },
	{ 0, 0, 0 }
};
