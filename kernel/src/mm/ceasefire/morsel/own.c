// SPDX-License-Identifier: GPL-2.0
/*
 * What a morsel shares with its copies becomes its own before it changes.
 *
 * A table that is not open (share.c) is replaced by one with the same pages, which are shared
 * from then on. All that use the old one for the morsel flush before it is put, in lazy mode, too:
 * whoever shares it may free it then. Nobody can write by it meanwhile, so nothing is lost.
 *
 * A page that is not the morsel's own is replaced by a copy of it, which can be read at first,
 * and written to when all have flushed:
 *
 *   writes					another CPU of the morsel
 *   entry := the copy, no RW			reads the shared page: the same
 *   flushes
 *   entry gets RW
 *   writes					reads what was written
 *
 * With RW at once the other one could see a later write, and then not this one. Who comes second
 * to a copy without RW flushes as well if somebody else has not (morsel_must_flush()).
 *
 * It is copied under the lock under which it is replaced. Before that it may become the morsel's
 * own, be written to, and be shared once more: that write would be lost.
 *
 * Locks: i_mmap_rwsem; one table's. Callers: fault.c, file.c, populate.c, prune.c, copy.c.
 */
#include <linux/highmem.h>
#include <linux/mm.h>
#include <linux/pagemap.h>
#include <linux/sched/signal.h>
#include <linux/wait_bit.h>

#include "morsel.h"

static int morsel_copy_wait(struct morsel *m)
{
	int err = wait_var_event_killable(&m->copying, !morsel_is_copied(m));

	return err ? -EINTR : 0;
}

/* As if it had not been. The other table still leads to all of them. */
static void morsel_share_undo(struct morsel *m, unsigned long *to)
{
	unsigned int i;

	for (i = 0; i < PTRS_PER_PTE; i++) {
		if (to[i] && !morsel_leaf_is_broken(to[i]))
			morsel_page_unshare(m, morsel_leaf_page(to[i]));
		to[i] = 0;
	}
}

/* An entry leads to another table, or has RW from now on. False: it was cut meanwhile. */
static bool morsel_turn(unsigned long *above, unsigned long *from,
			unsigned long *to)
{
	unsigned long found = READ_ONCE(*above), wanted = __pa(to) | _PAGE_TABLE;

	do {
		if (!found || morsel_table(found) != from)
			return false;
		if (found == wanted)
			return true;
	} while (!try_cmpxchg(above, &found, wanted));
	return true;
}

/* A table of its own where one is not open to a morsel. */
static int morsel_own_table(struct morsel *m, u64 offset, unsigned long *above)
{
	u64 start = round_down(offset, PMD_SIZE), end = start + PMD_SIZE;
	struct ptdesc *own = morsel_table_alloc(m, 1);
	unsigned long *table, *left = NULL;
	spinlock_t *ptl; /* of @table */

	if (IS_ERR(own))
		return PTR_ERR(own);
	morsel_flush_begin(m, start, end);
	table = morsel_lock_leaves(above, &ptl);
	if (table) {
		if (!morsel_is_copied(m) && !morsel_is_open(m, table)) {
			morsel_share_leaves(table, ptdesc_address(own));
			if (morsel_turn(above, table, ptdesc_address(own)))
				left = table;
			else
				morsel_share_undo(m, ptdesc_address(own));
		}
		morsel_unlock_leaves(ptl);
	}
	if (left)
		morsel_flush(m, start, end, true);
	morsel_flush_end(m, start, end);
	if (!left) {
		morsel_table_discard(m, own, 1);
		return 0;
	}
	count_vm_event(MORSEL_COPY_TABLE);
	morsel_table_put(m, left);
	return 0;
}

/* A limit is reached: what waited to be freed before has made room (M9), so try again. */
static int morsel_own_retry(struct morsel *m, int err, bool waits)
{
	if (err == -EDQUOT && waits) {
		morsel_free_some(m);
		err = -EAGAIN;
	}
	return err == -EAGAIN && fatal_signal_pending(current) ? -EINTR : err;
}

static int morsel_open_step(struct morsel *m, u64 offset)
{
	unsigned long *above = morsel_entry(m, offset, 2);
	unsigned long *table;
	spinlock_t *ptl; /* of @table */
	bool open = true;
	int err;

	err = morsel_copy_wait(m);
	if (err)
		return err;
	table = above ? morsel_lock_leaves(above, &ptl) : NULL;
	if (table) {
		open = morsel_is_open(m, table);
		morsel_unlock_leaves(ptl);
	}
	return open ? 0 : morsel_own_table(m, offset, above);
}

/**
 * morsel_open() - wait for a copy to be made, and have a table that is open
 * @m: the morsel
 * @offset: in it, in bytes
 *
 * Context: may sleep.
 * Return: 0: try again; -ENOMEM, -EDQUOT: no memory, or a limit; -EINTR: the process is killed.
 */
int morsel_open(struct morsel *m, u64 offset)
{
	int err;

	do {
		bool waits = morsel_has_left(m);

		err = morsel_own_retry(m, morsel_open_step(m, offset), waits);
	} while (err == -EAGAIN);
	return err;
}

/*
 * Was it made by another morsel, is it shared, or held? Under the lock of a table that leads to
 * it. Then nobody writes to it until that is unlocked.
 */
