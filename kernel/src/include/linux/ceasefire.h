/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Hooks of ceasefire in the rest of the kernel.
 *
 * Every hook is one call from the hooked function to an inline below, which
 * tests the static key and calls the double-underscore function in
 * mm/ceasefire/. The key is off while no process uses MAP_FPR, and all hooks
 * vanish with CONFIG_CEASEFIRE_FPR=n. Documentation/mm/ceasefire/design.rst
 * has the invariants (I1..I8) that comments refer to.
 *
 * Hooks that need struct mmu_gather are in ceasefire_gather.h.
 */
#ifndef _LINUX_CEASEFIRE_H
#define _LINUX_CEASEFIRE_H

#include <linux/alloc_tag.h>
#include <linux/ceasefire_check.h>
#include <linux/gfp_types.h>
#include <linux/jump_label.h>
#include <linux/mm_types.h>
#include <linux/sched.h>
#include <linux/types.h>

#include <uapi/linux/ceasefire.h>

struct address_space;
struct file;
struct fpr_ctx;
struct ma_state;
struct mmu_gather;
struct vma_munmap_struct;

/* What asked for a drain; same order as the FPR_DRAIN_* counters. */
enum fpr_drain_reason {
	FPR_BY_LIMIT,
	FPR_BY_AGE,
	FPR_BY_KSWAPD,
	FPR_BY_RECLAIM,
	FPR_BY_OOM,
	FPR_BY_ISOLATE,
	FPR_BY_PCP,
	FPR_BY_COMPACT,
	FPR_BY_EXIT,
};

/* Which insertion of a VMA claims addresses; one mutation each. */
enum fpr_claim {
	FPR_CLAIM_MMAP,
	FPR_CLAIM_MREMAP,
	FPR_CLAIM_GROW,
	FPR_CLAIM_BRK,
	FPR_CLAIM_STACK,
	FPR_CLAIM_INSERT,
};

/* Where a page is freed; one mutation each. */
enum { FPR_FREE_PAGE, FPR_FREE_FOLIOS, FPR_FREE_LARGE };

unsigned long __get_unmapped_area(struct file *file, unsigned long addr,
				  unsigned long len, unsigned long pgoff,
				  unsigned long flags, vm_flags_t vm_flags);

#ifdef CONFIG_CEASEFIRE_FPR

DECLARE_STATIC_KEY_FALSE(fpr_used);

/* Flags that mmap(MAP_SHARED_VALIDATE) accepts on top of the others. */
#define FPR_MAP_FLAGS	MAP_FPR

unsigned long __fpr_map_area(struct file *file, unsigned long addr,
			     unsigned long len, unsigned long pgoff,
			     unsigned long flags, vm_flags_t *vm_flags);
void __fpr_mapped(struct vm_area_struct *vma);
void __fpr_va_claim(struct mm_struct *mm, unsigned long start,
		    unsigned long end, enum fpr_claim who);
bool __fpr_munmap_single(struct vma_iterator *vmi, struct vm_area_struct *vma,
			 unsigned long start, unsigned long end, bool unlock);
void __fpr_munmap_prepare(struct vma_munmap_struct *vms);
void __fpr_munmap_begin(struct mmu_gather *tlb, struct vma_munmap_struct *vms,
			struct ma_state *mas_detach);
bool __fpr_munmap_keep_tables(struct vma_munmap_struct *vms,
			      struct ma_state *mas_detach);
void __fpr_clamp(struct vm_area_struct *vma, unsigned long *floor,
		 unsigned long *ceiling);
void __fpr_tick(void);
void __fpr_flush_started(struct mm_struct *mm);
void __fpr_flush_completed(struct mm_struct *mm, u64 gen, bool full);
void __fpr_exit_begin(struct mm_struct *mm);
void __fpr_exit_tables(struct mm_struct *mm, struct mmu_gather *tlb);
void __fpr_exit_end(struct mm_struct *mm);
bool __fpr_park(struct page *page, unsigned int order, int site);
void __fpr_assert_clean(struct page *page, unsigned int order);
bool __fpr_folio_stale(struct folio *folio);
void __fpr_fault_begin(struct vm_area_struct *vma);
struct folio *__fpr_recycle(struct address_space *mapping, gfp_t gfp);
unsigned long __fpr_drain(enum fpr_drain_reason reason);
void fpr_release_page(struct page *page, unsigned int order);
bool __fpr_ksm_compatible(struct vm_area_struct *vma);
void __fpr_mprotect(struct vm_area_struct *vma);

static __always_inline bool fpr_on(void)
{
	return static_branch_unlikely(&fpr_used);
}

/* mm_init(): a new address space starts without a context (fork, exec). */
static inline void fpr_mm_init(struct mm_struct *mm)
{
	mm->fpr = NULL;
}

