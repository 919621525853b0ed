// SPDX-License-Identifier: GPL-2.0
/*
 * The tree of a morsel: entries are made, installed and read here, found in way.c, and cut in
 * prune.c.
 *
 * Into a table one installs under its lock (M2):
 *
 *   installs				cuts			frees
 *   reads the entry E above T		lock of E's table
 *   locks T				xchg(E, 0)
 *   E still leads to T? no: again	unlock
 *   size of the object?		flush			locks T
 *   sets the entry in T					takes all entries of T
 *   unlocks T						unlocks T
 *
 * If the look at E comes before the xchg(), the entry is in T before T's lock is
 * free, and who frees finds it; no CPU has reached it by a table that is flushed for.
 * Without the look a page would go into a table that nobody finds again.
 *
 * An object shrinks by a new size, then a cut of what is behind it, under the lock of
 * each table that leads there or could. Who installs has either been there before, and
 * is cut, or sees the size.
 *
 * The table of E may be cut itself. Then E goes later, and what the others do in the meantime is
 * as if it had come before; but no table comes there any more (rest.c).
 *
 * T itself is there as long as RCU's read side is held; its lock is in its descriptor.
 *
 * Locks: see above. Callers: fault.c, file.c, populate.c, prune.c, steal.c, map.c.
 */
#include <linux/delay.h>
#include <linux/err.h>
#include <linux/mm.h>
#include <linux/pagemap.h>
#include <linux/rcupdate.h>

#include "morsel.h"

#ifdef CONFIG_CEASEFIRE_DEBUG
static void morsel_install_pause(void)
{
	u32 us = READ_ONCE(cf_install_delay_us);

	if (us)
		mdelay(us / USEC_PER_MSEC);
}
#else
static void morsel_install_pause(void) { }
#endif

/**
 * morsel_leaf_at() - the entry of a page
 * @m: the morsel
 * @table: its table, which is locked
 * @offset: in bytes
 *
 * Return: its value, also for one that was broken and has no entry.
 */
unsigned long morsel_leaf_at(struct morsel *m, unsigned long *table, u64 offset)
{
	unsigned long leaf = table[morsel_index(offset, m->base)];

	return leaf || !morsel_is_huge(m) ? leaf : morsel_lost_leaf(m, offset);
}

/* Is the table that was locked still the one? */
static bool morsel_is_cut(unsigned long *above, unsigned long found)
{
	CF_MUTATION(morsel_no_look, return false);
	return !morsel_same(READ_ONCE(*above), found);
}

static __always_inline unsigned long *
__morsel_lock_leaves(unsigned long *above, spinlock_t **ptl, bool installs)
{
	unsigned long found, *table;

	rcu_read_lock();
	for (;;) {
		found = READ_ONCE(*above);
		if (!found)
			break;
		table = morsel_table(found);
		if (installs)
			morsel_install_pause();
		*ptl = ptlock_ptr(virt_to_ptdesc(table));
		spin_lock(*ptl);
		if (likely(!morsel_is_cut(above, found))) {
			/* Sparse cannot be told of locks that are held if there is a table. */
			__release(*ptl);
			__release(RCU);
			return table;
		}
		spin_unlock(*ptl);
	}
	rcu_read_unlock();
	return NULL;
}

/**
 * morsel_lock_leaves() - lock a table of pages
 * @above: the entry that leads to it
 * @ptl: set to its lock
 *
 * Also RCU's read side, until morsel_unlock_leaves().
 *
 * Return: the table, or NULL: there is none.
 */
unsigned long *morsel_lock_leaves(unsigned long *above, spinlock_t **ptl)
{
	return __morsel_lock_leaves(above, ptl, false);
}

void morsel_unlock_leaves(spinlock_t *ptl)
{
	__acquire(RCU);
	__acquire(ptl);
	spin_unlock(ptl);
	rcu_read_unlock();
}

/* Is a byte part of the object? Under the lock of the table that is to lead to it. */
static bool morsel_is_inside(struct morsel *m, u64 offset)
{
	CF_MUTATION(morsel_any_size, return true);
	return offset < morsel_page_end(m, i_size_read(&m->inode));
}

/* May an entry lead to a new table? Under the lock of its table. */
static int morsel_may_make(struct morsel *m, u64 offset, unsigned int level,
			   unsigned long *entry)
{
	if (!morsel_is_inside(m, offset))
		return -ENXIO;
	if (morsel_is_copied(m))
		return -EMLINK;
	if (!morsel_is_linked(m, offset, entry, level))
		return -EAGAIN;
	return morsel_leads(READ_ONCE(*entry)) ? -EEXIST : 0;
}

/*
 * A table below an entry: @table, or one that was there before. Returns what is left over. There
 * may be none if one has rested just before, and somebody else has taken it.
 */
