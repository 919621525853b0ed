// SPDX-License-Identifier: GPL-2.0
/*
 * Contexts that are wider or narrower than a process: prctl(PR_FPR_SET_CONTEXT).
 *
 *   mapping	munmap() flushes as ever, only eviction does not: what is mapped
 *		next never comes into a frame of a mapping that is gone
 *   process	the default; no group at all
 *   children	a process and those that it forks from then on
 *
 * The last one is a group: what one member has left another one may recycle,
 * and can then be read by the first through a stale translation. So each member
 * has to ask for it, or to be forked by one that has. A group is kept over fork()
 * and execve(), since it is the choice of who starts a program; it is left when
 * credentials change. A tracer or its target gets nothing by it: what is faulted
 * in for another process never comes from a pool.
 *
 * A group is a context without a process: identifier, pool and debts, a counter
 * of its flushes, and the contexts of its members. A member tags with the
 * group, but for anonymous pages, which stay with their process (I2). Frames
 * leave the group when all members have been flushed.
 *
 *   join			flush of the group
 *   into the list		N = ++started
 *   smp_mb()			for all in the list: flush
 *   ctx->group = group		completed = N
 *   ... gen = started; tag
 *
 * Who is not found in the list tags with N or later, which is stale.
 *
 *   leave			reclaim, on behalf of the leaver
 *   ctx->group = NULL		rcu_read_lock()
 *   synchronize_rcu()		group = ctx->group; tag with it
 *   flush the group		rcu_read_unlock()
 *   off the list
 *
 * No tag that names the group for the leaver comes after the flush, and until
 * then it is in the list. The flush is of all members: they must not see what
 * is the leaver's alone from now on, as it must not see theirs. Its own faults
 * look at the group and take from the pool in one RCU read side, too.
 *
 * Locks: mmap_lock of a process, held for writing, protects its choice and its
 * membership; fpr_group_lock the choice against fork(), and the number of those
 * who have made it; fpr_group.lock, inside of mmap_lock, the list. Nothing is
 * allocated under the last one: reclaim takes it.
 * Callers: prctl.c, context.c, settle.c, commit_creds().
 */
#include <linux/mm.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/vmstat.h>

#include <asm/tlbflush.h>

#include "internal.h"

/**
 * struct fpr_group - several processes that recycle together
 * @ctx:	the context; its mm is NULL
 * @kind:	PR_FPR_CONTEXT_*
 * @users:	processes that have chosen it, under fpr_group_lock
 * @lock:	protects @members
 * @members:	contexts of the processes, linked by fpr_ctx.member
 */
struct fpr_group {
	struct fpr_ctx ctx;
	unsigned int kind;
	unsigned long users;
	/* Protects the list of members. */
	struct mutex lock;
	struct list_head members;
};

static DEFINE_SPINLOCK(fpr_group_lock);

/* No group, and a choice all the same. Never freed, has no members. */
static struct fpr_group fpr_each_mapping = {
	.kind = PR_FPR_CONTEXT_MAPPING,
	.users = 1,
};

static struct fpr_group *fpr_group_of(struct fpr_ctx *ctx)
{
	return container_of(ctx, struct fpr_group, ctx);
}

static void fpr_group_free(struct work_struct *work)
{
	struct fpr_ctx *ctx = container_of(work, struct fpr_ctx, free);

	WARN_ON_ONCE(ctx->nr);
	kfree_rcu(fpr_group_of(ctx), ctx.rcu);
}

static struct fpr_group *fpr_group_alloc(unsigned int kind)
{
	struct fpr_group *group;

	if (!fpr_tags_init())
		return NULL;
	group = kzalloc(sizeof(*group), GFP_KERNEL_ACCOUNT);
	if (!group)
		return NULL;
	group->kind = kind;
	group->users = 1;
	INIT_LIST_HEAD(&group->members);
	mutex_init(&group->lock);
	refcount_set(&group->ctx.ref, 1);
	atomic64_set(&group->ctx.started, 1);
	group->ctx.completed = 1;
	fpr_pool_init(&group->ctx);
	fpr_settle_init(&group->ctx);
	INIT_WORK(&group->ctx.free, fpr_group_free);
	if (!fpr_ctx_register(&group->ctx)) {
		kfree(group);
		return NULL;
	}
	return group;
}

static void fpr_group_put(struct fpr_group *group)
{
	bool last;

	spin_lock(&fpr_group_lock);
	last = !--group->users;
	spin_unlock(&fpr_group_lock);
	if (!last)
		return;
	/* All members have left or ended: nobody has a stale translation. */
	fpr_ctx_end(&group->ctx);
	fpr_ctx_put(&group->ctx);
}

/**
 * fpr_group_flush() - flush all members of a group
 * @ctx: its context
 *
 * Context: may sleep and sends IPIs.
 */
void fpr_group_flush(struct fpr_ctx *ctx)
{
	struct fpr_group *group = fpr_group_of(ctx);
	u64 gen = atomic64_inc_return(&ctx->started);
	struct fpr_ctx *member;

	mutex_lock(&group->lock);
	list_for_each_entry(member, &group->members, member)
		flush_tlb_mm_range(member->mm, 0, TLB_FLUSH_ALL, 0, false);
	mutex_unlock(&group->lock);
	fpr_credit(ctx, gen);
}