/*
 * do_mmap(): addresses of MAP_FPR mappings come from the arena of the process,
 * all others are settled first where they overlap the quarantine (I3).
 */
static inline unsigned long
fpr_get_unmapped_area(struct file *file, unsigned long addr, unsigned long len,
		      unsigned long pgoff, unsigned long flags,
		      vm_flags_t *vm_flags)
{
	if (unlikely(flags & MAP_FPR)) {
		unsigned long area = __fpr_map_area(file, addr, len, pgoff,
						    flags, vm_flags);

		if (area)
			return area;
	}
	addr = __get_unmapped_area(file, addr, len, pgoff, flags, *vm_flags);
	if (fpr_on() && !IS_ERR_VALUE(addr))
		__fpr_va_claim(current->mm, addr, addr + len, FPR_CLAIM_MMAP);
	return addr;
}

/* __mmap_region(): the file has set its vm_ops; is it really eligible? */
static inline void fpr_mapped(struct vm_area_struct *vma)
{
	if (fpr_on())
		__fpr_mapped(vma);
}

/* All other insertions and growths of VMAs; mmap_lock held for writing (I3). */
static inline void fpr_va_claim(struct mm_struct *mm, unsigned long start,
				unsigned long end, enum fpr_claim who)
{
	if (fpr_on())
		__fpr_va_claim(mm, start, end, who);
}

/* do_vmi_align_munmap(): the short way for a single eligible mapping. */
static inline bool fpr_munmap_single(struct vma_iterator *vmi,
				     struct vm_area_struct *vma,
				     unsigned long start, unsigned long end,
				     bool unlock)
{
	return fpr_on() && __fpr_munmap_single(vmi, vma, start, end, unlock);
}

/* do_vmi_align_munmap(), mmap_lock held for writing. */
static inline void fpr_munmap_prepare(struct vma_munmap_struct *vms)
{
	if (fpr_on())
		__fpr_munmap_prepare(vms);
}

/* vms_clear_ptes(): may this gather skip its flush? */
static inline void fpr_munmap_begin(struct mmu_gather *tlb,
				    struct vma_munmap_struct *vms,
				    struct ma_state *mas_detach)
{
	if (fpr_on())
		__fpr_munmap_begin(tlb, vms, mas_detach);
}

/* vms_clear_ptes(): true if the tables stay for a later drain (I4). */
static inline bool fpr_munmap_keep_tables(struct vma_munmap_struct *vms,
					  struct ma_state *mas_detach)
{
	return fpr_on() && __fpr_munmap_keep_tables(vms, mas_detach);
}

/* free_pgtables(): keep away from left-over tables of the quarantine (I4). */
static inline void fpr_clamp(struct vm_area_struct *vma, unsigned long *floor,
			     unsigned long *ceiling)
{
	if (fpr_on())
		__fpr_clamp(vma, floor, ceiling);
}

/* flush_tlb_mm_range(): debug builds can stretch the time in between. */
static inline void fpr_flush_started(struct mm_struct *mm)
{
	if (IS_ENABLED(CONFIG_CEASEFIRE_DEBUG) && fpr_on())
		__fpr_flush_started(mm);
}

/* flush_tlb_mm_range(): all CPUs have flushed for generation @gen. */
static inline void fpr_flush_completed(struct mm_struct *mm, u64 gen, bool full)
{
	if (fpr_on())
		__fpr_flush_completed(mm, gen, full);
}

/* sched_tick(): pay debts that are only getting old, interrupts off. */
static inline void fpr_tick(void)
{
	if (fpr_on())
		__fpr_tick();
}

/*
 * exit_mmap(), at its start, before free_pgtables() and at its end. Not behind
 * the key, which may still be off for the first context after boot.
 */
static inline void fpr_exit_begin(struct mm_struct *mm)
{
	if (unlikely(mm->fpr))
		__fpr_exit_begin(mm);
}

static inline void fpr_exit_tables(struct mm_struct *mm, struct mmu_gather *tlb)
{
	if (unlikely(mm->fpr))
		__fpr_exit_tables(mm, tlb);
}

static inline void fpr_exit_end(struct mm_struct *mm)
{
	if (unlikely(mm->fpr))
		__fpr_exit_end(mm);
}

/*
 * Free side of the page allocator, any context, hot: true if the page may
 * still be reached by stale translations and was parked (I1).
 */
static inline bool fpr_park(struct page *page, unsigned int order, int site)
{
	if (fpr_on() && __fpr_park(page, order, site))
		return true;
	ceasefire_event(page, 1UL << order, CEASEFIRE_FREED);
	return false;
}

