// SPDX-License-Identifier: GPL-2.0
/*
 * The memory of morsels: pages, who pays for them and for page tables, and how much there
 * may be.
 *
 * It is memory of no process, and stays when all have gone that can be killed for it.
 * So there is a limit for all morsels, and each is charged to the control group of its
 * creator, in blocks. Where a limit is reached nobody is killed: the call fails.
 *
 * Pages come in blocks where memory allows, and go in blocks: the page allocator takes
 * most of the time of a depopulation, page by page. Each is a page of its own from the
 * start (split_page()), because users pin single pages. So a block is free when all its
 * references are frozen. A page that somebody has pinned leaves the object like any other; the
 * charge stays with it until it is unpinned, or else pins would be free of charge.
 *
 * Pages have mapping and index, which futexes need, and are not on the LRU: nobody
 * migrates or reclaims them, since rmap knows no mapping of theirs.
 *
 * Locks: none. Callers: all files of morsels.
 */
#include <linux/err.h>
#include <linux/list.h>
#include <linux/memcontrol.h>
#include <linux/mm.h>
#include <linux/mmzone.h>
#include <linux/page_ref.h>
#include <linux/pagemap.h>
#include <linux/pagevec.h>
#include <linux/vmstat.h>

#include "../../internal.h"
#include "morsel.h"

/* Most pages and tables of all morsels. */
unsigned long morsel_limit __read_mostly;

static atomic_long_t morsel_used = ATOMIC_LONG_INIT(0);

/* Whoever reaches a limit is told so, and can do something about it. */
#define MORSEL_CHARGE_GFP	(GFP_KERNEL | __GFP_RETRY_MAYFAIL)

/* A block of one page is worth an effort, larger ones are not. */
#define MORSEL_PAGE_GFP		(GFP_HIGHUSER | __GFP_ZERO)
#define MORSEL_BLOCK_GFP	((MORSEL_PAGE_GFP | __GFP_NORETRY | \
				  __GFP_NOWARN) & ~__GFP_DIRECT_RECLAIM)

/**
 * morsel_total() - pages and tables of all morsels
 */
unsigned long morsel_total(void)
{
	return max(atomic_long_read(&morsel_used), 0L);
}

void __init morsel_memory_init(void)
{
	morsel_limit = totalram_pages() / 2;
}

#ifdef CONFIG_MEMCG
static int morsel_charge_group(struct morsel *m, unsigned long nr)
{
	CF_MUTATION(morsel_uncharged, return 0);
	return m->objcg ? obj_cgroup_charge(m->objcg, MORSEL_CHARGE_GFP,
					    nr << PAGE_SHIFT) : 0;
}

static void morsel_uncharge_group(struct morsel *m, unsigned long nr)
{
	CF_MUTATION(morsel_uncharged, return);
	if (m->objcg)
		obj_cgroup_uncharge(m->objcg, nr << PAGE_SHIFT);
}

/*
 * A page leaves the object, and is not free: it pays for itself, as a page of the
 * kernel does. True if the object pays no more.
 */
static bool morsel_charge_moves(struct morsel *m, struct page *page)
{
	CF_MUTATION(morsel_pins_unpaid, return false);
	if (!m->objcg)
		return false;
	obj_cgroup_get(m->objcg);
	page->memcg_data = (unsigned long)m->objcg | MEMCG_DATA_KMEM;
	return true;
}
#else
static int morsel_charge_group(struct morsel *m, unsigned long nr)
{
	return 0;
}

static void morsel_uncharge_group(struct morsel *m, unsigned long nr) { }

static bool morsel_charge_moves(struct morsel *m, struct page *page)
{
	return false;
}
#endif

static bool morsel_is_too_much(unsigned long nr)
{
	CF_MUTATION(morsel_no_limit, return false);
	return nr > READ_ONCE(morsel_limit);
}

/**
 * morsel_charge() - a morsel pays for memory that it is to get
 * @m: the morsel
 * @nr: so many times 4 KiB
 *
 * Context: may sleep.
 * Return: 0; -ENOMEM: a limit is reached.
 */
int morsel_charge(struct morsel *m, unsigned long nr)
{
	int err = -ENOMEM;

	if (!morsel_is_too_much(atomic_long_add_return(nr, &morsel_used)))
		err = morsel_charge_group(m, nr);
	if (err)
		atomic_long_sub(nr, &morsel_used);
	return err;
}

/**
 * morsel_uncharge() - it pays no more
 * @m: the morsel
 * @nr: for so many times 4 KiB
 */
void morsel_uncharge(struct morsel *m, unsigned long nr)
{
	morsel_uncharge_group(m, nr);
	atomic_long_sub(nr, &morsel_used);
}

/**
 * morsel_count_object() - a morsel, or a folder of them, counts as a page
 * @m: it
 *
 * It takes about as much, for as long as it has a name, and nobody is killed for it.
 *
 * Return: 0; -ENOMEM: the limit is reached.
 */
int morsel_count_object(struct morsel *m)
{
	if (morsel_is_too_much(atomic_long_inc_return(&morsel_used))) {
		atomic_long_dec(&morsel_used);
		return -ENOMEM;
	}
	m->counted = true;
	return 0;
}

/**
 * morsel_uncount_object() - it goes
 * @m: it
 */
void morsel_uncount_object(struct morsel *m)
{
	if (m->counted)
		atomic_long_dec(&morsel_used);
}

/**
 * morsel_count() - a morsel has more pages, or less
 * @m: the morsel
 * @node: where they are
 * @nr: so many times 4 KiB
 */
void morsel_count(struct morsel *m, pg_data_t *node, long nr)
{
	atomic_long_add(nr, &m->pages);
	mod_node_page_state(node, NR_MORSEL_PAGES, nr);
}

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

/**
 * morsel_page_leave() - a page is no page of the object any more
 * @m: the morsel
 * @page: the page; somebody has a reference
 *
 * He may have found the mapping by it: under the folio's lock nobody looks.
 */
void morsel_page_leave(struct morsel *m, struct page *page)
{
	unsigned long nr = 1UL << morsel_page_order(m);
	struct folio *folio = page_folio(page);
	bool moved;

	folio_lock(folio);
	page->mapping = NULL;
	folio_unlock(folio);
	/* One that is broken is never free again: nobody has to pay for it for ever. */
	moved = !PageHWPoison(page) && morsel_charge_moves(m, page);
	if (moved)
		atomic_long_sub(nr, &morsel_used);
	else
		morsel_uncharge(m, nr);
	put_page(page);
}

/**
 * morsel_page_lost() - a page is broken, and nothing leads to it
 * @m: the morsel
 * @page: the page; the caller has a reference of his own, and keeps it
 */
void morsel_page_lost(struct morsel *m, struct page *page)
{
	unsigned long nr = 1UL << morsel_page_order(m);
	struct folio *folio = page_folio(page);

	folio_lock(folio);
	folio->mapping = NULL;
	folio_unlock(folio);
	morsel_count(m, page_pgdat(page), -(long)nr);
	morsel_uncharge(m, nr);
	put_page(page);
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
