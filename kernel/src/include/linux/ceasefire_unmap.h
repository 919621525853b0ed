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
	if (cf_on() && unlikely(vma->vm_mm->cf))
		__cf_clamp(vma, floor, ceiling);
}

/* flush_tlb_mm_range(): debug builds can stretch the time in between. */
static inline void cf_flush_started(struct mm_struct *mm)
{
	if (IS_ENABLED(CONFIG_CEASEFIRE_DEBUG) && cf_on())
		__cf_flush_started(mm);
}

/* flush_tlb_mm_range(): all CPUs have flushed for generation @gen. */
static inline void cf_flush_completed(struct mm_struct *mm, u64 gen, bool full)
{
	if (cf_on() && unlikely(READ_ONCE(mm->cf)))
		__cf_flush_completed(mm, gen, full);
}

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
static inline void cf_flush_completed(struct mm_struct *mm, u64 gen,
				      bool full) { }

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
