/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Tests of class flushed: what a flush that has returned should have dropped
 *
 * The checker is told of flushes that nobody does here: what it reports is what a
 * kernel has missed. With flushes=on.
 */
#include "check.h"

#define ALL -1ul

static u64 begin(u64 of, u64 shift, u64 from, u64 to)
{
	tlb_check_u64 r[3];

	expect_eq(tlb_check_call(TLB_CHECK_FLUSH_BEGIN, of | shift, from, to, r),
		  0);
	expect(r[0] > 0);
	return r[0];
}

static void done(u64 flush)
{
	expect_eq(tlb_check_call(TLB_CHECK_FLUSH_DONE, flush, 0, 0, 0), 0);
}

/* A flush of pages of 4 KiB that is missed. */
static void missed(u64 of, u64 from, u64 to)
{
	done(begin(of, 12, from, to));
}

/* A violation from its return on, and while it is stale. */
static void flushed(void)
{
	u64 flush;

	start();
	make_stale();
	flush = begin(root, 12, UVA, UVA + PAGE);
	expect_eq(read8(UVA), old);
	expect_eq(N(TRANSIENT), 1);
	expect_eq(N(VIOLATIONS), 0);
	done(flush);
	expect_eq(N(FLUSHES), 1);
	expect_eq(read8(UVA), old);
	expect_eq(N(FLUSHED), 1);
	expect_eq(N(VIOLATIONS), 1);
	/* What is right may be used, wherever it comes from. */
	remap(root, UVA, old);
	expect_eq(read8(UVA), old);
	expect_eq(N(VIOLATIONS), 1);
	invlpg(UVA);
	expect_eq(read8(UVA), old);
	remap(root, UVA, new);
	expect_eq(read8(UVA), old);
	expect_eq(N(VIOLATIONS), 1);
	expect_eq(N(TRANSIENT), 2);
}

/* What was loaded when the flush had begun is for the next one. */
static void flushed_before(void)
{
	u64 flush;

	start();
	missed(root, UVA, UVA + PAGE);
	flush = begin(root, 12, UVA, UVA + PAGE);
	make_stale();
	done(flush);
	expect_eq(read8(UVA), old);
	expect_eq(N(VIOLATIONS), 0);
	expect_eq(N(TRANSIENT), 1);
	/* Two at a time: each counts for itself. */
	flush = begin(root, 12, UVA, UVA + PAGE);
	missed(root, UVA + PAGE, UVA + 2 * PAGE);
	expect_eq(read8(UVA), old);
	expect_eq(N(VIOLATIONS), 0);
	done(flush);
	expect_eq(read8(UVA), old);
	expect_eq(N(FLUSHED), 1);
}

/* Pages beside the range, and other address spaces. */
static void flushed_beside(void)
{
	start();
	make_stale();
	missed(root, UVA - 3 * PAGE, UVA);
	missed(root, UVA + PAGE, UVA + 2 * PAGE);
	missed(new_root(), UVA, UVA + PAGE);
	expect_eq(read8(UVA), old);
	expect_eq(N(VIOLATIONS), 0);
	expect_eq(N(TRANSIENT), 1);
	missed(root, UVA - 3 * PAGE, UVA + PAGE);
	expect_eq(read8(UVA), old);
	expect_eq(N(FLUSHED), 1);
}

/* A flush for large entries names one address in so many. */
static void flushed_stride(void)
{
	u64 large, other;

	start();
	large = new_pages(9);
	other = new_pages(9);
	map_large(root, UVA + LARGE, large, P | RW | US | D);
	expect_eq(read8(UVA + LARGE + 5 * PAGE), large + 5 * PAGE);
	expect_eq(read8(UVA + 2 * PAGE), old);
	expect_eq(read8(UVA), old);
	*entry_of(root, UVA + LARGE, 2) = other | P | RW | US | D | PS;
	remap(root, UVA, new);
	remap(root, UVA + 2 * PAGE, new);
	done(begin(root, 21, UVA, UVA + 2 * LARGE));
	expect_eq(read8(UVA + 2 * PAGE), old);
	expect_eq(N(VIOLATIONS), 0);
	expect_eq(read8(UVA), old);
	expect_eq(N(FLUSHED), 1);
	expect_eq(read8(UVA + LARGE + 5 * PAGE), large + 5 * PAGE);
	expect_eq(N(FLUSHED), 2);
}

/* Everything. */
static void flushed_all(void)
{
	start();
	make_stale();
	done(begin(new_root(), 0, 0, ALL));
	expect_eq(read8(UVA), old);
	expect_eq(N(VIOLATIONS), 0);
	done(begin(root, 0, 0, ALL));
	expect_eq(read8(UVA), old);
	expect_eq(N(FLUSHED), 1);
}

