// SPDX-License-Identifier: GPL-2.0
/*
 * Entries that no CPU has: they are changed, and nobody is asked to drop them. And those
 * that name who has them (insert.c): nobody else is asked (classes.c).
 *
 * Which those are the core knows (../core/young.c): the accessed bit is clear, and
 * has been since a full flush, or since the entry was made. Here is what follows:
 *   - a gather (zap, change_protection()) does not take the entry into its range.
 *     It flushes for the others, if there are any, and frees its pages as ever: what
 *     nobody has a translation of may be free at once
 *   - ptep_clear_flush() returns without a flush: copy on write, msync(), KSM,
 *     uprobes, memory failure
 *   - reclaim and migration note no flush for later
 *
 * A gather that meets another one flushes everything in the end, as ever: it may have
 * found entries empty that the other one has cleared, and relies on its own flush for
 * those (tlb_finish_mmu(), ../core/gathers.c). In its middle, when it is full, it flushes
 * for what is in its range only; an entry that the other one has left without
 * the accessed bit, and has not flushed for, is taken into it for that reason
 * (cf_young_pending()).
 *
 * Tables that go are in the range of the gather by themselves, with what is cached of
 * the way to them (pte_free_tlb()): that flush is sent, to all or to the sharers of the
 * region, whatever the entries of the table were.
 *
 * More entries have the bit clear than those that reclaim has looked at:
 *   - fault-around maps pages that nobody has asked for. They are born without it
 *   - a page that has moved is mapped again, before anybody uses it there
 *   - who flushes for an entry and leaves it present may clear it in the same
 *     step, before anybody can walk there again: msync() and writeback, when a page
 *     becomes clean
 *   - fork() clears it before it flushes for everything, and says so (fork.c)
 * Linux takes the bit for the use of the page, and shall see the same as before. So a
 * bit that hardware ignores says that (asm/abis.h), and pte_young() asks for both.
 *
 * Programs have used mprotect() as a barrier: all CPUs of a process were interrupted.
 * They did so with locked memory, so there all are still asked for a flush.
 *
 * Locks: the page table lock of the entry.
 * Callers: zap_present_folio_ptes(), change_pte_range(), tlb_flush_mmu_tlbonly(),
 * ptep_clear_flush(), try_to_unmap_one(), try_to_migrate_one(), insert.c, again.c,
 * page_vma_mkclean_one(), remove_migration_pte(), wp_page_copy().
 */
#include <linux/delay.h>
#include <linux/mm.h>
#include <linux/mm_inline.h>
#include <linux/vmstat.h>

#include <asm/tlb.h>

#include <trace/events/ceasefire.h>

#include "abis.h"

static_assert(ABIS_CACHED_YOUNG - ABIS_UNCACHED == CF_CACHED_YOUNG - CF_UNCACHED);
static_assert(ABIS_CACHED_CLASS - ABIS_CACHED_YOUNG == CF_CACHED_CLASS);
static_assert(ABIS_CACHED_LOCKED - ABIS_CACHED_YOUNG == ABIS_IS_LOCKED);

/* Why a CPU may have entries that were just cleared, counted; CF_UNCACHED: none has. */
static int abis_cached(struct vm_area_struct *vma, unsigned long addr, pte_t pte,
		       unsigned int nr, const struct mmu_gather *own)
{
	bool uncached = abis_source_on(ABIS_SOURCE_UNCACHED);
	bool inserted = abis_source_on(ABIS_SOURCE_INSERTED);
	int why;

	if (!uncached && !inserted)
		return CF_CACHED_DISABLED;
	if (!abis_is_plain(vma, pte))
		return ABIS_IS_SPECIAL;
	why = cf_cached(vma, addr, pte, nr, own);
	CF_MUTATION_IF(abis_class_unseen, why == CF_CACHED_CLASS,
		       why = CF_UNCACHED);
	if ((why == CF_UNCACHED && !uncached) ||
	    (why == CF_CACHED_CLASS && !inserted))
		return CF_CACHED_DISABLED;
	return why;
}

/* Return: true if no flush for all CPUs is needed. */
static bool abis_count_entries(struct mm_struct *mm, pte_t pte, unsigned int nr,
			       int why)
{
	count_vm_events(ABIS_CACHED_YOUNG + why, nr);
	trace_abis_entry(mm->context.ctx_id, pte_pfn(pte), nr,
			 why - CF_UNCACHED);
	return why == CF_UNCACHED || why == CF_CACHED_CLASS;
}

static void abis_count_flush(struct mm_struct *mm, enum vm_event_item which)
{
	count_vm_event(which);
	trace_abis_flush(mm->context.ctx_id, which - ABIS_NONE);
}

