/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Hooks of ceasefire in struct mmu_gather; included by asm-generic/tlb.h after
 * the structure. @fpr says that the gather belongs to the munmap() of eligible
 * mappings (set in one place, __fpr_munmap_begin(): I5), @fpr_unsafe that it
 * has cleared an entry which must not outlive the munmap(), and why.
 */
#ifndef _LINUX_CEASEFIRE_GATHER_H
#define _LINUX_CEASEFIRE_GATHER_H

#include <linux/ceasefire.h>

/* Why a cleared entry must be flushed. */
enum fpr_unsafe {
	FPR_SAFE,
	FPR_UNSAFE_DIRTY,	/* a dirty entry writes without a walk (I2) */
	FPR_UNSAFE_ANON,	/* the page may live on in another process */
	FPR_UNSAFE_SPECIAL,	/* no page of ours */
};

#ifdef CONFIG_CEASEFIRE_FPR

void __fpr_munmap_begin(struct mmu_gather *tlb, struct vma_munmap_struct *vms,
			struct ma_state *mas_detach);
bool __fpr_munmap_keep_tables(struct vma_munmap_struct *vms,
			      struct ma_state *mas_detach);
bool __fpr_skip_flush(struct mmu_gather *tlb);
void __fpr_gather_anon(struct mmu_gather *tlb, struct page *page,
		       unsigned int nr);

static inline void fpr_gather_init(struct mmu_gather *tlb)
{
	tlb->fpr = 0;
	tlb->fpr_unsafe = FPR_SAFE;
}

/* vms_clear_ptes(): may this gather skip its flush? */
static inline void fpr_munmap_begin(struct mmu_gather *tlb,
				    struct vma_munmap_struct *vms,
				    struct ma_state *mas_detach)
{
	if (fpr_on())
		__fpr_munmap_begin(tlb, vms, mas_detach);
}

/* vms_clear_ptes(): true if the tables stay for a later drain (I4). */
static inline bool fpr_munmap_keep_tables(struct mmu_gather *tlb,
					  struct vma_munmap_struct *vms,
					  struct ma_state *mas_detach)
{
	return fpr_on() && unlikely(tlb->mm->fpr) &&
	       __fpr_munmap_keep_tables(vms, mas_detach);
}

/* zap_present_ptes(): cheap enough to be done for every gather. */
static inline void fpr_gather_unsafe(struct mmu_gather *tlb, enum fpr_unsafe why)
{
	tlb->fpr_unsafe = why;
}

/* The same for anonymous pages: those of one process may stay reachable. */
static inline void fpr_gather_anon(struct mmu_gather *tlb, struct page *page,
				   unsigned int nr)
{
	if (unlikely(tlb->fpr))
		__fpr_gather_anon(tlb, page, nr);
}

/* No page; but the page of zeroes nobody frees or writes. */
static inline void fpr_gather_special(struct mmu_gather *tlb, pte_t pte)
{
	if (!is_zero_pfn(pte_pfn(pte)))
		fpr_gather_unsafe(tlb, FPR_UNSAFE_SPECIAL);
}

/* tlb_flush_mmu_tlbonly(): true if the flush is not needed now. */
static inline bool fpr_skip_flush(struct mmu_gather *tlb)
{
	return fpr_on() &&
	       (unlikely(tlb->fpr) || IS_ENABLED(CONFIG_CEASEFIRE_DEBUG)) &&
	       __fpr_skip_flush(tlb);
}

#else

static inline void fpr_gather_init(struct mmu_gather *tlb) { }
static inline void fpr_munmap_begin(struct mmu_gather *tlb,
				    struct vma_munmap_struct *vms,
				    struct ma_state *mas_detach) { }
static inline bool fpr_munmap_keep_tables(struct mmu_gather *tlb,
					  struct vma_munmap_struct *vms,
					  struct ma_state *mas_detach)
{
	return false;
}

static inline void fpr_gather_unsafe(struct mmu_gather *tlb,
				     enum fpr_unsafe why) { }
static inline void fpr_gather_anon(struct mmu_gather *tlb, struct page *page,
				   unsigned int nr) { }
/* A macro: the compiler would look at the entry, and change code around it. */
#define fpr_gather_special(tlb, pte) ((void)0)
static inline bool fpr_skip_flush(struct mmu_gather *tlb)
{
	return false;
}

#endif /* CONFIG_CEASEFIRE_FPR */

#endif /* _LINUX_CEASEFIRE_GATHER_H */
