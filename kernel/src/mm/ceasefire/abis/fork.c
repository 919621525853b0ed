// SPDX-License-Identifier: GPL-2.0
/*
 * Entries that no CPU has after a fork().
 *
 * A process that makes a child with memory of its own flushes everything in the end, since
 * its private pages are write protected by then. So no CPU has any entry, but all that it
 * has used say that one may: each page that is written to and copied afterwards would
 * be flushed for once more, and everywhere. So their accessed bits are cleared; the bit beside
 * it keeps what Linux wants to know.
 *
 * Until that flush CPUs do have them:
 *
 *   fork()				CPU		somebody without mmap_lock
 *   (lock of the page table)		has the entry
 *   born = for ever
 *   clears the bit
 *							clears the entry; the bit was not set
 *							born: owed, so it flushes
 *   ...
 *   born = started + 1					... and so it does,
 *   flushes everything			drops it	until that is done
 *
 * Somebody is truncation, which takes private copies away, reclaim, migration: system calls
 * of the process wait for mmap_lock. A fault under the lock of a mapping that fork() has not come
 * to goes on, and what it makes counts as owed, too. Who finds the bit clear has taken the lock of
 * the page table after it was cleared, and so sees the first value, or the second one; the
 * third step is as a choice has it (cf_born_end()). Whoever else writes that value has
 * mmap_lock for writing, too. A process that shares memory with its child for good, by
 * vfork() or as threads do, changes no entry and comes by here never.
 *
 * The child is of no concern: no CPU has walked its tables, and its entries are without the
 * bit as ever.
 *
 * Locks: mmap_lock for writing, and the page table lock of the entry.
 * Callers: copy_present_ptes(), dup_mmap().
 */
#include <linux/delay.h>
#include <linux/mm.h>
#include <linux/vmstat.h>

#include "abis.h"

/* From now on no clear bit is believed. */
static void abis_fork_begin(struct cf_ctx *ctx)
{
	if (ctx->born == U64_MAX)
		return;
	CF_MUTATION(abis_fork_unseen, return);
	WRITE_ONCE(ctx->born, U64_MAX);
	/* Before the first bit: an order that the lock of the table does not make for others. */
	smp_mb__before_atomic();
}

/* No CPU at all, whatever it was for. Hardware may set the bit meanwhile. */
static bool abis_fork_clear(pte_t *ptep)
{
	pte_t old = ptep_get(ptep), new;

	do {
		new = pte_clear_flags(old, _PAGE_CLASS);
		if (pte_flags(old) & _PAGE_ACCESSED)
			new = abis_keep_use(new);
		if (pte_same(old, new))
			return false;
	} while (!try_cmpxchg(&ptep->pte, &old.pte, new.pte));
	return true;
}

/**
 * __abis_forked() - a child has got what entries map
 * @vma: their mapping
 * @ptep: the first one, write protected if it is to be copied
 * @pte: that one as it was
 * @nr: their number, of one folio
 *
 * With one thread there is nobody to be asked later.
 *
 * Return: what the child gets; it names no CPU.
 */
pte_t __abis_forked(struct vm_area_struct *vma, pte_t *ptep, pte_t pte,
		    unsigned int nr)
{
	struct cf_ctx *ctx = vma->vm_mm->cf;
	pte_t child = pte_clear_flags(pte, _PAGE_CLASS);
	unsigned long cleared = 0;

	if (!ctx || atomic_read(&vma->vm_mm->mm_users) < 2 ||
	    !is_cow_mapping(vma->vm_flags) ||
	    !abis_profits(vma, pte, ABIS_SOURCE_UNCACHED))
		return child;
	abis_fork_begin(ctx);
	for (; nr--; ptep++)
		cleared += abis_fork_clear(ptep);
	count_vm_events(ABIS_CLEANED, cleared);
	return child;
}

/**
 * __abis_fork_ends() - a process is about to flush everything after a fork()
 * @mm: the process
 */
void __abis_fork_ends(struct mm_struct *mm)
{
	struct cf_ctx *ctx = mm->cf;

#ifdef CONFIG_CEASEFIRE_DEBUG
	mdelay(DIV_ROUND_UP(READ_ONCE(abis_flush_delay_us), USEC_PER_MSEC));
#endif
	if (ctx && ctx->born == U64_MAX)
		cf_born_end(ctx);
}
