// SPDX-License-Identifier: GPL-2.0
/*
 * Fast page recycling: which mappings, and which munmap(), may skip a flush.
 *
 * Policy in three steps, each of which can only say no:
 *   1. mmap() with MAP_FPR: a regular file or block device, address chosen by
 *      the kernel. It gets VM_FPR and an address of the arena.
 *   2. munmap(): all mappings in the range are VM_FPR, still inside the
 *      quarantine, and use the page cache (filemap_map_pages) or are anonymous.
 *      The gather is marked, here and nowhere else, so that whatever else
 *      removes entries flushes as ever (I5).
 *   3. flush: all entries that the gather has cleared are clean page cache
 *      pages or anonymous ones of this process alone, no table goes, no
 *      secondary MMU listens, another CPU runs the process. Then the frames are
 *      tagged instead.
 *
 * Why clean: a CPU writes through a dirty entry without asking the page tables,
 * which would change a file long after munmap(), msync() or sealing. Through a
 * clean entry it has to set the dirty bit first, walks the tables, and faults.
 * Reclaim relies on the same (try_to_unmap_one()).
 *
 * Anonymous pages are dirty, and what is written through a stale entry is
 * memory of the process itself, as long as the frame is that, or parked. So the
 * tag says that the frame may be written to, and it becomes nothing else before
 * the flush (pool.c). A page that another process may map (after fork, merged)
 * is not exclusive, and flushed for: it lives on there, and may be written to.
 * What becomes of an anonymous page whose frame is still reached:
 *   - fork: flushes the parent, with mmap_lock held for writing, before the
 *     child runs
 *   - other rights, KSM, swap: see rights.c
 *   - migration: the old frame keeps the tag and parks; the new one has none
 *   - a gift to a pipe that FUSE takes for its page cache: __cf_folio_stale()
 *
 * Locks: step 1 and the decision in step 2 run under mmap_lock held for
 * writing, the rest of munmap() under the downgraded lock.
 */
#include <linux/compat.h>
#include <linux/delay.h>
#include <linux/fs.h>
#include <linux/hugetlb.h>
#include <linux/mm.h>
#include <linux/mman.h>
#include <linux/mmu_notifier.h>
#include <linux/pkeys.h>
#include <linux/rmap.h>
#include <linux/vmstat.h>

#include <asm/tlb.h>

#define CREATE_TRACE_POINTS
#include <trace/events/ceasefire.h>

#include "../../internal.h"
#include "fpr.h"

/* Inodes whose pages come from the page cache by the usual path. */
static bool fpr_file_eligible(struct file *file)
{
	struct inode *inode = file_inode(file);

	return (S_ISREG(inode->i_mode) || S_ISBLK(inode->i_mode)) &&
	       !IS_DAX(inode) && !is_file_hugepages(file);
}

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

/**
 * __fpr_map_area() - an mmap() with MAP_FPR, or of a process with fpr_auto
 * @file: what is mapped, NULL for anonymous memory
 * @addr: address or hint of the caller
 * @len: length in bytes
 * @pgoff: offset in pages
 * @flags: MAP_*
 * @vm_flags: gets VM_FPR if the mapping is eligible
 *
 * Context: mmap_lock held for writing.
 * Return: an address of the arena, 0 if the mapping is to be made as if the
 * flag had not been given. The reason is counted.
 */
