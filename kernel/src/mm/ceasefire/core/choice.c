// SPDX-License-Identifier: GPL-2.0
/*
 * Contexts that are wider or narrower than a process: prctl(PR_FPR_SET_CONTEXT),
 * who may join a group, and how one leaves it.
 *
 *   mapping	munmap() flushes as ever, only eviction does not: what is mapped
 *		next never comes into a frame of a mapping that is gone
 *   process	the default; no group at all
 *   children	a process and those that it forks from then on
 *
 * The last one is a group (group.c): what one member has left another one may
 * recycle, and can then be read by the first through a stale translation. So
 * each member is forked by one that has asked for it, and all have the same
 * credentials (I2). A tracer or its target gets nothing by it: what is faulted in
 * for another process never comes from a pool.
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
 * Credentials. Outside of execve() any others end the choice before they take
 * effect, whatever it is that differs: only the security module knows. That is
 * commit_creds(), for the process of the thread that calls it. fork() and
 * execve() keep the choice, since it is that of whoever starts a program; there
 * the address space is new, and has left nothing yet. So they are compared once,
 * when it joins: with those of the process that has made the group
 * (cf_group_admits()). That includes a child made with CLONE_NEWUSER. One that
 * shares the memory of its parent has no secrets from it.
 *
 * No lock is held while the leaver waits. What may happen meanwhile, in threads
 * of the same process:
 *   - another choice, and a join of it: each membership is an object of its own
 *     (struct cf_member), and the list of the old group keeps the old one
 *   - another leave, whose caller counts on what has been left to be gone: it
 *     takes nothing out, and waits for cf_ctx.leaving to be 0
 *   - fork(): the child makes the choice that it finds under cf_group_lock
 *   - the first mapping joins the group at the same time: it is listed, then sees
 *     under cf_group_lock that the choice has changed, and is unlisted
 *   - mprotect() of memory in recycled frames: what has been left with the group
 *     is owed by the process from before it is out (cf_owes_skips())
 *   - exit and exec: the leaver is a thread of the process, so exit_mmap() comes
 *     after it
 *
 * Locks: mmap_lock of a process, held for writing, around a join, so that one
 * joins at a time; cf_group_lock for what a process has chosen, and for what it
 * is a member of. A leave takes no mmap_lock: callers of commit_creds() may hold
 * locks of their own.
 * Callers: prctl.c, context.c, commit_creds(), bprm_mm_init(), exit_mmap().
 */
#include <linux/cred.h>
#include <linux/mm.h>
#include <linux/sched/mm.h>
#include <linux/security.h>
#include <linux/slab.h>
#include <linux/vmstat.h>
#include <linux/wait_bit.h>

#include "core.h"
#include "group.h"

/* No group, and a choice all the same. Never freed, has no members. */
static struct cf_group cf_each_mapping = {
	.kind = PR_FPR_CONTEXT_MAPPING,
	.users = 1,
};

/*
 * May the current process be a member? What it is allowed has to be the same:
 * who is allowed less must not see what the others map, and the other way round.
 */
static bool cf_group_admits(struct cf_group *group)
{
	const struct cred *now = current_real_cred(), *then = group->cred;
	u32 secid;

	CF_MUTATION(fpr_admit_any, return true);
	security_current_getsecid_subj(&secid);
	return secid == group->secid && now->user_ns == then->user_ns &&
	       uid_eq(now->euid, then->euid) && gid_eq(now->egid, then->egid) &&
	       !cred_fscmp(now, then) &&
	       now->cap_effective.val == then->cap_effective.val &&
	       now->cap_permitted.val == then->cap_permitted.val;
}

/* The choice of a process, which cf_group_put() has to follow; or NULL. */
static struct cf_group *cf_group_get(struct mm_struct *mm)
{
	struct cf_group *group;

	spin_lock(&cf_group_lock);
	group = mm->cf_group;
	if (group)
		group->users++;
	spin_unlock(&cf_group_lock);
	return group;
}

/* The same for a group that it is not in yet. mmap_lock held for writing. */
static struct cf_group *cf_group_to_join(struct cf_ctx *ctx)
{
	struct cf_group *group = cf_group_get(ctx->mm);

	if (group && (group == &cf_each_mapping || READ_ONCE(ctx->member))) {
		cf_group_put(group);
		return NULL;
	}
	return group;
}

