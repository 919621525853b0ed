// SPDX-License-Identifier: GPL-2.0
/*
 * A short way for the munmap() of a mapping inside the quarantine.
 *
 * Stock munmap() is made for any number of mappings, split at both ends, and
 * carries them in a tree of its own. Programs that profit from FPR unmap what
 * they have mapped, one mapping at a time; __fpr_munmap_single() does that and
 * nothing else, in the same order and under the same locks.
 *
 * Locks: the first half runs under mmap_lock held for writing; what it decides
 * about the arena holds under the downgraded lock, since no writer can come
 * between. Caller: do_vmi_align_munmap().
 */
#include <linux/file.h>
#include <linux/mempolicy.h>
#include <linux/mm.h>
#include <linux/mmu_notifier.h>
#include <linux/rmap.h>
#include <linux/uprobes.h>
#include <linux/userfaultfd_k.h>

#include <asm/tlb.h>

#include "../../internal.h"
#include "fpr.h"

/* What the short way does not handle; the usual one does. */
#define FPR_SINGLE_EXCLUDES	(VM_LOCKED | VM_ACCOUNT | VM_SEALED)

static bool fpr_single_simple(struct vm_area_struct *vma)
{
	CF_MUTATION(fpr_single_any, return true);
	return !(vma->vm_flags & FPR_SINGLE_EXCLUDES) &&
	       !userfaultfd_armed(vma);
}

static bool fpr_single_eligible(struct cf_ctx *ctx, struct vm_area_struct *vma,
				unsigned long start, unsigned long end)
{
	return vma->vm_start == start && vma->vm_end == end &&
	       fpr_single_simple(vma) &&
	       cf_policy_of(vma->vm_mm)->eligible(vma) &&
	       !mm_has_notifiers(vma->vm_mm) && cf_arena_may_keep(ctx) &&
	       cf_arena_range(&ctx->arena, start, end) == CF_RANGE_INSIDE;
}

/* As remove_vma(), but the structure may be kept for the next mapping. */
static void fpr_remove_vma(struct cf_ctx *ctx, struct vm_area_struct *vma)
{
	vma_close(vma);
	if (vma->vm_file)
		fput(vma->vm_file);
	mpol_put(vma_policy(vma));
	if (!fpr_vma_keep(ctx, vma))
		vm_area_free(vma);
}

/**
 * __fpr_munmap_single() - munmap() of exactly one eligible mapping
 * @vms: the munmap, nothing was done yet; mmap_lock, held for writing, is dropped
 *	on success if it says so
 *
 * The order is that of the usual way: write-lock the mapping, take it out of
 * the tree, mark it detached, downgrade; no fault can run in it from then on.
 * Clear the entries, hide it from rmap, flush or skip, free. No notifier can be
 * registered meanwhile, that takes mmap_lock for writing.
 *
 * Return: true if it is done, false if nothing was done.
 */
bool __fpr_munmap_single(struct vma_munmap_struct *vms)
{
	unsigned long start = vms->start, end = vms->end;
	struct vma_iterator *vmi = vms->vmi;
	struct vm_area_struct *vma = vms->vma;
	bool unlock = vms->unlock;
	struct zap_details details = {
		.zap_flags = ZAP_FLAG_DROP_MARKER | ZAP_FLAG_UNMAP,
		.even_cows = true,
	};
	struct mm_struct *mm = vma->vm_mm;
	struct cf_ctx *ctx = mm->cf;
	struct mmu_gather tlb;

	if ((!(vma->vm_flags & VM_FPR) && !mm->cf_policy) ||
	    !fpr_single_eligible(ctx, vma, start, end))
		return false;
	vma_start_write(vma);
	vma_mark_detached(vma, true);
	if (vma_iter_clear_gfp(vmi, start, end, GFP_KERNEL)) {
		/* The usual way starts afresh, and fails in its own time. */
		vma_mark_detached(vma, false);
		vma_iter_set(vmi, start);
		return false;
	}
	cf_arena_enter(&ctx->arena, end);
	mm->map_count--;
	if (unlock)
		mmap_write_downgrade(mm);

	tlb_gather_mmu(&tlb, mm);
	tlb.cf_marked = 1;
	update_hiwater_rss(mm);
	uprobe_munmap(vma, start, end);
	unmap_page_range(&tlb, vma, start, end, &details);
	unlink_anon_vmas(vma);
	unlink_file_vma(vma);
	tlb_finish_mmu(&tlb);

	update_hiwater_vm(mm);
	vm_stat_account(mm, vma->vm_flags, -vma_pages(vma));
	fpr_remove_vma(ctx, vma);
	if (unlock)
		mmap_read_unlock(mm);
	return true;
}
