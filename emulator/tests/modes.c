/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Tests of entries that kernel and user mode share: one for a page, whoever
 * has caused it, and rights that are looked at when it is used
 */
#include "check.h"

static u64 user_reads(u64 va)
{
	return user(user_read, va, 0, 0, 0);
}

static void modes_share(void)
{
	start();
	expect_eq(read8(UVA), old);
	remap(root, UVA, new);
	expect_eq(user_reads(UVA), old);
	expect_eq(user_reads(UVA + PAGE), old);
	remap(root, UVA + PAGE, new);
	expect_eq(read8(UVA + PAGE), old);
	/* One flush is for both. */
	invlpg(UVA);
	invlpg(UVA + PAGE);
	expect_eq(user_reads(UVA), new);
	expect_eq(read8(UVA + PAGE), new);
	expect_eq(N(VIOLATIONS), 0);
}

/* An access to what is there sets nothing. */
static void modes_accessed(void)
{
	u64 *pte;

	start();
	pte = pte_of(root, UVA);
	expect_eq(read8(UVA), old);
	expect(*pte & A);
	*(volatile u64 *)pte &= ~A;
	expect_eq(user_reads(UVA), old);
	expect(!(*(volatile u64 *)pte & A));
	/* Another page has an entry of its own. */
	*(volatile u64 *)pte_of(root, UVA + PAGE) &= ~A;
	expect_eq(user_reads(UVA + PAGE), old);
	expect(*(volatile u64 *)pte_of(root, UVA + PAGE) & A);
}

/* What was read with its dirty bit clear allows no write. */
static void modes_dirty(void)
{
	u64 *pte;

	start();
	pte = pte_of(root, UVA);
	*(volatile u64 *)pte &= ~D;
	expect_eq(read8(UVA), old);
	expect(!(*(volatile u64 *)pte & D));
	expect_eq(user(user_write, UVA, old, 0, 0), 0);
	expect(*(volatile u64 *)pte & D);
}

static void read_as_user(void *va)
{
	user_reads((u64)va);
}

/* What only the kernel may have stays its own. */
static void modes_rights(void)
{
	u64 va = UVA + PAGE;

	start();
	*(volatile u64 *)pte_of(root, va) &= ~US;
	expect_eq(read8(va), old);
	expect_eq(catch_call(read_as_user, (void *)va), PF);
	expect_eq(fault_address, va);
	/* Rights that have grown are found by a walk. */
	*(volatile u64 *)pte_of(root, va) |= US;
	expect_eq(user_reads(va), old);
}

/* It is as old as the access that has read it. */
static void modes_age(void)
{
	start();
	make_stale();
	tlb_check_frames(old / PAGE, 1, TLB_CHECK_FREED);
	expect_eq(N(VIOLATIONS), 0);
	expect_eq(user_reads(UVA), old);
	expect_eq(N(FREED), 1);
	expect_eq(N(VIOLATIONS), 1);
}

const struct test tests_modes[] = {
	{ "modes_share", modes_share, "check" },
	{ "modes_accessed", modes_accessed, "check" },
	{ "modes_dirty", modes_dirty, "check" },
	{ "modes_rights", modes_rights, "check" },
	{ "modes_age", modes_age, "check" },
	{ 0 }
};
