// SPDX-License-Identifier: GPL-2.0
/*
 * A CPU that does not use a region any more is noted for it no more: a thread that
 * has moved on, a table that was handed to another thread, or that was freed.
 *
 * The copy says what is used: hardware sets the accessed bit of the entry when it
 * walks there. A CPU that is interrupted for a region clears the bit. If it finds it
 * clear the next time, too, then it has not walked there in between, and leaves. What is
 * in use all the time may be in the TLB, and is left as well; that costs a fault.
 *
 * What was withdrawn it leaves at once, if it flushes everything anyway, also
 * where it is the one that flushes: a thread that maps and unmaps goes from CPU to CPU,
 * and those where it was are not interrupted for what it does elsewhere.
 *
 * A GiB that the copy has whole is left in the same way.
 *
 * Leaving: the entry, then a flush of everything, then the bit of the mask. Who
 * flushes and does not see the bit any more changes entries that this CPU cannot
 * have. Interrupts are off, and an NMI fills nothing meanwhile.
 *
 * Locks: none. Callers: flushes on the CPU itself (flush.c), most often in an interrupt.
 */
#include <linux/mm.h>
#include <linux/vmstat.h>

#include <asm/tlbflush.h>

#include <trace/events/ceasefire.h>

#include "../../../../mm/ceasefire/mutate.h"
#include "sharers.h"

/*
 * Was it not walked to since the CPU was interrupted for it twice? A huge entry does not
 * tell: one that is flushed as a whole stays as it is.
 */
static bool sharers_is_unused(unsigned long *copy, bool whole)
{
	unsigned long old = READ_ONCE(*copy);

	if (!(old & _PAGE_PRESENT))
		return true;
	if (old & _PAGE_PSE && whole)
		return false;
	/* Of a huge entry it is always set, so only interrupts count. */
	if (old & _PAGE_ACCESSED && !(old & _PAGE_PSE)) {
		/* Others may take the entry away: that wins. */
		try_cmpxchg(copy, &old, old & ~(_PAGE_ACCESSED | SHARERS_ASKED));
		return false;
	}
	if (old & SHARERS_ASKED)
		return true;
	try_cmpxchg(copy, &old, old | SHARERS_ASKED);
	return false;
}

static void sharers_flush_all_here(struct sharers_cpu *sc)
{
	u64 asked = atomic64_read(&sc->asked);

	CF_MUTATION(sharers_leave_unflushed, return);
	flush_tlb_local();
	sc->done = asked;
}

/* The flush is over before others see that the bit is gone. */
static void sharers_leave_mask(struct sharers_cpu *sc, unsigned long *mask)
{
	sharers_flush_all_here(sc);
	/* The flush before the bit. */
	smp_mb__before_atomic();
	clear_bit(sc->slot, mask);
}

static void sharers_has_left(struct sharers *s, unsigned long addr)
{
	count_vm_event(SHARERS_LEAVE);
	trace_sharers_leave(s->mm->context.ctx_id, addr);
}

/* Leave what @mask is about, if it is not used. Returns whether it did. */
static bool sharers_leave(struct sharers *s, struct sharers_cpu *sc,
			  unsigned long addr, unsigned long *mask,
			  unsigned long *copy, bool whole)
{
	if (!test_bit(sc->slot, mask) || !sharers_is_unused(copy, whole))
		return false;
	xchg(copy, 0);
	sharers_leave_mask(sc, mask);
	sharers_has_left(s, addr);
	return true;
}

/* Of long ranges it would take too long, here. */
static bool sharers_is_one_region(unsigned long start, unsigned long end)
{
	return start >> SHARERS_REGION_SHIFT == (end - 1) >> SHARERS_REGION_SHIFT;
}

/**
 * sharers_leave_unused() - this CPU was interrupted for a range
 * @s: of the process
 * @sc: of this CPU, confined and leaving
 * @start: first address
 * @end: first address behind it
 * @whole: it was too long to be flushed page by page
 *
 * Context: interrupts off; the flush was done.
 */
void sharers_leave_unused(struct sharers *s, struct sharers_cpu *sc,
			  unsigned long start, unsigned long end, bool whole)
{
	struct sharers_gib *gib = sharers_gib(s, start);
	pud_t *pud;
	pmd_t *pmd;

	if (!gib || !sharers_is_one_region(start, end))
		return;
	pud = sharers_copy_pud(sc, start);
	pmd = sharers_copy(sc, start);
	if (!pmd && pud)
		sharers_leave(s, sc, start, &gib->whole, &pud->pud,
			      whole);
	if (!pmd)
		return;
	if (sharers_leave(s, sc, start, sharers_mask(gib, start), &pmd->pmd,
			  whole))
		sharers_whole_unwanted(pmd);
	/* The GiB was withdrawn since, and has a table of this copy again. */
	if (test_bit(sc->slot, &gib->whole))
		sharers_leave_mask(sc, &gib->whole);
}

/* Is a region, for which this CPU is noted, gone from its copy? */
static bool sharers_is_gone(pmd_t *copy)
{
	CF_MUTATION(sharers_gone_unseen, return true);
	return !(pmd_flags(READ_ONCE(*copy)) & _PAGE_PRESENT);
}

/**
 * sharers_find_gone() - for what is this CPU noted that its copy does not lead to?
 * @s: of the process
 * @sc: of this CPU, confined and leaving
 * @start: first address of a range
 * @end: first address behind it
 * @gone: PTRS_PER_PMD bits, one for each region of the GiB: which ones these are
 *
 * Where tables go, the range begins where the largest one of them did: with the table of
 * a GiB, at its first region. What is in more than one GiB is not looked at.
 *
 * Context: interrupts off; before the flush.
 * Return: false if there is none.
 */
bool sharers_find_gone(struct sharers *s, struct sharers_cpu *sc,
		       unsigned long start, unsigned long end,
		       unsigned long *gone)
{
	unsigned long addr = start & PMD_MASK;
	struct sharers_gib *gib;
	pmd_t *pmd;

	bitmap_zero(gone, PTRS_PER_PMD);
	if (start >> SHARERS_GIB_SHIFT != (end - 1) >> SHARERS_GIB_SHIFT)
		return false;
	gib = sharers_gib(s, start);
	pmd = gib ? sharers_copy(sc, start) : NULL;
	CF_MUTATION(sharers_gone_stays, pmd = NULL);
	if (!pmd)
		return false;
	for (; addr < end; addr += PMD_SIZE, pmd++)
		if (test_bit(sc->slot, sharers_mask(gib, addr)) &&
		    sharers_is_gone(pmd))
			__set_bit(pmd_index(addr), gone);
	return !bitmap_empty(gone, PTRS_PER_PMD);
}

/**
 * sharers_leave_gone() - everything has been flushed since
 * @s: of the process
 * @sc: of this CPU
 * @addr: an address of the GiB
 * @gone: what sharers_find_gone() has found
 */
void sharers_leave_gone(struct sharers *s, struct sharers_cpu *sc,
			unsigned long addr, const unsigned long *gone)
{
	struct sharers_gib *gib = sharers_gib(s, addr);
	pmd_t *pmd = sharers_copy(sc, addr);
	unsigned int i;

	/* The flush before the bits. */
	smp_mb__before_atomic();
	for_each_set_bit(i, gone, PTRS_PER_PMD) {
		clear_bit(sc->slot, &gib->regions[i]);
		if (pmd)
			sharers_whole_unwanted(pmd);
		sharers_has_left(s, (addr & PUD_MASK) + i * PMD_SIZE);
	}
}
