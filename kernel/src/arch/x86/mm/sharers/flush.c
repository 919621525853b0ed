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
 * flush_tlb_mm_range() itself is here; the usual way is flush_tlb_mm_cpus(), in tlb.c.
 *
 * Locks: none; those of the caller may be held. Callers: who changes entries,
 * flush_tlb_func().
 */
#include <linux/ceasefire_check.h>
#include <linux/cpumask.h>
#include <linux/delay.h>
#include <linux/mm.h>
#include <linux/mmu_context.h>
#include <linux/mmu_notifier.h>
#include <linux/percpu.h>
#include <linux/vmstat.h>

#include <asm/tlbflush.h>

#include <trace/events/ceasefire.h>

#include "../mm_internal.h"
#include "../../../../mm/ceasefire/mutate.h"
#include "sharers.h"

struct sharers_flush {
	/* Its end may be TLB_FLUSH_ALL. */
	struct flush_tlb_info info;
	unsigned long end;
	cpumask_t cpus;
	/* Which slots were asked, and the number of this request of each of them. */
	unsigned long asked;
	u64 own[SHARERS_SLOTS];
};

/* Of the CPU that flushes; preemption is off. */
static DEFINE_PER_CPU_SHARED_ALIGNED(struct sharers_flush, sharers_flush_state);

/* Nobody is asked yet; preemption is off. */
static struct sharers_flush *sharers_flush_begin(struct mm_struct *mm,
						 unsigned long start,
						 unsigned long end,
						 unsigned int stride_shift,
						 bool freed_tables, int cpu)
{
	struct sharers_flush *f = this_cpu_ptr(&sharers_flush_state);

	f->info = (struct flush_tlb_info){
		.mm = mm, .start = start, .end = end,
		.new_tlb_gen = TLB_GENERATION_INVALID, .initiating_cpu = cpu,
		.stride_shift = stride_shift, .freed_tables = freed_tables,
		.sharers = 1,
	};
	f->end = end;
	cpumask_clear(&f->cpus);
	f->asked = 0;
	return f;
}

