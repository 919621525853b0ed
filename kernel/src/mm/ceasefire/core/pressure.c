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
 * Locks: cf_ctx.settling, one context after the other. Nothing is allocated
 * under it, so any allocation may come here.
 * Callers: see the table; the hooks are in fpr/free and fpr/reclaim.
 */
#include <linux/mm.h>
#include <linux/notifier.h>
#include <linux/oom.h>
#include <linux/shrinker.h>
#include <linux/swap.h>
#include <linux/vmstat.h>

#include "core.h"

/* Contexts with fewer parked frames are not worth a flush to reclaim. */
#define CF_RECLAIM_BATCH	32

/* Then it is for the caller to try again, as for pages in other hands. */
#define CF_DRAIN_ROUNDS	8

/* Defaults of the limits, as parts of the memory. */
#define CF_PARKED_SHARE	32
#define CF_STALE_SHARE		16

/* Is the pool of a context worth a flush to the one who asks? */
static bool cf_worth_it(struct cf_ctx *ctx, enum cf_drain_reason reason,
			struct mem_cgroup *memcg)
{
	if (memcg)
		return cf_charge_concerns(ctx, memcg);
	if (reason != CF_BY_KSWAPD && reason != CF_BY_SHRINKER)
		return true;
	return READ_ONCE(ctx->nr) >= CF_RECLAIM_BATCH;
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
static unsigned long cf_drain_pools(enum cf_drain_reason reason,
				    struct mem_cgroup *memcg)
{
	unsigned long nr = 0;
	struct cf_ctx *ctx;
	int round;

	CF_MUTATION_IF(fpr_no_drain_kswapd, reason == CF_BY_KSWAPD, return 0);
	CF_MUTATION_IF(fpr_no_shrinker, reason == CF_BY_SHRINKER, return 0);
	CF_MUTATION_IF(fpr_no_drain_reclaim,
		       reason == CF_BY_RECLAIM || reason == CF_BY_PCP, return 0);
	CF_MUTATION_IF(fpr_no_drain_oom, reason == CF_BY_OOM, return 0);
	CF_MUTATION_IF(fpr_no_drain_isolate, reason == CF_BY_ISOLATE, return 0);
	CF_MUTATION_IF(fpr_no_drain_pcp, reason == CF_BY_PCP, return 0);
	CF_MUTATION_IF(fpr_no_drain_compact, reason == CF_BY_COMPACT, return 0);
	CF_MUTATION_IF(fpr_no_drain_cgroup, reason == CF_BY_CGROUP, return 0);
	for (round = 0; round < CF_DRAIN_ROUNDS && cf_parked(); round++) {
		unsigned long id = 0;
		bool again = false;

		while ((ctx = cf_ctx_next(&id))) {
			if (cf_worth_it(ctx, reason, memcg))
				nr += cf_settle_one(ctx, reason, &again);
			cf_ctx_put(ctx);
		}
		if (!again && reason != CF_BY_ISOLATE &&
		    reason != CF_BY_OOM)
			break;
	}
	return nr;
}

/**
 * __cf_drain() - release the parked frames of all contexts
 * @reason: who asks
 *
 * Context: may sleep and sends IPIs.
 * Return: number of base pages released.
 */
unsigned long __cf_drain(enum cf_drain_reason reason)
{
	return cf_drain_pools(reason, NULL);
}

/**
 * __cf_drain_cgroup() - a control group gets back what is parked of it
 * @memcg: the group, and those in it
 *
 * However few: a task is killed for the last page. There was a skip for each
 * frame that is flushed for here, so it is never more than without them.
 *
 * Context: may sleep and sends IPIs. Tasks that charge may hold any lock that
 * one can reclaim under: nothing is allocated under those of a drain.
 * Return: number of base pages that the group pays for no more.
 */
unsigned long __cf_drain_cgroup(struct mem_cgroup *memcg)
{
	unsigned long before = cf_charged(memcg), after;

	if (!before)
		return 0;
	cf_drain_pools(CF_BY_CGROUP, memcg);
	after = cf_charged(memcg);
	return before > after ? before - after : 0;
}

/* A drain of all contexts that nobody waits for. */
struct cf_background {
	struct work_struct work;
	enum cf_drain_reason reason;
};

static void cf_background_work(struct work_struct *work)
{
	__cf_drain(container_of(work, struct cf_background, work)->reason);
}

static struct cf_background cf_for_limit = {
	.work = __WORK_INITIALIZER(cf_for_limit.work, cf_background_work),
	.reason = CF_BY_LIMIT,
};

static struct cf_background cf_for_shrinker = {
	.work = __WORK_INITIALIZER(cf_for_shrinker.work, cf_background_work),
	.reason = CF_BY_SHRINKER,
};

static unsigned long cf_shrink_count(struct shrinker *s,
				     struct shrink_control *sc)
{
	long nr = cf_parked();

	/* kswapd drains by itself. */
	if (nr < CF_RECLAIM_BATCH || current_is_kswapd())
		return SHRINK_EMPTY;
	return nr;
}

/* Who reclaims goes on with pages that need no flush. */
static unsigned long cf_shrink_scan(struct shrinker *s,
				    struct shrink_control *sc)
{
	queue_work(cf_wq, &cf_for_shrinker.work);
	return SHRINK_STOP;
}

/*
 * The OOM killer asks whether anybody can free pages before it kills. Reclaim
 * has drained many times by then; a few frames, perhaps of the wrong node, must
 * not keep it from killing for ever.
 */
#define CF_OOM_ENOUGH	256

static int cf_oom_notify(struct notifier_block *nb, unsigned long unused,
			 void *freed)
{
	unsigned long nr = __cf_drain(CF_BY_OOM);

	if (nr >= CF_OOM_ENOUGH)
		*(unsigned long *)freed += nr;
	return NOTIFY_OK;
}

static struct notifier_block cf_oom_notifier = {
	.notifier_call = cf_oom_notify,
};

static int __init cf_pressure_init(void)
{
	struct shrinker *s = shrinker_alloc(0, "ceasefire-fpr");

	if (!s)
		return -ENOMEM;
	s->count_objects = cf_shrink_count;
	s->scan_objects = cf_shrink_scan;
	/* Nothing has to be read again for what is parked. */
	s->seeks = 0;
	shrinker_register(s);
	cf_limit_work = &cf_for_limit.work;
	cf_parked_limit = totalram_pages() / CF_PARKED_SHARE;
	cf_stale_limit = totalram_pages() / CF_STALE_SHARE;
	return register_oom_notifier(&cf_oom_notifier);
}
subsys_initcall(cf_pressure_init);
