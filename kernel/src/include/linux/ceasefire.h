/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Hooks of ceasefire in the rest of the kernel.
 *
 * Every hook is one call from the hooked function to an inline below, which
 * tests a flag and calls the double-underscore function in mm/ceasefire/. The
 * flag is off while no process uses MAP_FPR, and all hooks vanish with
 * CONFIG_CEASEFIRE_FPR=n. Documentation/mm/ceasefire/design.rst
 * has the invariants (I1..I8) that comments refer to.
 *
 * Hooks that need struct mmu_gather are in ceasefire_gather.h.
 */
#ifndef _LINUX_CEASEFIRE_H
#define _LINUX_CEASEFIRE_H

#include <linux/alloc_tag.h>
#include <linux/ceasefire_check.h>
#include <linux/gfp_types.h>
#include <linux/mm_types.h>
#include <linux/sched.h>
#include <linux/types.h>

#include <uapi/linux/ceasefire.h>

struct address_space;
struct file;
struct fpr_ctx;
struct ma_state;
struct mem_cgroup;
struct mmu_gather;
struct seq_file;
struct vm_fault;
struct vma_munmap_struct;

/* What asked for a drain; same order as the FPR_DRAIN_* counters. */
enum fpr_drain_reason {
	FPR_BY_LIMIT,
	FPR_BY_AGE,
	FPR_BY_KSWAPD,
	FPR_BY_SHRINKER,
	FPR_BY_RECLAIM,
	FPR_BY_OOM,
	FPR_BY_ISOLATE,
	FPR_BY_PCP,
	FPR_BY_COMPACT,
	FPR_BY_POISON,
	FPR_BY_CGROUP,
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
	FPR_CLAIM_PLACED,	/* mmap() where Linux has chosen the address */
};

/* Where a page is freed; one mutation each. */
enum { FPR_FREE_PAGE, FPR_FREE_FOLIOS, FPR_FREE_LARGE };

unsigned long __get_unmapped_area(struct file *file, unsigned long addr,
				  unsigned long len, unsigned long pgoff,
				  unsigned long flags, vm_flags_t vm_flags);

#ifdef CONFIG_CEASEFIRE_FPR

#include <linux/mm.h>

/* Some process has a recycling context; context.c has who may rely on it. */
extern bool fpr_used;

/* Parked base pages of all contexts. */
extern atomic_long_t fpr_nr_parked;

/* Tags by section of memory, see tags.c; NULL entries: none there. */
extern u64 **fpr_tags;
extern unsigned long fpr_sections;

/* Flags that mmap(MAP_SHARED_VALIDATE) accepts on top of the others. */
#define FPR_MAP_FLAGS	MAP_FPR

/* Debug builds: processes with fpr_auto get it for all that they map. */
#ifdef CONFIG_CEASEFIRE_DEBUG
extern bool fpr_force;
#else
#define fpr_force	false
#endif

unsigned long __fpr_map_area(struct file *file, unsigned long addr,
			     unsigned long len, unsigned long pgoff,
			     unsigned long flags, vm_flags_t *vm_flags);
int fpr_prctl(unsigned long operation, unsigned long arg3, unsigned long arg4,
	      unsigned long arg5);
void __fpr_exec_secure(struct mm_struct *mm);
void __fpr_group_inherit(struct mm_struct *mm);
void __fpr_group_exit(struct mm_struct *mm);
void __fpr_creds_changed(struct mm_struct *mm);
void __fpr_exec_failed(struct mm_struct *mm);
unsigned long __fpr_mmap_single(struct file *file, unsigned long addr,
				unsigned long len, vm_flags_t vm_flags,
				unsigned long pgoff);
void __fpr_mapped(struct vm_area_struct *vma);
void __fpr_va_claim(struct mm_struct *mm, unsigned long start,
		    unsigned long end, enum fpr_claim who);
bool __fpr_munmap_single(struct vma_iterator *vmi, struct vm_area_struct *vma,
			 unsigned long start, unsigned long end, bool unlock);
void __fpr_munmap_prepare(struct vma_munmap_struct *vms);
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
void __fpr_poisoned(unsigned long pfn);
void __fpr_fault_begin(struct vm_area_struct *vma);
struct folio *__fpr_recycle(struct address_space *mapping, gfp_t gfp);
struct folio *__fpr_recycle_anon(struct vm_fault *vmf, bool zero);
unsigned long __fpr_drain(enum fpr_drain_reason reason);
unsigned long __fpr_drain_cgroup(struct mem_cgroup *memcg);
bool __fpr_keep_charge(struct folio *folio, struct mem_cgroup *memcg);
void fpr_release_page(struct page *page, unsigned int order);
bool __fpr_ksm_mergeable(struct page *page);
void __fpr_young_cleared(struct vm_area_struct *vma, pte_t pte);
bool __fpr_evicted(struct vm_area_struct *vma, pte_t pte);
bool __fpr_evict_later(struct folio *folio, int priority);
bool __fpr_looks_at(struct vm_area_struct *vma);
bool __fpr_only_clears(struct vm_area_struct *vma, unsigned long address,
		       pte_t *pte);
