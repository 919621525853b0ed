// SPDX-License-Identifier: GPL-2.0
/*
 * Settling without interrupts: debts that are only getting old are paid by the
 * scheduler ticks of the CPUs that may hold the translations.
 *
 * When a debt is old enough, a tick of a CPU that runs the process takes a new
 * generation N for it, as a flush does, but sends no IPI; where none runs it, a
 * timer does. From then on each CPU flushes by itself, whole address space:
 *   - a CPU that switches to the process compares generations, as ever,
 *   - a CPU that leaves lazy mode does, too,
 *   - a CPU that runs the process all the time does at its next tick.
 * When all have, the debt is paid: the age work looks for that, and waits for it.
 * CPUs that have not after a while (no tick, interrupts off, a virtual CPU that
 * does not run) are interrupted, and no others: once for all that is owed.
 *
 * So how long a translation can be used depends on no work item, and nothing is
 * paid because time has passed (I9).
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
 * A CPU that goes offline loads init_mm first, and one that comes back starts with
 * an empty TLB.
 *
 * Locks: none. Callers: the age work (settle.c), sched_tick().
 */
#include <linux/cpumask.h>
#include <linux/delay.h>
#include <linux/hardirq.h>
#include <linux/jiffies.h>
#include <linux/mm.h>
#include <linux/rcupdate.h>
#include <linux/vmstat.h>

#include <asm/tlbflush.h>

#include <trace/events/ceasefire.h>

#include "core.h"

/* A new generation for a process, without an IPI; ticks shall catch up. */
static u64 cf_take_generation(struct cf_ctx *ctx)
{
	u64 gen;

	/* Before it has a number: what is left from now on counts anew. */
	atomic_long_set(&ctx->stale, 0);
	atomic_long_add(atomic_long_xchg(&ctx->held, 0), &ctx->waiting);
	gen = inc_mm_tlb_gen(ctx->mm);
	cf_raise(&ctx->awaited, gen);
	return gen;
}

/* Debug builds: makes the time long in which nothing is due, and nothing awaited. */
static void cf_start_pause(void)
{
#ifdef CONFIG_CEASEFIRE_DEBUG
	u32 us = READ_ONCE(cf_start_delay_us);

	if (us && in_hardirq())
		mdelay(DIV_ROUND_UP(us, USEC_PER_MSEC));
#endif
}

/* What is owed is nobody's between these two, so others do not run in between. */
static bool cf_take_due(struct cf_ctx *ctx, unsigned long due)
{
	bool owed;

	guard(preempt)();
	if (cmpxchg(&ctx->due, due, 0) != due)
		return false;
	cf_start_pause();
	owed = cf_is_owed(ctx);
	if (!owed) {
		atomic_long_set(&ctx->held, 0);
	} else if (ctx->mm) {
		cmpxchg(&ctx->oldest, 0, jiffies ?: 1);
		cf_take_generation(ctx);
	}
	return owed;
}

/**
 * cf_start_due() - begin to pay if a debt is old enough
 * @ctx: the context
 *
 * Of a process, that is to take the generation that ticks catch up with. See
 * cf_kick_age() for the order. Somebody has to wait for it: the timer may come and find
 * nothing due, and its work nothing awaited.
 *
 *   caller				timer, age work
 *   due = 0
 *					nothing is due, nothing awaited: that is all
 *   awaited = N
 *   queues the work			looks again, and waits for N
 *
 * Context: any.
 * Return: true if something was due; the caller queues the age work, or is it. For a
 * context without a process the caller is the one to pay.
 */
bool cf_start_due(struct cf_ctx *ctx)
{
	unsigned long due = READ_ONCE(ctx->due);

	CF_MUTATION(fpr_no_drain_age, return false);
	if (!due || time_before(jiffies, due) || !cf_take_due(ctx, due))
		return false;
	count_vm_event(FPR_DRAIN_AGE);
	return true;
}

static void cf_tick_starts(struct cf_ctx *ctx)
{
	bool started = cf_start_due(ctx);

	CF_MUTATION(fpr_tick_unqueued, return);
	if (started)
		cf_kick_wait(ctx);
}

/*
 * Flush this CPU if it runs a process that awaits that. Interrupts are off, so
 * loaded_mm does not change.
 */
static bool cf_catch_up_here(struct mm_struct *mm, struct cf_ctx *ctx)
{
	u16 asid;
	u64 gen;

	asid = this_cpu_read(cpu_tlbstate.loaded_mm_asid);
	if (this_cpu_read(cpu_tlbstate.ctxs[asid].tlb_gen) >=
	    READ_ONCE(ctx->awaited))
		return false;
	/* The generation before the flush: what comes later is not covered. */
	gen = atomic64_read(&mm->context.tlb_gen);
	flush_tlb_local();
	this_cpu_write(cpu_tlbstate.ctxs[asid].tlb_gen, gen);
	trace_fpr_tick(ctx->id, gen);
	return true;
}

