/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Hooks of ceasefire where addresses are given: who gets which, and when they are
 * used again (I3).
 */
#ifndef _LINUX_CEASEFIRE_PLACE_H
#define _LINUX_CEASEFIRE_PLACE_H

#include <linux/ceasefire_core.h>

struct file;
struct vm_area_struct;

/* Which insertion of a VMA claims addresses; one mutation each. */
enum cf_claim {
	CF_CLAIM_MMAP,
	CF_CLAIM_MREMAP,
	CF_CLAIM_GROW,
	CF_CLAIM_BRK,
	CF_CLAIM_STACK,
	CF_CLAIM_INSERT,
	CF_CLAIM_PLACED,	/* mmap() where Linux has chosen the address */
};

unsigned long __get_unmapped_area(struct file *file, unsigned long addr,
				  unsigned long len, unsigned long pgoff,
				  unsigned long flags, vm_flags_t vm_flags);

#ifdef CONFIG_CEASEFIRE_CORE

void __cf_va_claim(struct mm_struct *mm, unsigned long start,
		   unsigned long end, enum cf_claim who);

/* All other insertions and growths of VMAs; mmap_lock held for writing (I3). */
static inline void cf_va_claim(struct mm_struct *mm, unsigned long start,
			       unsigned long end, enum cf_claim who)
{
	if (cf_on() && unlikely(mm->cf))
		__cf_va_claim(mm, start, end, who);
}

#else

/* A macro: the compiler would compute the range, and change code around it. */
#define cf_va_claim(...) ((void)0)

#endif /* CONFIG_CEASEFIRE_CORE */

#ifdef CONFIG_CEASEFIRE_FPR

unsigned long __fpr_map_area(struct file *file, unsigned long addr,
			     unsigned long len, unsigned long pgoff,
			     unsigned long flags, vm_flags_t vm_flags);
void __fpr_placed(unsigned long addr, unsigned long len, enum cf_claim who,
		  vm_flags_t vm_flags);
unsigned long __fpr_mmap_single(struct file *file, unsigned long addr,
				unsigned long len, vm_flags_t vm_flags,
				unsigned long pgoff);
void __fpr_mapped(struct vm_area_struct *vma);

/* In what __fpr_map_area() returns: the mapping gets VM_FPR. */
#define FPR_MAP_MARKED	1UL

/* Flags that mmap(MAP_SHARED_VALIDATE) accepts on top of the others. */
#define FPR_MAP_FLAGS	MAP_FPR

/*
 * do_mmap(): addresses of MAP_FPR mappings come from the arena of the process, in
 * one that has chosen a mechanism those of others, too; the rest is settled first
 * where it overlaps the quarantine (I3).
 */
static inline unsigned long
fpr_get_unmapped_area(struct mm_struct *mm, struct file *file,
		      unsigned long addr, unsigned long len,
		      unsigned long pgoff, unsigned long flags,
		      vm_flags_t *vm_flags)
{
	unsigned long area;

	/* One jump for what the process may have asked for. */
	if (unlikely(flags & MAP_FPR ||
		     mm->fpr_auto | (unsigned long)mm->cf_policy)) {
		area = __fpr_map_area(file, addr, len, pgoff, flags, *vm_flags);
		if (area & FPR_MAP_MARKED)
			*vm_flags |= VM_FPR;
		if (area)
			return area & PAGE_MASK;
	}
	area = __get_unmapped_area(file, addr, len, pgoff, flags, *vm_flags);
	if (cf_on() && mm->cf && !IS_ERR_VALUE(area))
		__fpr_placed(area, len, area == addr ? CF_CLAIM_MMAP :
						       CF_CLAIM_PLACED,
			     *vm_flags);
	return area;
}

/* do_mmap(): the short way for a small file; 0 if it is the usual one. */
static inline unsigned long
fpr_mmap_single(struct mm_struct *mm, struct file *file, unsigned long addr,
		unsigned long len, vm_flags_t vm_flags, unsigned long pgoff)
{
	if (!cf_on() || likely(!(vm_flags & VM_FPR) && !mm->cf_policy))
		return 0;
	return __fpr_mmap_single(file, addr, len, vm_flags, pgoff);
}

/* __mmap_region(): the file has set its vm_ops; is it really eligible? */
static inline void fpr_mapped(struct vm_area_struct *vma)
{
	if (unlikely(vma->vm_flags & VM_FPR))
		__fpr_mapped(vma);
}

#else

#define FPR_MAP_FLAGS	0

static inline unsigned long
fpr_get_unmapped_area(struct mm_struct *mm, struct file *file,
		      unsigned long addr, unsigned long len,
		      unsigned long pgoff, unsigned long flags,
		      vm_flags_t *vm_flags)
{
	return __get_unmapped_area(file, addr, len, pgoff, flags, *vm_flags);
}

#define fpr_mmap_single(mm, file, addr, len, vm_flags, pgoff)	0UL
static inline void fpr_mapped(struct vm_area_struct *vma) { }

#endif /* CONFIG_CEASEFIRE_FPR */

#endif /* _LINUX_CEASEFIRE_PLACE_H */
