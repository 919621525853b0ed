// SPDX-License-Identifier: GPL-2.0
/*
 * Parked frames and memory control groups (I6): a page that was charged to a
 * group stays charged to it while its frames are parked. It is not free, nobody
 * else can have it, and without that a group with a limit could hold as much
 * again, out of sight.
 *
 * The group that has paid for the page goes on to pay, not that of the process
 * which can still reach it: so to park moves no number of any group, whichever
 * processes have mapped the page, and no group gets over its limit by it. When
 * it is at its limit it drains what it pays for (pressure.c).
 *
 *	uncharge_folio()	no reference is left, and a frame is reached:
 *				the charge is kept, page->index says whose
 *	__cf_park()		parked: page->memcg_data says whose
 *				not any more, or not at all: given back
 *	release, recycling	given back; who uses the page next is charged anew
 *
 * A page that comes without a charge of its own has handed it on (migration), or
 * was recycled and not used after all: the group of the task that frees it pays.
 * That can be more than its limit, so the pool is drained soon.
 *
 * A charge holds a reference to its group, so one that is removed stays in
 * memory until the last of its frames has left the pools.
 *
 * Between uncharge_folio() and the pool a page is on nobody's list, so both
 * fields belong to whoever frees it. A kept charge is known by its low bits: no
 * other user of page->index leaves a kernel address that is not aligned.
 *
 * What was kept must be found again, so cf_used is not cleared meanwhile:
 *
 *	keep				the last context ends
 *	nr_kept++			it is dead, the shared one is settled
 *	smp_mb()			smp_mb()
 *	the frame is reached?		nr_kept? then cf_used stays
 *
 * Either the keeper finds the context dead, or the context finds the keeper. The
 * next last context clears the flag.
 *
 * Locks: none; cf_charge_noted() runs under that of a pool.
 * Callers: uncharge_folio() (keep), pool.c, recycle.c (hold, drop), pressure.c.
 */
#include <linux/cgroup.h>
#include <linux/init.h>
#include <linux/memcontrol.h>
#include <linux/mm.h>
#include <linux/page_counter.h>
#include <linux/seq_file.h>

#include "../../internal.h"
#include "../../memcontrol-v1.h"
#include "core.h"

/* In page->index: a charge that is kept. */
#define CF_KEPT	3UL
#define CF_KEPT_MASK	(0xffUL << 56 | 7UL)
#define CF_KEPT_BITS	(0xffUL << 56 | CF_KEPT)

/* Charges that are kept and neither parked nor given back yet. */
static atomic_t cf_nr_kept;

/* Take the charge that was kept for a page that is being freed; NULL: none. */
static struct mem_cgroup *cf_charge_take(struct page *page)
{
	unsigned long kept = page->index;

	if ((kept & CF_KEPT_MASK) != CF_KEPT_BITS)
		return NULL;
	page->index = 0;
	atomic_dec(&cf_nr_kept);
	return (struct mem_cgroup *)(kept & ~CF_KEPT);
}

/**
 * cf_charges_kept() - has cf_park() charges to give back?
 *
 * Context: no context can reach a frame any more.
 * Return: true if it may have.
 */
bool cf_charges_kept(void)
{
	/* Pairs with that in __cf_keep_charge(); see above. */
	smp_mb();
	return atomic_read(&cf_nr_kept);
}

/**
 * __cf_keep_charge() - a folio that nobody uses any more is to be uncharged
 * @folio: the folio, on its way to the page allocator
 * @memcg: who is charged for it
 *
 * Not for one that is taken away while it has references: a bad page is not
 * parked, or not for now.
 *
 * Context: any.
 * Return: true if it stays charged until it can be used by others.
 */
