// SPDX-License-Identifier: GPL-2.0
/*
 * The pool of a context: frames that were freed while CPUs could still reach
 * them. They wait here, outside the per-cpu lists and the buddy allocator (I1),
 * until they are
 *   - recycled: given to a page fault of the same context in the mapping that
 *     is being faulted, and to nothing else (I2), without any flush, or
 *   - released by a drain, after a flush (settle.c).
 *
 * A parked page has been through free_pages_prepare(): no references, no
 * memcg, poisoned where that is configured. To the rest of the kernel it looks
 * like a page on a per-cpu list. page->private holds its order.
 *
 * Locks: fpr_ctx.lock, irq safe, because pages are freed in any context;
 * nothing is taken or called inside it. __fpr_park() finds the context under
 * RCU and looks at @dead under the lock, since exit may be taking the pool away.
 *
 * Callers: free_unref_page(), free_unref_folios(), __free_pages_ok() (park);
 * page cache allocation sites (recycle); settle.c (take, release).
 */
#include <linux/cpuset.h>
#include <linux/mempolicy.h>
#include <linux/mm.h>
#include <linux/pagemap.h>
#include <linux/vmstat.h>

#include <asm/tlbflush.h>

#include <trace/events/ceasefire.h>

#include "../internal.h"
#include "internal.h"

static atomic_long_t fpr_nr_parked;

/**
 * fpr_parked() - parked base pages of all contexts
 *
 * Return: their number.
 */
long fpr_parked(void)
{
	return atomic_long_read(&fpr_nr_parked);
}

/**
 * fpr_pool_init() - an empty pool
 * @ctx: the context
 */
void fpr_pool_init(struct fpr_ctx *ctx)
{
	spin_lock_init(&ctx->lock);
	INIT_LIST_HEAD(&ctx->single);
	INIT_LIST_HEAD(&ctx->large);
}

static bool fpr_pool_add(struct fpr_ctx *ctx, u64 tag, struct page *page,
			 unsigned int order)
{
	unsigned long flags;
	bool full;

	spin_lock_irqsave(&ctx->lock, flags);
	/*
	 * Again under the lock: a flush that was credited since then has made
	 * the frame clean, and a frame that is parked for nothing waits for the
	 * next drain. Exit may have taken the pool; nobody can reach it then.
	 */
	if (ctx->dead || !fpr_tag_is_stale(tag, ctx)) {
		spin_unlock_irqrestore(&ctx->lock, flags);
		return false;
	}
	set_page_private(page, order);
	list_add(&page->lru, order ? &ctx->large : &ctx->single);
	ctx->nr += 1UL << order;
	full = ctx->nr > READ_ONCE(fpr_pool_limit);
	/* Under the lock: who finds none counted finds none in the pools. */
	atomic_long_add(1UL << order, &fpr_nr_parked);
	spin_unlock_irqrestore(&ctx->lock, flags);
	if (full)
		fpr_kick_drain(ctx);
	return true;
}

/* Park a page with the first context that can reach one of its frames. */
static bool fpr_pool_hold(struct page *page, unsigned int order)
{
	unsigned long pfn = page_to_pfn(page), i;
	bool held = false;

	if (!fpr_frames_tagged(pfn))
		return false;
	rcu_read_lock();
	for (i = 0; i < 1UL << order && !held; i++) {
		u64 tag;
		struct fpr_ctx *ctx = fpr_frame_owner(pfn + i, &tag);

		if (likely(!ctx))
			continue;
		if (fpr_mutated(MUTATE_fpr_flush_in_free) && ctx->mm) {
			flush_tlb_mm_range(ctx->mm, 0, TLB_FLUSH_ALL, 0, false);
			continue;
		}
		held = fpr_pool_add(ctx, tag, page, order);
		if (held)
			trace_fpr_park(ctx->id, pfn, order);
	}
	rcu_read_unlock();
	return held;
}

/**
 * __fpr_park() - keep a freed page if stale translations may reach it
 * @page: page after free_pages_prepare()
 * @order: its order
 * @site: which free path, FPR_FREE_*
 *
 * A page of higher order may have frames of several contexts; it waits with
 * one after the other (fpr_pool_release() asks again).
 *
 * Context: any.
 * Return: true if the page was parked, false if the caller shall free it.
 */
bool __fpr_park(struct page *page, unsigned int order, int site)
{
	if (fpr_mutated_nth(MUTATE_fpr_no_park_page, site))
		return false;
	if (!fpr_pool_hold(page, order))
		return false;
	__count_vm_events(FPR_PARK, 1UL << order);
	return true;
}

/**
 * fpr_pool_take() - take all parked frames of a context
 * @ctx: the context
 * @list: where to
 *
 * Return: number of base pages.
 */
