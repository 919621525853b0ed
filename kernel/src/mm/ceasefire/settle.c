// SPDX-License-Identifier: GPL-2.0
/*
 * Settling: generations, debts, and the flushes that pay for them.
 *
 * A context owes a flush from its first skip on. It is paid by any full flush
 * of the process (fork, a large mprotect(), ...), or by a drain. A drain takes
 * the parked frames, flushes once, and returns the frames to the allocator. It
 * runs when
 *
 *   limit	the pool of a context is full		work item
 *   age	something was owed for a while		work item, by ticks
 *   exit	nobody can use translations any more	no flush
 *
 * and for those who need memory (pressure.c), so that parked frames are bounded
 * in number and time (I6). Age also bounds for how long a CPU may keep a
 * translation that munmap() has removed.
 *
 * Ordering, all of it about one question: is a flush that is credited newer
 * than the cleared entries?
 *
 *   skip (fpr.c)			flush
 *   clear entries			A: number N = ++started
 *   smp_mb()				B: IPIs, all CPUs flush
 *   gen = started			C: completed = max(completed, N)
 *   tag the frames			(release; pairs with the acquire in
 *   drop the references		 fpr_tag_is_stale())
 *
 * If the tag is judged clean, gen < completed = N for some flush, so A came
 * after "gen = started", and the entries were cleared before B began.
 *
 * Age work against skip: the skip first notes fpr_ctx.skipped, then sees
 * @owed == 1 and queues nothing, or sets it and queues the work. The work sets
 * @owed = 0 before it reads @skipped for the last time. xchg() on both sides is
 * a full barrier, so either the work sees the skip and goes on, or the skip
 * queues the next work.
 *
 * Frames of several contexts are settled by a flush of each process that owes
 * anything, and of no other CPU:
 *
 *   skip of process X			flush of the shared context
 *   X owes (fpr_note_left())		number N = ++started
 *   full barrier			(full barrier)
 *   gen = started; tag SHARED(gen)	for each X that owes: flush X
 *					completed = N
 *
 * If the tag is judged clean, gen < N: X was seen to owe, and its flush began
 * after its entries were cleared. A process that is not found yet tags with N
 * or later. The same holds where another process makes the tag a shared one:
 * fpr_tag_cover() reads the generation after it has seen the tag of X.
 *
 * Locks: none held while flushing. Callers: see the table.
 */
#include <linux/delay.h>
#include <linux/mm.h>
#include <linux/vmstat.h>

#include <asm/tlbflush.h>

#include <trace/events/ceasefire.h>

#include "internal.h"

struct workqueue_struct *fpr_wq;

/**
 * fpr_started() - number of the newest flush that was requested
 * @ctx: the context
 *
 * Return: the generation to tag a skip with.
 */
u64 fpr_started(struct fpr_ctx *ctx)
{
	return atomic64_read(ctx->mm ? &ctx->mm->context.tlb_gen :
				       &ctx->started);
}

/**
 * fpr_tag_ctx() - what the frames that a process leaves are tagged with
 * @ctx: context of the process
 *
 * A process whose threads differ in their rights shares nothing (recycle.c).
 *
 * Context: RCU read side, which lasts until the tags are written (group.c).
 * Return: its group, or itself.
 */
struct fpr_ctx *fpr_tag_ctx(struct fpr_ctx *ctx)
{
	struct fpr_ctx *group = READ_ONCE(ctx->group);

	return group && !READ_ONCE(ctx->keyed) ? group : ctx;
}

/**
 * fpr_start_generations() - a process starts to use FPR
 * @mm: the process
 *
 * Debug builds: let it be one that has flushed very often. CPUs that find
 * themselves many generations behind flush everything.
 */
void fpr_start_generations(struct mm_struct *mm)
{
#ifdef CONFIG_CEASEFIRE_DEBUG
	u64 now = atomic64_read(&mm->context.tlb_gen);
	u64 first = READ_ONCE(fpr_first_generation);

	if (now < first)
		atomic64_add(first - now, &mm->context.tlb_gen);
#endif
}

/**
 * fpr_shared_tag_now() - tag of the shared context
 *
 * Return: the tag for a frame whose entries were cleared before the call.
 */
u64 fpr_shared_tag_now(void)
{
	return fpr_tag_make(FPR_ID_SHARED, fpr_started(&fpr_shared));
}

/**
 * fpr_tag_is_stale() - may a CPU still reach a frame through its tag?
 * @tag: tag of the frame
 * @ctx: its context, NULL if that is gone
 *
 * Context: any, RCU read side.
 * Return: true if it may.
 */
