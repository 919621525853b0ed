// SPDX-License-Identifier: GPL-2.0
/*
 * What was cut, and flushed for, is freed.
 *
 * Who has the lock of a table may use pages of it (M4). Pages that were cut one by one were
 * cut under it. Those of a table that was cut are taken from it under its lock now, and
 * nobody finds the table again. GUP without locks looks at the entry once more when it has
 * a reference.
 *
 * The table itself is empty then, and waits: until a flush which lazy CPUs get as well, one
 * for many tables, within a second or when they are 2 MiB; and then for RCU, since walkers hold
 * nothing else when they lock it.
 *
 * Locks: @settling; one table's; @cut_lock. Callers: prune.c, async.c, steal.c,
 * destroy.c, object.c.
 */
#include <linux/delay.h>
#include <linux/mm.h>
#include <linux/mutex.h>
#include <linux/workqueue.h>

#include "morsel.h"

/* Of what is freed later: memory may be short. */
struct workqueue_struct *morsel_wq;

/* So many, or so long. */
#define MORSEL_CUT_MAX		(PMD_SIZE / PAGE_SIZE)
#define MORSEL_CUT_AGE		HZ

/**
 * morsel_clean_pause() - somebody has taken what is to be freed
 *
 * Debug builds: makes the time long until it is. Also that between the look at a page that is
 * broken and what becomes of it.
 */
void morsel_clean_pause(void)
{
#ifdef CONFIG_CEASEFIRE_DEBUG
	u32 us = READ_ONCE(cf_clean_delay_us);

	if (us)
		msleep(DIV_ROUND_UP(us, USEC_PER_MSEC));
#endif
}

/* Take the pages of a table that nothing leads to. */
static void morsel_empty(struct morsel *m, unsigned long *table,
			 struct list_head *pages)
{
	spinlock_t *ptl = ptlock_ptr(virt_to_ptdesc(table));
	unsigned int i;

	spin_lock(ptl);
	for (i = 0; i < PTRS_PER_PTE; i++) {
		unsigned long leaf = table[i];

		if (!leaf)
			continue;
		WRITE_ONCE(table[i], 0);
		if (unlikely(morsel_leaf_is_broken(leaf)))
			continue;
		if (m->shares && morsel_page_unshare(m, morsel_leaf_page(leaf)))
			continue;
		list_add_tail(&morsel_leaf_page(leaf)->lru, pages);
	}
	spin_unlock(ptl);
}

/**
 * morsel_table_put() - an entry of a morsel leads to a table of pages no more
 * @m: the morsel, which has flushed, in lazy mode, too
 * @table: the table
 *
 * Context: may sleep.
 */
void morsel_table_put(struct morsel *m, unsigned long *table)
{
	LIST_HEAD(pages);

	if (!morsel_table_unshare(m, table))
		return;
	morsel_empty(m, table, &pages);
	morsel_pages_free(m, &pages);
	morsel_table_free(m, virt_to_ptdesc(table), 1);
}

/**
 * morsel_drops_put() - put what was cut and others may lead to
 * @m: the morsel, which has flushed; in lazy mode, too, if there are tables
 * @drops: what it is; none afterwards
 *
 * Context: may sleep.
 */
void morsel_drops_put(struct morsel *m, struct morsel_drops *drops)
{
	unsigned int i;

	for (i = 0; i < drops->nr; i++) {
		unsigned long what = drops->what[i];

		if (what & 1)
			morsel_table_put(m, (unsigned long *)(what - 1));
		else
			morsel_page_put(m, (struct page *)what);
	}
	drops->nr = 0;
	drops->tables = false;
}

static void morsel_free_cut(struct morsel *m, struct list_head *tables)
{
	struct ptdesc *table, *next;

	list_for_each_entry_safe(table, next, tables, pt_list) {
		list_del(&table->pt_list);
		morsel_table_free(m, table, 1);
	}
}

/* One after the other, or who comes second would not wait for what the first one has taken. */
static void morsel_settle_begin(struct morsel *m)
{
	CF_MUTATION(morsel_settle_beside, return);
	mutex_lock(&m->settling);
}

static void morsel_settle_end(struct morsel *m)
{
	CF_MUTATION(morsel_settle_beside, return);
	mutex_unlock(&m->settling);
}

/**
 * morsel_settle_now() - flush for all tables that wait, and free them
 * @m: the morsel
 *
 * And wait for those that others have taken: fsync() and MORSEL_IOC_DESTROY come after them.
 *
 * Context: may sleep.
 */
