/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What hooks of ceasefire have in common: a flag that is off while no process has a
 * context, the tags of frames, reasons of drains.
 */
#ifndef _LINUX_CEASEFIRE_CORE_H
#define _LINUX_CEASEFIRE_CORE_H

#include <linux/compiler.h>
#include <linux/mm_types.h>
#include <linux/sched.h>
#include <linux/types.h>

#include <uapi/linux/ceasefire.h>

/* What asked for a drain; same order as the FPR_DRAIN_* counters. */
enum cf_drain_reason {
	CF_BY_LIMIT,
	CF_BY_AGE,
	CF_BY_KSWAPD,
	CF_BY_SHRINKER,
	CF_BY_RECLAIM,
	CF_BY_OOM,
	CF_BY_ISOLATE,
	CF_BY_PCP,
	CF_BY_COMPACT,
	CF_BY_POISON,
	CF_BY_CGROUP,
	CF_BY_EXIT,
};

#ifdef CONFIG_CEASEFIRE_CORE

#include <linux/mm.h>

/* Some process has a recycling context; context.c has who may rely on it. */
extern bool __data_racy cf_used;

/* A plain read, which compares in memory: so are those of the fields of a process. */
static __always_inline bool cf_on(void)
{
	return unlikely(cf_used);
}

/* Tags by section of memory, see tags.c; NULL entries: none there. */
extern u64 **cf_tags;
extern unsigned long cf_sections;

/* Where the tag of a frame is; NULL if its section has none. RCU read side. */
static __always_inline u64 *cf_tag_slot(unsigned long pfn)
{
	unsigned long section = pfn_to_section_nr(pfn);
	u64 *tags;

	if (unlikely(section >= cf_sections))
		return NULL;
	tags = READ_ONCE(cf_tags[section]);
	return tags ? tags + (pfn & (PAGES_PER_SECTION - 1)) : NULL;
}

#endif /* CONFIG_CEASEFIRE_CORE */

#endif /* _LINUX_CEASEFIRE_CORE_H */
