// SPDX-License-Identifier: GPL-2.0
/*
 * Settling: the flushes that pay for debts (debt.c), and when they are sent.
 *
 * A drain takes the parked frames, flushes once, and returns the frames to the
 * allocator. It runs when
 *
 *   limit	the pool of a context is full		work item
 *   age	something was owed for a while		work item, by ticks
 *   exit	nobody can use translations any more	no flush
 *   poison	a frame is bad				flush only
 *
 * and for those who need memory (pressure.c), so that parked frames are bounded
 * in number and time (I6). Age also bounds for how long a CPU may keep a
 * translation that munmap() has removed.
 *
 * Age: the first skip that nothing else is due for arms a timer (debt.c), which
 * queues the age work. That waits until all CPUs have caught up (tick.c), and
 * releases what is clean by then. Each debt has a timer that expires after it, so
 * the work need not look for debts that come while it runs.
 *
 * Frames of several contexts are settled by a flush of each process that owes
 * anything, and of no other CPU:
 *
 *   skip of process X			flush of the shared context
 *   X owes (cf_note_left())		number N = ++started
 *   full barrier			(full barrier)
 *   gen = started; tag SHARED(gen)	for each X that owes: flush X
 *					completed = N
 *
 * If the tag is judged clean, gen < N: X was seen to owe, and its flush began
 * after its entries were cleared. A process that is not found yet tags with N
 * or later. The same holds where another process makes the tag a shared one:
 * cf_tag_cover() reads the generation after it has seen the tag of X.
 *
 * Locks: cf_ctx.settling, so that a context has one drain at a time. Nothing is
 * allocated under it: reclaim drains, too.
 * Callers: the mechanisms (cf_flush()), context.c, group.c, pressure.c,
 * memory failure, and see the table.
 */
#include <linux/mm.h>
#include <linux/vmstat.h>

#include <asm/tlbflush.h>

#include <trace/events/ceasefire.h>

#include "core.h"

/*
 * Flush all processes that may have left a frame of several contexts. Only
 * those CPUs are interrupted that run one of them; see the top.
 */
static void cf_flush_shared(void)
{
	u64 gen = cf_shared_take_generation();
	struct cf_ctx *ctx;
	unsigned long id;

	CF_MUTATION(fpr_flush_everybody,
		    flush_tlb_all(); cf_credit(&cf_shared, gen); return);
	for (id = 0; (ctx = cf_ctx_next(&id)); cf_ctx_put(ctx)) {
		if (ctx->mm && cf_owes_frames(ctx))
			flush_tlb_mm_range(ctx->mm, 0, TLB_FLUSH_ALL, 0, false);
		cond_resched();
	}
	cf_credit(&cf_shared, gen);
}

/**
 * cf_flush() - flush everything that a context may have left
 * @ctx: the context; the caller holds a reference
 *
 * Context: may sleep and sends IPIs.
 */
void cf_flush(struct cf_ctx *ctx)
{
	count_vm_event(FPR_DRAIN_FLUSH);
	/* Before it has a number: what is left from now on counts anew. */
	atomic_long_set(&ctx->stale, 0);
	atomic_long_set(&ctx->held, 0);
	if (ctx->mm) {
		/* Credits itself in __cf_flush_completed(). */
		flush_tlb_mm_range(ctx->mm, 0, TLB_FLUSH_ALL, 0, false);
		return;
	}
	if (ctx == &cf_shared)
		cf_flush_shared();
	else
		cf_group_flush(ctx);
}

/**
 * cf_flush_found() - cf_flush() for a context that was found under RCU
 * @ctx: the context, under rcu_read_lock(), which is given up meanwhile
 *
 * Context: may sleep and sends IPIs.
 * Return: false if nothing was flushed.
 */
bool cf_flush_found(struct cf_ctx *ctx)
{
	if (!refcount_inc_not_zero(&ctx->ref))
		return false;
	rcu_read_unlock();
	cf_flush(ctx);
	cf_ctx_put(ctx);
	rcu_read_lock();
	return true;
}

/**
 * cf_settle_one() - pay what a context owes and release its parked frames
 * @ctx: the context; the caller holds a reference
 * @reason: who asks
 * @again: set if a page waits with another context now
 *
 * Frames that are parked while this runs stay for the next time, or do not come
 * (see cf_pool_add()).
 *
 * Context: may sleep and sends IPIs: process context, interrupts on (I6).
 * Return: number of base pages that went back to the allocator.
 */
