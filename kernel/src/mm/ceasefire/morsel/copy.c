// SPDX-License-Identifier: GPL-2.0
/*
 * ioctl(FICLONE): a morsel becomes a copy of another one, as it is at one moment.
 *
 * What is copied is the tables above those of pages, which is 4 KiB for a GiB. The tables of pages
 * are shared, by entries without RW, until one of both writes (own.c). Units of 2 MiB have no
 * table above those of pages, so there their entries are copied, and the pages are shared.
 *
 * The moment is when all who map the origin have flushed: until then CPUs write by what they
 * have cached, to what is shared. Who finds no right to write waits, or a later write could be
 * in the copy without an earlier one:
 *
 *   copies			writes
 *   RW off above page 1
 *				to page 1, no right: would get a page of its own
 *				to page 2, by an old entry: this is in the copy
 *   RW off above page 2
 *   flushes
 *
 * The same goes for what is populated behind the one who copies. So @copying is set before the
 * tables are looked at for good, each of them under its lock: who has changed something
 * in it before is seen, and who does later sees @copying.
 *
 * Pages that somebody has pinned are written to without an entry. Those are copied at once, and the
 * origin keeps the page. What comes by a pin meanwhile is in no order. GUP without locks looks at
 * all entries again when it has a reference: it sees that there is no RW any more, or its reference
 * is seen here.
 *
 * Depopulation, a new size and another copy of either wait for the inode locks. Until it has
 * its first size nobody can use the copy, and but for memory failure nobody looks at its tables.
 *
 * Locks: the inode locks of both; i_mmap_rwsem of the origin; one table's. Caller: the VFS.
 */
#include <linux/delay.h>
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/sched/coredump.h>
#include <linux/sched/signal.h>
#include <linux/wait_bit.h>

#include "morsel.h"

/* Both morsels, and where they are now. */
struct morsel_copy {
	struct morsel *from;
	struct morsel *to;
	/* What is done with a table of level 2, or the top that leads to tables of pages. */
	int (*each)(struct morsel_copy *c, unsigned long *from, unsigned long *to,
		    u64 offset);
};

/* From here on there are no new entries in a table, which the lock of it says. */
static void morsel_see(struct morsel *m, unsigned long *table, unsigned int level)
{
	spinlock_t *lock = morsel_lockptr(m, table, level);

	spin_lock(lock);
	spin_unlock(lock);
}

/* The table at an entry of the copy; made if there is none. */
static unsigned long *morsel_copy_below(struct morsel_copy *c,
					unsigned long *entry, unsigned int level)
{
	struct ptdesc *table;

	if (*entry)
		return morsel_table(*entry);
	table = morsel_table_alloc(c->to, level);
	if (IS_ERR(table))
		return ERR_CAST(table);
	WRITE_ONCE(*entry, __pa(ptdesc_address(table)) | _PAGE_TABLE);
	/* The top counts nothing. */
	if (level == 2 && c->to->level > 2)
		morsel_below_add(entry, 1);
	return ptdesc_address(table);
}

/* Tables of a level of both, and below; @offset: what the first entry is for. */
static int morsel_copy_level(struct morsel_copy *c, unsigned long *from,
			     unsigned long *to, unsigned int level, u64 offset)
{
	unsigned int i;
	int err = 0;

	morsel_see(c->from, from, level);
	if (level == 2)
		return c->each(c, from, to, offset);
	for (i = 0; i < PTRS_PER_PTE && !err; i++) {
		unsigned long *below;

		if (!morsel_leads(READ_ONCE(from[i])))
			continue;
		if (fatal_signal_pending(current))
			return -EINTR;
		cond_resched();
		below = morsel_copy_below(c, to + i, level - 1);
		if (IS_ERR(below))
			return PTR_ERR(below);
		if (from == c->from->top)
			__set_bit(i, c->to->roots);
		err = morsel_copy_level(c, morsel_table(from[i]), below, level - 1,
					offset + i * morsel_span(level));
	}
	return err;
}

static int morsel_copy_walk(struct morsel_copy *c,
			    int (*each)(struct morsel_copy *c, unsigned long *from,
					unsigned long *to, u64 offset))
{
	c->each = each;
	return morsel_copy_level(c, c->from->top, c->to->top,
				 c->from->level + 1, 0);
}