/* Join with a member of our own; it is freed if the choice has changed. */
static void cf_group_enter(struct cf_ctx *ctx, struct cf_group *group,
			   struct cf_member *member)
{
	bool chosen;

	member->mm = ctx->mm;
	cf_group_list(group, member);
	spin_lock(&cf_group_lock);
	chosen = ctx->mm->cf_group == group;
	if (chosen) {
		WRITE_ONCE(ctx->member, member);
		WRITE_ONCE(ctx->group, &group->ctx);
	}
	spin_unlock(&cf_group_lock);
	if (!chosen)
		cf_group_unlist(group, member);
}

/* Until the leaves of a process are over, whichever thread has begun them. */
static void cf_group_wait(struct mm_struct *mm)
{
	struct cf_ctx *ctx = READ_ONCE(mm->cf);

	CF_MUTATION(fpr_leave_early, return);
	if (ctx)
		wait_var_event(&ctx->leaving, !atomic_read(&ctx->leaving));
}

/* One member leaves, and what it has left must be gone. */
static void cf_group_flush_left(struct cf_group *group)
{
	CF_MUTATION(fpr_leave_unflushed, return);
	count_vm_event(FPR_LEAVE_FLUSH);
	cf_group_flush(&group->ctx);
}

/*
 * Make another choice, and leave the group of the last one, with all that this
 * takes; NULL for the default. Returns when what the process has left with any
 * group that it is not in any more is gone; false, and nothing is done, if it has
 * chosen a mechanism that knows no groups.
 */
static bool cf_group_change(struct mm_struct *mm, struct cf_group *next)
{
	struct cf_member *member = NULL;
	struct cf_group *group;
	struct cf_ctx *ctx;

	spin_lock(&cf_group_lock);
	if (next && mm->cf_policy) {
		spin_unlock(&cf_group_lock);
		return false;
	}
	group = mm->cf_group;
	WRITE_ONCE(mm->cf_group, next);
	/* The mapping that makes the context now looks at the choice later. */
	ctx = READ_ONCE(mm->cf);
	if (ctx && ctx->member) {
		member = ctx->member;
		WRITE_ONCE(ctx->member, NULL);
		atomic_inc(&ctx->leaving);
		cf_owe(ctx, cf_started(ctx));
		/* Owed before it is out; pairs with cf_owes_skips(). */
		smp_store_release(&ctx->group, NULL);
	}
	spin_unlock(&cf_group_lock);

	if (member) {
		synchronize_rcu();
		cf_group_flush_left(group);
		cf_group_unlist(group, member);
		if (atomic_dec_and_test(&ctx->leaving))
			wake_up_var(&ctx->leaving);
	}
	if (group)
		cf_group_put(group);
	cf_group_wait(mm);
	return true;
}

/* A choice that the process cannot have; it may have made another one since. */
static void cf_group_refuse(struct mm_struct *mm, struct cf_group *group)
{
	bool chosen;

	spin_lock(&cf_group_lock);
	chosen = mm->cf_group == group;
	if (chosen)
		WRITE_ONCE(mm->cf_group, NULL);
	spin_unlock(&cf_group_lock);
	if (chosen)
		cf_group_put(group);
}

/**
 * cf_group_join() - a process that has chosen a group becomes a member
 * @ctx: its context, of the current process
 *
 * If it may: else, or without memory, it has chosen nothing from now on.
 *
 * Context: mmap_lock held for writing.
 */
void cf_group_join(struct cf_ctx *ctx)
{
	struct cf_group *group = cf_group_to_join(ctx);
	struct cf_member *member = NULL;

	if (!group)
		return;
	if (cf_group_admits(group))
		member = kmalloc(sizeof(*member), GFP_KERNEL_ACCOUNT);
	if (member)
		cf_group_enter(ctx, group, member);
	else
		cf_group_refuse(ctx->mm, group);
	cf_group_put(group);
}

/**
 * __cf_group_exit() - forget the choice of a process that has ended
 * @mm: the process
 */
void __cf_group_exit(struct mm_struct *mm)
{
	cf_group_put(mm->cf_group);
	mm->cf_group = NULL;
}

