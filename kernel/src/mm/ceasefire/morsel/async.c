// SPDX-License-Identifier: GPL-2.0
/*
 * MORSEL_ASYNC: what was cut is freed by others.
 *
 * The call cuts and flushes as ever, so that all users see zeroes when it returns (M3). To
 * give pages back takes most of its time, and is left to work items: as many as there are
 * pieces, and at most MORSEL_CLEANERS of an object. Each frees a piece and is queued again if
 * there are more, so that others get their turn.
 *
 * What waits is counted and paid for until it is free. It is bounded (M9): of all morsels
 * at most an eighth of their limit waits, and a call that would leave more cleans by
 * itself. Each table of pages counts as if it was full, and one of level 2 for those that it leads
 * to. That number only changes by who takes pieces out of it, when it was cut (rest.c).
 * Who reaches a limit frees what waits of the object, piece by piece, until there is room.
 *
 * fsync(), MORSEL_IOC_DESTROY and the end of the object come to a point from which on nothing
 * waits that was left before: they take all pieces, and wait for those that work items have.
 * A piece is taken under @left_lock by either of them:
 *
 *   cleaner				finish
 *   takes a piece, sees more		takes the rest
 *   frees it				frees it
 *   is queued again			flush_work(): the piece is free
 *   finds nothing that is older
 *
 * flush_work() waits for the run that has the piece, and not for one that was queued by it:
 * so when the object ends, that one is cancelled, too. All who take pieces and are no work
 * items do it one after the other, under @finishing, or one of them would not wait for what
 * another one has taken.
 *
 * Locks: @finishing; @left_lock, and inside it that of a table of level 2. Work items take those
 * of tables, @settling and i_mmap (clean.c), and neither @finishing nor the inode's nor
 * mmap_lock nor a VMA's: who waits for them may hold these.
 * Callers: prune.c (leave); populate.c (free some); file.c, destroy.c, object.c (finish).
 */
#include <linux/init.h>
#include <linux/list.h>
#include <linux/mm.h>
#include <linux/mutex.h>
#include <linux/workqueue.h>

#include "morsel.h"

/* Of a table, and all that it can lead to. */
#define MORSEL_TABLE_WEIGHT	(PTRS_PER_PTE + 1)

/* One piece: tables, 64 MiB of memory; or single pages. */
#define MORSEL_PIECE_TABLES	32U
#define MORSEL_PIECE_PAGES	1024U
#define MORSEL_PIECE_WEIGHT	(MORSEL_PIECE_TABLES * MORSEL_TABLE_WEIGHT)

/* Of all morsels: pages and tables, as if each table was full. */
static atomic_long_t morsel_waiting = ATOMIC_LONG_INIT(0);

/* Add what one has to another. */
static void morsel_gather_move(struct morsel_gather *to,
			       struct morsel_gather *from)
{
	list_splice_tail_init(&from->tables, &to->tables);
	list_splice_tail_init(&from->middles, &to->middles);
	list_splice_tail_init(&from->pages, &to->pages);
	to->nr_tables += from->nr_tables;
	to->nr_middles += from->nr_middles;
	to->nr_below += from->nr_below;
	to->cuts += from->cuts;
	from->nr_tables = 0;
	from->nr_middles = 0;
	from->nr_below = 0;
	from->cuts = 0;
}

static long morsel_weight(struct morsel *m, const struct morsel_gather *g)
{
	return ((g->cuts - g->nr_tables - g->nr_middles) << morsel_page_order(m)) +
	       (g->nr_tables + g->nr_below) * MORSEL_TABLE_WEIGHT;
}

static bool morsel_waits_too_much(long waiting)
{
	CF_MUTATION(morsel_waits_unbounded, return false);
	return waiting > READ_ONCE(morsel_limit) / 8;
}

static void morsel_wait_over(struct morsel *m, long weight)
{
	atomic_long_sub(weight, &m->waiting);
	atomic_long_sub(weight, &morsel_waiting);
}

/**
 * morsel_leave() - leave what was cut to others
 * @m: the morsel
 * @g: what it is; all who map it have flushed
 *
 * Context: may sleep; the inode lock, so that the object is not being destroyed.
 * Return: false: too much waits, the caller has to clean.
 */
bool morsel_leave(struct morsel *m, struct morsel_gather *g)
{
	long weight = morsel_weight(m, g);
	unsigned int i, nr = 0;

	/* A table that led nowhere has no weight, and is to rest all the same. */
	if (g->cuts)
		nr = clamp_t(long, DIV_ROUND_UP(weight, MORSEL_PIECE_WEIGHT), 1,
			     MORSEL_CLEANERS);
	if (morsel_waits_too_much(atomic_long_add_return(weight,
							 &morsel_waiting))) {
		atomic_long_sub(weight, &morsel_waiting);
		return false;
	}
	atomic_long_add(weight, &m->waiting);
	spin_lock(&m->left_lock);
	morsel_gather_move(&m->left, g);
	spin_unlock(&m->left_lock);
	for (i = 0; i < nr; i++)
		queue_work(morsel_wq, &m->cleaners[i].work);
	return true;
}

/* Take the first of a list, at most @most; return how many. */
static unsigned long morsel_take(struct list_head *from, struct list_head *to,
				 unsigned int most)
{
	struct list_head *last = from;
	unsigned long nr = 0;

	INIT_LIST_HEAD(to);
	while (nr < most && last->next != from) {
		last = last->next;
		nr++;
	}
	list_cut_position(to, from, last);
	return nr;
}

