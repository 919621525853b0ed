// SPDX-License-Identifier: GPL-2.0
/*
 * Mappings of morsels: attach entries come, change and go.
 *
 * mmap() touches no table. The first fault links the roots of all units whose attach entry
 * is in the same table; units lie on addresses that are multiples of their size, so that no
 * other mapping shares a table with one. Tables above are the process' own, as any.
 *
 * Rights are those of the attach entry (M5): with or without RW; without any, there is no
 * entry. Never execution: entries of pages forbid it, and there is no right of that
 * kind above. No protection keys, which are in entries of pages.
 *
 * Who depopulates walks i_mmap and flushes all whom he finds there, and frees. A mapping that is
 * unmapped leaves i_mmap before generic code flushes for it:
 *
 *   munmap()				depopulation
 *   clears the attach entry
 *   leaves i_mmap
 *					cuts, flushes all in i_mmap, frees
 *   another CPU writes to what was freed
 *   flushes
 *
 * So who clears an attach entry flushes at once, before the mapping can leave i_mmap (M3).
 * CPUs in lazy mode flush as well: the root may be gone before they come back.
 *
 * The mapping has VM_SHARED, even of a descriptor that only reads, because the OOM reaper
 * takes away what is not shared, page by page (M6). VM_DONTEXPAND keeps away those who
 * merge, lock, deduplicate and collapse. There is no vm_ops->fault: a core dump leaves out
 * what nobody has populated.
 *
 * Locks: for changes mmap_lock held for writing, or the mapping is not to be found any
 * more; for faults see fault.c. Callers: hooks of ceasefire_morsel.h, fault.c.
 */
#include <linux/ceasefire.h>
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/mman.h>
#include <linux/mmu_notifier.h>
#include <linux/pkeys.h>
#include <linux/sched/coredump.h>
#include <linux/sched/mm.h>

#include <asm/tlbflush.h>

#include "morsel.h"

/* The entry of a process that is, or could be, an attach entry. */
struct morsel_link {
	unsigned long		*entry;
	spinlock_t		*lock; /* of its table */
};

/*
 * Where the attach entry of an address is; false: tables are missing above.
 * @make: make them
 */
static bool morsel_find_link(struct morsel *m, struct mm_struct *mm,
			     unsigned long addr, bool make,
			     struct morsel_link *link)
{
	pgd_t *pgd = pgd_offset(mm, addr);
	p4d_t *p4d;
	pud_t *pud;
	pmd_t *pmd;

	link->lock = &mm->page_table_lock;
	link->entry = (unsigned long *)pgd;
	if (m->level == 4)
		return true;
	p4d = make ? p4d_alloc(mm, pgd, addr) :
		     pgd_none(*pgd) ? NULL : p4d_offset(pgd, addr);
	if (!p4d)
		return false;
	link->entry = (unsigned long *)p4d;
	if (m->level == 3)
		return true;
	pud = make ? pud_alloc(mm, p4d, addr) :
		     p4d_none(*p4d) ? NULL : pud_offset(p4d, addr);
	if (!pud)
		return false;
	link->entry = (unsigned long *)pud;
	if (m->level == 2)
		return true;
	pmd = make ? pmd_alloc(mm, pud, addr) :
		     pud_none(*pud) ? NULL : pmd_offset(pud, addr);
	if (!pmd)
		return false;
	link->lock = pmd_lockptr(mm, pmd);
	link->entry = (unsigned long *)pmd;
	return true;
}

/* All changes of attach entries; under the lock. PTI has some of them twice. */
static void morsel_set_link(struct morsel *m, unsigned long *entry,
			    unsigned long val)
{
	if (m->level == 4)
		set_pgd((pgd_t *)entry, __pgd(val));
	else if (m->level == 3)
		set_p4d((p4d_t *)entry, __p4d(val));
	else
		WRITE_ONCE(*entry, val);
}

/* Where the last attach entry is that is in the same table as that of an address. */
static unsigned long morsel_table_end(struct morsel *m, unsigned long addr,
				      unsigned long end)
{
	u64 span = morsel_span(m->level + 2);

	return min_t(u64, end, round_down(addr, span) + span);
}

