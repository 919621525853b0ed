// SPDX-License-Identifier: GPL-2.0
/*
 * Pages that are not even freed until their debt is settled.
 *
 * A page that munmap() has unmapped without a flush waits, whoever frees it (pool.c).
 * Where frames are recycled it has to be freed first. Where nothing is, all that this
 * takes (uncharging, a tag that is looked up, a lock for each page) can be left to the
 * work item that releases what waits: the gather's references are kept, one list for
 * many pages, and dropped when ticks have caught up. So munmap() is done when it has
 * cleared the entries.
 *
 * Nothing depends on it for safety: the frames are tagged before (gather.c), and if a
 * page is freed before its debt is settled it parks as any other (I1). What this has to
 * see to is that what is held is bounded, counted, and given up where parked frames
 * are (I6): it counts as parked, for its control group, too, and leaves with the pool.
 *
 * Held are base pages of anonymous memory of which the gather has the last reference.
 * They stay on the lists of reclaim, which may give them a place in swap, but fails to
 * free them because of that reference, as migration does; both drain pools when they
 * need to. One that KSM has merged can be mapped again: it was flushed for, and counts
 * as waiting until its list is freed.
 *
 *   munmap()			drain, or the age work
 *   tags the frame, gen		takes pages and lists off the context
 *   under the lock, if not dead	flushes, or looks at @completed
 *   and the tag is stale:		frees a list if its @gen is paid
 *   onto a list, @gen = newest	else back it goes
 *
 * A list is for one round of ticks: with what comes after the generation that they
 * catch up with now, it would have to wait for the next round, and the next.
 *
 * Locks: cf_ctx.lock for the lists of a context and for what is in one of them; a list
 * that was taken is its taker's, under cf_ctx.settling.
 * Callers: tlb_flush_mmu_free() (hold), settle.c (release); pool.c takes the lists.
 */
#include <linux/mm.h>
#include <linux/swap.h>
#include <linux/vmstat.h>

#include <asm/tlb.h>

#include "core.h"

/**
 * struct cf_held - pages that are held, in a page of its own
 * @list:	in cf_ctx.held_lists, oldest first
 * @gen:	newest generation in a tag of them
 * @node:	where all of them are
 * @payer:	the control group that all of them are charged to, with a reference
 * @nr:		their number
 * @pages:	as in a gather, without flags
 */
struct cf_held {
	struct list_head list;
	u64 gen;
	struct pglist_data *node;
	struct mem_cgroup *payer;
	unsigned int nr;
	struct encoded_page *pages[];
};

#define CF_HELD_MAX	((PAGE_SIZE - sizeof(struct cf_held)) / \
			 sizeof(struct encoded_page *))

/* To be freed at a time: with poisoning, a page takes as long as many without. */
#define CF_HELD_CHUNK	32U

/* Debug builds: tests have to know that pages were held, and not only parked. */
static void cf_held_counted(unsigned int nr)
{
#ifdef CONFIG_CEASEFIRE_DEBUG
	atomic_add(nr, &cf_holds);
#endif
}

static void cf_free_pages(struct encoded_page **pages, unsigned int nr)
{
	while (nr) {
		unsigned int part = min(nr, CF_HELD_CHUNK);

		free_pages_and_swap_cache(pages, part);
		pages += part;
		nr -= part;
		cond_resched();
	}
}

/* The generation that a page waits for; 0 if it cannot be held. */
static u64 cf_held_gen(struct cf_ctx *ctx, struct page *page)
{
	struct folio *folio = page_folio(page);
	u64 tag;

	if (!folio_test_anon(folio) || folio_test_large(folio) ||
	    folio_test_hwpoison(folio) || folio_ref_count(folio) != 1)
		return 0;
	/* Of a shared tag another context decides, too. */
	tag = cf_frames_tags(page_to_pfn(page), 1);
	if (cf_tag_id(tag) != ctx->id || !cf_tag_is_stale(tag, ctx))
		return 0;
	return cf_tag_gen(tag) + 1;
}

/* Has a flush paid for the debt of a list? */
static bool cf_held_paid(struct cf_ctx *ctx, const struct cf_held *held)
{
	/* Pairs with the release in cf_credit(). */
	return !cf_gen_stale(held->gen, smp_load_acquire(&ctx->completed));
}

/* Is there room on a list for more of the same round? Under the lock. */
static bool cf_held_open(struct cf_ctx *ctx, const struct cf_held *held)
{
	if (held->nr == CF_HELD_MAX)
		return false;
	CF_MUTATION(cf_held_late, return true);
	return held->gen >= READ_ONCE(ctx->awaited);
}