unsigned long cf_settle_one(struct cf_ctx *ctx, enum cf_drain_reason reason,
			    bool *again)
{
	unsigned long nr, released = 0;
	bool flushed = false, dead;
	LIST_HEAD(list);
	LIST_HEAD(held);

	might_sleep();
	mutex_lock(&ctx->settling);
	nr = cf_pool_take(ctx, &list, &held);
	if (!nr)
		goto out;
	dead = READ_ONCE(ctx->dead);
	if (!dead && (cf_pool_stale(ctx, &list) || cf_held_stale(ctx, &held))) {
		cf_flush(ctx);
		flushed = true;
	}
	count_vm_event(FPR_DRAIN_LIMIT + reason);
	trace_fpr_drain(ctx->id, reason, nr);
	released = cf_held_release(ctx, &held, flushed || dead);
	released += cf_pool_release(ctx, &list, flushed, again);
out:
	mutex_unlock(&ctx->settling);
	return released;
}

/**
 * cf_settle() - pay what a context owes and release its parked frames
 * @ctx: the context; the caller holds a reference
 * @reason: who asks
 *
 * Context: as cf_settle_one().
 */
void cf_settle(struct cf_ctx *ctx, enum cf_drain_reason reason)
{
	bool again;

	cf_settle_one(ctx, reason, &again);
}

static void cf_ctx_cancel_age(struct cf_ctx *ctx)
{
	if (timer_delete(&ctx->old))
		cf_ctx_put(ctx);
	if (cancel_delayed_work(&ctx->age))
		cf_ctx_put(ctx);
}

/**
 * cf_ctx_end() - nobody can use stale translations of a context any more
 * @ctx: the context
 *
 * Whatever the tags say; so parked frames go back without a flush.
 */
void cf_ctx_end(struct cf_ctx *ctx)
{
	/* Later frees find no context; earlier ones see @dead under the lock. */
	cf_ctx_unregister(ctx);
	spin_lock_irq(&ctx->lock);
	ctx->dead = true;
	spin_unlock_irq(&ctx->lock);
	CF_MUTATION(fpr_no_exit_drain, cf_ctx_cancel_age(ctx); return);
	cf_settle(ctx, CF_BY_EXIT);
	cf_ctx_cancel_age(ctx);
}

/**
 * __cf_poisoned() - a frame is bad, and was taken out of all page tables
 * @pfn: the frame
 *
 * Who reads it through a stale translation runs into the error. No entry leads
 * there from which the kernel could see who it was, so there must be none.
 *
 * Context: may sleep and sends IPIs.
 */
void __cf_poisoned(unsigned long pfn)
{
	struct cf_ctx *ctx;

	CF_MUTATION(fpr_no_poison_flush, return);
	/* The mark before the tag; see cf_any_bad(). */
	smp_mb();
	rcu_read_lock();
	ctx = cf_frame_owner(pfn, NULL);
	if (ctx && !refcount_inc_not_zero(&ctx->ref))
		ctx = NULL;
	rcu_read_unlock();
	if (!ctx)
		return;
	count_vm_event(FPR_DRAIN_POISON);
	trace_fpr_drain(ctx->id, CF_BY_POISON, 0);
	cf_flush(ctx);
	cf_ctx_put(ctx);
}

/*
 * Who drains may be anybody, and be kept from running for long: CPUs that are late must not
 * go on meanwhile.
 */
static bool cf_release_begin(struct cf_ctx *ctx)
{
	CF_MUTATION(cf_release_waits, mutex_lock(&ctx->settling); return true);
	return mutex_trylock(&ctx->settling);
}

/*
 * Release what is clean by now, without a flush.
 *
 * Return: false to be called again.
 */
static bool cf_release_clean(struct cf_ctx *ctx)
{
	LIST_HEAD(list);
	LIST_HEAD(held);
	bool again;

	if (!cf_release_begin(ctx))
		return false;
	if (cf_pool_take(ctx, &list, &held)) {
		cf_held_release(ctx, &held, false);
		cf_pool_release(ctx, &list, false, &again);
	}
	mutex_unlock(&ctx->settling);
	return true;
}

static void cf_drain_work(struct work_struct *work)
{
	struct cf_ctx *ctx = container_of(work, struct cf_ctx, drain);

	cf_settle(ctx, CF_BY_LIMIT);
	cf_ctx_put(ctx);
}

/* How often to look whether all CPUs have caught up: with each tick if memory waits for that. */
static unsigned long cf_poll_time(struct cf_ctx *ctx)
{
	if (atomic_long_read(&ctx->waiting))
		return 1;
	return clamp(cf_debt_age(ctx), 1, msecs_to_jiffies(8));
}

/*
 * Between the end of a poll time and the look: the timer of a work item waits for a
 * tick, a worker for its turn, which may take two.
 */
#define CF_WORK_DELAY	3

