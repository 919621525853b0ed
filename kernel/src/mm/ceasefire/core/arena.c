// SPDX-License-Identifier: GPL-2.0
/*
 * Addresses of MAP_FPR mappings, and the page tables they leave behind.
 *
 * An address whose translation may still be cached must not be used again, or
 * a thread would read the old frame at the new mapping (I3). So eligible
 * mappings get descending addresses from an arena of the process, and every
 * other way to place a mapping claims its range first: if it overlaps the
 * quarantine, everything is settled before the mapping exists.
 *
 * Removing page tables needs a flush (I4). So an munmap() inside the
 * quarantine keeps them, whether or not it skips its flush; they are freed in
 * one go, after one flush, when the quarantine is settled:
 *   - the arena wraps around,
 *   - too many bytes of tables were left,
 *   - a mapping claims addresses of the quarantine,
 *   - an munmap() has one end inside and one outside,
 *   - the process exits (no flush needed).
 * Left-over tables have no mapping, so nothing that walks mappings finds them:
 * free_pgtables() of a neighbour is clamped, exit frees them itself.
 *
 * Locks: the arena changes under mmap_lock held for writing, by the process or,
 * for a growing stack, by whoever grows it. munmap() decides under that lock
 * (fpr.c) and tears down under the downgraded one; no writer can come between,
 * so what it decided holds.
 */
#include <linux/mm.h>
#include <linux/mman.h>
#include <linux/random.h>
#include <linux/sched/mm.h>
#include <linux/vmstat.h>

#include <asm/tlb.h>

#include <trace/events/ceasefire.h>

#include "../../internal.h"
#include "core.h"

/*
 * The arena lies this far from where mmap() places other mappings, so that the
 * two do not meet in a process of usual size. If they do, it gives way: what
 * Linux has placed in it will be followed by more.
 */
#define CF_ARENA_GAP		(64UL << 30)
#define CF_ARENA_TRIES		16

/* Below a stack; a shadow stack has a page also if others have nothing. */
#define CF_STACK_GAP		max(stack_guard_gap, PAGE_SIZE)

/*
 * Find a place for the arena, beside the range [@start, @end) of others, where
 * there is no mapping. Nothing may be under quarantine: with mmap_lock held for
 * writing no munmap() is on its way, so after a settle no TLB has an entry of
 * the old place, and no table is left there that only a mapping could free.
 *
 * Return: false if there is none; then it stays where it is.
 */
static bool cf_arena_find(struct cf_ctx *ctx, unsigned long start,
			  unsigned long end)
{
	bool topdown = test_bit(MMF_TOPDOWN, &ctx->mm->flags);
	unsigned long size = PAGE_ALIGN(cf_arena_size), gap = CF_ARENA_GAP;
	int i;

	if (current->flags & PF_RANDOMIZE)
		gap += (get_random_u32() & 0xffffff) << PAGE_SHIFT;
	for (i = 0; i < CF_ARENA_TRIES; i++) {
		unsigned long base, room = size;
		struct vm_area_struct *vma;

		if (topdown) {
			if (start < gap + size + SZ_4G)
				return false;
			base = PAGE_ALIGN_DOWN(start - gap - size);
			/* Others come down from above. */
			room += CF_ARENA_GAP;
		} else {
			base = PAGE_ALIGN(end + gap);
			if (base > DEFAULT_MAP_WINDOW - size)
				return false;
		}
		vma = find_vma_intersection(ctx->mm, base, base + room);
		if (vma) {
			start = vma->vm_start;
			end = vma->vm_end;
			continue;
		}
		ctx->arena = (struct cf_arena) {
			.base = base, .next = base + size,
			.settled = base + size, .end = base + size,
		};
		ctx->hole_start = ctx->arena.next;
		return true;
	}
	return false;
}

/**
 * cf_arena_init() - find a place for the arena
 * @ctx: new context, mmap_lock held for writing
 *
 * It follows the layout of the process (and so its randomization, with some
 * more of its own), because programs, sanitizers for example, have ideas about
 * where mappings can be.
 *
 * Return: false if the address space is too full.
 */
bool cf_arena_init(struct cf_ctx *ctx)
{
	unsigned long at = ctx->mm->mmap_base;

	return cf_arena_find(ctx, at, at);
}

/* Has the process used only little of its arena until now? */
static bool cf_arena_little_used(struct cf_arena *a)
{
	CF_MUTATION(fpr_arena_stays, return false);
	return a->end - a->next < (a->end - a->base) / 2;
}

/*
 * Begin again at the end of the arena, from which nothing may be under
 * quarantine. Where little of it was used, others have taken the rest, and it is
 * better elsewhere.
 */
static void cf_arena_rewind(struct cf_ctx *ctx)
{
	struct cf_arena *a = &ctx->arena;

	if (cf_arena_little_used(a) && cf_arena_init(ctx))
		return;
	a->settled = a->end;
	a->next = a->end;
	ctx->hole_start = a->next;
}