bool fpr_tag_is_stale(u64 tag, struct fpr_ctx *ctx)
{
	if (!ctx || READ_ONCE(ctx->dead))
		return false;
	if (fpr_mutated(MUTATE_fpr_credit_started) && ctx->mm)
		return fpr_tag_gen(tag) >= fpr_started(ctx);
	/* Pairs with the release in fpr_credit(). */
	return fpr_gen_stale(fpr_tag_gen(tag), smp_load_acquire(&ctx->completed));
}

/**
 * fpr_credit() - a full flush has completed
 * @ctx: the context
 * @gen: number of the flush
 *
 * Flushes may complete out of order, so the newest wins. cmpxchg orders the
 * store after the acknowledgements of all CPUs.
 */
void fpr_credit(struct fpr_ctx *ctx, u64 gen)
{
	fpr_raise(&ctx->completed, gen);
}

/**
 * __fpr_flush_started() - a flush has its number, no CPU was asked yet
 * @mm: the process
 *
 * Debug builds: makes the time between request and completion long, so that
 * who confuses the two is found out.
 */
void __fpr_flush_started(struct mm_struct *mm)
{
#ifdef CONFIG_CEASEFIRE_DEBUG
	u32 us = READ_ONCE(fpr_flush_delay_us);

	if (us && READ_ONCE(mm->fpr))
		mdelay(DIV_ROUND_UP(us, USEC_PER_MSEC));
#endif
}

/**
 * __fpr_flush_completed() - all CPUs have carried out a flush of a process
 * @mm: the process
 * @gen: its number
 * @full: whether it covered the whole address space; partial ones prove
 *	nothing about translations elsewhere
 *
 * Called by flush_tlb_mm_range() with preemption off, which keeps the context
 * from being freed.
 */
void __fpr_flush_completed(struct mm_struct *mm, u64 gen, bool full)
{
	struct fpr_ctx *ctx = READ_ONCE(mm->fpr);

	if (ctx && (full || fpr_mutated(MUTATE_fpr_credit_partial)))
		fpr_credit(ctx, gen);
}

/* Half of the time that something may be owed; the other half is for ticks. */
static unsigned long fpr_debt_age(void)
{
	return msecs_to_jiffies(READ_ONCE(fpr_debt_age_ms)) / 2;
}

/* What is owed has been noted: let it be paid after a while. */
static void fpr_kick_age(struct fpr_ctx *ctx)
{
	if (READ_ONCE(ctx->owed) || xchg(&ctx->owed, 1))
		return;
	refcount_inc(&ctx->ref);
	if (!queue_delayed_work(fpr_wq, &ctx->age, fpr_debt_age()))
		fpr_ctx_put(ctx);
}

/**
 * fpr_owe() - a skip left something owed
 * @ctx: the context
 * @gen: generation that its frames were tagged with
 *
 * Context: any. See the ordering note at the top.
 */
void fpr_owe(struct fpr_ctx *ctx, u64 gen)
{
	/* 0 is for never; a process that has not flushed yet is at 0. */
	fpr_raise(&ctx->skipped, gen + 1);
	fpr_kick_age(ctx);
}

/**
 * fpr_note_left() - a process has left something in the name of its group
 * @ctx: context of the process
 *
 * The group owes it, and pays it. This is for whoever has to know which
 * processes may have stale translations, also after the process has left.
 *
 * Context: any, before the first tag.
 */
void fpr_note_left(struct fpr_ctx *ctx)
{
	fpr_raise(&ctx->skipped, fpr_started(ctx) + 1);
}

/**
 * fpr_owe_young() - an accessed bit was cleared
 * @ctx: the context
 * @gen: generation that the frame was tagged with
 *
 * Context: any. Ordered like a skip.
 */
void fpr_owe_young(struct fpr_ctx *ctx, u64 gen)
{
	fpr_raise(&ctx->cleared, gen + 1);
	fpr_kick_age(ctx);
}

/**
 * fpr_shared_take_generation() - a new generation of the shared context
 *
 * Return: its number.
 */
u64 fpr_shared_take_generation(void)
{
	return atomic64_inc_return(&fpr_shared.started);
}

/**
 * fpr_is_owed_for() - is a full flush needed for something that was noted?
 * @ctx: the context
 * @newest: its generation plus 1, or 0 for never
 *
 * Return: true if none has completed since.
 */
bool fpr_is_owed_for(struct fpr_ctx *ctx, u64 newest)
{
	/* Pairs with the release in fpr_credit(). */
	u64 completed = smp_load_acquire(&ctx->completed);

	return newest && fpr_gen_stale(newest - 1, completed);
}

/**
 * fpr_owes_skips() - has a process left something that no flush has removed?
 * @ctx: its context
 *
 * Tagged with itself or with its group. Another thread that leaves the group has
 * the process owe it first; so the group first.
 *
 * Context: mmap_lock held for writing: no skip is under way.
 * Return: true if it has.
 */