unsigned long fpr_pool_take(struct fpr_ctx *ctx, struct list_head *list)
{
	unsigned long nr;

	spin_lock_irq(&ctx->lock);
	list_splice_init(&ctx->single, list);
	list_splice_init(&ctx->large, list);
	nr = ctx->nr;
	ctx->nr = 0;
	spin_unlock_irq(&ctx->lock);
	return nr;
}

/**
 * fpr_pool_stale() - must a context be flushed before frames are released?
 * @ctx: the context
 * @list: from fpr_pool_take()
 *
 * Return: true if it may still reach one of them.
 */
bool fpr_pool_stale(struct fpr_ctx *ctx, struct list_head *list)
{
	struct page *page;
	bool stale = false;

	rcu_read_lock();
	list_for_each_entry(page, list, lru) {
		unsigned long pfn = page_to_pfn(page), i;

		for (i = 0; i < 1UL << page_private(page) && !stale; i++)
			stale = fpr_frame_owner(pfn + i, NULL) == ctx;
		if (stale)
			break;
	}
	rcu_read_unlock();
	return stale;
}

/* As free_pages_prepare() has it: a broken frame is not used again. */
static unsigned long fpr_release_working(struct page *page, unsigned int order)
{
	unsigned long i, nr = 1UL << order, released = 0;

	for (i = 0; i < nr && !PageHWPoison(page + i); i++)
		;
	if (i == nr) {
		ceasefire_event(page, nr, CEASEFIRE_FREED);
		fpr_release_page(page, order);
		return nr;
	}
	for (i = 0; i < nr; i++) {
		if (PageHWPoison(page + i))
			continue;
		ceasefire_event(page + i, 1, CEASEFIRE_FREED);
		fpr_release_page(page + i, 0);
		released++;
	}
	return released;
}

/**
 * fpr_pool_release() - give frames back to the page allocator
 * @list: from fpr_pool_take()
 * @flushed: the context that was flushed since they were taken; NULL if none
 * @again: set if a page waits with another context now
 *
 * Other contexts may be able to reach a frame, too: those of a page of higher
 * order, or a process that tagged the frame while it was in the page cache.
 * So each is tested again, and parked again if need be. What @flushed could
 * reach it cannot any more, whatever the tag says; so a drain makes progress
 * even with the tag of an earlier context of the same id. The shared context is
 * flushed on all CPUs, after which nobody can reach a frame that is free.
 *
 * They count as parked until they have gone, for those who wait for them.
 *
 * Return: number of base pages that went back.
 */
unsigned long fpr_pool_release(struct list_head *list, struct fpr_ctx *flushed,
			       bool *again)
{
	u32 cleared = flushed && flushed->mm ? flushed->id : FPR_ID_NONE;
	struct page *page, *next;
	unsigned long nr = 0;

	list_for_each_entry_safe(page, next, list, lru) {
		unsigned int order = page_private(page);
		unsigned long pfn = page_to_pfn(page);

		list_del(&page->lru);
		set_page_private(page, 0);
		if (flushed)
			fpr_tags_clear(pfn, 1UL << order, cleared);
		if (!fpr_mutated(MUTATE_fpr_release_unchecked) &&
		    fpr_pool_hold(page, order)) {
			atomic_long_sub(1UL << order, &fpr_nr_parked);
			*again = true;
			continue;
		}
		fpr_tags_clear(pfn, 1UL << order, FPR_ID_NONE);
		count_vm_events(FPR_RELEASE, 1UL << order);
		nr += fpr_release_working(page, order);
		atomic_long_sub(1UL << order, &fpr_nr_parked);
		cond_resched();
	}
	return nr;
}

/* May a request get this frame, as the page allocator would decide? */
static bool fpr_frame_suits(struct page *page, gfp_t gfp)
{
	int nid = page_to_nid(page);

	if (fpr_mutated(MUTATE_fpr_recycle_anywhere))
		return !PageHWPoison(page);
#ifdef CONFIG_NUMA
	if (current->mempolicy || cpuset_do_page_mem_spread())
		return false;
#endif
	/* Nothing that takes a lock: cpuset_node_allowed() may. */
	if (cpusets_enabled() && !node_isset(nid, current->mems_allowed))
		return false;
	return nid == numa_node_id() &&
	       page_zonenum(page) <= gfp_zone(gfp) &&
	       get_pageblock_migratetype(page) == gfp_migratetype(gfp) &&
	       !PageHWPoison(page);
}

/*
 * With protection keys threads of a process differ in their rights, and a
 * stale translation has the key of the mapping it came from. What reads into
 * recycled frames is not only the mapping of the fault, which has a key or
 * not: read-ahead does not stop at its ends. So once a mapping has had a key the
 * process does not recycle any more; pkey_free() takes no key off a mapping.
 *
 * Under the lock of the pool, and the frame is taken under the same. If there
 * was no key yet, the frame was parked before the first one came, and
 * __fpr_mprotect(), which notes the key first, sees what is owed.
 */