/*
 * Take tables of pages out of the first one of level 2, which stays until it has none; it is a part
 * of the piece then, and can rest.
 */
static void morsel_take_below(struct morsel_gather *left, struct morsel_gather *g)
{
	struct ptdesc *middle = list_first_entry_or_null(&left->middles,
							 struct ptdesc, pt_list);

	if (!middle)
		return;
	g->nr_tables = morsel_open_middle(middle, &g->tables, MORSEL_PIECE_TABLES);
	g->cuts = g->nr_tables;
	left->nr_below -= g->nr_tables;
	if (!morsel_middle_is_open(middle))
		return;
	list_move_tail(&middle->pt_list, &g->middles);
	left->nr_middles--;
	left->cuts--;
	g->nr_middles++;
	g->cuts++;
}

/* Take a piece; true: there are more. */
static bool morsel_take_piece(struct morsel *m, struct morsel_gather *g)
{
	struct morsel_gather *left = &m->left;
	bool more;

	morsel_gather_init(g);
	spin_lock(&m->left_lock);
	g->nr_tables = morsel_take(&left->tables, &g->tables,
				   MORSEL_PIECE_TABLES);
	g->cuts = g->nr_tables;
	left->nr_tables -= g->nr_tables;
	left->cuts -= g->nr_tables;
	if (!g->cuts)
		morsel_take_below(left, g);
	if (!g->cuts) {
		g->cuts = morsel_take(&left->pages, &g->pages, MORSEL_PIECE_PAGES);
		left->cuts -= g->cuts;
	}
	more = left->cuts;
	/* Else a worker would look for it for ever. */
	VM_WARN_ON_ONCE(more && !g->cuts);
	spin_unlock(&m->left_lock);
	return more;
}

static void morsel_take_all(struct morsel *m, struct morsel_gather *g)
{
	spin_lock(&m->left_lock);
	morsel_gather_move(g, &m->left);
	spin_unlock(&m->left_lock);
}

static void morsel_clean_piece(struct morsel *m, struct morsel_gather *g)
{
	long weight = morsel_weight(m, g);

	if (!g->cuts)
		return;
	morsel_clean_pause();
	morsel_clean(m, g);
	morsel_wait_over(m, weight);
}

static void morsel_clean_work(struct work_struct *work)
{
	struct morsel_cleaner *cleaner =
		container_of(work, struct morsel_cleaner, work);
	struct morsel_gather g;
	bool more;

	morsel_clean_pause();
	more = morsel_take_piece(cleaner->m, &g);
	morsel_clean_piece(cleaner->m, &g);
	if (more)
		queue_work(morsel_wq, work);
}

static void morsel_finish_begin(struct morsel *m)
{
	CF_MUTATION(morsel_finish_beside, return);
	mutex_lock(&m->finishing);
}

static void morsel_finish_end(struct morsel *m)
{
	CF_MUTATION(morsel_finish_beside, return);
	mutex_unlock(&m->finishing);
}

/**
 * morsel_finish() - nothing waits that was left before
 * @m: the morsel
 *
 * Context: may sleep; no lock of a table, and not i_mmap.
 */
void morsel_finish(struct morsel *m)
{
	struct morsel_gather g;
	unsigned int i;

	morsel_gather_init(&g);
	morsel_finish_begin(m);
	morsel_take_all(m, &g);
	morsel_clean_piece(m, &g);
	for (i = 0; i < MORSEL_CLEANERS; i++)
		flush_work(&m->cleaners[i].work);
	morsel_finish_end(m);
}

/**
 * morsel_has_left() - does something wait to be freed?
 * @m: the morsel
 */
bool morsel_has_left(struct morsel *m)
{
	return atomic_long_read(&m->waiting);
}

/**
 * morsel_free_some() - somebody needs memory that waits
 * @m: the morsel
 *
 * Context: as morsel_finish().
 * Return: true: more may wait; false: nothing that was left before.
 */
bool morsel_free_some(struct morsel *m)
{
	struct morsel_gather g;

	morsel_finish_begin(m);
	morsel_take_piece(m, &g);
	morsel_clean_piece(m, &g);
	morsel_finish_end(m);
	if (g.cuts)
		return true;
	/* Others have the last ones. */
	morsel_finish(m);
	return false;
}

/* It may have queued itself while it was waited for; see the top. */
static void morsel_cancel(struct work_struct *work)
{
	CF_MUTATION(morsel_cleaner_stays, return);
	cancel_work_sync(work);
}

/**
 * morsel_async_end() - the object goes
 * @m: the object, of which nothing is left to others any more
 *
 * Context: as morsel_finish().
 */
void morsel_async_end(struct morsel *m)
{
	unsigned int i;

	CF_MUTATION(morsel_end_hasty, return);
	morsel_finish(m);
	for (i = 0; i < MORSEL_CLEANERS; i++) {
		morsel_cancel(&m->cleaners[i].work);
		WARN_ON_ONCE(work_busy(&m->cleaners[i].work));
	}
}

/**
 * morsel_async_setup() - nothing waits in a new object
 * @m: the object
 */
void morsel_async_setup(struct morsel *m)
{
	unsigned int i;

	mutex_init(&m->finishing);
	spin_lock_init(&m->left_lock);
	morsel_gather_init(&m->left);
	atomic_long_set(&m->waiting, 0);
	for (i = 0; i < MORSEL_CLEANERS; i++) {
		m->cleaners[i].m = m;
		INIT_WORK(&m->cleaners[i].work, morsel_clean_work);
	}
}