bool __fpr_evict_waits(struct folio *folio);
void __fpr_mprotect(struct vm_area_struct *vma, vm_flags_t old);
void __fpr_placed(unsigned long addr, unsigned long len, enum fpr_claim who,
		  vm_flags_t vm_flags);
void __fpr_swap_out(struct folio *folio);
void __fpr_task_mem(struct seq_file *m, struct mm_struct *mm);

static __always_inline bool fpr_on(void)
{
	return unlikely(READ_ONCE(fpr_used));
}

/* Where the tag of a frame is; NULL if its section has none. RCU read side. */
static __always_inline u64 *fpr_tag_slot(unsigned long pfn)
{
	unsigned long section = pfn_to_section_nr(pfn);
	u64 *tags;

	if (unlikely(section >= fpr_sections))
		return NULL;
	tags = READ_ONCE(fpr_tags[section]);
	return tags ? tags + (pfn & (PAGES_PER_SECTION - 1)) : NULL;
}

/*
 * Has a page that is freed a tag, so that it is worth a call? Inline, because
 * each free of the system asks.
 */
static __always_inline bool fpr_page_tagged(struct page *page,
					    unsigned int order)
{
	bool tagged;
	u64 *slot;

	/* Any of its frames may have one. */
	if (unlikely(order))
		return true;
	rcu_read_lock();
	slot = fpr_tag_slot(page_to_pfn(page));
	tagged = slot && READ_ONCE(*slot);
	rcu_read_unlock();
	return unlikely(tagged);
}

/*
 * mm_init(): a new address space starts without a context (fork, exec), but
 * what prctl() has set goes on.
 */
static inline void fpr_mm_init(struct mm_struct *mm)
{
	mm->fpr = NULL;
	mm->fpr_auto = current->mm ? READ_ONCE(current->mm->fpr_auto) : 0;
	mm->fpr_group = NULL;
	if (current->mm && unlikely(READ_ONCE(current->mm->fpr_group)))
		__fpr_group_inherit(mm);
}

/* commit_creds(): whom a process trusts is for its old credentials only (I2). */
static inline void fpr_creds_changed(struct mm_struct *mm)
{
	/* Without a choice, too: another thread may be about to give it up. */
	if (mm && unlikely(READ_ONCE(mm->fpr_group) || READ_ONCE(mm->fpr)))
		__fpr_creds_changed(mm);
}

/* bprm_mm_init(): an address space goes that exit_mmap() does not see. */
static inline void fpr_exec_failed(struct mm_struct *mm)
{
	if (unlikely(mm->fpr_group))
		__fpr_exec_failed(mm);
}

/* begin_new_exec(): a program with privileges that its caller lacks (I2). */
static inline void fpr_exec_secure(struct mm_struct *mm)
{
	if (unlikely(mm->fpr_auto || mm->fpr_group))
		__fpr_exec_secure(mm);
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
	unsigned long area;

	if (unlikely(flags & MAP_FPR ||
		     ((file || fpr_force) &&
		      len <= READ_ONCE(current->mm->fpr_auto)))) {
		area = __fpr_map_area(file, addr, len, pgoff, flags, vm_flags);
		if (area)
			return area;
	}
	area = __get_unmapped_area(file, addr, len, pgoff, flags, *vm_flags);
	if (fpr_on() && current->mm->fpr && !IS_ERR_VALUE(area))
		__fpr_placed(area, len, area == addr ? FPR_CLAIM_MMAP :
						       FPR_CLAIM_PLACED,
			     *vm_flags);
	return area;
}

/* do_mmap(): the short way for a small file; 0 if it is the usual one. */
static inline unsigned long
fpr_mmap_single(struct file *file, unsigned long addr, unsigned long len,
		vm_flags_t vm_flags, unsigned long pgoff)
{
	if (likely(!(vm_flags & VM_FPR)))
		return 0;
	return __fpr_mmap_single(file, addr, len, vm_flags, pgoff);
}

/* __mmap_region(): the file has set its vm_ops; is it really eligible? */
static inline void fpr_mapped(struct vm_area_struct *vma)
{
	if (unlikely(vma->vm_flags & VM_FPR))
		__fpr_mapped(vma);
}

/* All other insertions and growths of VMAs; mmap_lock held for writing (I3). */
static inline void fpr_va_claim(struct mm_struct *mm, unsigned long start,
				unsigned long end, enum fpr_claim who)
{
	if (fpr_on() && unlikely(mm->fpr))
		__fpr_va_claim(mm, start, end, who);
}