static bool fpr_has_keys(struct fpr_ctx *ctx)
{
	return READ_ONCE(ctx->keyed) &&
	       !fpr_mutated(MUTATE_fpr_recycle_keyed);
}

/**
 * __fpr_recycle() - a frame for a page fault of a MAP_FPR mapping
 * @mapping: whose page cache the frame will enter
 * @gfp: as for filemap_alloc_folio()
 *
 * Only the mapping that the fault is about gets recycled frames: a file system
 * also allocates metadata in the same call, which the process may not read.
 * The process maps @mapping, so a stale translation shows it nothing that it
 * could not map anyway; and no stale translation is dirty, so none can write.
 *
 * The frame keeps its tag: it is still reachable, and is parked again when it
 * is freed before the context was flushed.
 *
 * Context: process context, in a fault.
 * Return: an order-0 folio with one reference, or NULL.
 */
struct folio *__fpr_recycle(struct address_space *mapping, gfp_t gfp)
{
	struct page *page;
	struct fpr_ctx *ctx;
	u64 tag;

	if (!current->fpr_mapping)
		return NULL;
	if (current->fpr_mapping != mapping &&
	    !fpr_mutated(MUTATE_fpr_recycle_any))
		return NULL;
	ctx = current->mm->fpr;
	if (!ctx || list_empty_careful(&ctx->single))
		return NULL;

	spin_lock_irq(&ctx->lock);
	page = list_first_entry_or_null(&ctx->single, struct page, lru);
	if (page && fpr_frame_suits(page, gfp) && !fpr_has_keys(ctx)) {
		list_del(&page->lru);
		ctx->nr--;
	} else {
		/* Let the next request see another one. */
		list_rotate_left(&ctx->single);
		page = NULL;
	}
	spin_unlock_irq(&ctx->lock);
	if (!page)
		return NULL;
	atomic_long_dec(&fpr_nr_parked);
	ceasefire_recycled(page);

	/* A tagged frame here is no accident, see __fpr_assert_clean(). */
	tag = fpr_tag_take(page_to_pfn(page));
	post_alloc_hook(page, 0, gfp);
	set_page_refcounted(page);
	fpr_tag_restore(page_to_pfn(page), tag);
	count_vm_event(FPR_RECYCLE);
	trace_fpr_recycle(ctx->id, page_to_pfn(page));
	return page_folio(page);
}

/**
 * __fpr_fault_begin() - a fault of a MAP_FPR mapping may allocate
 * @vma: the mapping
 *
 * Faults on behalf of another process (ptrace, process_vm_readv()) do not
 * recycle: their stale translations would be in the wrong process. Nor do those
 * that are forced on a mapping without access.
 */
void __fpr_fault_begin(struct vm_area_struct *vma)
{
	if (vma->vm_flags & VM_FPR && vma->vm_file && vma_is_accessible(vma) &&
	    (vma->vm_mm == current->mm ||
	     fpr_mutated(MUTATE_fpr_recycle_remote)))
		current->fpr_mapping = vma->vm_file->f_mapping;
}

/**
 * __fpr_folio_stale() - may stale translations reach a folio in use?
 * @folio: a folio that changes its owner without being freed
 *
 * Return: true if one of its frames may be reached.
 */
bool __fpr_folio_stale(struct folio *folio)
{
	unsigned long pfn = folio_pfn(folio), i;
	bool stale = false;

	if (fpr_mutated(MUTATE_fpr_no_fuse_check))
		return false;
	rcu_read_lock();
	for (i = 0; i < folio_nr_pages(folio) && !stale; i++)
		stale = fpr_frame_owner(pfn + i, NULL);
	rcu_read_unlock();
	return stale;
}
EXPORT_SYMBOL_GPL(__fpr_folio_stale);	/* fuse may be a module */

/**
 * __fpr_assert_clean() - debug builds: the allocator hands out a page
 * @page: the page
 * @order: its order
 *
 * Whatever is wrong elsewhere, a stale frame must not get here (I1). Frames
 * that are recycled have their tag taken off for the moment.
 */
void __fpr_assert_clean(struct page *page, unsigned int order)
{
	unsigned long pfn = page_to_pfn(page), i;

	if (!fpr_frames_tagged(pfn))
		return;
	rcu_read_lock();
	for (i = 0; i < 1UL << order; i++)
		WARN_ONCE(fpr_frame_owner(pfn + i, NULL),
			  "ceasefire: stale frame %lx leaves its context\n",
			  pfn + i);
	rcu_read_unlock();
}
