// SPDX-License-Identifier: GPL-2.0
/*
 * Flushes that go to the CPUs that are noted for the range, and to nobody else.
 *
 * Each CPU counts its own: asked, by whoever flushes, and done. tlb_gen is not
 * touched, so CPUs that are left out owe nothing, and nobody takes this for a flush
 * that all have done (I11). The handler flushes only the range if that is all
 * that was asked of its CPU since it flushed last, as flush_tlb_func() does:
 *
 *   own == done + 1 and own == asked
 *
 * Then nobody else's request is passed over: one with a number below was done, one
 * above would be in asked, or comes with an interrupt of its own.
 *
 * What has no range, what is too long, and what is not in the user's half (an LDT,
 * ldt.c) goes the usual way: tlb_gen and all of mm_cpumask. That is right for
 * confined CPUs, too.
 *
 * Locks: none; those of the caller may be held. Callers: flush_tlb_mm_range(),
 * flush_tlb_func().
 */
#include <linux/cpumask.h>
#include <linux/mm.h>
#include <linux/mmu_context.h>
#include <linux/mmu_notifier.h>
#include <linux/percpu.h>
#include <linux/vmstat.h>

#include <asm/tlbflush.h>

#include "../mm_internal.h"
#include "../../../../mm/ceasefire/mutate.h"
#include "sharers.h"

struct sharers_flush {
	struct flush_tlb_info info;
	cpumask_t cpus;
	/* Which slots were asked, and the number of this request of each of them. */
	unsigned long asked;
	u64 own[SHARERS_SLOTS];
};

/* Of the CPU that flushes; preemption is off. */
static DEFINE_PER_CPU_SHARED_ALIGNED(struct sharers_flush, sharers_flush_state);

/* Ask all CPUs that may hold entries; who is there is said after that. */
static void sharers_ask(struct sharers *s, struct sharers_flush *f,
			unsigned long slots)
{
	struct sharers_cpu *sc;
	int slot, cpu;

	cpumask_copy(&f->cpus, s->unconfined);
	for_each_set_bit(slot, &slots, SHARERS_SLOTS)
		cpumask_set_cpu(s->slots[slot]->cpu, &f->cpus);
	f->asked = 0;
	for_each_cpu(cpu, &f->cpus) {
		sc = READ_ONCE(s->cpu[cpu]);
		if (!sc)
			continue;
		f->own[sc->slot] = atomic64_inc_return(&sc->asked);
		__set_bit(sc->slot, &f->asked);
	}
	/* All were asked before it is looked at who is there; see cpu.c. */
	smp_mb__after_atomic();
	cpumask_and(&f->cpus, &f->cpus, mm_cpumask(s->mm));
}

/*
 * Does this CPU run the process? It may be left in mm_cpumask, and flush for a process
 * of somebody else; or it was lazy, and has let go of the process since it was asked. Then
 * it has done nothing yet, and finds that out when it comes back.
 */
static bool sharers_is_loaded(struct mm_struct *mm)
{
	CF_MUTATION(sharers_unloaded, return true);
	return this_cpu_read(cpu_tlbstate.loaded_mm) == mm;
}

static void sharers_send(struct sharers_flush *f, int cpu)
{
	if (cpumask_any_but(&f->cpus, cpu) < nr_cpu_ids) {
		count_vm_event(SHARERS_FLUSH_REMOTE);
		flush_tlb_multi(&f->cpus, &f->info);
		return;
	}
	count_vm_event(SHARERS_FLUSH_LOCAL);
	if (cpumask_test_cpu(cpu, &f->cpus)) {
		local_irq_disable();
		if (sharers_is_loaded(f->info.mm))
			__sharers_flush_here(&f->info);
		local_irq_enable();
	}
}

/* Do masks say who may hold an entry of a range? */
static bool sharers_is_noted(unsigned long end)
{
	CF_MUTATION(sharers_ldt_narrow, return end != TLB_FLUSH_ALL);
	return end <= TASK_SIZE_MAX;
}

/**
 * __sharers_flush() - flush a range where somebody may hold it
 * @mm: the process
 * @start: first address
 * @end: first address behind it, or TLB_FLUSH_ALL
 * @stride_shift: of the entries
 * @freed_tables: CPUs in lazy mode, too
 *
 * Context: interrupts on.
 * Return: false if nothing was done, and it has to be done as usual.
 */
