// SPDX-License-Identifier: GPL-2.0
/*
 * Members of a group: who is flushed with it.
 *
 *   join			flush of the group
 *   into the list		N = ++started
 *   smp_mb()			for all in the list: flush
 *   ctx->group = group		completed = N
 *   ... gen = started; tag
 *
 * Who is not found in the list tags with N or later, which is stale.
 *
 * So a flush of the group that is credited has reached all who may have left a
 * frame before it (I1).
 *
 * Locks: cf_group.lock, inside of mmap_lock, for the list. Nothing is allocated
 * under it: reclaim takes it. Callers: settle.c (flush), choice.c.
 */
#include <linux/mm.h>

#include <asm/tlbflush.h>

#include "members.h"

/**
 * cf_group_flush() - flush all members of a group
 * @ctx: its context
 *
 * Context: may sleep and sends IPIs.
 */
void cf_group_flush(struct cf_ctx *ctx)
{
	struct cf_group *group = cf_group_of(ctx);
	u64 gen = atomic64_inc_return(&ctx->started);
	struct cf_member *member;

	mutex_lock(&group->lock);
	list_for_each_entry(member, &group->members, link)
		flush_tlb_mm_range(member->mm, 0, TLB_FLUSH_ALL, 0, false);
	mutex_unlock(&group->lock);
	cf_credit(ctx, gen);
}

/**
 * cf_group_list() - a process is flushed with a group from now on
 * @group: the group
 * @member: with the process
 */
void cf_group_list(struct cf_group *group, struct cf_member *member)
{
	mutex_lock(&group->lock);
	list_add(&member->link, &group->members);
	mutex_unlock(&group->lock);
	/* Listed before it tags; see above. */
	smp_mb();
}
