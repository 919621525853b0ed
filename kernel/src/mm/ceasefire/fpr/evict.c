// SPDX-License-Identifier: GPL-2.0
/*
 * Eviction: reclaim of pages of MAP_FPR mappings, and of all those of processes that
 * have chosen a mechanism for whatever they map, without a flush.
 *
 * munmap() may skip its flush because the program has given up the address. Who
 * evicts a page must not: the program may read it again at any time, and has to
 * find what is in the file by then. So no entry may be left when the page goes,
 * but often that is known without a flush. A CPU sets the accessed bit of an
 * entry before it caches it, and caches no entry without it (see
 * fpr_evict_init()). So
 *
 *   reclaim				CPU
 *   clears the accessed bit of an entry
 *   (no flush, as ever on x86)		may still use the entry
 *   smp_mb()
 *   gen = started; tag the frame
 *   ...				full flush N > gen: the entry is gone
 *   later: clears the entry; the
 *   accessed bit is not set		has not cached it since
 *
 * and if the tag is judged clean (debt.c has why), no CPU has the entry. It
 * is what a skip does with frames, but the mapping stays. The debt is paid by
 * ticks, like that of a skip, and reclaim comes by a second time much later
 * than that. Both halves run under the page table lock of the entry, so the
 * second one sees the tag of the first.
 *
 * Whoever else clears the bit must be known, or the entry must count as used:
 *   - ptep_test_and_clear_young() tags: reclaim, MGLRU, DAMON, clear_refs, idle
 *     page tracking
 *   - madvise(MADV_FREE), for anonymous pages, clears it within an mmu_gather and
 *     flushes at the end: mm_tlb_flush_pending() says so, and is right under the
 *     page table lock
 *   - a frame without room for its tag: cf_ctx.untracked, for the whole process
 *   - a process that has no context yet (fork() copies VM_FPR), or had not chosen
 *     its mechanism: cf_ctx.born
 *   - migration keeps the bit when it puts an entry back before its flush; where
 *     there is no room for it (CPUs with L1TF) all evictions flush
 *   - swapoff puts entries back without the bit, for the same frame, while the
 *     flush for the old ones may still be pending (see __fpr_evicted())
 *   - other entries that are new and without the bit were never cached
 *
 * What is evicted with the bit set is flushed for as ever. Pages with a debt
 * reclaim rather leaves alone for one more round. When some wait, ticks are to
 * pay soon; when too many do, or when reclaim finds little else, one flush settles
 * them all. If there are only a few by then, they are evicted like any page, with
 * the flush that reclaim sends.
 *
 * Locks: page table lock (first two), folio lock (third).
 * Callers: ptep_test_and_clear_young(), folio_referenced_one(),
 * try_to_unmap_one(), folio_check_references(), evict_folios().
 */
#include <linux/mm.h>
#include <linux/mm_inline.h>
#include <linux/mmu_notifier.h>
#include <linux/mmzone.h>
#include <linux/swap.h>
#include <linux/swapops.h>
#include <linux/vmstat.h>

#include <trace/events/ceasefire.h>

#include "fpr.h"

/* So many pages that reclaim has left alone are worth a flush. */
#define FPR_EVICT_BATCH		2048

/* With so many it is time that ticks pay. */
#define FPR_EVICT_SOON		128

/* With fewer, the flush that reclaim sends for what it unmaps is as good. */
#define FPR_EVICT_FEW		SWAP_CLUSTER_MAX

/*
 * Reclaim that has got this far finds little else, or nothing. Multi-generational
 * LRU may begin at half of DEF_PRIORITY; in a group of some thousand pages a look
 * at 32 of them is a priority of 6.
 */
#define FPR_EVICT_LITTLE	(DEF_PRIORITY / 4)
#define FPR_EVICT_NOTHING	1

bool fpr_evict_skips __read_mostly = true;

/* Does it mean that here, or has root said so? */
static bool fpr_evict_proven(void)
{
	CF_MUTATION(fpr_evict_unproven, return true);
	return READ_ONCE(fpr_evict_skips);
}

/* Is a mechanism switched on that leaves out flushes? */
static bool fpr_evict_on(struct mm_struct *mm)
{
	return READ_ONCE(fpr_enabled) || READ_ONCE(mm->cf_policy);
}

/**
 * __fpr_young_cleared() - an accessed bit was cleared, and nobody flushes
 * @vma: the mapping, its page table is locked
 * @pte: the entry
 */
