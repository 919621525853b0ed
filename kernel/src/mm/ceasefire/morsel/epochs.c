// SPDX-License-Identifier: GPL-2.0
/*
 * Epochs of a lazy morsel: which of its offsets can CPUs still reach by what they have cached,
 * after they were given up without a flush (lazy_state.h)?
 *
 * Ticks pay for it, as for other debts of a process (core/tick.c): so each process that maps the
 * morsel gets a context when it does. One epoch at a time is closed and waits for them. Who
 * cannot wait has all flush, once for all that was given up before.
 *
 *   populates A again		has it cached
 *   A has a mark: the same page, or a flush, or ticks have paid
 *   installs a page
 *				reads A: walks, finds the new page
 *
 * Who depopulates in the ordinary way flushes for marks first: it drops them, and frees pages
 * that have been given up elsewhere before. It holds the inode lock exclusively, who gives up
 * pages holds it shared.
 *
 * A mapping that goes flushes by itself (M3), and one that comes has nothing cached.
 *
 * Locks: @lazy_lock, i_mmap_rwsem inside. Who installs may hold mmap_lock or a VMA's, outside.
 * Callers: lazy.c; pool.c, tree.c (is it owed?); populate.c (wait); prune.c (settle); map.c.
 */
#include <linux/mm.h>
#include <linux/mutex.h>
#include <linux/vmstat.h>

#include "../core/core.h"
#include "morsel.h"

/**
 * morsel_owes() - has somebody not flushed yet for what has a mark?
 * @m: the morsel
 * @mark: the mark; 0 is for what was never given up
 */
bool morsel_owes(struct morsel *m, u64 mark)
{
	/* Pairs with morsel_epoch_settled(): the flush before what is done with the page. */
	return morsel_epoch_is_owed(mark, smp_load_acquire(&m->epochs.settled));
}

/**
 * morsel_is_owed() - may a CPU still reach an offset by an old translation?
 * @m: the morsel
 * @leaf: its entry, under the lock of the table
 */
bool morsel_is_owed(struct morsel *m, unsigned long leaf)
{
	CF_MUTATION(morsel_owed_unseen, return false);
	return morsel_owes(m, morsel_leaf_mark(leaf));
}

/* The newest flush that a mapping's process has to complete; 0: none. */
static u64 morsel_target(struct vm_area_struct *vma)
{
	return (u64)READ_ONCE(vma->vm_private_data);
}

/**
 * morsel_epoch_map() - a process maps a morsel, or mremap() or fork() has copied a mapping
 * @vma: the mapping; the process' mmap_lock is held for writing
 *
 * It has nothing cached yet. A child gets no context: what it maps is flushed for.
 */
void morsel_epoch_map(struct vm_area_struct *vma)
{
	struct mm_struct *mm = vma->vm_mm;

	WRITE_ONCE(vma->vm_private_data, NULL);
	if (morsel_of_vma(vma)->lazy && !mm->cf && mm == current->mm)
		cf_ctx_create(mm);
}

static void morsel_epoch_settled(struct morsel *m, u64 epoch)
{
	/* Flushes were completed before. */
	smp_store_release(&m->epochs.settled, epoch);
}

/* The epoch ends; returns its number. Others may be reading it. */
static u64 morsel_epoch_close(struct morsel *m)
{
	u64 epoch = m->epochs.now;

	m->epochs.closed = epoch;
	WRITE_ONCE(m->epochs.now, epoch + 1);
	/* Before the targets, or before the flush. */
	smp_mb();
	return epoch;
}

/* Let ticks pay for all that was given up until now. Under i_mmap and @lazy_lock. */
static void morsel_epoch_begin(struct morsel *m)
{
	struct address_space *mapping = m->inode.i_mapping;
	struct vm_area_struct *vma;

	morsel_epoch_close(m);
	guard(rcu)();
	vma_interval_tree_foreach(vma, &mapping->i_mmap, 0, ULONG_MAX) {
		/* In i_mmap it is there, or the mapping's process has never had one. */
		struct cf_ctx *ctx = READ_ONCE(vma->vm_mm->cf);
		u64 gen;

		if (!ctx)
			continue;
		gen = cf_started(ctx);
		WRITE_ONCE(vma->vm_private_data, (void *)(gen + 1));
		cf_owe(ctx, gen);
		cf_settle_soon(ctx);
	}
}

static bool morsel_has_paid(struct vm_area_struct *vma)
{
	u64 target = morsel_target(vma);
	struct cf_ctx *ctx;

	if (!target)
		return true;
	guard(rcu)();
	ctx = READ_ONCE(vma->vm_mm->cf);
	return !ctx || READ_ONCE(ctx->dead) || !cf_is_owed_for(ctx, target);
}

/* Have all paid for the epoch that was closed? Under i_mmap and @lazy_lock. */
static void morsel_epoch_look(struct morsel *m)
{
	struct address_space *mapping = m->inode.i_mapping;
	struct vm_area_struct *vma;

	if (!morsel_epochs_wait(&m->epochs))
		return;
	vma_interval_tree_foreach(vma, &mapping->i_mmap, 0, ULONG_MAX)
		if (!morsel_has_paid(vma))
			return;
	morsel_epoch_settled(m, m->epochs.closed);
}

/**
 * morsel_epoch_flush() - have all flush for a mark, unless ticks have seen to it
 * @m: the morsel
 * @mark: the mark
 * @why: what to count
 *
 * Context: may sleep.
 */
void morsel_epoch_flush(struct morsel *m, u64 mark, enum vm_event_item why)
{
	struct address_space *mapping = m->inode.i_mapping;
	u64 epoch;

	mutex_lock(&m->lazy_lock);
	i_mmap_lock_read(mapping);
	morsel_epoch_look(m);
	if (morsel_owes(m, mark)) {
		epoch = morsel_epoch_close(m);
		morsel_flush(m, 0, U64_MAX, false);
		morsel_epoch_settled(m, epoch);
		count_vm_event(why);
	}
	i_mmap_unlock_read(mapping);
	mutex_unlock(&m->lazy_lock);
}

/**
 * morsel_epoch_wait() - an offset is populated again
 * @m: the morsel
 *
 * Context: may sleep.
 * All that was given up before can be populated when it returns.
 */
void morsel_epoch_wait(struct morsel *m)
{
	morsel_epoch_flush(m, READ_ONCE(m->newest), MORSEL_LAZY_FLUSH_AGAIN);
}

static bool morsel_settles_first(void)
{
	CF_MUTATION(morsel_marks_dropped, return false);
	return true;
}

/**
 * morsel_epoch_settle() - memory is about to be taken away in the ordinary way
 * @m: the morsel, inode lock held exclusively
 */
void morsel_epoch_settle(struct morsel *m)
{
	if (m->lazy && morsel_settles_first())
		morsel_epoch_flush(m, m->newest, MORSEL_LAZY_FLUSH_TAKEN);
}

/**
 * morsel_epoch_turn() - see whether ticks have paid, and let them pay for what came since
 * @m: the morsel; @lazy_lock and i_mmap are held
 */
void morsel_epoch_turn(struct morsel *m)
{
	morsel_epoch_look(m);
	if (!morsel_epochs_wait(&m->epochs) &&
	    morsel_owes(m, READ_ONCE(m->newest)))
		morsel_epoch_begin(m);
}

/**
 * morsel_epoch_end() - the object goes
 * @m: the object, which nobody maps: each mapping has flushed
 */
void morsel_epoch_end(struct morsel *m)
{
	morsel_epoch_settled(m, m->epochs.now);
}