static struct ptdesc *morsel_set_table(struct morsel *m, unsigned int level,
				       unsigned long *entry, struct ptdesc *table)
{
	struct ptdesc *rested = morsel_wake(m, entry, level);
	struct ptdesc *set = rested ?: table;

	CF_MUTATION_IF(morsel_below_hasty, !set && level == 3,
		       morsel_below_add(entry, 1));
	if (!set)
		return NULL;
	/* It is empty before it can be found. */
	smp_wmb();
	WRITE_ONCE(*entry, __pa(ptdesc_address(set)) | _PAGE_TABLE);
	if (level == m->level + 1)
		__set_bit(entry - m->top, m->roots);
	else if (level < 4)
		morsel_below_add(entry, 1);
	return rested ? table : NULL;
}

/* A table below an entry; somebody else may have made one meanwhile. */
static int morsel_make_table(struct morsel *m, u64 offset, unsigned int level,
			     unsigned long *entry)
{
	unsigned long *in = level == m->level + 1 ? m->top :
		(unsigned long *)((unsigned long)entry & PAGE_MASK);
	spinlock_t *lock = morsel_lockptr(m, in, level);
	struct ptdesc *table = NULL;
	int err;

	if (!morsel_rests(m, entry, level))
		table = morsel_table_alloc(m, level - 1);
	if (IS_ERR(table))
		return PTR_ERR(table);
	if (morsel_may_rest(m, level + 1))
		morsel_install_pause();
	spin_lock(lock);
	err = morsel_may_make(m, offset, level, entry);
	if (!err)
		table = morsel_set_table(m, level, entry, table);
	spin_unlock(lock);
	if (table)
		morsel_table_discard(m, table, level - 1);
	return err == -EEXIST ? 0 : err;
}

/**
 * morsel_make_tables() - make the tables that lead to a page
 * @m: the morsel, which has a unit
 * @offset: of the page
 *
 * Context: may sleep.
 * Return: 0; -EAGAIN: somebody cuts them meanwhile; -ENOMEM, -EDQUOT: no memory, or a limit;
 * -ENXIO: the object is smaller; -EMLINK: it is being copied, see morsel_open().
 */
int morsel_make_tables(struct morsel *m, u64 offset)
{
	unsigned int level;

	for (level = m->level + 1; level > m->base; level--) {
		unsigned long *entry = morsel_entry(m, offset, level);
		int err;

		if (!entry)
			return -EAGAIN;
		if (morsel_leads(READ_ONCE(*entry)))
			continue;
		err = morsel_make_table(m, offset, level, entry);
		if (err)
			return err;
	}
	return 0;
}

/* All rights but execution: those of a mapping are above. No bit is left to set. */
static unsigned long morsel_leaf(struct page *page)
{
	pgprot_t prot = vm_get_page_prot(VM_READ | VM_WRITE | VM_SHARED);

	return pte_val(pte_mkdirty(pte_mkyoung(pte_mkwrite_novma(mk_pte(page,
									prot)))));
}

/**
 * morsel_adopt() - a page is to be at an offset
 * @m: the morsel
 * @offset: in bytes
 * @page: the page, of morsel_block_alloc()
 *
 * Return: the entry; what was written to the page is seen before it.
 */
unsigned long morsel_adopt(struct morsel *m, u64 offset, struct page *page)
{
	set_page_private(page, 0);
	page->index = offset >> PAGE_SHIFT;
	/* Who finds the mapping finds the index, see poison.c. */
	smp_store_release(&page->mapping, m->inode.i_mapping);
	SetPageUptodate(page);
	/* The contents before the entry. */
	smp_wmb();
	return morsel_is_huge(m) ? morsel_huge_leaf(morsel_leaf(page)) :
				   morsel_leaf(page);
}

/**
 * morsel_install() - pages become part of a morsel
 * @m: the morsel
 * @offset: of the first one
 * @page: the first one, of morsel_block_alloc()
 * @nr: so many, for one table; 1, if they are huge
 *
 * What there is no room for is discarded.
 *
 * Return: 0; -EAGAIN: the table is gone; -ENXIO: the object is smaller; -EBUSY: what was there may
 * be reached, see morsel_epoch_wait(); -EMLINK: the table is shared, see morsel_open(). Then all
 * are discarded.
 */
int morsel_install(struct morsel *m, u64 offset, struct page *page,
		   unsigned int nr)
{
	unsigned long *above = morsel_above(m, offset);
	unsigned long *table, leaf = 0;
	unsigned int i, at = morsel_index(offset, m->base);
	DECLARE_BITMAP(installed, PTRS_PER_PTE);
	spinlock_t *ptl; /* of @table */
	int err = -EAGAIN;

	bitmap_zero(installed, PTRS_PER_PTE);
	table = above ? __morsel_lock_leaves(above, &ptl, true) : NULL;
	if (!table)
		goto discard;
	err = -EMLINK;
	if (!morsel_is_open(m, table))
		goto unlock;
	err = -ENXIO;
	for (i = 0; i < nr; i++) {
		unsigned long old = morsel_leaf_at(m, table,
						   offset + i * PAGE_SIZE);

		if (!morsel_is_inside(m, offset + i * PAGE_SIZE))
			break;
		if (morsel_leaf_is_there(old))
			continue;
		if (unlikely(old && morsel_is_owed(m, old)) &&
		    !morsel_is_own(page + i, offset + i * PAGE_SIZE,
				   morsel_leaf_mark(old))) {
			err = -EBUSY;
			break;
		}
		leaf = morsel_adopt(m, offset + i * PAGE_SIZE, page + i);
		WRITE_ONCE(table[at + i], leaf);
		__set_bit(i, installed);
	}
	if (i)
		err = 0;
unlock:
	morsel_unlock_leaves(ptl);
discard:
	for_each_clear_bit(i, installed, nr)
		morsel_page_discard(m, page + i);
	return err;
}

