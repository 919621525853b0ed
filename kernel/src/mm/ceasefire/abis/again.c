// SPDX-License-Identifier: GPL-2.0
/*
 * Entries that only one CPU has (insert.c), and that are used again after a change: the CPU
 * would walk there, and set the accessed bit, so that they would be like any other from then on.
 *
 *   - a write fault that gives the entry the right to write, and no other page: after msync()
 *     and writeback, for one. The entry is taken out and looked at. If no CPU has had it, or
 *     this class only, it is made as for a page that nobody had before. Else it is made as
 *     ever: another CPU may go on reading by the one before
 *   - mprotect() of few pages, which has flushed for those that lost a right. Those that
 *     name this CPU, and no other class, are loaded again, with their new rights. The others
 *     are left alone: who would have them must be named
 *
 * What this CPU has of the page by now is dropped before it is loaded, and what it has of the
 * way there: a read would find the entry with the old rights, or walk the process's tables.
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
 * Locks: the page table lock of the entry. mprotect() has mmap_lock for writing, so tables
 * stay; faults that have the lock of a mapping go on where nothing was changed.
 * Callers: wp_page_reuse(), do_mprotect_pkey().
 */
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/vmstat.h>

#include <asm/tlbflush.h>

#include "abis.h"

/* What is longer is flushed for as a whole, about. */
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
	if (abis_was_mine(vma, vmf->address, old)) {
		flush_tlb_one_user(vmf->address);
		abis_insert(vma->vm_mm, vmf->address, vmf->pte, pte);
	} else {
		set_ptes(vma->vm_mm, vmf->address, vmf->pte, pte, 1);
	}
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

/*
 * Where the entry of the second level is that covers an address, if tables lead there. A fault
 * may put a huge page of devices there meanwhile, so each level is read once.
 */
static pmd_t *abis_pmd_of(struct mm_struct *mm, unsigned long addr)
{
	pgd_t *pgd = pgd_offset(mm, addr);
	p4d_t *p4d;
	pud_t *pud, value;

	if (!pgd_present(*pgd))
		return NULL;
	p4d = p4d_offset(pgd, addr);
	if (!p4d_present(*p4d))
		return NULL;
	pud = pud_offset(p4d, addr);
	value = READ_ONCE(*pud);
	CF_MUTATION(abis_again_huge, return pmd_offset(pud, addr));
	if (!pud_present(value) || pud_leaf(value) || pud_devmap(value))
		return NULL;
	return pmd_offset_lockless(pud, value, addr);
}

/* The page table is locked. */
static void abis_load_named(struct vm_area_struct *vma, unsigned long addr,
			    pte_t *ptep)
{
	pte_t pte = ptep_get(ptep);

	if (!abis_names_me(pte) || !abis_is_plain(vma, pte))
		return;
	flush_tlb_one_user(addr);
	if (abis_load(vma->vm_mm, addr, pte) &&
	    !(pte_flags(ptep_get(ptep)) & _PAGE_ACCESSED))
		count_vm_event(ABIS_INSERTED);
}

static void abis_load_again(struct vm_area_struct *vma, unsigned long addr)
{
	pmd_t *pmd = abis_pmd_of(vma->vm_mm, addr);
	spinlock_t *ptl; /* of the table that @pmd leads to */
	pte_t *ptep;

	if (!pmd)
		return;
	ptep = pte_offset_map_lock(vma->vm_mm, pmd, addr, &ptl);
	if (!ptep)
		return;
	abis_load_named(vma, addr, ptep);
	pte_unmap_unlock(ptep, ptl);
}

/* Mappings of others have tables of another shape, in which no entry has a name. */
static bool abis_has_names(struct vm_area_struct *vma)
{
	CF_MUTATION(abis_again_huge, return vma->vm_flags & VM_READ);
	return vma->vm_flags & VM_READ && abis_is_readable(vma) &&
	       !(vma->vm_flags & (VM_SPECIAL | VM_HUGETLB | VM_SHADOW_STACK)) &&
	       !vma_is_dax(vma);
}

/**
 * __abis_protected() - mprotect() has changed rights, and has flushed
 * @mm: the process, of which mmap_lock is held for writing
 * @start: first address
 * @end: first address behind what it has come to
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
		if (vma && abis_has_names(vma))
			abis_load_again(vma, addr);
	}
}
