// SPDX-License-Identifier: GPL-2.0
/*
 * Memory for a morsel before somebody faults for it, for all who map it or will.
 *
 * It comes in blocks of up to 2 MiB, as far as memory and holes allow, so that it can
 * be given back in blocks (memory.c). What somebody else has installed meanwhile stays.
 *
 * MADV_POPULATE_* and MAP_POPULATE come here first, for up to 2 MiB at a time, and what is made
 * has no fault. Where that does not work generic code faults page by page, and knows the error.
 *
 * Locks: none are held but the mmap_lock of those two; tree.c installs. Callers: fault.c, file.c,
 * madvise(), mmap().
 */
#include <linux/ceasefire_populate.h>
#include <linux/mm.h>
#include <linux/sched/signal.h>

#include "morsel.h"

/* What was there before, if CPUs may still have it cached (pool.c). */
static struct page *morsel_same_page(struct morsel *m, u64 offset)
{
	u64 mark = m->lazy ? morsel_owed_mark(m, offset) : 0;

	return mark ? morsel_pool_again(m, offset, mark) : NULL;
}

static int morsel_fill_hole(struct morsel *m, u64 offset, unsigned int nr)
{
	unsigned int order = min_t(unsigned int, ilog2(nr),
				   PMD_SHIFT - PAGE_SHIFT);
	struct page *page;
	int err;

	/* Aligned, or it is no block when it is given back. */
	if (offset >> PAGE_SHIFT)
		order = min_t(unsigned int, order, __ffs(offset >> PAGE_SHIFT));
	err = morsel_make_tables(m, offset);
	if (err)
		return err;
	page = morsel_same_page(m, offset);
	if (page)
		order = 0;
	else
		page = morsel_block_alloc(m, &order, &err);
	if (!page)
		return err;
	return morsel_install(m, offset, page, 1U << order);
}

static bool morsel_fills_alone(void)
{
	CF_MUTATION(morsel_fill_beside, return false);
	return true;
}

/*
 * One at a time: a huge page takes long to make, and there may be memory for one and not for two,
 * so that who comes second would fail although there is one.
 */
static int morsel_fill_huge(struct morsel *m, u64 offset)
{
	int err;

	if (!morsel_fills_alone())
		return morsel_fill_hole(m, offset, 1);
	err = mutex_lock_killable(&m->filling);
	if (err)
		return err;
	if (!morsel_look(m, offset))
		err = morsel_fill_hole(m, offset, 1);
	mutex_unlock(&m->filling);
	return err;
}

static int morsel_fill(struct morsel *m, u64 offset, unsigned int nr)
{
	return morsel_is_huge(m) ? morsel_fill_huge(m, offset) :
				   morsel_fill_hole(m, offset, nr);
}

/* What waits to be freed is paid for, and need not wait (M9). */
static bool morsel_can_make_room(struct morsel *m)
{
	CF_MUTATION(morsel_limit_hasty, return false);
	return morsel_has_left(m);
}

/* Page tables do not come from the pool, and pages that are pinned neither. */
static bool morsel_pool_makes_room(struct morsel *m)
{
	CF_MUTATION(morsel_pool_hoards, return false);
	return READ_ONCE(m->nr_pool);
}

/* Pages for a hole that begins at an offset. */
static int morsel_populate_hole(struct morsel *m, u64 offset, unsigned int nr)
{
	/* Before: what is freed meanwhile has made room. */
	bool waits = morsel_can_make_room(m);
	int err = morsel_fill(m, offset, nr);

	while (err == -EDQUOT && waits && !fatal_signal_pending(current)) {
		waits = morsel_free_some(m);
		err = morsel_fill(m, offset, nr);
	}
	if (err == -EDQUOT && morsel_pool_makes_room(m)) {
		morsel_pool_empty(m);
		err = morsel_fill(m, offset, nr);
	}
	if (err == -EBUSY) {
		morsel_epoch_wait(m);
		err = -EAGAIN;
	}
	if (err == -EMLINK)
		err = morsel_open(m, offset) ?: -EAGAIN;
	return err;
}

/**
 * morsel_populate_page() - a page at an offset
 * @m: the morsel, which has a unit
 * @offset: in bytes
 *
 * Context: may sleep.
 * Return: 0: there is one, or was; -ENOMEM, -EDQUOT: no memory, or a limit; -ENXIO: it is
 * behind the end; -EHWPOISON: it was broken; -EINTR.
 */
int morsel_populate_page(struct morsel *m, u64 offset)
{
	u64 at = morsel_page_start(m, offset);
	int err;

	do {
		err = morsel_look(m, at);
		if (err)
			return min(err, 0);
		err = morsel_populate_hole(m, at, 1);
		/* Somebody takes away what is made here, again and again. */
		if (err == -EAGAIN && fatal_signal_pending(current))
			err = -EINTR;
	} while (err == -EAGAIN);
	return err;
}

static int morsel_populate_until(struct morsel *m, u64 start, u64 end,
				 bool (*stops)(void))
{
	u64 at = morsel_page_start(m, start);
	unsigned int nr;
	int err;

	while ((nr = morsel_find(m, &at, end, false))) {
		err = morsel_populate_hole(m, at, nr);
		if (err && err != -EAGAIN)
			return err;
		if (stops())
			return -EINTR;
		cond_resched();
	}
	return 0;
}

static bool morsel_has_signal(void)
{
	return signal_pending(current);
}

static bool morsel_is_killed(void)
{
	return fatal_signal_pending(current);
}

/**
 * morsel_populate() - pages for a range
 * @m: the morsel, which has a unit
 * @start: in bytes
 * @end: in bytes
 *
 * Context: may sleep.
 * Return: as morsel_populate_page().
 */
int morsel_populate(struct morsel *m, u64 start, u64 end)
{
	return morsel_populate_until(m, start, end, morsel_has_signal);
}

/**
 * __morsel_populate_ahead() - pages for a part of a mapping
 * @vma: the mapping; mmap_lock is held for reading
 * @start: address of the first page, in the mapping
 * @end: where they end, perhaps behind it
 * @write: they are to be written
 *
 * As many at a time as a huge page would be.
 *
 * Context: may sleep.
 * Return: how many pages from @start on are there, and linked; 0: not all that were looked
 * at; -EINTR: the process is killed.
 */
long __morsel_populate_ahead(struct vm_area_struct *vma, unsigned long start,
			     unsigned long end, bool write)
{
	struct morsel *m = morsel_of_vma(vma);
	u64 offset = start - vma->vm_start;
	int err;

	CF_MUTATION(morsel_populate_single, return 0);
	if (!(vma->vm_flags & (write ? VM_WRITE : VM_READ)) ||
	    READ_ONCE(m->broken) || (write && READ_ONCE(m->shares)))
		return 0;
	end = min3(end, vma->vm_end, (start | (PMD_SIZE - 1)) + 1);
	/* Behind the object generic code knows the error. */
	end = min_t(u64, end, vma->vm_start +
			      morsel_page_end(m, i_size_read(&m->inode)));
	if (start >= end)
		return 0;
	err = morsel_populate_until(m, offset, end - vma->vm_start,
				    morsel_is_killed);
	if (err == -EINTR)
		return err;
	if (err || morsel_attach(vma, start))
		return 0;
	return (end - start) >> PAGE_SHIFT;
}
