// SPDX-License-Identifier: GPL-2.0
/*
 * Lazy translation coherence: which munmap() is lazy.
 *
 * As fast page recycling (../fpr) does it, a lazy munmap() tags frames instead of
 * flushing, and keeps addresses and tables. But nothing is used again before all
 * CPUs have caught up: no frame, no address. So it does not matter what is mapped
 * next, and memory that is executable can be lazy: a stale fetch meets the code
 * that was there. For the same reason other rights need no flush (../fpr/rights.c).
 *
 * Lazy is what ends a mapping whose address the kernel has chosen: those come from
 * the arena. What must be flushed for is said once, for all mechanisms, in
 * ../core/gather.c; here is what such a mapping may be of: the page cache by the
 * usual path, shared memory, anonymous memory.
 *
 * How long what was left can be used is bounded by latr_settle_ms and two ticks,
 * and where there is no tick by latr_late_ms (I9, ../core/tick.c). How much memory
 * waits is bounded by latr_held_limit: file pages stay in the page cache, but
 * anonymous ones wait.
 *
 * Locks: map_area under mmap_lock held for writing; eligible() there, too, or
 * under the downgraded lock of munmap().
 * Callers: ../core (struct cf_policy), begin_new_exec().
 */
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/mman.h>
#include <linux/pkeys.h>
#include <linux/shmem_fs.h>
#include <linux/sizes.h>
#include <linux/userfaultfd_k.h>
#include <linux/vmstat.h>

#include <asm/tlb.h>

#include "../../internal.h"
#include "latr.h"

enum latr_enabled latr_enabled __read_mostly = LATR_ASK;

/* From a skip on: until ticks shall catch up; until CPUs are interrupted. */
unsigned int latr_settle_ms __read_mostly = 12;
unsigned int latr_late_ms __read_mostly = 100;

/* Anonymous pages of one process that may wait. */
unsigned long latr_held_limit __read_mostly = SZ_16M >> PAGE_SHIFT;

/* Mappings whose place is not only for the kernel to choose. */
#define LATR_MAP_EXCLUDES	(MAP_FIXED | MAP_FIXED_NOREPLACE | MAP_32BIT | \
				 MAP_GROWSDOWN | MAP_HUGETLB)

/* An address of the arena for what the kernel may place. */
static unsigned long latr_map_area(struct file *file, unsigned long addr,
				   unsigned long len, unsigned long pgoff,
				   unsigned long flags, vm_flags_t vm_flags)
{
	struct mm_struct *mm = current->mm;
	struct cf_ctx *ctx = mm->cf;

	/* With a protection key the usual way has more to do (../fpr/rights.c). */
	if (READ_ONCE(latr_enabled) == LATR_NEVER || addr ||
	    flags & LATR_MAP_EXCLUDES ||
	    vm_flags & (ARCH_VM_PKEY_FLAGS | VM_SHADOW_STACK) ||
	    (file && !cf_file_eligible(file)))
		return 0;
	if (!ctx)
		ctx = cf_ctx_create(mm);
	if (!ctx || len > CF_ARENA_MAX_MAP(&ctx->arena))
		return 0;
	return cf_arena_get(ctx, file, len, pgoff);
}

/* Does somebody else map the pages, or watch them? */
static bool latr_is_plain(struct vm_area_struct *vma)
{
	CF_MUTATION(latr_any_mapping, return true);
	return !(vma->vm_flags & (VM_SPECIAL | VM_HUGETLB | VM_SHADOW_STACK |
				  ARCH_VM_PKEY_FLAGS)) &&
	       !vma_is_dax(vma) && !userfaultfd_armed(vma);
}

static bool latr_eligible(struct vm_area_struct *vma)
{
	return latr_is_plain(vma) &&
	       (vma_is_anonymous(vma) ||
		vma->vm_ops->map_pages == filemap_map_pages ||
		(vma->vm_file && shmem_mapping(vma->vm_file->f_mapping)));
}

static enum cf_verdict latr_must_flush(struct mmu_gather *tlb)
{
	return READ_ONCE(latr_enabled) == LATR_NEVER ? CF_FLUSH_DISABLED :
						       CF_SKIP;
}

/**
 * __latr_exec() - a program begins
 * @mm: its address space, in which nothing but the stack is mapped
 *
 * Also one that gains privileges: it is not its caller who decides that.
 */
void __latr_exec(struct mm_struct *mm)
{
	if (READ_ONCE(latr_enabled) == LATR_ALWAYS)
		cf_policy_begin(mm, &latr_policy);
}

static_assert(LATR_FLUSH_POISON - LATR_FLUSH_LOCAL == CF_FLUSH_POISON);

const struct cf_policy latr_policy = {
	.map_area	= latr_map_area,
	.wanted		= ~VM_NONE,
	.eligible	= latr_eligible,
	.must_flush	= latr_must_flush,
	.huge		= true,
	.start_ms	= &latr_settle_ms,
	.late_ms	= &latr_late_ms,
	.held_limit	= &latr_held_limit,
	.tables_max	= SZ_8M,
	.late		= LATR_LATE,
	.skipped	= LATR_SKIP,
	.skipped_pages	= LATR_SKIP_PAGES,
	.flushed	= LATR_FLUSH_LOCAL,
};
