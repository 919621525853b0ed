/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Hooks of ceasefire in struct mmu_gather; included by asm-generic/tlb.h after
 * the structure. @cf_marked says that the gather belongs to the munmap() of
 * eligible mappings (mm/ceasefire/core/munmap.c: I5), @cf_unsafe that it has
 * cleared an entry which must not outlive the munmap(), and why.
 */
#ifndef _LINUX_CEASEFIRE_GATHER_H
#define _LINUX_CEASEFIRE_GATHER_H

#include <linux/ceasefire.h>

/* Why a cleared entry must be flushed. */
enum cf_unsafe {
	CF_SAFE,
	CF_UNSAFE_DIRTY,	/* a dirty entry writes without a walk (I2) */
	CF_UNSAFE_ANON,		/* the page may live on in another process */
	CF_UNSAFE_SPECIAL,	/* no page of ours */
};

#ifdef CONFIG_CEASEFIRE_CORE

void __cf_munmap_begin(struct mmu_gather *tlb, struct vma_munmap_struct *vms,
		       struct ma_state *mas_detach);
bool __cf_munmap_keep_tables(struct vma_munmap_struct *vms,
			     struct ma_state *mas_detach);
bool __cf_skip_flush(struct mmu_gather *tlb);
void __cf_hold_pages(struct mmu_gather *tlb);
void __cf_gather_anon(struct mmu_gather *tlb, struct page *page,
		      unsigned int nr);

static inline void cf_gather_init(struct mmu_gather *tlb)
{
	tlb->cf_marked = 0;
	tlb->cf_unsafe = CF_SAFE;
#ifdef CONFIG_CEASEFIRE_GATHERS
	tlb->cf_listed = 0;
	tlb->whole_end = 0;
#endif
#ifdef CONFIG_CEASEFIRE_ABIS
	tlb->abis_left = 0;
	tlb->abis_classes = 0;
#endif
}

/* vms_clear_ptes(): may this gather skip its flush? */
static inline void cf_munmap_begin(struct mmu_gather *tlb,
				   struct vma_munmap_struct *vms,
				   struct ma_state *mas_detach)
{
	if (cf_on())
		__cf_munmap_begin(tlb, vms, mas_detach);
}

/*
 * vms_clear_ptes(): true if the tables stay for a later drain (I4). A macro: the structure
 * is not known.
 */
#define cf_munmap_keep_tables(vms, mas_detach) \
	(unlikely((vms)->cf_keep) && __cf_munmap_keep_tables(vms, mas_detach))

/* zap_present_ptes(): cheap enough to be done for every gather. */
static inline void cf_gather_unsafe(struct mmu_gather *tlb, enum cf_unsafe why)
{
	tlb->cf_unsafe = why;
}

/* The same for anonymous pages: those of one process may stay reachable. */
static inline void cf_gather_anon(struct mmu_gather *tlb, struct page *page,
				  unsigned int nr)
{
	if (unlikely(tlb->cf_marked))
		__cf_gather_anon(tlb, page, nr);
}

/* zap_huge_pmd(): the same for the page of a huge entry. */
static inline void cf_gather_huge(struct mmu_gather *tlb, struct page *page,
				  pmd_t pmd)
{
	if (PageAnon(page))
		cf_gather_anon(tlb, page, 1);
	else if (pmd_dirty(pmd))
		cf_gather_unsafe(tlb, CF_UNSAFE_DIRTY);
}

/* No page; but the page of zeroes nobody frees or writes. */
static inline void cf_gather_special(struct mmu_gather *tlb, pte_t pte)
{
	if (!is_zero_pfn(pte_pfn(pte)))
		cf_gather_unsafe(tlb, CF_UNSAFE_SPECIAL);
}

/* As without the hook: else the compiler saves registers for what is rarely done. */
#define cf_hooked	__always_inline

/* tlb_flush_mmu_free(): what has to wait anyhow need not be freed yet. */
static inline void cf_hold_pages(struct mmu_gather *tlb)
{
	if (unlikely(tlb->cf_marked))
		__cf_hold_pages(tlb);
}

