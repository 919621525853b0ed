/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Hooks of ceasefire where a fault takes a page frame that was parked (I2).
 */
#ifndef _LINUX_CEASEFIRE_RECYCLE_H
#define _LINUX_CEASEFIRE_RECYCLE_H

#include <linux/alloc_tag.h>
#include <linux/ceasefire_core.h>
#include <linux/gfp_types.h>

struct address_space;
struct folio;
struct vm_fault;

#ifdef CONFIG_CEASEFIRE_FPR

void __fpr_fault_begin(struct vm_area_struct *vma);
struct folio *__fpr_recycle(struct address_space *mapping, gfp_t gfp);
struct folio *__fpr_recycle_anon(struct vm_fault *vmf, bool zero);

/* __do_fault(): which mapping may recycle frames now (I2). */
static inline void fpr_fault_begin(struct vm_area_struct *vma)
{
	if (cf_on() && unlikely(vma->vm_flags & VM_FPR))
		__fpr_fault_begin(vma);
}

static inline void fpr_fault_end(void)
{
	current->fpr_mapping = NULL;
}

/* Page cache allocation: a parked frame of this context, or NULL. */
static inline struct folio *fpr_recycle_noprof(struct address_space *mapping,
					       gfp_t gfp, unsigned int order)
{
	return cf_on() && !order && unlikely(current->fpr_mapping) ?
	       __fpr_recycle(mapping, gfp) : NULL;
}

/* Charged to the allocation site, as filemap_alloc_folio() is. */
#define fpr_recycle(...)	alloc_hooks(fpr_recycle_noprof(__VA_ARGS__))

/* A page of anonymous memory: a parked frame of the process, charged; or NULL. */
static inline struct folio *fpr_recycle_anon_noprof(struct vm_fault *vmf,
						    bool zero)
{
	return cf_on() && unlikely(vmf->vma->vm_flags & VM_FPR) ?
	       __fpr_recycle_anon(vmf, zero) : NULL;
}

#define fpr_recycle_anon(...)	alloc_hooks(fpr_recycle_anon_noprof(__VA_ARGS__))

#else

static inline void fpr_fault_begin(struct vm_area_struct *vma) { }
static inline void fpr_fault_end(void) { }
#define fpr_recycle(mapping, gfp, order)	((struct folio *)NULL)
#define fpr_recycle_anon(vmf, zero)		((struct folio *)NULL)

#endif /* CONFIG_CEASEFIRE_FPR */

#endif /* _LINUX_CEASEFIRE_RECYCLE_H */
