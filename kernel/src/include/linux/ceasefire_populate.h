/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The hook of madvise() and mmap() that populates mappings of morsels in blocks.
 */
#ifndef _LINUX_CEASEFIRE_POPULATE_H
#define _LINUX_CEASEFIRE_POPULATE_H

#include <linux/ceasefire_morsel.h>

#ifdef CONFIG_CEASEFIRE_MORSEL

long __morsel_populate_ahead(struct vm_area_struct *vma, unsigned long start,
			     unsigned long end, bool write);

/*
 * MADV_POPULATE_*, MAP_POPULATE: pages that are there now, or 0: generic code goes on, or
 * knows why not.
 */
static inline long morsel_populate_ahead(struct mm_struct *mm,
					 unsigned long start,
					 unsigned long end, bool write)
{
	struct vm_area_struct *vma = vma_lookup(mm, start);

	return vma && vma_is_morsel(vma) ?
	       __morsel_populate_ahead(vma, start, end, write) : 0;
}

#else

#define morsel_populate_ahead(mm, start, end, write) 0L

#endif /* CONFIG_CEASEFIRE_MORSEL */

#endif /* _LINUX_CEASEFIRE_POPULATE_H */