bool __cf_keep_charge(struct folio *folio, struct mem_cgroup *memcg)
{
	unsigned long nr = folio_nr_pages(folio);

	CF_MUTATION(fpr_park_uncharged, return false);
	if (folio_ref_count(folio) || folio_test_hwpoison(folio) ||
	    !cf_frames_reached(folio_pfn(folio), nr))
		return false;
	atomic_inc(&cf_nr_kept);
	/* Pairs with that in cf_charges_kept(); see above. */
	smp_mb__after_atomic();
	if (!cf_frames_reached(folio_pfn(folio), nr)) {
		atomic_dec(&cf_nr_kept);
		return false;
	}
	css_get(&memcg->css);
	atomic_long_add(nr, &memcg->cf_parked);
	folio->index = (unsigned long)memcg | CF_KEPT;
	return true;
}

/* Is a group, or one that it is in, above what it may have? */
static bool cf_charged_too_much(struct mem_cgroup *memcg)
{
	for (; memcg && !mem_cgroup_is_root(memcg);
	     memcg = parent_mem_cgroup(memcg))
		if (page_counter_read(&memcg->memory) >
		    min(READ_ONCE(memcg->memory.max),
			READ_ONCE(memcg->memory.high)))
			return true;
	return false;
}

/* Who pays for a page that nobody was charged for, with a reference. */
static struct mem_cgroup *cf_charge_payer(void)
{
	CF_MUTATION(fpr_park_unpaid, return root_mem_cgroup);
	return in_task() ? get_mem_cgroup_from_current() : root_mem_cgroup;
}

/**
 * cf_charge_hold() - a page is about to enter a pool: somebody pays for it
 * @page: the page; nothing changes if it comes from another pool
 * @order: its order
 *
 * Context: any.
 * Return: true if a group has more now than it may have.
 */
bool cf_charge_hold(struct page *page, unsigned int order)
{
	unsigned long nr = 1UL << order;
	struct mem_cgroup *memcg;
	bool too_much = false;

	CF_MUTATION(fpr_park_uncharged, return false);
	if (mem_cgroup_disabled() || page->memcg_data)
		return false;
	memcg = cf_charge_take(page);
	if (!memcg) {
		memcg = cf_charge_payer();
		if (!mem_cgroup_is_root(memcg)) {
			page_counter_charge(&memcg->memory, nr);
			if (do_memsw_account())
				page_counter_charge(&memcg->memsw, nr);
			too_much = cf_charged_too_much(memcg);
		}
		atomic_long_add(nr, &memcg->cf_parked);
	}
	/* Also the root, for whom nothing is counted: it is settled who pays. */
	page->memcg_data = (unsigned long)memcg;
	return too_much;
}

/**
 * cf_charge_drop() - a page that was parked, or nearly, can be used by others
 * @page: the page, which the caller owns alone
 * @order: its order
 *
 * Context: any.
 */
void cf_charge_drop(struct page *page, unsigned int order)
{
	struct mem_cgroup *memcg = (struct mem_cgroup *)page->memcg_data;
	unsigned long nr = 1UL << order;

	if (memcg)
		page->memcg_data = 0;
	else
		memcg = cf_charge_take(page);
	if (likely(!memcg))
		return;
	atomic_long_sub(nr, &memcg->cf_parked);
	CF_MUTATION(fpr_charge_stays, css_put(&memcg->css); return);
	if (!mem_cgroup_is_root(memcg)) {
		page_counter_uncharge(&memcg->memory, nr);
		if (do_memsw_account())
			page_counter_uncharge(&memcg->memsw, nr);
		memcg1_oom_recover(memcg);
	}
	css_put(&memcg->css);
}

/**
 * cf_charge_paid_by() - note whose pages a pool has
 * @ctx: the context, its lock held; before they count
 * @memcg: the group that pays for some
 */
void cf_charge_paid_by(struct cf_ctx *ctx, struct mem_cgroup *memcg)
{
	if (!ctx->nr)
		ctx->payer = memcg;
	else if (ctx->payer != memcg)
		ctx->payer = CF_PAYERS;
}

