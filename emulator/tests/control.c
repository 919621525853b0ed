/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Tests of the checker: the commands and who may give them, the properties
 * that leave something out
 */
#include "check.h"

static void ring3_refused(void)
{
	start();
	expect_eq(user(user_cpuid, TLB_CHECK_IDENTIFY, 0, 0, 0), 0);
	expect_eq(user(user_cpuid, TLB_CHECK_FRAMES, old / PAGE, 1, 1),
		  TLB_CHECK_EPERM);
	expect_eq(user(user_cpuid, TLB_CHECK_RESET, 0, 0, 0), TLB_CHECK_EPERM);
	expect_eq(user(user_cpuid, TLB_CHECK_TEXT, 0, 0, 0), TLB_CHECK_EPERM);
	expect_eq(user(user_cpuid, 0x1ff, 0, 0, 0), TLB_CHECK_EPERM);
	expect_eq(N(REFUSED), 4);
	expect_eq(N(EVENTS), 0);
	/* Its own address space is its own. */
	make_stale();
	expect_eq(user(user_cpuid, TLB_CHECK_ARM, UVA, PAGE, 0), 0);
	expect_eq(user(user_cpuid, TLB_CHECK_MARK, 1, 0, 0), 0);
	expect_eq(user(user_cpuid, TLB_CHECK_COUNTER, 0, 0, 0), 0);
	expect_eq(read8(UVA), old);
	expect_eq(N(ARMED), 1);
	expect_eq(user(user_cpuid, TLB_CHECK_DISARM, UVA, PAGE, 0), 0);
	expect_eq(N(REFUSED), 4);
}

/* What the kernel has armed a program may not take back. */
static void ring3_disarm(void)
{
	start();
	make_stale();
	expect_eq(tlb_check_arm((void *)UVA, PAGE), 0);
	expect_eq(user(user_cpuid, TLB_CHECK_DISARM, UVA, PAGE, 0),
		  TLB_CHECK_ENOENT);
	expect_eq(read8(UVA), old);
	expect_eq(N(ARMED), 1);
	/* Beside a range of the kernel its own stays its own. */
	expect_eq(user(user_cpuid, TLB_CHECK_ARM, UVA + PAGE, PAGE, 0), 0);
	expect_eq(user(user_cpuid, TLB_CHECK_DISARM, UVA, 2 * PAGE, 0), 0);
	expect_eq(read8(UVA), old);
	expect_eq(N(ARMED), 2);
	expect_eq(tlb_check_disarm((void *)UVA, 4 * PAGE), 0);
	expect_eq(tlb_check_disarm((void *)UVA, 4 * PAGE), TLB_CHECK_ENOENT);
}

/* Programs cannot take all the room; ranges that touch take little. */
static void room(void)
{
	tlb_check_u64 r[3];
	u64 va = UVA;
	int i;

	start();
	for (i = 0; i < 2000; i++)
		expect_eq(user(user_cpuid, TLB_CHECK_ARM, va + i * PAGE, PAGE,
			       0), 0);
	tlb_check_call(TLB_CHECK_DISARM, va, 2000 * PAGE, 0, r);
	expect_eq(r[0], 1);
	for (i = 0; i < 1024; i++)
		expect_eq(user(user_cpuid, TLB_CHECK_ARM, va + 2 * i * PAGE,
			       PAGE, 0), 0);
	expect_eq(user(user_cpuid, TLB_CHECK_ARM, va + 2 * i * PAGE, PAGE, 0),
		  TLB_CHECK_ENOSPC);
	for (; i < 4096; i++)
		expect_eq(tlb_check_arm((void *)(va + 2 * i * PAGE), PAGE), 0);
	expect_eq(tlb_check_arm((void *)(va + 2 * i * PAGE), PAGE),
		  TLB_CHECK_ENOSPC);
	tlb_check_call(TLB_CHECK_DISARM, va, 8192 * PAGE, 0, r);
	expect_eq(r[0], 4096);
}

/* The middle of a range, and its ends. */
static void disarm_part(void)
{
	start();
	for (u64 i = 0; i < 4; i++)
		expect_eq(read8(UVA + i * PAGE), old);
	for (u64 i = 0; i < 4; i++)
		remap(root, UVA + i * PAGE, new);
	expect_eq(tlb_check_arm((void *)UVA, 4 * PAGE), 0);
	expect_eq(tlb_check_disarm((void *)(UVA + PAGE), PAGE), 0);
	for (u64 i = 0; i < 4; i++)
		expect_eq(read8(UVA + i * PAGE), old);
	expect_eq(N(ARMED), 3);
	expect_eq(N(TRANSIENT), 1);
	expect_eq(tlb_check_disarm((void *)(UVA - PAGE), 2 * PAGE), 0);
	expect_eq(tlb_check_disarm((void *)(UVA + 3 * PAGE), 9 * PAGE), 0);
	for (u64 i = 0; i < 4; i++)
		expect_eq(read8(UVA + i * PAGE), old);
	expect_eq(N(ARMED), 4);
	expect_eq(N(TRANSIENT), 4);
}