/*
 * Put pages on the last list of a context, or on a list of their own, which then belongs
 * to the context. Those of another node or group than the last list's are not held as
 * long as that has room: a list is a page, and shall not be one for each that it holds.
 *
 * Return: how many of them are held now.
 */
static unsigned int cf_held_add(struct cf_ctx *ctx, struct cf_held *new,
				struct encoded_page **pages, unsigned int nr,
				struct cf_held **spare)
{
	struct cf_held *held = NULL;
	unsigned long flags;
	bool full;

	spin_lock_irqsave(&ctx->lock, flags);
	/* Exit may have taken the pool, and a flush may have paid. */
	if (ctx->dead || cf_held_paid(ctx, new)) {
		spin_unlock_irqrestore(&ctx->lock, flags);
		return 0;
	}
	if (!list_empty(&ctx->held_lists))
		held = list_last_entry(&ctx->held_lists, struct cf_held, list);
	if (held && !cf_held_open(ctx, held))
		held = NULL;
	if (!held && *spare) {
		held = *spare;
		*spare = NULL;
		*held = *new;
		cf_charge_get(held->payer);
		list_add_tail(&held->list, &ctx->held_lists);
	}
	if (!held || held->node != new->node || held->payer != new->payer) {
		spin_unlock_irqrestore(&ctx->lock, flags);
		return 0;
	}
	nr = min_t(unsigned int, nr, CF_HELD_MAX - held->nr);
	memcpy(held->pages + held->nr, pages, nr * sizeof(*pages));
	held->nr += nr;
	held->gen = max(held->gen, new->gen);
	cf_charge_paid_by(ctx, held->payer);
	cf_charge_waits(held->payer, nr);
	ctx->nr += nr;
	full = ctx->nr > cf_pool_max(ctx);
	/* Under the lock, as in the pool. */
	cf_account_parked(held->node, nr);
	spin_unlock_irqrestore(&ctx->lock, flags);
	count_vm_events(FPR_PARK, nr);
	cf_held_counted(nr);
	if (full)
		cf_kick_drain(ctx);
	cf_limit_parked();
	return nr;
}

/*
 * Hold pages that have the same properties; return how many could not be.
 *
 * A list was wanted if nothing was held without a page to make one of. With a page the
 * reason is another one, and it need not pass: a list that was taken may come back, have
 * room for a part, and then a flush has paid. So each turn holds something, gets the
 * page, or is the last.
 */
static unsigned int cf_hold(struct cf_ctx *ctx, struct cf_held *new,
			    struct encoded_page **pages, unsigned int nr)
{
	struct cf_held *spare = NULL;

	while (nr) {
		unsigned int held = cf_held_add(ctx, new, pages, nr, &spare);

		pages += held;
		nr -= held;
		if (held)
			continue;
		if (spare)
			break;
		/* Without memory they are freed, and park. */
		spare = (void *)__get_free_page(GFP_NOWAIT | __GFP_NOWARN);
		if (!spare)
			break;
	}
	if (spare)
		free_page((unsigned long)spare);
	return nr;
}

/* Hold what can be held of a part of a gather, and free the rest. */
static void cf_hold_batch(struct cf_ctx *ctx, struct encoded_page **pages,
			  unsigned int nr)
{
	struct encoded_page *rest[CF_HELD_CHUNK];
	unsigned int i, hold = 0, left = 0;
	struct cf_held new = { };
	bool several;

	for (i = 0; i < nr; i++) {
		struct encoded_page *enc = pages[i];
		struct page *page = encoded_page_ptr(enc);
		u64 gen = encoded_page_flags(enc) ? 0 : cf_held_gen(ctx, page);

		if (gen && !hold) {
			new.node = page_pgdat(page);
			/* A page that turns out to be bad is uncharged meanwhile. */
			rcu_read_lock();
			new.payer = cf_charge_of(page_folio(page));
			if (!cf_charge_tryget(new.payer))
				gen = 0;
			rcu_read_unlock();
		} else if (gen && (page_pgdat(page) != new.node ||
				   cf_charge_of(page_folio(page)) != new.payer)) {
			gen = 0;
		}
		if (gen) {
			new.gen = max(new.gen, gen - 1);
			pages[hold++] = enc;
			continue;
		}
		rest[left++] = enc;
		/* See __tlb_remove_folio_pages_size(). */
		several = encoded_page_flags(enc) & ENCODED_PAGE_BIT_NR_PAGES_NEXT;
		if (several)
			rest[left++] = pages[++i];
		/* Those of a large folio can be as many as the rest of a chunk. */
		if (several || left >= CF_HELD_CHUNK - 1) {
			cf_free_pages(rest, left);
			left = 0;
		}
	}
	cf_free_pages(rest, left);
	left = cf_hold(ctx, &new, pages, hold);
	if (hold)
		cf_charge_put(new.payer);
	cf_free_pages(pages + hold - left, left);
}

