// SPDX-License-Identifier: GPL-2.0
/*
 * All who map a morsel flush: for pages that were cut, and later for tables.
 *
 * Who maps it is in i_mmap, which is held from before the first cut until all have flushed (M3).
 * Each process is flushed once, however many mappings it has: a CPU runs one process
 * at a time, so it is interrupted at most once, whatever the number of ranges, mappings and
 * processes.
 *
 * For pages only CPUs are interrupted that have the process loaded and are not in lazy mode.
 * The others compare generations when they come back, before they use an address of it.
 * But in lazy mode a CPU may walk tables ahead. So a table that was cut, which is emptied
 * first, waits for a flush that lazy CPUs get as well (clean.c).
 *
 * Copies of upper tables (sharers) lead to the table of level 2, and have no entries of it: see
 * ceasefire_table_is_linked(). So they are only concerned where that table is cut (rest.c), or
 * where pages have 1 GiB.
 *
 * Locks: i_mmap_rwsem, for reading. Callers: prune.c, clean.c, steal.c.
 */
#include <linux/ceasefire.h>
#include <linux/hash.h>
#include <linux/mm.h>
#include <linux/mmu_notifier.h>

#include <asm/tlbflush.h>

#include "morsel.h"

#define MORSEL_SEEN_BITS	8

/* Has another mapping of the process come before? @seen says no, or perhaps. */
static bool morsel_is_first(struct address_space *mapping,
			    struct vm_area_struct *vma, unsigned long *seen)
{
	struct vm_area_struct *other;

	if (!__test_and_set_bit(hash_ptr(vma->vm_mm, MORSEL_SEEN_BITS), seen))
		return true;
	vma_interval_tree_foreach(other, &mapping->i_mmap, 0, ULONG_MAX) {
		if (other == vma)
			return true;
		if (other->vm_mm == vma->vm_mm)
			return false;
	}
	return true;
}

/* Has a process more than one mapping? */
static bool morsel_is_only(struct address_space *mapping,
			   struct vm_area_struct *vma)
{
	struct vm_area_struct *other;

	vma_interval_tree_foreach(other, &mapping->i_mmap, 0, ULONG_MAX)
		if (other != vma && other->vm_mm == vma->vm_mm)
			return false;
	return true;
}

/* The part of a mapping that has a range of the object; false: none. */
static bool morsel_part(struct vm_area_struct *vma, u64 start, u64 end,
			unsigned long *from, unsigned long *to)
{
	u64 len = vma->vm_end - vma->vm_start;

	if (start >= len)
		return false;
	*from = vma->vm_start + start;
	*to = vma->vm_start + min(end, len);
	return true;
}

/* More pages than the architecture flushes one by one. */
#define MORSEL_FLUSH_ALL	64

static void morsel_flush_mm(struct morsel *m, struct vm_area_struct *vma,
			    u64 start, u64 end, bool tables)
{
	unsigned long from = 0, to = TLB_FLUSH_ALL;

	/* Who sees only a few pages go keeps the rest. */
	if (!tables && end - start < MORSEL_FLUSH_ALL * morsel_page_size(m) &&
	    morsel_is_only(m->inode.i_mapping, vma) &&
	    !morsel_part(vma, start, end, &from, &to))
		return;
	flush_tlb_mm_range(vma->vm_mm, from, to, morsel_shift(m->base), tables);
	atomic_long_inc(&m->flushes);
}

static bool morsel_upper(void)
{
	CF_MUTATION(morsel_upper_stays, return false);
	return true;
}

/*
 * Entries of 1 GiB: copies have them, too, and GUP may be between the entry and a reference, see
 * huge.c.
 */
static void morsel_flush_upper(struct address_space *mapping, u64 start, u64 end)
{
	struct vm_area_struct *vma;
	unsigned long from, to;

	vma_interval_tree_foreach(vma, &mapping->i_mmap, 0, ULONG_MAX) {
		struct mm_struct *mm = vma->vm_mm;

		if (!morsel_part(vma, start, end, &from, &to))
			continue;
		ceasefire_withdraw(mm, from, to - from);
		spin_lock(&mm->page_table_lock);
		spin_unlock(&mm->page_table_lock);
	}
}

/* Copies lead to tables of level 2 that somebody has cut. They go as a whole. */
static void morsel_withdraw(struct address_space *mapping, u64 start, u64 end)
{
	struct vm_area_struct *vma;
	unsigned long from, to;

	vma_interval_tree_foreach(vma, &mapping->i_mmap, 0, ULONG_MAX) {
		if (!morsel_part(vma, start, end, &from, &to))
			continue;
		/* A mapping begins and ends with a unit. */
		from = round_down(from, PUD_SIZE);
		to = round_up(to, PUD_SIZE);
		ceasefire_withdraw(vma->vm_mm, from, to - from);
	}
}

