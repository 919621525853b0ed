// SPDX-License-Identifier: GPL-2.0
/*
 * The pool of a context: frames that were freed while CPUs could still reach
 * them. They wait here, outside the per-cpu lists and the buddy allocator (I1),
 * until they are
 *   - recycled: given to a page fault of the same context in the mapping that
 *     is being faulted, and to nothing else (I2), without any flush; those that
 *     the process can still write to as anonymous pages only, or
 *   - released by a drain, after a flush (settle.c).
 *
 * A parked page has been through free_pages_prepare(): no references, poisoned
 * or zeroed where that is configured. To the rest of the kernel it looks like a
 * page on a per-cpu list. page->private holds its order, page->memcg_data the
 * control group that pays for it (charge.c).
 *
 * What can be written to through a stale translation is poisoned or zeroed
 * again when that is over: the page allocator hands out such pages as they are.
 *
 * Locks: cf_ctx.lock, irq safe, because pages are freed in any context;
 * nothing is taken or called inside it. __cf_park() finds the context under
 * RCU and looks at @dead under the lock, since exit may be taking the pool away.
 *
 * Callers: free_unref_page(), free_unref_folios(), __free_pages_ok() (park);
 * recycle.c (take one), settle.c (take all, release).
 */
#include <linux/highmem.h>
#include <linux/mm.h>
#include <linux/sizes.h>
#include <linux/vmstat.h>

#include <asm/tlbflush.h>

#include <trace/events/ceasefire.h>

#include "../../internal.h"
#include "core.h"

/* Parked base pages of one context above which it is drained: 16 MiB. */
unsigned long cf_pool_limit __read_mostly = SZ_16M >> PAGE_SHIFT;

static unsigned int cf_parked_order(struct page *page)
{
	return page_private(page) & ~CF_PARKED_WRITABLE;
}

/**
 * cf_pool_init() - an empty pool
 * @ctx: the context
 */
void cf_pool_init(struct cf_ctx *ctx)
{
	spin_lock_init(&ctx->lock);
	INIT_LIST_HEAD(&ctx->single);
	INIT_LIST_HEAD(&ctx->anon);
	INIT_LIST_HEAD(&ctx->large);
	INIT_LIST_HEAD(&ctx->held_lists);
}

static bool cf_pool_add(struct cf_ctx *ctx, u64 tag, struct page *page,
			unsigned int order, bool writable)
{
	struct list_head *list = &ctx->single;
	unsigned long flags;
	bool full;

	CF_MUTATION_IF(fpr_flush_in_free, ctx->mm,
		       flush_tlb_mm_range(ctx->mm, 0, TLB_FLUSH_ALL, 0,
					  false); return false);
	full = cf_charge_hold(page, order);
	if (order)
		list = &ctx->large;
	else if (writable)
		list = &ctx->anon;
	CF_MUTATION_IF(fpr_recycle_writable, !order, list = &ctx->single);

	spin_lock_irqsave(&ctx->lock, flags);
	/*
	 * Again under the lock: a flush that was credited since then has made
	 * the frame clean, and a frame that is parked for nothing waits for the
	 * next drain. Exit may have taken the pool; nobody can reach it then.
	 */
	if (ctx->dead || !cf_tag_is_stale(tag, ctx)) {
		spin_unlock_irqrestore(&ctx->lock, flags);
		return false;
	}
	set_page_private(page, order | (writable ? CF_PARKED_WRITABLE : 0));
	cf_charge_noted(ctx, page);
	list_add(&page->lru, list);
	ctx->nr += 1UL << order;
	full |= ctx->nr > cf_pool_max(ctx);
	/* Under the lock: where none is counted, none is in a pool. */
	cf_account_parked(page_pgdat(page), 1L << order);
	spin_unlock_irqrestore(&ctx->lock, flags);
	if (full)
		cf_kick_drain(ctx);
	cf_limit_parked();
	return true;
}

