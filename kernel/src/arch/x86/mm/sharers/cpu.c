// SPDX-License-Identifier: GPL-2.0
/*
 * Which root a CPU loads for a process: its own, or the canonical one.
 *
 * A CPU takes a slot, with a root that was made in advance, when it first switches
 * to the process. Without one it is unconfined: it loads the canonical root. There
 * it is until it has a slot, or until the next switch or tick if it was its
 * fault handler that had to give up.
 *
 * confined -> unconfined: the bit, a barrier, the canonical root. So a flush that
 * does not see the bit has changed its entries before this CPU walks there.
 * unconfined -> confined: CR3 with a flush, then the bit is cleared, by the first
 * fill after it. A bit too many costs an interrupt.
 *
 * A CPU that is not in mm_cpumask is not interrupted. It finds what it was asked
 * meanwhile when it comes back:
 *
 *   switch			flush
 *   mm_cpumask |= c		asked[c]++
 *   (locked)			(locked)
 *   reads asked[c]		reads mm_cpumask
 *   CR3; done = asked
 *
 * so one of them sees the other. A CPU without a slot has nothing to be asked by,
 * and flushes whenever it comes.
 *
 * Locks: sharers.lock for slots. Interrupts are off everywhere here.
 * Callers: switch_mm_irqs_off() and others in tlb.c, sched_tick(), fault.c.
 */
#include <linux/mm.h>
#include <linux/mmu_context.h>
#include <linux/sched.h>
#include <linux/vmstat.h>

#include <asm/tlbflush.h>

#include "../../../../mm/ceasefire/mutate.h"
#include "sharers.h"

/* One of the slots that are there, for this CPU. */
static struct sharers_cpu *sharers_take(struct sharers *s)
{
	struct sharers_cpu *sc = NULL;

	raw_spin_lock(&s->lock);
	if (s->taken < s->nr) {
		sc = s->slots[s->taken++];
		sc->cpu = smp_processor_id();
		/* Whoever finds it by its CPU finds all of it. */
		smp_store_release(&s->cpu[sc->cpu], sc);
	}
	raw_spin_unlock(&s->lock);
	return sc;
}

/**
 * __sharers_root() - the root of a process for this CPU
 * @mm: the process
 *
 * Return: what is in CR3, or is about to be.
 */
pgd_t *__sharers_root(struct mm_struct *mm)
{
	struct sharers_cpu *sc = sharers_here(mm->context.sharers);

	return sc && sc->confined ? sc->root : mm->pgd;
}

/**
 * __sharers_behind() - a CPU leaves lazy mode
 * @mm: the process, which it goes on with
 *
 * Return: true if it was asked for a flush, or may have been.
 */
bool __sharers_behind(struct mm_struct *mm)
{
	struct sharers_cpu *sc = sharers_here(mm->context.sharers);

	CF_MUTATION(sharers_behind_unseen, return false);
	return !sc || !sc->confined || atomic64_read(&sc->asked) != sc->done;
}

/**
 * __sharers_switch() - a CPU switches to a process
 * @mm: the process; the CPU is in mm_cpumask, and that is visible
 * @need_flush: CR3 is loaded with a flush; may become true
 */
void __sharers_switch(struct mm_struct *mm, bool *need_flush)
{
	struct sharers *s = mm->context.sharers;
	struct sharers_cpu *sc = sharers_here(s) ?: sharers_take(s);
	u64 asked;

	if (!sc || READ_ONCE(s->stopped)) {
		cpumask_set_cpu(smp_processor_id(), s->unconfined);
		/* The bit before the first walk. */
		smp_mb__after_atomic();
		*need_flush = true;
		if (sc)
			sc->confined = false;
		return;
	}
	if (!sc->confined) {
		sc->confined = true;
		*need_flush = true;
	}
	asked = atomic64_read(&sc->asked);
	CF_MUTATION(sharers_behind_unseen, asked = sc->done);
	if (asked != sc->done)
		*need_flush = true;
	if (*need_flush)
		sc->done = asked;
}

/* From one root to another one, with a flush. */
static void sharers_load(pgd_t *from, pgd_t *to)
{
	native_write_cr3(__native_read_cr3() ^ __sme_pa(from) ^ __sme_pa(to));
	/* Both halves, where there are two. */
	flush_tlb_local();
}

/**
 * sharers_unconfine() - this CPU goes on with the canonical root, for a while
 * @s: of the process, which is loaded
 * @sc: of this CPU, confined
 */
void sharers_unconfine(struct sharers *s, struct sharers_cpu *sc)
{
	cpumask_set_cpu(smp_processor_id(), s->unconfined);
	/* The bit before the first walk. */
	smp_mb__after_atomic();
	sc->confined = false;
	sharers_load(sc->root, s->mm->pgd);
	count_vm_event(SHARERS_UNCONFINE);
}

/* This CPU has a slot now, or gave up for a while. */
static void sharers_confine(struct sharers *s, struct sharers_cpu *sc)
{
	u64 asked = atomic64_read(&sc->asked);

	sharers_load(s->mm->pgd, sc->root);
	sc->done = asked;
	/* An NMI that sees it walks the copy. */
	barrier();
	sc->confined = true;
}

/**
 * __sharers_tick() - the tick of a CPU that may be unconfined
 *
 * Context: hard interrupt, interrupts off.
 */
void __sharers_tick(void)
{
	struct mm_struct *mm = this_cpu_read(cpu_tlbstate.loaded_mm);
	struct sharers *s = READ_ONCE(mm->context.sharers);
	struct sharers_cpu *sc;

	if (!s || READ_ONCE(s->stopped) ||
	    this_cpu_read(cpu_tlbstate_shared.is_lazy))
		return;
	sc = sharers_here(s) ?: sharers_take(s);
	if (!sc)
		sharers_want_more(s);
	else if (!sc->confined)
		sharers_confine(s, sc);
}