/* do_vmi_align_munmap(): the short way for a single eligible mapping. */
static inline bool fpr_munmap_single(struct vma_iterator *vmi,
				     struct vm_area_struct *vma,
				     unsigned long start, unsigned long end,
				     bool unlock)
{
	return fpr_on() && unlikely(vma->vm_flags & VM_FPR) &&
	       __fpr_munmap_single(vmi, vma, start, end, unlock);
}

/* do_vmi_align_munmap(), mmap_lock held for writing. */
static inline void fpr_munmap_prepare(struct mm_struct *mm,
				      struct vma_munmap_struct *vms)
{
	if (fpr_on() && unlikely(mm->fpr))
		__fpr_munmap_prepare(vms);
}

/* free_pgtables(): keep away from left-over tables of the quarantine (I4). */
static inline void fpr_clamp(struct vm_area_struct *vma, unsigned long *floor,
			     unsigned long *ceiling)
{
	if (fpr_on() && unlikely(vma->vm_mm->fpr))
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
	if (fpr_on() && unlikely(READ_ONCE(mm->fpr)))
		__fpr_flush_completed(mm, gen, full);
}

/* sched_tick(): pay debts that are only getting old, interrupts off. */
static inline void fpr_tick(void)
{
	if (fpr_on())
		__fpr_tick();
}

/* exit_mmap(), at its start, before free_pgtables() and at its end. */
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
	if (unlikely(mm->fpr_group))
		__fpr_group_exit(mm);
}

/*
 * Free side of the page allocator, any context, hot: true if the page may
 * still be reached by stale translations and was parked (I1).
 */