/* Before: tables that the copy has for itself. */
static int morsel_copy_make(struct morsel_copy *c, unsigned long *from,
			    unsigned long *to, u64 offset)
{
	unsigned int i;

	/* Tables of pages are shared, but for roots. */
	if (from != c->from->top)
		return 0;
	for (i = 0; i < PTRS_PER_PTE; i++) {
		unsigned long *root;

		if (!READ_ONCE(from[i]))
			continue;
		root = morsel_copy_below(c, to + i, 1);
		if (IS_ERR(root))
			return PTR_ERR(root);
		__set_bit(i, c->to->roots);
	}
	return 0;
}

/* Debug builds: makes the time long until the next one is shared. */
static void morsel_copy_pause(void)
{
#ifdef CONFIG_CEASEFIRE_DEBUG
	u32 us = READ_ONCE(cf_copy_delay_us);

	if (us)
		msleep(DIV_ROUND_UP(us, USEC_PER_MSEC));
#endif
}

static unsigned long morsel_readable(unsigned long entry)
{
	CF_MUTATION(morsel_copy_writable, return entry);
	return entry & ~_PAGE_RW;
}

/* The moment: tables of pages lead to both. */
static int morsel_copy_share(struct morsel_copy *c, unsigned long *from,
			     unsigned long *to, u64 offset)
{
	bool roots = from == c->from->top;
	unsigned int i;

	for (i = 0; i < PTRS_PER_PTE; i++) {
		unsigned long *table = NULL;
		spinlock_t *ptl; /* of @table */

		if (READ_ONCE(from[i]))
			table = morsel_lock_leaves(from + i, &ptl);
		/* Under pressure empty ones go. */
		if (!table)
			continue;
		if (roots) {
			morsel_share_leaves(table, morsel_table(to[i]));
		} else {
			morsel_table_share(table);
			WRITE_ONCE(from[i], morsel_readable(from[i]));
			WRITE_ONCE(to[i], morsel_readable(from[i]));
			morsel_below_add(to + i, 1);
		}
		morsel_unlock_leaves(ptl);
		morsel_copy_pause();
	}
	cond_resched();
	return 0;
}

/* Has somebody who maps it, or has mapped it, ever pinned memory? */
static bool morsel_has_pins(struct morsel *m)
{
	struct vm_area_struct *vma;

	CF_MUTATION(morsel_copy_pinned, return false);
	vma_interval_tree_foreach(vma, &m->inode.i_mapping->i_mmap, 0, ULONG_MAX)
		if (morsel_may_pin(vma))
			return true;
	/* A mapping that is gone has left this before it has left i_mmap. */
	return READ_ONCE(m->pinned);
}

/*
 * Afterwards: pages that somebody has pinned get a copy. References without a pin, of a process
 * that has never pinned anything, are not looked for, as in fork(): that would take as long as
 * all the rest.
 */
static int morsel_copy_pinned(struct morsel_copy *c, unsigned long *from,
			      unsigned long *to, u64 offset)
{
	unsigned int i, j;
	int err;

	for (i = 0; i < PTRS_PER_PTE; i++) {
		u64 at = offset + i * PMD_SIZE;

		if (!to[i])
			continue;
		for (j = 0; j < PTRS_PER_PTE; j++) {
			struct page *page = morsel_get_page(c->to, at + j * PAGE_SIZE);
			bool pinned;

			if (IS_ERR_OR_NULL(page))
				continue;
			/* Not all who write to it pin it: any other reference is one. */
			pinned = page_count(page) > 2;
			put_page(page);
			if (!pinned)
				continue;
			err = morsel_own_page(c->to, at + j * PAGE_SIZE);
			if (err)
				return err;
		}
		cond_resched();
	}
	return 0;
}

static bool morsel_copy_flushes(void)
{
	CF_MUTATION(morsel_copy_unflushed, return false);
	return true;
}

static int morsel_copy_all(struct morsel_copy *c)
{
	struct morsel *m = c->from;
	bool pins;
	int err;

	/* Nothing is allocated from here on: who reclaims takes i_mmap as well. */
	morsel_flush_begin(m, 0, U64_MAX);
	err = morsel_copy_walk(c, morsel_copy_share);
	if (morsel_copy_flushes())
		morsel_flush(m, 0, U64_MAX, false);
	pins = morsel_has_pins(m);
	morsel_flush_end(m, 0, U64_MAX);
	if (!err && pins)
		err = morsel_copy_walk(c, morsel_copy_pinned);
	return err;
}

/* It has nothing, as before: nothing was shared yet, and nobody knows its tables. */
static void morsel_copy_undo(struct morsel *m, unsigned int level)
{
	morsel_clean_all(m);
	memset(m->top, 0, PAGE_SIZE);
	bitmap_zero(m->roots, MORSEL_UNITS_MAX);
	m->level = level;
}