void __fpr_young_cleared(struct vm_area_struct *vma, pte_t pte)
{
	struct cf_ctx *ctx = vma->vm_mm->cf, *owner;
	unsigned long fresh = 0;
	u64 gen;

	CF_MUTATION(fpr_evict_untagged, return);
	if (!fpr_tracks(vma) || !ctx)
		return;
	/* The bit before the generation; see debt.c. */
	smp_mb__after_atomic();
	if (!fpr_evict_on(vma->vm_mm) || !fpr_evict_proven()) {
		/* Of no use now, but it may be switched on. */
		cf_raise(&ctx->untracked, cf_started(ctx) + 1);
		return;
	}
	rcu_read_lock();
	/* As a skip has it: what is anonymous is not for a group. */
	owner = PageAnon(pte_page(pte)) ? ctx : cf_tag_ctx(ctx);
	if (owner != ctx)
		cf_note_left(ctx);
	gen = cf_started(owner);
	cf_owe_young(owner, gen);
	if (!cf_gen_fits(gen) ||
	    !cf_tag_frames(pte_pfn(pte), 1, cf_tag_make(owner->id, gen),
			   &fresh))
		cf_raise(&ctx->untracked, cf_started(ctx) + 1);
	/* One that is truncated now would be parked, too. */
	atomic_long_add(fresh, &owner->stale);
	rcu_read_unlock();
}

/**
 * __fpr_cold() - madvise(MADV_COLD) has cleared accessed bits
 * @vma: the mapping, its page table is locked
 *
 * It wants the next use of the page to be seen by reclaim, and flushes for that. A
 * debt is as good: it is paid long before reclaim comes by.
 *
 * Return: true if the bits were noted.
 */
bool __fpr_cold(struct vm_area_struct *vma)
{
	if (!vma->vm_mm->cf || !fpr_evict_on(vma->vm_mm) ||
	    !fpr_evict_proven())
		return false;
	count_vm_event(FPR_COLD_SKIP);
	return true;
}

/* Is the page one that somebody else may be evicting? */
static bool fpr_evict_listed(pte_t pte)
{
	struct folio *folio = pfn_folio(pte_pfn(pte));

	return folio_test_anon(folio) && folio_test_lru(folio);
}

/*
 * Does an entry without the accessed bit mean that no TLB has it?
 *
 * Intel says so (SDM volume 3, "Details of TLB Use": there is no entry in a TLB
 * unless the accessed flags are 1, and the processor sets them before), and the
 * others follow Intel. AMD (APM volume 2, fields of page-translation entries) says
 * that the bit is set with the first access, and no more is known here of the
 * order. So its processors, and Hygon's, have to
 * be told to skip. QEMU's own processor has AMD's name, and sets the bit in the
 * walk that fills its TLB.
 */
static int __init fpr_evict_init(void)
{
	fpr_evict_skips = (boot_cpu_data.x86_vendor != X86_VENDOR_AMD &&
			   boot_cpu_data.x86_vendor != X86_VENDOR_HYGON) ||
			  (boot_cpu_has(X86_FEATURE_HYPERVISOR) &&
			   hypervisor_cpuid_base("TCGTCGTCGTCG", 0));
	return 0;
}
core_initcall(fpr_evict_init);

/* Listeners hear of an eviction by its flush. */
static bool fpr_evict_heard(struct mm_struct *mm)
{
	CF_MUTATION(fpr_evict_notifiers, return false);
	return mm_has_notifiers(mm);
}

/* Why an entry that reclaim has cleared may be in a TLB; 0 if it is in none. */
static enum vm_event_item fpr_evict_must_flush(struct vm_area_struct *vma,
					       struct cf_ctx *ctx, pte_t pte)
{
	struct mm_struct *mm = vma->vm_mm;
	bool stale;

	if (!fpr_evict_on(mm))
		return FPR_EVICT_FLUSH_DISABLED;
	if (!fpr_evict_proven())
		return FPR_EVICT_FLUSH_VENDOR;
	CF_MUTATION(fpr_evict_young, pte = pte_mkold(pte));
	if (pte_young(pte))
		return FPR_EVICT_FLUSH_YOUNG;
	if (!migration_entry_supports_ad())
		return FPR_EVICT_FLUSH_UNTRACKED;
	if (fpr_evict_heard(mm))
		return FPR_EVICT_FLUSH_NOTIFIER;
	if (PageAnon(pte_page(pte)) && mm_tlb_flush_pending(mm))
		return FPR_EVICT_FLUSH_PENDING;
	rcu_read_lock();
	stale = cf_frame_owner(pte_pfn(pte), NULL);
	rcu_read_unlock();
	CF_MUTATION(fpr_evict_stale, stale = false);
	if (stale)
		return FPR_EVICT_FLUSH_STALE;
	CF_MUTATION(fpr_evict_untracked, return 0);
	/* The choice of the process before what is owed since; see policy.c. */
	smp_rmb();
	if (cf_is_owed_for(ctx, READ_ONCE(ctx->untracked)) ||
	    cf_is_owed_for(ctx, READ_ONCE(ctx->born)))
		return FPR_EVICT_FLUSH_UNTRACKED;
	return 0;
}

/**
 * __fpr_evicted() - reclaim has cleared an entry and is about to note a flush
 * @vma: the mapping, its page table is locked
 * @pte: the entry as it was
 *
 * Reclaim notes its flush and sends it later, for many pages at once. Meanwhile
 * swapoff may give a page its entry back, without the accessed bit:
 *
 *   reclaim				swapoff
 *   takes the page off its list (LRU)
 *   clears the entry, notes a flush
 *   unlocks the page
 *					entry again, not accessed
 *   flushes
 *   puts the page on the list
 *
 * A CPU may have the entry until the flush. But whoever evicts an anonymous page
 * has taken it off the list himself, so it comes here for a second time after the
 * flush only. Pages of files never get such entries.
 *
 * Return: true if no CPU has it, so that no flush is needed.
 */
