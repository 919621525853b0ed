// SPDX-License-Identifier: GPL-2.0
/*
 * MORSEL_LAZY: memory leaves a morsel, and no CPU is interrupted.
 *
 * The entry of each page becomes one that is not present and has a mark (epochs.c). What is
 * read there is undefined until it is populated again: a CPU may still use the old page. The
 * page goes to the pool (pool.c).
 *
 * Where a process that maps the morsel has no context, as a child, or is watched by secondary MMUs,
 * all is flushed as ever. Who begins to watch waits for i_mmap (mm_take_all_locks()), and so
 * does a child that is made.
 *
 * The pool is bounded, by number and by age.
 *
 * Locks: inode lock, shared; i_mmap_rwsem; one table's; @lazy_lock, which is only tried under
 * i_mmap; @freeing. Callers: file.c, populate.c (a limit), destroy.c, object.c.
 */
#include <linux/delay.h>
#include <linux/mm.h>
#include <linux/mmu_notifier.h>
#include <linux/mutex.h>
#include <linux/sched/signal.h>
#include <linux/vmstat.h>
#include <linux/workqueue.h>

#include "../core/core.h"
#include "morsel.h"

/*
 * Free pages of the pool that no CPU reaches, until @keep are left. One after the other, or who
 * comes second would not wait for what the first one has taken.
 */
static void morsel_pool_free(struct morsel *m, unsigned long keep)
{
	LIST_HEAD(pages);

	mutex_lock(&m->freeing);
	while (morsel_pool_cut(m, keep, &pages)) {
		morsel_pages_free(m, &pages);
		cond_resched();
	}
	mutex_unlock(&m->freeing);
}

static bool morsel_pool_is_full(struct morsel *m)
{
	CF_MUTATION(morsel_pool_unbounded, return false);
	return READ_ONCE(m->nr_pool) > READ_ONCE(morsel_pool_limit);
}

/* Those that are settled go first; for the others there is a flush. */
static void morsel_pool_bound(struct morsel *m)
{
	if (!morsel_pool_is_full(m))
		return;
	morsel_pool_free(m, READ_ONCE(morsel_pool_limit));
	if (!morsel_pool_is_full(m))
		return;
	morsel_epoch_flush(m, READ_ONCE(m->newest), MORSEL_LAZY_FLUSH_LIMIT);
	morsel_pool_free(m, READ_ONCE(morsel_pool_limit));
}

/* Is each process that maps the morsel one whose debts ticks pay? */
static bool morsel_may_owe(struct vm_area_struct *vma)
{
	CF_MUTATION(morsel_any_owes, return true);
	if (!READ_ONCE(vma->vm_mm->cf)) {
		count_vm_event(MORSEL_LAZY_FLUSH_CONTEXT);
		return false;
	}
	if (mm_has_notifiers(vma->vm_mm)) {
		count_vm_event(MORSEL_LAZY_FLUSH_NOTIFIER);
		return false;
	}
	return true;
}

static bool morsel_all_may_owe(struct morsel *m)
{
	struct address_space *mapping = m->inode.i_mapping;
	struct vm_area_struct *vma;

	vma_interval_tree_foreach(vma, &mapping->i_mmap, 0, ULONG_MAX)
		if (!morsel_may_owe(vma))
			return false;
	return true;
}

#ifdef CONFIG_CEASEFIRE_DEBUG
/* Debug builds: the wrong way, with a long time between the mark and the clear. */
static u64 morsel_mark_early(struct morsel *m)
{
	u32 us = READ_ONCE(cf_mark_delay_us);
	u64 mark = READ_ONCE(m->epochs.now);

	if (us)
		mdelay(DIV_ROUND_UP(us, USEC_PER_MSEC));
	return mark;
}
#else
static u64 morsel_mark_early(struct morsel *m)
{
	return 0;
}
#endif

/* What was given up, and the newest mark of it. */
struct morsel_given_up {
	struct list_head	pages;
	unsigned long		nr;
	u64			newest;
};

/*
 * What becomes of an entry, in a table whose lock is held. One of a page that is broken gets a
 * mark, too: memory failure may not have flushed for it yet.
 */
static void morsel_give_up(struct morsel *m, unsigned long *entry,
			   struct morsel_given_up *g)
{
	unsigned long leaf = READ_ONCE(*entry);
	struct page *page;
	u64 early = 0, mark;

	if (!morsel_leaf_is_there(leaf))
		return;
	CF_MUTATION(morsel_marks_early, early = morsel_mark_early(m));
	/* A full barrier: the clear before the mark. */
	leaf = xchg(entry, 0);
	mark = early ?: READ_ONCE(m->epochs.now);
	WRITE_ONCE(*entry, morsel_leaf_marked(mark));
	g->newest = max(g->newest, mark);
	if (morsel_leaf_is_broken(leaf))
		return;
	page = morsel_leaf_page(leaf);
	set_page_private(page, mark);
	list_add_tail(&page->lru, &g->pages);
	g->nr++;
}

