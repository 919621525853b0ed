// SPDX-License-Identifier: GPL-2.0
/*
 * NUMA hints of lazy processes, without a flush (I10).
 *
 * To see from which node memory is used, the kernel makes entries inaccessible from
 * time to time (change_prot_numa()), and flushes. A lazy process leaves that flush to
 * ticks, like that of an munmap(). Nothing is wrong with a CPU that goes on using the
 * page for so long: its page is where it was, and may be used. But until then an entry
 * does not say what CPUs may have:
 *   - "inaccessible" means elsewhere that no CPU has it. pte_accessible() says so to
 *     those who move, merge or evict a page: ptep_clear_flush(),
 *     set_tlb_ubc_flush_pending(). Without a flush a CPU would write to a page that is
 *     being copied, and its update be lost. So pte_accessible() makes it true, if it
 *     is not: a flush of everything settles all hints. One for the page alone would be
 *     sent again for the next one, and who takes a hint and moves the page is most
 *     often the first to touch many of them
 *   - pte_needs_flush() and huge_pmd_needs_flush() compare the old entry with the new
 *     one for mprotect() and for write protection by userfaultfd. One with a hint needs
 *     no flush for them. Nor does one that is read-only since somebody took the hint
 *     and the page could not be moved (do_numa_page()). Under both a CPU would go on
 *     writing, so change_protection() flushes its range
 * change_protection() asks latr_hinted(), pte_accessible() by way of
 * latr_settle_hints(). All other places that change an inaccessible entry flush
 * anyhow: munmap(), mremap(), fork(), MADV_*, those for huge entries by way of
 * pmdp_invalidate(). Others that go by what an entry may be used for look at the
 * dirty bit, too, which stays.
 *
 * What they ask must be true from the first entry on, not only from when the debt is
 * noted. Until then tlb_flush_pending says so, since the gather of the hints counts in
 * it: pte_accessible() asks for both. Who has a gather himself counts, too, and learns
 * nothing from it; but of two gathers at a time the one that ends flushes everything
 * (tlb_finish_mmu()), as neither notes what it is about (../core/gathers.c):
 *
 *   hints, mmap_lock for reading	userfaultfd, likewise
 *   pending++
 *   makes an entry inaccessible
 *					pending++
 *					protects it: inaccessible, nothing owed yet
 *   hinted = started + 1
 *   pending is 2: flushes
 *   pending--
 *					pending is 1: no flush, and no CPU has it
 *
 * If the second counts itself after the look at pending, it finds what is owed: there
 * is a full barrier between both steps on both sides (atomic_inc() is one on x86). So
 * the debt is noted before tlb_finish_mmu(), and hints are no exception from its rule.
 * And who has no gather:
 *
 *   hints				reader, page table lock
 *   hinted = started + 1		finds an inaccessible entry
 *   smp_mb()				pending?
 *   pending--				smp_rmb()
 *					hinted owed?
 *
 * Any flush that is credited as newer than hinted began after the entries were changed
 * (../core/debt.c). The one of latr_settle_hints() begins after its caller has cleared
 * the entry as well, so that no walk can bring the page back. What it does not cover
 * are hints that another CPU gives meanwhile: not to this entry, which is gone.
 *
 * Locks: mmap_lock for reading or writing.
 * Callers: change_prot_numa(); pte_accessible() with the page table lock held,
 * change_protection().
 */
#include <linux/mm.h>
#include <linux/mmu_notifier.h>
#include <linux/vmstat.h>

#include <asm/tlb.h>

#include "latr.h"

/* May the flush for hints be left to ticks? */
static bool latr_hints_wait(struct mm_struct *mm)
{
	return cf_policy_of(mm) == &latr_policy &&
	       READ_ONCE(latr_enabled) != LATR_NEVER &&
	       !mm_has_notifiers(mm);
}

/* What the gather would flush is owed. */
static void latr_owe_hints(struct mmu_gather *tlb, struct cf_ctx *ctx)
{
	/* Entries changed before the generation is read. */
	smp_mb();
	cf_skip_pause();
	cf_owe_hints(ctx, cf_started(ctx));
	/* What is owed before the looks at tlb_flush_pending, and before its end. */
	smp_mb();
	/* This CPU shall take hints at once. */
	cf_flush_own(tlb);
	__tlb_reset_range(tlb);
	count_vm_event(LATR_HINT_SKIP);
}

/**
 * latr_hint() - make entries of a range inaccessible, for NUMA hints
 * @tlb: gather of the caller, who ends it
 * @vma: the mapping
 * @addr: start of the range
 * @end: its end
 *
 * Return: how many entries were changed.
 */
long latr_hint(struct mmu_gather *tlb, struct vm_area_struct *vma,
	       unsigned long addr, unsigned long end)
{
	struct cf_ctx *ctx = READ_ONCE(vma->vm_mm->cf);
	long nr;

	if (likely(!ctx) || !latr_hints_wait(vma->vm_mm))
		return change_protection(tlb, vma, addr, end, MM_CP_PROT_NUMA);
	nr = change_protection(tlb, vma, addr, end, MM_CP_PROT_NUMA);
	if (!tlb->cleared_ptes && !tlb->cleared_pmds)
		return nr;
	if (cf_runs_elsewhere(tlb->mm))
		latr_owe_hints(tlb, ctx);
	else
		count_vm_event(LATR_HINT_FLUSH);
	return nr;
}

/**
 * __latr_hinted() - may CPUs have entries as they were before a hint?
 * @mm: the process
 *
 * Context: after a look at the entry, and one at tlb_flush_pending, or with a gather
 * that counts in it.
 * Return: true if no flush has completed since.
 */
bool __latr_hinted(struct mm_struct *mm)
{
	struct cf_ctx *ctx = READ_ONCE(mm->cf);

	CF_MUTATION(latr_hint_unseen, return false);
	if (!ctx)
		return false;
	/* Pending before what is owed. */
	smp_rmb();
	return cf_is_owed_for(ctx, READ_ONCE(ctx->hinted));
}

/**
 * __latr_settle_hints() - no CPU has an entry as it was before a hint
 * @mm: the process
 *
 * Context: after a look at tlb_flush_pending, page table lock held, interrupts on.
 * The entry that the caller asks for has been changed.
 */
void __latr_settle_hints(struct mm_struct *mm)
{
	if (!__latr_hinted(mm))
		return;
	count_vm_event(LATR_HINT_SETTLE);
	flush_tlb_mm_range(mm, 0, TLB_FLUSH_ALL, 0, false);
}
