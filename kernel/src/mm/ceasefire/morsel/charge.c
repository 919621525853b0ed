// SPDX-License-Identifier: GPL-2.0
/*
 * Who pays for the memory of morsels, and how much there may be.
 *
 * It is memory of no process, and stays when all have gone that can be killed for it.
 * So there is a limit for all morsels, and each is charged to the control group of its
 * creator, in blocks. Where a limit is reached nobody is killed: the call fails.
 *
 * A page that somebody has pinned leaves the object like any other; the charge stays with it
 * until it is unpinned, or else pins would be free of charge.
 *
 * Locks: a folio's. Callers: memory.c, huge.c, table.c, poison.c, object.c, names.c.
 */
#include <linux/memcontrol.h>
#include <linux/mm.h>
#include <linux/pagemap.h>
#include <linux/vmstat.h>

#include "morsel.h"

/* Most pages and tables of all morsels. */
unsigned long morsel_limit __read_mostly;

static atomic_long_t morsel_used = ATOMIC_LONG_INIT(0);

/* Whoever reaches a limit is told so, and can do something about it. */
#define MORSEL_CHARGE_GFP	(GFP_KERNEL | __GFP_RETRY_MAYFAIL)

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

static bool morsel_is_poisoned(struct folio *folio)
{
	return folio_test_large(folio) ? folio_test_has_hwpoisoned(folio) :
					 folio_test_hwpoison(folio);
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
	moved = !morsel_is_poisoned(folio) && morsel_charge_moves(m, page);
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
