// SPDX-License-Identifier: GPL-2.0
/*
 * Debts: what a context owes, and whether a flush has paid it.
 *
 * A context owes a flush from its first skip on. Each flush has a number, and
 * each debt the number of the newest flush that was requested when it came up:
 * its generation, which is also in the tags of the frames. Any later full flush
 * of the process pays (fork, a large mprotect(), ...); if none comes, settle.c
 * sends one. What is owed is noted before the first tag, so that no frame waits
 * for a flush that nobody sends (I6).
 *
 * Ordering, all of it about one question: is a flush that is credited newer
 * than the cleared entries?
 *
 *   skip				flush
 *   clear entries			A: number N = ++started
 *   smp_mb()				B: IPIs, all CPUs flush
 *   gen = started			C: completed = max(completed, N)
 *   tag the frames			(release; pairs with the acquire in
 *   drop the references		 cf_tag_is_stale())
 *
 * If the tag is judged clean, gen < completed = N for some flush, so A came
 * after "gen = started", and the entries were cleared before B began.
 *
 * So a frame that may be reached is never judged clean (I1).
 *
 * Locks: none; generations only grow.
 * Callers: the mechanisms (skips), flush_tlb_mm_cpus() (credit), tags.c and
 * pool.c (is it stale?), settle.c, tick.c, members.c, choice.c.
 */
#include <linux/delay.h>
#include <linux/mm.h>
#include <linux/sched/isolation.h>

#include <asm/tlbflush.h>

#include "core.h"

/* How long something may be owed, in milliseconds, from the first skip on. */
unsigned int cf_debt_age_ms __read_mostly = 1000;

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
 * Context: RCU read side, which lasts until the tags are written (choice.c).
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
 * cf_kick_release() - look now what is paid, and release what is clean
 * @ctx: the context
 *
 * Context: any; RCU read side or a reference.
 */
void cf_kick_release(struct cf_ctx *ctx)
{
	if (!refcount_inc_not_zero(&ctx->ref))
		return;
	if (mod_delayed_work(cf_wq, &ctx->age, 0))
		cf_ctx_put(ctx);
}

/**
 * cf_kick_wait() - a generation was taken; let the age work wait for it
 * @ctx: the context
 *
 * Context: any; RCU read side or a reference.
 */
void cf_kick_wait(struct cf_ctx *ctx)
{
	if (!refcount_inc_not_zero(&ctx->ref))
		return;
	if (!queue_delayed_work(cf_wq, &ctx->age, 1))
		cf_ctx_put(ctx);
}

/**
 * __cf_flush_completed() - all CPUs have carried out a flush of a process
 * @mm: the process
 * @gen: its number
 * @full: whether it covered the whole address space; partial ones prove
 *	nothing about translations elsewhere
 *
 * Called by flush_tlb_mm_cpus() with preemption off, which keeps the context
 * from being freed.
 */
void __cf_flush_completed(struct mm_struct *mm, u64 gen, bool full)
{
	struct cf_ctx *ctx = READ_ONCE(mm->cf);

	CF_MUTATION(fpr_credit_partial, full = true);
	if (!ctx || !full)
		return;
	cf_credit(ctx, gen);
	/* Nobody waits for them but the allocator. */
	if (READ_ONCE(ctx->nr) && !cf_ctx_policy(ctx)->recycles)
		cf_kick_release(ctx);
}

/**
 * cf_debt_age() - how old a debt gets until ticks shall pay it
 * @ctx: the context
 *
 * Return: the time in jiffies.
 */
unsigned long cf_debt_age(struct cf_ctx *ctx)
{
	const unsigned int *ms = cf_ctx_policy(ctx)->start_ms;

	return ms ? msecs_to_jiffies(READ_ONCE(*ms)) :
		    msecs_to_jiffies(READ_ONCE(cf_debt_age_ms)) / 2;
}

/**
 * cf_debt_late() - how old a debt gets until CPUs are interrupted for it
 * @ctx: the context
 *
 * Return: the time in jiffies.
 */
unsigned long cf_debt_late(struct cf_ctx *ctx)
{
	const unsigned int *ms = cf_ctx_policy(ctx)->late_ms ?: &cf_debt_age_ms;

	return msecs_to_jiffies(READ_ONCE(*ms));
}

/* Arm the timer of a context, as for work: isolated CPUs are left alone. */
static bool cf_arm(struct cf_ctx *ctx, unsigned long due)
{
	unsigned long flags;
	bool armed;

	spin_lock_irqsave(&ctx->lock, flags);
	armed = timer_delete(&ctx->old);
	/* What was set here may be over already, and a newer one be there. */
	ctx->old.expires = READ_ONCE(ctx->due) ?: due;
	if (housekeeping_enabled(HK_TYPE_TIMER))
		add_timer_on(&ctx->old, housekeeping_any_cpu(HK_TYPE_TIMER));
	else
		add_timer(&ctx->old);
	spin_unlock_irqrestore(&ctx->lock, flags);
	return armed;
}

/*
 * What is owed has been noted: let it be paid after a while.
 *
 *   skip				cf_start_due(), in a tick or by the timer
 *   gen = started			due = 0
 *   notes gen				nothing is owed? then that is all
 *   due != 0: it is started later	N = ++started; ticks shall catch up
 *
 * Who sees that @due is set has read the generation before it was cleared, so
 * N is newer. And who clears it sees what was noted before, since both have a
 * full barrier in between (cf_raise(), cmpxchg).
 */
static void cf_kick_age(struct cf_ctx *ctx)
{
	unsigned long due;

	/* The generation before @due, where nothing had to be noted. */
	smp_rmb();
	if (READ_ONCE(ctx->due))
		return;
	/* 0 is for none. */
	due = jiffies + cf_debt_age(ctx) ?: 1;
	if (cmpxchg(&ctx->due, 0, due))
		return;
	refcount_inc(&ctx->ref);
	/* Still to expire for an older debt, which a tick has started: see to it. */
	if (cf_arm(ctx, due) &&
	    !queue_delayed_work(cf_wq, &ctx->age, 1))
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
 * cf_owe_hints() - entries were made inaccessible
 * @ctx: the context
 * @gen: generation that was read after that
 *
 * Context: any. Ordered like a skip.
 */
void cf_owe_hints(struct cf_ctx *ctx, u64 gen)
{
	CF_MUTATION(latr_hint_unpaid, return);
	cf_raise(&ctx->hinted, gen + 1);
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
 * cf_owes_frames() - can CPUs reach frames that a process has left, or may lose?
 * @ctx: its context
 *
 * Return: false if no debt but of hints is left, which concern no frame.
 */
bool cf_owes_frames(struct cf_ctx *ctx)
{
	return cf_is_owed_for(ctx, READ_ONCE(ctx->skipped)) ||
	       cf_is_owed_for(ctx, READ_ONCE(ctx->cleared));
}

/**
 * cf_is_owed() - is there a translation that no full flush has removed?
 * @ctx: the context
 *
 * Return: false if no CPU has a stale translation that it has left.
 */
bool cf_is_owed(struct cf_ctx *ctx)
{
	return cf_owes_frames(ctx) ||
	       cf_is_owed_for(ctx, READ_ONCE(ctx->hinted));
}
