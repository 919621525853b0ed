/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Fast page recycling: munmap() and reclaim leave flushes out while frames stay
 * with those who had them. The core (../core) keeps the frames and pays.
 *
 *   policy.c	which mappings can skip a flush
 *   mmap.c	a short way for mmap() of small files
 *   munmap.c	a short way for munmap() inside the quarantine
 *   recycle.c	parked frames that faults of the same context use again
 *   rights.c	what is in a frame that stale translations reach
 *   evict.c	reclaim of pages that are mapped
 *   prctl.c	what whole processes ask for
 */
#ifndef _MM_CEASEFIRE_FPR_H
#define _MM_CEASEFIRE_FPR_H

#include <linux/ceasefire.h>

#include "../core/core.h"

/* Knobs, see ../sysfs.c. */
extern bool fpr_enabled;

/* Debug builds: processes with fpr_auto get it for all that they map. */
#ifdef CONFIG_CEASEFIRE_DEBUG
extern bool fpr_force;
#else
#define fpr_force	false
#endif

/* policy.c */
extern const struct cf_policy fpr_policy;
bool fpr_vma_eligible(struct vm_area_struct *vma);

/* mmap.c */
bool fpr_vma_keep(struct cf_ctx *ctx, struct vm_area_struct *vma);

#endif /* _MM_CEASEFIRE_FPR_H */
