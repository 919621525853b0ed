// SPDX-License-Identifier: GPL-2.0
/*
 * Pages of 2 MiB and 1 GiB: where they come from and go, and which of them were broken.
 *
 * A page is a compound one, or GUP would take references to the first 4 KiB for all of it. Its
 * entry is a leaf in a table of level 2 or 3 (tree.c). Such tables are never cut (M4), so the lock
 * of one is all that who finds a page needs. For level 2 it is the lock of generic code as well.
 * For level 3 generic code takes @page_table_lock of the process instead. So who has cut takes that
 * of each who maps the morsel before a page is free (flush.c):
 *
 *   cuts				GUP
 *   xchg(entry, 0)			locks, finds the page
 *   locks: waits			has a reference
 *   flushes				unlocks
 *   sees the reference, or is the
 *   last one
 *
 * Copies of upper tables (sharers) have entries of 1 GiB themselves, which go then, too.
 *
 * Walks of page tables know entries of 1 GiB of hugetlb and of devices only, and would split ours.
 * They are told that there is nothing (morsel_has_no_tables()), and HMM that it must not look.
 *
 * Generic code splits a huge entry before it looks at single pages, and for a file that means to
 * clear it (M6). No such walk comes to a morsel: those of THP ask vm_flags for VM_SPECIAL, which
 * has VM_DONTEXPAND; uprobes want executable mappings; mprotect(), mremap(), munmap(), NUMA
 * hints, MADV_COLD and GUP that splits have hooks. A folio is split only if it has as many
 * references as the page cache would have; that is no protection, as pins are references, too.
 *
 * A page that was broken has no entry: generic code knows no entry of that size that is not
 * present and leads nowhere. It is in @lost, which is changed under the lock of its table, so
 * that who finds no entry sees why (M10).
 *
 * What is not for such pages: MORSEL_ALLOW_LAZY, copies, and stealing of what is zero.
 *
 * Locks: one table's for @lost. Callers: memory.c, tree.c, prune.c, clean.c, poison.c.
 */
#include <linux/cpuset.h>
#include <linux/gfp.h>
#include <linux/highmem.h>
#include <linux/list.h>
#include <linux/mm.h>
#include <linux/page_ref.h>
#include <linux/sched.h>
#include <linux/swap.h>
#include <linux/swapops.h>
#include <linux/xarray.h>

#include "morsel.h"

static gfp_t morsel_huge_compound(void)
{
	CF_MUTATION(morsel_huge_loose, return 0);
	return __GFP_COMP;
}

/* In one piece, or not at all: nobody is killed for it. */
#define MORSEL_HUGE_GFP	(GFP_HIGHUSER | __GFP_NOWARN | __GFP_RETRY_MAYFAIL)

static struct page *morsel_huge_new(unsigned int order)
{
	gfp_t gfp = MORSEL_HUGE_GFP | morsel_huge_compound();
	struct folio *folio;
	unsigned long i;

	if (order <= MAX_PAGE_ORDER)
		return alloc_pages(gfp | __GFP_ZERO, order);
	folio = folio_alloc_gigantic(order, gfp | __GFP_COMP, numa_mem_id(),
				     &cpuset_current_mems_allowed);
	if (!folio)
		return NULL;
	for (i = 0; i < 1UL << order; i++) {
		clear_highpage(folio_page(folio, i));
		cond_resched();
	}
	return &folio->page;
}

/**
 * morsel_huge_alloc() - a page of a morsel whose pages are huge
 * @m: the morsel
 * @err: 0; -EDQUOT: a limit is reached, or there is no such piece of memory
 *
 * A fault must not say that memory is short: it would be tried again for ever.
 *
 * Context: may sleep.
 * Return: the page, zeroed, or NULL.
 */
struct page *morsel_huge_alloc(struct morsel *m, int *err)
{
	unsigned long nr = 1UL << morsel_page_order(m);
	struct page *page;