/* post_alloc_hook(): no stale frame may be handed out (I1), debug builds. */
static inline void fpr_assert_clean(struct page *page, unsigned int order)
{
	if (IS_ENABLED(CONFIG_CEASEFIRE_DEBUG) && fpr_on())
		__fpr_assert_clean(page, order);
}

/* Frames that change their owner without being freed (I1). */
static inline bool fpr_folio_stale(struct folio *folio)
{
	if (fpr_on() && __fpr_folio_stale(folio))
		return true;
	ceasefire_moved(folio);
	return false;
}

/* __do_fault(): which mapping may recycle frames now (I2). */
static inline void fpr_fault_begin(struct vm_area_struct *vma)
{
	if (fpr_on())
		__fpr_fault_begin(vma);
}

static inline void fpr_fault_end(void)
{
	current->fpr_mapping = NULL;
}

/* Page cache allocation: a parked frame of this context, or NULL. */
static inline struct folio *fpr_recycle_noprof(struct address_space *mapping,
					       gfp_t gfp, unsigned int order)
{
	return fpr_on() && !order ? __fpr_recycle(mapping, gfp) : NULL;
}

/* Charged to the allocation site, as filemap_alloc_folio() is. */
#define fpr_recycle(...)	alloc_hooks(fpr_recycle_noprof(__VA_ARGS__))

/* Return parked frames to the allocator; may flush, so it may sleep (I6). */
static inline unsigned long fpr_drain(enum fpr_drain_reason reason)
{
	return fpr_on() ? __fpr_drain(reason) : 0;
}

/* vma_ksm_compatible(): pages of FPR mappings are never merged. */
static inline bool fpr_ksm_compatible(struct vm_area_struct *vma)
{
	return !fpr_on() || __fpr_ksm_compatible(vma);
}

/* mprotect_fixup(): no translation keeps rights that the mapping loses (I2). */
static inline void fpr_mprotect(struct vm_area_struct *vma)
{
	if (fpr_on())
		__fpr_mprotect(vma);
}

#else /* !CONFIG_CEASEFIRE_FPR */

#define FPR_MAP_FLAGS	0

static inline void fpr_mm_init(struct mm_struct *mm) { }

static inline unsigned long
fpr_get_unmapped_area(struct file *file, unsigned long addr, unsigned long len,
		      unsigned long pgoff, unsigned long flags,
		      vm_flags_t *vm_flags)
{
	return __get_unmapped_area(file, addr, len, pgoff, flags, *vm_flags);
}

static inline void fpr_mapped(struct vm_area_struct *vma) { }
/* A macro: the compiler would compute the range, and change code around it. */
#define fpr_va_claim(...) ((void)0)
static inline bool fpr_munmap_single(struct vma_iterator *vmi,
				     struct vm_area_struct *vma,
				     unsigned long start, unsigned long end,
				     bool unlock)
{
	return false;
}

static inline void fpr_munmap_prepare(struct vma_munmap_struct *vms) { }
static inline void fpr_munmap_begin(struct mmu_gather *tlb,
				    struct vma_munmap_struct *vms,
				    struct ma_state *mas_detach) { }
static inline bool fpr_munmap_keep_tables(struct vma_munmap_struct *vms,
					  struct ma_state *mas_detach)
{
	return false;
}

static inline void fpr_clamp(struct vm_area_struct *vma, unsigned long *floor,
			     unsigned long *ceiling) { }
static inline void fpr_tick(void) { }
static inline void fpr_flush_started(struct mm_struct *mm) { }
static inline void fpr_flush_completed(struct mm_struct *mm, u64 gen,
				       bool full) { }
static inline void fpr_exit_begin(struct mm_struct *mm) { }
static inline void fpr_exit_tables(struct mm_struct *mm,
				   struct mmu_gather *tlb) { }
static inline void fpr_exit_end(struct mm_struct *mm) { }

static inline bool fpr_park(struct page *page, unsigned int order, int site)
{
	ceasefire_event(page, 1UL << order, CEASEFIRE_FREED);
	return false;
}

static inline void fpr_assert_clean(struct page *page, unsigned int order) { }

static inline bool fpr_folio_stale(struct folio *folio)
{
	ceasefire_moved(folio);
	return false;
}

static inline void fpr_fault_begin(struct vm_area_struct *vma) { }
static inline void fpr_fault_end(void) { }

#define fpr_recycle(mapping, gfp, order)	((struct folio *)NULL)

static inline unsigned long fpr_drain(enum fpr_drain_reason reason)
{
	return 0;
}

static inline bool fpr_ksm_compatible(struct vm_area_struct *vma)
{
	return true;
}

static inline void fpr_mprotect(struct vm_area_struct *vma) { }

#endif /* CONFIG_CEASEFIRE_FPR */

#endif /* _LINUX_CEASEFIRE_H */
