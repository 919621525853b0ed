// SPDX-License-Identifier: GPL-2.0
/*
 * Memory failure: a page of a morsel is broken, and goes; the rest stays. A huge one goes as a
 * whole, and has no entry then (huge.c).
 *
 * Pages of morsels are on no LRU, so the way of other pages leaves them mapped. Here the entry
 * of the page becomes one that says so, for all who map the morsel: their accesses get SIGBUS,
 * read() and write() EIO. So nobody takes zeroes for what was lost. Depopulation takes that
 * entry away like any other, and a later access makes another page.
 *
 * Whose page it is: with a reference and under the folio's lock @mapping does not change, since
 * who frees pages takes that lock where there are more references than his own (memory.c). So
 * the inode and its file system are there; igrab() says whether the inode is about to go, and
 * @s_active keeps the file system, which at its end does not wait for inodes that others have.
 * In pages that are not ours the field may mean something else. So it is looked at before
 * anything is done to the page, as what may be no address, and pages with a type are left
 * out, page tables of morsels among them. All of it is asked again under the lock.
 *
 *   memory failure			depopulation, at the same time
 *   a reference, PG_hwpoison
 *   entry := broken, if it is there	xchg(entry, 0), if it is there
 *   flush				flush
 *   the object's reference		sees PG_hwpoison, or more references: no part of
 *					a block; puts the object's reference
 *
 * Copies of the morsel may lead to the page as well, or be led there by the same table. So its
 * whole family is looked at. A page whose maker has gone is not found by it, and stays.
 *
 * Who has got the entry owns the object's reference (M1). Who comes second flushes as well
 * (flush.c). The reference of memory failure stays: the page is never used again.
 *
 * Locks: folio lock; i_mmap_rwsem; the table's. Caller: memory_failure().
 */
#include <linux/ceasefire.h>
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/pagemap.h>
#include <linux/swap.h>
#include <linux/swapops.h>
#include <linux/uaccess.h>

#include "../../internal.h"
#include "morsel.h"

/* Others may have something else in these fields. @page: the first one, if there are several. */
static bool morsel_may_own(struct page *page)
{
	struct address_space *mapping = READ_ONCE(page->mapping);
	const struct address_space_operations *ops;

	if (!mapping || (unsigned long)mapping & PAGE_MAPPING_FLAGS ||
	    get_kernel_nofault(ops, &mapping->a_ops) || ops != &morsel_aops)
		return false;
	CF_MUTATION(morsel_owns_tables, return true);
	return !PageLRU(page) && !PageTail(page) && !page_has_type(page);
}

/* What is found of a page. */
struct morsel_broken {
	struct inode		*inode;
	struct super_block	*sb;
	u64			offset;
	/* It was marked before. */
	bool			again;
	/* It is a part of a huge page of an object that is about to go. */
	bool			going;
	/* What an entry leads to. */
	struct page		*page;
	/* An entry led to it, which was the last one. */
	bool			last;
};

/* The file system stays until it is put. */
static struct super_block *morsel_get_super(struct super_block *sb)
{
	CF_MUTATION(morsel_super_goes, return NULL);
	return atomic_inc_not_zero(&sb->s_active) ? sb : ERR_PTR(-ENODEV);
}

static void morsel_find_owner(struct page *broken, struct morsel_broken *b)
{
	struct page *page = b->page;

	if (!morsel_may_own(page))
		return;
	b->sb = morsel_get_super(page->mapping->host->i_sb);
	if (IS_ERR(b->sb))
		b->sb = NULL;
	else
		b->inode = igrab(page->mapping->host);
	b->offset = (u64)page->index << PAGE_SHIFT;
	/* The allocator looks at the first part only: our reference keeps the page from it. */
	b->going = !b->inode && PageHead(page);
	if (!b->inode && !b->going)
		return;
	b->again = TestSetPageHWPoison(broken);
	if (PageHead(page))
		folio_set_has_hwpoisoned(page_folio(page));
}

/* Not under the folio's lock, which the end of the object takes. */
static void morsel_put_owner(struct morsel_broken *b)
{
	if (b->inode)
		iput(b->inode);
	if (b->sb)
		deactivate_super(b->sb);
}

