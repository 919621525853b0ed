// SPDX-License-Identifier: GPL-2.0
/*
 * Entries that only one CPU has (insert.c), and that are used again after a change: the CPU
 * would walk there, and set the accessed bit, so that they would be like any other from then on.
 *
 *   - a write fault that gives the entry the right to write, and no other page: after msync()
 *     and writeback, for one. The entry is taken out and looked at. If no CPU has had it, or
 *     this class only, it is made as for a page that nobody had before. Else it is made as
 *     ever: another CPU may go on reading by the one before
 *   - mprotect() of few pages. It has flushed for them, here and maybe elsewhere. Those that
 *     name this CPU, and no other class, are loaded again, with their new rights. The others
 *     are left alone: who would have them must be named
 *
 *	here				CPU of another class
 *	clears the entry
 *					walks: nothing there, a fault (waits for the lock)
 *	the bit was clear: nobody
 *	writes it, without the bit, and
 *	its class; loads it
 *					(or walks now: sets the bit)
 *
 * A walk that began before the entry was cleared has set the bit in it, or has found it gone.
 *
 * Locks: the page table lock of the entry; mmap_lock for writing (mprotect).
 * Callers: wp_page_reuse(), do_mprotect_pkey().
 */
#include <linux/mm.h>
#include <linux/vmstat.h>

#include <asm/tlbflush.h>

#include "../../internal.h"
#include "abis.h"

/* A range that is worth it. What is longer is flushed for as a whole. */
#define ABIS_AGAIN_PAGES	32

/* May nobody else have an entry? By a first look, to be taken again when it is cleared. */
static bool abis_may_be_mine(pte_t pte)
{
	CF_MUTATION(abis_reuse_unseen, return true);
	return !(pte_flags(pte) & _PAGE_ACCESSED);
}

/* Has no CPU had an entry that was cleared, or those of this class only? */
static bool abis_was_mine(struct vm_area_struct *vma, unsigned long addr, pte_t pte)
{
	CF_MUTATION(abis_reuse_unseen, return true);
	switch (abis_cached_alone(vma, addr, pte, true)) {
	case CF_UNCACHED:
		return true;
	case CF_CACHED_CLASS:
		return abis_class(pte) == abis_class_of(smp_processor_id());
	default:
		return false;
	}
}

/**
 * __abis_reuse() - a write fault gives an entry the right to write
 * @vmf: the fault, the page table is locked
 * @pte: the entry that is to be made
 *
 * Return: true if it was made.
 */
bool __abis_reuse(struct vm_fault *vmf, pte_t pte)
{
	struct vm_area_struct *vma = vmf->vma;
	pte_t old;

	if (!abis_may_be_mine(ptep_get(vmf->pte)) || !abis_may_insert(vmf, pte))
		return false;
	old = ptep_get_and_clear(vma->vm_mm, vmf->address, vmf->pte);
	if (abis_was_mine(vma, vmf->address, old))
		abis_insert(vma->vm_mm, vmf->address, vmf->pte, pte);
	else
		set_ptes(vma->vm_mm, vmf->address, vmf->pte, pte, 1);
	return true;
}

/* Does an entry name this CPU, and nobody else? */
static bool abis_names_me(pte_t pte)
{
	if (!pte_present(pte) || pte_flags(pte) & _PAGE_PROTNONE ||
	    pte_flags(pte) & _PAGE_ACCESSED || !abis_class(pte))
		return false;
	CF_MUTATION(abis_again_any, return true);
	return abis_class(pte) == abis_class_of(smp_processor_id());
}

static void abis_load_again(struct vm_area_struct *vma, unsigned long addr)
{
	pmd_t *pmd = mm_find_pmd(vma->vm_mm, addr);
	spinlock_t *ptl;
	pte_t *ptep, pte;

	if (!pmd)
		return;
	ptep = pte_offset_map_lock(vma->vm_mm, pmd, addr, &ptl);
	if (!ptep)
		return;
	pte = ptep_get(ptep);
	if (abis_names_me(pte) && abis_is_plain(vma, pte) &&
	    abis_load(vma->vm_mm, addr, pte))
		count_vm_event(ABIS_INSERTED);
	pte_unmap_unlock(ptep, ptl);
}

/**
 * __abis_protected() - mprotect() has changed rights, and has flushed
 * @mm: the process, of which mmap_lock is held for writing
 * @start: first address
 * @end: first address behind it
 */
void __abis_protected(struct mm_struct *mm, unsigned long start,
		      unsigned long end)
{
	struct vm_area_struct *vma;
	unsigned long addr;

	if (!abis_source_on(ABIS_SOURCE_INSERTED) || abis_has_copies(mm) ||
	    end - start > ABIS_AGAIN_PAGES * PAGE_SIZE)
		return;
	for (addr = start; addr < end; addr += PAGE_SIZE) {
		vma = vma_lookup(mm, addr);
		if (vma && vma->vm_flags & VM_READ && abis_is_readable(vma))
			abis_load_again(vma, addr);
	}
}
