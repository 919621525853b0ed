// SPDX-License-Identifier: GPL-2.0
/*
 * Depopulation: memory leaves a morsel, byte by byte where it has to, and by subtrees where
 * it can.
 *
 * Of each range the highest entries are cut that lead to nothing else: that of 512 GiB where units
 * have 256 TiB, that of a GiB where they have 512 GiB or more (rest.c), those of tables of pages,
 * and at the ends those of single pages. Roots stay, and tables above those of pages wait to be
 * used again, which is 4 KiB for a GiB. What is left of a page at the ends is zeroed, before.
 *
 * Huge pages are cut one by one; what is left of one at the ends is zeroed as well.
 *
 * What copies lead to as well stays for them (own.c): a table of which all goes is only counted
 * down, after the flush; of one of which a part goes the morsel gets its own before.
 *
 *   begin	i_mmap is held from here: who maps the morsel stays, or comes too late
 *		to see what is cut. Secondary MMUs are told.
 *   cut	all ranges of the call. Nothing is allocated: pages and tables are
 *		linked by fields of their own.
 *   flush	each process once, for all
 *   end	i_mmap is free again
 *   clean	what was cut is freed, or left to others
 *
 * Locks: those of the tables, one at a time; see tree.c. Callers: file.c, object.c.
 */
#include <linux/highmem.h>
#include <linux/mm.h>
#include <linux/pagemap.h>

#include "morsel.h"

/* Others lead to it, too. There is room, see morsel_drops_room(). */
static void morsel_drop(struct morsel_gather *g, unsigned long what)
{
	g->drops->what[g->drops->nr++] = what;
	g->drops->tables |= what & 1;
	g->dropped++;
}

/* What was dropped is nobody's to clean: who waited for it would wait for ever. */
static void morsel_drops_forget(struct morsel_gather *g)
{
	CF_MUTATION(morsel_dropped_left, return);
	g->cuts -= g->dropped;
	g->dropped = 0;
}

/* What is dropped takes room: flush for it now if there is none for as much as one step takes. */
static void morsel_drops_room(struct morsel *m, struct morsel_gather *g)
{
	if (!g->drops || !g->drops->nr)
		return;
	CF_MUTATION(morsel_drop_hasty, morsel_drops_put(m, g->drops); return);
	morsel_flush(m, 0, U64_MAX, g->drops->tables);
	morsel_drops_put(m, g->drops);
}

/* One step: all that there is, or as much as there is room for. */
static u64 morsel_step(struct morsel_gather *g, u64 all, u64 each)
{
	return g->drops ? MORSEL_DROPS * each : all;
}

/* A page leaves a table whose lock is held. */
static void morsel_cut_page(unsigned long *entry, struct morsel_gather *g)
{
	unsigned long leaf = xchg(entry, 0);

	if (!leaf || morsel_leaf_is_broken(leaf))
		return;
	g->cuts++;
	if (g->drops && morsel_page_is_shared(morsel_leaf_page(leaf)))
		morsel_drop(g, (unsigned long)morsel_leaf_page(leaf));
	else
		list_add_tail(&morsel_leaf_page(leaf)->lru, &g->pages);
}

/* Pages of one table; @above is in a table with lock @lock, and leads there. */
static void morsel_cut_pages(struct morsel *m, unsigned long *above,
			     spinlock_t *lock, u64 start, u64 end,
			     struct morsel_gather *g)
{
	unsigned int i, from = morsel_index(start, m->base);
	unsigned long *table;
	spinlock_t *ptl; /* of @table */

	table = morsel_lock_leaves(above, &ptl);
	if (!table) {
		/* Whoever makes one from now on sees the size of the object. */
		spin_lock(lock);
		spin_unlock(lock);
		return;
	}
	for (i = 0; i < (end - start) >> morsel_shift(m->base); i++)
		morsel_cut_page(table + from + i, g);
	if (morsel_is_huge(m))
		morsel_lost_forget(m, start, end);
	morsel_unlock_leaves(ptl);
}

static void morsel_cut_table(unsigned long *entry, struct morsel_gather *g)
{
	unsigned long old = xchg(entry, 0);

	if (!old)
		return;
	g->cuts++;
	morsel_below_add(entry, -1);
	if (g->drops && morsel_table_is_shared(morsel_table(old))) {
		morsel_drop(g, (unsigned long)morsel_table(old) | 1);
		return;
	}
	list_add_tail(&virt_to_ptdesc(morsel_table(old))->pt_list, &g->tables);
	g->nr_tables++;
}

/*
 * A range below one table of level 2: whole tables of pages, and pages at the ends. Roots
 * are below the top, and are not cut.
 */