/* Ask all CPUs that may hold entries; who is there is said after that. */
static void sharers_ask(struct sharers *s, struct sharers_flush *f,
			unsigned long slots)
{
	struct sharers_cpu *sc;
	int slot, cpu;

	cpumask_copy(&f->cpus, s->unconfined);
	for_each_set_bit(slot, &slots, SHARERS_SLOTS)
		cpumask_set_cpu(s->slots[slot]->cpu, &f->cpus);
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
 * Has this CPU the process loaded still? A thread of the kernel that flushes for it, in lazy
 * mode, may have been interrupted since for tables that go, and has let go of it then. What
 * it would flush now is its own; it has done nothing yet, and finds that out when it comes
 * back to the process.
 */
static bool sharers_is_loaded(struct mm_struct *mm)
{
	return this_cpu_read(cpu_tlbstate.loaded_mm) == mm;
}

static void sharers_flush_range(unsigned long start, unsigned long end,
				unsigned int stride_shift)
{
	unsigned long addr;

	for (addr = start; addr < end; addr += 1UL << stride_shift)
		flush_tlb_one_user(addr);
	count_vm_tlb_events(NR_TLB_LOCAL_FLUSH_ONE, (end - start) >> stride_shift);
}

static void sharers_flush_all(void)
{
	flush_tlb_local();
	count_vm_tlb_event(NR_TLB_LOCAL_FLUSH_ALL);
}

/* No NMI fills anything between the two. */
static void sharers_leaving_begin(struct sharers_cpu *sc)
{
	sc->leaving = true;
	barrier();
}

static void sharers_leaving_end(struct sharers_cpu *sc)
{
	barrier();
	sc->leaving = false;
}

/* All of this CPU's TLB; it is for a range, of which regions may be gone. */
static void sharers_flush_and_leave(struct sharers *s, struct sharers_cpu *sc,
				    unsigned long start, unsigned long end)
{
	DECLARE_BITMAP(gone, PTRS_PER_PMD);
	bool leaves;

	sharers_leaving_begin(sc);
	leaves = sc->confined && sharers_find_gone(s, sc, start, end, gone);
	sharers_flush_all();
	if (leaves)
		sharers_leave_gone(s, sc, start, gone);
	sharers_leaving_end(sc);
}

static bool sharers_is_long(unsigned long start, unsigned long end,
			    unsigned int stride_shift)
{
	return (end - start) >> stride_shift > tlb_single_page_flush_ceiling;
}

/* Debug builds: makes the time between the requests and the flush long. */
static void sharers_send_pause(void)
{
#ifdef CONFIG_CEASEFIRE_DEBUG
	u32 us = READ_ONCE(sharers_send_delay_us);

	if (us)
		mdelay(us / USEC_PER_MSEC);
#endif
}

static void sharers_send(struct sharers_flush *f, int cpu)
{
	sharers_send_pause();
	if (cpumask_any_but(&f->cpus, cpu) < nr_cpu_ids) {
		count_vm_event(SHARERS_FLUSH_REMOTE);
		flush_tlb_multi(&f->cpus, &f->info);
		return;
	}
	count_vm_event(SHARERS_FLUSH_LOCAL);
	if (cpumask_test_cpu(cpu, &f->cpus)) {
		local_irq_disable();
		CF_MUTATION(sharers_let_go_unseen, __sharers_flush_here(&f->info));
		if (sharers_is_loaded(f->info.mm))
			__sharers_flush_here(&f->info);
		local_irq_enable();
	}
}

/* Do masks say who may hold an entry of a range? */
static bool sharers_is_noted(unsigned long end)
{
	CF_MUTATION(sharers_ldt_narrow, return true);
	return end <= TASK_SIZE_MAX;
}

/* Why a flush has to go to all CPUs; 0: @slots may hold the range. */
static enum vm_event_item sharers_must_ask_all(struct sharers *s,
					       unsigned long start,
					       unsigned long end,
					       unsigned long *slots)
{
	if (READ_ONCE(s->stopped))
		return SHARERS_ALL_STOPPED;
	if (end == TLB_FLUSH_ALL)
		return SHARERS_ALL_WHOLE;
	return sharers_is_noted(end) && sharers_mask_range(s, start, end, slots) ?
	       0 : SHARERS_ALL_LONG;
}

/* Are those who may hold a range, by the masks, nobody but this CPU? */
static bool sharers_is_mine(struct sharers *s, struct sharers_cpu *sc,
			    unsigned long slots)
{
	CF_MUTATION(sharers_mine_noted, slots = 0);
	CF_MUTATION(sharers_mine_unconfined, return !(slots & ~BIT(sc->slot)));
	return !(slots & ~BIT(sc->slot)) &&
	       cpumask_any_but(s->unconfined, sc->cpu) >= nr_cpu_ids;
}

/*
 * The common case: only this CPU may hold it, and has the process loaded. It flushes, and
 * counts nothing: what others have asked it for has its number still, and its interrupt.
 * In lazy mode it would have to find out later that it was asked.
 *
 * The masks were read after the entries were changed, on whatever CPU that was; the
 * question is whether they name another one than this.
 */
static bool sharers_flush_mine(struct sharers *s, unsigned long slots,
			       unsigned long start, unsigned long end,
			       unsigned int stride_shift)
{
	struct sharers_cpu *sc;
	bool mine;

	local_irq_disable();
	sc = sharers_here(s);
	mine = sc && sharers_is_loaded(s->mm) &&
	       !this_cpu_read(cpu_tlbstate_shared.is_lazy) &&
	       sharers_is_mine(s, sc, slots);
	if (mine && sharers_is_long(start, end, stride_shift))
		sharers_flush_and_leave(s, sc, start, end);
	else if (mine)
		sharers_flush_range(start, end, stride_shift);
	if (mine) {
		count_vm_event(SHARERS_FLUSH_LOCAL);
		trace_sharers_flush(s->mm->context.ctx_id, start, end,
				    cpumask_of(sc->cpu));
	}
	local_irq_enable();
	return mine;
}

/* Ask all who may hold it. */
static void sharers_flush_slots(struct sharers *s, unsigned long slots,
				unsigned long start, unsigned long end,
				unsigned int stride_shift, bool freed_tables)
{
	int cpu = get_cpu();
	struct sharers_flush *f;

	f = sharers_flush_begin(s->mm, start, end, stride_shift, freed_tables, cpu);
	if (sharers_is_long(start, end, stride_shift))
		f->info.end = TLB_FLUSH_ALL;
	sharers_ask(s, f, slots);
	trace_sharers_flush(s->mm->context.ctx_id, start, end, &f->cpus);
	sharers_send(f, cpu);
	put_cpu();
}

static void sharers_flush_noted(struct sharers *s, unsigned long slots,
				unsigned long start, unsigned long end,
				unsigned int stride_shift, bool freed_tables)
{
	ceasefire_flush(s->mm, start, end, stride_shift);

	if (!sharers_flush_mine(s, slots, start, end, stride_shift))
		sharers_flush_slots(s, slots, start, end, stride_shift,
				    freed_tables);
}

/*
 * Not inline: the caller would save registers for it.
 *
 * Return: false if nothing was done, and it has to be done as usual.
 */
static noinline bool sharers_flush(struct mm_struct *mm, unsigned long start,
				   unsigned long end, unsigned int stride_shift,
				   bool freed_tables)
{
	struct sharers *s = mm->context.sharers;
	enum vm_event_item why;
	unsigned long slots;

	/* The changes before the masks. */
	smp_mb();
	why = sharers_must_ask_all(s, start, end, &slots);
	if (why) {
		count_vm_event(SHARERS_FLUSH_ALL);
		count_vm_event(why);
		trace_sharers_flush_all(mm->context.ctx_id, start, end,
					why - SHARERS_ALL_WHOLE);
		return false;
	}
	sharers_flush_noted(s, slots, start, end, stride_shift, freed_tables);
	mmu_notifier_arch_invalidate_secondary_tlbs(mm, start, end);
	return true;
}

/**
 * flush_tlb_mm_range() - flush a range where somebody may hold it
 * @mm: the process
 * @start: first address
 * @end: first address behind it, or TLB_FLUSH_ALL
 * @stride_shift: of the entries
 * @freed_tables: CPUs in lazy mode, too
 *
 * By itself, so that processes without copies save no registers for those that have them.
 *
 * Context: interrupts on.
 */
void flush_tlb_mm_range(struct mm_struct *mm, unsigned long start,
			unsigned long end, unsigned int stride_shift,
			bool freed_tables)
{
	if (likely(!mm->context.sharers) ||
	    !sharers_flush(mm, start, end, stride_shift, freed_tables))
		flush_tlb_mm_cpus(mm, start, end, stride_shift, freed_tables);
}

/**
 * __sharers_held_elsewhere() - can another CPU that runs a process hold a translation?
 * @mm: the process
 * @start: of a range whose entries were changed
 * @end: first address behind it
 *
 * If not, its flush interrupts nobody. Those who were there and have gone are asked by
 * it all the same.
 */
bool __sharers_held_elsewhere(struct mm_struct *mm, unsigned long start,
			      unsigned long end)
{
	struct sharers *s = mm->context.sharers;
	int slot, cpu, here = raw_smp_processor_id();
	unsigned long slots;

	/* The changes before the masks. */
	smp_mb();
	if (sharers_must_ask_all(s, start, end, &slots))
		return true;
	for_each_set_bit(slot, &slots, SHARERS_SLOTS) {
		cpu = s->slots[slot]->cpu;
		if (cpu != here && cpumask_test_cpu(cpu, mm_cpumask(mm)))
			return true;
	}
	for_each_cpu_and(cpu, s->unconfined, mm_cpumask(mm))
		if (cpu != here)
			return true;
	return false;
}

/**
 * __sharers_defer_finish() - what reclaim has put off for a process is done at once
 * @mm: the process; the page table lock of what matters is held
 *
 * Who was asked and has not flushed yet is interrupted (defer.c). One that has done what
 * it was asked has flushed for it, or is about to load CR3 with a flush, before it uses
 * anything of the process. Who was asked before the process had copies counts
 * as unconfined until it has flushed.
 *
 * Context: interrupts on.
 * Return: false if all CPUs of the process have to flush.
 */
bool __sharers_defer_finish(struct mm_struct *mm)
{
	struct sharers *s = mm->context.sharers;
	struct sharers_flush *f;
	struct sharers_cpu *sc;
	int cpu, here;

	/* What was asked before who is there. */
	smp_mb();
	if (READ_ONCE(s->stopped))
		return false;
	CF_MUTATION(sharers_defer_unfinished, return true);
	here = get_cpu();
	f = sharers_flush_begin(mm, 0, TLB_FLUSH_ALL, PAGE_SHIFT, false, here);
	for_each_cpu(cpu, mm_cpumask(mm)) {
		sc = READ_ONCE(s->cpu[cpu]);
		if (sc) {
			f->own[sc->slot] = atomic64_read(&sc->asked);
			__set_bit(sc->slot, &f->asked);
		}
		if (!sc || cpumask_test_cpu(cpu, s->unconfined) ||
		    f->own[sc->slot] != READ_ONCE(sc->done))
			__cpumask_set_cpu(cpu, &f->cpus);
	}
	trace_sharers_flush(mm->context.ctx_id, 0, TLB_FLUSH_ALL, &f->cpus);
	sharers_send(f, here);
	put_cpu();
	return true;
}

/* There is no slot for this CPU: it has the canonical root, and no numbers. */
static void sharers_flush_slotless(const struct flush_tlb_info *info)
{
	CF_MUTATION(sharers_slotless_unflushed, return);
	if (info->end == TLB_FLUSH_ALL)
		sharers_flush_all();
	else
		sharers_flush_range(info->start, info->end, info->stride_shift);
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
		sharers_flush_slotless(info);
		return;
	}
	/* Not asked: it had no slot yet, and has flushed since it has one. */
	own = test_bit(sc->slot, &f->asked) ? f->own[sc->slot] : 0;
	if (own <= sc->done)
		return;
	asked = atomic64_read(&sc->asked);
	if (range && sharers_is_all(sc, own, asked))
		sharers_flush_range(info->start, info->end, info->stride_shift);
	else
		sharers_flush_and_leave(s, sc, info->start, f->end);
	sc->done = asked;
	if (info->initiating_cpu == smp_processor_id() || !sc->confined)
		return;
	sharers_leaving_begin(sc);
	sharers_leave_unused(s, sc, info->start, f->end, !range);
	sharers_leaving_end(sc);
}