/*
 * Was the entry cleared before, by somebody whose flush is still to come? Who has taken
 * the page off its list does not get it as long as a gather has it, too, and has flushed
 * for it himself when it is back there.
 */
static bool abis_is_awaited(struct mm_struct *mm, unsigned long addr, bool listed)
{
	CF_MUTATION(abis_awaited_unseen, return listed && cf_batch_pending(mm));
	return listed && (cf_gathers_meet(mm, NULL, addr, 1) || cf_batch_pending(mm));
}

/**
 * abis_cached_alone() - may a CPU have an entry that was cleared, and no gather has?
 * @vma: its mapping
 * @addr: its address, or CF_ANYWHERE
 * @pte: the entry as it was
 * @listed: as for __abis_uncached()
 *
 * Return: as cf_cached(), or why entries of its kind are not believed.
 */
int abis_cached_alone(struct vm_area_struct *vma, unsigned long addr,
		      pte_t pte, bool listed)
{
	int why = abis_cached(vma, addr, pte, 1, NULL);

	if ((why == CF_UNCACHED || why == CF_CACHED_CLASS) &&
	    abis_is_awaited(vma->vm_mm, addr, listed))
		return CF_CACHED_PENDING;
	return why;
}

/**
 * __abis_uncached() - an entry was cleared: has no CPU got it?
 * @vma: its mapping
 * @pte: the entry as it was
 * @listed: the page may be one that reclaim has taken off its list, and not flushed for
 *
 * What is flushed for later is flushed for many, and everywhere.
 *
 * Return: true if a flush is not needed.
 */
bool __abis_uncached(struct vm_area_struct *vma, pte_t pte, bool listed)
{
	int why;

	/* Nothing that a CPU would walk was there. */
	if (!pte_present(pte))
		return false;
	why = abis_cached_alone(vma, CF_ANYWHERE, pte, listed);
	abis_count_flush(vma->vm_mm, why == CF_UNCACHED ? ABIS_NONE : ABIS_ALL);
	abis_count_entries(vma->vm_mm, pte, 1, why);
	return why == CF_UNCACHED;
}

/**
 * __abis_clear_flush() - an entry was cleared: flush where CPUs can have it
 * @vma: its mapping
 * @addr: its address
 * @pte: the entry as it was
 *
 * Return: true if that is done, or not needed.
 */
bool __abis_clear_flush(struct vm_area_struct *vma, unsigned long addr,
			pte_t pte)
{
	struct mm_struct *mm = vma->vm_mm;
	int why;

	if (!pte_present(pte))
		return false;
	why = abis_cached_alone(vma, addr, pte, true);
	if (why == CF_CACHED_CLASS)
		abis_flush_classes(mm, addr, addr + PAGE_SIZE,
				   BIT(abis_class(pte)));
	else
		abis_count_flush(mm, why == CF_UNCACHED ? ABIS_NONE : ABIS_ALL);
	return abis_count_entries(mm, pte, 1, why);
}

/* Entries are left out of the range of a gather, which may have pages of them. */
static void abis_leave_out(struct mmu_gather *tlb)
{
	tlb->abis_left = 1;
	/* Whoever adds pages wants to see that entries were cleared. */
	tlb->end = max(tlb->end, 1UL);
}

/**
 * __abis_gather_uncached() - a gather has cleared entries: has no CPU got them?
 * @tlb: the gather
 * @vma: their mapping
 * @addr: of the first one
 * @pte: that one as it was, with the accessed bits of all
 * @nr: their number, of one folio and class
 *
 * Return: true if the gather need not flush for them, or does so in a range of its own.
 */
bool __abis_gather_uncached(struct mmu_gather *tlb, struct vm_area_struct *vma,
			    unsigned long addr, pte_t pte, unsigned int nr)
{
	int why;

	/* The whole address space goes, and its entries were cleared in any order. */
	if (tlb->fullmm)
		return false;
	why = abis_cached(vma, addr, pte, nr, tlb);
	if (why == CF_CACHED_CLASS)
		abis_gather_class(tlb, addr, nr, abis_class(pte));
	if (!abis_count_entries(tlb->mm, pte, nr, why))
		return false;
	abis_leave_out(tlb);
	return true;
}

/* Does the program expect that all CPUs are interrupted? */
static bool abis_is_barrier(struct vm_area_struct *vma)
{
	CF_MUTATION(abis_locked_unseen, return false);
	return vma->vm_flags & VM_LOCKED;
}

