/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What all hooks of ceasefire have in common: a flag that is off while no process
 * has a context.
 */
#ifndef _LINUX_CEASEFIRE_CORE_H
#define _LINUX_CEASEFIRE_CORE_H

#include <linux/compiler.h>
#include <linux/mm_types.h>
#include <linux/sched.h>
#include <linux/types.h>

#include <uapi/linux/ceasefire.h>

#ifdef CONFIG_CEASEFIRE_CORE

#include <linux/mm.h>

/* Some process has a recycling context; context.c has who may rely on it. */
extern bool cf_used;

static __always_inline bool cf_on(void)
{
	return unlikely(READ_ONCE(cf_used));
}

#endif /* CONFIG_CEASEFIRE_CORE */

#endif /* _LINUX_CEASEFIRE_CORE_H */
