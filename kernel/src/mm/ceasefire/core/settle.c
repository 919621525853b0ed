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
 *   drop the references		 cf_tag_is_stale())
 *
 * If the tag is judged clean, gen < completed = N for some flush, so A came
 * after "gen = started", and the entries were cleared before B began.
 *
 * Age work against skip: the skip first notes cf_ctx.skipped, then sees
 * @owed == 1 and queues nothing, or sets it and queues the work. The work sets
 * @owed = 0 before it reads @skipped for the last time. xchg() on both sides is
 * a full barrier, so either the work sees the skip and goes on, or the skip
 * queues the next work.
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
 * Locks: none held while flushing. Callers: see the table.
 */
#include <linux/delay.h>
#include <linux/mm.h>
#include <linux/vmstat.h>

#include <asm/tlbflush.h>

#include <trace/events/ceasefire.h>

#include "core.h"

struct workqueue_struct *cf_wq;

/**
 * cf_started() - number of the newest flush that was requested
 * @ctx: the context
 *
 * Return: the generation to tag a skip with.
 */
u64 cf_started(struct cf_ctx *ctx)
{
	return atomic64_read(ctx->mm ? &ctx->mm->context.tlb_gen :
				       &ctx->started);
}

/**
 * cf_tag_ctx() - what the frames that a process leaves are tagged with
 * @ctx: context of the process
 *
 * A process whose threads differ in their rights shares nothing (recycle.c).
 *
 * Context: RCU read side, which lasts until the tags are written (group.c).
 * Return: its group, or itself.
 */
struct cf_ctx *cf_tag_ctx(struct cf_ctx *ctx)
{
	struct cf_ctx *group = READ_ONCE(ctx->group);

	return group && !READ_ONCE(ctx->keyed) ? group : ctx;
}

/**
 * cf_start_generations() - a process starts to use FPR
 * @mm: the process
 *
 * Debug builds: let it be one that has flushed very often. CPUs that find
 * themselves many generations behind flush everything.
 */
void cf_start_generations(struct mm_struct *mm)
{
#ifdef CONFIG_CEASEFIRE_DEBUG
	u64 now = atomic64_read(&mm->context.tlb_gen);
	u64 first = READ_ONCE(cf_first_generation);

	if (now < first)
		atomic64_add(first - now, &mm->context.tlb_gen);
#endif
}

/**
 * cf_shared_tag_now() - tag of the shared context
 *
 * Return: the tag for a frame whose entries were cleared before the call.
 */
u64 cf_shared_tag_now(void)
{
	return cf_tag_make(CF_ID_SHARED, cf_started(&cf_shared));
}

/**
 * cf_tag_is_stale() - may a CPU still reach a frame through its tag?
 * @tag: tag of the frame
 * @ctx: its context, NULL if that is gone
 *
 * Context: any, RCU read side.
 * Return: true if it may.
 */
bool cf_tag_is_stale(u64 tag, struct cf_ctx *ctx)
{
	if (!ctx || READ_ONCE(ctx->dead))
		return false;
	CF_MUTATION_IF(fpr_credit_started,
		       ctx->mm, return cf_tag_gen(tag) >= cf_started(ctx));
	/* Pairs with the release in cf_credit(). */
	return cf_gen_stale(cf_tag_gen(tag), smp_load_acquire(&ctx->completed));
}

/**
 * cf_credit() - a full flush has completed
 * @ctx: the context
 * @gen: number of the flush
 *
 * Flushes may complete out of order, so the newest wins. cmpxchg orders the
 * store after the acknowledgements of all CPUs.
 */
void cf_credit(struct cf_ctx *ctx, u64 gen)
{
	cf_raise(&ctx->completed, gen);
}

/**
 * __cf_flush_started() - a flush has its number, no CPU was asked yet
 * @mm: the process
 *
 * Debug builds: makes the time between request and completion long, so that
 * who confuses the two is found out.
 */
void __cf_flush_started(struct mm_struct *mm)
{
#ifdef CONFIG_CEASEFIRE_DEBUG
	u32 us = READ_ONCE(cf_flush_delay_us);

	if (us && READ_ONCE(mm->cf))
		mdelay(DIV_ROUND_UP(us, USEC_PER_MSEC));
#endif
}

