/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Hooks of ceasefire where accessed bits are cleared, and where pages are evicted
 * that are mapped (I3).
 */
#ifndef _LINUX_CEASEFIRE_RECLAIM_H
#define _LINUX_CEASEFIRE_RECLAIM_H

#include <linux/ceasefire_abis.h>
#include <linux/ceasefire_core.h>

struct folio;

#ifdef CONFIG_CEASEFIRE_CORE

void __cf_young_cleared(struct vm_area_struct *vma, pte_t pte);
pte_t cf_rewritten(pte_t pte);
bool __cf_cold(struct vm_area_struct *vma);

/* Is it noted whose accessed bits are cleared? */
static inline bool cf_tracks(struct vm_area_struct *vma)
{
	return unlikely(vma->vm_flags & VM_FPR ||
			READ_ONCE(vma->vm_mm->cf_policy) ||
			abis_on(vma->vm_mm));
}

/* ptep_test_and_clear_young(): CPUs may have the entry until they are flushed. */
static inline void cf_young_cleared(struct vm_area_struct *vma, pte_t pte)
{
	if (cf_on() && cf_tracks(vma))
		__cf_young_cleared(vma, pte);
}

/* madvise(MADV_COLD): true if that was noted, so that nobody has to be flushed. */
static inline bool cf_cold(struct vm_area_struct *vma)
{
	return cf_on() && cf_tracks(vma) && __cf_cold(vma);
}

#else

static inline void cf_young_cleared(struct vm_area_struct *vma, pte_t pte) { }

static inline pte_t cf_rewritten(pte_t pte)
{
	return pte;
}

static inline bool cf_cold(struct vm_area_struct *vma)
{
	return false;
}

#endif /* CONFIG_CEASEFIRE_CORE */

#ifdef CONFIG_CEASEFIRE_FPR

bool __fpr_evicted(struct vm_area_struct *vma, pte_t pte);
bool __fpr_evict_later(struct folio *folio, int priority);
bool __fpr_looks_at(struct vm_area_struct *vma);
bool __fpr_only_clears(struct vm_area_struct *vma, unsigned long address,
		       pte_t *pte);
bool __fpr_evict_waits(struct folio *folio);

/* Is a mechanism chosen that evicts without a flush? */
static inline bool fpr_tracks(struct vm_area_struct *vma)
{
	return unlikely(vma->vm_flags & VM_FPR ||
			READ_ONCE(vma->vm_mm->cf_policy));
}

/* try_to_unmap_one(): true if no CPU has an entry that was just cleared (I3). */
static inline bool fpr_evicted(struct vm_area_struct *vma, pte_t pte)
{
	return cf_on() && fpr_tracks(vma) &&
	       __fpr_evicted(vma, pte);
}

/* folio_check_references(): true if a folio can be evicted better later. */
static inline bool fpr_evict_later(struct folio *folio, int priority)
{
	return cf_on() && __fpr_evict_later(folio, priority);
}

/* evict_folios(): true if a rejected folio is none the younger for it. */
static inline bool fpr_evict_waits(struct folio *folio)
{
	return cf_on() && __fpr_evict_waits(folio);
}

/* invalid_folio_referenced_vma(): with the bit set a page needs a flush. */
static inline bool fpr_looks_at(struct vm_area_struct *vma)
{
	return cf_on() && cf_tracks(vma) &&
	       __fpr_looks_at(vma);
}

/* folio_referenced_one(): true if the use of a page does not count. */
static inline bool fpr_only_clears(struct vm_area_struct *vma,
				   unsigned long address, pte_t *pte)
{
	return cf_on() && pte && cf_tracks(vma) &&
	       __fpr_only_clears(vma, address, pte);
}

#else

static inline bool fpr_evicted(struct vm_area_struct *vma, pte_t pte)
{
	return false;
}

static inline bool fpr_evict_later(struct folio *folio, int priority)
{
	return false;
}

static inline bool fpr_evict_waits(struct folio *folio)
{
	return false;
}

static inline bool fpr_looks_at(struct vm_area_struct *vma)
{
	return false;
}

/* A macro: the compiler would look at the entry, and change code around it. */
#define fpr_only_clears(vma, address, pte)	false

#endif /* CONFIG_CEASEFIRE_FPR */

#endif /* _LINUX_CEASEFIRE_RECLAIM_H */