unsigned long __fpr_map_area(struct file *file, unsigned long addr,
			     unsigned long len, unsigned long pgoff,
			     unsigned long flags, vm_flags_t *vm_flags)
{
	struct mm_struct *mm = current->mm;
	struct cf_ctx *ctx = mm->cf;
	enum vm_event_item why;
	unsigned long area;

	/* Nobody has asked: not for what exec maps, and the dynamic linker. */
	if (!(flags & MAP_FPR) &&
	    (current->in_execve || (flags & MAP_DENYWRITE && !fpr_force)))
		return 0;
	why = FPR_MAP_INELIGIBLE_DISABLED;
	if (!READ_ONCE(fpr_enabled))
		goto no;
	why = FPR_MAP_INELIGIBLE_FILE;
	if (file ? !fpr_file_eligible(file) : flags & FPR_ANON_EXCLUDES)
		goto no;
	why = FPR_MAP_INELIGIBLE_EXEC;
	if (fpr_may_execute(*vm_flags))
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
	area = cf_arena_get(ctx, len, file ? pgoff : 0);
	if (!area)
		goto no;
	*vm_flags |= VM_FPR;
	count_vm_event(FPR_MAP);
	return area;
no:
	count_vm_event(why);
	return 0;
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

/* Is there a tag that says the whole generation? */
static bool fpr_can_tag(u64 gen)
{
	CF_MUTATION(fpr_gen_cut, return true);
	return likely(cf_gen_fits(gen));
}

/* The tag of what a context leaves now, and that it owes for that; 0: none. */
static u64 fpr_tag_now(struct cf_ctx *ctx)
{
	u64 gen = cf_started(ctx);

	if (!fpr_can_tag(gen))
		return 0;
	/* Before the first tag: a tag that nobody owes for is never settled. */
	cf_owe(ctx, gen);
	return cf_tag_make(ctx->id, gen);
}

/*
 * Is one of the frames bad that were tagged just now?
 *
 *   munmap()				memory_failure()
 *   clears the entry, drops rmap
 *					marks the frame as bad
 *					finds nobody who maps it
 *					__cf_poisoned(): no tag, no flush
 *   tags the frame, skips: others may read what is bad
 *
 * So this looks for the mark after the tag is there, and __cf_poisoned() for
 * the tag after the mark is. Both have a full barrier in between (the tag is
 * written by cmpxchg; one that was there before is older than what follows), so
 * one of them flushes. Also for a bad frame that nobody could unmap.
 *
 * Soft offline marks a frame when there is no reference but its own; the gather
 * has one until the frame is tagged.
 */
static bool fpr_any_bad(struct page *page, unsigned long nr)
{
	bool bad = false;

	/* The tag before the mark. */
	smp_mb__after_atomic();
	for (; nr--; page++)
		bad |= PageHWPoison(page);
	CF_MUTATION(fpr_poison_unseen, return false);
	return bad;
}

/*
 * The most frames that one gather tags, 64 MiB of memory: under a page table lock
 * one cannot make way for others, and to tag more takes longer than to flush. Of
 * base pages a gather holds fewer, but each of its entries can be a large folio.
 */
#define FPR_GATHER_MAX	16384

static bool fpr_gather_too_many(unsigned long pages)
{
	CF_MUTATION(fpr_gather_unbounded, return false);
	return pages > FPR_GATHER_MAX;
}

/* Tag all frames that the gather holds, @pages of them; or why not, else 0. */
static enum vm_event_item fpr_tag_gather(struct mmu_gather *tlb,
					 struct cf_ctx *ctx,
					 unsigned long *pages)
{
	struct cf_ctx *owner = cf_tag_ctx(ctx);
	struct mmu_gather_batch *batch;
	/* Of files, and of anonymous pages, which are not for a group. */
	unsigned long fresh[2] = { };
	enum vm_event_item why = 0;
	u64 tags[2] = { };

	if (owner != ctx)
		cf_note_left(ctx);
	CF_MUTATION(fpr_group_anon, ctx = owner);
	for (batch = &tlb->local; batch && batch->nr; batch = batch->next) {
		unsigned int i;

		for (i = 0; i < batch->nr && !why; i++) {
			struct encoded_page *enc = batch->encoded_pages[i];
			struct page *page = encoded_page_ptr(enc);
			bool anon = PageAnon(page);
			unsigned long nr = 1;

			/* See __tlb_remove_folio_pages_size(). */
			if (unlikely(encoded_page_flags(enc) &
				     ENCODED_PAGE_BIT_NR_PAGES_NEXT))
				nr = encoded_nr_pages(batch->encoded_pages[++i]);
			if (!tags[anon])
				tags[anon] = anon ? fpr_tag_now(ctx) |
						    CF_TAG_WRITABLE :
						    fpr_tag_now(owner);
			*pages += nr;
			if (fpr_gather_too_many(*pages))
				why = FPR_FLUSH_LIMIT;
			else if (!cf_tag_id(tags[anon]) ||
				 !cf_tag_frames(page_to_pfn(page), nr,
						tags[anon], &fresh[anon]))
				why = FPR_FLUSH_TAGS;
			else if (unlikely(fpr_any_bad(page, nr)))
				why = FPR_FLUSH_POISON;
		}
	}
	atomic_long_add(fresh[false], &owner->stale);
	atomic_long_add(fresh[true], &ctx->stale);
	return why;
}

/* Debug builds: makes the time long in which a frame has neither entry nor tag. */
static void fpr_skip_pause(void)
{
#ifdef CONFIG_CEASEFIRE_DEBUG
	u32 us = READ_ONCE(fpr_skip_delay_us);

	if (!us)
		return;
	/* Others need this CPU, too: memory_failure() drains its lists. */
	if (preemptible())
		msleep(DIV_ROUND_UP(us, USEC_PER_MSEC));
	else
		mdelay(DIV_ROUND_UP(us, USEC_PER_MSEC));
#endif
}

/*
 * Frames that may be reached may have to be parked, all of them at once: here
 * is where their number can be held down by the one who makes them.
 *
 * A flush of everything pays for all that the process has left. What it has left
 * with its group waits for the next drain, and this goes on until then.
 */
static bool fpr_stale_too_many(struct mmu_gather *tlb)
{
	long limit = min(READ_ONCE(cf_stale_limit), LONG_MAX);
	struct cf_ctx *ctx = tlb->mm->cf;
	bool too_many;

	CF_MUTATION(fpr_no_stale_limit, return false);
	if (atomic_long_read(&ctx->stale) > limit) {
		/* First, so that what is left meanwhile counts. */
		atomic_long_set(&ctx->stale, 0);
		tlb->need_flush_all = 1;
		return true;
	}
	rcu_read_lock();
	too_many = atomic_long_read(&cf_tag_ctx(ctx)->stale) > limit;
	rcu_read_unlock();
	return too_many;
}

/* Has an munmap() marked the gather, so that it may skip (I5)? */
static bool fpr_is_marked(struct mmu_gather *tlb)
{
	CF_MUTATION(fpr_skip_forced, return tlb->fpr || tlb->mm->cf);
	return tlb->fpr;
}

/* Does the process leave nothing to what it maps next? */
static bool fpr_leaves_nothing(struct mm_struct *mm)
{
	CF_MUTATION(fpr_mapping_skips, return false);
	return cf_is_mapping_only(mm);
}

/* Does the gather need a flush for page tables, or one of everything? */
static bool fpr_frees_tables(struct mmu_gather *tlb)
{
	CF_MUTATION(fpr_allow_tables, return false);
	return tlb->freed_tables || tlb->unshared_tables ||
	       tlb->need_flush_all || tlb->cleared_pmds || tlb->cleared_puds ||
	       tlb->cleared_p4ds;
}

/* Listeners hear of invalidations from flush_tlb_mm_range() only. */
static bool fpr_is_heard(struct mm_struct *mm)
{
	CF_MUTATION(fpr_ignore_notifiers, return false);
	return mm_has_notifiers(mm);
}

/* Why a marked gather must flush; 0 if nothing is in the way of a skip. */
static enum vm_event_item fpr_must_flush(struct mmu_gather *tlb)
{
	enum fpr_unsafe unsafe = tlb->fpr_unsafe;

	CF_MUTATION_IF(fpr_skip_forced, !tlb->fpr, return 0);
	CF_MUTATION_IF(fpr_allow_dirty, unsafe == FPR_UNSAFE_DIRTY,
		       unsafe = FPR_SAFE);
	CF_MUTATION_IF(fpr_allow_anon, unsafe == FPR_UNSAFE_ANON,
		       unsafe = FPR_SAFE);
	if (!READ_ONCE(fpr_enabled))
		return FPR_FLUSH_DISABLED;
	if (fpr_leaves_nothing(tlb->mm))
		return FPR_FLUSH_CONTEXT;
	if (unsafe == FPR_UNSAFE_DIRTY)
		return FPR_FLUSH_DIRTY;
	if (unsafe == FPR_UNSAFE_ANON)
		return FPR_FLUSH_ANON;
	if (unsafe == FPR_UNSAFE_SPECIAL)
		return FPR_FLUSH_SPECIAL;
	/* tlb_finish_mmu() found another gather of this process under way. */
	if (tlb->fullmm)
		return FPR_FLUSH_NESTED;
	if (fpr_frees_tables(tlb))
		return FPR_FLUSH_TABLES;
	if (fpr_is_heard(tlb->mm))
		return FPR_FLUSH_NOTIFIER;
	/*
	 * Nobody to interrupt: the local flush is cheap and leaves no debt.
	 * A CPU that starts to run the process now compares generations.
	 */
	if (cpumask_any_but(mm_cpumask(tlb->mm), raw_smp_processor_id()) >=
	    nr_cpu_ids && !fpr_skip_local)
		return FPR_FLUSH_LOCAL;
	return fpr_stale_too_many(tlb) ? FPR_FLUSH_LIMIT : 0;
}

/**
 * __fpr_skip_flush() - a gather is about to flush
 * @tlb: the gather
 *
 * Also called in the middle of a gather, under page table locks, when it is
 * full; then for what it has cleared until now.
 *
 * The generation must be read after the entries were cleared, and the frames be
 * tagged before the gather drops its references (see debt.c and tags.c).
 * Entries are cleared by xchg; the barrier says so to the reader.
 *
 * Return: true if the flush is not needed now.
 */
bool __fpr_skip_flush(struct mmu_gather *tlb)
{
	struct cf_ctx *ctx = tlb->mm->cf;
	unsigned long pages = 0;
	enum vm_event_item why;

	if (likely(!fpr_is_marked(tlb)))
		return false;
	why = fpr_must_flush(tlb);
	if (why)
		goto flush;
	/* Entries cleared before the generation; see debt.c. */
	smp_mb();
	fpr_skip_pause();
	rcu_read_lock();
	why = fpr_tag_gather(tlb, ctx, &pages);
	rcu_read_unlock();
	if (why)
		goto flush;
	count_vm_event(FPR_SKIP);
	count_vm_events(FPR_SKIP_PAGES, pages);
	trace_fpr_skip(ctx->id, tlb->start, tlb->end, cf_started(ctx));
	ceasefire_skipped(tlb->start, tlb->end);
	return true;
flush:
	/* The flush covers all that was cleared until now, and why. */
	tlb->fpr_unsafe = FPR_SAFE;
	count_vm_event(why);
	trace_fpr_flush(ctx->id, tlb->start, tlb->end, why - FPR_FLUSH_LOCAL);
	return false;
}

/**
 * __fpr_gather_anon() - the gather of an munmap() unmaps anonymous pages
 * @tlb: the gather
 * @page: the first one, still mapped
 * @nr: their number
 *
 * Context: page table lock, under which a page stays exclusive.
 */
void __fpr_gather_anon(struct mmu_gather *tlb, struct page *page,
		       unsigned int nr)
{
	for (; nr--; page++)
		if (!PageAnonExclusive(page))
			fpr_gather_unsafe(tlb, FPR_UNSAFE_ANON);
}