/* Who is away may keep it, and has to drop it before it is used. */
static void flushed_away(void)
{
	start();
	set_cr4(get_cr4() | CR4_PCIDE);
	set_cr3(root | 1);
	make_stale();
	set_cr3((u64)boot_pml4 | 2);
	missed(root, UVA, UVA + PAGE);
	set_cr3(root | 1);
	expect_eq(read8(UVA), new);
	expect_eq(read8(UVA), new);
	expect_eq(N(VIOLATIONS), 0);
	remap(root, UVA, old);
	set_cr3((u64)boot_pml4 | 2);
	missed(root, UVA, UVA + PAGE);
	set_cr3(root | 1 | KEEP);
	expect_eq(read8(UVA), new);
	expect_eq(N(FLUSHED), 1);
}

/* A CPU has a root of its own, and the flush is told for the other one. */
static void flushed_own_root(void)
{
	u64 own;

	start();
	own = new_root();
	for (u64 i = 1; i < 512; i++)
		((u64 *)own)[i] = ((u64 *)root)[i];
	expect_eq(tlb_check_call(TLB_CHECK_ROOT, own, root, 0, 0), 0);
	set_cr3(own);
	make_stale();
	missed(root, UVA, UVA + PAGE);
	expect_eq(read8(UVA), old);
	expect_eq(N(FLUSHED), 1);
	/* Ranges are those of the address space, under each root. */
	set_cr3(root);
	expect_eq(tlb_check_arm((void *)(UVA + PAGE), PAGE), 0);
	set_cr3(own);
	expect_eq(read8(UVA + PAGE), old);
	remap(root, UVA + PAGE, new);
	expect_eq(read8(UVA + PAGE), old);
	expect_eq(N(ARMED), 1);
	/* When its frame is given away the root is nobody's. */
	tlb_check_frames(own / PAGE, 1, TLB_CHECK_FREED);
	set_cr3(own);
	expect_eq(read8(UVA), new);
	remap(root, UVA, old);
	missed(root, UVA, UVA + PAGE);
	expect_eq(read8(UVA), new);
	expect_eq(N(FLUSHED), 1);
}

/* What the commands refuse. */
static void flushed_commands(void)
{
	start();
	expect_eq(tlb_check_call(TLB_CHECK_FLUSH_BEGIN, root, UVA, UVA, 0),
		  TLB_CHECK_EINVAL);
	expect_eq(tlb_check_call(TLB_CHECK_FLUSH_BEGIN, root | 48, UVA, ALL, 0),
		  TLB_CHECK_EINVAL);
	expect_eq(tlb_check_call(TLB_CHECK_FLUSH_DONE, -1ul, 0, 0, 0),
		  TLB_CHECK_ENOENT);
	expect_eq(tlb_check_call(TLB_CHECK_ROOT, root, root, 0, 0),
		  TLB_CHECK_EINVAL);
	expect_eq(tlb_check_call(TLB_CHECK_ROOT, 0, root, 0, 0),
		  TLB_CHECK_EINVAL);
	expect_eq(user(user_cpuid, TLB_CHECK_FLUSH_BEGIN, root, UVA, ALL),
		  TLB_CHECK_EPERM);
	expect_eq(user(user_cpuid, TLB_CHECK_FLUSH_DONE, 1, 0, 0),
		  TLB_CHECK_EPERM);
	expect_eq(user(user_cpuid, TLB_CHECK_ROOT, root, old, 0),
		  TLB_CHECK_EPERM);
	expect_eq(N(FLUSHES), 0);
	expect_eq(N(REFUSED), 3);
}

/* With flushes=off: nobody wants to know. */
static void no_flushes(void)
{
	tlb_check_u64 r[3];

	start();
	make_stale();
	expect_eq(tlb_check_call(TLB_CHECK_FLUSH_BEGIN, root, UVA, ALL, r), 0);
	expect_eq(r[0], 0);
	expect_eq(tlb_check_call(TLB_CHECK_FLUSH_DONE, 1, 0, 0, 0),
		  TLB_CHECK_ENOENT);
	expect_eq(read8(UVA), old);
	expect_eq(N(TRANSIENT), 1);
	expect_eq(N(VIOLATIONS), 0);
}

const struct test tests_flushes[] = {
	{ "flushed", flushed, "flushes" },
	{ "flushed_before", flushed_before, "flushes" },
	{ "flushed_beside", flushed_beside, "flushes" },
	{ "flushed_stride", flushed_stride, "flushes" },
	{ "flushed_all", flushed_all, "flushes" },
	{ "flushed_away", flushed_away, "flushes" },
	{ "flushed_own_root", flushed_own_root, "flushes" },
	{ "flushed_commands", flushed_commands, "flushes" },
	{ "no_flushes", no_flushes, "check" },
	{ 0, 0, 0 }
};