static unsigned long morsel_rights(struct vm_area_struct *vma)
{
	CF_MUTATION(morsel_link_writes, return _PAGE_TABLE);
	return vma->vm_flags & VM_WRITE ? _PAGE_TABLE : _PAGE_TABLE & ~_PAGE_RW;
}

/**
 * morsel_attach() - link the unit at an address, and those beside it
 * @vma: the mapping
 * @addr: the address; the root of its unit is there
 *
 * No flush is due: CPUs do not cache that there is nothing.
 *
 * Return: 0, -ENOMEM, or -EBUSY: there is a table that is not the morsel's.
 */
int morsel_attach(struct vm_area_struct *vma, unsigned long addr)
{
	struct morsel *m = morsel_of_vma(vma);
	u64 span = morsel_span(m->level + 2);
	unsigned int shift = morsel_shift(m->level + 1); /* of a unit */
	unsigned long rights = morsel_rights(vma);
	unsigned long at = max_t(u64, vma->vm_start, round_down(addr, span));
	unsigned long end = morsel_table_end(m, addr, vma->vm_end);
	unsigned long first = (at - vma->vm_start) >> shift;
	unsigned long last = (end - vma->vm_start) >> shift;
	unsigned long unit, own, root, *entry;
	struct morsel_link link;
	int err = 0;

	if (!morsel_find_link(m, vma->vm_mm, at, true, &link))
		return -ENOMEM;
	spin_lock(link.lock);
	/* A root that is missed here is found by a later fault. */
	unit = first;
	for_each_set_bit_from(unit, m->roots, last) {
		root = READ_ONCE(m->top[unit]);
		entry = link.entry + (unit - first);
		own = READ_ONCE(*entry);
		/* The bit may be seen before the root. */
		if (!root || (own && morsel_same(own, root)))
			continue;
		if (!own)
			morsel_set_link(m, entry,
					(root & PTE_PFN_MASK) | rights);
		else if (unit == (addr - vma->vm_start) >> shift)
			err = -EBUSY;
	}
	spin_unlock(link.lock);
	return err;
}

/*
 * Clear all attach entries of a mapping, or give them other rights. True if there were
 * any, which are to be flushed for.
 */
static bool morsel_change_links(struct vm_area_struct *vma, unsigned long rights)
{
	struct morsel *m = morsel_of_vma(vma);
	u64 unit = morsel_unit(m);
	unsigned long at, end, own;
	struct morsel_link link;
	bool changed = false;

	for (at = vma->vm_start; at < vma->vm_end; at = end) {
		end = morsel_table_end(m, at, vma->vm_end);
		if (!morsel_find_link(m, vma->vm_mm, at, false, &link))
			continue;
		spin_lock(link.lock);
		for (; at < end; at += unit, link.entry++) {
			own = READ_ONCE(*link.entry);
			if (!own)
				continue;
			morsel_set_link(m, link.entry, !rights ? 0 :
					(own & PTE_PFN_MASK) | rights);
			ceasefire_withdraw(vma->vm_mm, at, unit);
			changed = true;
		}
		spin_unlock(link.lock);
	}
	return changed;
}

static bool morsel_flushes(void)
{
	CF_MUTATION(morsel_detach_unflushed, return false);
	return true;
}

/**
 * morsel_may_pin() - may references by a mapping write to pages, without entries of it?
 * @vma: the mapping
 *
 * Those of virtual machines are no pins, but they hear of changes.
 */
bool morsel_may_pin(struct vm_area_struct *vma)
{
	return test_bit(MMF_HAS_PINNED, &vma->vm_mm->flags) ||
	       mm_has_notifiers(vma->vm_mm);
}

static void morsel_detach(struct vm_area_struct *vma)
{
	if (morsel_change_links(vma, 0) && morsel_flushes())
		flush_tlb_mm_range(vma->vm_mm, vma->vm_start, vma->vm_end,
				   PAGE_SHIFT, true);
	/* GUP without locks has ended by the flush; a pin outlives the mapping. */
	if (morsel_may_pin(vma))
		WRITE_ONCE(morsel_of_vma(vma)->pinned, true);
}

static bool morsel_is_unmapped(struct zap_details *details)
{
	return details && details->zap_flags & ZAP_FLAG_UNMAP;
}

