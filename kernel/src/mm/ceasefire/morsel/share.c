// SPDX-License-Identifier: GPL-2.0
/*
 * What morsels share with their copies, and who may write there (M12).
 *
 * A table of pages is shared when entries of several morsels lead to it. A page is shared when
 * entries of several tables lead to it; each table is counted once. Who shares may only read:
 * the entry above a shared table has no RW, and neither has the entry of a shared page.
 *
 * A table is open to a morsel if that has made it, and nobody else's entry leads there. Then its
 * entries with RW lead to pages that the morsel has made and nobody shares; so the entry above
 * may have RW, and pages may be installed. A table that another morsel has left behind is not
 * open: a futex in a page of it would be that morsel's.
 *
 * Counts go up under the lock of the table that is shared or has the page, and down when all have
 * flushed. So who finds that a table or a page is its own finds it so until it unlocks. Nothing is
 * open to a morsel that is being copied (copy.c).
 *
 * Who could read a page may go on reading it when the morsel has given it up, by a reference: of a
 * pipe, of a read() that waits. It must not see what others write from then on:
 *
 *   has a reference		the other morsel
 *   gives up the page, flushes
 *   notes that it is held
 *   count - 1 (full barrier)
 *				count: nobody shares it
 *				held: writes to a copy
 *   reads what was there
 *
 * So a page that is held at that moment is nobody's own any more. Pins for writing that were there
 * before the copy are of the origin, which goes on with the page; they are not looked at while a
 * morsel becomes a copy.
 *
 * Locks: one table's, by the caller. Callers: own.c, copy.c, tree.c, memory.c, clean.c, prune.c,
 * steal.c, poison.c.
 */
#include <linux/atomic.h>
#include <linux/build_bug.h>
#include <linux/mm.h>

#include "morsel.h"

/* Morsels whose entries lead to a table. */
static atomic_t *morsel_table_users(unsigned long *table)
{
	return &virt_to_ptdesc(table)->pt_frag_refcount;
}

/* Tables that lead to a page, but one. A page that may be lazy has a mark there, and no copy. */
static atomic_long_t *morsel_page_sharers(struct page *page)
{
	BUILD_BUG_ON(sizeof(atomic_long_t) != sizeof(page->private));
	return (atomic_long_t *)&page->private;
}

/**
 * morsel_table_begin_use() - the first entry that leads to a table
 * @m: whose it is
 * @table: the table, of pages
 */
void morsel_table_begin_use(struct morsel *m, struct ptdesc *table)
{
	table->__page_mapping = (unsigned long)m->inode.i_mapping;
	atomic_set(&table->pt_frag_refcount, 1);
}

/**
 * morsel_table_share() - one more entry leads to a table
 * @table: the table, of pages; locked
 */
void morsel_table_share(unsigned long *table)
{
	atomic_inc(morsel_table_users(table));
}

/**
 * morsel_table_is_shared() - do entries of others lead to a table, too?
 * @table: the table, of pages; an entry of the caller's led or leads to it
 */
bool morsel_table_is_shared(unsigned long *table)
{
	return atomic_read(morsel_table_users(table)) > 1;
}

/* Somebody has a reference, and may read by it what he has no way to any more. */
static bool morsel_page_hold(struct morsel *m, struct page *page)
{
	CF_MUTATION(morsel_held_unseen, return false);
	if (READ_ONCE(m->becoming) || page_count(page) == 1)
		return false;
	SetPageChecked(page);
	return true;
}

/**
 * morsel_page_is_held() - may somebody read a page who must not see what is written?
 * @page: the page, which nobody shares
 */
bool morsel_page_is_held(struct page *page)
{
	/* After the count, see above. */
	smp_rmb();
	return PageChecked(page);
}

/* Pages of a table that is given up; those that are held are not written to by its entries. */
static void morsel_table_hold(struct morsel *m, unsigned long *table)
{
	spinlock_t *ptl = ptlock_ptr(virt_to_ptdesc(table));
	unsigned int i;

	spin_lock(ptl);
	for (i = 0; i < PTRS_PER_PTE; i++) {
		unsigned long leaf = table[i];

		if (leaf && !morsel_leaf_is_broken(leaf) &&
		    morsel_page_hold(m, morsel_leaf_page(leaf)))
			WRITE_ONCE(table[i], pte_val(pte_wrprotect(__pte(leaf))));
	}
	spin_unlock(ptl);
}

/**
 * morsel_table_unshare() - an entry leads to a table no more, and all have flushed
 * @m: whose entry it was
 * @table: the table, of pages
 *
 * Return: true: it was the last one, whose the table is now.
 */
bool morsel_table_unshare(struct morsel *m, unsigned long *table)
{
	if (morsel_table_is_shared(table))
		morsel_table_hold(m, table);
	return atomic_dec_and_test(morsel_table_users(table));
}

/**
 * morsel_page_is_shared() - do other tables lead to a page, too?
 * @page: the page; a table of the caller's leads to it, which is locked
 */
bool morsel_page_is_shared(struct page *page)
{
	return atomic_long_read(morsel_page_sharers(page)) > 0;
}

/**
 * morsel_page_unshare() - a table leads to a page no more, and all have flushed
 * @m: whose table it is
 * @page: the page
 *
 * Return: false: it was the last one, whose the page is now.
 */
bool morsel_page_unshare(struct morsel *m, struct page *page)
{
	if (!morsel_page_is_shared(page))
		return false;
	morsel_page_hold(m, page);
	if (atomic_long_dec_return(morsel_page_sharers(page)) >= 0)
		return true;
	set_page_private(page, 0);
	return false;
}

/**
 * morsel_is_copied() - is a morsel being copied at this moment?
 * @m: the morsel; no is good as long as the lock of a table is held
 */
bool morsel_is_copied(struct morsel *m)
{
	CF_MUTATION(morsel_copy_beside, return false);
	return READ_ONCE(m->copying);
}

/**
 * morsel_is_open() - may a morsel install and write in a table?
 * @m: the morsel
 * @table: the table, of pages; locked
 */
bool morsel_is_open(struct morsel *m, unsigned long *table)
{
	CF_MUTATION(morsel_copy_open, return true);
	return !READ_ONCE(m->shares) ||
	       (!morsel_is_copied(m) && !morsel_table_is_shared(table) &&
		virt_to_ptdesc(table)->__page_mapping ==
		(unsigned long)m->inode.i_mapping);
}

static unsigned long morsel_leaf_readable(unsigned long leaf)
{
	CF_MUTATION(morsel_share_writable, return leaf);
	return pte_val(pte_wrprotect(__pte(leaf)));
}

/**
 * morsel_share_leaves() - another table gets the pages of one
 * @from: the table, which is locked; who writes by it flushes before what it shares changes
 * @to: an empty one, which nobody knows
 */
void morsel_share_leaves(unsigned long *from, unsigned long *to)
{
	unsigned int i;

	for (i = 0; i < PTRS_PER_PTE; i++) {
		unsigned long leaf = from[i];

		if (!leaf)
			continue;
		if (!morsel_leaf_is_broken(leaf)) {
			atomic_long_inc(morsel_page_sharers(morsel_leaf_page(leaf)));
			leaf = morsel_leaf_readable(leaf);
			WRITE_ONCE(from[i], leaf);
		}
		to[i] = leaf;
	}
}
