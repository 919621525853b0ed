/* SPDX-License-Identifier: GPL-2.0 */
/*
 * ABIS, access-bit invalidation: only CPUs that can have an entry are asked to drop
 * it, by what the entry itself says, at once and whatever it is changed for. Nothing
 * stale is left, so nothing is owed but for bits that are cleared (../core/young.c).
 *
 *   uncached.c	entries that no CPU has
 *   policy.c	whether that may be believed: by root's choice, and for which mappings
 *   prctl.c	what processes ask for
 */
#ifndef _MM_CEASEFIRE_ABIS_H
#define _MM_CEASEFIRE_ABIS_H

#include <linux/ceasefire.h>

#include "../core/core.h"

/* Who may have it: /sys/kernel/mm/ceasefire/abis/enabled. */
enum abis_enabled {
	ABIS_NEVER,
	ABIS_ASK,
	ABIS_ALWAYS,
};

/* What entries can tell: /sys/kernel/mm/ceasefire/abis/sources; a bit each. */
enum abis_source {
	ABIS_SOURCE_UNCACHED,
	ABIS_SOURCE_NR,
};

/* Knobs, see ../sysfs.c. */
extern enum abis_enabled abis_enabled;
extern unsigned long abis_sources;
extern const char * const abis_source_names[ABIS_SOURCE_NR];

/* Why CPUs may have an entry, beside those of the core (enum cf_cached). */
#define ABIS_IS_SPECIAL		(CF_CACHED_VENDOR + 1)
#define ABIS_IS_LOCKED		(CF_CACHED_VENDOR + 2)

/* policy.c */
bool abis_is_possible(void);
bool abis_source_on(enum abis_source source);
bool abis_is_plain(struct vm_area_struct *vma, pte_t pte);

#endif /* _MM_CEASEFIRE_ABIS_H */