static void commands(void)
{
	start();
	expect_eq(tlb_check_call(0xff, 0, 0, 0, 0), TLB_CHECK_EINVAL);
	expect_eq(tlb_check_call(0x1ff, 0, 0, 0, 0), TLB_CHECK_EINVAL);
	expect_eq(tlb_check_arm((void *)UVA, 0), TLB_CHECK_EINVAL);
	expect_eq(tlb_check_arm((void *)UVA, -1ul), TLB_CHECK_EINVAL);
	expect_eq(tlb_check_call(TLB_CHECK_FRAMES, 1, 1, 0, 0),
		  TLB_CHECK_EINVAL);
	expect_eq(tlb_check_call(TLB_CHECK_FRAMES, 1, 1, 5, 0),
		  TLB_CHECK_EINVAL);
	expect_eq(tlb_check_call(TLB_CHECK_FRAMES, 1, 0, 1, 0),
		  TLB_CHECK_EINVAL);
	expect_eq(tlb_check_call(TLB_CHECK_COUNTER, TLB_CHECK_COUNTERS, 0, 0, 0),
		  TLB_CHECK_EINVAL);
	expect_eq(tlb_check_call(TLB_CHECK_UNWATCH, 0, 0, 0, 0),
		  TLB_CHECK_ENOENT);
	expect_eq(N(EVENTS), 0);
	expect_eq(tlb_check_disarm((void *)UVA, 0), TLB_CHECK_EINVAL);
	expect_eq(tlb_check_disarm((void *)UVA, -1ul), TLB_CHECK_EINVAL);
	/* Once or twice is the same. */
	expect_eq(tlb_check_arm((void *)UVA, PAGE), 0);
	expect_eq(tlb_check_arm((void *)UVA, PAGE), 0);
	make_stale();
	expect_eq(read8(UVA), old);
	expect_eq(N(ARMED), 1);
	tlb_check_call(TLB_CHECK_RESET, 0, 0, 0, 0);
	expect_eq(N(ARMED), 0);
	expect_eq(N(VIOLATIONS), 0);
}

/* The kernel runs elsewhere than it was linked to; the log names slid_read. */
static void text_slide(void)
{
	u64 slide = KVA - ((u64)slid_read & -PAGE);
	u64 (*read)(u64) = (u64 (*)(u64))(slid_read + slide);

	start();
	map(root, KVA, (u64)slid_read & -PAGE, P);
	make_stale();
	expect_eq(tlb_check_arm((void *)UVA, PAGE), 0);
	expect_eq(tlb_check_call(TLB_CHECK_TEXT, (u64)_text + slide, 0, 0, 0), 0);
	expect_eq(read(UVA), old);
	expect_eq(N(ARMED), 1);
}

/* A program arms under the root of its half; the kernel uses the other. */
static void armed_in_both_halves(void)
{
	u64 pair;

	start();
	pair = new_root_pair();
	for (u64 i = 1; i < 512; i++)
		((u64 *)pair)[i] = ((u64 *)(pair + PAGE))[i] = ((u64 *)root)[i];
	set_cr4(get_cr4() | CR4_PCIDE);
	set_cr3((pair + PAGE) | 0x801);
	expect_eq(read8(UVA + PAGE), old);
	expect_eq(tlb_check_arm((void *)UVA, PAGE), 0);
	set_cr3(pair | 1);
	make_stale();
	expect_eq(read8(UVA), old);
	expect_eq(N(ARMED), 1);
}

/* The same without PCIDs to tell by. pti=on */
static void armed_in_both_halves_no_pcid(void)
{
	u64 pair;

	start();
	pair = new_root_pair();
	for (u64 i = 1; i < 512; i++)
		((u64 *)pair)[i] = ((u64 *)(pair + PAGE))[i] = ((u64 *)root)[i];
	set_cr3(pair + PAGE);
	expect_eq(tlb_check_arm((void *)UVA, PAGE), 0);
	set_cr3(pair);
	make_stale();
	expect_eq(read8(UVA), old);
	expect_eq(N(ARMED), 1);
}

/* Without two halves, neighbours are two processes. pti=off, process=off */
static void armed_neighbour(void)
{
	u64 pair;

	start();
	pair = new_root_pair();
	for (u64 i = 1; i < 512; i++)
		((u64 *)pair)[i] = ((u64 *)(pair + PAGE))[i] = ((u64 *)root)[i];
	set_cr3(pair + PAGE);
	expect_eq(tlb_check_arm((void *)UVA, PAGE), 0);
	set_cr3(pair);
	make_stale();
	expect_eq(read8(UVA), old);
	expect_eq(N(ARMED), 0);
	expect_eq(N(TRANSIENT), 1);
}

