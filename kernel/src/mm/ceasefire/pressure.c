// SPDX-License-Identifier: GPL-2.0
/*
 * Pressure: drains for those who need memory, so that parked frames are never
 * the reason that an allocation fails, a process is killed, or memory cannot be
 * taken away (I6).
 *
 *   kswapd	a node is below its watermark		kswapd
 *   shrinker	somebody else reclaims			work item
 *   reclaim	direct reclaim has found nothing	the allocating task
 *   oom	before the OOM killer kills		OOM notifier
 *   isolate	memory offline, CMA			the isolating task
 *   pcp	whoever drains the per-cpu lists, too	the same task
 *   compact	compaction makes free blocks		the compacting task
 *   cgroup	a control group is at its limit, or is	the task that charges
 *		told to give memory back		or writes the file
 *   limit	all pools together are full		work item
 *
 * A task that allocates does not pay for what others have parked as long as it
 * finds something else: kswapd and work items do. It flushes itself where it
 * would fail otherwise, or wait for much longer than a flush takes. A control
 * group that pays for parked frames is different: what it has left to itself
 * comes before pages that it uses.
 *
 * Locks: fpr_ctx.settling, one context after the other. Nothing is allocated
 * under it, so any allocation may come here.
 * Callers: see the table; the hooks are in fpr/free and fpr/reclaim.
 */
#include <linux/mm.h>
#include <linux/notifier.h>
#include <linux/oom.h>
#include <linux/shrinker.h>
#include <linux/swap.h>
#include <linux/vmstat.h>

#include "internal.h"

/* Contexts with fewer parked frames are not worth a flush to reclaim. */
#define FPR_RECLAIM_BATCH	32

/* Then it is for the caller to try again, as for pages in other hands. */
#define FPR_DRAIN_ROUNDS	8

/* Defaults of the limits, as parts of the memory. */
#define FPR_PARKED_SHARE	32
#define FPR_STALE_SHARE		16

static bool fpr_drain_mutated(enum fpr_drain_reason reason)
{
	switch (reason) {
	case FPR_BY_KSWAPD:
		return fpr_mutated(MUTATE_fpr_no_drain_kswapd);
	case FPR_BY_SHRINKER:
		return fpr_mutated(MUTATE_fpr_no_shrinker);
	case FPR_BY_RECLAIM:
		return fpr_mutated(MUTATE_fpr_no_drain_reclaim);
	case FPR_BY_OOM:
		return fpr_mutated(MUTATE_fpr_no_drain_oom);
	case FPR_BY_ISOLATE:
		return fpr_mutated(MUTATE_fpr_no_drain_isolate);
	case FPR_BY_PCP:
		/* Also of reclaim that has found something, but not enough. */
		return fpr_mutated(MUTATE_fpr_no_drain_pcp) ||
		       fpr_mutated(MUTATE_fpr_no_drain_reclaim);
	case FPR_BY_COMPACT:
		return fpr_mutated(MUTATE_fpr_no_drain_compact);
	case FPR_BY_CGROUP:
		return fpr_mutated(MUTATE_fpr_no_drain_cgroup);
	default:
		return false;
	}
}

/* Is the pool of a context worth a flush to the one who asks? */
static bool fpr_worth_it(struct fpr_ctx *ctx, enum fpr_drain_reason reason,
			 struct mem_cgroup *memcg)
{
	if (memcg)
		return fpr_charge_concerns(ctx, memcg);
	if (reason != FPR_BY_KSWAPD && reason != FPR_BY_SHRINKER)
		return true;
	return READ_ONCE(ctx->nr) >= FPR_RECLAIM_BATCH;
}

/*
 * Release the parked frames of all contexts, or of those that have pages of a
 * control group.
 *
 * A page that two processes can reach may wait with one that comes before the
 * one it waited with: hence the rounds. Each round takes at least one process
 * off it; new such pages may come all the time, so there is an end. Who needs
 * the very pages that are parked goes on as long as there are any: another
 * drain may have put one behind us.
 */
static unsigned long fpr_drain_pools(enum fpr_drain_reason reason,
				     struct mem_cgroup *memcg)
{
	unsigned long nr = 0;
	struct fpr_ctx *ctx;
	int round;

