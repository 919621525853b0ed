/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Hooks of morsels: memory objects whose page tables belong to nobody's address space.
 * Generic code changes nothing below the entry that links them (M6), and reads the
 * rights of a mapping there (M5). mm/ceasefire/morsel/morsel.h has what they are about.
 */
#ifndef _LINUX_CEASEFIRE_MORSEL_H
#define _LINUX_CEASEFIRE_MORSEL_H

#include <linux/compiler.h>

#ifdef CONFIG_CEASEFIRE_MORSEL

#include <linux/mm.h>

#include <uapi/linux/morsel.h>

extern const struct vm_operations_struct morsel_vm_ops;
extern const struct file_operations morsel_fops;

/* The mapping of a morsel: its vm_ops say so from mmap() on. */
static inline bool vma_is_morsel(const struct vm_area_struct *vma)
{
	return unlikely(vma->vm_ops == &morsel_vm_ops);
}

vm_fault_t morsel_fault(struct vm_area_struct *vma, unsigned long addr,
			unsigned int flags);
void __morsel_unmap(struct vm_area_struct *vma, struct zap_details *details);
unsigned long morsel_move(struct vm_area_struct *vma, unsigned long len);
long morsel_protect(struct vm_area_struct *vma, unsigned long cp_flags);
int morsel_create(const char __user *name, unsigned int flags);

/* unmap_single_vma(): true if there is nothing for generic code to do. */
static inline bool morsel_unmap(struct vm_area_struct *vma,
				struct zap_details *details)
{
	if (!vma_is_morsel(vma))
		return false;
	__morsel_unmap(vma, details);
	return true;
}

/* memory_failure()'s own way to tell who has a page mapped. */
typedef void (*morsel_kill_t)(struct page *page, unsigned long pfn, int flags,
			      struct folio *folio);

bool morsel_memory_failure(struct page *page, unsigned long pfn, int flags,
			   morsel_kill_t kill);

bool __morsel_hides(const struct vm_area_struct *vma);

/* hmm_range_fault(): it takes rights from entries of pages, which have them all (M5). */
static inline bool morsel_hides(const struct vm_area_struct *vma)
{
	return vma_is_morsel(vma) && __morsel_hides(vma);
}

bool __morsel_stays(void);

/* MADV_COLD, FOLL_SPLIT_PMD: both split what is one page for all who map it (M6). */
static inline bool morsel_stays(const struct vm_area_struct *vma)
{
	return vma_is_morsel(vma) && __morsel_stays();
}

bool __morsel_has_no_tables(const struct vm_area_struct *vma);

/* walk_pud_range(): is what is there not for it? */
static inline bool morsel_has_no_tables(const struct vm_area_struct *vma)
{
	return vma && vma_is_morsel(vma) && __morsel_has_no_tables(vma);
}

/* Are the pages of a file somewhere else than in the page cache? */
static inline bool ceasefire_has_tables(const struct file *file)
{
	return file->f_op == &morsel_fops;
}

/* The table of PMDs that an entry leads to: does it belong to no address space? */
static inline bool ceasefire_table_is_linked(pud_t pud)
{
	return virt_to_ptdesc(pud_pgtable(pud))->__page_mapping;
}

extern unsigned long *morsel_nothing;

/* Is it the one that is the same for all morsels, for as long as they have none (rest.c)? */
static inline bool ceasefire_table_is_nothing(pud_t pud)
{
	return (unsigned long *)pud_pgtable(pud) == morsel_nothing;
}

#else

#define MFD_MORSEL 0U
#define vma_is_morsel(vma) false
#define morsel_fault(vma, addr, flags) VM_FAULT_SIGBUS
#define morsel_unmap(vma, details) false
#define morsel_move(vma, len) (len)
#define morsel_protect(vma, cp_flags) 0
#define morsel_create(name, flags) (-EINVAL)
#define morsel_hides(vma) false
#define morsel_has_no_tables(vma) false
#define morsel_stays(vma) false
#define morsel_memory_failure(page, pfn, flags, kill) false
#define ceasefire_has_tables(file) false
#define ceasefire_table_is_linked(pud) false
#define ceasefire_table_is_nothing(pud) false

#endif /* CONFIG_CEASEFIRE_MORSEL */

#endif /* _LINUX_CEASEFIRE_MORSEL_H */
