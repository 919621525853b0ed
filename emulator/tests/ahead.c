/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Tests of the walker that runs ahead: what nobody touched may be there
 *
 * With ahead=8.
 */
#include "check.h"

#define PAGES 16

/* Pages on both sides of UVA, none of which was touched. */
static void begin(u64 flags)
{
	start();
	for (u64 va = UVA - PAGES * PAGE; va < UVA + PAGES * PAGE; va += PAGE)
		map(root, va, old, flags);
	set_cr3(root);
	tlb_check_call(TLB_CHECK_RESET, 0, 0, 0, 0);
}

/* How many pages beside UVA are another one than the page tables say. */
static u64 stale_beside(void)
{
	u64 n = 0;

	for (u64 va = UVA - PAGES * PAGE; va < UVA + PAGES * PAGE; va += PAGE)
		n += va != UVA && read8(va) == old;
	return n;
}

/* A fill brings others, and their first use is looked at. */
static void ahead_beside(void)
{
	u64 stale;

	begin(P | RW | US | D);
	expect_eq(read8(UVA), old);
	for (u64 va = UVA - PAGES * PAGE; va < UVA + PAGES * PAGE; va += PAGE)
		remap(root, va, new);
	stale = stale_beside();
	expect(stale > 0);
	expect(stale < 2 * PAGES - 1);
	expect(N(AHEAD) >= stale);
	expect_eq(N(TRANSIENT), stale);
	expect_eq(N(VIOLATIONS), 0);
}

/* Accessed bits are set, dirty bits are not. */
static void ahead_accessed(void)
{
	u64 accessed = 0;

	begin(P | RW | US);
	expect_eq(read8(UVA), old);
	for (u64 va = UVA - PAGES * PAGE; va < UVA + PAGES * PAGE; va += PAGE) {
		expect(!(*pte_of(root, va) & D));
		accessed += !!(*pte_of(root, va) & A);
	}
	expect(accessed > 1);
}

static void nothing(void)
{
}

static void (*volatile call)(void) = nothing;

/* What was filled once may be there again, without being touched. */
static void ahead_any_time(void)
{
	u64 page = old;
	int round, stale = 0;

	begin(P | RW | US | D);
	expect_eq(read8(UVA), old);
	for (round = 0; round < 500 && !stale; round++) {
		invlpg(UVA);
		for (int i = 0; i < 2000; i++)
			call();
		remap(root, UVA, page == old ? new : old);
		stale = read8(UVA) == page;
		page = page == old ? new : old;
	}
	expect(stale);
	expect_eq(N(TRANSIENT), 1);
}

/* What is absent is not there, when it is mapped it is. */
static void ahead_absent(void)
{
	begin(0);
	map(root, UVA, old, P | US);
	expect_eq(read8(UVA), old);
	for (u64 va = UVA - PAGES * PAGE; va < UVA + PAGES * PAGE; va += PAGE)
		map(root, va, va == UVA ? old : new, P | US);
	expect_eq(stale_beside(), 0);
	expect_eq(N(TRANSIENT), 0);
}

/* With ahead=0: nobody does what nobody asked for. */
static void no_ahead(void)
{
	begin(P | RW | US);
	expect_eq(read8(UVA), old);
	for (u64 va = UVA - PAGES * PAGE; va < UVA + PAGES * PAGE; va += PAGE)
		expect(va == UVA || !(*pte_of(root, va) & A));
	expect_eq(N(AHEAD), 0);
}

const struct test tests_ahead[] = {
	{ "ahead_beside", ahead_beside, "ahead" },
	{ "ahead_accessed", ahead_accessed, "ahead" },
	{ "ahead_any_time", ahead_any_time, "ahead" },
	{ "ahead_absent", ahead_absent, "ahead" },
	{ "no_ahead", no_ahead, "check" },
	{ 0, 0, 0 }
};