bool __fpr_evicted(struct vm_area_struct *vma, pte_t pte)
{
	struct cf_ctx *ctx = vma->vm_mm->cf;
	enum vm_event_item why;

	if (!fpr_tracks(vma) || !ctx)
		return false;
	VM_WARN_ON_ONCE_FOLIO(fpr_evict_listed(pte), pfn_folio(pte_pfn(pte)));
	why = fpr_evict_must_flush(vma, ctx, pte) ?: FPR_EVICT_SKIP;
	count_vm_event(why);
	trace_fpr_evict(ctx->id, pte_pfn(pte), why - FPR_EVICT_SKIP);
	return why == FPR_EVICT_SKIP;
}

/**
 * __fpr_looks_at() - does reclaim look at the accessed bits of a mapping?
 * @vma: a mapping that says that its pages are not used again soon
 *
 * What it does not look at it does not clear, and then every page would take a
 * flush.
 *
 * Return: true for mappings whose bits are noted.
 */
bool __fpr_looks_at(struct vm_area_struct *vma)
{
	CF_MUTATION(fpr_evict_unseen, return false);
	return fpr_tracks(vma);
}

/**
 * __fpr_only_clears() - reclaim is about to look at an accessed bit
 * @vma: the mapping, its page table is locked
 * @address: of the page
 * @pte: its entry
 *
 * The mapping has said that a use does not count. So the bit is cleared, which
 * is all that eviction needs, and nobody hears of it.
 *
 * Return: true if that is done.
 */
bool __fpr_only_clears(struct vm_area_struct *vma, unsigned long address,
		       pte_t *pte)
{
	CF_MUTATION(fpr_evict_counted, return false);
	if (vma_has_recency(vma) || !fpr_tracks(vma))
		return false;
	ptep_test_and_clear_young(vma, address, pte);
	return true;
}

/* One flush for all whose bits were cleared until now. */
static void fpr_evict_settle(struct cf_ctx *ctx)
{
	CF_MUTATION_IF(fpr_evict_unsettled, ctx == &cf_shared, return);
	atomic_set(&ctx->kept, 0);
	if (cf_flush_found(ctx))
		count_vm_event(FPR_EVICT_SETTLE);
}

/* The context that makes the eviction of a folio take a flush. RCU read side. */
static struct cf_ctx *fpr_evict_owner(struct folio *folio)
{
	unsigned long pfn = folio_pfn(folio), i;
	struct cf_ctx *ctx = NULL;

	CF_MUTATION(fpr_evict_stale, return NULL);
	if (!folio_mapped(folio) || !cf_frames_tagged(pfn) ||
	    !READ_ONCE(fpr_evict_skips))
		return NULL;
	for (i = 0; i < folio_nr_pages(folio) && !ctx; i++)
		ctx = cf_frame_owner(pfn + i, NULL);
	return ctx;
}

/**
 * __fpr_evict_later() - shall reclaim leave a folio alone for now?
 * @folio: the folio, locked; nobody has used it since reclaim last looked
 * @priority: of reclaim
 *
 * Reclaim comes by in the order in which it has cleared the bits. So a flush
 * settles all folios from here to those that it looks at now.
 *
 * Context: may sleep and sends IPIs.
 * Return: true if evicting it would take a flush, and few others wait.
 */
bool __fpr_evict_later(struct folio *folio, int priority)
{
	struct cf_ctx *ctx;
	bool later = false;
	int kept, enough;

	enough = priority > FPR_EVICT_LITTLE ? FPR_EVICT_BATCH :
		 priority > FPR_EVICT_NOTHING ? FPR_EVICT_BATCH / 4 :
						FPR_EVICT_FEW;
	rcu_read_lock();
	ctx = fpr_evict_owner(folio);
	if (ctx) {
		kept = atomic_inc_return(&ctx->kept);
		if (kept >= enough)
			fpr_evict_settle(ctx);
		else
			later = priority > FPR_EVICT_NOTHING;
		CF_MUTATION(fpr_evict_now, later = false);
		CF_MUTATION(fpr_evict_unsettled, kept = 0);
		if (later && kept == FPR_EVICT_SOON)
			cf_settle_soon(ctx);
	}
	rcu_read_unlock();
	if (later)
		count_vm_event(FPR_EVICT_LATER);
	return later;
}

/**
 * __fpr_evict_waits() - was a folio left alone, so that it is as old as before?
 * @folio: the folio, which reclaim has not evicted
 *
 * Multi-generational LRU takes what is mapped and was rejected for used.
 *
 * Return: true if it waits for a flush.
 */
bool __fpr_evict_waits(struct folio *folio)
{
	bool waits;

	CF_MUTATION(fpr_evict_youngest, return false);
	if (folio_test_active(folio) || folio_test_referenced(folio))
		return false;
	rcu_read_lock();
	waits = fpr_evict_owner(folio);
	rcu_read_unlock();
	return waits;
}