/* Pages of files stay in the page cache, and are given up in larger pieces. */
static bool cf_has_anon(struct mmu_gather *tlb)
{
	struct mmu_gather_batch *batch;
	unsigned int i;

	for (batch = &tlb->local; batch && batch->nr; batch = batch->next) {
		for (i = 0; i < batch->nr; i++) {
			struct encoded_page *enc = batch->encoded_pages[i];

			if (PageAnon(encoded_page_ptr(enc)))
				return true;
			/* See __tlb_remove_folio_pages_size(). */
			if (encoded_page_flags(enc) &
			    ENCODED_PAGE_BIT_NR_PAGES_NEXT)
				i++;
		}
	}
	return false;
}

/**
 * __cf_hold_pages() - a gather of an munmap() is about to drop its references
 * @tlb: the gather, which has flushed or has left it out; empty after this if it had
 *	anonymous pages, held or freed
 *
 * Context: may sleep; mmap_lock.
 */
void __cf_hold_pages(struct mmu_gather *tlb)
{
	struct cf_ctx *ctx = tlb->mm->cf;
	struct mmu_gather_batch *batch;

	if (!ctx || cf_policy_of(tlb->mm)->recycles || !cf_has_anon(tlb))
		return;
	/* What was faulted in a moment ago has references of this CPU's lists. */
	lru_add_drain();
	for (batch = &tlb->local; batch && batch->nr; batch = batch->next) {
		cf_hold_batch(ctx, batch->encoded_pages, batch->nr);
		batch->nr = 0;
	}
}

/**
 * cf_held_stale() - must a context be flushed before what was held is freed?
 * @ctx: the context
 * @lists: lists of it
 *
 * Return: true if a debt of theirs is not paid.
 */
bool cf_held_stale(struct cf_ctx *ctx, struct list_head *lists)
{
	struct cf_held *held;

	list_for_each_entry(held, lists, list)
		if (!cf_held_paid(ctx, held))
			return true;
	return false;
}

/* Pages leave a list for good; they count until they have gone. */
static void cf_held_free(struct cf_ctx *ctx, struct cf_held *held)
{
	unsigned int nr = held->nr;

	cf_free_pages(held->pages, nr);
	count_vm_events(FPR_RELEASE, nr);
	cf_charge_waits(held->payer, -(long)nr);
	cf_charge_put(held->payer);
	cf_account_parked(held->node, -(long)nr);
	WRITE_ONCE(ctx->returning, ctx->returning - nr);
	free_page((unsigned long)held);
}

/* Too early: all lists that are left go back to where they were. */
static void cf_held_back(struct cf_ctx *ctx, struct list_head *lists)
{
	unsigned long nr = 0;
	struct cf_held *held;

	spin_lock_irq(&ctx->lock);
	list_for_each_entry(held, lists, list) {
		cf_charge_paid_by(ctx, held->payer);
		ctx->nr += held->nr;
		nr += held->nr;
	}
	list_splice(lists, &ctx->held_lists);
	WRITE_ONCE(ctx->returning, ctx->returning - nr);
	spin_unlock_irq(&ctx->lock);
}

/**
 * cf_held_release() - free what was held, or what of it is paid
 * @ctx: the context; its settling is held
 * @lists: of it, from cf_pool_take()
 * @flushed: whether it was flushed since they were taken, or is dead: then all of it
 *
 * Return: number of pages that went back.
 */
unsigned long cf_held_release(struct cf_ctx *ctx, struct list_head *lists,
			      bool flushed)
{
	struct cf_held *held, *next;
	unsigned long nr = 0;

	list_for_each_entry_safe(held, next, lists, list) {
		if (!flushed && !cf_held_paid(ctx, held))
			continue;
		list_del(&held->list);
		nr += held->nr;
		cf_held_free(ctx, held);
	}
	if (!list_empty(lists))
		cf_held_back(ctx, lists);
	return nr;
}