/* With start and end around UVA + PAGE alone. */
static void window(void)
{
	start();
	make_stale();
	expect_eq(read8(UVA), old);
	expect_eq(N(CHECKS), 0);
	expect_eq(N(TRANSIENT), 0);
	expect_eq(read8(UVA + PAGE), old);
	remap(root, UVA + PAGE, new);
	expect_eq(read8(UVA + PAGE), old);
	expect_eq(N(TRANSIENT), 1);
}

/* With process=on. */
static void process(void)
{
	start();
	make_stale();
	expect_eq(read8(UVA), old);
	expect_eq(N(CHECKS), 0);
	invlpg(UVA);
	expect_eq(user(user_cpuid, TLB_CHECK_WATCH, 0, 0, 0), 0);
	expect_eq(read8(UVA), new);
	remap(root, UVA, old);
	expect_eq(read8(UVA), new);
	expect_eq(N(TRANSIENT), 1);
	expect_eq(user(user_cpuid, TLB_CHECK_UNWATCH, 0, 0, 0), 0);
	invlpg(UVA);
	expect_eq(read8(UVA), old);
	remap(root, UVA, new);
	expect_eq(read8(UVA), old);
	expect_eq(N(TRANSIENT), 1);
}

/* With sample=10 and a window around UVA. */
static void sample(void)
{
	start();
	make_stale();
	for (int i = 0; i < 100; i++)
		expect_eq(read8(UVA), old);
	expect_eq(N(CHECKS), 10);
	expect_eq(N(SKIPPED), 90);
	expect_eq(N(TRANSIENT), 10);
}

/* With user=off, or kernel=off, or fetch=off. */
static void no_kernel(void)
{
	start();
	make_stale();
	expect_eq(read8(UVA), old);
	expect_eq(N(CHECKS), 0);
	expect_eq(user(user_read, UVA + PAGE, 0, 0, 0), old);
	remap(root, UVA + PAGE, new);
	expect_eq(user(user_read, UVA + PAGE, 0, 0, 0), old);
	expect(N(TRANSIENT) >= 1);
}

static void no_user(void)
{
	start();
	expect_eq(user(user_read, UVA + PAGE, 0, 0, 0), old);
	remap(root, UVA + PAGE, new);
	expect_eq(user(user_read, UVA + PAGE, 0, 0, 0), old);
	expect_eq(N(TRANSIENT), 0);
	make_stale();
	expect_eq(read8(UVA), old);
	expect_eq(N(TRANSIENT), 1);
}

static void no_fetch(void)
{
	expect_eq(catch_call((void (*)(void *))fetch, 0), UD);
	expect_eq(N(ARMED), 0);
}

/* Without a checker: CPUID says so, and everything works. */
static void absent(void)
{
	expect(!tlb_check_present());
}

/* With cache=off: what leaves the page cache may still be used. */
static void no_cache(void)
{
	start();
	make_stale();
	tlb_check_frames(old / PAGE, 1, TLB_CHECK_CACHE);
	expect_eq(read8(UVA), old);
	expect_eq(N(TRANSIENT), 1);
	expect_eq(N(EVENTS), 0);
	tlb_check_frames(old / PAGE, 1, TLB_CHECK_FREED);
	expect_eq(read8(UVA), old);
	expect_eq(N(FREED), 1);
}

/* What is filled when as many pages are read for a second time. */
static u64 filled_again(u64 pages)
{
	u64 before = 0;

	start();
	for (u64 n = 0; n < pages; n++)
		map(root, UVA + n * PAGE, old, P | RW | US);
	/* A TLB that goes by use would be small after flushes. */
	for (int n = 0; n < 8; n++)
		set_cr3(root);
	for (int again = 0; again < 2; again++) {
		before = N(FILLS);
		for (u64 n = 0; n < pages; n++)
			expect_eq(read8(UVA + n * PAGE), old);
	}
	return N(FILLS) - before;
}

/* With entries=64. */
static void few_entries(void)
{
	expect(filled_again(512) > 256);
}

/* With entries=4096. */
static void many_entries(void)
{
	expect(filled_again(1024) < 16);
}

const struct test tests_control[] = {
	{ "ring3_refused", ring3_refused, "check" },
	{ "ring3_disarm", ring3_disarm, "check" },
	{ "room", room, "check" },
	{ "disarm_part", disarm_part, "check" },
	{ "commands", commands, "check" },
	{ "text_slide", text_slide, "check" },
	{ "armed_neighbour", armed_neighbour, "neighbour" },
	{ "armed_in_both_halves", armed_in_both_halves, "check" },
	{ "armed_in_both_halves_no_pcid", armed_in_both_halves_no_pcid, "pti" },
	{ "window", window, "window" },
	{ "process", process, "process" },
	{ "sample", sample, "sample" },
	{ "no_kernel", no_kernel, "no-kernel" },
	{ "no_user", no_user, "no-user" },
	{ "no_fetch", no_fetch, "no-fetch" },
	{ "absent", absent, "absent" },
	{ "no_cache", no_cache, "no-cache" },
	{ "few_entries", few_entries, "few-entries" },
	{ "many_entries", many_entries, "many-entries" },
	{ 0, 0, 0 }
};