static void morsel_cut_tables(struct morsel *m, unsigned long *table,
			      u64 start, u64 end, struct morsel_gather *g)
{
	spinlock_t *lock = morsel_lockptr(m, table, 2);
	u64 at = start, next;

	for (; at < end; at = next) {
		unsigned long *entry = table + morsel_index(at, 2);
		u64 stop;

		morsel_drops_room(m, g);
		next = min(end, (at | (PMD_SIZE - 1)) + 1);
		if (next - at < PMD_SIZE || table == m->top) {
			next = min(next, at + morsel_step(g, PMD_SIZE, PAGE_SIZE));
			morsel_cut_pages(m, entry, lock, at, next, g);
			cond_resched();
			continue;
		}
		stop = min(end, at + morsel_step(g, PUD_SIZE, PMD_SIZE));
		spin_lock(lock);
		/* Somebody else has cut all of it meanwhile. */
		if (!morsel_is_linked(m, at, table, 2)) {
			spin_unlock(lock);
			return;
		}
		for (; stop - at >= PMD_SIZE; at += PMD_SIZE, entry++)
			morsel_cut_table(entry, g);
		spin_unlock(lock);
		next = at;
	}
}

/* A range of huge pages, whose tables are never cut. */
static void morsel_cut_huge(struct morsel *m, u64 start, u64 end,
			    struct morsel_gather *g)
{
	unsigned int level = m->base + 1;
	u64 at, next;

	for (at = start; at < end; at = next) {
		unsigned long *above = morsel_above(m, at);
		spinlock_t *lock = &m->lock;

		next = min(end, (at | (morsel_span(level) - 1)) + 1);
		if (above) {
			if (level <= m->level)
				lock = morsel_lockptr(m, PTR_ALIGN_DOWN(above, PAGE_SIZE),
						      level);
			morsel_cut_pages(m, above, lock, at, next, g);
		} else {
			next = min(end, morsel_gap_end(m, at));
			/* As there. */
			spin_lock(lock);
			spin_unlock(lock);
		}
		cond_resched();
	}
}

/* Of an entry that is to be cut at the begin of a range: its table; 0: of none that rest. */
static unsigned int morsel_cut_level(struct morsel *m, u64 start, u64 end,
				     const struct morsel_gather *g)
{
	unsigned int level;

	if (g->drops)
		return 0;
	for (level = m->level; morsel_may_rest(m, level); level--)
		if (IS_ALIGNED(start, morsel_span(level)) &&
		    end - start >= morsel_span(level))
			return level;
	return 0;
}

/* A range of whole pages. */
static void morsel_cut(struct morsel *m, u64 start, u64 end,
		       struct morsel_gather *g)
{
	u64 at, next;

	if (morsel_is_huge(m)) {
		morsel_cut_huge(m, start, end, g);
		return;
	}
	for (at = start; at < end; at = next) {
		unsigned int level = morsel_cut_level(m, at, end, g);
		unsigned long *entry;

		if (level) {
			next = at + morsel_span(level);
			morsel_cut_upper(m, at, level, g);
			cond_resched();
			continue;
		}
		/* As far as a table of level 2 reaches. */
		next = min(end, (at | (PUD_SIZE - 1)) + 1);
		entry = morsel_entry(m, at, 2);
		if (!entry) {
			next = min(end, morsel_gap_end(m, at));
			/* As in morsel_cut_pages(). */
			spin_lock(&m->lock);
			spin_unlock(&m->lock);
			cond_resched();
			continue;
		}
		entry -= morsel_index(at, 2);
		morsel_cut_tables(m, entry, at, next, g);
		cond_resched();
	}
}

/**
 * morsel_zero() - a part of a page
 * @m: the morsel
 * @start: first byte
 * @end: behind the last one
 */
void morsel_zero(struct morsel *m, u64 start, u64 end)
{
	u64 next;

	for (; start < end; start = next) {
		struct page *page = morsel_get_page(m, start);

		next = min(end, round_down(start, PAGE_SIZE) + PAGE_SIZE);
		if (IS_ERR_OR_NULL(page))
			return;
		memzero_page(page, offset_in_page(start), next - start);
		put_page(page);
		CF_MUTATION(morsel_huge_ends, return);
		cond_resched();
	}
}

/**
 * morsel_whole_pages() - the whole pages of a range
 * @m: the morsel
 * @start: first byte; set to the first page
 * @end: behind the last byte; set to the end of the last page
 * @zero: and zero what is left of others at its ends
 *
 * Return: false: there are none.
 */
