// SPDX-License-Identifier: GPL-2.0
/*
 * Fast page recycling: which mappings, and which munmap(), may skip a flush.
 *
 * Policy in two steps, each of which can only say no:
 *   1. mmap() with MAP_FPR: a regular file or block device, address chosen by
 *      the kernel. It gets VM_FPR and an address of the arena.
 *   2. munmap(): all mappings in the range are VM_FPR, still inside the
 *      quarantine, and use the page cache (filemap_map_pages) or are anonymous;
 *      the switch is on, and the context is wider than one mapping. What all
 *      mechanisms have against a skip is in ../core/gather.c; rights.c has what
 *      may become of the frames.
 *
 * Locks: step 1 and the decision in step 2 run under mmap_lock held for
 * writing, the rest of munmap() under the downgraded lock.
 */
#include <linux/compat.h>
#include <linux/fs.h>
#include <linux/hugetlb.h>
#include <linux/mm.h>
#include <linux/mman.h>
#include <linux/pkeys.h>
#include <linux/vmstat.h>

#include <asm/tlb.h>

#include <trace/events/ceasefire.h>

#include "../../internal.h"
#include "fpr.h"

/* Whether new mappings get MAP_FPR and munmap() may skip. */
bool fpr_enabled __read_mostly = IS_ENABLED(CONFIG_CEASEFIRE_FPR_DEFAULT_ON);

/* Anonymous memory that is shared, or grows by itself. */
#define FPR_ANON_EXCLUDES	(MAP_SHARED | MAP_GROWSDOWN)

static bool fpr_may_execute(vm_flags_t vm_flags)
{
	CF_MUTATION(fpr_allow_exec, return false);
	return vm_flags & VM_EXEC;
}

/**
 * fpr_vma_eligible() - are the pages of a mapping what FPR can handle?
 * @vma: the mapping
 *
 * Not executable ones: a recycled frame may hold a file that the process may
 * read but not execute, and a stale translation would execute it (I2). Nor those
 * with a protection key, which may mean something else before the flush.
 *
 * Return: true if it is marked and uses the page cache by the usual path, or is
 * anonymous.
 */
bool fpr_vma_eligible(struct vm_area_struct *vma)
{
	vm_flags_t no = VM_SPECIAL | VM_HUGETLB | VM_EXEC | ARCH_VM_PKEY_FLAGS;

	CF_MUTATION(fpr_allow_exec, no &= ~VM_EXEC);
	CF_MUTATION(fpr_allow_keyed, no &= ~ARCH_VM_PKEY_FLAGS);
	return (vma->vm_flags & (VM_FPR | no)) == VM_FPR &&
	       (vma_is_anonymous(vma) ||
		vma->vm_ops->map_pages == filemap_map_pages);
}

/* Is the mapping to be one with MAP_FPR, by its flag or for the process? */
static bool fpr_is_asked(struct file *file, unsigned long len,
			 unsigned long flags)
{
	if (flags & MAP_FPR)
		return true;
	if (!(file || fpr_force) || len > READ_ONCE(current->mm->fpr_auto))
		return false;
	/* Nobody has asked: not for what exec maps, and the dynamic linker. */
	return !current->in_execve && (!(flags & MAP_DENYWRITE) || fpr_force);
}