/* The process that this CPU runs, not only keeps loaded; or NULL. */
static struct mm_struct *cf_running_here(void)
{
	struct mm_struct *mm = this_cpu_read(cpu_tlbstate.loaded_mm);

	return mm == &init_mm || this_cpu_read(cpu_tlbstate_shared.is_lazy) ?
	       NULL : mm;
}

/**
 * __cf_tick() - the tick of a CPU
 *
 * Context: hard interrupt, interrupts off.
 */
void __cf_tick(void)
{
	struct mm_struct *mm = cf_running_here();
	struct cf_ctx *ctx;

	/* Freed by RCU; hard interrupts are read sides. */
	ctx = mm ? READ_ONCE(mm->cf) : NULL;
	CF_MUTATION(fpr_no_tick, return);
	if (!ctx || smp_processor_id() == cf_tickless_cpu)
		return;
	cf_tick_starts(ctx);
	if (cf_catch_up_here(mm, ctx))
		count_vm_event(FPR_TICK_FLUSH);
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

/* Does a CPU run the process, and has not caught up with what is overdue? */
static bool cf_is_late(int cpu, void *info)
{
	struct tlb_state *state = per_cpu_ptr(&cpu_tlbstate, cpu);
	struct cf_ctx *ctx = info;

	/* In the middle of a switch it is about to compare. */
	return READ_ONCE(state->loaded_mm) == ctx->mm &&
	       !cf_cpu_caught_up(ctx->mm, ctx->catching_up.overdue, cpu);
}

/*
 * Once it is interrupted it catches up with all that is awaited. Counted as what it is, too:
 * a shootdown that this CPU has received.
 */
static void cf_catch_up_late(void *info)
{
	struct mm_struct *mm = cf_running_here();
	struct cf_ctx *ctx = info;
	int late = cf_policy_of(ctx->mm)->late;

	if (mm != ctx->mm || !cf_catch_up_here(mm, ctx))
		return;
	inc_irq_stat(irq_tlb_count);
	count_vm_tlb_event(NR_TLB_REMOTE_FLUSH_RECEIVED);
	if (late)
		count_vm_event(late);
	WRITE_ONCE(ctx->catching_up.late, true);
}

/**
 * cf_flush_late() - interrupt the CPUs that have not caught up
 * @ctx: the context of a process; the caller is its age work
 * @gen: the newest generation that they have had the time for
 *
 * Context: may sleep and sends IPIs; returns when they have.
 */
void cf_flush_late(struct cf_ctx *ctx, u64 gen)
{
	CF_MUTATION(latr_never_late, return);
	ctx->catching_up.late = false;
	ctx->catching_up.overdue = gen;
	on_each_cpu_cond(cf_is_late, cf_catch_up_late, ctx, true);
	if (!READ_ONCE(ctx->catching_up.late))
		return;
	count_vm_tlb_event(NR_TLB_REMOTE_FLUSH);
	count_vm_event(FPR_DRAIN_FLUSH);
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
		if (ctx->mm && cf_owes_frames(ctx))
			ctx->shared = cf_take_generation(ctx);
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
		if (ctx->shared && cf_all_caught_up(ctx->mm, ctx->shared))
			ctx->shared = 0;
		paid &= !ctx->shared;
		cond_resched();
	}
	return paid;
}

/* What was waiting need not any more; a flush may have said so before. */
static void cf_wait_over(struct cf_ctx *ctx)
{
	long was = atomic_long_read(&ctx->waiting);

	while (!atomic_long_try_cmpxchg(&ctx->waiting, &was,
					max(was - ctx->catching_up.waiting, 0)))
		;
}

/**
 * cf_catch_up_begin() - begin to wait for ticks that pay what a context owes
 * @ctx: of a process, or the shared one; the caller is its age work
 *
 * Context: sends no IPI and does not wait.
 * Return: false if there is nothing to wait for.
 */
bool cf_catch_up_begin(struct cf_ctx *ctx)
{
	bool due = cf_start_due(ctx);
	unsigned long since;
	u64 gen;

	ctx->catching_up.since = jiffies;
	if (ctx->mm) {
		/* What is awaited, since when: a newer one may come in between. */
		since = xchg(&ctx->oldest, 0);
		if (since)
			ctx->catching_up.since = since;
		ctx->catching_up.waiting = atomic_long_read(&ctx->waiting);
		/* Before: more may come to wait, for a newer generation. */
		smp_rmb();
		gen = READ_ONCE(ctx->awaited);
		if (gen <= READ_ONCE(ctx->completed)) {
			cf_wait_over(ctx);
			return false;
		}
	} else {
		if (!due)
			return false;
		atomic_long_set(&ctx->stale, 0);
		gen = cf_take_shared_generation();
	}
	ctx->catching_up.gen = gen;
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
	cf_wait_over(ctx);
	atomic_set(&ctx->kept, 0);
	ctx->catching_up.gen = 0;
	return true;
}
