// SPDX-License-Identifier: GPL-2.0
/*
 * Pressure: pages that are zero and tables without a page are taken when memory is short.
 * Who reads there finds the same zeroes, and who writes gets another page (M11).
 *
 * A page may be written to while it is looked at, so the look alone decides nothing:
 *
 *   steals				CPU that has the page cached
 *   locks the table
 *   the page is zero
 *   xchg(entry, 0)
 *					writes
 *   flushes				has it no more; waits for the lock
 *   nobody else has a reference,
 *   and it is still zero: gone
 *   else: the entry is put back
 *   unlocks				finds the page, or gets another one
 *
 * As long as the table is locked nobody finds that there is no page, and none is installed. Who
 * has a reference may write as long as he has it: pins, read() and write(). GUP without locks
 * takes one and looks at the entry once more; it has it before the entry was cleared, or
 * drops it. Secondary MMUs are told before the first entry goes.
 *
 * A table that has no entry is cut under its own lock, where nobody can install, and that of the
 * table above, if that is free; by cmpxchg(), as hardware may set a bit. It waits as any
 * other that was cut (clean.c); nobody flushes at once, as there was nothing to cache but the
 * way to it, which a CPU forgets at the fault. Roots are never cut (M8).
 *
 * Those that may give up memory without a flush are left alone: their pools have limits.
 *
 * A morsel that goes waits for who looks at it, and who reclaims never waits for another one
 * who does. Nothing is allocated here, so who looks comes to an end; the OOM killer waits for
 * that.
 *
 * Locks: @morsel_steal_lock, i_mmap_rwsem, one table's; @settling. Callers: the shrinker;
 * object.c, size.c, show.c.
 */
#include <linux/delay.h>
#include <linux/highmem.h>
#include <linux/list.h>
#include <linux/mm.h>
#include <linux/mutex.h>
#include <linux/page_ref.h>
#include <linux/shrinker.h>
#include <linux/string.h>
#include <linux/swap.h>
#include <linux/vmstat.h>

#include "morsel.h"

/* Pages that are taken with one flush; others wait for the lock of the table. */
#define MORSEL_STEAL_BATCH	32

/* Mappings, each of which is looked at for that flush: with more it would take too long. */
#define MORSEL_STEAL_MAPPINGS	64

/* All that have a size, those first that were not looked at for longest. */
static LIST_HEAD(morsel_list);
static DEFINE_MUTEX(morsel_steal_lock);

/* Debug builds: makes the time long between the look at pages and the flush. */
static void morsel_steal_pause(void)
{
#ifdef CONFIG_CEASEFIRE_DEBUG
	u32 us = READ_ONCE(cf_steal_delay_us);

	if (us)
		mdelay(DIV_ROUND_UP(us, USEC_PER_MSEC));
#endif
}

static bool morsel_is_zero(struct page *page)
{
	const void *addr = kmap_local_page(page);
	bool zero = !memchr_inv(addr, 0, PAGE_SIZE);

	kunmap_local(addr);
	return zero;
}

/*
 * To read what is broken is fatal. One that is pinned may be so for ever, and of one that is shared
 * nothing would be free. Nothing is shared that may be lazy.
 */
static bool morsel_is_in_use(struct page *page)
{
	CF_MUTATION(morsel_steal_pinned, return false);
	return PageHWPoison(page) || page_count(page) != 1 ||
	       morsel_page_is_shared(page);
}

/* Could the page of an entry be taken? */
static bool morsel_is_candidate(unsigned long leaf)
{
	struct page *page;

	if (!morsel_leaf_is_there(leaf) || morsel_leaf_is_broken(leaf))
		return false;
	page = morsel_leaf_page(leaf);
	return !morsel_is_in_use(page) && morsel_is_zero(page);
}

/*
 * Nobody reaches a page by an entry any more: does anybody else use it, or was it written to?
 * Who has a reference by right has had it when the entry was cleared; so one look is
 * enough, before that at the contents.
 */
static bool morsel_is_wanted(struct page *page)
{
	if (morsel_is_in_use(page))
		return true;
	/* References before contents: what was written by one that is gone is seen. */
	smp_rmb();
	CF_MUTATION(morsel_steal_hasty, return false);
	return !morsel_is_zero(page);
}

static bool morsel_is_crowded(struct morsel *m)
{
	return atomic_long_read(&m->mapped) > MORSEL_STEAL_MAPPINGS;
}

static void morsel_steal_flush(struct morsel *m, u64 start, u64 end)
{
	CF_MUTATION(morsel_steal_unflushed, return);
	morsel_flush_locked(m, start, end);
}

/* Pages of one table, which is locked. Returns how many are in @pages. */
static unsigned int morsel_steal_leaves(struct morsel *m, unsigned long *table,
					u64 start, unsigned int nr,
					struct list_head *pages)
{
	unsigned int i, found = 0, taken = 0, at = morsel_index(start, 1);
	unsigned long leaves[MORSEL_STEAL_BATCH] = { };