static bool morsel_is_foreign(struct morsel *m, struct page *page)
{
	CF_MUTATION(morsel_copy_reuse, return false);
	return page->mapping != m->inode.i_mapping ||
	       morsel_page_is_shared(page) || morsel_page_is_held(page);
}

/* Does an entry of an open table lead to a page, and is nothing to be written there? */
static bool morsel_is_closed_leaf(unsigned long leaf, struct page *page)
{
	return leaf && !morsel_leaf_is_broken(leaf) &&
	       morsel_leaf_page(leaf) == page && !pte_write(__pte(leaf));
}

static bool morsel_own_flushes(void)
{
	CF_MUTATION(morsel_own_unflushed, return false);
	return true;
}

/*
 * The entry of a page that is to be written: @own, a copy, or if that is NULL @page itself.
 * -EAGAIN: it is another one by now.
 */
static int morsel_replace(struct morsel *m, u64 offset, unsigned long *above,
			  struct page *page, struct page *own)
{
	unsigned long *table, *entry;
	spinlock_t *ptl; /* of @table */
	int err = -EAGAIN;

	table = morsel_lock_leaves(above, &ptl);
	if (!table)
		return err;
	entry = table + morsel_index(offset, 1);
	if (morsel_is_open(m, table) && morsel_is_closed_leaf(*entry, page) &&
	    morsel_is_foreign(m, page) == !!own)
		err = own && copy_mc_highpage(own, page) ? -EHWPOISON : 0;
	if (!err && own) {
		unsigned long leaf = morsel_adopt(m, offset, own);

		WRITE_ONCE(*entry, pte_val(pte_wrprotect(__pte(leaf))));
	}
	morsel_unlock_leaves(ptl);
	return err;
}

/* All have flushed: a page that is the morsel's own may be written to. */
static void morsel_allow(struct morsel *m, u64 offset, unsigned long *above,
			 struct page *page)
{
	unsigned long *table, *entry;
	spinlock_t *ptl; /* of @table */

	table = morsel_lock_leaves(above, &ptl);
	if (!table)
		return;
	entry = table + morsel_index(offset, 1);
	/* Somebody may have copied it in between. */
	if (morsel_is_open(m, table) && morsel_is_closed_leaf(*entry, page) &&
	    !morsel_is_foreign(m, page)) {
		/* No bit is left to set. */
		WRITE_ONCE(*entry, pte_val(pte_mkdirty(pte_mkwrite_novma(__pte(*entry)))));
		morsel_turn(above, table, table);
	}
	morsel_unlock_leaves(ptl);
}

/* The page of an entry without RW; it has a reference for this, which goes. */
static int morsel_own_leaf(struct morsel *m, u64 offset, unsigned long *above,
			   struct page *page, bool foreign)
{
	struct page *own = NULL;
	unsigned int order = 0;
	int err;

	if (foreign) {
		own = morsel_block_alloc(m, &order, &err);
		if (!own) {
			put_page(page);
			return err;
		}
	}
	morsel_flush_begin(m, offset, offset + PAGE_SIZE);
	err = morsel_replace(m, offset, above, page, own);
	if (!err) {
		if (morsel_must_flush(m, own) && morsel_own_flushes())
			morsel_flush(m, offset, offset + PAGE_SIZE, false);
		morsel_allow(m, offset, above, own ?: page);
	}
	morsel_flush_end(m, offset, offset + PAGE_SIZE);
	put_page(page);
	if (!err && own) {
		count_vm_event(MORSEL_COPY_PAGE);
		morsel_page_put(m, page);
	} else if (own) {
		morsel_page_discard(m, own);
	}
	return err;
}

/* One step towards a page that may be written to; 0: it may, or there is none. */
static int morsel_own_step(struct morsel *m, u64 offset)
{
	unsigned long *above = morsel_entry(m, offset, 2);
	unsigned long *table, leaf;
	struct page *page = NULL;
	spinlock_t *ptl; /* of @table */
	bool open, foreign = false;

	table = above ? morsel_lock_leaves(above, &ptl) : NULL;
	if (!table)
		return 0;
	open = morsel_is_open(m, table);
	leaf = table[morsel_index(offset, 1)];
	if (open && leaf && !morsel_leaf_is_broken(leaf)) {
		if (pte_write(__pte(leaf))) {
			morsel_turn(above, table, table);
		} else {
			page = morsel_leaf_page(leaf);
			foreign = morsel_is_foreign(m, page);
			get_page(page);
		}
	}
	morsel_unlock_leaves(ptl);
	if (!open)
		return morsel_open(m, offset) ?: -EAGAIN;
	return page ? morsel_own_leaf(m, offset, above, page, foreign) : 0;
}

/**
 * morsel_own_page() - if there is a page at an offset, it may be written to
 * @m: the morsel, which has a unit
 * @offset: in bytes
 *
 * Context: may sleep. Who holds the inode lock finds it so until it unlocks.
 * Return: 0; -ENOMEM, -EDQUOT: no memory, or a limit; -EHWPOISON: it cannot be read; -EINTR: the
 * process is killed.
 */
int morsel_own_page(struct morsel *m, u64 offset)
{
	int err;

	if (!READ_ONCE(m->shares))
		return 0;
	do {
		bool waits = morsel_has_left(m);

		err = morsel_own_retry(m, morsel_own_step(m, round_down(offset,
									PAGE_SIZE)),
				       waits);
	} while (err == -EAGAIN);
	return err;
}
