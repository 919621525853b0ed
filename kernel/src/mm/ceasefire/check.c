// SPDX-License-Identifier: GPL-2.0
/*
 * Talks to an emulator that checks TLB entries; see ceasefire_check.h for what
 * events mean. The interface is that of the emulator's tlb-check-guest.h: a
 * CPUID leaf with the command in ECX and its arguments in RSI, RDI and RDX.
 *
 * Locks: none. A CPUID is one instruction and orders nothing here: what it says
 * is true before it, and holds until the frame is used again behind it.
 *
 * Callers: free paths of the page allocator, the pool (FREED); removal from
 * the page cache (UNCACHED); FUSE, the pool (OWNER); munmap() that skips, the
 * arena (addresses); flush_tlb_mm_range(); sharers (roots).
 */
#include <linux/bug.h>
#include <linux/ceasefire_check.h>
#include <linux/export.h>
#include <linux/init.h>
#include <linux/mm.h>
#include <linux/printk.h>
#include <linux/string.h>

#include <asm/sections.h>

#define TLB_CHECK_LEAF		0x40544c42
#define TLB_CHECK_SIGNATURE	"TLBcheckQEMU"

enum {
	TLB_CHECK_IDENTIFY = 0,
	TLB_CHECK_ARM = 2,
	TLB_CHECK_DISARM = 3,
	TLB_CHECK_FRAMES = 0x100,
	TLB_CHECK_TEXT = 0x102,
	TLB_CHECK_FLUSH_BEGIN = 0x103,
	TLB_CHECK_FLUSH_DONE = 0x104,
	TLB_CHECK_ROOT = 0x105,
};

DEFINE_STATIC_KEY_FALSE(ceasefire_checked);
EXPORT_SYMBOL_GPL(ceasefire_checked);	/* fuse may be a module */

/*
 * Stale entries that fast page recycling leaves to a process on purpose are not
 * to be used by a correct program either; the attacks on the kernel do.
 * ceasefire_check=recycled: once their frame was recycled.
 * ceasefire_check=strict: at no time.
 */
static bool check_recycled __ro_after_init;
static bool check_strict __ro_after_init;

static u32 tlb_check_call(u32 command, u64 a, u64 b, u64 c, u32 *answer)
{
	u64 ax = TLB_CHECK_LEAF, bx = 0, cx = command, dx = c;

	asm volatile("cpuid"
		     : "+a" (ax), "+b" (bx), "+c" (cx), "+d" (dx)
		     : "S" (a), "D" (b) : "memory");
	if (answer) {
		answer[0] = bx;
		answer[1] = cx;
		answer[2] = dx;
	}
	return ax;
}

/**
 * __ceasefire_event() - something happens to page frames
 * @page: the first
 * @nr: how many
 * @event: what
 */
void __ceasefire_event(struct page *page, unsigned long nr,
		       enum ceasefire_event event)
{
	tlb_check_call(TLB_CHECK_FRAMES, page_to_pfn(page), nr, event, NULL);
}

/**
 * __ceasefire_moved() - a folio may change its owner
 * @folio: it
 *
 * The caller refuses a folio that is mapped or cached, whose translations stay
 * right.
 */
void __ceasefire_moved(struct folio *folio)
{
	if (!folio_mapped(folio) && !folio->mapping)
		__ceasefire_event(&folio->page, folio_nr_pages(folio),
				  CEASEFIRE_OWNER);
}
EXPORT_SYMBOL_GPL(__ceasefire_moved);	/* fuse may be a module */

/**
 * __ceasefire_recycled() - a frame gets new content in the same process
 * @page: the frame
 */
void __ceasefire_recycled(struct page *page)
{
	if (check_recycled)
		__ceasefire_event(page, 1, CEASEFIRE_OWNER);
}

/**
 * __ceasefire_skipped() - a flush of the current process was skipped
 * @start: first address
 * @end: address behind the last
 *
 * A program that still uses these addresses is wrong, and works by luck.
 */