static inline bool fpr_park(struct page *page, unsigned int order, int site)
{
	if (fpr_on() && fpr_page_tagged(page, order) &&
	    __fpr_park(page, order, site))
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

/*
 * action_result(), page_handle_poison(): a bad frame, which no entry maps any
 * more, must not be read through a stale translation either (I5).
 */
static inline void fpr_poisoned(unsigned long pfn)
{
	if (fpr_on())
		__fpr_poisoned(pfn);
}

/* __do_fault(): which mapping may recycle frames now (I2). */
static inline void fpr_fault_begin(struct vm_area_struct *vma)
{
	if (fpr_on() && unlikely(vma->vm_flags & VM_FPR))
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
	return fpr_on() && !order && unlikely(current->fpr_mapping) ?
	       __fpr_recycle(mapping, gfp) : NULL;
}

/* Charged to the allocation site, as filemap_alloc_folio() is. */
#define fpr_recycle(...)	alloc_hooks(fpr_recycle_noprof(__VA_ARGS__))

/* A page of anonymous memory: a parked frame of the process, charged; or NULL. */
static inline struct folio *fpr_recycle_anon_noprof(struct vm_fault *vmf,
						    bool zero)
{
	return fpr_on() && unlikely(vmf->vma->vm_flags & VM_FPR) ?
	       __fpr_recycle_anon(vmf, zero) : NULL;
}

#define fpr_recycle_anon(...)	alloc_hooks(fpr_recycle_anon_noprof(__VA_ARGS__))

/* Return parked frames to the allocator; may flush, so it may sleep (I6). */
static inline unsigned long fpr_drain(enum fpr_drain_reason reason)
{
	return unlikely(atomic_long_read(&fpr_nr_parked)) ? __fpr_drain(reason) : 0;
}

/*
 * uncharge_folio(): true if the group goes on to pay for it, because it will be
 * parked (I6). fpr_park() takes it from there.
 */
static inline bool fpr_keep_charge(struct folio *folio,
				   struct mem_cgroup *memcg)
{
	return fpr_on() && fpr_page_tagged(&folio->page, folio_order(folio)) &&
	       __fpr_keep_charge(folio, memcg);
}

/* try_to_free_mem_cgroup_pages(): a group gets back what is parked of it. */
static inline unsigned long fpr_drain_cgroup(struct mem_cgroup *memcg)
{
	return unlikely(atomic_long_read(&fpr_nr_parked)) ?
	       __fpr_drain_cgroup(memcg) : 0;
}

/* try_to_merge_one_page(): not while a stale translation may write to it (I2). */
static inline bool fpr_ksm_mergeable(struct page *page)
{
	return !fpr_on() || __fpr_ksm_mergeable(page);
}

/* ptep_test_and_clear_young(): CPUs may have the entry until they are flushed. */
static inline void fpr_young_cleared(struct vm_area_struct *vma, pte_t pte)
{
	if (fpr_on() && unlikely(vma->vm_flags & VM_FPR))
		__fpr_young_cleared(vma, pte);
}

/* try_to_unmap_one(): true if no CPU has an entry that was just cleared (I3). */
static inline bool fpr_evicted(struct vm_area_struct *vma, pte_t pte)
{
	return fpr_on() && unlikely(vma->vm_flags & VM_FPR) &&
	       __fpr_evicted(vma, pte);
}

/* folio_check_references(): true if a folio can be evicted better later. */
static inline bool fpr_evict_later(struct folio *folio, int priority)
{
	return fpr_on() && __fpr_evict_later(folio, priority);
}

/* evict_folios(): true if a rejected folio is none the younger for it. */
static inline bool fpr_evict_waits(struct folio *folio)
{
	return fpr_on() && __fpr_evict_waits(folio);
}

/* invalid_folio_referenced_vma(): with the bit set a page needs a flush. */
static inline bool fpr_looks_at(struct vm_area_struct *vma)
{
	return fpr_on() && unlikely(vma->vm_flags & VM_FPR) &&
	       __fpr_looks_at(vma);
}

/* folio_referenced_one(): true if the use of a page does not count. */
static inline bool fpr_only_clears(struct vm_area_struct *vma,
				   unsigned long address, pte_t *pte)
{
	return fpr_on() && pte && unlikely(vma->vm_flags & VM_FPR) &&
	       __fpr_only_clears(vma, address, pte);
}

/* mprotect_fixup(): no translation keeps rights that the mapping loses (I2). */
static inline void fpr_mprotect(struct vm_area_struct *vma, vm_flags_t old)
{
	if (fpr_on() && unlikely(vma->vm_mm->fpr))
		__fpr_mprotect(vma, old);
}

/* swap_writepage(): nobody writes to a page while it is written out (I2). */
static inline void fpr_swap_out(struct folio *folio)
{
	if (fpr_on())
		__fpr_swap_out(folio);
}

/* task_mem(): memory that the process keeps from others (I8). */
static inline void fpr_task_mem(struct seq_file *m, struct mm_struct *mm)
{
	if (fpr_on())
		__fpr_task_mem(m, mm);
}

#else /* !CONFIG_CEASEFIRE_FPR */

#define FPR_MAP_FLAGS	0

static inline void fpr_mm_init(struct mm_struct *mm) { }
static inline void fpr_exec_secure(struct mm_struct *mm) { }
/* A macro: the compiler would look at the task, and change code around it. */
#define fpr_creds_changed(mm)	((void)0)
static inline void fpr_exec_failed(struct mm_struct *mm) { }

static inline unsigned long
fpr_get_unmapped_area(struct file *file, unsigned long addr, unsigned long len,
		      unsigned long pgoff, unsigned long flags,
		      vm_flags_t *vm_flags)
{
	return __get_unmapped_area(file, addr, len, pgoff, flags, *vm_flags);
}

#define fpr_mmap_single(file, addr, len, vm_flags, pgoff)	0UL
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

static inline void fpr_munmap_prepare(struct mm_struct *mm,
				      struct vma_munmap_struct *vms) { }
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

static inline void fpr_poisoned(unsigned long pfn) { }
static inline void fpr_fault_begin(struct vm_area_struct *vma) { }
static inline void fpr_fault_end(void) { }

#define fpr_recycle(mapping, gfp, order)	((struct folio *)NULL)
#define fpr_recycle_anon(vmf, zero)		((struct folio *)NULL)

static inline unsigned long fpr_drain(enum fpr_drain_reason reason)
{
	return 0;
}

static inline bool fpr_keep_charge(struct folio *folio,
				   struct mem_cgroup *memcg)
{
	return false;
}

static inline unsigned long fpr_drain_cgroup(struct mem_cgroup *memcg)
{
	return 0;
}

static inline bool fpr_ksm_mergeable(struct page *page)
{
	return true;
}

static inline void fpr_young_cleared(struct vm_area_struct *vma, pte_t pte) { }
static inline bool fpr_evicted(struct vm_area_struct *vma, pte_t pte)
{
	return false;
}

static inline bool fpr_evict_later(struct folio *folio, int priority)
{
	return false;
}

static inline bool fpr_evict_waits(struct folio *folio)
{
	return false;
}

static inline bool fpr_looks_at(struct vm_area_struct *vma)
{
	return false;
}

/* A macro: the compiler would look at the entry, and change code around it. */
#define fpr_only_clears(vma, address, pte)	false

static inline void fpr_mprotect(struct vm_area_struct *vma, vm_flags_t old) { }
static inline void fpr_swap_out(struct folio *folio) { }
static inline void fpr_task_mem(struct seq_file *m, struct mm_struct *mm) { }

#endif /* CONFIG_CEASEFIRE_FPR */

#endif /* _LINUX_CEASEFIRE_H */