/**
 * __morsel_unmap() - a mapping goes, or what it maps
 * @vma: the mapping; munmap() takes the whole
 * @details: what it is
 *
 * MADV_DONTNEED does nothing: the memory is everybody's. For that there is MADV_REMOVE.
 */
void __morsel_unmap(struct vm_area_struct *vma, struct zap_details *details)
{
	/* mmap() has failed. */
	if (!vma->vm_file || !morsel_is_unmapped(details))
		return;
	morsel_detach(vma);
}

/**
 * morsel_move() - mremap() moves a mapping
 * @vma: where it was
 * @len: its length
 *
 * The new one gets its entries by a fault.
 *
 * Return: @len: all is moved.
 */
unsigned long morsel_move(struct vm_area_struct *vma, unsigned long len)
{
	struct mmu_notifier_range range;

	mmu_notifier_range_init(&range, MMU_NOTIFY_UNMAP, 0, vma->vm_mm,
				vma->vm_start, vma->vm_end);
	mmu_notifier_invalidate_range_start(&range);
	morsel_detach(vma);
	mmu_notifier_invalidate_range_end(&range);
	return len;
}

/**
 * morsel_protect() - the rights of a mapping change
 * @vma: the mapping, with its new rights
 * @cp_flags: MM_CP_*; NUMA hints and userfaultfd are not for morsels
 *
 * Return: 0, entries of pages that were changed.
 */
long morsel_protect(struct vm_area_struct *vma, unsigned long cp_flags)
{
	struct mmu_notifier_range range;
	unsigned long rights = 0;

	if (cp_flags & (MM_CP_PROT_NUMA | MM_CP_UFFD_WP_ALL))
		return 0;
	CF_MUTATION(morsel_protect_stays, return 0);
	if (vma->vm_flags & (VM_READ | VM_WRITE))
		rights = morsel_rights(vma);
	mmu_notifier_range_init(&range, MMU_NOTIFY_PROTECTION_VMA, 0,
				vma->vm_mm, vma->vm_start, vma->vm_end);
	mmu_notifier_invalidate_range_start(&range);
	if (morsel_change_links(vma, rights))
		flush_tlb_mm_range(vma->vm_mm, vma->vm_start, vma->vm_end,
				   PAGE_SHIFT, !rights);
	mmu_notifier_invalidate_range_end(&range);
	return 0;
}

/* A part of a mapping has no table of its own, whatever it would be good for. */
static int morsel_may_split(struct vm_area_struct *vma, unsigned long addr)
{
	return -EINVAL;
}

static int morsel_mprotect(struct vm_area_struct *vma, unsigned long start,
			   unsigned long end, unsigned long newflags)
{
	if (newflags & VM_EXEC)
		return -EPERM;
	return newflags & ARCH_VM_PKEY_FLAGS ? -EINVAL : 0;
}

static void morsel_vma_open(struct vm_area_struct *vma)
{
	morsel_map_copy(morsel_of_vma(vma));
	morsel_epoch_map(vma);
}

static void morsel_vma_close(struct vm_area_struct *vma)
{
	morsel_map_end(morsel_of_vma(vma));
}

const struct vm_operations_struct morsel_vm_ops = {
	.open = morsel_vma_open,
	.close = morsel_vma_close,
	.may_split = morsel_may_split,
	.mprotect = morsel_mprotect,
};

/**
 * __morsel_hides() - may entries of pages say more than the mapping allows?
 * @vma: the mapping of a morsel
 */
bool __morsel_hides(const struct vm_area_struct *vma)
{
	const struct morsel *m = morsel_of_vma((struct vm_area_struct *)vma);

	CF_MUTATION(morsel_hmm_leaves, return false);
	return !(vma->vm_flags & VM_WRITE) || READ_ONCE(m->shares) || m->base > 2;
}

/**
 * __morsel_stays() - is what a morsel has not for who wants to split or age it?
 */
bool __morsel_stays(void)
{
	CF_MUTATION(morsel_splits, return false);
	return true;
}

/**
 * __morsel_has_no_tables() - are its pages where walks of page tables know no entries of ours?
 * @vma: the mapping of a morsel
 */
bool __morsel_has_no_tables(const struct vm_area_struct *vma)
{
	CF_MUTATION(morsel_walked, return false);
	return morsel_of_vma((struct vm_area_struct *)vma)->base > 2;
}