static void morsel_flush_each(struct morsel *m, u64 start, u64 end,
			      bool tables, bool sleeps)
{
	struct address_space *mapping = m->inode.i_mapping;
	DECLARE_BITMAP(seen, 1 << MORSEL_SEEN_BITS);
	struct vm_area_struct *vma;

	CF_MUTATION(morsel_unflushed, return);
	bitmap_zero(seen, 1 << MORSEL_SEEN_BITS);
	if (m->base == 3 && morsel_upper())
		morsel_flush_upper(mapping, start, end);
	if (morsel_is_unlinking(m))
		morsel_withdraw(mapping, start, end);
	vma_interval_tree_foreach(vma, &mapping->i_mmap, 0, ULONG_MAX) {
		bool first = morsel_is_first(mapping, vma, seen);

		CF_MUTATION(morsel_flush_twice, first = true);
		if (first)
			morsel_flush_mm(m, vma, start, end, tables);
		CF_MUTATION(morsel_flush_one, return);
		if (sleeps)
			cond_resched();
	}
}

/**
 * morsel_flush() - flush every process that maps a morsel
 * @m: the morsel
 * @start: first byte that was cut
 * @end: behind the last one
 * @tables: for tables that are to be freed
 *
 * Context: may sleep; i_mmap is held.
 */
void morsel_flush(struct morsel *m, u64 start, u64 end, bool tables)
{
	morsel_flush_each(m, start, end, tables, true);
}

/**
 * morsel_flush_locked() - the same for a few pages, under the lock of their table
 * @m: the morsel
 * @start: first byte that was cut
 * @end: behind the last one
 *
 * Context: i_mmap is held.
 */
void morsel_flush_locked(struct morsel *m, u64 start, u64 end)
{
	morsel_flush_each(m, start, end, false, false);
}

/* What secondary MMUs are told of a mapping, at both ends. */
static bool morsel_notice(struct vm_area_struct *vma, u64 start, u64 end,
			  struct mmu_notifier_range *range)
{
	unsigned long from, to;

	CF_MUTATION(morsel_unnoticed, return false);
	if (!mm_has_notifiers(vma->vm_mm) ||
	    !morsel_part(vma, start, end, &from, &to))
		return false;
	mmu_notifier_range_init(range, MMU_NOTIFY_CLEAR, 0, vma->vm_mm, from,
				to);
	return true;
}

/**
 * morsel_flush_begin() - before the first cut
 * @m: the morsel
 * @start: first byte
 * @end: behind the last one
 */
void morsel_flush_begin(struct morsel *m, u64 start, u64 end)
{
	struct address_space *mapping = m->inode.i_mapping;
	struct mmu_notifier_range range;
	struct vm_area_struct *vma;

	i_mmap_lock_read(mapping);
	/* Before the first cut, which is a full barrier. */
	atomic_inc(&m->cutting);
	vma_interval_tree_foreach(vma, &mapping->i_mmap, 0, ULONG_MAX)
		if (morsel_notice(vma, start, end, &range))
			mmu_notifier_invalidate_range_start(&range);
}

/**
 * morsel_must_flush() - is a flush due after the last cut?
 * @m: the morsel
 * @found: something was cut
 *
 * Who cuts holds i_mmap for reading only, so others may cut at the same time:
 *
 *   one				the other
 *   cuts the entry of a page
 *					finds nothing there, and returns: but CPUs can
 *					still use the page
 *   flushes
 *
 * So who has found nothing flushes as well, if somebody else has cut and may not have flushed. It
 * has found what the other one has left by xchg() after his increment; so what it reads later
 * is that, or that he has flushed.
 */
bool morsel_must_flush(struct morsel *m, bool found)
{
	CF_MUTATION(morsel_flush_own, return found);
	/* The entries before the count. */
	smp_rmb();
	return found || atomic_read(&m->cutting) > 1;
}

/**
 * morsel_flush_end() - after the flush
 * @m: the morsel
 * @start: as for morsel_flush_begin()
 * @end: as for morsel_flush_begin()
 */
void morsel_flush_end(struct morsel *m, u64 start, u64 end)
{
	struct address_space *mapping = m->inode.i_mapping;
	struct mmu_notifier_range range;
	struct vm_area_struct *vma;

	/* After the flush. */
	smp_mb__before_atomic();
	atomic_dec(&m->cutting);
	vma_interval_tree_foreach(vma, &mapping->i_mmap, 0, ULONG_MAX)
		if (morsel_notice(vma, start, end, &range))
			mmu_notifier_invalidate_range_end(&range);
	i_mmap_unlock_read(mapping);
}