/* Park a page with the first context that can reach one of its frames. */
static bool cf_pool_hold(struct page *page, unsigned int order, bool writable)
{
	unsigned long pfn = page_to_pfn(page), i;
	bool held = false;

	rcu_read_lock();
	for (i = 0; i < 1UL << order && !held; i++) {
		u64 tag;
		struct cf_ctx *ctx = cf_frame_owner(pfn + i, &tag);

		if (likely(!ctx))
			continue;
		held = cf_pool_add(ctx, tag, page, order, writable);
		if (held)
			trace_fpr_park(ctx->id, pfn, order);
	}
	rcu_read_unlock();
	return held;
}

/* The same for one that leaves a pool: another context may still reach it. */
static bool cf_pool_hold_again(struct page *page, unsigned int order,
			       bool writable)
{
	CF_MUTATION(fpr_release_unchecked, return false);
	return cf_pool_hold(page, order, writable);
}

/**
 * cf_wipe() - poison or zero pages again
 * @page: a page after free_pages_prepare(), which has done it before the last
 *	translation was flushed through which it could be written to
 * @order: its order
 */
void cf_wipe(struct page *page, unsigned int order)
{
	unsigned int i, nr = 1U << order;

	CF_MUTATION(fpr_unwiped, return);
	debug_pagealloc_map_pages(page, nr);
	kernel_poison_pages(page, nr);
	if (want_init_on_free()) {
		kasan_disable_current();
		for (i = 0; i < nr; i++)
			clear_highpage_kasan_tagged(page + i);
		kasan_enable_current();
	}
	debug_pagealloc_unmap_pages(page, nr);
}

/**
 * __cf_park() - keep a freed page if stale translations may reach it
 * @page: page after free_pages_prepare()
 * @order: its order
 * @site: which free path, FPR_FREE_*
 *
 * A page of higher order may have frames of several contexts; it waits with
 * one after the other (cf_pool_release() asks again).
 *
 * Context: any.
 * Return: true if the page was parked, false if the caller shall free it.
 */
bool __cf_park(struct page *page, unsigned int order, int site)
{
	unsigned long pfn = page_to_pfn(page);
	u64 tags = cf_frames_tags(pfn, 1UL << order);
	bool writable = tags & CF_TAG_WRITABLE;

	if (likely(!tags))
		return false;
	CF_MUTATION_NTH(fpr_no_park_page, site,
			cf_charge_drop(page, order); return false);
	if (cf_pool_hold(page, order, writable)) {
		__count_vm_events(FPR_PARK, 1UL << order);
		return true;
	}
	cf_charge_drop(page, order);
	/* It may be settled since a moment ago only. */
	if (writable)
		cf_wipe(page, order);
	/* Nobody can reach the frame or find it: the next free need not ask. */
	cf_tags_clear(pfn, 1UL << order, CF_ID_NONE);
	return false;
}

static void cf_take_held(struct cf_ctx *ctx, struct list_head *held)
{
	CF_MUTATION(cf_held_left, return);
	list_splice_init(&ctx->held_lists, held);
}

/**
 * cf_pool_take() - take all that waits with a context
 * @ctx: the context
 * @list: where parked frames go
 * @held: where lists of pages go that are held (held.c)
 *
 * Context: cf_ctx.settling held, until they are released.
 * Return: number of base pages.
 */
unsigned long cf_pool_take(struct cf_ctx *ctx, struct list_head *list,
			   struct list_head *held)
{
	unsigned long nr;

	spin_lock_irq(&ctx->lock);
	list_splice_init(&ctx->single, list);
	list_splice_init(&ctx->anon, list);
	list_splice_init(&ctx->large, list);
	cf_take_held(ctx, held);
	nr = ctx->nr;
	/*
	 * First: who looks for both, @nr before, misses none. But for what goes back at
	 * that moment (held.c): its debt is not paid, so it mostly counts as owed, too.
	 */
	WRITE_ONCE(ctx->returning, nr);
	WRITE_ONCE(ctx->nr, 0);
	spin_unlock_irq(&ctx->lock);
	return nr;
}

/**
 * cf_pool_stale() - must a context be flushed before frames are released?
 * @ctx: the context
 * @list: from cf_pool_take()
 *
 * Return: true if it may still reach one of them.
 */