/**
 * __cf_flush_completed() - all CPUs have carried out a flush of a process
 * @mm: the process
 * @gen: its number
 * @full: whether it covered the whole address space; partial ones prove
 *	nothing about translations elsewhere
 *
 * Called by flush_tlb_mm_range() with preemption off, which keeps the context
 * from being freed.
 */
void __cf_flush_completed(struct mm_struct *mm, u64 gen, bool full)
{
	struct cf_ctx *ctx = READ_ONCE(mm->cf);

	CF_MUTATION(fpr_credit_partial, full = true);
	if (ctx && full)
		cf_credit(ctx, gen);
}

/* Half of the time that something may be owed; the other half is for ticks. */
static unsigned long cf_debt_age(void)
{
	return msecs_to_jiffies(READ_ONCE(cf_debt_age_ms)) / 2;
}

/* What is owed has been noted: let it be paid after a while. */
static void cf_kick_age(struct cf_ctx *ctx)
{
	if (READ_ONCE(ctx->owed) || xchg(&ctx->owed, 1))
		return;
	refcount_inc(&ctx->ref);
	if (!queue_delayed_work(cf_wq, &ctx->age, cf_debt_age()))
		cf_ctx_put(ctx);
}

/**
 * cf_owe() - a skip left something owed
 * @ctx: the context
 * @gen: generation that its frames were tagged with
 *
 * Context: any. See the ordering note at the top.
 */
void cf_owe(struct cf_ctx *ctx, u64 gen)
{
	/* 0 is for never; a process that has not flushed yet is at 0. */
	cf_raise(&ctx->skipped, gen + 1);
	cf_kick_age(ctx);
}

/**
 * cf_note_left() - a process has left something in the name of its group
 * @ctx: context of the process
 *
 * The group owes it, and pays it. This is for whoever has to know which
 * processes may have stale translations, also after the process has left.
 *
 * Context: any, before the first tag.
 */
void cf_note_left(struct cf_ctx *ctx)
{
	cf_raise(&ctx->skipped, cf_started(ctx) + 1);
}

/**
 * cf_owe_young() - an accessed bit was cleared
 * @ctx: the context
 * @gen: generation that the frame was tagged with
 *
 * Context: any. Ordered like a skip.
 */
void cf_owe_young(struct cf_ctx *ctx, u64 gen)
{
	cf_raise(&ctx->cleared, gen + 1);
	cf_kick_age(ctx);
}

/**
 * cf_shared_take_generation() - a new generation of the shared context
 *
 * Return: its number.
 */
u64 cf_shared_take_generation(void)
{
	return atomic64_inc_return(&cf_shared.started);
}

/**
 * cf_is_owed_for() - is a full flush needed for something that was noted?
 * @ctx: the context
 * @newest: its generation plus 1, or 0 for never
 *
 * Return: true if none has completed since.
 */
bool cf_is_owed_for(struct cf_ctx *ctx, u64 newest)
{
	/* Pairs with the release in cf_credit(). */
	u64 completed = smp_load_acquire(&ctx->completed);

	return newest && cf_gen_stale(newest - 1, completed);
}

/**
 * cf_owes_skips() - has a process left something that no flush has removed?
 * @ctx: its context
 *
 * Tagged with itself or with its group. Another thread that leaves the group has
 * the process owe it first; so the group first.
 *
 * Context: mmap_lock held for writing: no skip is under way.
 * Return: true if it has.
 */
bool cf_owes_skips(struct cf_ctx *ctx)
{
	struct cf_ctx *group;
	bool owed;

	rcu_read_lock();
	/* Pairs with the release in cf_group_change(). */
	group = smp_load_acquire(&ctx->group);
	owed = group && cf_is_owed_for(group, READ_ONCE(group->skipped));
	rcu_read_unlock();
	return owed || cf_is_owed_for(ctx, READ_ONCE(ctx->skipped));
}

/**
 * cf_is_owed() - is there a translation that no full flush has removed?
 * @ctx: the context
 *
 * Return: false if no CPU has a stale translation that it has left.
 */
bool cf_is_owed(struct cf_ctx *ctx)
{
	return cf_is_owed_for(ctx, READ_ONCE(ctx->skipped)) ||
	       cf_is_owed_for(ctx, READ_ONCE(ctx->cleared));
}

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
		if (ctx->mm && cf_is_owed(ctx))
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
	struct cf_ctx *flushed = NULL;
	unsigned long nr, released = 0;
	LIST_HEAD(list);

	might_sleep();
	mutex_lock(&ctx->settling);
	nr = cf_pool_take(ctx, &list);
	if (!nr)
		goto out;
	if (!READ_ONCE(ctx->dead) && cf_pool_stale(ctx, &list)) {
		cf_flush(ctx);
		flushed = ctx;
	}
	count_vm_event(FPR_DRAIN_LIMIT + reason);
	trace_fpr_drain(ctx->id, reason, nr);
	released = cf_pool_release(&list, flushed, again);
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

