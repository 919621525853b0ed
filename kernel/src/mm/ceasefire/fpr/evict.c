// SPDX-License-Identifier: GPL-2.0
/*
 * Eviction: reclaim of pages of MAP_FPR mappings, and of all those of processes that
 * have chosen a mechanism for whatever they map, without a flush.
 *
 * munmap() may skip its flush because the program has given up the address. Who
 * evicts a page must not: the program may read it again at any time, and has to
 * find what is in the file by then. So no entry may be left when the page goes,
 * but often that is known without a flush: reclaim has cleared the accessed bit
 * of the entry long ago, the debt for that was paid by ticks, and the bit is
 * still clear (../core/young.c). The mapping stays, which is all that differs
 * from a skip. Reclaim comes by a second time much later than ticks pay.
 *
 * What is evicted with the bit set is flushed for as ever. Pages with a debt
 * reclaim rather leaves alone for one more round. When some wait, ticks are to
 * pay soon; when too many do, or when reclaim finds little else, one flush settles
 * them all. If there are only a few by then, they are evicted like any page, with
 * the flush that reclaim sends.
 *
 * Locks: page table lock, folio lock where it is about a folio.
 * Callers: folio_referenced_one(), try_to_unmap_one(), folio_check_references(),
 * evict_folios().
 */
#include <linux/mm.h>
#include <linux/mm_inline.h>
#include <linux/mmzone.h>
#include <linux/page_idle.h>
#include <linux/swap.h>
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

/* Is a mechanism switched on that leaves out flushes? */
static bool fpr_evict_on(struct mm_struct *mm)
{
	return READ_ONCE(fpr_enabled) || READ_ONCE(mm->cf_policy);
}

/* Is the page one that somebody else may be evicting? */
static bool fpr_evict_listed(pte_t pte)
{
	struct folio *folio = pfn_folio(pte_pfn(pte));

	return folio_test_anon(folio) && folio_test_lru(folio);
}

/**
 * __fpr_evicted() - reclaim has cleared an entry and is about to note a flush
 * @vma: the mapping, its page table is locked
 * @pte: the entry as it was
 *
 * Reclaim notes its flush and sends it later, for many pages at once. Meanwhile
 * a page may get its entry back, without the accessed bit (cf_batch_pending()), and
 * a CPU may have it until the flush. But whoever evicts an anonymous page has taken
 * it off its list himself, and puts it back after the flush, so it comes here for a
 * second time after that. Pages of files that come back meanwhile get entries with the
 * bit: fault-around looks for such a flush first (abis_born()).
 *
 * Return: true if no CPU has it, so that no flush is needed.
 */
bool __fpr_evicted(struct vm_area_struct *vma, pte_t pte)
{
	struct cf_ctx *ctx = vma->vm_mm->cf;
	enum cf_cached why;

	if (!fpr_tracks(vma) || !ctx)
		return false;
	VM_WARN_ON_ONCE_FOLIO(fpr_evict_listed(pte), pfn_folio(pte_pfn(pte)));
	why = fpr_evict_on(vma->vm_mm) ? cf_cached(vma, CF_ANYWHERE, pte, 1, NULL) :
					 CF_CACHED_DISABLED;
	/* Reclaim flushes for many, and everywhere. */
	if (why == CF_CACHED_CLASS)
		why = CF_CACHED_YOUNG;
	count_vm_event(FPR_EVICT_FLUSH_YOUNG + why);
	trace_fpr_evict(ctx->id, pte_pfn(pte), why - CF_UNCACHED);
	return why == CF_UNCACHED;
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
	return cf_tracks(vma);
}

/**
 * __fpr_only_clears() - reclaim is about to look at an accessed bit
 * @vma: the mapping, its page table is locked
 * @address: of the page
 * @pte: its entry
 *
 * The mapping has said that a use does not count. So the bit is cleared, which
 * is all that eviction needs, and reclaim does not hear of it.
 *
 * Return: true if that is done.
 */
bool __fpr_only_clears(struct vm_area_struct *vma, unsigned long address,
		       pte_t *pte)
{
	CF_MUTATION(fpr_evict_counted, return false);
	if (vma_has_recency(vma) || !cf_tracks(vma))
		return false;
	/* Others may want to know of the use: idle page tracking, DAMON. */
	if (ptep_test_and_clear_young(vma, address, pte))
		folio_clear_idle(page_folio(pte_page(ptep_get(pte))));
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
	    !READ_ONCE(cf_young_trusted))
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
	/* Entries of others were cleared, and are not flushed for yet. */
	cf_skip_pause();
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