/**
 * cf_charge_noted() - the same for a page that enters the pool
 * @ctx: the context, its lock held
 * @page: the page, after cf_charge_hold()
 */
void cf_charge_noted(struct cf_ctx *ctx, struct page *page)
{
	cf_charge_paid_by(ctx, (struct mem_cgroup *)page->memcg_data);
}

/**
 * cf_charge_of() - who pays for a page that is not freed yet
 * @folio: the page, of which the caller has the last reference
 *
 * Return: the group; NULL without groups.
 */
struct mem_cgroup *cf_charge_of(struct folio *folio)
{
	return mem_cgroup_disabled() ? NULL : folio_memcg(folio);
}

/**
 * cf_charge_get() - pages are held that a group pays for
 * @memcg: the group or NULL
 *
 * Each of them has a reference to it; memory_failure() may take that away.
 */
void cf_charge_get(struct mem_cgroup *memcg)
{
	if (memcg)
		css_get(&memcg->css);
}

/**
 * cf_charge_tryget() - a reference to a group that may be going
 * @memcg: the group, or NULL
 *
 * Context: RCU read side, under which @memcg was found.
 * Return: false if it has no reference left.
 */
bool cf_charge_tryget(struct mem_cgroup *memcg)
{
	return !memcg || css_tryget(&memcg->css);
}

/**
 * cf_charge_put() - they are held no more
 * @memcg: the group or NULL
 */
void cf_charge_put(struct mem_cgroup *memcg)
{
	if (memcg)
		css_put(&memcg->css);
}

/**
 * cf_charge_waits() - count what is held and charged to a group
 * @memcg: the group or NULL
 * @nr: pages more than before
 *
 * They are charged as ever; it is for the group to know what a drain would bring.
 */
void cf_charge_waits(struct mem_cgroup *memcg, long nr)
{
	CF_MUTATION(cf_held_unpaid, return);
	if (memcg)
		atomic_long_add(nr, &memcg->cf_parked);
}

/**
 * cf_charge_concerns() - may a pool have pages that a group pays for?
 * @ctx: the context
 * @memcg: the group; those in it count, too
 *
 * Return: true if it may, or if a drain has taken them a moment ago: it is to
 * be waited for.
 */
bool cf_charge_concerns(struct cf_ctx *ctx, struct mem_cgroup *memcg)
{
	bool has;

	/* A page in the pool holds a reference to its group. */
	spin_lock_irq(&ctx->lock);
	has = ctx->nr && (ctx->payer == CF_PAYERS ||
			  (ctx->payer &&
			   mem_cgroup_is_descendant(ctx->payer, memcg)));
	spin_unlock_irq(&ctx->lock);
	return has || mutex_is_locked(&ctx->settling);
}

/**
 * cf_charged() - parked base pages that a group pays for
 * @memcg: the group
 *
 * Return: their number, with those of the groups in it.
 */
unsigned long cf_charged(struct mem_cgroup *memcg)
{
	struct mem_cgroup *iter;
	unsigned long nr = 0;

	for_each_mem_cgroup_tree(iter, memcg)
		nr += atomic_long_read(&iter->cf_parked);
	return nr;
}

/* memory.fpr_parked: the part of memory.current that is parked, in bytes. */
static u64 cf_parked_read(struct cgroup_subsys_state *css, struct cftype *cft)
{
	return (u64)cf_charged(mem_cgroup_from_css(css)) << PAGE_SHIFT;
}

static struct cftype cf_charge_files[] = {
	{
		.name = "fpr_parked",
		.flags = CFTYPE_NOT_ON_ROOT,
		.read_u64 = cf_parked_read,
	},
	{ }
};

static int __init cf_charge_init(void)
{
	if (mem_cgroup_disabled())
		return 0;
	return cgroup_add_dfl_cftypes(&memory_cgrp_subsys, cf_charge_files);
}
subsys_initcall(cf_charge_init);
