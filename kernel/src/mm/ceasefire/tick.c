// SPDX-License-Identifier: GPL-2.0
/*
 * Settling without interrupts: debts that are only getting old are paid by the
 * scheduler ticks of the CPUs that may hold the translations.
 *
 * The age work takes a new generation N for the process, as a flush does, but
 * sends no IPI. From then on each CPU flushes by itself, whole address space:
 *   - a CPU that switches to the process compares generations, as ever,
 *   - a CPU that leaves lazy mode does, too,
 *   - a CPU that runs the process all the time does at its next tick.
 * When all have, the debt is paid. Those that have not after a while (no tick,
 * a virtual CPU that does not run) get the usual flush.
 *
 * The work may believe what it reads of another CPU only if that CPU is not in
 * the middle of switch_mm_irqs_off():
 *
 *   CPU1 switches to the process		work
 *   sets its bit in mm_cpumask
 *   reads generation N - 1: no flush
 *						N = ++tlb_gen
 *						reads loaded_mm: another one;
 *						"will compare when it comes"
 *   loaded_mm = mm
 *
 * Interrupts are off there, so synchronize_rcu() after the increment waits it
 * out. Whoever reads the generation later reads at least N. After that, for
 * each CPU, either loaded_mm is the process since before N, and then it and its
 * generation are stable until it flushes; or the CPU has passed a comparison.
 *
 * Locks: none. Callers: the age work (settle.c), sched_tick().
 */
#include <linux/cpumask.h>
#include <linux/delay.h>
#include <linux/jiffies.h>
#include <linux/mm.h>
#include <linux/rcupdate.h>
#include <linux/vmstat.h>

#include <asm/tlbflush.h>

#include <trace/events/ceasefire.h>

#include "internal.h"

/* How often to look whether all CPUs have flushed. */
#define FPR_TICK_POLL_MS	8

/**
 * __fpr_tick() - the tick of a CPU
 *
 * Context: hard interrupt, interrupts off, so loaded_mm does not change.
 */
void __fpr_tick(void)
{
	struct mm_struct *mm = this_cpu_read(cpu_tlbstate.loaded_mm);
	struct fpr_ctx *ctx;
	u16 asid;
	u64 gen;

	if (mm == &init_mm || this_cpu_read(cpu_tlbstate_shared.is_lazy))
		return;
	/* Freed by RCU; hard interrupts are read sides. */
	ctx = READ_ONCE(mm->fpr);
	if (!ctx || fpr_mutated(MUTATE_fpr_no_tick))
		return;
	asid = this_cpu_read(cpu_tlbstate.loaded_mm_asid);
	if (this_cpu_read(cpu_tlbstate.ctxs[asid].tlb_gen) >=
	    READ_ONCE(ctx->awaited))
		return;
	/* The generation before the flush: what comes later is not covered. */
	gen = atomic64_read(&mm->context.tlb_gen);
	flush_tlb_local();
	this_cpu_write(cpu_tlbstate.ctxs[asid].tlb_gen, gen);
	count_vm_event(FPR_TICK_FLUSH);
	trace_fpr_tick(ctx->id, gen);
}

/* Can a CPU no longer use translations from before generation @gen? */
static bool fpr_cpu_caught_up(struct mm_struct *mm, u64 gen, int cpu)
{
	struct tlb_state *state = per_cpu_ptr(&cpu_tlbstate, cpu);
	struct mm_struct *loaded = READ_ONCE(state->loaded_mm);
	u16 asid;

	if (loaded == LOADED_MM_SWITCHING)
		return false;
	if (loaded != mm ||
	    per_cpu(cpu_tlbstate_shared.is_lazy, cpu))
		return true;
	asid = READ_ONCE(state->loaded_mm_asid);
	return READ_ONCE(state->ctxs[asid].tlb_gen) >= gen;
}

/* Wait until all CPUs have caught up; false if that takes too long. */
static bool fpr_wait_for_ticks(struct mm_struct *mm, u64 gen,
			       unsigned long until)
{
	int cpu;

	if (fpr_mutated(MUTATE_fpr_no_tick))
		return true;
	for_each_online_cpu(cpu) {
		while (!fpr_cpu_caught_up(mm, gen, cpu)) {
			if (time_after(jiffies, until))
				return false;
			msleep(FPR_TICK_POLL_MS);
		}
	}
	return true;
}

/* A new generation for a process, without an IPI; ticks shall catch up. */
static u64 fpr_take_generation(struct fpr_ctx *ctx)
{
	u64 gen = inc_mm_tlb_gen(ctx->mm);

	fpr_raise(&ctx->awaited, gen);
	return gen;
}

/*
 * Pay for frames that several processes reach.
 *
 * They are clean when every process has paid: all generations are taken first,
 * and waited for together. A context that comes later tags with the generation
 * that was taken before them all; one that is gone reaches nothing.
 */
static bool fpr_settle_shared_by_ticks(unsigned long until)
{
	u64 gen = fpr_shared_take_generation();
	struct fpr_ctx *ctx;
	unsigned long id;
	bool paid = true;

	for (id = 0; (ctx = fpr_ctx_next(&id)); fpr_ctx_put(ctx))
		if (ctx->mm)
			fpr_take_generation(ctx);
	synchronize_rcu();
	for (id = 0; (ctx = fpr_ctx_next(&id)); fpr_ctx_put(ctx))
		if (ctx->mm && paid)
			paid = fpr_wait_for_ticks(ctx->mm,
						  READ_ONCE(ctx->awaited),
						  until);
	if (paid)
		fpr_credit(&fpr_shared, gen);
	return paid;
}

/**
 * fpr_settle_by_ticks() - pay what a context owes without interrupting anybody
 * @ctx: the context; the caller holds a reference
 * @until: when to give up, in jiffies
 *
 * A CPU that has caught up stays so, hence one after the other. Groups are
 * flushed: who is a member can change while one waits.
 *
 * Context: sleeps.
 * Return: false if some CPU has not flushed in time.
 */
bool fpr_settle_by_ticks(struct fpr_ctx *ctx, unsigned long until)
{
	u64 gen;

	if (ctx == &fpr_shared)
		return fpr_settle_shared_by_ticks(until);
	if (!ctx->mm)
		return false;
	atomic_long_set(&ctx->stale, 0);
	gen = fpr_take_generation(ctx);
	synchronize_rcu();
	if (!fpr_wait_for_ticks(ctx->mm, gen, until))
		return false;
	fpr_credit(ctx, gen);
	return true;
}