bool fpr_owes_skips(struct fpr_ctx *ctx)
{
	struct fpr_ctx *group;
	bool owed;

	rcu_read_lock();
	/* Pairs with the release in fpr_group_change(). */
	group = smp_load_acquire(&ctx->group);
	owed = group && fpr_is_owed_for(group, READ_ONCE(group->skipped));
	rcu_read_unlock();
	return owed || fpr_is_owed_for(ctx, READ_ONCE(ctx->skipped));
}

/**
 * fpr_is_owed() - is there a translation that no full flush has removed?
 * @ctx: the context
 *
 * Return: false if no CPU has a stale translation that it has left.
 */
bool fpr_is_owed(struct fpr_ctx *ctx)
{
	return fpr_is_owed_for(ctx, READ_ONCE(ctx->skipped)) ||
	       fpr_is_owed_for(ctx, READ_ONCE(ctx->cleared));
}

/*
 * Flush all processes that may have left a frame of several contexts. Only
 * those CPUs are interrupted that run one of them; see the top.
 */
static void fpr_flush_shared(void)
{
	u64 gen = fpr_shared_take_generation();
	struct fpr_ctx *ctx;
	unsigned long id;

	if (fpr_mutated(MUTATE_fpr_flush_everybody)) {
		flush_tlb_all();
		goto out;
	}
	for (id = 0; (ctx = fpr_ctx_next(&id)); fpr_ctx_put(ctx)) {
		if (ctx->mm && fpr_is_owed(ctx))
			flush_tlb_mm_range(ctx->mm, 0, TLB_FLUSH_ALL, 0, false);
		cond_resched();
	}
out:
	fpr_credit(&fpr_shared, gen);
}

/**
 * fpr_flush() - flush everything that a context may have left
 * @ctx: the context; the caller holds a reference
 *
 * Context: may sleep and sends IPIs.
 */
void fpr_flush(struct fpr_ctx *ctx)
{
	count_vm_event(FPR_DRAIN_FLUSH);
	/* Before it has a number: what is left from now on counts anew. */
	atomic_long_set(&ctx->stale, 0);
	if (ctx->mm) {
		/* Credits itself in __fpr_flush_completed(). */
		flush_tlb_mm_range(ctx->mm, 0, TLB_FLUSH_ALL, 0, false);
		return;
	}
	if (ctx == &fpr_shared)
		fpr_flush_shared();
	else
		fpr_group_flush(ctx);
}

/**
 * fpr_flush_found() - fpr_flush() for a context that was found under RCU
 * @ctx: the context, under rcu_read_lock(), which is given up meanwhile
 *
 * Context: may sleep and sends IPIs.
 * Return: false if nothing was flushed.
 */
bool fpr_flush_found(struct fpr_ctx *ctx)
{
	if (!refcount_inc_not_zero(&ctx->ref))
		return false;
	rcu_read_unlock();
	fpr_flush(ctx);
	fpr_ctx_put(ctx);
	rcu_read_lock();
	return true;
}

/**
 * fpr_settle_one() - pay what a context owes and release its parked frames
 * @ctx: the context; the caller holds a reference
 * @reason: who asks
 * @again: set if a page waits with another context now
 *
 * Frames that are parked while this runs stay for the next time, or do not come
 * (see fpr_pool_add()).
 *
 * Context: may sleep and sends IPIs: process context, interrupts on (I6).
 * Return: number of base pages that went back to the allocator.
 */
unsigned long fpr_settle_one(struct fpr_ctx *ctx, enum fpr_drain_reason reason,
			     bool *again)
{
	struct fpr_ctx *flushed = NULL;
	unsigned long nr, released = 0;
	LIST_HEAD(list);

	might_sleep();
	mutex_lock(&ctx->settling);
	nr = fpr_pool_take(ctx, &list);
	if (!nr)
		goto out;
	if (!READ_ONCE(ctx->dead) && fpr_pool_stale(ctx, &list)) {
		fpr_flush(ctx);
		flushed = ctx;
	}
	count_vm_event(FPR_DRAIN_LIMIT + reason);
	trace_fpr_drain(ctx->id, reason, nr);
	released = fpr_pool_release(&list, flushed, again);
out:
	mutex_unlock(&ctx->settling);
	return released;
}

/**
 * fpr_settle() - pay what a context owes and release its parked frames
 * @ctx: the context; the caller holds a reference
 * @reason: who asks
 *
 * Context: as fpr_settle_one().
 */
void fpr_settle(struct fpr_ctx *ctx, enum fpr_drain_reason reason)
{
	bool again;

	fpr_settle_one(ctx, reason, &again);
}

/* Release what is clean by now, without a flush. */
static void fpr_release_clean(struct fpr_ctx *ctx)
{
	LIST_HEAD(list);
	bool again;

	mutex_lock(&ctx->settling);
	if (fpr_pool_take(ctx, &list))
		fpr_pool_release(&list, NULL, &again);
	mutex_unlock(&ctx->settling);
}