/* The same where no entry can say so. */
static bool morsel_break_huge(struct morsel *m, u64 offset, struct page *page)
{
	unsigned long *above = morsel_above(m, offset), *table, *entry;
	bool found = false;
	spinlock_t *ptl; /* of @table */

	table = above ? morsel_lock_leaves(above, &ptl) : NULL;
	if (!table)
		return false;
	entry = table + morsel_index(offset, m->base);
	found = *entry && morsel_leaf_page(*entry) == page;
	if (found) {
		xchg(entry, 0);
		morsel_lost_note(m, offset);
	}
	morsel_unlock_leaves(ptl);
	return found;
}

/* Its entry says that a page is broken; false: it was not there any more. */
static bool morsel_break(struct morsel *m, u64 offset, struct page *page)
{
	/* As make_hwpoison_entry(), which wants the folio's lock. */
	swp_entry_t broken = swp_entry(SWP_HWPOISON, page_to_pfn(page));
	unsigned long *above, *table, *entry;
	spinlock_t *ptl; /* of @table */
	bool found;

	CF_MUTATION(morsel_break_stays, return false);
	if (!m->level || offset >= MORSEL_UNITS_MAX * morsel_unit(m))
		return false;
	if (morsel_is_huge(m))
		return morsel_break_huge(m, offset, page);
	above = morsel_entry(m, offset, 2);
	table = above ? morsel_lock_leaves(above, &ptl) : NULL;
	if (!table)
		return false;
	entry = table + morsel_index(offset, 1);
	found = *entry && !morsel_leaf_is_broken(*entry) &&
		morsel_leaf_page(*entry) == page;
	if (found) {
		xchg(entry, pte_val(swp_entry_to_pte(broken)));
		WRITE_ONCE(m->broken, true);
	}
	morsel_unlock_leaves(ptl);
	return found;
}

/* It may have been given up at another offset before, where CPUs still find it (lazy.c). */
static bool morsel_is_elsewhere(struct morsel *m)
{
	CF_MUTATION(morsel_break_here, return false);
	/* Or an entry of another one of the family was changed that its own entries lead to. */
	return m->lazy || m->shares;
}

static void morsel_break_for(struct morsel *m, void *arg)
{
	struct morsel_broken *b = arg;
	u64 end = b->offset + morsel_page_size(m);
	bool found;

	if (morsel_is_huge(m))
		morsel_lost_begin(m, b->offset);
	morsel_flush_begin(m, b->offset, end);
	found = morsel_break(m, b->offset, b->page);
	if (morsel_is_elsewhere(m))
		morsel_flush(m, 0, U64_MAX, false);
	else if (morsel_must_flush(m, found))
		morsel_flush(m, b->offset, end, false);
	morsel_flush_end(m, b->offset, end);
	if (morsel_is_huge(m))
		morsel_lost_end(m, b->offset);
	/* By a table that is shared another one of the family may have found it. */
	if (m->shares)
		WRITE_ONCE(m->broken, true);
	/* What may be lazy has a mark there. */
	b->last |= found && (m->lazy || !morsel_page_unshare(m, b->page));
}

/**
 * morsel_memory_failure() - memory_failure() of a page that may be one of a morsel
 * @page: the page
 * @pfn: its number
 * @flags: MF_*
 * @kill: tells those who have it mapped
 *
 * Context: process context, may sleep.
 * Return: true if it was one; then it is gone, and its reference kept.
 */
bool morsel_memory_failure(struct page *page, unsigned long pfn, int flags,
			   morsel_kill_t kill)
{
	bool counted = flags & MF_COUNT_INCREASED;
	struct folio *folio = page_folio(page);
	struct morsel_broken b = { .page = &folio->page };

	if (PageHWPoison(page) || !morsel_may_own(b.page))
		return false;
	if (!counted && !folio_try_get(folio))
		return false;
	/* It may have become another one before it had the reference. */
	if (page_folio(page) != folio) {
		if (!counted)
			folio_put(folio);
		return false;
	}
	folio_lock(folio);
	morsel_find_owner(page, &b);
	folio_unlock(folio);
	if (!b.inode || b.again) {
		bool kept = b.going && !b.again;

		morsel_put_owner(&b);
		if (!kept && !counted)
			put_page(page);
		return kept;
	}
	morsel_clean_pause();
	morsel_family_each(morsel_of(b.inode), morsel_break_for, &b);
	/* Where another page may be by now nobody is told. */
	if (b.last) {
		kill(page, pfn, flags, folio);
		morsel_page_lost(morsel_of(b.inode), b.page);
	}
	morsel_put_owner(&b);
	return true;
}