void morsel_settle_now(struct morsel *m)
{
	LIST_HEAD(tables);

	morsel_settle_begin(m);
	/* Those that are taken here were cut before the flush. */
	i_mmap_lock_read(m->inode.i_mapping);
	spin_lock(&m->cut_lock);
	list_splice_init(&m->cut, &tables);
	m->nr_cut = 0;
	spin_unlock(&m->cut_lock);
	if (!list_empty(&tables))
		morsel_flush(m, 0, U64_MAX, true);
	i_mmap_unlock_read(m->inode.i_mapping);
	/* Who waits for a work item is not late itself. */
	if (!list_empty(&tables) && current_work())
		morsel_clean_pause();
	morsel_free_cut(m, &tables);
	morsel_settle_end(m);
}

/**
 * morsel_settle() - tables have waited long enough
 * @work: of the morsel
 */
void morsel_settle(struct work_struct *work)
{
	morsel_settle_now(container_of(to_delayed_work(work), struct morsel,
				       settle));
}

/* Tables of level 2 give up those that they lead to, and rest. */
static void morsel_open_middles(struct morsel *m, struct morsel_gather *g)
{
	struct ptdesc *middle, *next;

	list_for_each_entry_safe(middle, next, &g->middles, pt_list) {
		list_del(&middle->pt_list);
		morsel_open_middle(middle, &g->tables, PTRS_PER_PTE);
		morsel_rest(m, middle);
		cond_resched();
	}
}

/**
 * morsel_clean() - free what was cut
 * @m: the morsel
 * @g: what it is; all who map it have flushed
 *
 * Context: may sleep.
 */
void morsel_clean(struct morsel *m, struct morsel_gather *g)
{
	struct ptdesc *table;
	unsigned int nr = 0;
	bool many;

	morsel_open_middles(m, g);
	list_for_each_entry(table, &g->tables, pt_list) {
		LIST_HEAD(pages);

		morsel_empty(m, ptdesc_address(table), &pages);
		morsel_pages_free(m, &pages);
		nr++;
		cond_resched();
	}
	morsel_pages_free(m, &g->pages);
	if (!nr)
		return;
	spin_lock(&m->cut_lock);
	list_splice_tail_init(&g->tables, &m->cut);
	m->nr_cut += nr;
	many = m->nr_cut >= MORSEL_CUT_MAX;
	spin_unlock(&m->cut_lock);
	if (many)
		morsel_settle_now(m);
	else
		queue_delayed_work(morsel_wq, &m->settle, MORSEL_CUT_AGE);
}

static void morsel_clean_below(struct morsel *m, unsigned long *table,
			       unsigned int level);

/* A table above those of pages, and what is below. */
static void morsel_clean_table(struct morsel *m, unsigned long *table,
			       unsigned int level)
{
	morsel_clean_below(m, table, level);
	morsel_table_free(m, virt_to_ptdesc(table), level);
}

/* What rests below an entry; it leads to nothing but what rests further below. */
static void morsel_clean_resting(struct morsel *m, unsigned long *entry,
				 unsigned int level)
{
	struct ptdesc *table;

	while (morsel_rests(m, entry, level)) {
		spin_lock(&m->lock);
		table = morsel_wake(m, entry, level);
		spin_unlock(&m->lock);
		morsel_clean_table(m, ptdesc_address(table), level - 1);
	}
}

static void morsel_clean_below(struct morsel *m, unsigned long *table,
			       unsigned int level)
{
	LIST_HEAD(pages);
	unsigned int i;

	for (i = 0; i < PTRS_PER_PTE; i++) {
		unsigned long *next;

		cond_resched();
		morsel_clean_resting(m, table + i, level);
		if (!morsel_leads(table[i]))
			continue;
		next = morsel_table(table[i]);
		if (level == m->base)
			list_add_tail(&morsel_leaf_page(table[i])->lru, &pages);
		else if (level > 2)
			morsel_clean_table(m, next, level - 1);
		else
			morsel_table_put(m, next);
	}
	if (morsel_is_huge(m))
		morsel_huge_free(m, &pages);
}

/**
 * morsel_clean_all() - the object goes
 * @m: the object, which nobody maps, and of which nothing is left to others
 *
 * Each mapping has flushed when it went, in lazy mode, too.
 *
 * Context: may sleep.
 */
void morsel_clean_all(struct morsel *m)
{
	LIST_HEAD(tables);

	cancel_delayed_work_sync(&m->settle);
	list_splice_init(&m->cut, &tables);
	morsel_free_cut(m, &tables);
	if (m->level)
		morsel_clean_below(m, m->top, m->level + 1);
}

/**
 * morsel_clean_init() - make the queue of those who free later
 *
 * Return: 0, or -ENOMEM.
 */
int __init morsel_clean_init(void)
{
	morsel_wq = alloc_workqueue("morsel", WQ_UNBOUND | WQ_MEM_RECLAIM, 0);
	return morsel_wq ? 0 : -ENOMEM;
}
