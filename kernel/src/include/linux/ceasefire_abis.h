/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Hooks of ABIS: where entries are changed that no CPU may have (I11), and where
 * they are made without the accessed bit. mm/ceasefire/abis/uncached.c has what it
 * is about, ceasefire_gather.h what concerns struct mmu_gather, asm/abis.h the bit
 * that keeps what Linux wants to know of the use of a page.
 */
#ifndef _LINUX_CEASEFIRE_ABIS_H
#define _LINUX_CEASEFIRE_ABIS_H

#include <linux/compiler.h>
#include <linux/mm_types.h>

#ifdef CONFIG_CEASEFIRE_ABIS

bool __abis_uncached(struct vm_area_struct *vma, pte_t pte, bool listed);
pte_t __abis_flushed(struct vm_area_struct *vma, pte_t pte);
bool __abis_clear_flush(struct vm_area_struct *vma, unsigned long addr,
			pte_t pte);
void __abis_install(struct vm_fault *vmf, unsigned long addr, pte_t *ptep,
		    pte_t pte, unsigned int nr);
pte_t __abis_forked(struct vm_area_struct *vma, pte_t *ptep, pte_t pte,
		    unsigned int nr);
void __abis_fork_ends(struct mm_struct *mm);
pte_t __abis_moved(struct vm_area_struct *vma, pte_t pte);
bool __abis_reuse(struct vm_fault *vmf, pte_t pte);
bool __abis_one(struct vm_area_struct *vma);
void __abis_protected(struct mm_struct *mm, unsigned long start,
		      unsigned long end);

/* Has the process asked for it? Then it is noted whose accessed bits are cleared. */
static inline bool abis_on(struct mm_struct *mm)
{
	return unlikely(mm->context.abis);
}

/* ptep_clear_flush(): true if the CPUs that can have had the entry have dropped it. */
static inline bool abis_clear_flush(struct vm_area_struct *vma,
				    unsigned long addr, pte_t pte)
{
	return abis_on(vma->vm_mm) && __abis_clear_flush(vma, addr, pte);
}

/*
 * A fault makes entries, page table lock held. A macro: set_ptes() is declared later. With
 * its own in between, so that only this CPU gets the one that was asked for, and none has
 * those beside it, or only this CPU.
 */
#define abis_install(vmf, mm, addr, ptep, pte, nr)			\
do {									\
	if (abis_on(mm))						\
		__abis_install(vmf, addr, ptep, pte, nr);		\
	else								\
		set_ptes(mm, addr, ptep, pte, nr);			\
} while (0)

/*
 * wp_page_reuse(): true if the entry was made, so that only this CPU has it where that is
 * possible. Otherwise it is to be changed as ever. A macro: the structure is not known.
 */
#define abis_reuse(vmf, pte)						\
	(abis_on((vmf)->vma->vm_mm) && __abis_reuse(vmf, pte))

/* should_fault_around(): only the page that was asked for is mapped. */
static inline bool abis_one(struct vm_area_struct *vma)
{
	return abis_on(vma->vm_mm) && __abis_one(vma);
}

/* do_mprotect_pkey(): rights were changed, and flushed for. */
static inline void abis_protected(struct mm_struct *mm, unsigned long start,
				  unsigned long end)
{
	if (abis_on(mm))
		__abis_protected(mm, start, end);
}

/*
 * folio_pte_batch(): entries that name different CPUs are of one batch. For those who look at
 * each entry again; a gather wants batches of one class. Macros, as fpb_t is not known.
 */
#define FPB_IGNORE_CLASS	((__force fpb_t)BIT(2))
#ifdef CONFIG_CEASEFIRE_DEBUG
pte_t abis_any_class(pte_t pte);
#else
#define abis_any_class(pte)	pte_clear_flags(pte, _PAGE_CLASS)
#endif

/*
 * Where reclaim and migration note a flush for later: no CPU has
 * the entry that was just cleared. @listed: the caller has not taken the page off its list
 * himself, so reclaim may have, and may not have flushed for it yet.
 */
static inline bool abis_uncached(struct vm_area_struct *vma, pte_t pte,
				 bool listed)
{
	return abis_on(vma->vm_mm) && __abis_uncached(vma, pte, listed);
}

/* The entry was cleared and flushed for, and comes back with fewer rights. */
static inline pte_t abis_flushed(struct vm_area_struct *vma, pte_t pte)
{
	return abis_on(vma->vm_mm) ? __abis_flushed(vma, pte) : pte;
}

/* copy_present_ptes(): the child gets what these entries map; returns its first one. */
static inline pte_t abis_forked(struct vm_area_struct *vma, pte_t *ptep,
				pte_t pte, unsigned int nr)
{
	return abis_on(vma->vm_mm) ? __abis_forked(vma, ptep, pte, nr) : pte;
}

/* dup_mmap(): everything is about to be flushed. */
static inline void abis_fork_ends(struct mm_struct *mm)
{
	if (abis_on(mm))
		__abis_fork_ends(mm);
}

/*
 * remove_migration_pte(): the page is mapped again, if it @moved in another frame. Who copies
 * a page has flushed for the entry that it had, or no CPU had that: writes would be lost.
 */
static inline pte_t abis_moved(struct vm_area_struct *vma, pte_t pte, bool moved)
{
	return moved && abis_on(vma->vm_mm) ? __abis_moved(vma, pte) : pte;
}

#else

#define abis_on(mm) false
#define FPB_IGNORE_CLASS ((__force fpb_t)0)
#define abis_any_class(pte) (pte)
#define abis_uncached(vma, pte, listed) false
#define abis_clear_flush(vma, addr, pte) false
#define abis_install(vmf, mm, addr, ptep, pte, nr) \
	set_ptes(mm, addr, ptep, pte, nr)
#define abis_flushed(vma, pte) (pte)
#define abis_reuse(vmf, pte) false
#define abis_one(vma) false
#define abis_protected(mm, start, end) ((void)0)
#define abis_forked(vma, ptep, pte, nr) (pte)
#define abis_fork_ends(mm) ((void)0)
#define abis_moved(vma, pte, moved) (pte)

#endif /* CONFIG_CEASEFIRE_ABIS */

#endif /* _LINUX_CEASEFIRE_ABIS_H */
