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

#include "abis.h"

enum abis_enabled abis_enabled __read_mostly = ABIS_ASK;
unsigned long abis_sources __read_mostly = BIT(ABIS_SOURCE_UNCACHED);

const char * const abis_source_names[ABIS_SOURCE_NR] = {
	[ABIS_SOURCE_UNCACHED] = "uncached",
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
