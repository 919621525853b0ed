// SPDX-License-Identifier: GPL-2.0
/*
 * A short way for mmap() of small files, beside that of munmap() in munmap.c.
 *
 * Programs that map many files map each for a moment and read it. Stock mmap()
 * is made for any mapping at any place: it looks for what it replaces, for
 * neighbours to merge with, reserves memory for a tree that may split, and
 * leaves each page to a fault. An address of the arena is a hole by itself, so
 * for a mapping that is only read __fpr_mmap_single() does what is left of
 * __mmap_region(), in the same order and under the same lock, with three savings:
 *
 * - The tree is walked once. The walk shows that the range is a hole (else the
 *   usual way is taken), and the store goes on from there.
 * - The structure of the last mapping that munmap() removed is used again
 *   (fpr_vma_take()).
 * - Pages that are in the page cache are mapped at once, as a fault beside them
 *   would do it (fpr_map_present()).
 *
 * What cannot concern such a mapping is left out: it is not writable, so that
 * nothing is accounted and no commit is checked; it is smaller than a huge page,
 * so khugepaged has nothing to collapse; it is not locked, not executable. Where
 * it might be merged with a neighbour the usual way is taken.
 *
 * Locks: mmap_lock held for writing; fpr_vma_keep() also under the downgraded
 * lock of munmap(), beside which there is no other writer.
 * Callers: do_mmap(), munmap.c, context.c (exit).
 */
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/ksm.h>
#include <linux/mm.h>
#include <linux/mm_inline.h>
#include <linux/mman.h>
#include <linux/perf_event.h>
#include <linux/rmap.h>
#include <linux/shmem_fs.h>
#include <linux/uprobes.h>
#include <linux/userfaultfd_k.h>

#include "../../internal.h"
#include "fpr.h"

/* Flags of mappings for which the usual way has more to do. */
#define FPR_MMAP_EXCLUDES	(VM_WRITE | VM_EXEC | VM_LOCKED | VM_SPECIAL | \
				 VM_HUGETLB | VM_GROWSDOWN | VM_SEALED)

/* What a fault maps around it, at most; see fault_around_pages. */
#define FPR_PRESENT_PAGES	16UL

/**
 * fpr_vma_keep() - keep the structure of a mapping that is gone
 * @ctx: context of its process
 * @vma: detached, closed, in no tree, nothing hangs off it
 *
 * Not for other processes, and one only, so there is nothing to reclaim.
 *
 * lock_vma_under_rcu() may still find it, and lock it for a moment: @detached
 * tells it to look again, until fpr_vma_take().
 *
 * Return: false if there is one already; the caller frees this one.
 */
bool fpr_vma_keep(struct cf_ctx *ctx, struct vm_area_struct *vma)
{
	if (ctx->vma || vma->anon_vma || vma_policy(vma) ||
	    anon_vma_name(vma) || vma->vm_private_data)
		return false;
#ifdef CONFIG_NUMA_BALANCING
	if (vma->numab_state)
		return false;
#endif
	ctx->vma = vma;
	return true;
}

/*
 * The structure for a new mapping; as from vm_area_alloc() but for the lock.
 *
 * Who has found it in the tree under RCU, for the old mapping, has not locked it
 * yet, or holds its lock for a moment:
 *
 *	lock_vma_under_rcu()			mmap()
 *	locks it for reading
 *	@detached: unlocks, looks again		vma_start_write(): waits for that
 *						fills it, @detached = false
 *	cannot lock it (vm_lock_seq)		mmap_write_unlock()
 *	locks it; not the address that it
 *	looks for, or the right mapping
 *
 * What it reads without the lock (vm_mm, vm_lock, vm_lock_seq) stays as it was.
 * All others who look at mappings hold mmap_lock or found it by rmap, which it
 * has left.
 */
static struct vm_area_struct *fpr_vma_take(struct cf_ctx *ctx,
					   struct mm_struct *mm)
{
	struct vm_area_struct *vma = ctx->vma;

	if (!vma) {
		vma = vm_area_alloc(mm);
		if (vma)
			vma_start_write(vma);
		return vma;
	}
	ctx->vma = NULL;
	vma_start_write(vma);
	vma->vm_ops = &vma_dummy_vm_ops;
	vma->vm_userfaultfd_ctx = NULL_VM_UFFD_CTX;
#ifdef CONFIG_SWAP
	atomic_long_set(&vma->swap_readahead_info, 0);
#endif
	vma_mark_detached(vma, false);
	return vma;
}

/* userfaultfd can ask for the faults of shared memory that is in the cache. */
static bool fpr_may_prefault(struct vm_area_struct *vma)
{
	CF_MUTATION(fpr_present_shared, return true);
	return !shmem_mapping(vma->vm_file->f_mapping);
}

/*
 * Map what is in the page cache, as the fault of one of its pages would do with
 * those around it: the same function, which knows the end of the file, locks
 * pages, skips those that are being read, and counts. The fault that is saved
 * would find no page that cannot be mapped here: those are left to it.
 *
 * Only where the page table is there (the arena keeps them), so that nothing is
 * allocated. Not for writable mappings: a write would meet an entry, and its
 * copy need a flush. The mapping is in the trees, so truncation finds the
 * entries, and nobody else finds it before mmap_lock is dropped.
 */
