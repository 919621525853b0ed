// SPDX-License-Identifier: GPL-2.0
/*
 * The pool of a lazy morsel: pages that were given up without a flush.
 *
 * An offset that is populated again before its mark is settled gets the same page, zeroed: what
 * CPUs have cached is right then. Another offset gets a page whose mark is settled; or, where
 * many wait, one that is not: who can still reach it has the right to all of the object. It
 * leaves the object only when its mark is settled (M7). One that somebody has pinned is not used
 * again until it is unpinned, or is freed like any other when it is settled. All of them are
 * counted and paid for.
 *
 * page_private() is the mark, and page->index the offset; together there is only one page that
 * has them: an offset that was flushed for gets newer marks. That of a page which is no part of
 * a pool, and was not taken from one, is 0.
 *
 * Locks: @pool_lock. Callers: lazy.c; memory.c (take, put).
 */
#include <linux/highmem.h>
#include <linux/list.h>
#include <linux/mm.h>
#include <linux/page_ref.h>
#include <linux/workqueue.h>

#include "morsel.h"

/* Pages that wait in the pool of one morsel, at most: 32 MiB. */
unsigned long morsel_pool_limit __read_mostly = SZ_32M >> PAGE_SHIFT;

/* Pages in use that are passed over in search of one that is not. */
#define MORSEL_POOL_TRIES	8

/* Others wait for the lock. */
#define MORSEL_POOL_CUT		1024

/**
 * morsel_pool_add() - pages were given up
 * @m: the morsel
 * @pages: by page->lru; empty afterwards
 * @nr: so many
 */
void morsel_pool_add(struct morsel *m, struct list_head *pages,
		     unsigned long nr)
{
	spin_lock(&m->pool_lock);
	list_splice_tail_init(pages, &m->pool);
	m->nr_pool += nr;
	spin_unlock(&m->pool_lock);
}

static bool morsel_is_reached(struct morsel *m, struct page *page)
{
	CF_MUTATION(morsel_pool_hasty, return false);
	return morsel_owes(m, page_private(page));
}

/**
 * morsel_pool_cut() - take out pages that no CPU reaches, the oldest first
 * @m: the morsel
 * @keep: so many are to be left
 * @pages: they are added to it
 *
 * Return: how many, not all at once if they are many.
 */
unsigned int morsel_pool_cut(struct morsel *m, unsigned long keep,
			     struct list_head *pages)
{
	struct page *page, *next;
	unsigned int nr = 0;

	spin_lock(&m->pool_lock);
	list_for_each_entry_safe(page, next, &m->pool, lru) {
		if (nr == MORSEL_POOL_CUT || m->nr_pool <= keep ||
		    morsel_is_reached(m, page))
			break;
		list_move_tail(&page->lru, pages);
		set_page_private(page, 0);
		m->nr_pool--;
		nr++;
	}
	spin_unlock(&m->pool_lock);
	return nr;
}

static bool morsel_is_used(struct page *page)
{
	int refs = 1; /* the pool's */

	CF_MUTATION(morsel_pool_pinned, refs = page_count(page));
	return PageHWPoison(page) || !page_ref_freeze(page, refs);
}

/* A page leaves the list, for an offset. Nobody else has a reference. */
static void morsel_pool_leave(struct morsel *m, struct page *page)
{
	list_del(&page->lru);
	m->nr_pool--;
	page->mapping = NULL;
	page_ref_unfreeze(page, 1);
}

/*
 * The first one that nobody has in use. One that CPUs may still reach only where many wait: its
 * offset would have to be flushed for if it is populated again.
 */
static struct page *morsel_pool_first(struct morsel *m)
{
	unsigned long limit = READ_ONCE(morsel_pool_limit);
	unsigned int i;

	for (i = 0; i < MORSEL_POOL_TRIES && !list_empty(&m->pool); i++) {
		struct page *page = list_first_entry(&m->pool, struct page, lru);

		if (m->nr_pool < limit - limit / 4 &&
		    morsel_owes(m, page_private(page)))
			break;
		if (!morsel_is_used(page))
			return page;
		list_move_tail(&page->lru, &m->pool);
	}
	return NULL;
}

/**
 * morsel_pool_take() - a page that was given up, for another offset
 * @m: the morsel
 *
 * It is counted and paid for.
 *
 * Return: the page, zeroed, or NULL.
 */
struct page *morsel_pool_take(struct morsel *m)
{
	struct page *page;

	spin_lock(&m->pool_lock);
	page = morsel_pool_first(m);
	if (page)
		morsel_pool_leave(m, page);
	spin_unlock(&m->pool_lock);
	if (page)
		clear_highpage(page);
	return page;
}

/**
 * morsel_pool_again() - the page that an offset had
 * @m: the morsel
 * @offset: in bytes
 * @mark: the offset has it, and it is not settled
 *
 * Who can still reach it by what is cached is right again.
 *
 * Return: the page, zeroed, or NULL: it is elsewhere by now, or somebody has it in use.
 */
struct page *morsel_pool_again(struct morsel *m, u64 offset, u64 mark)
{
	struct page *page, *found = NULL;

	CF_MUTATION(morsel_own_unseen, return NULL);
	spin_lock(&m->pool_lock);
	/* The newest ones are last. Before one that is settled all are, so it is not there. */
	list_for_each_entry_reverse(page, &m->pool, lru) {
		if (!morsel_owes(m, page_private(page)))
			break;
		if (!morsel_is_own(page, offset, mark))
			continue;
		if (!morsel_is_used(page))
			found = page;
		break;
	}
	if (found)
		morsel_pool_leave(m, found);
	spin_unlock(&m->pool_lock);
	if (found)
		clear_highpage(found);
	return found;
}

/**
 * morsel_pool_put() - a page was not used after all
 * @m: the morsel
 * @page: of morsel_pool_take(), or another one
 *
 * Return: false: no CPU reaches it, the caller frees it.
 */
bool morsel_pool_put(struct morsel *m, struct page *page)
{
	if (!m->lazy || !morsel_owes(m, page_private(page))) {
		set_page_private(page, 0);
		return false;
	}
	spin_lock(&m->pool_lock);
	list_add_tail(&page->lru, &m->pool);
	m->nr_pool++;
	spin_unlock(&m->pool_lock);
	/* Who looks once a second may have found nothing just before. */
	queue_delayed_work(system_unbound_wq, &m->pool_age, MORSEL_POOL_AGE);
	return true;
}