	for (i = 0; i < nr; i++) {
		if (!morsel_is_candidate(table[at + i]))
			continue;
		leaves[i] = xchg(table + at + i, 0);
		found++;
	}
	if (!found)
		return 0;
	morsel_steal_pause();
	morsel_steal_flush(m, start, start + nr * PAGE_SIZE);
	for (i = 0; i < nr; i++) {
		struct page *page = morsel_leaf_page(leaves[i]);

		if (!leaves[i])
			continue;
		if (morsel_is_wanted(page)) {
			WRITE_ONCE(table[at + i], leaves[i]);
			continue;
		}
		list_add_tail(&page->lru, pages);
		taken++;
	}
	return taken;
}

/* Is one of these pages zero at this moment? */
static bool morsel_has_zeroes(struct morsel *m, unsigned long *above, u64 start,
			      unsigned int nr)
{
	unsigned int i, at = morsel_index(start, 1);
	bool found = false;
	unsigned long *table;
	spinlock_t *ptl; /* of @table */

	table = morsel_lock_leaves(above, &ptl);
	if (!table)
		return false;
	for (i = 0; i < nr && !found && morsel_is_open(m, table); i++)
		found = morsel_is_candidate(table[at + i]);
	morsel_unlock_leaves(ptl);
	return found;
}

static unsigned int morsel_steal_pages(struct morsel *m, unsigned long *above,
				       u64 start, unsigned int nr)
{
	u64 end = start + nr * PAGE_SIZE;
	unsigned int taken = 0;
	unsigned long *table;
	LIST_HEAD(pages);
	spinlock_t *ptl; /* of @table */

	if (morsel_is_crowded(m) || !morsel_has_zeroes(m, above, start, nr))
		return 0;
	morsel_flush_begin(m, start, end);
	/* From here on there come no more. */
	table = morsel_is_crowded(m) ? NULL : morsel_lock_leaves(above, &ptl);
	if (table) {
		if (morsel_is_open(m, table))
			taken = morsel_steal_leaves(m, table, start, nr, &pages);
		morsel_unlock_leaves(ptl);
	}
	morsel_flush_end(m, start, end);
	morsel_pages_free(m, &pages);
	mm_account_reclaimed_pages(taken);
	atomic_long_add(taken, &m->cuts);
	count_vm_events(MORSEL_STEAL, taken);
	return taken;
}

static bool morsel_is_unused(const unsigned long *table)
{
	CF_MUTATION(morsel_steal_in_use, return true);
	return !memchr_inv(table, 0, PAGE_SIZE);
}

/* Cut a table without entries, which is locked. Hardware may set a bit of the entry meanwhile. */
static bool morsel_steal_entry(unsigned long *above, unsigned long *table)
{
	unsigned long found = READ_ONCE(*above);

	do {
		/* Somebody else has cut it just now. */
		if (!found || morsel_table(found) != table)
			return false;
	} while (!try_cmpxchg(above, &found, 0));
	morsel_below_add(above, -1);
	return true;
}

/*
 * Under the lock of the table above as well, for which nobody waits: who cuts that table has
 * counted what is below it (rest.c).
 */
static bool morsel_steal_locked(struct morsel *m, u64 at, unsigned long *above,
				unsigned long *table)
{
	spinlock_t *lock = ptlock_ptr(virt_to_ptdesc(above));
	bool cut;

	if (!spin_trylock(lock))
		return false;
	cut = morsel_is_linked(m, at, above, 2) && morsel_steal_entry(above, table);
	spin_unlock(lock);
	return cut;
}

static unsigned int morsel_steal_table(struct morsel *m, u64 at,
				       unsigned long *above)
{
	unsigned long *table;
	struct morsel_gather g;
	spinlock_t *ptl; /* of @table */
	bool cut;

	/* What leads to a root is the top. */
	if (m->level == 1)
		return 0;
	table = morsel_lock_leaves(above, &ptl);
	if (!table)
		return 0;
	cut = morsel_is_open(m, table) && morsel_is_unused(table) &&
	      morsel_steal_locked(m, at, above, table);
	morsel_unlock_leaves(ptl);
	if (!cut)
		return 0;
	morsel_gather_init(&g);
	list_add_tail(&virt_to_ptdesc(table)->pt_list, &g.tables);
	morsel_clean(m, &g);
	atomic_long_inc(&m->cuts);
	count_vm_event(MORSEL_STEAL_TABLE);
	return 1;
}

static long morsel_weight(struct morsel *m)
{
	return atomic_long_read(&m->pages) + atomic_long_read(&m->tables);
}

/*
 * Look at @budget pages of a morsel, from where the last look has ended. What is looked at is
 * taken off the budget, also entries that lead to nothing.
 */
