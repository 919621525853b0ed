// SPDX-License-Identifier: GPL-2.0
/*
 * A CPU that does not use a region any more is noted for it no more: a thread that
 * has moved on, a table that was handed to another thread.
 *
 * The copy says what is used: hardware sets the accessed bit of the entry when it
 * walks there. A CPU that is interrupted for a region clears the bit. If it finds it
 * clear the next time, too, then it has not walked there in between, and leaves. What is
 * in use all the time may be in the TLB, and is left as well; that costs a fault.
 *
 * Leaving: the entry, then a flush of everything, then the bit of the mask. Who
 * flushes and does not see the bit any more changes entries that this CPU cannot
 * have. Interrupts are off, and an NMI fills nothing meanwhile.
 *
 * Locks: none. Caller: the interrupt for a flush.
 */
#include <linux/mm.h>
#include <linux/vmstat.h>

#include <asm/tlbflush.h>

#include "../../../../mm/ceasefire/mutate.h"
#include "sharers.h"

/* Of an entry of a copy: interrupted once since it was walked. */
#define SHARERS_ASKED	_PAGE_SOFTW1

/* Was the region not walked to since the CPU was interrupted for it twice? */
static bool sharers_is_unused(pmd_t *copy)
{
	pmdval_t old = pmd_val(READ_ONCE(*copy));

	if (!(old & _PAGE_PRESENT))
		return true;
	/* Of a huge entry it is always set, so only interrupts count. */
	if (old & _PAGE_ACCESSED && !pmd_leaf(__pmd(old))) {
		/* Others may take the entry away: that wins. */
		try_cmpxchg(&copy->pmd, &old,
			    old & ~(pmdval_t)(_PAGE_ACCESSED | SHARERS_ASKED));
		return false;
	}
	if (old & SHARERS_ASKED)
		return true;
	try_cmpxchg(&copy->pmd, &old, old | SHARERS_ASKED);
	return false;
}

static void sharers_flush_all_here(struct sharers_cpu *sc)
{
	u64 asked = atomic64_read(&sc->asked);

	CF_MUTATION(sharers_leave_unflushed, return);
	flush_tlb_local();
	sc->done = asked;
}

static void sharers_leave(struct sharers *s, struct sharers_cpu *sc,
			  unsigned long addr, pmd_t *copy)
{
	sc->leaving = true;
	barrier();
	xchg(&copy->pmd, 0);
	sharers_flush_all_here(sc);
	/* The flush is over before others see that the bit is gone. */
	smp_mb__before_atomic();
	clear_bit(sc->slot, sharers_mask(s, addr));
	barrier();
	sc->leaving = false;
	count_vm_event(SHARERS_LEAVE);
}

/**
 * sharers_leave_unused() - this CPU was interrupted for a range
 * @s: of the process
 * @sc: of this CPU, confined
 * @start: first address
 * @end: first address behind it
 *
 * Context: interrupts off; the flush was done.
 */
void sharers_leave_unused(struct sharers *s, struct sharers_cpu *sc,
			  unsigned long start, unsigned long end)
{
	unsigned long *mask;
	pmd_t *copy;

	/* Of long ranges it would take too long, here. */
	if (start >> SHARERS_REGION_SHIFT != (end - 1) >> SHARERS_REGION_SHIFT)
		return;
	mask = sharers_mask(s, start);
	if (!mask || !test_bit(sc->slot, mask))
		return;
	copy = sharers_copy(sc, start);
	if (copy && sharers_is_unused(copy))
		sharers_leave(s, sc, start, copy);
}
