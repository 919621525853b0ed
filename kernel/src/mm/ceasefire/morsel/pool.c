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
 * An offset finds its own page by a table of lists, one for all offsets that are the same
 * modulo their number. Each list has the oldest pages first. Who wants any page looks at
 * the lists in turn, and at the first of each.
 *
 * Locks: @pool_lock. Callers: lazy.c, size.c (begin); memory.c (take, put).
 */
#include <linux/bitmap.h>
#include <linux/highmem.h>
#include <linux/list.h>
#include <linux/mm.h>
#include <linux/page_ref.h>
#include <linux/slab.h>
#include <linux/workqueue.h>

#include "morsel.h"

/* Pages that wait in the pool of one morsel, at most: 64 MiB. */
unsigned long morsel_pool_limit __read_mostly = SZ_64M >> PAGE_SHIFT;

/* Pages that cannot be had are passed over in search of one that can. */
#define MORSEL_POOL_TRIES	8

/* Others wait for the lock. */
#define MORSEL_POOL_CUT		1024

#define MORSEL_POOL_LISTS	1024

struct morsel_pool {
	/* Where the next one looks that wants any page. */
	unsigned int		hand;
	/* Lists that are not empty. */
	DECLARE_BITMAP(used, MORSEL_POOL_LISTS);
	/* By page->lru. */
	struct list_head	lists[MORSEL_POOL_LISTS];
};

/**
 * morsel_pool_begin() - make the pool of a morsel
 * @m: the morsel, inode lock held
 *
 * Return: 0, or -ENOMEM.
 */
int morsel_pool_begin(struct morsel *m)
{
	struct morsel_pool *pool;
	unsigned int i;

	if (m->pool)
		return 0;
	pool = kvzalloc(sizeof(*pool), GFP_KERNEL_ACCOUNT);
	if (!pool)
		return -ENOMEM;
	for (i = 0; i < MORSEL_POOL_LISTS; i++)
		INIT_LIST_HEAD(&pool->lists[i]);
	m->pool = pool;
	return 0;
}

/**
 * morsel_pool_end() - the object goes
 * @m: the object; its pool is empty, if it has one
 */
void morsel_pool_end(struct morsel *m)
{
	VM_WARN_ON_ONCE(m->nr_pool);
	kvfree(m->pool);
	m->pool = NULL;
}

/* The list of an offset, in pages. */
static unsigned int morsel_pool_slot(pgoff_t index)
{
	return index % MORSEL_POOL_LISTS;
}

/* Under @pool_lock, as the next ones. */
static void morsel_pool_insert(struct morsel *m, struct page *page)
{
	unsigned int slot = morsel_pool_slot(page->index);

	list_add_tail(&page->lru, &m->pool->lists[slot]);
	__set_bit(slot, m->pool->used);
	m->nr_pool++;
}

static void morsel_pool_remove(struct morsel *m, struct page *page)
{
	unsigned int slot = morsel_pool_slot(page->index);

	list_del(&page->lru);
	if (list_empty(&m->pool->lists[slot]))
		__clear_bit(slot, m->pool->used);
	m->nr_pool--;
}

static struct page *morsel_pool_oldest(struct morsel *m, unsigned int slot)
{
	return list_first_entry(&m->pool->lists[slot], struct page, lru);
}

/**
 * morsel_pool_add() - pages were given up
 * @m: the morsel
 * @pages: by page->lru; empty afterwards
 */
void morsel_pool_add(struct morsel *m, struct list_head *pages)
{
	struct page *page, *next;

	spin_lock(&m->pool_lock);
	list_for_each_entry_safe(page, next, pages, lru) {
		list_del(&page->lru);
		morsel_pool_insert(m, page);
	}
	spin_unlock(&m->pool_lock);
}

static bool morsel_is_reached(struct morsel *m, struct page *page)
{
	CF_MUTATION(morsel_pool_hasty, return false);
	return morsel_owes(m, page_private(page));
}

/* Of one list, the oldest first; how many. */
static unsigned int morsel_pool_cut_list(struct morsel *m, unsigned int slot,
					 unsigned long keep, unsigned int most,
					 struct list_head *pages)
{
	unsigned int nr = 0;

	while (nr < most && m->nr_pool > keep && test_bit(slot, m->pool->used)) {
		struct page *page = morsel_pool_oldest(m, slot);

		if (morsel_is_reached(m, page))
			break;
		morsel_pool_remove(m, page);
		list_add_tail(&page->lru, pages);
		set_page_private(page, 0);
		nr++;
	}
	return nr;
}

/**
 * morsel_pool_cut() - take out pages that no CPU reaches
 * @m: the morsel
 * @keep: so many are to be left
 * @pages: they are added to it
 *
 * Return: how many, not all at once if they are many.
 */
unsigned int morsel_pool_cut(struct morsel *m, unsigned long keep,
			     struct list_head *pages)
{
	unsigned int slot, nr = 0;

	if (!m->pool)
		return 0;
	spin_lock(&m->pool_lock);
	for_each_set_bit_wrap(slot, m->pool->used, MORSEL_POOL_LISTS, m->pool->hand) {
		nr += morsel_pool_cut_list(m, slot, keep, MORSEL_POOL_CUT - nr, pages);
		if (nr == MORSEL_POOL_CUT || m->nr_pool <= keep)
			break;
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

/* A page leaves the pool, for an offset. Nobody else has a reference. */
static void morsel_pool_leave(struct morsel *m, struct page *page)
{
	morsel_pool_remove(m, page);
	page->mapping = NULL;
	page_ref_unfreeze(page, 1);
}

/*
 * One that CPUs may still reach only where many wait: its offset would have to be flushed for if
 * it is populated again.
 */
static bool morsel_pool_is_ready(struct morsel *m, struct page *page)
{
	unsigned long limit = READ_ONCE(morsel_pool_limit);

	return m->nr_pool >= limit - limit / 16 || !morsel_owes(m, page_private(page));
}

/* The oldest one of some list that nobody has in use. */
static struct page *morsel_pool_any(struct morsel *m)
{
	struct morsel_pool *pool = m->pool;
	unsigned int i;

	for (i = 0; i < MORSEL_POOL_TRIES && m->nr_pool; i++) {
		unsigned int slot = find_next_bit_wrap(pool->used, MORSEL_POOL_LISTS, pool->hand);
		struct page *page = morsel_pool_oldest(m, slot);

		pool->hand = (slot + 1) % MORSEL_POOL_LISTS;
		if (!morsel_pool_is_ready(m, page))
			continue;
		if (!morsel_is_used(page))
			return page;
		list_move_tail(&page->lru, &pool->lists[slot]);
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
	page = morsel_pool_any(m);
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
	list_for_each_entry(page, &m->pool->lists[morsel_pool_slot(offset >> PAGE_SHIFT)], lru) {
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
	morsel_pool_insert(m, page);
	spin_unlock(&m->pool_lock);
	/* Who looks once a second may have found nothing just before. */
	queue_delayed_work(system_unbound_wq, &m->pool_age, MORSEL_POOL_AGE);
	return true;
}
