// SPDX-License-Identifier: GPL-2.0
/*
 * Recycling: parked frames that page faults of the same context use again,
 * without a flush.
 *
 * A file system that is asked for pages allocates others in the same call; so a
 * fault names the mapping that it is about, and only pages of that come from the
 * pool (I2). Anonymous pages come from it in the fault itself, and in no other
 * place: what fork() copies is for another process.
 *
 * Locks: cf_ctx.lock. Callers: page cache allocation sites, __do_fault(), faults
 * of anonymous memory.
 */
#include <linux/cpuset.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <linux/memcontrol.h>
#include <linux/mempolicy.h>
#include <linux/mm.h>
#include <linux/pagemap.h>
#include <linux/swap.h>
#include <linux/vmstat.h>

#include <trace/events/ceasefire.h>

#include "../../internal.h"
#include "fpr.h"

/* May a request get this frame, as the page allocator would decide? */
static bool fpr_frame_suits(struct page *page, gfp_t gfp)
{
	int nid = page_to_nid(page);

	CF_MUTATION(fpr_recycle_anywhere, return !PageHWPoison(page));
#ifdef CONFIG_NUMA
	if (current->mempolicy || cpuset_do_page_mem_spread())
		return false;
#endif
	/* Nothing that takes a lock: cpuset_node_allowed() may. */
	if (cpusets_enabled() && !node_isset(nid, current->mems_allowed))
		return false;
	return nid == numa_node_id() &&
	       page_zonenum(page) <= gfp_zone(gfp) &&
	       get_pageblock_migratetype(page) == gfp_migratetype(gfp) &&
	       !PageHWPoison(page);
}

/*
 * With protection keys threads of a process differ in their rights, and a
 * stale translation has the key of the mapping it came from. What reads into
 * recycled frames is not only the mapping of the fault, which has a key or
 * not: read-ahead does not stop at its ends. So once a mapping has had a key the
 * process does not recycle any more; pkey_free() takes no key off a mapping.
 *
 * Under the lock of the pool, and the frame is taken under the same. If there
 * was no key yet, the frame was parked before the first one came, and
 * __fpr_mprotect(), which notes the key first, sees what is owed.
 */
static bool fpr_has_keys(struct cf_ctx *ctx)
{
	CF_MUTATION(fpr_recycle_keyed, return false);
	return READ_ONCE(ctx->keyed);
}

/*
 * Under the lock of the pool, too: a process that has switched to a mechanism that
 * does not recycle has flushed before, and parks what it unmaps from then on under
 * that lock.
 */
static bool fpr_may_recycle(struct cf_ctx *ctx)
{
	CF_MUTATION(latr_recycles, return true);
	return cf_ctx_policy(ctx)->recycles;
}

/* What is faulted in for another process leaves its translations there. */
static bool fpr_is_own_fault(struct mm_struct *mm)
{
	CF_MUTATION(fpr_recycle_remote, return true);
	return mm == current->mm;
}

/* Take a frame out of one of the lists of a pool. */
static struct page *fpr_pool_get(struct cf_ctx *ctx, struct list_head *list,
				 gfp_t gfp)
{
	struct page *page;

	if (list_empty_careful(list))
		return NULL;
	spin_lock_irq(&ctx->lock);
	page = list_first_entry_or_null(list, struct page, lru);
	if (page && fpr_frame_suits(page, gfp) && !fpr_has_keys(ctx) &&
	    fpr_may_recycle(ctx)) {
		list_del(&page->lru);
		ctx->nr--;
	} else {
		/* Let the next request see another one. */
		list_rotate_left(list);
		page = NULL;
	}
	spin_unlock_irq(&ctx->lock);
	return page;
}

/* Make it a page in use. */
static struct folio *fpr_recycled(struct cf_ctx *ctx, struct page *page,
				  gfp_t gfp)
{
	cf_account_parked(page_pgdat(page), -1);
	/* Charged anew by whoever uses it. */
	cf_charge_drop(page, 0);
	ceasefire_recycled(page);
	if (page_private(page) & CF_PARKED_WRITABLE)
		cf_wipe(page, 0);

	/*
	 * A tagged frame here is no accident, see __cf_assert_clean(). Nor may
	 * the tag go for a moment: who finds out that the frame is bad looks at it.
	 */
	set_page_private(page, CF_RECYCLED);
	post_alloc_hook(page, 0, gfp);
	set_page_refcounted(page);
	count_vm_event(FPR_RECYCLE);
	trace_fpr_recycle(ctx->id, page_to_pfn(page));
	return page_folio(page);
}

/*
 * Does the file system put nothing but what the file has into its pages, also before they
 * are up to date? The process may look through a stale translation then. Others keep
 * pointers there for a while (EROFS), or data of other files (clusters that are unpacked
 * in place), or read by ways that nobody has looked at. What is decrypted or verified in
 * place is not what the process may read until that is done.
 */