/* Free the page tables of the quarantine that no mapping uses. */
static void cf_free_gaps(struct cf_ctx *ctx, struct mmu_gather *tlb)
{
	struct cf_arena *a = &ctx->arena;
	struct vm_area_struct *prev, *vma;
	unsigned long at = a->next, stop = a->settled;

	vma = find_vma_prev(ctx->mm, at, &prev);
	while (at < stop) {
		unsigned long end = vma ? min(vma->vm_start, stop) : stop;

		if (at < end)
			free_pgd_range(tlb, at, end,
				       prev ? prev->vm_end : FIRST_USER_ADDRESS,
				       vma ? vma->vm_start :
					     USER_PGTABLES_CEILING);
		if (!vma)
			break;
		at = max(at, vma->vm_end);
		prev = vma;
		vma = find_vma(ctx->mm, vma->vm_end);
	}
	a->settled = a->next;
}

/* Also if no table goes: what is settled may be used again (I3). */
static void cf_gather_flush(struct mmu_gather *tlb)
{
	CF_MUTATION(fpr_no_settle_flush, return);
	tlb->need_flush_all = 1;
	tlb->cleared_ptes = 1;
}

/**
 * cf_arena_settle() - end the quarantine: flush, and free left-over tables
 * @ctx: the context, mmap_lock held for writing
 *
 * The flush covers all addresses, so it also pays what the context owes. It is
 * issued even if no table was left.
 */
void cf_arena_settle(struct cf_ctx *ctx)
{
	struct mmu_gather tlb;

	if (ctx->arena.settled == ctx->arena.next) {
		/* What has grown since then is not ours. */
		ctx->tables = mm_pgtables_bytes(ctx->mm);
		return;
	}
	mmap_assert_write_locked(ctx->mm);
	count_vm_event(FPR_DRAIN_TABLES);
	trace_fpr_tables(ctx->id, ctx->arena.next, ctx->arena.settled);
	tlb_gather_mmu(&tlb, ctx->mm);
	cf_free_gaps(ctx, &tlb);
	cf_gather_flush(&tlb);
	tlb_finish_mmu(&tlb);
	ceasefire_settled(ctx->mm, ctx->arena.base, ctx->arena.end);
	ctx->tables = mm_pgtables_bytes(ctx->mm);
}

/**
 * cf_arena_may_keep() - may munmap() leave its page tables?
 * @ctx: the context, mmap_lock held for writing
 *
 * All tables of the process count from the least number since the last time
 * that they were settled: what others give back is not for us to keep.
 *
 * Return: false if enough are left.
 */
bool cf_arena_may_keep(struct cf_ctx *ctx)
{
	unsigned long now = mm_pgtables_bytes(ctx->mm);

	ctx->tables = min(ctx->tables, now);
	CF_MUTATION(fpr_tables_unbounded, return true);
	return now <= ctx->tables + cf_policy_of(ctx->mm)->tables_max;
}

/*
 * Is there a stack above @addr that wants room below it? Perhaps behind other
 * mappings: those may go, and nobody says so.
 */
static bool cf_stack_near(struct mm_struct *mm, unsigned long addr)
{
	VMA_ITERATOR(vmi, mm, addr);
	struct vm_area_struct *vma;

	CF_MUTATION(fpr_stack_behind, return false);
	for_each_vma(vmi, vma) {
		if (vm_start_gap(vma) < addr)
			return true;
		if (vma->vm_start - addr >= CF_STACK_GAP)
			break;
	}
	return false;
}

/* Give addresses of the arena out again. */
static void cf_arena_wrap(struct cf_ctx *ctx)
{
	CF_MUTATION(fpr_no_wrap_drain, cf_arena_rewind(ctx); return);
	cf_arena_settle(ctx);
	cf_arena_rewind(ctx);
}

/*
 * From which size on a mapping starts where a huge page can. As Linux has it: memory
 * only if it is a whole number of them. Else arrays of about the same size would all
 * start at such a boundary, and take each other's place in caches and TLBs.
 */
static unsigned long cf_arena_huge(struct file *file, unsigned long len)
{
	return file || IS_ALIGNED(len, PMD_SIZE) ? PMD_SIZE : ULONG_MAX;
}

/**
 * cf_arena_get() - an address for a mapping
 * @ctx: the context, mmap_lock held for writing
 * @file: what is mapped, NULL for memory
 * @len: length in bytes, page aligned, at most CF_ARENA_MAX_MAP
 * @pgoff: offset in the file, in pages
 *
 * Return: the address, 0 if there is no room.
 */