/* Release what is clean by now, without a flush. */
static void cf_release_clean(struct cf_ctx *ctx)
{
	LIST_HEAD(list);
	bool again;

	mutex_lock(&ctx->settling);
	if (cf_pool_take(ctx, &list))
		cf_pool_release(&list, NULL, &again);
	mutex_unlock(&ctx->settling);
}

static void cf_drain_work(struct work_struct *work)
{
	struct cf_ctx *ctx = container_of(work, struct cf_ctx, drain);

	cf_settle(ctx, CF_BY_LIMIT);
	cf_ctx_put(ctx);
}

/* How often to look whether all CPUs have caught up: about once a tick. */
static unsigned long cf_poll_time(void)
{
	return clamp(cf_debt_age(), 1, msecs_to_jiffies(8));
}

/*
 * Pay what is owed, without sleeping: begin to catch up, or look whether that is
 * done, or end it by a flush when half of the age is over.
 *
 * Return: false to be called again after cf_poll_time().
 */
static bool cf_pay(struct cf_ctx *ctx)
{
	CF_MUTATION(fpr_no_drain_age, ctx->catching_up.gen = 0; return true);
	if (READ_ONCE(ctx->dead)) {
		ctx->catching_up.gen = 0;
		return true;
	}
	if (!ctx->catching_up.gen) {
		if (!cf_is_owed(ctx))
			return true;
		count_vm_event(FPR_DRAIN_AGE);
		if (cf_catch_up_begin(ctx))
			return false;
	} else {
		if (cf_catch_up_done(ctx))
			return true;
		if (time_before(jiffies, ctx->catching_up.since + cf_debt_age()))
			return false;
		ctx->catching_up.gen = 0;
	}
	cf_flush(ctx);
	return true;
}

/* Is something owed that no other work is queued for? */
static bool cf_pays_again(struct cf_ctx *ctx)
{
	CF_MUTATION(fpr_no_drain_age, return false);
	return !READ_ONCE(ctx->dead) && cf_is_owed(ctx) && !xchg(&ctx->owed, 1);
}

/*
 * What was left while this one paid is not paid. It was left after the
 * generation was taken, and half of the age counts from there.
 */
static void cf_age_work(struct work_struct *work)
{
	struct cf_ctx *ctx = container_of(to_delayed_work(work),
					  struct cf_ctx, age);
	unsigned long next = cf_poll_time(), now;

	if (!cf_pay(ctx))
		goto again;
	/* What is tagged from now on is parked again. All else is clean. */
	cf_release_clean(ctx);

	xchg(&ctx->owed, 0);
	if (!cf_pays_again(ctx)) {
		cf_ctx_put(ctx);
		return;
	}
	now = jiffies;
	next = ctx->catching_up.since + cf_debt_age();
	next = time_after(next, now) ? next - now : 0;
again:
	/* Whoever has queued it meanwhile has brought a reference, too. */
	if (!queue_delayed_work(cf_wq, &ctx->age, next))
		cf_ctx_put(ctx);
}

/**
 * cf_settle_soon() - somebody waits for what a context owes, and can wait
 * @ctx: the context, under RCU
 *
 * The age work begins now: ticks pay within about two of them.
 */
void cf_settle_soon(struct cf_ctx *ctx)
{
	if (!refcount_inc_not_zero(&ctx->ref))
		return;
	if (mod_delayed_work(cf_wq, &ctx->age, 0))
		cf_ctx_put(ctx);
}

/**
 * cf_kick_drain() - drain soon
 * @ctx: the context
 *
 * Context: any; RCU read side or a reference.
 */
void cf_kick_drain(struct cf_ctx *ctx)
{
	CF_MUTATION(fpr_no_drain_limit, return);
	if (work_pending(&ctx->drain) || !refcount_inc_not_zero(&ctx->ref))
		return;
	if (!queue_work(cf_wq, &ctx->drain))
		cf_ctx_put(ctx);
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
