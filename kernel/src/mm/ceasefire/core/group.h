/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The life of a group; for group.c and choice.c.
 */
#ifndef _MM_CEASEFIRE_GROUP_H
#define _MM_CEASEFIRE_GROUP_H

#include <linux/spinlock.h>

#include "members.h"

/* What processes have chosen, and what they are members of. */
extern spinlock_t cf_group_lock;

struct cf_group *cf_group_alloc(unsigned int kind);
void cf_group_put(struct cf_group *group);
void cf_group_unlist(struct cf_group *group, struct cf_member *member);

#endif /* _MM_CEASEFIRE_GROUP_H */