/**
 * __cf_exec_failed() - forget the choice of a process that never begins
 * @mm: its address space, which has nothing that exit_mmap() is for
 */
void __cf_exec_failed(struct mm_struct *mm)
{
	CF_MUTATION(fpr_exec_kept, return);
	__cf_group_exit(mm);
}

/**
 * __cf_group_inherit() - a new address space makes the choice of the current one
 * @mm: the new one
 */
void __cf_group_inherit(struct mm_struct *mm)
{
	spin_lock(&cf_group_lock);
	mm->cf_group = current->mm->cf_group;
	/* Another thread may have exchanged one for the other since. */
	if (mm->cf_group) {
		mm->cf_group->users++;
		mm->cf_policy = NULL;
	}
	spin_unlock(&cf_group_lock);
}

/**
 * cf_group_kind() - what the current process has chosen
 *
 * Return: PR_FPR_CONTEXT_*; the default where it may not join what it has chosen.
 */
unsigned int cf_group_kind(void)
{
	struct cf_group *group = cf_group_get(current->mm);
	unsigned int kind = PR_FPR_CONTEXT_PROCESS;

	if (!group)
		return kind;
	if (group == &cf_each_mapping || cf_group_admits(group))
		kind = group->kind;
	cf_group_put(group);
	return kind;
}

/**
 * cf_is_mapping_only() - does a process recycle within each mapping only?
 * @mm: the process
 *
 * Return: true if it has chosen so.
 */
bool cf_is_mapping_only(struct mm_struct *mm)
{
	return READ_ONCE(mm->cf_group) == &cf_each_mapping;
}

/* A new group for the current process, which becomes its first member. */
static int cf_group_found(unsigned int kind)
{
	struct cf_group *group = cf_group_alloc(kind);
	struct cf_member *member;
	struct mm_struct *mm = current->mm;

	if (!group)
		return -ENOMEM;
	/* Before the last choice is given up. */
	member = kmalloc(sizeof(*member), GFP_KERNEL_ACCOUNT);
	if (!member) {
		cf_group_put(group);
		return -ENOMEM;
	}
	if (!cf_group_change(mm, group)) {
		kfree(member);
		cf_group_put(group);
		return -EINVAL;
	}
	if (mmap_write_lock_killable(mm)) {
		kfree(member);
		return -EINTR;
	}
	group = mm->cf ? cf_group_to_join(mm->cf) : NULL;
	if (group) {
		cf_group_enter(mm->cf, group, member);
		cf_group_put(group);
	} else {
		kfree(member);
	}
	mmap_write_unlock(mm);
	return 0;
}

/**
 * cf_group_choose() - choose the context of the current process
 * @kind: PR_FPR_CONTEXT_*
 *
 * Return: 0, -EINVAL: no such kind, or the process has chosen a mechanism that
 * knows no groups, -ENOMEM, -EINTR.
 */
int cf_group_choose(unsigned long kind)
{
	switch (kind) {
	case PR_FPR_CONTEXT_PROCESS:
		cf_group_change(current->mm, NULL);
		return 0;
	case PR_FPR_CONTEXT_MAPPING:
		spin_lock(&cf_group_lock);
		cf_each_mapping.users++;
		spin_unlock(&cf_group_lock);
		if (cf_group_change(current->mm, &cf_each_mapping))
			return 0;
		cf_group_put(&cf_each_mapping);
		return -EINVAL;
	case PR_FPR_CONTEXT_CHILDREN:
		return cf_group_found(kind);
	default:
		return -EINVAL;
	}
}

/**
 * cf_group_leave() - a process trusts nobody any more
 * @mm: the process
 *
 * Context: may sleep and sends IPIs.
 */
void cf_group_leave(struct mm_struct *mm)
{
	CF_MUTATION(fpr_creds_ignored, return);
	if (cf_is_mapping_only(mm))
		cf_group_wait(mm);
	else
		cf_group_change(mm, NULL);
}

/**
 * __cf_creds_changed() - a thread has other credentials from now on
 * @mm: its process
 *
 * Called by commit_creds() before they take effect. In execve() the new address
 * space has no context yet, and looks at them when it gets one.
 */
void __cf_creds_changed(struct mm_struct *mm)
{
	if (!current->in_execve || READ_ONCE(mm->cf))
		cf_group_leave(mm);
}