/*
 * It gives back what it shares, or has copied. Memory failure may look at its tables, so those that
 * belong to it alone stay, and it never becomes a copy.
 */
static void morsel_copy_drop(struct morsel *m)
{
	struct morsel_range all = { .length = MORSEL_UNITS_MAX * morsel_unit(m) };

	/* Nothing is left at an end, so it cannot fail. */
	morsel_depopulate(m, &all, 1, false);
}

/*
 * Can it become a copy? One that ever had a size may be in the hands of a fault or a call that
 * has seen it, and one that has a family, since it could not be made, in those of memory failure.
 * Those that may be lazy have pages with marks.
 */
static int morsel_may_copy(struct morsel *from, struct morsel *to)
{
	if (morsel_is_gone(from) || morsel_is_gone(to))
		return -ENODEV;
	if (from->lazy || to->lazy || morsel_is_huge(from) || morsel_is_huge(to))
		return -EOPNOTSUPP;
	if (!i_size_read(&from->inode) ||
	    (to->level && to->level != from->level) ||
	    !list_empty(&to->steal) || to->family)
		return -EINVAL;
	return 0;
}

/* Most tables are made while others may still write: memory may be short. */
static int morsel_copy_begin(struct morsel_copy *c)
{
	int err = morsel_copy_walk(c, morsel_copy_make);

	if (err)
		return err;
	WRITE_ONCE(c->from->copying, true);
	return morsel_copy_walk(c, morsel_copy_make) ?:
	       morsel_family_join(c->from, c->to);
}

static void morsel_copy_end(struct morsel *from)
{
	WRITE_ONCE(from->copying, false);
	/* Before the look whether somebody waits. */
	smp_mb();
	wake_up_var(&from->copying);
}

static int morsel_copy(struct morsel *from, struct morsel *to)
{
	struct morsel_copy c = { .from = from, .to = to };
	unsigned int level = to->level;
	int err = morsel_may_copy(from, to);

	if (err)
		return err;
	to->level = from->level;
	err = morsel_copy_begin(&c);
	if (err) {
		morsel_copy_undo(to, level);
		goto end;
	}
	WRITE_ONCE(to->becoming, true);
	err = morsel_copy_all(&c);
	if (err)
		morsel_copy_drop(to);
	WRITE_ONCE(to->becoming, false);
	if (err)
		goto end;
	if (!to->address)
		to->address = from->address;
	/* Memory failure may have said so of both meanwhile. */
	if (READ_ONCE(from->broken))
		WRITE_ONCE(to->broken, true);
	i_size_write(&to->inode, i_size_read(&from->inode));
	morsel_steal_begin(to);
	count_vm_event(MORSEL_COPY);
end:
	morsel_copy_end(from);
	return err;
}

static bool morsel_is_whole(struct morsel *m, loff_t in, loff_t out, loff_t len,
			    unsigned int flags)
{
	loff_t size = i_size_read(&m->inode);

	return !in && !out &&
	       (!len || len == size ||
		(len > size && flags & REMAP_FILE_CAN_SHORTEN));
}

/**
 * morsel_remap_file_range() - FICLONE
 * @in: the origin
 * @pos_in: 0: all of it, or nothing
 * @out: what becomes a copy of it: it never had a size
 * @pos_out: 0
 * @len: 0, or the size of the origin
 * @flags: REMAP_FILE_*; not to compare them
 *
 * Return: the size; -EINVAL: a part, no size, another layout, or used already; -EOPNOTSUPP: one
 * of both may give up memory without a flush, or has huge pages; -ENODEV: one was destroyed;
 * -ENOMEM: no memory, or a limit; -EIO: a page was broken; -EINTR.
 */
loff_t morsel_remap_file_range(struct file *in, loff_t pos_in, struct file *out,
			       loff_t pos_out, loff_t len, unsigned int flags)
{
	struct morsel *from = morsel_of(file_inode(in));
	struct morsel *to = morsel_of(file_inode(out));
	loff_t done;

	if (from == to || flags & ~(REMAP_FILE_ADVISORY))
		return -EINVAL;
	lock_two_nondirectories(&from->inode, &to->inode);
	if (!morsel_is_whole(from, pos_in, pos_out, len, flags))
		done = -EINVAL;
	else
		done = file_modified(out) ?: morsel_copy(from, to);
	if (!done)
		done = i_size_read(&to->inode);
	unlock_two_nondirectories(&from->inode, &to->inode);
	return morsel_errno(from, done);
}