static bool fpr_shows_only_itself(struct address_space *mapping)
{
	struct inode *inode = mapping->host;

	CF_MUTATION(fpr_recycle_early, return true);
	if (IS_ENCRYPTED(inode) || IS_VERITY(inode))
		return false;
	switch (inode->i_sb->s_magic) {
	case EXT4_SUPER_MAGIC: /* and ext2, ext3 */
	case XFS_SUPER_MAGIC:
	case BTRFS_SUPER_MAGIC:
	case F2FS_SUPER_MAGIC:
	case BDEVFS_MAGIC:
		return true;
	default:
		return false;
	}
}

/**
 * __fpr_recycle() - a frame for a page fault of a MAP_FPR mapping
 * @mapping: whose page cache the frame will enter
 * @gfp: as for filemap_alloc_folio()
 *
 * Only the mapping that the fault is about gets recycled frames: a file system
 * also allocates metadata in the same call, which the process may not read.
 * The process maps @mapping, so a stale translation shows it nothing that it
 * could not map anyway, where the file system sees to that before the page is up to date;
 * and no stale translation is dirty, so none can write.
 *
 * The frame keeps its tag: it is still reachable, and is parked again when it
 * is freed before the context was flushed.
 *
 * Context: process context, in a fault.
 * Return: an order-0 folio with one reference, or NULL.
 */
struct folio *__fpr_recycle(struct address_space *mapping, gfp_t gfp)
{
	struct cf_ctx *ctx, *owner;
	struct page *page;

	if (!current->fpr_mapping)
		return NULL;
	CF_MUTATION(fpr_recycle_any, mapping = current->fpr_mapping);
	if (current->fpr_mapping != mapping || !fpr_shows_only_itself(mapping))
		return NULL;
	ctx = current->mm->cf;
	if (!ctx || cf_is_mapping_only(current->mm))
		return NULL;
	/* In the group as long as it takes; see choice.c. */
	rcu_read_lock();
	owner = cf_tag_ctx(ctx);
	page = fpr_pool_get(owner, &owner->single, gfp);
	rcu_read_unlock();
	if (!page && owner != ctx)
		page = fpr_pool_get(ctx, &ctx->single, gfp);
	return page ? fpr_recycled(ctx, page, gfp) : NULL;
}

/**
 * __fpr_recycle_anon() - a frame for a page fault in anonymous memory
 * @vmf: the fault, of anonymous memory or a copy on write
 * @zero: whether the page is to be zeroed
 *
 * Any parked frame of the process will do: it can read and write what it maps.
 * Not on behalf of another process, nor where the mapping has a memory policy,
 * nor for a write that is forced on a mapping without that right, or that has it
 * for returns only: it is not to be written to through what is left of another
 * one (I2).
 *
 * Context: process context, in a fault.
 * Return: a folio with one reference, charged, or NULL.
 */
struct folio *__fpr_recycle_anon(struct vm_fault *vmf, bool zero)
{
	gfp_t gfp = GFP_HIGHUSER_MOVABLE | (zero ? __GFP_ZERO : 0);
	struct vm_area_struct *vma = vmf->vma;
	struct mm_struct *mm = vma->vm_mm;
	struct cf_ctx *ctx = mm->cf;
	struct folio *folio;
	struct page *page;

	if ((vma->vm_flags & (VM_FPR | VM_WRITE | VM_SHADOW_STACK)) !=
	    (VM_FPR | VM_WRITE) || !ctx || vma_policy(vma) || cf_is_mapping_only(mm))
		return NULL;
	if (!fpr_is_own_fault(mm))
		return NULL;
	CF_MUTATION_IF(fpr_group_anon, ctx->group, ctx = ctx->group);
	/* Not from a group: whoever else could reach it could read it. */
	page = fpr_pool_get(ctx, &ctx->anon, gfp) ?:
	       fpr_pool_get(ctx, &ctx->single, gfp);
	if (!page)
		return NULL;
	folio = fpr_recycled(ctx, page, gfp);
	if (mem_cgroup_charge(folio, mm, GFP_KERNEL)) {
		folio_put(folio);
		return NULL;
	}
	folio_throttle_swaprate(folio, GFP_KERNEL);
	return folio;
}

/**
 * __fpr_fault_begin() - a fault of a MAP_FPR mapping may allocate
 * @vma: the mapping
 *
 * Faults on behalf of another process (ptrace, process_vm_readv()) do not
 * recycle: their stale translations would be in the wrong process. Nor do those
 * that are forced on a mapping without access.
 */
void __fpr_fault_begin(struct vm_area_struct *vma)
{
	if (vma->vm_flags & VM_FPR && vma->vm_file && vma_is_accessible(vma) &&
	    fpr_is_own_fault(vma->vm_mm))
		current->fpr_mapping = vma->vm_file->f_mapping;
}
