// SPDX-License-Identifier: GPL-2.0
/*
 * What is in a frame that stale translations still reach (I2).
 *
 * A frame that was recycled keeps its tag: the process reaches it at the new
 * address, and CPUs at the old one, too, with the rights of the old mapping.
 * That is no harm as long as the process may do at the new address whatever it
 * could do at the old one. Three things end that, and each flushes first:
 *   - a mapping loses a right, or gets a protection key: __fpr_mprotect(),
 *     __fpr_placed()
 *   - the page becomes one of several processes: __fpr_ksm_mergeable()
 *   - the kernel reads the page and relies on it that nobody writes meanwhile:
 *     __fpr_swap_out()
 *
 * None of them asks whether the mapping is VM_FPR. Frames are recycled for such
 * mappings only, but pages move on: UFFDIO_MOVE carries them to any anonymous
 * mapping with the same rights. docs/attacks.md lists the ways.
 *
 * Locks: see the functions; none held while flushing but those of the caller.
 * Callers: mprotect_fixup(), do_mmap(), try_to_merge_one_page(),
 * swap_writepage().
 */
#include <linux/mm.h>
#include <linux/pkeys.h>
#include <linux/vmstat.h>

#include <asm/tlbflush.h>

#include "fpr.h"

/* Rights that stale translations may have; none of them can execute. */
#define FPR_STALE_RIGHTS	(VM_READ | VM_WRITE)

/* Pay what a process owes for its skips; mmap_lock is held for writing. */
static void fpr_flush_skips(struct cf_ctx *ctx)
{
	CF_MUTATION(fpr_no_mprotect, return);
	if (cf_owes_skips(ctx))
		cf_flush(ctx);
}

/* May a stale translation have a right that a mapping has no more? */
static bool fpr_rights_shrink(struct vm_area_struct *vma, vm_flags_t old)
{
	vm_flags_t now = vma->vm_flags;

	CF_MUTATION_IF(fpr_protect_marked,
		       !vma->vm_file && !(now & VM_FPR), return false);
	CF_MUTATION(fpr_protect_any, return true);
	return old & ~now & FPR_STALE_RIGHTS ||
	       (old ^ now) & ARCH_VM_PKEY_FLAGS;
}

/**
 * __fpr_mprotect() - a mapping gets other rights
 * @vma: the mapping, with the new ones, write-locked
 * @old: its flags before
 *
 * Its pages may be in recycled frames that stale translations reach, with the
 * rights of an earlier mapping: flush those, not only the mapping's own (I2).
 * Any mapping: of a file, because a fault of another one may have read its
 * pages; anonymous, because pages move to it.
 *
 * Where nothing is recycled stale translations meet what was there before.
 *
 * Rights that grow take nothing away from anybody, and need no flush: memory
 * that is reserved and then made usable, as by malloc(). Nor can a mapping
 * without VM_WRITE get a frame that is written to until it has that right:
 * faults and UFFDIO_MOVE ask for it.
 *
 * A skip is over when its munmap gives up mmap_lock, which the caller holds for
 * writing, so none comes between the look at what is owed and the change. And
 * no page moves here meanwhile: that takes the lock of the mapping.
 *
 * A fault that reads has given up its locks before it allocates, so it can
 * still recycle frames that are parked after this. With protection keys it does
 * not (fpr_has_keys()); other rights any thread can give back.
 *
 * Context: may sleep and sends IPIs.
 */
void __fpr_mprotect(struct vm_area_struct *vma, vm_flags_t old)
{
	struct cf_ctx *ctx = vma->vm_mm->cf;

	if (!ctx)
		return;
	/* Before the look at what is owed; see fpr_has_keys(). */
	if (vma_pkey(vma))
		WRITE_ONCE(ctx->keyed, true);
	if (cf_ctx_policy(ctx)->recycles && fpr_rights_shrink(vma, old))
		fpr_flush_skips(ctx);
}

/**
 * __fpr_placed() - mmap() has an address for a mapping, not one of the arena
 * @addr: the address
 * @len: length in bytes
 * @who: who has chosen it
 * @vm_flags: flags of the mapping
 *
 * Memory that is only to be executed gets a protection key from mmap() itself.
 * What it shows may be in the page cache already, in recycled frames. Keys that
 * come with fork() and execve() are there before the process has a context,
 * which looks for them; shmat(), mremap() and brk() bring no new ones.
 *
 * Context: mmap_lock held for writing; may sleep and sends IPIs.
 */
void __fpr_placed(unsigned long addr, unsigned long len, enum cf_claim who,
		  vm_flags_t vm_flags)
{
	struct cf_ctx *ctx = current->mm->cf;

	if (!ctx)
		return;
	CF_MUTATION(fpr_no_key_notice, vm_flags &= ~ARCH_VM_PKEY_FLAGS);
	if (unlikely(vm_flags & ARCH_VM_PKEY_FLAGS)) {
		WRITE_ONCE(ctx->keyed, true);
		fpr_flush_skips(ctx);
	}
	__cf_va_claim(current->mm, addr, addr + len, who);
}

/**
 * __fpr_swap_out() - the kernel is about to write a page to swap
 * @folio: in the swap cache, locked, not mapped
 *
 * Compression, checksums and mirrored disks want pages that stay as they are.
 * Reclaim has flushed for the entries that it has cleared, but not always
 * everything: where nobody else runs the process it flushes their addresses
 * only, and entries without access (NUMA hints that were flushed for) it does not
 * flush at all.
 *
 * Context: may sleep and sends IPIs.
 */
void __fpr_swap_out(struct folio *folio)
{
	unsigned long pfn = folio_pfn(folio), i;

	CF_MUTATION(fpr_no_swap_flush, return);
	if (!cf_frames_tagged(pfn))
		return;
	for (i = 0; i < folio_nr_pages(folio); i++) {
		struct cf_ctx *ctx;
		u64 tag;

		rcu_read_lock();
		ctx = cf_frame_owner(pfn + i, &tag);
		if (ctx && (!(tag & CF_TAG_WRITABLE) ||
			    !refcount_inc_not_zero(&ctx->ref)))
			ctx = NULL;
		rcu_read_unlock();
		if (!ctx)
			continue;
		cf_flush(ctx);
		cf_ctx_put(ctx);
	}
}

/**
 * __fpr_ksm_mergeable() - may KSM make a page one of many processes?
 * @page: an anonymous page, mapped, under mmap_lock
 *
 * If one may be left, a flush ends that, for all pages of the process; KSM itself
 * sends one for each page that it merges.
 *
 *   ksmd, mmap_lock for reading	peer
 *   the frame has an owner		may write by a stale entry
 *   flush: completed passes the tag	the entry is gone
 *   no owner any more			finds only the entry that is there
 *
 * No skip can tag the frame between the two looks or after them: an munmap() of
 * this process that has let readers in again has taken its mapping out of the
 * tree before, so that ksmd does not find it; and where another process has the
 * page, too, it is not exclusive, so that its munmap() flushes. A tag that
 * reclaim adds, for the entry that is there, only makes the answer false.
 *
 * Context: may sleep and sends IPIs.
 * Return: false while a stale translation may write to it.
 */
bool __fpr_ksm_mergeable(struct page *page)
{
	struct cf_ctx *ctx;

	CF_MUTATION(fpr_no_ksm_check, return true);
	rcu_read_lock();
	ctx = cf_frame_owner(page_to_pfn(page), NULL);
	if (ctx && cf_flush_found(ctx))
		ctx = cf_frame_owner(page_to_pfn(page), NULL);
	rcu_read_unlock();
	return !ctx;
}