	*err = -EDQUOT;
	if (morsel_charge(m, nr))
		return NULL;
	page = morsel_huge_new(morsel_page_order(m));
	if (!page) {
		morsel_uncharge(m, nr);
		return NULL;
	}
	morsel_count(m, page_pgdat(page), nr);
	*err = 0;
	return page;
}

/* Who breaks one, or has pinned a part, has a reference to all of it. */
static bool morsel_huge_freeze(struct page *page)
{
	CF_MUTATION(morsel_huge_pinned, return true);
	return page_ref_freeze(page, 1);
}

/**
 * morsel_huge_free() - pages go that were cut, and that no CPU reaches
 * @m: the morsel
 * @pages: by page->lru; empty afterwards
 *
 * Context: may sleep.
 */
void morsel_huge_free(struct morsel *m, struct list_head *pages)
{
	unsigned long nr = 1UL << morsel_page_order(m);
	struct page *page, *next;

	list_for_each_entry_safe(page, next, pages, lru) {
		list_del(&page->lru);
		morsel_count(m, page_pgdat(page), -(long)nr);
		if (morsel_huge_freeze(page)) {
			page->mapping = NULL;
			set_page_count(page, 1);
			__free_pages(page, morsel_page_order(m));
			morsel_uncharge(m, nr);
		} else {
			morsel_page_leave(m, page);
		}
		cond_resched();
	}
}

/**
 * morsel_huge_leaf() - the entry of a huge page
 * @leaf: the same for a page of 4 KiB
 */
unsigned long morsel_huge_leaf(unsigned long leaf)
{
	return pmd_val(pmd_mkhuge(__pmd(leaf)));
}

static unsigned long morsel_number(struct morsel *m, u64 offset)
{
	return offset >> morsel_shift(m->base);
}

/**
 * morsel_lost_leaf() - what would be the entry of a page that has none
 * @m: the morsel
 * @offset: in bytes; its table is locked
 *
 * Return: 0, or one that says that the page was broken.
 */
unsigned long morsel_lost_leaf(struct morsel *m, u64 offset)
{
	CF_MUTATION(morsel_lost_unseen, return 0);
	if (!READ_ONCE(m->broken) || !xa_load(&m->lost, morsel_number(m, offset)))
		return 0;
	return pte_val(swp_entry_to_pte(swp_entry(SWP_HWPOISON, 1)));
}

/**
 * morsel_lost_begin() - a page is perhaps to be lost: make room to say so
 * @m: the morsel
 * @offset: in bytes
 *
 * Context: may sleep, and reclaim; so i_mmap is not held. Without that note somebody would take
 * zeroes for what was lost.
 */
void morsel_lost_begin(struct morsel *m, u64 offset)
{
	WARN_ON_ONCE(xa_reserve(&m->lost, morsel_number(m, offset),
				GFP_KERNEL | __GFP_NOFAIL));
}

/**
 * morsel_lost_note() - it is
 * @m: the morsel
 * @offset: as of morsel_lost_begin(); its table is locked
 *
 * The room is still there: depopulation takes notes only, and no two pages break at a time.
 */
void morsel_lost_note(struct morsel *m, u64 offset)
{
	WARN_ON_ONCE(xa_is_err(xa_store(&m->lost, morsel_number(m, offset),
					xa_mk_value(1), 0)));
	WRITE_ONCE(m->broken, true);
}

/**
 * morsel_lost_end() - the room is not needed any more, if it was not used
 * @m: the morsel
 * @offset: as of morsel_lost_begin()
 */
void morsel_lost_end(struct morsel *m, u64 offset)
{
	xa_release(&m->lost, morsel_number(m, offset));
}

/**
 * morsel_lost_forget() - what was lost is depopulated
 * @m: the morsel
 * @start: the first page, in bytes; its table is locked
 * @end: behind the last one, of the same table
 */
void morsel_lost_forget(struct morsel *m, u64 start, u64 end)
{
	if (!READ_ONCE(m->broken))
		return;
	for (; start < end; start += morsel_page_size(m))
		if (xa_load(&m->lost, morsel_number(m, start)))
			xa_erase(&m->lost, morsel_number(m, start));
}