#else

static inline void cf_gather_init(struct mmu_gather *tlb) { }
static inline void cf_munmap_begin(struct mmu_gather *tlb,
				   struct vma_munmap_struct *vms,
				   struct ma_state *mas_detach) { }
#define cf_munmap_keep_tables(vms, mas_detach) false

static inline void cf_gather_unsafe(struct mmu_gather *tlb,
				    enum cf_unsafe why) { }
static inline void cf_gather_anon(struct mmu_gather *tlb, struct page *page,
				  unsigned int nr) { }
/* Macros: the compiler would look at the entry, and change code around it. */
#define cf_gather_huge(tlb, page, pmd) ((void)0)
#define cf_gather_special(tlb, pte) ((void)0)
#define cf_hooked
static inline void cf_hold_pages(struct mmu_gather *tlb) { }

#endif /* CONFIG_CEASEFIRE_CORE */

#ifdef CONFIG_CEASEFIRE_GATHERS

void __cf_gather_begins(struct mmu_gather *tlb, unsigned long start,
			unsigned long end, bool listed);
void __cf_gather_ends(struct mmu_gather *tlb);
bool __cf_gather_meets(struct mmu_gather *tlb);

/*
 * The call that a gather is for is about this range, and no more. Before it changes an
 * entry; who has ABIS wants to know whom it meets (mm/ceasefire/core/gathers.c), who has
 * sharers what to flush for where they do.
 */
static inline void cf_gather_whole(struct mmu_gather *tlb, unsigned long start,
				   unsigned long end)
{
	/* One jump for both. */
	if (unlikely((int)sharers_on(tlb->mm) | (int)abis_on(tlb->mm)))
		__cf_gather_begins(tlb, start, end, abis_on(tlb->mm));
}

/* tlb_finish_mmu(): it has flushed, and counts among the gathers still. */
static inline void cf_gather_ends(struct mmu_gather *tlb)
{
	if (unlikely(tlb->cf_listed))
		__cf_gather_ends(tlb);
}

/* Nobody else clears entries where this one does. */
static inline bool cf_gather_alone(struct mmu_gather *tlb)
{
	return unlikely(tlb->cf_listed) && !tlb->fullmm && !tlb->cf_marked &&
	       !__cf_gather_meets(tlb);
}

#else

#define cf_gather_whole(tlb, start, end) ((void)0)
#define cf_gather_ends(tlb) ((void)0)
#define cf_gather_alone(tlb) false

#endif /* CONFIG_CEASEFIRE_GATHERS */

#ifdef CONFIG_CEASEFIRE_SHARERS

/*
 * With copies of tables: all of the range of the call is flushed for, and what is outside
 * of it is nobody's concern. Smallest steps, since it is not known what was there.
 */
static inline bool sharers_gather_nested(struct mmu_gather *tlb)
{
	if (likely(!tlb->mm->context.sharers) || !tlb->whole_end ||
	    tlb->fullmm || tlb->cf_marked)
		return false;
	tlb->start = min(tlb->start, tlb->whole_start);
	tlb->end = max(tlb->end, tlb->whole_end);
	tlb->cleared_ptes = 1;
	return true;
}

#else

#define sharers_gather_nested(tlb) false

#endif /* CONFIG_CEASEFIRE_SHARERS */

/*
 * tlb_finish_mmu(): another gather of the process is under way. What it has cleared
 * in the range of this call, and has not flushed for yet, this one has found empty,
 * and must flush for, too. Unless they do not meet: then there is nothing of the kind.
 *
 * One that may skip its flush does not skip this one (I5).
 *
 * Return: false if everything has to be flushed, as ever.
 */
static inline bool cf_gather_nested(struct mmu_gather *tlb)
{
	return cf_gather_alone(tlb) || sharers_gather_nested(tlb);
}

#ifdef CONFIG_CEASEFIRE_ABIS

bool __abis_gather_uncached(struct mmu_gather *tlb, struct vm_area_struct *vma,
			    unsigned long addr, pte_t pte, unsigned int nr);