unsigned long cf_arena_get(struct cf_ctx *ctx, struct file *file,
			   unsigned long len, unsigned long pgoff)
{
	u64 offset = file ? (u64)pgoff << PAGE_SHIFT : 0;
	unsigned long huge = cf_arena_huge(file, len);
	struct cf_arena *a = &ctx->arena;
	bool wrapped = false, fits;
	struct vm_area_struct *vma, *prev;
	unsigned long addr, from, roof;

	if (!cf_arena_may_keep(ctx))
		cf_arena_settle(ctx);
	from = a->next;
	for (;;) {
		addr = cf_arena_place(a, from, len, offset, huge);
		/* Usually the hole found last time is large enough. */
		if (addr && addr >= ctx->hole_start)
			break;
		if (addr) {
			vma = find_vma_prev(ctx->mm, addr, &prev);
			roof = vma ? vm_start_gap(vma) : a->end;
			CF_MUTATION_IF(fpr_no_stack_gap, vma,
				       roof = vma->vm_start);
			fits = addr + len <= roof;
			/*
			 * A hole that is passed over says nothing: @next moves
			 * on success only, and seen from there the mappings
			 * above that hole lie in between.
			 */
			ctx->hole_start = a->next;
			if (fits && !cf_stack_near(ctx->mm, addr))
				ctx->hole_start = prev ? prev->vm_end : 0;
			CF_MUTATION_IF(fpr_hole_passed, !fits,
				       ctx->hole_start = prev ? prev->vm_end : 0);
			if (fits)
				break;
			from = roof;
			continue;
		}
		if (wrapped)
			return 0;
		wrapped = true;
		cf_arena_wrap(ctx);
		from = a->next;
	}
	VM_WARN_ON_ONCE(find_vma_intersection(ctx->mm, addr, addr + len));
	a->next = addr;
	return addr;
}

/*
 * MAP_FIXED over a part of a mapping, as dynamic linkers do it: what was there
 * before the mapping was settled when that came, and what is there now is flushed
 * for when it is replaced (I5).
 */
static bool cf_is_covered(struct mm_struct *mm, unsigned long start,
			  unsigned long end, enum cf_claim who)
{
	struct vm_area_struct *vma;

	if (who != CF_CLAIM_MMAP)
		return false;
	vma = find_vma(mm, start);
	CF_MUTATION_IF(cf_covered_partly, vma, end = min(end, vma->vm_end));
	return vma && vma->vm_start <= start && vma->vm_end >= end;
}

/**
 * __cf_va_claim() - a mapping will be placed at an address we did not choose
 * @mm: the process, mmap_lock held for writing
 * @start: start of the range
 * @end: end of the range
 * @who: what places it
 *
 * Must come after the last munmap() of the range and before the VMA is in the
 * tree.
 */
void __cf_va_claim(struct mm_struct *mm, unsigned long start,
		   unsigned long end, enum cf_claim who)
{
	struct cf_ctx *ctx = mm->cf;
	unsigned long next;
	bool covered;

	if (!ctx)
		return;
	covered = cf_is_covered(mm, start, end, who);
	/* mremap() moves whole tables, and looks for room in its slot of them. */
	start = ALIGN_DOWN(start, PMD_SIZE);
	end = ALIGN(end, PMD_SIZE);
	/*
	 * The hole that cf_arena_get() knows may not be one any more, also if
	 * a stack comes nearer to it from above.
	 */
	next = ctx->arena.next;
	CF_MUTATION(fpr_stale_hole, next = ctx->hole_start);
	if ((start < next || start - next < CF_STACK_GAP) &&
	    end > ctx->hole_start)
		ctx->hole_start = next;
	CF_MUTATION_NTH(fpr_no_claim_mmap, who, return);
	if (covered || !cf_arena_quarantined(&ctx->arena, start, end))
		return;
	count_vm_event(FPR_VA_FLUSH);
	trace_fpr_claim(ctx->id, start, end, who);
	cf_arena_settle(ctx);
	CF_MUTATION(fpr_arena_stays, return);
	if (who == CF_CLAIM_PLACED)
		cf_arena_find(ctx, start, end);
}

/**
 * __cf_clamp() - free_pgtables() is about to remove the tables of a mapping
 * @vma: the (first) mapping
 * @floor: as for free_pgtables()
 * @ceiling: as for free_pgtables()
 */
void __cf_clamp(struct vm_area_struct *vma, unsigned long *floor,
		unsigned long *ceiling)
{
	struct cf_ctx *ctx = vma->vm_mm->cf;

	CF_MUTATION(fpr_no_clamp, return);
	if (ctx)
		cf_arena_clamp(&ctx->arena, vma->vm_start, vma->vm_end,
			       floor, ceiling);
}

/**
 * __cf_exit_tables() - exit_mmap() is about to remove all page tables
 * @mm: the process
 * @tlb: its gather
 *
 * Only the gaps: mappings are still known to rmap, whose walkers would meet
 * freed tables. Must come before free_pgtables(), which takes the upper tables.
 */
void __cf_exit_tables(struct mm_struct *mm, struct mmu_gather *tlb)
{
	CF_MUTATION(fpr_no_exit_gaps, return);
	if (mm->cf)
		cf_free_gaps(mm->cf, tlb);
}

/**
 * cf_arena_exit() - the page tables of a process without mappings
 * @ctx: its context, mmap_lock held for writing
 */
void cf_arena_exit(struct cf_ctx *ctx)
{
	struct mmu_gather tlb;

	CF_MUTATION(fpr_no_exit_last, return);
	if (ctx->arena.settled == ctx->arena.next)
		return;
	tlb_gather_mmu_fullmm(&tlb, ctx->mm);
	cf_free_gaps(ctx, &tlb);
	tlb_finish_mmu(&tlb);
}
