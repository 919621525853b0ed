// SPDX-License-Identifier: GPL-2.0
/*
 * Gathers that are under way beside each other, and what each is about.
 *
 * An mmu_gather clears entries, or their accessed bits, and flushes for them later.
 * Who finds such an entry in between must not take it for one that no CPU has. Linux counts
 * the gathers of a process in tlb_flush_pending, and whoever is not alone flushes
 * everything in the end. With many threads somebody always is, and mostly at other
 * addresses. So where somebody asks, a gather notes the range of its call, before it
 * changes an entry, until it has flushed, or has left that for later (I5):
 *
 *   gather A				B
 *   notes its range (list lock)
 *   clears an entry (page table lock)
 *					finds that (page table lock)
 *					looks for A (list lock)
 *   flushes
 *   is taken off (list lock)
 *
 * B finds A there, and that they meet; or A was off, and then had flushed.
 *
 * A gather that has noted nothing may be about anything: its call is not known, or nobody
 * asked when it began. Their number is that of all less that of the list. It is never too
 * low, since each counts in tlb_flush_pending before it is on the list and until it is
 * off, and while somebody looks the list does not change. It may be too high
 * for a moment; then a flush is sent that was not needed.
 *
 * Processes share lists. On one stands a gather with its address space, so that nothing has
 * to be made, or to go, with a process.
 *
 * Locks: that of a list, innermost; page table locks may be held.
 * Callers: tlb_gather_mmu()'s callers that know a range, tlb_finish_mmu(); young.c, the
 * mechanisms.
 */
#include <linux/cache.h>
#include <linux/hash.h>
#include <linux/list.h>
#include <linux/mm.h>
#include <linux/spinlock.h>

#include <asm/tlb.h>

#include "core.h"

#define CF_LISTS_BITS	6

struct cf_gathers {
	spinlock_t lock;	/* of the list, and of what stands on it */
	struct list_head list;
} ____cacheline_aligned_in_smp;

static struct cf_gathers cf_gathers[1 << CF_LISTS_BITS];

static struct cf_gathers *cf_gathers_of(const struct mm_struct *mm)
{
	return &cf_gathers[hash_ptr(mm, CF_LISTS_BITS)];
}

/**
 * __cf_gather_begins() - a gather knows what its call is about, and has changed nothing
 * @tlb: the gather
 * @start: the range of the call
 * @end: first address behind it
 * @listed: others of the process ask whom they meet
 */
void __cf_gather_begins(struct mmu_gather *tlb, unsigned long start,
			unsigned long end, bool listed)
{
	struct cf_gathers *gathers = cf_gathers_of(tlb->mm);

	tlb->whole_start = start;
	tlb->whole_end = end;
	if (!listed)
		return;
	spin_lock(&gathers->lock);
	list_add(&tlb->cf_node, &gathers->list);
	spin_unlock(&gathers->lock);
	tlb->cf_listed = 1;
}

/**
 * __cf_gather_ends() - a gather that is on the list has flushed
 * @tlb: the gather
 */
void __cf_gather_ends(struct mmu_gather *tlb)
{
	struct cf_gathers *gathers = cf_gathers_of(tlb->mm);

	spin_lock(&gathers->lock);
	list_del(&tlb->cf_node);
	spin_unlock(&gathers->lock);
	tlb->cf_listed = 0;
}

/* How many gathers of the process there are beside the own one. */
static int cf_gathers_beside(struct mm_struct *mm, const struct mmu_gather *own)
{
	return atomic_read(&mm->tlb_flush_pending) - !!own;
}

static bool cf_gathers_meet_in(struct mm_struct *mm,
			       const struct mmu_gather *own,
			       unsigned long start, unsigned long end)
{
	struct cf_gathers *gathers = cf_gathers_of(mm);
	const struct mmu_gather *other;
	bool meets = false;
	int unnoted;

	if (cf_gathers_beside(mm, own) <= 0)
		return false;
	spin_lock(&gathers->lock);
	unnoted = cf_gathers_beside(mm, own);
	list_for_each_entry(other, &gathers->list, cf_node) {
		if (other->mm != mm || other == own)
			continue;
		meets |= other->whole_start < end && start < other->whole_end;
		unnoted--;
	}
	spin_unlock(&gathers->lock);
	/* One that has noted nothing meets everybody. */
	return meets || unnoted > 0;
}

/**
 * cf_gathers_meet() - may another gather have changed entries, and not flushed?
 * @mm: the process
 * @own: the caller's gather, or NULL
 * @addr: of the first entry, or CF_ANYWHERE
 * @nr: their number
 *
 * Context: what the caller has found of the entries it has found under their page table
 * locks, before.
 * Return: true if it may be so.
 */
bool cf_gathers_meet(struct mm_struct *mm, const struct mmu_gather *own,
		     unsigned long addr, unsigned long nr)
{
	if (addr == CF_ANYWHERE)
		return cf_gathers_meet_in(mm, own, 0, ULONG_MAX);
	return cf_gathers_meet_in(mm, own, addr, addr + nr * PAGE_SIZE);
}

/**
 * __cf_gather_meets() - does a gather that ends meet others?
 * @tlb: the gather, on the list
 *
 * What others have cleared in the range of its call it has found empty, and relies on
 * its own flush for that.
 */
bool __cf_gather_meets(struct mmu_gather *tlb)
{
	CF_MUTATION(cf_gathers_apart, return false);
	return cf_gathers_meet_in(tlb->mm, tlb, tlb->whole_start, tlb->whole_end);
}

static int __init cf_gathers_init(void)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(cf_gathers); i++) {
		spin_lock_init(&cf_gathers[i].lock);
		INIT_LIST_HEAD(&cf_gathers[i].list);
	}
	return 0;
}
early_initcall(cf_gathers_init);