/* Whole units, of the whole object or of its beginning. */
static bool morsel_fits(struct morsel *m, struct vm_area_struct *vma)
{
	unsigned long len = vma->vm_end - vma->vm_start;
	u64 unit = morsel_unit(m);

	return !vma->vm_pgoff && IS_ALIGNED(vma->vm_start, unit) &&
	       IS_ALIGNED(len, unit) &&
	       len <= round_up(i_size_read(&m->inode), unit);
}

static void morsel_set_flags(struct morsel *m, struct vm_area_struct *vma)
{
	vm_flags_mod(vma, VM_DONTEXPAND | VM_SHARED, VM_MAYEXEC);
	/* A dump looks for each page, which takes hours there, and no signal ends it. */
	if (m->level > 3)
		vm_flags_set(vma, VM_DONTDUMP);
	CF_MUTATION_IF(morsel_unshared, !(vma->vm_flags & VM_MAYWRITE),
		       vm_flags_clear(vma, VM_SHARED));
}

/**
 * morsel_mmap() - mmap() of a morsel
 * @file: the morsel
 * @vma: the mapping
 *
 * Return: 0, -EINVAL: it is private, has an offset, or is not of whole units; -EPERM: it is
 * executable; -ENODEV: it was destroyed.
 */
int morsel_mmap(struct file *file, struct vm_area_struct *vma)
{
	struct morsel *m = morsel_of(file_inode(file));

	if (!(vma->vm_flags & VM_MAYSHARE) || !m->level)
		return -EINVAL;
	if (vma->vm_flags & VM_EXEC)
		return -EPERM;
	/* Nothing fails any more that mmap() does from here on. */
	if (!morsel_map_begin(m))
		return -ENODEV;
	if (!morsel_fits(m, vma)) {
		morsel_map_end(m);
		return morsel_is_gone(m) ? -ENODEV : -EINVAL;
	}
	morsel_set_flags(m, vma);
	vma->vm_ops = &morsel_vm_ops;
	morsel_epoch_map(vma);
	return 0;
}

/**
 * morsel_get_unmapped_area() - an address for a mapping
 * @file: the morsel
 * @addr: what the program wants, or 0
 * @len: length in bytes
 * @pgoff: offset in pages
 * @flags: MAP_*
 *
 * Return: a multiple of the unit, or an error.
 */
unsigned long morsel_get_unmapped_area(struct file *file, unsigned long addr,
				       unsigned long len, unsigned long pgoff,
				       unsigned long flags)
{
	struct morsel *m = morsel_of(file_inode(file));
	u64 unit;

	/* What is mapped may be moved nevertheless: mmap() says that it is gone. */
	if (!m->level && morsel_is_gone(m))
		return -ENODEV;
	if (!m->level || pgoff)
		return -EINVAL;
	unit = morsel_unit(m);
	if (!IS_ALIGNED(len, unit))
		return -EINVAL;
	if (flags & MAP_FIXED)
		return IS_ALIGNED(addr, unit) ? addr : -EINVAL;
	if (!addr)
		addr = m->address;
	if (IS_ALIGNED(addr, unit) && addr) {
		unsigned long got = mm_get_unmapped_area(current->mm, NULL, addr,
							 len, 0, flags);

		if (got == addr)
			return got;
	}
	/* Somewhere, with room to round up; below 128 TiB, if it can be there. */
	len += unit - PAGE_SIZE;
	addr = len > DEFAULT_MAP_WINDOW ? DEFAULT_MAP_WINDOW + PAGE_SIZE : 0;
	addr = mm_get_unmapped_area(current->mm, NULL, addr, len, 0, flags);
	return IS_ERR_VALUE(addr) ? addr : round_up(addr, unit);
}

#ifdef CONFIG_CEASEFIRE_DEBUG
/* What pmd_bad() says nothing about. */
unsigned long morsel_table_rights(void)
{
	CF_MUTATION(morsel_bad_rights, return 0);
	return _PAGE_RW;
}

/* Is an entry, of any level, no way to write? */
bool morsel_denies(unsigned long entry, unsigned int write)
{
	CF_MUTATION(morsel_gup_leaves, return false);
	return write && !(entry & _PAGE_RW);
}
#endif
