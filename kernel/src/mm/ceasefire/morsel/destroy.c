// SPDX-License-Identifier: GPL-2.0
/*
 * A morsel is destroyed before its last descriptor and mapping has gone: it has nothing
 * any more, and never will.
 *
 * @mapped counts mappings, from their mmap() on, which is before they are in i_mmap; so a
 * mapping is not made while the object is found to have none. MORSEL_GONE is added to it
 * once: from then on there are no new mappings but copies of old ones, fork() and mremap().
 *
 * What the object has goes as with a new size of 0, which it keeps:
 *
 *   destroys			others
 *   gone			mmap(), or a new size: ENODEV
 *   size := 0			installs: has come before, and is cut; or sees the
 *				size under the lock of the table (M2)
 *   holds i_mmap		munmap(), mremap(): has flushed itself before it has left
 *				it (M3); fork(): the child's mapping comes to it
 *				later, and links roots that have nothing
 *   cuts
 *   flushes all		GUP: had the page before, and keeps it, or finds nothing
 *   cleans
 *   flushes for tables		faults: SIGBUS, because of the size
 *
 * So a mapping that was linked is so no further than to its roots, which are empty, and one that
 * is linked later finds the same. Roots stay as long as somebody could link them (M8), and
 * with them the tables above those of pages. No table of a process is touched, so nobody's
 * mmap_lock is needed, and a process that dies or sleeps with it holds up nothing.
 *
 * Who has looked at @mapped before it was gone either holds the inode lock, which comes first
 * or waits, or sees the size later, where it installs.
 *
 * Locks: the inode's, for writing. Callers: file.c, map.c, size.c.
 */
#include <linux/atomic.h>
#include <linux/fs.h>
#include <linux/limits.h>
#include <linux/mm.h>

#include "morsel.h"

/* Far below what any number of mappings makes up for. */
#define MORSEL_GONE	(LONG_MIN / 2)

/**
 * morsel_is_gone() - was a morsel destroyed?
 * @m: the morsel
 */
bool morsel_is_gone(const struct morsel *m)
{
	CF_MUTATION(morsel_gone_unseen, return false);
	return atomic_long_read(&m->mapped) < 0;
}

/**
 * morsel_errno() - what a call says of an error
 * @m: the morsel
 * @err: the error, or a result
 *
 * Limits are no lack of memory for a file, but are said in the same way. What is gone has a
 * size of 0, which is not why.
 */
long morsel_errno(struct morsel *m, long err)
{
	if (err == -ENXIO && morsel_is_gone(m))
		return -ENODEV;
	if (err == -EHWPOISON)
		return -EIO;
	return err == -EDQUOT ? -ENOMEM : err;
}

/**
 * morsel_map_begin() - there is to be a mapping; morsel_map_end() when it goes
 * @m: the morsel
 *
 * Return: false: it was destroyed.
 */
bool morsel_map_begin(struct morsel *m)
{
	return atomic_long_inc_unless_negative(&m->mapped);
}

/**
 * morsel_map_copy() - a mapping is copied, by fork() or mremap()
 * @m: the morsel, which may be gone
 */
void morsel_map_copy(struct morsel *m)
{
	atomic_long_inc(&m->mapped);
}

/**
 * morsel_map_end() - a mapping has gone
 * @m: the morsel
 */
void morsel_map_end(struct morsel *m)
{
	atomic_long_dec(&m->mapped);
}

/* The moment from which it is gone; false: it is mapped. */
static bool morsel_begin_end(struct morsel *m, bool force)
{
	CF_MUTATION(morsel_destroy_mapped, force = true);
	if (!force)
		return !atomic_long_cmpxchg(&m->mapped, 0, MORSEL_GONE);
	atomic_long_add(MORSEL_GONE, &m->mapped);
	return true;
}

/* What was taken away before, and waits (async.c). */
static void morsel_free_left(struct morsel *m)
{
	CF_MUTATION(morsel_destroy_hasty, return);
	morsel_finish(m);
}

static void morsel_free_tables(struct morsel *m)
{
	CF_MUTATION(morsel_tables_wait, return);
	morsel_settle_now(m);
}

/**
 * morsel_destroy() - MORSEL_IOC_DESTROY
 * @m: the morsel, inode lock held
 * @force: also if it is mapped
 *
 * Context: may sleep.
 * Return: 0: all of its memory is free but tables above those of pages, and each access to a
 * mapping of it gets SIGBUS; -EBUSY: it is mapped; -ENODEV: that was done before.
 */
int morsel_destroy(struct morsel *m, bool force)
{
	struct morsel_range all = {
		.length = morsel_end(m),
	};
	int err;

	if (morsel_is_gone(m))
		return -ENODEV;
	if (!morsel_begin_end(m, force))
		return -EBUSY;
	i_size_write(&m->inode, 0);
	/* What somebody has just taken is free when this returns. */
	morsel_steal_end(m);
	err = morsel_depopulate(m, &all, 1, false);
	morsel_pool_empty(m);
	morsel_free_left(m);
	morsel_free_tables(m);
	return err;
}