	if (fpr_drain_mutated(reason))
		return 0;
	for (round = 0; round < FPR_DRAIN_ROUNDS && fpr_parked(); round++) {
		unsigned long id = 0;
		bool again = false;

		while ((ctx = fpr_ctx_next(&id))) {
			if (fpr_worth_it(ctx, reason, memcg))
				nr += fpr_settle_one(ctx, reason, &again);
			fpr_ctx_put(ctx);
		}
		if (!again && reason != FPR_BY_ISOLATE &&
		    reason != FPR_BY_OOM)
			break;
	}
	return nr;
}

/**
 * __fpr_drain() - release the parked frames of all contexts
 * @reason: who asks
 *
 * Context: may sleep and sends IPIs.
 * Return: number of base pages released.
 */
unsigned long __fpr_drain(enum fpr_drain_reason reason)
{
	return fpr_drain_pools(reason, NULL);
}

/**
 * __fpr_drain_cgroup() - a control group gets back what is parked of it
 * @memcg: the group, and those in it
 *
 * However few: a task is killed for the last page. There was a skip for each
 * frame that is flushed for here, so it is never more than without them.
 *
 * Context: may sleep and sends IPIs. Tasks that charge may hold any lock that
 * one can reclaim under: nothing is allocated under those of a drain.
 * Return: number of base pages that the group pays for no more.
 */
unsigned long __fpr_drain_cgroup(struct mem_cgroup *memcg)
{
	unsigned long before = fpr_charged(memcg), after;

	if (!before)
		return 0;
	fpr_drain_pools(FPR_BY_CGROUP, memcg);
	after = fpr_charged(memcg);
	return before > after ? before - after : 0;
}

/* A drain of all contexts that nobody waits for. */
struct fpr_background {
	struct work_struct work;
	enum fpr_drain_reason reason;
};

static void fpr_background_work(struct work_struct *work)
{
	__fpr_drain(container_of(work, struct fpr_background, work)->reason);
}

static struct fpr_background fpr_for_limit = {
	.work = __WORK_INITIALIZER(fpr_for_limit.work, fpr_background_work),
	.reason = FPR_BY_LIMIT,
};

static struct fpr_background fpr_for_shrinker = {
	.work = __WORK_INITIALIZER(fpr_for_shrinker.work, fpr_background_work),
	.reason = FPR_BY_SHRINKER,
};

/**
 * fpr_limit_parked() - drain all pools soon if together they hold too much
 *
 * Context: any.
 */
void fpr_limit_parked(void)
{
	if (unlikely(fpr_parked() > READ_ONCE(fpr_parked_limit)) &&
	    !fpr_mutated(MUTATE_fpr_no_total_limit))
		queue_work(fpr_wq, &fpr_for_limit.work);
}

static unsigned long fpr_shrink_count(struct shrinker *s,
				      struct shrink_control *sc)
{
	long nr = fpr_parked();

	/* kswapd drains by itself. */
	if (nr < FPR_RECLAIM_BATCH || current_is_kswapd())
		return SHRINK_EMPTY;
	return nr;
}

/* Who reclaims goes on with pages that need no flush. */
static unsigned long fpr_shrink_scan(struct shrinker *s,
				     struct shrink_control *sc)
{
	queue_work(fpr_wq, &fpr_for_shrinker.work);
	return SHRINK_STOP;
}

/*
 * The OOM killer asks whether anybody can free pages before it kills. Reclaim
 * has drained many times by then; a few frames, perhaps of the wrong node, must
 * not keep it from killing for ever.
 */
#define FPR_OOM_ENOUGH	256

static int fpr_oom_notify(struct notifier_block *nb, unsigned long unused,
			  void *freed)
{
	unsigned long nr = __fpr_drain(FPR_BY_OOM);

	if (nr >= FPR_OOM_ENOUGH)
		*(unsigned long *)freed += nr;
	return NOTIFY_OK;
}

static struct notifier_block fpr_oom_notifier = {
	.notifier_call = fpr_oom_notify,
};

static int __init fpr_pressure_init(void)
{
	struct shrinker *s = shrinker_alloc(0, "ceasefire-fpr");

	if (!s)
		return -ENOMEM;
	s->count_objects = fpr_shrink_count;
	s->scan_objects = fpr_shrink_scan;
	/* Nothing has to be read again for what is parked. */
	s->seeks = 0;
	shrinker_register(s);
	fpr_parked_limit = totalram_pages() / FPR_PARKED_SHARE;
	fpr_stale_limit = totalram_pages() / FPR_STALE_SHARE;
	return register_oom_notifier(&fpr_oom_notifier);
}
subsys_initcall(fpr_pressure_init);
