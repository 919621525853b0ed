// SPDX-License-Identifier: GPL-2.0
/*
 * ABIS: whether entries are believed, by what root has chosen, and which of them.
 *
 * It is noted whose accessed bits are cleared as long as the process has asked for
 * it (mm->context.abis), whatever root switches meanwhile. So what is switched
 * on again finds nothing that it does not know of.
 *
 * Locks: none. Callers: uncached.c, prctl.c, ../sysfs.c.
 */
#include <linux/mm.h>
#include <linux/mmu_notifier.h>
#include <linux/swap.h>
#include <linux/swapops.h>

#include "abis.h"

enum abis_enabled abis_enabled __read_mostly = ABIS_ASK;
unsigned long abis_sources __read_mostly = BIT(ABIS_SOURCE_UNCACHED);

const char * const abis_source_names[ABIS_SOURCE_NR] = {
	[ABIS_SOURCE_UNCACHED] = "uncached",
	[ABIS_SOURCE_INSERTED] = "inserted",
};

/**
 * abis_is_possible() - can entries be believed on this machine?
 *
 * Under Xen PV entries are changed by the hypervisor, later and many at a time, so that
 * what was read before is not what was there in that step; and bit 52 is its own.
 *
 * Return: true if they can.
 */
bool abis_is_possible(void)
{
	return !cpu_feature_enabled(X86_FEATURE_XENPV);
}

/**
 * abis_source_on() - is a source believed?
 * @source: the source
 *
 * Return: true if root has it that way.
 */
bool abis_source_on(enum abis_source source)
{
	return READ_ONCE(abis_enabled) != ABIS_NEVER && abis_is_possible() &&
	       READ_ONCE(abis_sources) & BIT(source);
}

/**
 * abis_is_plain() - is an entry one of a page that Linux keeps account of?
 * @vma: its mapping
 * @pte: the entry
 *
 * Entries of pools have another size; those of devices, and the page of zeroes, have
 * frames for which there is no tag, or one for all processes.
 *
 * Return: true if it is.
 */
bool abis_is_plain(struct vm_area_struct *vma, pte_t pte)
{
	return !(vma->vm_flags & (VM_SPECIAL | VM_HUGETLB | VM_SHADOW_STACK)) &&
	       !pte_special(pte) && !pte_devmap(pte);
}

/**
 * abis_profits() - is an entry without the bit worth more than the work of a CPU that sets it?
 * @vma: its mapping
 * @pte: the entry
 * @source: what it is to be without it for
 *
 * Return: true if it is.
 */
bool abis_profits(struct vm_area_struct *vma, pte_t pte,
		  enum abis_source source)
{
	return abis_source_on(source) && READ_ONCE(cf_young_trusted) &&
	       migration_entry_supports_ad() && !mm_has_notifiers(vma->vm_mm) &&
	       abis_is_plain(vma, pte);
}

/**
 * abis_keep_use() - take the accessed bit from an entry
 * @pte: the entry
 *
 * The use of the page is in the other bit, so that Linux sees the same as before.
 *
 * Return: the entry without it.
 */
pte_t abis_keep_use(pte_t pte)
{
	pte = pte_clear_flags(pte, _PAGE_ACCESSED);
	CF_MUTATION(abis_use_lost, return pte);
	return pte_set_flags(pte, _PAGE_USED);
}

#ifdef CONFIG_CEASEFIRE_DEBUG
/* An entry as if it named nobody. */
pte_t abis_any_class(pte_t pte)
{
	CF_MUTATION(abis_batch_split, return pte);
	return pte_clear_flags(pte, _PAGE_CLASS);
}
#endif