/**
 * __abis_protect_uncached() - an entry has got other rights: has no CPU got it as it was?
 * @tlb: gather of change_protection()
 * @vma: its mapping
 * @addr: its address
 * @pte: the entry as it was
 *
 * Return: true if the gather need not flush for it, or does so in a range of its own.
 */
bool __abis_protect_uncached(struct mmu_gather *tlb, struct vm_area_struct *vma,
			     unsigned long addr, pte_t pte)
{
	if (abis_is_barrier(vma))
		return abis_count_entries(tlb->mm, pte, 1, ABIS_IS_LOCKED);
	return __abis_gather_uncached(tlb, vma, addr, pte, 1);
}

/**
 * __abis_gather_flush() - a gather is about to flush, if there is anything to flush for
 * @tlb: the gather
 *
 * Also of a process that does not want it any more: prctl() waits for no gather, those of
 * truncate() have no mmap_lock. What was left out is flushed for.
 */
void __abis_gather_flush(struct mmu_gather *tlb)
{
	bool narrow = tlb->abis_classes;
	bool flushes;

#ifdef CONFIG_CEASEFIRE_DEBUG
	mdelay(DIV_ROUND_UP(READ_ONCE(abis_flush_delay_us), USEC_PER_MSEC));
#endif
	CF_MUTATION_IF(abis_left_off, !abis_on(tlb->mm), return);
	if (narrow)
		abis_gather_flush_classes(tlb, cf_gather_flushes(tlb));
	flushes = cf_gather_flushes(tlb);
	if (!flushes && tlb->abis_left && !narrow)
		abis_count_flush(tlb->mm, ABIS_NONE);
	else if (flushes && atomic_read(&tlb->mm->mm_users))
		abis_count_flush(tlb->mm, tlb->abis_left ? ABIS_SOME : ABIS_ALL);
	/* Who takes a table away flushes for what is cached of the way there. */
	CF_MUTATION_IF(abis_tables_unseen, tlb->abis_left && !tlb->cleared_ptes,
		       __tlb_reset_range(tlb));
	tlb->abis_left = 0;
}

/**
 * abis_born() - entries are made for pages that nobody has asked for
 * @vma: their mapping
 * @pte: the first entry
 * @nr: their number
 *
 * Nobody can have it: the address was empty. Unless reclaim has just taken it from
 * there, and not flushed yet; then it is made as ever. ../core/young.c has the same for
 * a gather.
 *
 * Return: the entry to be made.
 */
pte_t abis_born(struct vm_area_struct *vma, pte_t pte, unsigned int nr)
{
	if (!abis_profits(vma, pte, ABIS_SOURCE_UNCACHED) || cf_batch_pending(vma->vm_mm))
		return pte;
	count_vm_events(ABIS_BORN, nr);
	return abis_keep_use(pte);
}

/**
 * __abis_flushed() - an entry was cleared and flushed for, and is made again
 * @vma: its mapping
 * @pte: the entry that it becomes
 *
 * Between the two nobody could walk there, so no CPU has it. The flush may have left
 * CPUs out: those that did not have it.
 *
 * Return: the entry to be made.
 */
pte_t __abis_flushed(struct vm_area_struct *vma, pte_t pte)
{
	if (!(pte_flags(pte) & _PAGE_ACCESSED) || !abis_profits(vma, pte, ABIS_SOURCE_UNCACHED))
		return pte;
	count_vm_event(ABIS_CLEANED);
	return abis_keep_use(pte);
}

/**
 * __abis_moved() - a page is mapped again, in another frame
 * @vma: its mapping
 * @pte: the entry that is to be made
 *
 * Nobody has it: there was none for it before. Nor has anybody what was there before the
 * page moved, if that led to its old frame:
 *   - where a CPU could have the entry (__abis_uncached()), the flush before the copy was for
 *     it, and for what anybody had cleared there before that and not flushed for
 *   - where none could, somebody may have cleared another entry for the page there, and have
 *     a flush to come (a gather, after which fault-around made this one). He has a reference
 *     to the page until then, and a page with one more than are known of is not copied
 * What leads to other frames is the business of those who are to free them, after their flush.
 * A page that goes back to its frame, as it could not be moved, may be here before the flush.
 *
 * Memory of devices has frames for which there are no tags.
 *
 * Return: the entry to be made.
 */
pte_t __abis_moved(struct vm_area_struct *vma, pte_t pte)
{
	if (!(pte_flags(pte) & _PAGE_ACCESSED) ||
	    is_zone_device_page(pte_page(pte)) ||
	    !abis_profits(vma, pte, ABIS_SOURCE_UNCACHED))
		return pte;
	count_vm_event(ABIS_BORN);
	return abis_keep_use(pte);
}