bool __sharers_flush(struct mm_struct *mm, unsigned long start,
		     unsigned long end, unsigned int stride_shift,
		     bool freed_tables)
{
	struct sharers *s = mm->context.sharers;
	struct sharers_flush *f;
	unsigned long slots;
	int cpu;

	/* The changes before the masks. */
	smp_mb();
	if (!sharers_is_noted(end) || READ_ONCE(s->stopped) ||
	    !sharers_mask_range(s, start, end, &slots)) {
		count_vm_event(SHARERS_FLUSH_ALL);
		return false;
	}
	cpu = get_cpu();
	f = this_cpu_ptr(&sharers_flush_state);
	f->info = (struct flush_tlb_info){
		.mm = mm, .start = start, .end = end,
		.new_tlb_gen = TLB_GENERATION_INVALID, .initiating_cpu = cpu,
		.stride_shift = stride_shift, .freed_tables = freed_tables,
		.sharers = 1,
	};
	if ((end - start) >> stride_shift > tlb_single_page_flush_ceiling)
		f->info.end = TLB_FLUSH_ALL;
	sharers_ask(s, f, slots);
	sharers_send(f, cpu);
	put_cpu();
	mmu_notifier_arch_invalidate_secondary_tlbs(mm, start, end);
	return true;
}

/* Is there a CPU to interrupt but this one? */
static bool sharers_is_elsewhere(struct sharers *s, unsigned long slots, int cpu)
{
	const struct cpumask *running = mm_cpumask(s->mm);
	int slot, other;

	for_each_set_bit(slot, &slots, SHARERS_SLOTS) {
		other = s->slots[slot]->cpu;
		if (other != cpu && cpumask_test_cpu(other, running))
			return true;
	}
	for_each_cpu_and(other, s->unconfined, running)
		if (other != cpu)
			return true;
	return false;
}

/**
 * __sharers_only_here() - would a flush of a range interrupt nobody?
 * @mm: the process
 * @start: first address
 * @end: first address behind it
 *
 * Only an advice: the flush itself looks again. A CPU that comes to the range after
 * this finds it as it is now.
 *
 * Context: any. The entries of the range have been changed.
 */
bool __sharers_only_here(struct mm_struct *mm, unsigned long start,
			 unsigned long end)
{
	struct sharers *s = mm->context.sharers;
	unsigned long slots;
	bool elsewhere;

	/* The changes before the masks. */
	smp_mb();
	if (!sharers_is_noted(end) || READ_ONCE(s->stopped) ||
	    !sharers_mask_range(s, start, end, &slots))
		return false;
	elsewhere = sharers_is_elsewhere(s, slots, get_cpu());
	put_cpu();
	return !elsewhere;
}

static void sharers_flush_range(const struct flush_tlb_info *info)
{
	unsigned long addr, step = 1UL << info->stride_shift;

	for (addr = info->start; addr < info->end; addr += step)
		flush_tlb_one_user(addr);
	count_vm_tlb_events(NR_TLB_LOCAL_FLUSH_ONE,
			    (info->end - info->start) >> info->stride_shift);
}

static void sharers_flush_all(void)
{
	flush_tlb_local();
	count_vm_tlb_event(NR_TLB_LOCAL_FLUSH_ALL);
}

/* Is the range all that was asked of this CPU? */
static bool sharers_is_all(struct sharers_cpu *sc, u64 own, u64 asked)
{
	CF_MUTATION(sharers_range_only, return true);
	return own == sc->done + 1 && own == asked;
}

/**
 * __sharers_flush_here() - this CPU was asked to flush
 * @info: for what
 *
 * Context: interrupts off.
 */
void __sharers_flush_here(const struct flush_tlb_info *info)
{
	const struct sharers_flush *f = container_of(info, struct sharers_flush, info);
	bool range = info->end != TLB_FLUSH_ALL;
	struct sharers *s = info->mm->context.sharers;
	struct sharers_cpu *sc = sharers_here(s);
	u64 own, asked;

	/* Who is lazy finds out when that ends; but walks until then. */
	if (this_cpu_read(cpu_tlbstate_shared.is_lazy)) {
		if (info->freed_tables)
			switch_mm_irqs_off(NULL, &init_mm, NULL);
		return;
	}
	/* Nothing is passed over where there are no numbers: each one is waited for. */
	if (!sc) {
		if (range)
			sharers_flush_range(info);
		else
			sharers_flush_all();
		return;
	}
	/* Not asked: it had no slot yet, and has flushed since it has one. */
	own = test_bit(sc->slot, &f->asked) ? f->own[sc->slot] : 0;
	if (own <= sc->done)
		return;
	asked = atomic64_read(&sc->asked);
	if (range && sharers_is_all(sc, own, asked))
		sharers_flush_range(info);
	else
		sharers_flush_all();
	sc->done = asked;
	if (info->initiating_cpu != smp_processor_id() && range && sc->confined)
		sharers_leave_unused(s, sc, info->start, info->end);
}
