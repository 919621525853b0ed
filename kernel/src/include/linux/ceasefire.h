/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Hooks of ceasefire in the rest of the kernel, a header for each subject.
 *
 * Every hook is one call from the hooked function to an inline, which tests a
 * flag and calls the double-underscore function in mm/ceasefire/: cf_* in its
 * core, fpr_* in fast page recycling. The flag is off while no process uses any of
 * it, and all hooks vanish with CONFIG_CEASEFIRE_CORE=n.
 * Documentation/mm/ceasefire/design.rst has the invariants (I1..I12) that comments
 * refer to.
 *
 * Hooks that need struct mmu_gather are in ceasefire_gather.h.
 */
#ifndef _LINUX_CEASEFIRE_H
#define _LINUX_CEASEFIRE_H

#include <linux/ceasefire_abis.h>
#include <linux/ceasefire_exit.h>
#include <linux/ceasefire_free.h>
#include <linux/ceasefire_morsel.h>
#include <linux/ceasefire_place.h>
#include <linux/ceasefire_reclaim.h>
#include <linux/ceasefire_recycle.h>
#include <linux/ceasefire_rights.h>
#include <linux/ceasefire_sharers.h>
#include <linux/ceasefire_unmap.h>

/* sched_tick(), interrupts off */
static inline void ceasefire_tick(void)
{
	cf_tick();
	sharers_tick();
}

/* copy_mm(): one more thread is made that runs in @mm, or a child by vfork() */
static inline void ceasefire_thread(struct mm_struct *mm, bool vfork)
{
	sharers_thread(mm, vfork);
	abis_thread(mm, vfork);
}

#endif /* _LINUX_CEASEFIRE_H */