void __ceasefire_skipped(unsigned long start, unsigned long end)
{
	if (!check_strict)
		return;
	/* A run that was not watched to its end shows nothing. */
	WARN_ONCE(tlb_check_call(TLB_CHECK_ARM, start, end - start, 0, NULL),
		  "ceasefire: the emulator watches no more ranges\n");
}

/**
 * __ceasefire_settled() - what was skipped in a range was flushed
 * @mm: the address space
 * @start: first address
 * @end: address behind the last
 *
 * The emulator knows one address space, the current one. In another one (its
 * stack grows on behalf of a debugger) the range stays armed, and a program
 * that gets it again may be reported.
 */
void __ceasefire_settled(struct mm_struct *mm, unsigned long start,
			 unsigned long end)
{
	if (check_strict && mm == current->mm)
		tlb_check_call(TLB_CHECK_DISARM, start, end - start, 0, NULL);
}

/**
 * __ceasefire_flush_begin() - a range is about to be flushed
 * @mm: the address space
 * @start: first address
 * @end: address behind the last, or TLB_FLUSH_ALL
 * @stride_shift: log2 of how far apart the addresses are that are flushed
 *
 * Page tables have been changed, and nothing has been done yet for the flush: who
 * is asked, and with which generation. So who loads a translation after this finds
 * the change, or is asked.
 *
 * Return: a number for __ceasefire_flush_done(), 0 if the emulator does not look.
 */
u32 __ceasefire_flush_begin(struct mm_struct *mm, unsigned long start,
			    unsigned long end, unsigned int stride_shift)
{
	u32 answer[3];

	/* An empty range: nothing is promised. */
	if (start >= end)
		return 0;
	/* A run that was not watched to its end shows nothing. */
	if (WARN_ONCE(tlb_check_call(TLB_CHECK_FLUSH_BEGIN,
				     __pa(mm->pgd) | stride_shift, start, end, answer),
		      "ceasefire: the emulator watches no more flushes\n"))
		return 0;
	return answer[0];
}

/**
 * __ceasefire_flush_done() - it was flushed, on all CPUs that may use the range
 * @flush: what __ceasefire_flush_begin() returned, not 0
 *
 * CPUs that are away may hold what they have; they flush before they use it.
 */
void __ceasefire_flush_done(u32 flush)
{
	tlb_check_call(TLB_CHECK_FLUSH_DONE, flush, 0, 0, NULL);
}

/**
 * __ceasefire_root() - CPUs will walk a root that is not mm->pgd
 * @mm: the address space
 * @root: the root, until its frame is freed
 */
void __ceasefire_root(struct mm_struct *mm, pgd_t *root)
{
	WARN_ONCE(tlb_check_call(TLB_CHECK_ROOT, __pa(root), __pa(mm->pgd), 0, NULL),
		  "ceasefire: the emulator knows no more roots\n");
}

static int __init ceasefire_check_setup(char *text)
{
	check_strict = !strcmp(text, "strict");
	check_recycled = check_strict || !strcmp(text, "recycled");
	if (!check_recycled)
		pr_warn("ceasefire_check=%s: use strict or recycled\n", text);
	return 1;
}
__setup("ceasefire_check=", ceasefire_check_setup);

/* Translations from before are those of boot, which nobody takes back. */
static int __init ceasefire_check_init(void)
{
	u32 answer[3];

	BUILD_BUG_ON(sizeof(answer) != sizeof(TLB_CHECK_SIGNATURE) - 1);
	if (tlb_check_call(TLB_CHECK_IDENTIFY, 0, 0, 0, answer) ||
	    memcmp(answer, TLB_CHECK_SIGNATURE, sizeof(answer)))
		return 0;
	tlb_check_call(TLB_CHECK_TEXT, (unsigned long)_text, 0, 0, NULL);
	static_branch_enable(&ceasefire_checked);
	pr_info("ceasefire: an emulator checks TLB entries\n");
	return 0;
}
early_initcall(ceasefire_check_init);