/**
 * morsel_find() - the next pages that are there, or not there
 * @m: the morsel
 * @offset: where to begin; set to where they begin
 * @end: where to end
 * @present: what is looked for
 *
 * Return: how many times 4 KiB, within one table; 0: none up to @end.
 */
unsigned int morsel_find(struct morsel *m, u64 *offset, u64 end, bool present)
{
	u64 page = morsel_page_size(m);

	while (*offset < end) {
		u64 stop = min(end, (*offset | (morsel_span(m->base + 1) - 1)) + 1);
		unsigned long *above = morsel_above(m, *offset);
		unsigned long *table = NULL;
		unsigned int nr = 0;
		spinlock_t *ptl; /* of @table */

		if (above)
			table = morsel_lock_leaves(above, &ptl);
		if (!table) {
			if (!present)
				return (stop - *offset) >> PAGE_SHIFT;
			if (!above)
				stop = min(end, morsel_gap_end(m, *offset));
			*offset = stop;
			cond_resched();
			continue;
		}
		while (*offset < stop &&
		       morsel_leaf_is_there(morsel_leaf_at(m, table, *offset)) !=
		       present)
			*offset += page;
		while (*offset + nr * page < stop &&
		       morsel_leaf_is_there(morsel_leaf_at(m, table, *offset +
							   nr * page)) ==
		       present)
			nr++;
		morsel_unlock_leaves(ptl);
		if (nr)
			return nr << morsel_page_order(m);
		cond_resched();
	}
	return 0;
}

/**
 * morsel_get_page() - the page at an offset
 * @m: the morsel
 * @offset: in bytes
 *
 * Return: its 4 KiB, with a reference, or NULL: there is none; -EIO: it was broken.
 */
struct page *morsel_get_page(struct morsel *m, u64 offset)
{
	unsigned long *above = m->level ? morsel_above(m, offset) : NULL;
	struct page *page = NULL;
	unsigned long *table, leaf;
	spinlock_t *ptl; /* of @table */

	table = above ? morsel_lock_leaves(above, &ptl) : NULL;
	if (!table)
		return NULL;
	leaf = morsel_leaf_at(m, table, offset);
	if (!morsel_leaf_is_there(leaf)) {
		page = NULL;
	} else if (morsel_leaf_is_broken(leaf)) {
		page = ERR_PTR(-EIO);
		CF_MUTATION(morsel_reads_broken, page = NULL);
	} else {
		page = nth_page(morsel_leaf_page(leaf),
				(offset - morsel_page_start(m, offset)) >> PAGE_SHIFT);
		get_page(page);
	}
	morsel_unlock_leaves(ptl);
	return page;
}

/* The entry of a page as it is now; 0: there is no table. */
static unsigned long morsel_leaf_now(struct morsel *m, u64 offset)
{
	unsigned long *above = morsel_above(m, offset);
	unsigned long *table, leaf;
	spinlock_t *ptl; /* of @table */

	table = above ? morsel_lock_leaves(above, &ptl) : NULL;
	if (!table)
		return 0;
	leaf = morsel_leaf_at(m, table, offset);
	morsel_unlock_leaves(ptl);
	return leaf;
}

/**
 * morsel_look() - is there a page at an offset?
 * @m: the morsel, which has a unit
 * @offset: in bytes
 *
 * Return: 1: there is one; 0: there is none; -EHWPOISON: it was broken.
 */
int morsel_look(struct morsel *m, u64 offset)
{
	unsigned long leaf = morsel_leaf_now(m, offset);

	if (!morsel_leaf_is_there(leaf))
		return 0;
	return morsel_leaf_is_broken(leaf) ? -EHWPOISON : 1;
}

/**
 * morsel_owed_mark() - the mark of an offset that is not settled
 * @m: the morsel, which has a unit
 * @offset: in bytes
 *
 * Return: the mark, or 0: another page may be there.
 */
u64 morsel_owed_mark(struct morsel *m, u64 offset)
{
	unsigned long leaf = morsel_leaf_now(m, offset);

	return morsel_leaf_is_marked(leaf) && morsel_is_owed(m, leaf) ?
	       morsel_leaf_mark(leaf) : 0;
}
