// SPDX-License-Identifier: GPL-2.0
/*
 * Groups: contexts of several processes. Who is in one is in choice.c.
 *
 * A group is a context without a process: identifier, pool and debts, a counter
 * of its flushes, and a list of members. A member tags with the group, but for
 * anonymous pages, which stay with their process (I2). Frames leave the group
 * when all members have been flushed (members.c).
 *
 * Locks: cf_group.lock, see members.c; cf_group_lock for the number of those who
 * have chosen a group. A group is freed a grace period after its last user: those
 * who tag find it under RCU.
 * Callers: choice.c, context.c (the end of a member).
 */
#include <linux/cred.h>
#include <linux/mm.h>
#include <linux/security.h>
#include <linux/slab.h>

#include "core.h"
#include "group.h"

DEFINE_SPINLOCK(cf_group_lock);
static unsigned int cf_groups;	/* under cf_group_lock */

/**
 * cf_group_count() - groups of processes
 *
 * Return: their number.
 */
unsigned int cf_group_count(void)
{
	return READ_ONCE(cf_groups);
}

/**
 * cf_group_bytes() - memory of the groups
 *
 * Return: it, in bytes.
 */
unsigned long cf_group_bytes(void)
{
	return cf_group_count() * sizeof(struct cf_group);
}

static void cf_group_free(struct work_struct *work)
{
	struct cf_ctx *ctx = container_of(work, struct cf_ctx, free);

	WARN_ON_ONCE(ctx->nr);
	put_cred(cf_group_of(ctx)->cred);
	kfree_rcu(cf_group_of(ctx), ctx.rcu);
}

/**
 * cf_group_alloc() - a new group with the credentials of the current process
 * @kind: PR_FPR_CONTEXT_*
 *
 * Return: the group, which cf_group_put() has to follow; NULL without memory.
 */
struct cf_group *cf_group_alloc(unsigned int kind)
{
	struct cf_group *group;

	if (!cf_tags_init())
		return NULL;
	group = kzalloc(sizeof(*group), GFP_KERNEL_ACCOUNT);
	if (!group)
		return NULL;
	group->kind = kind;
	group->cred = get_cred(current_real_cred());
	security_current_getsecid_subj(&group->secid);
	group->users = 1;
	INIT_LIST_HEAD(&group->members);
	mutex_init(&group->lock);
	refcount_set(&group->ctx.ref, 1);
	atomic64_set(&group->ctx.started, 1);
	group->ctx.completed = 1;
	cf_pool_init(&group->ctx);
	cf_settle_init(&group->ctx);
	INIT_WORK(&group->ctx.free, cf_group_free);
	if (!cf_ctx_register(&group->ctx)) {
		put_cred(group->cred);
		kfree(group);
		return NULL;
	}
	spin_lock(&cf_group_lock);
	cf_groups++;
	spin_unlock(&cf_group_lock);
	return group;
}

/**
 * cf_group_put() - a process has not chosen a group any more
 * @group: the group
 *
 * Context: may sleep; the last one ends the context.
 */
void cf_group_put(struct cf_group *group)
{
	bool last;

	spin_lock(&cf_group_lock);
	last = !--group->users;
	if (last)
		cf_groups--;
	spin_unlock(&cf_group_lock);
	if (!last)
		return;
	/* All members have left or ended: nobody has a stale translation. */
	cf_ctx_end(&group->ctx);
	cf_ctx_put(&group->ctx);
}

/**
 * cf_group_unlist() - a process is flushed with a group no more
 * @group: the group
 * @member: that it was; freed
 *
 * Frames that nobody waits for any more go back.
 */
void cf_group_unlist(struct cf_group *group, struct cf_member *member)
{
	bool last;

	mutex_lock(&group->lock);
	list_del(&member->link);
	last = list_empty(&group->members);
	mutex_unlock(&group->lock);
	kfree(member);
	if (last)
		cf_settle(&group->ctx, CF_BY_EXIT);
}

/**
 * cf_group_end() - a member has ended, no CPU can use its translations
 * @ctx: its context
 */
void cf_group_end(struct cf_ctx *ctx)
{
	struct cf_ctx *group = ctx->group;

	if (!group)
		return;
	WRITE_ONCE(ctx->group, NULL);
	cf_group_unlist(cf_group_of(group), ctx->member);
	ctx->member = NULL;
}