bool cf_pool_stale(struct cf_ctx *ctx, struct list_head *list)
{
	struct page *page;
	bool stale = false;

	rcu_read_lock();
	list_for_each_entry(page, list, lru) {
		unsigned long pfn = page_to_pfn(page), i;

		for (i = 0; i < 1UL << cf_parked_order(page) && !stale; i++)
			stale = cf_frame_owner(pfn + i, NULL) == ctx;
		if (stale)
			break;
	}
	rcu_read_unlock();
	return stale;
}

/* A page of those that were taken is where it belongs. */
static void cf_returned(struct cf_ctx *ctx, struct pglist_data *node,
			unsigned int order)
{
	cf_account_parked(node, -(1L << order));
	WRITE_ONCE(ctx->returning, ctx->returning - (1UL << order));
}

/**
 * cf_pool_release() - give frames back to the page allocator
 * @ctx: the context whose pool they were in; its settling is held since then
 * @list: from cf_pool_take()
 * @flushed: whether it was flushed since they were taken
 * @again: set if a page waits with another context now
 *
 * Other contexts may be able to reach a frame, too: those of a page of higher
 * order, or a process that tagged the frame while it was in the page cache.
 * So each is tested again, and parked again if need be. What a flushed context could
 * reach it cannot any more, whatever the tag says; so a drain makes progress
 * even with the tag of an earlier context of the same id. A flush of the shared
 * context is one of all that owe anything, after which nobody can reach a frame
 * that is free.
 *
 * They count as parked until they have gone, for those who wait for them.
 *
 * Bad frames go, too, as from the per-cpu lists: memory_failure() marks a free
 * frame, drains, and then finds it in the buddy allocator, or has failed.
 *
 * Return: number of base pages that went back.
 */
unsigned long cf_pool_release(struct cf_ctx *ctx, struct list_head *list,
			      bool flushed, bool *again)
{
	u32 cleared = ctx == &cf_shared ? CF_ID_NONE : ctx->id;
	struct page *page, *next;
	unsigned long nr = 0;

	CF_MUTATION(fpr_keep_tags, flushed = false);
	list_for_each_entry_safe(page, next, list, lru) {
		bool writable = page_private(page) & CF_PARKED_WRITABLE;
		struct pglist_data *node = page_pgdat(page);
		unsigned int order = cf_parked_order(page);
		unsigned long pfn = page_to_pfn(page);

		list_del(&page->lru);
		set_page_private(page, 0);
		if (flushed)
			cf_tags_clear(pfn, 1UL << order, cleared);
		if (cf_pool_hold_again(page, order, writable)) {
			cf_returned(ctx, node, order);
			*again = true;
			continue;
		}
		cf_tags_clear(pfn, 1UL << order, CF_ID_NONE);
		if (writable)
			cf_wipe(page, order);
		cf_charge_drop(page, order);
		count_vm_events(FPR_RELEASE, 1UL << order);
		ceasefire_event(page, 1UL << order, CEASEFIRE_FREED);
		cf_release_page(page, order);
		nr += 1UL << order;
		cf_returned(ctx, node, order);
		cond_resched();
	}
	return nr;
}

/**
 * __cf_folio_stale() - may stale translations reach a folio in use?
 * @folio: a folio that changes its owner without being freed
 *
 * Return: true if one of its frames may be reached.
 */
bool __cf_folio_stale(struct folio *folio)
{
	CF_MUTATION(fpr_no_fuse_check, return false);
	return cf_frames_reached(folio_pfn(folio), folio_nr_pages(folio));
}
EXPORT_SYMBOL_GPL(__cf_folio_stale);	/* fuse may be a module */

/**
 * __cf_assert_clean() - debug builds: the allocator hands out a page
 * @page: the page
 * @order: its order
 *
 * Whatever is wrong elsewhere, a stale frame must not get here (I1), unless it is
 * being recycled.
 */
void __cf_assert_clean(struct page *page, unsigned int order)
{
	unsigned long pfn = page_to_pfn(page), i;

	if (!cf_frames_tagged(pfn) || page_private(page) == CF_RECYCLED)
		return;
	rcu_read_lock();
	for (i = 0; i < 1UL << order; i++)
		WARN_ONCE(cf_frame_owner(pfn + i, NULL),
			  "ceasefire: stale frame %lx leaves its context\n",
			  pfn + i);
	rcu_read_unlock();
}
