// SPDX-License-Identifier: GPL-2.0
/*
 * All contexts, by the identifiers that are in tags.
 *
 * One context is special: cf_shared owns the frames that more than one live
 * context can reach. It has no process, its flush is one of every process that
 * owes anything (settle.c).
 *
 * Locks: xa_lock of cf_ids; contexts are found under RCU.
 * Callers: all of the core.
 */
#include <linux/slab.h>
#include <linux/xarray.h>

#include "core.h"

/*
 * What decides about processes that have not chosen: the mechanism that mmap() is
 * asked for sets it.
 */
const struct cf_policy *cf_usual_policy __ro_after_init;

/* What settles and drains in the background. */
struct workqueue_struct *cf_wq;

static DEFINE_XARRAY_ALLOC1(cf_ids);
static u32 cf_id_next;

struct cf_ctx cf_shared = {
	.id = CF_ID_SHARED,
	.started = ATOMIC64_INIT(1),
	.ref = REFCOUNT_INIT(1),
};

/**
 * cf_ctx_register() - give a context an identifier
 * @ctx: the context
 *
 * Return: false without memory or identifiers.
 */
bool cf_ctx_register(struct cf_ctx *ctx)
{
	return xa_alloc_cyclic(&cf_ids, &ctx->id, ctx, XA_LIMIT(1, cf_id_max),
			       &cf_id_next, GFP_KERNEL) >= 0;
}

/**
 * cf_ctx_unregister() - nobody finds a context any more
 * @ctx: the context
 */
void cf_ctx_unregister(struct cf_ctx *ctx)
{
	xa_erase(&cf_ids, ctx->id);
}

/**
 * cf_ctx_find() - the live context of a tag
 * @id: id of a context
 *
 * Context: RCU read side.
 * Return: the context, or NULL if it is gone. A found context may die at any
 * time; whoever changes its pool looks at @dead under its lock.
 */
struct cf_ctx *cf_ctx_find(u32 id)
{
	if (id == CF_ID_SHARED)
		return &cf_shared;
	return xa_load(&cf_ids, id);
}

/**
 * cf_ctx_next() - walk over all contexts, the shared one last
 * @id: cursor, 0 at the start
 *
 * Return: a context with a reference for the caller, NULL at the end.
 */
struct cf_ctx *cf_ctx_next(unsigned long *id)
{
	struct cf_ctx *ctx;

	if (*id == CF_ID_SHARED)
		return NULL;
	rcu_read_lock();
	do {
		ctx = *id ? xa_find_after(&cf_ids, id, ULONG_MAX, XA_PRESENT) :
			    xa_find(&cf_ids, id, ULONG_MAX, XA_PRESENT);
	} while (ctx && !refcount_inc_not_zero(&ctx->ref));
	rcu_read_unlock();
	if (!ctx) {
		*id = CF_ID_SHARED;
		ctx = &cf_shared;
		refcount_inc(&ctx->ref);
	}
	return ctx;
}

/**
 * cf_ctx_put() - drop a reference
 * @ctx: the context
 *
 * Context: any; mmdrop() is not for softirqs, so a work item frees.
 */
void cf_ctx_put(struct cf_ctx *ctx)
{
	if (refcount_dec_and_test(&ctx->ref))
		schedule_work(&ctx->free);
}