/* Pages of one table. */
static void morsel_give_up_pages(struct morsel *m, unsigned long *above,
				 u64 start, u64 end, struct morsel_given_up *g)
{
	unsigned int i, from = morsel_index(start, 1);
	unsigned long *table;
	spinlock_t *ptl; /* of @table */

	table = morsel_lock_leaves(above, &ptl);
	if (!table)
		return;
	for (i = 0; i < (end - start) >> PAGE_SHIFT; i++)
		morsel_give_up(m, table + from + i, g);
	/* Before anybody can find a mark. */
	cf_raise(&m->newest, g->newest);
	morsel_unlock_leaves(ptl);
}

static void morsel_give_up_range(struct morsel *m, u64 start, u64 end,
				 struct morsel_given_up *g)
{
	u64 at, next;

	for (at = start; at < end; at = next) {
		unsigned long *above = morsel_entry(m, at, 2);

		next = min(end, above ? (at | (PMD_SIZE - 1)) + 1 :
					morsel_gap_end(m, at));
		if (above)
			morsel_give_up_pages(m, above, at, next, g);
		cond_resched();
	}
}

static bool morsel_is_lazy(struct morsel *m)
{
	CF_MUTATION(morsel_lazy_never, return false);
	return morsel_all_may_owe(m);
}

/**
 * morsel_lazy_depopulate() - memory leaves a morsel, and nobody is interrupted
 * @m: the morsel, which allows it; inode lock held, shared
 * @ranges: which; all within its size
 * @nr: so many
 *
 * Context: may sleep.
 * Return: false: nothing was done, all who map it have to be flushed.
 */
bool morsel_lazy_depopulate(struct morsel *m, const struct morsel_range *ranges,
			    unsigned int nr)
{
	struct address_space *mapping = m->inode.i_mapping;
	struct morsel_given_up g = { LIST_HEAD_INIT(g.pages) };
	unsigned int i;

	i_mmap_lock_read(mapping);
	if (!morsel_is_lazy(m)) {
		i_mmap_unlock_read(mapping);
		return false;
	}
	/* Who is killed sees nothing of it any more. */
	for (i = 0; i < nr && !fatal_signal_pending(current); i++) {
		u64 start = ranges[i].offset, end = start + ranges[i].length;

		if (morsel_whole_pages(m, &start, &end, true))
			morsel_give_up_range(m, start, end, &g);
	}
	morsel_pool_add(m, &g.pages);
	/* Who has the lock does the same, and i_mmap is outside here. */
	if (mutex_trylock(&m->lazy_lock)) {
		morsel_epoch_turn(m);
		mutex_unlock(&m->lazy_lock);
	}
	i_mmap_unlock_read(mapping);
	if (!g.newest)
		return true;
	count_vm_events(MORSEL_LAZY_PAGES, g.nr);
	atomic_long_add(g.nr, &m->cuts);
	morsel_pool_bound(m);
	queue_delayed_work(system_unbound_wq, &m->pool_age, MORSEL_POOL_AGE);
	return true;
}

static void morsel_pool_age(struct work_struct *work)
{
	struct morsel *m = container_of(to_delayed_work(work), struct morsel,
					pool_age);

	mutex_lock(&m->lazy_lock);
	i_mmap_lock_read(m->inode.i_mapping);
	morsel_epoch_turn(m);
	i_mmap_unlock_read(m->inode.i_mapping);
	mutex_unlock(&m->lazy_lock);
	morsel_pool_free(m, 0);
	if (READ_ONCE(m->nr_pool) || morsel_owes(m, READ_ONCE(m->newest)))
		queue_delayed_work(system_unbound_wq, &m->pool_age,
				   MORSEL_POOL_AGE);
}

/**
 * morsel_pool_empty() - nothing of what was given up before is left
 * @m: the morsel
 *
 * Context: may sleep.
 */
void morsel_pool_empty(struct morsel *m)
{
	if (!m->lazy)
		return;
	if (READ_ONCE(m->nr_pool))
		morsel_epoch_flush(m, READ_ONCE(m->newest),
				   MORSEL_LAZY_FLUSH_LIMIT);
	morsel_pool_free(m, 0);
}

/**
 * morsel_lazy_end() - the object goes
 * @m: the object, which nobody maps: each mapping has flushed
 */
void morsel_lazy_end(struct morsel *m)
{
	cancel_delayed_work_sync(&m->pool_age);
	morsel_epoch_end(m);
	morsel_pool_free(m, 0);
	morsel_pool_end(m);
}

/**
 * morsel_lazy_setup() - nothing was given up in a new object
 * @m: the object
 */
void morsel_lazy_setup(struct morsel *m)
{
	morsel_epochs_begin(&m->epochs);
	mutex_init(&m->lazy_lock);
	mutex_init(&m->freeing);
	spin_lock_init(&m->pool_lock);
	m->pool = NULL;
	INIT_DELAYED_WORK(&m->pool_age, morsel_pool_age);
	m->lazy = false;
	m->newest = 0;
	m->nr_pool = 0;
}