/* An address for such a mapping; counts why not. */
static unsigned long fpr_map_area(struct file *file, unsigned long addr,
				  unsigned long len, unsigned long pgoff,
				  unsigned long flags, vm_flags_t vm_flags)
{
	struct mm_struct *mm = current->mm;
	struct cf_ctx *ctx = mm->cf;
	enum vm_event_item why;
	unsigned long area;

	why = FPR_MAP_INELIGIBLE_DISABLED;
	if (!READ_ONCE(fpr_enabled))
		goto no;
	why = FPR_MAP_INELIGIBLE_FILE;
	if (file ? !cf_file_eligible(file) : flags & FPR_ANON_EXCLUDES)
		goto no;
	why = FPR_MAP_INELIGIBLE_EXEC;
	if (fpr_may_execute(vm_flags))
		goto no;
	why = FPR_MAP_INELIGIBLE_ADDRESS;
	if (addr || flags & (MAP_FIXED | MAP_32BIT) || in_compat_syscall())
		goto no;
	why = FPR_MAP_INELIGIBLE_ARENA;
	if (!ctx)
		ctx = cf_ctx_create(mm);
	if (!ctx)
		goto no;
	why = FPR_MAP_INELIGIBLE_LIMIT;
	if (len > CF_ARENA_MAX_MAP(&ctx->arena))
		goto no;
	why = FPR_MAP_INELIGIBLE_ARENA;
	area = cf_arena_get(ctx, file, len, pgoff);
	if (!area)
		goto no;
	count_vm_event(FPR_MAP);
	return area | FPR_MAP_MARKED;
no:
	count_vm_event(why);
	return 0;
}

/**
 * __fpr_map_area() - an mmap() that is not only the usual one
 * @file: what is mapped, NULL for anonymous memory
 * @addr: address or hint of the caller
 * @len: length in bytes
 * @pgoff: offset in pages
 * @flags: MAP_*
 * @vm_flags: flags of the mapping
 *
 * With MAP_FPR, or in a process that has chosen that for files (fpr_auto) or
 * another mechanism.
 *
 * Context: mmap_lock held for writing.
 * Return: an address of the arena, with FPR_MAP_MARKED if the mapping is to get
 * VM_FPR; 0 for the usual one.
 */
unsigned long __fpr_map_area(struct file *file, unsigned long addr,
			     unsigned long len, unsigned long pgoff,
			     unsigned long flags, vm_flags_t vm_flags)
{
	unsigned long area = 0;

	if (fpr_is_asked(file, len, flags))
		area = fpr_map_area(file, addr, len, pgoff, flags, vm_flags);
	return area ?: cf_map_area(file, addr, len, pgoff, flags, vm_flags);
}

/**
 * __fpr_mapped() - the file has set up a new mapping
 * @vma: the mapping, not yet in the tree
 *
 * A driver behind a regular file (debugfs, sysfs, memfd_secret()) maps memory
 * of its own; such a mapping lives in the arena without the flag.
 */
void __fpr_mapped(struct vm_area_struct *vma)
{
	CF_MUTATION(fpr_no_mapped, return);
	if (!(vma->vm_flags & VM_FPR) || fpr_vma_eligible(vma))
		return;
	vm_flags_clear(vma, VM_FPR);
	count_vm_event(FPR_MAP_INELIGIBLE_FILE);
}

/* Does the process leave nothing to what it maps next? */
static bool fpr_leaves_nothing(struct mm_struct *mm)
{
	CF_MUTATION(fpr_mapping_skips, return false);
	return cf_is_mapping_only(mm);
}

/* What FPR alone has against leaving out the flush of a marked gather. */
static enum cf_verdict fpr_must_flush(struct mmu_gather *tlb)
{
	if (!READ_ONCE(fpr_enabled))
		return CF_FLUSH_DISABLED;
	if (fpr_leaves_nothing(tlb->mm))
		return CF_FLUSH_CONTEXT;
	return CF_SKIP;
}

static_assert(FPR_FLUSH_POISON - FPR_FLUSH_LOCAL == CF_FLUSH_POISON);

const struct cf_policy fpr_policy = {
	.wanted		= VM_FPR,
	.eligible	= fpr_vma_eligible,
	.must_flush	= fpr_must_flush,
	.recycles	= true,
	.tables_max	= SZ_2M,
	.skipped	= FPR_SKIP,
	.skipped_pages	= FPR_SKIP_PAGES,
	.flushed	= FPR_FLUSH_LOCAL,
};

static int __init fpr_policy_init(void)
{
	cf_usual_policy = &fpr_policy;
	return 0;
}
core_initcall(fpr_policy_init);
