/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The bit of a page table entry that says that its page was used, where the accessed
 * bit says whether a CPU may have the entry (mm/ceasefire/abis/uncached.c). Hardware
 * ignores it. Who asks whether a page was used asks for both, and who says that
 * it was not clears both; setting the accessed bit is enough.
 *
 * And four bits beside it: the class of the CPU that has the entry all the same, though
 * the accessed bit is clear (mm/ceasefire/abis/insert.c); 0: no CPU has. With the accessed
 * bit set they say nothing. Whoever changes an entry leaves them as they are.
 *
 * Only in entries of pages, with rights or without (PROT_NONE), never in others that
 * are not present. Included by asm/pgtable.h.
 */
#ifndef _ASM_X86_ABIS_H
#define _ASM_X86_ABIS_H

#ifndef __ASSEMBLY__

#include <linux/bitops.h>

#include <asm/pgtable_types.h>

#ifdef CONFIG_CEASEFIRE_ABIS

#define ABIS_CLASSES	15

/* The class that an entry of a page names, 1 to ABIS_CLASSES, or 0. */
static inline unsigned int abis_class(pte_t pte)
{
	if (!(pte_flags(pte) & (_PAGE_PRESENT | _PAGE_PROTNONE)))
		return 0;
	return (pte_flags(pte) & _PAGE_CLASS) >> _PAGE_BIT_CLASS;
}

/*
 * Beside the accessed bit: pte_young(). Some ask that of entries which are not present, and
 * in those the bit is one of an offset, as those of the class are.
 */
static inline int abis_used(pte_t pte)
{
	return (pte_flags(pte) & (_PAGE_PRESENT | _PAGE_PROTNONE)) &&
	       (pte_flags(pte) & _PAGE_USED);
}

/* Of two entries: was one of them used, may a CPU have one of them? */
static inline pte_t abis_merge_use(pte_t pte, pte_t other)
{
	return native_make_pte(native_pte_val(pte) |
			       (native_pte_val(other) &
				(_PAGE_ACCESSED | _PAGE_USED)));
}

/*
 * ptep_test_and_clear_young(), page table lock held: did the entry name a class, so that
 * a CPU may have it? It does not any more. What comes of it in a migration entry is the
 * use of its page: without that, nothing would be left of the CPU.
 */
static inline int abis_clear_class(pte_t *ptep)
{
	unsigned int i;

	if (likely(!abis_class(*ptep)))
		return 0;
	/* Hardware may set other bits meanwhile. */
	for (i = 0; i < 4; i++)
		clear_bit(_PAGE_BIT_CLASS + i, (unsigned long *)&ptep->pte);
	/* Before whoever calls asks whether the process wants it noted (cf_on()). */
	smp_mb__after_atomic();
	return 1;
}

/* The same: was it set? */
static inline int abis_clear_used(pte_t *ptep)
{
	if (likely(!abis_used(*ptep)))
		return 0;
	/* Hardware may set other bits meanwhile. */
	clear_bit(_PAGE_BIT_USED, (unsigned long *)&ptep->pte);
	return 1;
}

#else

#define abis_used(pte) 0
#define abis_clear_class(ptep) 0
#define abis_clear_used(ptep) 0

#endif /* CONFIG_CEASEFIRE_ABIS */

#endif /* __ASSEMBLY__ */

#endif /* _ASM_X86_ABIS_H */
