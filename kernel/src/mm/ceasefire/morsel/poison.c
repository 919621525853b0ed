// SPDX-License-Identifier: GPL-2.0
/*
 * Memory failure: a page of a morsel is broken, and goes; the rest stays.
 *
 * Pages of morsels are on no LRU, so the way of other pages leaves them mapped. Here the entry
 * of the page becomes one that says so, for all who map the morsel: their accesses get SIGBUS,
 * read() and write() EIO. So nobody takes zeroes for what was lost. Depopulation takes that
 * entry away like any other, and a later access makes another page.
 *
 * Whose page it is: with a reference and under the folio's lock @mapping does not change, since
 * who frees pages takes that lock where there are more references than his own (memory.c); so
 * the inode is there, and igrab() says whether it is about to go. The field may mean
 * something else in pages that are not ours. Those with a type are left out, page tables of
 * morsels among them; of all others it is read as what may be no address.
 *
 *   memory failure			depopulation, at the same time
 *   a reference, PG_hwpoison
 *   entry := broken, if it is there	xchg(entry, 0), if it is there
 *   flush				flush
 *   the object's reference		sees PG_hwpoison, or more references: no part of
 *					a block; puts the object's reference
 *
 * Who has got the entry owns the object's reference (M1). That of memory failure stays: the
 * page is never used again.
 *
 * Locks: folio lock; i_mmap_rwsem; the table's. Caller: memory_failure().
 */
#include <linux/ceasefire.h>
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/pagemap.h>
#include <linux/uaccess.h>

#include "../../internal.h"
#include "morsel.h"

/* The object of a page, with a reference to it, or NULL; the folio is locked. */
static struct morsel *morsel_of_page(struct page *page)
{
	struct address_space *mapping = page->mapping;
	const struct address_space_operations *ops;
	struct inode *inode;

	if (!mapping || (unsigned long)mapping & PAGE_MAPPING_FLAGS ||
	    get_kernel_nofault(ops, &mapping->a_ops) || ops != &morsel_aops)
		return NULL;
	inode = igrab(mapping->host);
	return inode ? morsel_of(inode) : NULL;
}

/* Can it be a page of a morsel? Others may have something else in its fields. */
static bool morsel_may_own(struct page *page)
{
	if (PageLRU(page) || PageReserved(page) || PageCompound(page))
		return false;
	CF_MUTATION(morsel_owns_tables, return true);
	return !page_has_type(page);
}

/* Mark a page of a morsel; NULL: it is none, or was marked before. */
static struct morsel *morsel_mark(struct page *page, u64 *offset)
{
	struct folio *folio = page_folio(page);
	bool before = false;
	struct morsel *m;

	folio_lock(folio);
	m = morsel_of_page(page);
	*offset = (u64)page->index << PAGE_SHIFT;
	if (m)
		before = TestSetPageHWPoison(page);
	folio_unlock(folio);
	if (!before)
		return m;
	/* Not under the lock: the end of the object takes it. */
	iput(&m->inode);
	return NULL;
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
	bool counted = flags & MF_COUNT_INCREASED, found;
	struct morsel *m;
	u64 offset;

	if (PageHWPoison(page) || !morsel_may_own(page))
		return false;
	if (!counted && !get_page_unless_zero(page))
		return false;
	m = morsel_mark(page, &offset);
	if (!m) {
		if (!counted)
			put_page(page);
		return false;
	}
	morsel_flush_begin(m, offset, offset + PAGE_SIZE);
	found = morsel_break(m, offset, page);
	if (found)
		morsel_flush(m, offset, offset + PAGE_SIZE, false);
	morsel_flush_end(m, offset, offset + PAGE_SIZE);
	kill(page, pfn, flags, page_folio(page));
	if (found)
		morsel_page_lost(m, page);
	iput(&m->inode);
	return true;
}
