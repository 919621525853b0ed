// SPDX-License-Identifier: GPL-2.0
/*
 * Flushes that reclaim puts off: it clears entries of many pages, of any processes, and
 * asks all their CPUs at once, by one interrupt that is for no process.
 *
 * Each entry of a process with copies asks those who are noted for its region, as a
 * flush does (flush.c), and only the interrupt is put off:
 *
 *   reclaim				CPU that is noted
 *   clears the entry
 *   barrier, reads the mask
 *   asked++
 *   barrier, reads mm_cpumask
 *   ... many times
 *   interrupts those			asked != done: flushes everything
 *   uses the pages
 *
 * One that switches to the process after asked++ finds that by itself (cpu.c), and one
 * in lazy mode, which is not interrupted, when that ends. Who was there and has
 * switched away meanwhile gets an interrupt for nothing. What asks for a range meanwhile
 * finds a number that was passed over, and flushes everything.
 *
 * tlb_gen is not touched; of a process without copies in the same batch it counts as
 * ever. Who finds a cleared entry and must know that no CPU has it any more does not wait
 * for reclaim: __sharers_defer_finish() in flush.c.
 *
 * Locks: the page table lock of the entry. Callers: arch_tlbbatch_add_pending(),
 * flush_tlb_func().
 */
#include <linux/cpumask.h>
#include <linux/mm.h>
#include <linux/mmu_notifier.h>
#include <linux/vmstat.h>

#include <asm/tlbflush.h>

#include <trace/events/ceasefire.h>

#include "../../../../mm/ceasefire/mutate.h"
#include "sharers.h"

static void sharers_defer_ask(struct sharers_cpu *sc)
{
	CF_MUTATION(sharers_defer_unasked, return);
	atomic64_inc(&sc->asked);
}

/* Those who have the canonical root now. */
static void sharers_defer_unconfined(struct sharers *s, struct cpumask *cpus)
{
	int cpu;

	CF_MUTATION(sharers_defer_unconfined, return);
	for_each_cpu_and(cpu, s->unconfined, mm_cpumask(s->mm))
		cpumask_set_cpu(cpu, cpus);
}

/**
 * __sharers_defer() - an entry was cleared, and its flush is put off
 * @cpus: those that are interrupted later; may become more
 * @mm: the process
 * @addr: of the page
 *
 * Return: false if all CPUs of the process have to flush.
 */
bool __sharers_defer(struct cpumask *cpus, struct mm_struct *mm,
		     unsigned long addr)
{
	struct sharers *s = mm->context.sharers;
	struct sharers_cpu *sc;
	unsigned long slots;
	int slot, cpu;

	/* The entry before the mask. */
	smp_mb();
	if (READ_ONCE(s->stopped))
		return false;
	sharers_mask_range(s, addr, addr + PAGE_SIZE, &slots);
	for_each_set_bit(slot, &slots, SHARERS_SLOTS)
		sharers_defer_ask(s->slots[slot]);
	/* Those without a slot flush whenever they come. */
	for_each_cpu(cpu, s->unconfined) {
		sc = READ_ONCE(s->cpu[cpu]);
		if (sc)
			sharers_defer_ask(sc);
	}
	/* All were asked before it is looked at who is there; see cpu.c. */
	smp_mb__after_atomic();
	for_each_set_bit(slot, &slots, SHARERS_SLOTS) {
		cpu = s->slots[slot]->cpu;
		if (cpumask_test_cpu(cpu, mm_cpumask(mm)))
			cpumask_set_cpu(cpu, cpus);
	}
	sharers_defer_unconfined(s, cpus);
	count_vm_event(SHARERS_DEFER);
	trace_sharers_defer(mm->context.ctx_id, addr, slots);
	mmu_notifier_arch_invalidate_secondary_tlbs(mm, addr, addr + PAGE_SIZE);
	return true;
}

/**
 * __sharers_flush_deferred() - this CPU is interrupted for a batch
 *
 * It is not said for which processes; this is about the one that is loaded.
 *
 * Context: interrupts off.
 */
void __sharers_flush_deferred(void)
{
	struct mm_struct *mm = this_cpu_read(cpu_tlbstate.loaded_mm);
	struct sharers *s = READ_ONCE(mm->context.sharers);
	struct sharers_cpu *sc;
	u64 asked;

	CF_MUTATION(sharers_defer_undone, return);
	/* Who is lazy finds out when that ends. */
	if (!s || this_cpu_read(cpu_tlbstate_shared.is_lazy))
		return;
	sc = sharers_here(s);
	if (!sc) {
		CF_MUTATION(sharers_slotless_unflushed, return);
		flush_tlb_local();
		return;
	}
	asked = atomic64_read(&sc->asked);
	if (asked == sc->done)
		return;
	flush_tlb_local();
	sc->done = asked;
}
