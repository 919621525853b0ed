/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Hooks of ceasefire where memory is unmapped and flushed: what is left out, and what
 * is credited (I4, I5). Those that need struct mmu_gather are in ceasefire_gather.h.
 */
#ifndef _LINUX_CEASEFIRE_UNMAP_H
#define _LINUX_CEASEFIRE_UNMAP_H

#include <linux/ceasefire_core.h>

struct ma_state;
struct vma_munmap_struct;

#ifdef CONFIG_CEASEFIRE_CORE

void __cf_clamp(struct vm_area_struct *vma, unsigned long *floor,
		unsigned long *ceiling);
void __cf_munmap_prepare(struct vma_munmap_struct *vms);
void __cf_tick(void);
void __cf_flush_started(struct mm_struct *mm);
void __cf_flush_completed(struct mm_struct *mm, u64 gen, bool full);

/* free_pgtables(): keep away from left-over tables of the quarantine (I4). */
static inline void cf_clamp(struct vm_area_struct *vma, unsigned long *floor,
			    unsigned long *ceiling)
{
	if (cf_on() && unlikely(vma->vm_mm->cf)) {
		/* By address only here: all others keep them in registers. */
		unsigned long low = *floor, high = *ceiling;

		__cf_clamp(vma, &low, &high);
		*floor = low;
		*ceiling = high;
	}
}

/* flush_tlb_mm_cpus(): debug builds can stretch the time in between. */
static inline void cf_flush_started(struct mm_struct *mm)
{
	if (IS_ENABLED(CONFIG_CEASEFIRE_DEBUG) && cf_on())
		__cf_flush_started(mm);
}

/*
 * flush_tlb_mm_cpus(): all CPUs have flushed as @info says, a struct flush_tlb_info, which
 * this CPU has until put_flush_tlb_info(). Only a whole one proves anything; a mutation
 * is interested in others. A macro: the structure is not known.
 */
#define cf_flush_completed(info)					\
do {									\
	if (cf_on() && ((info)->end == TLB_FLUSH_ALL ||			\
			IS_ENABLED(CONFIG_CEASEFIRE_DEBUG)) &&		\
	    (info)->mm->cf)						\
		__cf_flush_completed((info)->mm, (info)->new_tlb_gen,	\
				     (info)->end == TLB_FLUSH_ALL);	\
} while (0)

/* Pay debts that are only getting old. */
static inline void cf_tick(void)
{
	if (cf_on())
		__cf_tick();
}

#else

static inline void cf_clamp(struct vm_area_struct *vma, unsigned long *floor,
			    unsigned long *ceiling) { }
static inline void cf_tick(void) { }
static inline void cf_flush_started(struct mm_struct *mm) { }
#define cf_flush_completed(info) ((void)0)

#endif /* CONFIG_CEASEFIRE_CORE */

#ifdef CONFIG_CEASEFIRE_FPR

bool __fpr_munmap_single(struct vma_munmap_struct *vms);

/*
 * do_vmi_align_munmap(), mmap_lock held for writing: true if it is done, by the short
 * way for a single eligible mapping.
 */
static inline bool cf_munmap_prepare(struct mm_struct *mm,
				     struct vma_munmap_struct *vms)
{
	if (!cf_on() || likely(!mm->cf))
		return false;
	if (__fpr_munmap_single(vms))
		return true;
	__cf_munmap_prepare(vms);
	return false;
}

#else

static inline bool cf_munmap_prepare(struct mm_struct *mm,
				     struct vma_munmap_struct *vms)
{
	return false;
}

#endif /* CONFIG_CEASEFIRE_FPR */

#endif /* _LINUX_CEASEFIRE_UNMAP_H */