/**
 * fpr_group_join() - a process that has chosen a group becomes a member
 * @ctx: its context
 *
 * Context: mmap_lock held for writing.
 */
void fpr_group_join(struct fpr_ctx *ctx)
{
	struct fpr_group *group = ctx->mm->fpr_group;

	if (!group || group == &fpr_each_mapping)
		return;
	mutex_lock(&group->lock);
	list_add(&ctx->member, &group->members);
	mutex_unlock(&group->lock);
	/* Listed before it tags; see above. */
	smp_mb();
	WRITE_ONCE(ctx->group, &group->ctx);
}

/* Off the list; frames that nobody waits for any more go back. */
static void fpr_group_unlist(struct fpr_ctx *ctx, struct fpr_group *group)
{
	bool last;

	mutex_lock(&group->lock);
	list_del(&ctx->member);
	last = list_empty(&group->members);
	mutex_unlock(&group->lock);
	if (last)
		fpr_settle(&group->ctx, FPR_BY_EXIT);
}

static void fpr_group_leave(struct mm_struct *mm)
{
	struct fpr_group *group = mm->fpr_group;
	struct fpr_ctx *ctx = mm->fpr;

	if (ctx && ctx->group) {
		WRITE_ONCE(ctx->group, NULL);
		synchronize_rcu();
		if (!fpr_mutated(MUTATE_fpr_leave_unflushed)) {
			count_vm_event(FPR_LEAVE_FLUSH);
			fpr_group_flush(&group->ctx);
		}
		fpr_group_unlist(ctx, group);
	}
	spin_lock(&fpr_group_lock);
	mm->fpr_group = NULL;
	spin_unlock(&fpr_group_lock);
	if (group)
		fpr_group_put(group);
}

/**
 * fpr_group_end() - a member has ended, no CPU can use its translations
 * @ctx: its context
 */
void fpr_group_end(struct fpr_ctx *ctx)
{
	struct fpr_ctx *group = ctx->group;

	if (!group)
		return;
	WRITE_ONCE(ctx->group, NULL);
	fpr_group_unlist(ctx, fpr_group_of(group));
}

/**
 * __fpr_group_exit() - forget the choice of a process that has ended
 * @mm: the process
 */
void __fpr_group_exit(struct mm_struct *mm)
{
	fpr_group_put(mm->fpr_group);
	mm->fpr_group = NULL;
}

/**
 * __fpr_group_inherit() - a new address space makes the choice of the current one
 * @mm: the new one
 */
void __fpr_group_inherit(struct mm_struct *mm)
{
	spin_lock(&fpr_group_lock);
	mm->fpr_group = current->mm->fpr_group;
	if (mm->fpr_group)
		mm->fpr_group->users++;
	spin_unlock(&fpr_group_lock);
}

/**
 * fpr_group_kind() - what a process has chosen
 * @mm: the process
 *
 * Return: PR_FPR_CONTEXT_*
 */
unsigned int fpr_group_kind(struct mm_struct *mm)
{
	unsigned int kind = PR_FPR_CONTEXT_PROCESS;

	spin_lock(&fpr_group_lock);
	if (mm->fpr_group)
		kind = mm->fpr_group->kind;
	spin_unlock(&fpr_group_lock);
	return kind;
}

/**
 * fpr_is_mapping_only() - does a process recycle within each mapping only?
 * @mm: the process
 *
 * Return: true if it has chosen so.
 */
bool fpr_is_mapping_only(struct mm_struct *mm)
{
	return READ_ONCE(mm->fpr_group) == &fpr_each_mapping;
}

/**
 * fpr_group_choose() - choose the context of the current process
 * @kind: PR_FPR_CONTEXT_*
 *
 * Return: 0, -EINVAL: no such kind, -ENOMEM, -EINTR.
 */
int fpr_group_choose(unsigned long kind)
{
	struct mm_struct *mm = current->mm;
	struct fpr_group *group = NULL;

	switch (kind) {
	case PR_FPR_CONTEXT_PROCESS:
		break;
	case PR_FPR_CONTEXT_MAPPING:
		group = &fpr_each_mapping;
		spin_lock(&fpr_group_lock);
		group->users++;
		spin_unlock(&fpr_group_lock);
		break;
	case PR_FPR_CONTEXT_CHILDREN:
		group = fpr_group_alloc(kind);
		if (!group)
			return -ENOMEM;
		break;
	default:
		return -EINVAL;
	}
	if (mmap_write_lock_killable(mm)) {
		if (group)
			fpr_group_put(group);
		return -EINTR;
	}
	fpr_group_leave(mm);
	spin_lock(&fpr_group_lock);
	mm->fpr_group = group;
	spin_unlock(&fpr_group_lock);
	if (mm->fpr)
		fpr_group_join(mm->fpr);
	mmap_write_unlock(mm);
	return 0;
}

/**
 * __fpr_creds_changed() - a thread has other credentials from now on
 * @mm: its process
 *
 * Called by commit_creds() before they take effect. Also in execve(), where the
 * new address space has mapped nothing yet.
 */
void __fpr_creds_changed(struct mm_struct *mm)
{
	if (fpr_mutated(MUTATE_fpr_creds_ignored) ||
	    mm->fpr_group == &fpr_each_mapping)
		return;
	mmap_write_lock(mm);
	fpr_group_leave(mm);
	mmap_write_unlock(mm);
}
