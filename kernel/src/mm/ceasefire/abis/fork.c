// SPDX-License-Identifier: GPL-2.0
/*
 * Entries that no CPU has after a fork().
 *
 * A process that makes a child with memory of its own flushes everything in the end, since
 * its private pages are write protected by then. So no CPU has any entry, but all that it
 * has used say that one may: each page that is written to and copied afterwards would
 * be flushed for once more, and everywhere. As the entry is changed anyway, its accessed
 * bit goes in the same step; the bit beside it keeps what Linux wants to know.
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
 * Somebody is truncation, which takes private copies away, reclaim, migration, KSM: faults and
 * system calls of the process wait for the lock. Who finds the bit clear has taken the lock of
 * the page table after it was cleared, and so sees the first value, or the second one; the
 * third step is as a choice has it (cf_born_begin()). A process that shares memory with its
 * child for good, by vfork() or as threads do, changes no entry and comes by here never.
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

static void abis_fork_clear(pte_t *ptep)
{
	/* No CPU at all, whatever it was for. */
	abis_clear_class(ptep);
	if (!(pte_flags(*ptep) & _PAGE_ACCESSED))
		return;
	/* In this order: who looks finds one of them. Hardware may set the other meanwhile. */
	set_bit(_PAGE_BIT_USED, (unsigned long *)&ptep->pte);
	clear_bit(_PAGE_BIT_ACCESSED, (unsigned long *)&ptep->pte);
	count_vm_event(ABIS_CLEANED);
}

/**
 * __abis_forked() - a child has got what entries map
 * @vma: their mapping
 * @ptep: the first one, write protected if it is to be copied
 * @pte: that one as it was
 * @nr: their number, of one folio
 *
 * With one thread there is nobody to be asked later.
 */
void __abis_forked(struct vm_area_struct *vma, pte_t *ptep, pte_t pte,
		   unsigned int nr)
{
	struct cf_ctx *ctx = vma->vm_mm->cf;

	if (!ctx || atomic_read(&vma->vm_mm->mm_users) < 2 ||
	    !is_cow_mapping(vma->vm_flags) ||
	    !abis_profits(vma, pte, ABIS_SOURCE_UNCACHED))
		return;
	abis_fork_begin(ctx);
	for (; nr--; ptep++)
		abis_fork_clear(ptep);
}

/**
 * __abis_fork_ends() - a process is about to flush everything after a fork()
 * @mm: the process
 *
 * Where that flush is not for all CPUs (sharers), ticks pay.
 */
void __abis_fork_ends(struct mm_struct *mm)
{
	struct cf_ctx *ctx = mm->cf;

#ifdef CONFIG_CEASEFIRE_DEBUG
	mdelay(DIV_ROUND_UP(READ_ONCE(abis_flush_delay_us), USEC_PER_MSEC));
#endif
	if (!ctx || ctx->born != U64_MAX)
		return;
	cf_born_end(ctx);
	cf_owe_young(ctx, cf_started(ctx));
}
