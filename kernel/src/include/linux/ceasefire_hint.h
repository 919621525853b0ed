/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Hooks of ceasefire for NUMA hints: where entries are made inaccessible, and where
 * others take such an entry for one that no CPU has (I10). Included by asm/pgtable.h,
 * so it asks for little itself.
 */
#ifndef _LINUX_CEASEFIRE_HINT_H
#define _LINUX_CEASEFIRE_HINT_H

#include <linux/compiler.h>
#include <linux/mm_types.h>

struct mmu_gather;

#ifdef CONFIG_CEASEFIRE_LATR

long latr_hint(struct mmu_gather *tlb, struct vm_area_struct *vma,
	       unsigned long addr, unsigned long end);
bool __latr_hinted(struct mm_struct *mm);
void __latr_settle_hints(struct mm_struct *mm);

/*
 * Page table lock held: true if a CPU may have an entry that is inaccessible now, as
 * it was before.
 */
static inline bool latr_hinted(struct mm_struct *mm)
{
	return unlikely(READ_ONCE(mm->cf)) && __latr_hinted(mm);
}

/* Page table lock held, entry changed: no CPU has it as it was before a hint. */
static inline void latr_settle_hints(struct mm_struct *mm)
{
	if (unlikely(READ_ONCE(mm->cf)))
		__latr_settle_hints(mm);
}

#else

/* A macro: what it stands for is declared later. */
#define latr_hint(tlb, vma, addr, end) \
	change_protection(tlb, vma, addr, end, MM_CP_PROT_NUMA)
#define latr_hinted(mm) false
#define latr_settle_hints(mm) do { } while (0)

#endif /* CONFIG_CEASEFIRE_LATR */

#endif /* _LINUX_CEASEFIRE_HINT_H */
