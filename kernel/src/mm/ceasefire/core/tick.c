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
 * Interrupts are off there, so a grace period after the increment waits it out.
 * Whoever reads the generation later reads at least N. After that, for
 * each CPU, either loaded_mm is the process since before N, and then it and its
 * generation are stable until it flushes; or the CPU has passed a comparison.
 *
 * Nothing here sleeps, however many processes there are: the age work begins to
 * catch up, and comes back to look.
 *
 * Locks: none. Callers: the age work (settle.c), sched_tick().
 */
#include <linux/cpumask.h>
#include <linux/jiffies.h>
#include <linux/mm.h>
#include <linux/rcupdate.h>
#include <linux/vmstat.h>

#include <asm/tlbflush.h>

#include <trace/events/ceasefire.h>

#include "core.h"

/**
 * __cf_tick() - the tick of a CPU
 *
 * Context: hard interrupt, interrupts off, so loaded_mm does not change.
 */
void __cf_tick(void)
{
	struct mm_struct *mm = this_cpu_read(cpu_tlbstate.loaded_mm);
	struct cf_ctx *ctx;
	u16 asid;
	u64 gen;

	if (mm == &init_mm || this_cpu_read(cpu_tlbstate_shared.is_lazy))
		return;
	/* Freed by RCU; hard interrupts are read sides. */
	ctx = READ_ONCE(mm->cf);
	CF_MUTATION(fpr_no_tick, return);
	if (!ctx)
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
static bool cf_cpu_caught_up(struct mm_struct *mm, u64 gen, int cpu)
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

/* Has every CPU caught up? One that has stays so. */
static bool cf_all_caught_up(struct mm_struct *mm, u64 gen)
{
	int cpu;

	CF_MUTATION(fpr_no_tick, return true);
	for_each_online_cpu(cpu)
		if (!cf_cpu_caught_up(mm, gen, cpu))
			return false;
	return true;
}

/* A new generation for a process, without an IPI; ticks shall catch up. */
static u64 cf_take_generation(struct cf_ctx *ctx)
{
	u64 gen = inc_mm_tlb_gen(ctx->mm);

	cf_raise(&ctx->awaited, gen);
	return gen;
}

/*
 * Frames that several processes reach are clean when every process that owes
 * anything has paid (settle.c): all generations are taken first, and waited for
 * together. A context that comes later tags with the generation that was taken
 * before them all; one that is gone reaches nothing.
 */
static u64 cf_take_shared_generation(void)
{
	u64 gen = cf_shared_take_generation();
	struct cf_ctx *ctx;
	unsigned long id;

	for (id = 0; (ctx = cf_ctx_next(&id)); cf_ctx_put(ctx)) {
		if (ctx->mm && cf_is_owed(ctx))
			cf_take_generation(ctx);
		cond_resched();
	}
	return gen;
}

static bool cf_shared_caught_up(void)
{
	struct cf_ctx *ctx;
	unsigned long id;
	bool paid = true;

	for (id = 0; (ctx = cf_ctx_next(&id)); cf_ctx_put(ctx)) {
		if (ctx->mm && paid)
			paid = cf_all_caught_up(ctx->mm,
						READ_ONCE(ctx->awaited));
		cond_resched();
	}
	return paid;
}

/**
 * cf_catch_up_begin() - let ticks pay what a context owes
 * @ctx: the context; the caller is its age work
 *
 * Groups are flushed: who is a member can change while one waits.
 *
 * Context: sends no IPI and does not wait.
 * Return: false if ticks cannot pay for this context.
 */
bool cf_catch_up_begin(struct cf_ctx *ctx)
{
	ctx->catching_up.since = jiffies;
	if (!ctx->mm && ctx != &cf_shared)
		return false;
	atomic_long_set(&ctx->stale, 0);
	ctx->catching_up.gen = ctx->mm ? cf_take_generation(ctx) :
					 cf_take_shared_generation();
	ctx->catching_up.rcu = start_poll_synchronize_rcu();
	return true;
}

/**
 * cf_catch_up_done() - have all CPUs caught up?
 * @ctx: the context; the caller is its age work
 *
 * Return: true if the debt is paid.
 */
bool cf_catch_up_done(struct cf_ctx *ctx)
{
	/* As synchronize_rcu(): what is read below is read after it. */
	if (!poll_state_synchronize_rcu(ctx->catching_up.rcu))
		return false;
	if (ctx->mm ? !cf_all_caught_up(ctx->mm, ctx->catching_up.gen) :
		      !cf_shared_caught_up())
		return false;
	cf_credit(ctx, ctx->catching_up.gen);
	atomic_set(&ctx->kept, 0);
	ctx->catching_up.gen = 0;
	return true;
}