bool morsel_whole_pages(struct morsel *m, u64 *start, u64 *end, bool zero)
{
	u64 first = morsel_page_end(m, *start);
	u64 last = morsel_page_start(m, *end);

	/* Nothing is behind the end. */
	if (*end == i_size_read(&m->inode))
		last = morsel_page_end(m, *end);
	if (first > last) {
		if (zero)
			morsel_zero(m, *start, *end);
		return false;
	}
	if (zero && *start < first)
		morsel_zero(m, *start, first);
	if (zero && last < *end)
		morsel_zero(m, last, *end);
	*start = first;
	*end = last;
	return first < last;
}

/* The page of a byte that is to be zeroed, and tables of which only a part goes. */
static int morsel_own_end(struct morsel *m, u64 at)
{
	int err = 0;

	/* Behind the end there is nothing that could stay. */
	if (at >= round_up(i_size_read(&m->inode), PAGE_SIZE))
		return 0;
	if (at & (PMD_SIZE - 1) && m->level > 1)
		err = morsel_open(m, at);
	if (!err && offset_in_page(at))
		err = morsel_own_page(m, at);
	return err;
}

/**
 * morsel_end() - behind the last byte of all that a morsel can have
 * @m: the morsel
 *
 * Whole tables, if some may be shared: those are cut, and not copied for their rest.
 */
u64 morsel_end(struct morsel *m)
{
	u64 size = i_size_read(&m->inode);

	return m->shares && m->level > 1 ? round_up(size, PMD_SIZE) :
					   morsel_page_end(m, size);
}

/**
 * morsel_own_ends() - what stays of tables and pages at the ends of a range is the morsel's own
 * @m: the morsel; its inode lock is held
 * @range: the range
 *
 * Context: may sleep.
 * Return: 0; -ENOMEM, -EDQUOT, -EHWPOISON, -EINTR as morsel_own_page().
 */
int morsel_own_ends(struct morsel *m, const struct morsel_range *range)
{
	u64 end = range->offset + range->length;
	int err;

	CF_MUTATION(morsel_copy_ends, return 0);
	if (!m->shares)
		return 0;
	err = morsel_own_end(m, range->offset);
	/* The last page goes as a whole, and what is behind it. */
	if (err || end == i_size_read(&m->inode))
		return err;
	return morsel_own_end(m, end);
}

static void morsel_cut_range(struct morsel *m, const struct morsel_range *range,
			     struct morsel_gather *g)
{
	u64 start = range->offset, end = range->offset + range->length;

	if (!morsel_whole_pages(m, &start, &end, false))
		return;
	if (end >= i_size_read(&m->inode))
		end = max(end, morsel_end(m));
	morsel_cut(m, start, end, g);
}

/**
 * morsel_depopulate() - take memory from a morsel
 * @m: the morsel
 * @ranges: which; all within its size
 * @nr: so many
 * @async: the memory may be free later
 *
 * Context: may sleep; no lock is held but the inode's, which has to be exclusive where pages
 * may be given up without a flush (epochs.c).
 * Return: 0: all users see zeroes in the ranges; or an error of morsel_own_ends(), which a
 * morsel that shares nothing has not: nothing was taken.
 */
int morsel_depopulate(struct morsel *m, const struct morsel_range *ranges,
		      unsigned int nr, bool async)
{
	/* From the first byte to the last one. */
	u64 start = U64_MAX, end = 0;
	struct morsel_drops drops = { };
	struct morsel_gather g;
	unsigned int i;
	int err;

	morsel_gather_init(&g);
	if (m->shares)
		g.drops = &drops;
	for (i = 0; i < nr; i++) {
		start = min(start, morsel_page_start(m, ranges[i].offset));
		end = max(end, morsel_page_end(m, ranges[i].offset +
						  ranges[i].length));
	}
	if (!m->level || start >= end)
		return 0;
	for (i = 0; i < nr; i++) {
		err = morsel_own_ends(m, &ranges[i]);
		if (err)
			return err;
	}
	/* It may be much, and nobody has to wait for it. */
	for (i = 0; i < nr; i++) {
		u64 from = ranges[i].offset, to = from + ranges[i].length;

		morsel_whole_pages(m, &from, &to, true);
	}
	morsel_epoch_settle(m);
	morsel_flush_begin(m, start, end);
	for (i = 0; i < nr; i++)
		morsel_cut_range(m, &ranges[i], &g);
	if (morsel_must_flush(m, g.cuts))
		morsel_flush(m, start, end, drops.tables);
	morsel_unlink_end(m, &g);
	morsel_flush_end(m, start, end);
	morsel_drops_put(m, &drops);
	atomic_long_add(g.cuts, &m->cuts);
	morsel_drops_forget(&g);
	morsel_open_uppers(m, &g);
	if (!async || !morsel_leave(m, &g))
		morsel_clean(m, &g);
	return 0;
}
