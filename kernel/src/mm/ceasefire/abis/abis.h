/* SPDX-License-Identifier: GPL-2.0 */
/*
 * ABIS, access-bit invalidation: only CPUs that can have an entry are asked to drop
 * it, by what the entry itself says, at once and whatever it is changed for. Nothing
 * stale is left, so nothing is owed but for bits that are cleared (../core/young.c).
 *
 *   uncached.c	entries that no CPU has, and what is flushed for others
 *   fork.c	the same for all entries of a process that makes a child
 *   insert.c	entries that only the CPU has that has asked for them
 *   again.c	those that are used again after a change
 *   classes.c	flushes for entries that name CPUs
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
	ABIS_SOURCE_INSERTED,
	ABIS_SOURCE_NR,
};

/* Knobs, see ../sysfs.c. */
extern enum abis_enabled abis_enabled;
extern unsigned long abis_sources;
extern const char * const abis_source_names[ABIS_SOURCE_NR];

/* Why CPUs may have an entry, beside those of the core (enum cf_cached). */
#define ABIS_IS_SPECIAL		(CF_CACHED_CLASS + 1)
#define ABIS_IS_LOCKED		(CF_CACHED_CLASS + 2)

/* policy.c */
bool abis_is_possible(void);
bool abis_source_on(enum abis_source source);
bool abis_is_plain(struct vm_area_struct *vma, pte_t pte);
bool abis_profits(struct vm_area_struct *vma, pte_t pte,
		  enum abis_source source);
pte_t abis_keep_use(pte_t pte);
pte_t abis_born(struct vm_area_struct *vma, pte_t pte, unsigned int nr);

/* Does the process have copies of its tables (sharers)? */
static inline bool abis_has_copies(struct mm_struct *mm)
{
#ifdef CONFIG_CEASEFIRE_SHARERS
	return READ_ONCE(mm->context.sharers);
#else
	return false;
#endif
}

#ifdef CONFIG_CEASEFIRE_ABIS
/* How many classes there are; debug builds may want fewer. */
static inline unsigned int abis_nr_classes(void)
{
#ifdef CONFIG_CEASEFIRE_DEBUG
	return clamp(READ_ONCE(abis_classes), 1U, (u32)ABIS_CLASSES);
#else
	return ABIS_CLASSES;
#endif
}

static inline unsigned int abis_class_of(unsigned int cpu)
{
	return cpu % abis_nr_classes() + 1;
}
#endif

/* classes.c */
void abis_gather_class(struct mmu_gather *tlb, unsigned long addr,
		       unsigned int nr, unsigned int class);
void abis_gather_flush_classes(struct mmu_gather *tlb, bool flushes);
void abis_flush_classes(struct mm_struct *mm, unsigned long start,
			unsigned long end, unsigned int classes);

/* uncached.c */
int abis_cached_alone(struct vm_area_struct *vma, unsigned long addr,
		      pte_t pte, bool listed);

/* insert.c */
int abis_insert_prepare(void);
bool abis_is_readable(struct vm_area_struct *vma);
bool abis_may_insert(struct vm_fault *vmf, pte_t pte);
bool abis_load(struct mm_struct *mm, unsigned long addr, pte_t pte);
void abis_insert(struct mm_struct *mm, unsigned long addr, pte_t *ptep,
		 pte_t pte);

#endif /* _MM_CEASEFIRE_ABIS_H */
