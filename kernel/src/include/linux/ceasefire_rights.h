/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Hooks of ceasefire where a stale translation must lose its rights (I2).
 */
#ifndef _LINUX_CEASEFIRE_RIGHTS_H
#define _LINUX_CEASEFIRE_RIGHTS_H

#include <linux/ceasefire_core.h>

struct folio;
struct page;

#ifdef CONFIG_CEASEFIRE_FPR

bool __fpr_ksm_mergeable(struct page *page);
void __fpr_mprotect(struct vm_area_struct *vma, vm_flags_t old);
void __fpr_swap_out(struct folio *folio);

/* try_to_merge_one_page(): not while a stale translation may write to it (I2). */
static inline bool fpr_ksm_mergeable(struct page *page)
{
	return !cf_on() || __fpr_ksm_mergeable(page);
}

/* mprotect_fixup(): no translation keeps rights that the mapping loses (I2). */
static inline void fpr_mprotect(struct vm_area_struct *vma, vm_flags_t old)
{
	if (cf_on() && unlikely(vma->vm_mm->cf))
		__fpr_mprotect(vma, old);
}

/* swap_writepage(): nobody writes to a page while it is written out (I2). */
static inline void fpr_swap_out(struct folio *folio)
{
	if (cf_on())
		__fpr_swap_out(folio);
}

#else

static inline bool fpr_ksm_mergeable(struct page *page)
{
	return true;
}

static inline void fpr_mprotect(struct vm_area_struct *vma, vm_flags_t old) { }
static inline void fpr_swap_out(struct folio *folio) { }

#endif /* CONFIG_CEASEFIRE_FPR */

#endif /* _LINUX_CEASEFIRE_RIGHTS_H */
