/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What a group of processes is, and who is flushed with it; for members.c, group.c
 * and choice.c.
 */
#ifndef _MM_CEASEFIRE_MEMBERS_H
#define _MM_CEASEFIRE_MEMBERS_H

#include <linux/list.h>
#include <linux/mutex.h>

#include "core.h"

/**
 * struct cf_group - several processes that recycle together
 * @ctx:	the context; its mm is NULL
 * @kind:	PR_FPR_CONTEXT_*
 * @cred:	credentials of its members
 * @secid:	and their security label
 * @users:	processes that have chosen it, and joins under way, under
 *		cf_group_lock
 * @lock:	protects @members
 * @members:	list of struct cf_member
 */
struct cf_group {
	struct cf_ctx ctx;
	unsigned int kind;
	const struct cred *cred;
	u32 secid;
	unsigned long users;
	/* Protects the list of members. */
	struct mutex lock;
	struct list_head members;
};

/**
 * struct cf_member - that a process is flushed with a group
 * @link:	in cf_group.members
 * @mm:		the process; it is there as long as this is in the list
 */
struct cf_member {
	struct list_head link;
	struct mm_struct *mm;
};

static inline struct cf_group *cf_group_of(struct cf_ctx *ctx)
{
	return container_of(ctx, struct cf_group, ctx);
}

void cf_group_list(struct cf_group *group, struct cf_member *member);

#endif /* _MM_CEASEFIRE_MEMBERS_H */