bool __abis_protect_uncached(struct mmu_gather *tlb, struct vm_area_struct *vma,
			     unsigned long addr, pte_t pte);
void __abis_gather_flush(struct mmu_gather *tlb);

/*
 * zap_present_folio_ptes(): as get_and_clear_full_ptes(), but that both bits of use are
 * collected, each for itself.
 */
static inline pte_t abis_clear_ptes(struct mm_struct *mm, unsigned long addr,
				    pte_t *ptep, unsigned int nr, int full)
{
	pte_t pte = ptep_get_and_clear_full(mm, addr, ptep, full), other;

	while (--nr) {
		ptep++;
		addr += PAGE_SIZE;
		other = ptep_get_and_clear_full(mm, addr, ptep, full);
		if (pte_dirty(other))
			pte = pte_mkdirty(pte);
		pte = abis_merge_use(pte, other);
	}
	return pte;
}

/* The entries that were just cleared are in no TLB: nothing to be flushed for them. */
static inline bool abis_gather_uncached(struct mmu_gather *tlb,
					struct vm_area_struct *vma,
					unsigned long addr, pte_t pte,
					unsigned int nr)
{
	return abis_on(tlb->mm) &&
	       __abis_gather_uncached(tlb, vma, addr, pte, nr);
}

/* change_pte_range(): the same for an entry that gets other rights. */
static inline bool abis_protect_uncached(struct mmu_gather *tlb,
					 struct vm_area_struct *vma,
					 unsigned long addr, pte_t pte)
{
	return abis_on(tlb->mm) &&
	       __abis_protect_uncached(tlb, vma, addr, pte);
}

/*
 * What a gather has left out, and how many flush, matters before it looks whether there is
 * anything to flush. Also if the process does not want it any more since entries were left
 * out. Those that are not on the list, and have left nothing out, are not counted.
 */
static inline bool abis_gather_counts(const struct mmu_gather *tlb)
{
	return tlb->cf_listed || tlb->abis_left;
}

/* The same where the entry, @pte, is nobody's concern otherwise. */
#define abis_clear_anon_ptes(pte, mm, addr, ptep, nr, full) \
	abis_clear_ptes(mm, addr, ptep, nr, full)

#else

#define abis_clear_ptes get_and_clear_full_ptes
#define abis_clear_anon_ptes(pte, mm, addr, ptep, nr, full) \
	(clear_full_ptes(mm, addr, ptep, nr, full), pte)
#define abis_gather_uncached(tlb, vma, addr, pte, nr) false
#define abis_protect_uncached(tlb, vma, addr, pte) false
#define abis_gather_counts(tlb) false
#define __abis_gather_flush(tlb) ((void)0)

#endif /* CONFIG_CEASEFIRE_ABIS */

#ifdef CONFIG_CEASEFIRE_CORE

/* Was anything cleared since the last flush? As tlb_flush_mmu_tlbonly() asks. */
static inline bool cf_gather_flushes(const struct mmu_gather *tlb)
{
	return tlb->freed_tables || tlb->cleared_ptes || tlb->cleared_pmds ||
	       tlb->cleared_puds || tlb->cleared_p4ds || tlb->unshared_tables;
}

/*
 * tlb_flush_mmu_tlbonly(), before it looks at the gather: true if it needs no flush now. One
 * test for all who have something to say, since hardly anybody has.
 */
static inline bool cf_skip_flush(struct mmu_gather *tlb)
{
	if (likely(!(tlb->cf_marked || abis_gather_counts(tlb))) &&
	    !(IS_ENABLED(CONFIG_CEASEFIRE_DEBUG) && cf_on()))
		return false;
	if (abis_gather_counts(tlb))
		__abis_gather_flush(tlb);
	return cf_gather_flushes(tlb) && __cf_skip_flush(tlb);
}

#else

#define cf_skip_flush(tlb) false

#endif /* CONFIG_CEASEFIRE_CORE */

#endif /* _LINUX_CEASEFIRE_GATHER_H */