static void fpr_map_present(struct vm_area_struct *vma)
{
	unsigned long addr = vma->vm_start, pages = vma_pages(vma);
	struct vm_fault vmf = {
		.vma = vma, .address = addr, .pgoff = vma->vm_pgoff,
	};
	pmd_t *pmd, entry;

	if (pages > FPR_PRESENT_PAGES ||
	    !cf_policy_of(vma->vm_mm)->eligible(vma) ||
	    !(vma->vm_flags & VM_READ) || vma->vm_flags & VM_LOCKED ||
	    !fpr_may_prefault(vma) ||
	    pmd_addr_end(addr, vma->vm_end) != vma->vm_end)
		return;
	pmd = mm_find_pmd(vma->vm_mm, addr);
	if (!pmd)
		return;
	entry = pmdp_get_lockless(pmd);
	if (!pmd_present(entry) || pmd_leaf(entry))
		return;
	vmf.pmd = pmd;
	vma->vm_ops->map_pages(&vmf, vma->vm_pgoff, vma->vm_pgoff + pages - 1);
}

/* Is a range a hole, with no mapping beside it to be merged with? */
static bool fpr_is_lone_hole(struct vma_iterator *vmi, unsigned long addr,
			     unsigned long end, unsigned long pgoff)
{
	struct ma_state *mas = &vmi->mas;
	struct vm_area_struct *next;

	if (mas_walk(mas) || mas->index >= addr || mas->last < end - 1)
		return false;
	CF_MUTATION(fpr_never_merged, return true);
	if (mas->last > end - 1)
		return true;
	/* The usual neighbour is that of the mapping before, above this one. */
	next = find_vma(current->mm, end);
	return next && next->vm_pgoff != pgoff + ((end - addr) >> PAGE_SHIFT);
}

/* The address may be one that was chosen, and the file a device. */
static bool fpr_single_file(struct file *file)
{
	CF_MUTATION(latr_short_any, return true);
	return cf_file_eligible(file);
}

static bool fpr_single_excluded(vm_flags_t vm_flags)
{
	CF_MUTATION(fpr_present_writable, vm_flags &= ~VM_WRITE);
	return vm_flags & FPR_MMAP_EXCLUDES;
}

/**
 * __fpr_mmap_single() - mmap() of a small file that is only read
 * @file: the file
 * @addr: its address
 * @len: length in bytes, page aligned
 * @vm_flags: flags of the mapping
 * @pgoff: offset in pages
 *
 * Context: mmap_lock held for writing; do_mmap() has checked all that does not
 * depend on the place.
 * Return: the address, 0 if nothing was done, or an error.
 */
unsigned long __fpr_mmap_single(struct file *file, unsigned long addr,
				unsigned long len, vm_flags_t vm_flags,
				unsigned long pgoff)
{
	VMA_ITERATOR(vmi, current->mm, addr);
	bool maywrite = is_shared_maywrite(vm_flags);
	struct mm_struct *mm = current->mm;
	struct cf_ctx *ctx = mm->cf;
	unsigned long end = addr + len;
	struct vm_area_struct *vma;
	int error;

	/* The arena has just given it; it may have been chosen otherwise. */
	if (!ctx || addr != ctx->arena.next)
		return 0;
	if (!file || !fpr_single_file(file) ||
	    fpr_single_excluded(vm_flags) || len >= PMD_SIZE ||
	    !arch_validate_flags(vm_flags) ||
	    !may_expand_vm(mm, vm_flags, len >> PAGE_SHIFT) ||
	    !fpr_is_lone_hole(&vmi, addr, end, pgoff))
		return 0;
	/* As mmap_region(): no sealed file, and none is sealed meanwhile. */
	if (maywrite) {
		error = mapping_map_writable(file->f_mapping);
		if (error)
			return error;
	}
	error = -ENOMEM;
	vma = fpr_vma_take(ctx, mm);
	if (!vma)
		goto out;
	vma_set_range(vma, addr, end, pgoff);
	vm_flags_init(vma, vm_flags);
	vma->vm_page_prot = vm_get_page_prot(vm_flags);
	vma->vm_file = get_file(file);
	error = mmap_file(file, vma);
	if (error)
		goto free_vma;
	__fpr_mapped(vma);

	/*
	 * Nothing can be undone from here: a driver may have mapped something.
	 * A node or two for the tree come in any case, and from no reserve.
	 */
	vma_iter_config(&vmi, addr, end);
	mas_store_gfp(&vmi.mas, vma, GFP_KERNEL | __GFP_NOFAIL);
	mm->map_count++;
	vma_link_file(vma);
	ksm_add_vma(vma);
	perf_event_mmap(vma);
	vm_stat_account(mm, vma->vm_flags, len >> PAGE_SHIFT);
	if (unlikely(vma->vm_flags & VM_LOCKED)) {
		if (!vma_supports_mlock(vma))
			vm_flags_clear(vma, VM_LOCKED_MASK);
		else
			mm->locked_vm += len >> PAGE_SHIFT;
	}
	uprobe_mmap(vma);
	vm_flags_set(vma, VM_SOFTDIRTY);
	vma_set_page_prot(vma);
	fpr_map_present(vma);
	error = 0;
	goto out;

free_vma:
	fput(vma->vm_file);
	vma->vm_file = NULL;
	/* Undo what a device driver may have mapped, as the usual way does. */
	zap_page_range_single(vma, addr, len, NULL);
	vma_mark_detached(vma, true);
	vm_area_free(vma);
out:
	if (maywrite)
		mapping_unmap_writable(file->f_mapping);
	return error ?: addr;
}