/* Did CPUs have the time that they have, since then? Before the next look they will have. */
static bool cf_is_overdue(struct cf_ctx *ctx, unsigned long since)
{
	unsigned long before = cf_debt_age(ctx) + cf_poll_time(ctx) +
			       CF_WORK_DELAY;
	unsigned long late = cf_debt_late(ctx);

	return time_after_eq(jiffies, since +
				      (late > before ? late - before : 1));
}

/*
 * The newest generation that CPUs have had the time for. Of two that were taken the work
 * waits for one first, maybe for long, but all that is overdue counts.
 */
static u64 cf_overdue(struct cf_ctx *ctx)
{
	unsigned long oldest = READ_ONCE(ctx->oldest);

	CF_MUTATION(latr_late_for_one, return ctx->catching_up.gen);
	return oldest && cf_is_overdue(ctx, oldest) ?
	       READ_ONCE(ctx->awaited) : ctx->catching_up.gen;
}

/*
 * Pay what is owed, without sleeping: begin to catch up, or look whether that is
 * done, or interrupt those who are late. Groups are flushed: who is a member can
 * change while one waits.
 *
 * Return: false to be called again after cf_poll_time().
 */
static bool cf_pay(struct cf_ctx *ctx)
{
	if (READ_ONCE(ctx->dead)) {
		ctx->catching_up.gen = 0;
		return true;
	}
	if (!ctx->mm && ctx != &cf_shared) {
		if (cf_start_due(ctx))
			cf_flush(ctx);
		return true;
	}
	if (!ctx->catching_up.gen || cf_catch_up_done(ctx))
		return !cf_catch_up_begin(ctx);
	if (!cf_is_overdue(ctx, ctx->catching_up.since))
		return false;
	if (ctx->mm) {
		cf_flush_late(ctx, cf_overdue(ctx));
		return false;
	}
	ctx->catching_up.gen = 0;
	cf_flush(ctx);
	/* Another debt may have become old meanwhile, whose timer has found us. */
	return !cf_catch_up_begin(ctx);
}

static void cf_age_work(struct work_struct *work)
{
	struct cf_ctx *ctx = container_of(to_delayed_work(work),
					  struct cf_ctx, age);
	bool paid = cf_pay(ctx);
	u64 completed = READ_ONCE(ctx->completed);

	/* Also what another flush has paid for. */
	if (ctx->catching_up.released != completed) {
		if (cf_release_clean(ctx))
			ctx->catching_up.released = completed;
		else
			paid = false;
	}
	/* Whoever has queued it meanwhile has brought a reference, too. */
	if (paid || !queue_delayed_work(cf_wq, &ctx->age, cf_poll_time(ctx)))
		cf_ctx_put(ctx);
}

/* A debt is old enough. Ticks have a while until the work looks. */
static void cf_old_timer(struct timer_list *timer)
{
	struct cf_ctx *ctx = from_timer(ctx, timer, old);

	if (ctx->mm)
		cf_start_due(ctx);
	if (!queue_delayed_work(cf_wq, &ctx->age, 1))
		cf_ctx_put(ctx);
}

/**
 * cf_settle_soon() - somebody waits for what a context owes, and can wait
 * @ctx: the context, under RCU
 *
 * It is due now: ticks pay within about two of them.
 */
void cf_settle_soon(struct cf_ctx *ctx)
{
	unsigned long due = READ_ONCE(ctx->due), now = jiffies ?: 1;

	if (due)
		cmpxchg(&ctx->due, due, now);
	if (ctx->mm)
		cf_start_due(ctx);
	cf_kick_release(ctx);
}

/**
 * cf_settle_shared_idle() - the last context has gone
 *
 * No process can use a stale translation any more, so shared frames are clean,
 * too. Called under the lock that a new context is counted under: whoever comes
 * later reads a generation that is not below this one, so its own tags count.
 */
void cf_settle_shared_idle(void)
{
	cf_credit(&cf_shared, cf_shared_take_generation());
}

/**
 * cf_settle_init() - set up the work items of a context
 * @ctx: the context
 */
void cf_settle_init(struct cf_ctx *ctx)
{
	mutex_init(&ctx->settling);
	INIT_WORK(&ctx->drain, cf_drain_work);
	timer_setup(&ctx->old, cf_old_timer, 0);
	INIT_DELAYED_WORK(&ctx->age, cf_age_work);
}

static int __init cf_settle_start(void)
{
	cf_wq = alloc_workqueue("ceasefire", WQ_MEM_RECLAIM | WQ_UNBOUND, 0);
	if (!cf_wq)
		return -ENOMEM;
	cf_pool_init(&cf_shared);
	cf_settle_init(&cf_shared);
	cf_shared.completed = cf_started(&cf_shared);
	return 0;
}
core_initcall(cf_settle_start);
