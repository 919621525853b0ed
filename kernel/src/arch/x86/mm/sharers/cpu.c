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
 * unconfined -> confined: CR3 with a flush, then the bit is cleared: at once by a tick,
 * after a switch by the next fill or tick. A bit too many costs an interrupt.
 *
 * An interrupt changes the root only where it has interrupted user mode: what else it
 * interrupts may have read CR3, and writes it back (flush_tlb_local()), or has told the
 * hardware to load it (KVM).
 *
 * While CR3 and what is said of it differ, loaded_mm is LOADED_MM_SWITCHING, as ever:
 * an NMI neither touches user memory nor fills.
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
 * and flushes whenever it comes. It takes a slot only when it flushes next.
 *
 * Locks: sharers.lock for slots. Interrupts are off everywhere here.
 * Callers: switch_mm_irqs_off() and others in tlb.c, sched_tick(), fault.c.
 */
#include <linux/mm.h>
#include <linux/mmu_context.h>
#include <linux/sched.h>
#include <linux/vmstat.h>

#include <asm/irq_regs.h>
#include <asm/ptrace.h>
#include <asm/tlbflush.h>

#include <trace/events/ceasefire.h>

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

/* Has this CPU done all that it was asked? */
static bool sharers_has_done(struct sharers_cpu *sc, u64 asked)
{
	CF_MUTATION(sharers_behind_unseen, return true);
	return asked == sc->done;
}

/* Is it known as one for which there is no slot? */
static bool sharers_is_slotless(struct sharers *s, struct sharers_cpu *sc)
{
	return !sc && cpumask_test_cpu(smp_processor_id(), s->unconfined);
}

/* Are CPUs to do without copies from now on? */
static bool sharers_go_without(struct sharers *s)
{
	CF_MUTATION(sharers_never_stop, return false);
	return READ_ONCE(s->stopped);
}

/* And has it the root that it is to have? */
static bool sharers_is_current(struct sharers *s, struct sharers_cpu *sc)
{
	CF_MUTATION_IF(sharers_slotless_current, sharers_is_slotless(s, sc), return true);
	return sc && sc->confined != sharers_go_without(s) &&
	       sharers_has_done(sc, atomic64_read(&sc->asked));
}

/**
 * __sharers_behind() - a CPU leaves lazy mode
 * @mm: the process, which it goes on with
 *
 * Return: true if it was asked for a flush, or may have been.
 */
bool __sharers_behind(struct mm_struct *mm)
{
	struct sharers *s = mm->context.sharers;

	return !sharers_is_current(s, sharers_here(s));
}

static void sharers_join_unconfined(struct sharers *s)
{
	cpumask_set_cpu(smp_processor_id(), s->unconfined);
	/* The bit before the first walk. */
	smp_mb__after_atomic();
}

/* What this CPU has of the canonical root has been flushed. */
/* It has loaded its copy, and has not given it up again: a tracer may, between two functions. */
static void sharers_leave_unconfined(struct sharers *s, struct sharers_cpu *sc)
{
	if (!sc->confined || !cpumask_test_cpu(smp_processor_id(), s->unconfined))
		return;
	/* The flush before others see that the bit is gone. */
	smp_mb__before_atomic();
	cpumask_clear_cpu(smp_processor_id(), s->unconfined);
}

/* What it goes on with, or what it has to do, is not as it was. */
static noinline void sharers_switch_other(struct sharers *s, struct sharers_cpu *sc,
					  bool *need_flush)
{
	bool stopped = sharers_go_without(s);
	u64 asked;

	/* Also where a CPU leaves lazy mode, and has the process loaded already. */
	sharers_hide();
	if (!sc && !stopped)
		sc = sharers_take(s);
	if (!sc) {
		CF_MUTATION(sharers_slotless_unnoted, return);
		sharers_join_unconfined(s);
		*need_flush = true;
		return;
	}
	if (sc->confined == stopped) {
		if (stopped)
			sharers_join_unconfined(s);
		sc->confined = !stopped;
		*need_flush = true;
	}
	asked = atomic64_read(&sc->asked);
	if (!sharers_has_done(sc, asked))
		*need_flush = true;
	if (*need_flush)
		sc->done = asked;
}

/**
 * __sharers_switch() - a CPU switches to a process
 * @mm: the process; the CPU is in mm_cpumask, and that is visible
 * @need_flush: CR3 is loaded with a flush; may become true
 *
 * As a rule the CPU goes on with its own root, and owes nothing: then there is nothing to
 * say of CR3 that is not so already.
 */
void __sharers_switch(struct mm_struct *mm, bool *need_flush)
{
	struct sharers *s = mm->context.sharers;
	struct sharers_cpu *sc = sharers_here(s);

	if (unlikely(!sharers_is_current(s, sc)))
		sharers_switch_other(s, sc, need_flush);
}

/* From one root of the loaded process to the other one, with a flush. */
static void sharers_load(struct sharers *s, struct sharers_cpu *sc,
			 bool confined)
{
	pgd_t *root = confined ? sc->root : s->mm->pgd;

	sharers_hide();
	native_write_cr3((__native_read_cr3() & ~CR3_ADDR_MASK) | __sme_pa(root));
	/* Both halves, where there are two. */
	flush_tlb_local();
	sc->confined = confined;
	sharers_show(s->mm);
}

/**
 * sharers_unconfine() - this CPU goes on with the canonical root, for a while
 * @s: of the process, which is loaded
 * @sc: of this CPU, confined
 * @why: what it says about that
 */
void sharers_unconfine(struct sharers *s, struct sharers_cpu *sc,
		       enum sharers_unconfined why)
{
	sharers_join_unconfined(s);
	sharers_load(s, sc, false);
	count_vm_event(SHARERS_UNCONFINE);
	trace_sharers_unconfine(s->mm->context.ctx_id, why);
}

/* This CPU has a slot now, or gave up for a while. */
static void sharers_confine(struct sharers *s, struct sharers_cpu *sc)
{
	u64 asked = atomic64_read(&sc->asked);

	sharers_load(s, sc, true);
	sc->done = asked;
	sharers_leave_unconfined(s, sc);
}

/**
 * sharers_update() - this CPU goes on with the root that it is to have
 * @mm: the process, which is loaded, and runs
 *
 * Context: interrupts off; nobody below has read CR3.
 */
void sharers_update(struct mm_struct *mm)
{
	struct sharers *s = mm->context.sharers;
	struct sharers_cpu *sc = sharers_here(s);
	bool stopped = sharers_go_without(s);

	if (!sc && !stopped)
		sc = sharers_take(s);
	if (!sc)
		return;
	if (sc->confined && stopped)
		sharers_unconfine(s, sc, SHARERS_HAS_STOPPED);
	else if (sc->confined)
		sharers_leave_unconfined(s, sc);
	else if (!stopped)
		sharers_confine(s, sc);
}

/**
 * __sharers_tick() - the tick of a CPU that may have another root than it is to have
 *
 * Context: hard interrupt, interrupts off.
 */
void __sharers_tick(void)
{
	struct mm_struct *mm = this_cpu_read(cpu_tlbstate.loaded_mm);
	struct pt_regs *regs = get_irq_regs();
	struct sharers *s = READ_ONCE(mm->context.sharers);

	if (!s || this_cpu_read(cpu_tlbstate_shared.is_lazy))
		return;
	if (regs && user_mode(regs))
		sharers_update(mm);
	if (!sharers_here(s) && !READ_ONCE(s->stopped))
		sharers_want_more(s);
}
