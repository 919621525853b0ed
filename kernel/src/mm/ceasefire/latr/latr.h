/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Lazy translation coherence: in a process that asks for it each munmap() leaves
 * other CPUs alone, and their ticks catch up within a time that is known (I9). The
 * core (../core) keeps addresses, tables and frames for so long, and pays.
 *
 *   policy.c	which mappings, and within which limits
 *   hint.c	NUMA hints
 *   prctl.c	what processes ask for
 */
#ifndef _MM_CEASEFIRE_LATR_H
#define _MM_CEASEFIRE_LATR_H

#include <linux/ceasefire.h>

#include "../core/core.h"

/* Who may be lazy: /sys/kernel/mm/ceasefire/latr/enabled. */
enum latr_enabled {
	LATR_NEVER,
	LATR_ASK,
	LATR_ALWAYS,
};

/* Knobs, see ../sysfs.c. */
extern enum latr_enabled latr_enabled;
extern unsigned int latr_settle_ms;
extern unsigned int latr_late_ms;
extern unsigned long latr_held_limit;

/* policy.c */
extern const struct cf_policy latr_policy;

#endif /* _MM_CEASEFIRE_LATR_H */
