// SPDX-License-Identifier: GPL-2.0
/*
 * The pool of a lazy morsel: pages that were given up without a flush.
 *
 * A page of it goes to another offset of the morsel at once, zeroed: who can still reach it has
 * the right to all of the object. It leaves the object only when its mark is settled (M7).
 * One that somebody has pinned is not used again until it is unpinned, or is freed like any
 * other when it is settled. All of them are counted and paid for.
 *
 * page_private() is the mark; that of a page which is no part of a pool, and was not taken from
 * one, is 0.
 *
 * Locks: @pool_lock. Callers: lazy.c; memory.c (take, put).
 */
#include <linux/highmem.h>
#include <linux/list.h>
#include <linux/mm.h>
#include <linux/page_ref.h>
#include <linux/workqueue.h>

#include "morsel.h"

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
	CF_MUTATION(morsel_pool_pinned, page_ref_freeze(page, page_count(page));
		    return false);
	return PageHWPoison(page) || !page_ref_freeze(page, 1);
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
	struct page *page, *found = NULL;
	unsigned int i;

	spin_lock(&m->pool_lock);
	for (i = 0; i < MORSEL_POOL_TRIES && !list_empty(&m->pool); i++) {
		page = list_first_entry(&m->pool, struct page, lru);
		if (morsel_is_used(page)) {
			list_move_tail(&page->lru, &m->pool);
			continue;
		}
		list_del(&page->lru);
		m->nr_pool--;
		found = page;
		break;
	}
	spin_unlock(&m->pool_lock);
	if (!found)
		return NULL;
	found->mapping = NULL;
	page_ref_unfreeze(found, 1);
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
