// SPDX-License-Identifier: GPL-2.0
/*
 * The pages of morsels; who pays for them is in charge.c.
 *
 * Pages come in blocks where memory allows, and go in blocks: the page allocator takes
 * most of the time of a depopulation, page by page. Each is a page of its own from the
 * start (split_page()), because users pin single pages. So a block is free when all its
 * references are frozen.
 *
 * Pages have mapping and index, which futexes need, and are not on the LRU: nobody
 * migrates or reclaims them, since rmap knows no mapping of theirs.
 *
 * Locks: none. Callers: all files of morsels.
 */
#include <linux/list.h>
#include <linux/mm.h>
#include <linux/mmzone.h>
#include <linux/page_ref.h>
#include <linux/pagemap.h>
#include <linux/pagevec.h>

#include "../../internal.h"
#include "morsel.h"

/* A block of one page is worth an effort, larger ones are not. */
#define MORSEL_PAGE_GFP		(GFP_HIGHUSER | __GFP_ZERO)
#define MORSEL_BLOCK_GFP	((MORSEL_PAGE_GFP | __GFP_NORETRY | \
				  __GFP_NOWARN) & ~__GFP_DIRECT_RECLAIM)

/**
 * morsel_block_alloc() - pages for a morsel, one after the other in memory
 * @m: the morsel
 * @order: wanted; it gets what it gets
 * @err: -ENOMEM: there is no memory; -EDQUOT: a limit is reached
 *
 * Context: may sleep.
 * Return: the first of 1 << @order pages, which are zeroed, or NULL. A huge one is one.
 */
struct page *morsel_block_alloc(struct morsel *m, unsigned int *order, int *err)
{
	struct page *page = m->lazy ? morsel_pool_take(m) : NULL;
	unsigned int i;

	*err = 0;
	if (page || morsel_is_huge(m)) {
		*order = 0;
		return page ?: morsel_huge_alloc(m, err);
	}
	for (;; *order /= 2) {
		*err = -EDQUOT;
		if (morsel_charge(m, 1UL << *order)) {
			if (!*order)
				return NULL;
			continue;
		}
		page = alloc_pages(*order ? MORSEL_BLOCK_GFP : MORSEL_PAGE_GFP,
				   *order);
		if (page)
			break;
		morsel_uncharge(m, 1UL << *order);
		*err = -ENOMEM;
		if (!*order)
			return NULL;
	}
	if (*order)
		split_page(page, *order);
	/* No page has a mark yet; behind the first one that is not said. */
	for (i = 0; i < 1U << *order && m->lazy; i++)
		set_page_private(page + i, 0);
	morsel_count(m, page_pgdat(page), 1L << *order);
	*err = 0;
	return page;
}

/**
 * morsel_page_discard() - give back a page that nobody has seen
 * @m: the morsel
 * @page: of morsel_block_alloc()
 */
void morsel_page_discard(struct morsel *m, struct page *page)
{
	unsigned int order = morsel_page_order(m);

	if (morsel_pool_put(m, page))
		return;
	morsel_count(m, page_pgdat(page), -(1L << order));
	morsel_uncharge(m, 1UL << order);
	page->mapping = NULL;
	__free_pages(page, order);
}

/* Can a page be a part of a block that is given back at once? */
static bool morsel_page_freeze(struct page *page)
{
	return !PageHWPoison(page) && page_ref_freeze(page, 1);
}

/*
 * Pages that are being given back. What is counted and paid for all of them is put together,
 * and single pages, which have no block, go in batches as well.
 */
struct morsel_freed {
	struct morsel *by;
	struct morsel *m; /* who has made them */
	struct folio_batch singles; /* with frozen references */
	pg_data_t *node; /* of which @nr are not counted yet */
	unsigned long nr;
	unsigned long unpaid;
};

static void morsel_freed_end(struct morsel_freed *f)
{
	if (folio_batch_count(&f->singles))
		free_unref_folios(&f->singles);
	morsel_owner_begin(f->by, f->m);
	if (f->nr)
		morsel_count(f->m, f->node, -(long)f->nr);
	if (f->unpaid)
		morsel_uncharge(f->m, f->unpaid);
	f->nr = 0;
	f->unpaid = 0;
	morsel_owner_end(f->by, f->m);
}

/* Give back pages whose references are frozen, in blocks that are as large as they can be. */
static void morsel_free_frozen(struct morsel_freed *f, struct page *page,
			       unsigned int nr)
{
	f->unpaid += nr;
	while (nr) {
		unsigned int order = min_t(unsigned int, ilog2(nr),
					   pageblock_order);
		unsigned long pfn = page_to_pfn(page);

		if (pfn)
			order = min_t(unsigned int, order, __ffs(pfn));
		if (order) {
			set_page_count(page, 1);
			__free_pages(page, order);
		} else if (!folio_batch_add(&f->singles, page_folio(page))) {
			free_unref_folios(&f->singles);
		}
		page += 1U << order;
		nr -= 1U << order;
	}
}

/* Pages one after the other in memory. */
static void morsel_free_run(struct morsel_freed *f, struct page *page,
			    unsigned int nr)
{
	struct morsel *owner = morsel_owner(f->by, (unsigned long)page->mapping);
	unsigned int i, frozen = 0;

	if (f->m != owner || f->node != page_pgdat(page)) {
		morsel_freed_end(f);
		f->m = owner;
		f->node = page_pgdat(page);
	}
	f->nr += nr;
	for (i = 0; i < nr; i++) {
		if (likely(morsel_page_freeze(page + i))) {
			page[i].mapping = NULL;
			frozen++;
			continue;
		}
		morsel_free_frozen(f, page + i - frozen, frozen);
		frozen = 0;
		morsel_page_leave(f->m, page + i);
	}
	morsel_free_frozen(f, page + nr - frozen, frozen);
}

/* A run is in one zone, no longer than a table, and was made by one morsel. */
static bool morsel_follows(struct page *page, struct page *first,
			   unsigned int nr, bool shares)
{
	return page == first + nr && nr < PTRS_PER_PTE &&
	       (!shares || morsel_same_owner(page, first)) &&
	       page_to_pfn(page) == page_to_pfn(first) + nr &&
	       page_zone(page) == page_zone(first);
}

/**
 * morsel_pages_free() - pages go that were cut, and that no CPU reaches
 * @m: the morsel
 * @pages: by page->lru; empty afterwards
 *
 * Context: may sleep.
 */
void morsel_pages_free(struct morsel *m, struct list_head *pages)
{
	struct morsel_freed freed = { .by = m, .m = m };
	struct page *page, *next, *first = NULL;
	unsigned int nr = 0;

	if (morsel_is_huge(m)) {
		morsel_huge_free(m, pages);
		return;
	}
	folio_batch_init(&freed.singles);
	list_for_each_entry_safe(page, next, pages, lru) {
		list_del(&page->lru);
		if (first && morsel_follows(page, first, nr, m->shares)) {
			nr++;
			continue;
		}
		if (first)
			morsel_free_run(&freed, first, nr);
		cond_resched();
		first = page;
		nr = 1;
	}
	if (first)
		morsel_free_run(&freed, first, nr);
	morsel_freed_end(&freed);
}

/**
 * morsel_page_put() - a table leads to a page no more, and all have flushed
 * @m: the morsel
 * @page: the page, which may be shared
 *
 * Context: may sleep.
 */
void morsel_page_put(struct morsel *m, struct page *page)
{
	LIST_HEAD(pages);

	if (morsel_page_unshare(m, page))
		return;
	list_add(&page->lru, &pages);
	morsel_pages_free(m, &pages);
}
