/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Sharers: a flush goes to the CPUs that have used its range. What a process or root
 * may choose; arch/x86/mm/sharers/sharers.h has how it works.
 */
#ifndef _MM_CEASEFIRE_SHARERS_H
#define _MM_CEASEFIRE_SHARERS_H

#include <linux/ceasefire.h>

/* Who may have copies: /sys/kernel/mm/ceasefire/sharers/enabled. */
enum sharers_enabled {
	SHARERS_NEVER,
	SHARERS_ASK,
	SHARERS_ALWAYS,
};

extern enum sharers_enabled sharers_enabled;

/* place.c; /sys/kernel/mm/ceasefire/sharers/placement */
extern bool sharers_placement;

/* prctl.c */
void sharers_enable(enum sharers_enabled enabled);

/* arch/x86/mm/sharers/process.c */
bool sharers_is_stopped(struct mm_struct *mm);
bool sharers_may_have(struct mm_struct *mm);
bool sharers_have(struct mm_struct *mm);
void sharers_stop(struct mm_struct *mm);
void sharers_stop_all(void);

#endif /* _MM_CEASEFIRE_SHARERS_H */