static void fpr_drain_work(struct work_struct *work)
{
	struct fpr_ctx *ctx = container_of(work, struct fpr_ctx, drain);

	fpr_settle(ctx, FPR_BY_LIMIT);
	fpr_ctx_put(ctx);
}

/* How often to look whether all CPUs have caught up: about once a tick. */
static unsigned long fpr_poll_time(void)
{
	return clamp(fpr_debt_age(), 1, msecs_to_jiffies(8));
}

/*
 * Pay what is owed, without sleeping: begin to catch up, or look whether that is
 * done, or end it by a flush when half of the age is over.
 *
 * Return: false to be called again after fpr_poll_time().
 */
static bool fpr_pay(struct fpr_ctx *ctx)
{
	if (READ_ONCE(ctx->dead) || fpr_mutated(MUTATE_fpr_no_drain_age)) {
		ctx->catching_up.gen = 0;
		return true;
	}
	if (!ctx->catching_up.gen) {
		if (!fpr_is_owed(ctx))
			return true;
		count_vm_event(FPR_DRAIN_AGE);
		if (fpr_catch_up_begin(ctx))
			return false;
	} else {
		if (fpr_catch_up_done(ctx))
			return true;
		if (time_before(jiffies, ctx->catching_up.since + fpr_debt_age()))
			return false;
		ctx->catching_up.gen = 0;
	}
	fpr_flush(ctx);
	return true;
}

/*
 * What was left while this one paid is not paid. It was left after the
 * generation was taken, and half of the age counts from there.
 */
static void fpr_age_work(struct work_struct *work)
{
	struct fpr_ctx *ctx = container_of(to_delayed_work(work),
					   struct fpr_ctx, age);
	unsigned long next = fpr_poll_time(), now;

	if (!fpr_pay(ctx))
		goto again;
	/* What is tagged from now on is parked again. All else is clean. */
	fpr_release_clean(ctx);

	xchg(&ctx->owed, 0);
	if (READ_ONCE(ctx->dead) || fpr_mutated(MUTATE_fpr_no_drain_age) ||
	    !fpr_is_owed(ctx) || xchg(&ctx->owed, 1)) {
		fpr_ctx_put(ctx);
		return;
	}
	now = jiffies;
	next = ctx->catching_up.since + fpr_debt_age();
	next = time_after(next, now) ? next - now : 0;
again:
	/* Whoever has queued it meanwhile has brought a reference, too. */
	if (!queue_delayed_work(fpr_wq, &ctx->age, next))
		fpr_ctx_put(ctx);
}

/**
 * fpr_settle_soon() - somebody waits for what a context owes, and can wait
 * @ctx: the context, under RCU
 *
 * The age work begins now: ticks pay within about two of them.
 */
void fpr_settle_soon(struct fpr_ctx *ctx)
{
	if (!refcount_inc_not_zero(&ctx->ref))
		return;
	if (mod_delayed_work(fpr_wq, &ctx->age, 0))
		fpr_ctx_put(ctx);
}

/**
 * fpr_kick_drain() - drain soon
 * @ctx: the context
 *
 * Context: any; RCU read side or a reference.
 */
void fpr_kick_drain(struct fpr_ctx *ctx)
{
	if (work_pending(&ctx->drain) ||
	    fpr_mutated(MUTATE_fpr_no_drain_limit) ||
	    !refcount_inc_not_zero(&ctx->ref))
		return;
	if (!queue_work(fpr_wq, &ctx->drain))
		fpr_ctx_put(ctx);
}

/**
 * fpr_settle_shared_idle() - the last context has gone
 *
 * No process can use a stale translation any more, so shared frames are clean,
 * too. Called under the lock that a new context is counted under: whoever comes
 * later reads a generation that is not below this one, so its own tags count.
 */
void fpr_settle_shared_idle(void)
{
	fpr_credit(&fpr_shared, fpr_shared_take_generation());
}

/**
 * fpr_settle_init() - set up the work items of a context
 * @ctx: the context
 */
void fpr_settle_init(struct fpr_ctx *ctx)
{
	mutex_init(&ctx->settling);
	INIT_WORK(&ctx->drain, fpr_drain_work);
	INIT_DELAYED_WORK(&ctx->age, fpr_age_work);
}

static int __init fpr_settle_start(void)
{
	fpr_wq = alloc_workqueue("ceasefire", WQ_MEM_RECLAIM | WQ_UNBOUND, 0);
	if (!fpr_wq)
		return -ENOMEM;
	fpr_pool_init(&fpr_shared);
	fpr_settle_init(&fpr_shared);
	fpr_shared.completed = fpr_started(&fpr_shared);
	return 0;
}
core_initcall(fpr_settle_start);
