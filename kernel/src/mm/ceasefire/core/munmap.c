// SPDX-License-Identifier: GPL-2.0
/*
 * munmap() and the quarantine: decides that the page tables stay (I4), and marks
 * the gather of an munmap() whose flush may be left out. Gathers are marked here,
 * and in the short way of a mechanism, and nowhere else: whatever else removes
 * entries flushes as ever (I5).
 *
 * Locks: __cf_munmap_prepare() runs under mmap_lock held for writing; what it
 * decides about the arena holds under the downgraded lock, since no writer can
 * come between. Callers: do_vmi_align_munmap(), vms_clear_ptes().
 */
#include <linux/mm.h>
#include <linux/rmap.h>
#include <linux/vmstat.h>

#include <asm/tlb.h>

#include <trace/events/ceasefire.h>

#include "../../internal.h"
#include "core.h"

/**
 * __cf_munmap_prepare() - how an munmap() lies to the quarantine
 * @vms: the munmap, nothing was done yet
 *
 * Context: mmap_lock held for writing; also mremap(), brk() and shmdt().
 */
void __cf_munmap_prepare(struct vma_munmap_struct *vms)
{
	struct cf_ctx *ctx = vms->vma->vm_mm->cf;

	switch (cf_arena_range(&ctx->arena, vms->start, vms->end)) {
	case CF_RANGE_OUTSIDE:
		break;
	case CF_RANGE_INSIDE:
		if (!cf_arena_may_keep(ctx)) {
			cf_arena_settle(ctx);
			break;
		}
		cf_arena_enter(&ctx->arena, vms->end);
		vms->cf_keep = true;
		break;
	case CF_RANGE_STRADDLES:
		CF_MUTATION(fpr_no_munmap_prepare, return);
		cf_arena_settle(ctx);
		break;
	}
}

/**
 * __cf_munmap_begin() - the gather of an munmap() begins
 * @tlb: the gather
 * @vms: the munmap
 * @mas_detach: its mappings, positioned at the second one
 */
void __cf_munmap_begin(struct mmu_gather *tlb, struct vma_munmap_struct *vms,
		       struct ma_state *mas_detach)
{
	struct cf_ctx *ctx = tlb->mm->cf;
	const struct cf_policy *policy = cf_policy_of(tlb->mm);
	bool wanted = vms->vma->vm_flags & policy->wanted;
	struct vm_area_struct *vma;
	enum cf_verdict why;
	bool eligible;

	/* Most that are unmapped beside a process with FPR. */
	if (likely(!wanted && vms->vma_count == 1))
		return;
	eligible = policy->eligible(vms->vma);
	if (unlikely(vms->vma_count > 1)) {
		mas_for_each(mas_detach, vma, ULONG_MAX) {
			wanted |= !!(vma->vm_flags & policy->wanted);
			eligible &= policy->eligible(vma);
		}
		mas_set(mas_detach, 1);
	}
	if (vms->cf_keep && eligible) {
		tlb->cf_marked = 1;
		return;
	}
	if (!wanted)
		return;
	why = vms->cf_keep ? CF_FLUSH_MIXED : CF_FLUSH_OUTSIDE;
	count_vm_event(policy->flushed + why);
	if (ctx)
		trace_fpr_flush(ctx->id, vms->start, vms->end, why);
}

/**
 * __cf_munmap_keep_tables() - instead of free_pgtables()
 * @vms: the munmap
 * @mas_detach: its mappings
 *
 * Hides the mappings from rmap, as free_pgtables() does, and leaves the tables
 * for cf_arena_settle().
 *
 * Return: false if the tables are to be freed now.
 */
bool __cf_munmap_keep_tables(struct vma_munmap_struct *vms,
			     struct ma_state *mas_detach)
{
	struct unlink_vma_file_batch batch;
	struct vm_area_struct *vma;

	if (!vms->cf_keep)
		return false;
	if (likely(vms->vma_count == 1)) {
		unlink_anon_vmas(vms->vma);
		unlink_file_vma(vms->vma);
		return true;
	}
	unlink_file_vma_batch_init(&batch);
	mas_set(mas_detach, 0);
	mas_for_each(mas_detach, vma, ULONG_MAX) {
		unlink_anon_vmas(vma);
		unlink_file_vma_batch_add(&batch, vma);
	}
	unlink_file_vma_batch_final(&batch);
	return true;
}