static unsigned long morsel_steal(struct morsel *m, unsigned long *budget)
{
	u64 size = m->lazy || morsel_is_huge(m) ? 0 : i_size_read(&m->inode);
	u64 at = m->steal_at;
	unsigned long taken = 0;

	if (!at) {
		m->steal_taken = 0;
		m->steal_weight = morsel_weight(m);
	}
	while (at < size && *budget) {
		unsigned long *above = morsel_entry(m, at, 2);
		unsigned int i;

		(*budget)--;
		if (!above) {
			at = morsel_gap_end(m, at);
			continue;
		}
		if (READ_ONCE(*above)) {
			for (i = 0; i < PTRS_PER_PTE; i += MORSEL_STEAL_BATCH)
				taken += morsel_steal_pages(m, above,
							    at + i * PAGE_SIZE,
							    MORSEL_STEAL_BATCH);
			taken += morsel_steal_table(m, at, above);
			*budget -= min(*budget, PTRS_PER_PTE - 1UL);
			cond_resched();
		}
		at += PMD_SIZE;
	}
	m->steal_at = at < size ? at : 0;
	m->steal_taken += taken;
	/* As long as it has as many as at the begin there is nothing to find, most likely. */
	if (!m->steal_at)
		m->steal_barren = m->steal_taken ? 0 : m->steal_weight;
	return taken;
}

static unsigned long morsel_steal_count(struct shrinker *s,
					struct shrink_control *sc)
{
	return morsel_total() ?: SHRINK_EMPTY;
}

static unsigned long morsel_steal_scan(struct shrinker *s,
				       struct shrink_control *sc)
{
	unsigned long budget = sc->nr_to_scan, taken = 0;
	struct morsel *m, *first = NULL;

	if (!(sc->gfp_mask & __GFP_FS) || !mutex_trylock(&morsel_steal_lock))
		return SHRINK_STOP;
	while (budget && !list_empty(&morsel_list)) {
		m = list_first_entry(&morsel_list, struct morsel, steal);
		if (m == first)
			break;
		budget--;
		cond_resched();
		if (m->steal_at || morsel_weight(m) != m->steal_barren)
			taken += morsel_steal(m, &budget);
		if (m->steal_at)
			break;
		/* Done with this one. */
		list_move_tail(&m->steal, &morsel_list);
		first = first ?: m;
	}
	mutex_unlock(&morsel_steal_lock);
	return taken;
}

/**
 * morsel_steal_begin() - a morsel has its size
 * @m: the morsel
 *
 * Context: the inode's lock, or nobody knows it yet.
 */
void morsel_steal_begin(struct morsel *m)
{
	/* Nobody else adds it, and who looks leaves it in the list. */
	if (!list_empty(&m->steal))
		return;
	mutex_lock(&morsel_steal_lock);
	list_add_tail(&m->steal, &morsel_list);
	mutex_unlock(&morsel_steal_lock);
}

/**
 * morsel_steal_end() - a morsel goes, or was destroyed
 * @m: the morsel; nobody looks at it when this returns, and nothing of it is on its way
 *
 * Context: may sleep.
 */
void morsel_steal_end(struct morsel *m)
{
	if (list_empty(&m->steal))
		return;
	mutex_lock(&morsel_steal_lock);
	list_del_init(&m->steal);
	mutex_unlock(&morsel_steal_lock);
}

/**
 * morsel_steal_all() - look at all morsels, before somebody is killed for memory
 *
 * Who reclaims passes over them while somebody else looks, and may give up too early.
 *
 * Context: may sleep; the OOM killer.
 * Return: so many pages and tables were taken.
 */
unsigned long morsel_steal_all(void)
{
	unsigned long taken = 0, budget = ULONG_MAX;
	struct morsel *m;

	mutex_lock(&morsel_steal_lock);
	list_for_each_entry(m, &morsel_list, steal) {
		m->steal_at = 0;
		taken += morsel_steal(m, &budget);
	}
	mutex_unlock(&morsel_steal_lock);
	return taken;
}

/**
 * morsel_each() - call a function for each morsel that has a size
 * @fn: the function; it takes no reference, since it could be the last one to give it back
 *
 * Context: may sleep; the OOM killer.
 */
void morsel_each(void (*fn)(struct morsel *m))
{
	struct morsel *m;

	mutex_lock(&morsel_steal_lock);
	list_for_each_entry(m, &morsel_list, steal)
		fn(m);
	mutex_unlock(&morsel_steal_lock);
}

/**
 * morsel_steal_init() - have the kernel call here when memory is short
 *
 * Return: 0, or -ENOMEM.
 */
int __init morsel_steal_init(void)
{
	struct shrinker *shrinker = shrinker_alloc(0, "ceasefire-morsel");

	if (!shrinker)
		return -ENOMEM;
	shrinker->count_objects = morsel_steal_count;
	shrinker->scan_objects = morsel_steal_scan;
	/* A table at a time. */
	shrinker->batch = PTRS_PER_PTE;
	shrinker_register(shrinker);
	return 0;
}
