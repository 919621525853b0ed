/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Hooks of sharers in generic code: where an entry of the upper levels stops leading
 * where it led, and what else changes who may hold a translation. Included by
 * asm/pgtable.h, so it asks for little itself. arch/x86/mm/sharers/sharers.h has what
 * it is about, asm/sharers.h the hooks of the architecture.
 */
#ifndef _LINUX_CEASEFIRE_SHARERS_H
#define _LINUX_CEASEFIRE_SHARERS_H

#include <linux/compiler.h>
#include <linux/mm_types.h>

#include <asm/barrier.h>

#ifdef CONFIG_CEASEFIRE_SHARERS

/* mm->context.sharers_wanted */
enum sharers_wanted {
	SHARERS_UNWANTED,
	SHARERS_WANTED,		/* from the second thread on */
	SHARERS_NEXT,		/* not here any more; in what is forked and executed */
};

void __sharers_withdraw(struct mm_struct *mm, unsigned long addr,
			unsigned long size);
bool __sharers_defer(struct cpumask *cpus, struct mm_struct *mm,
		     unsigned long addr);
bool __sharers_defer_finish(struct mm_struct *mm);
bool __sharers_held_elsewhere(struct mm_struct *mm, unsigned long start,
			      unsigned long end);
void __sharers_exit(struct mm_struct *mm);
void __sharers_thread(struct mm_struct *mm);
void __sharers_tick(void);

struct vm_unmapped_area_info;

unsigned long __sharers_place(const struct vm_unmapped_area_info *wanted,
			      unsigned long hint, unsigned long flags,
			      vm_flags_t vm_flags);
void __sharers_place_exit(struct mm_struct *mm);

/* Some process has had copies. */
extern bool sharers_used;

/*
 * An entry above the tables of PTEs was changed, and is not flushed for yet: no
 * copy may lead there any more (I12). The barrier is for a process that gets
 * copies right now: it reads the entry after it has said that it has copies.
 */
static inline void sharers_withdraw(struct mm_struct *mm, unsigned long addr,
				    unsigned long size)
{
	smp_mb(); /* the change before the question */
	if (unlikely(mm->context.sharers))
		__sharers_withdraw(mm, addr, size);
}

/* The same for other mechanisms. */
#define ceasefire_withdraw(mm, addr, size) sharers_withdraw(mm, addr, size)

/* arch_tlbbatch_add_pending(): true if only those are added who can hold the entry. */
static inline bool sharers_defer(struct cpumask *cpus, struct mm_struct *mm,
				 unsigned long addr)
{
	return unlikely(mm->context.sharers) &&
	       __sharers_defer(cpus, mm, addr);
}

/* arch_flush_tlb_batched_pending(): true if what was put off so far is done. */
static inline bool sharers_defer_finish(struct mm_struct *mm)
{
	return unlikely(mm->context.sharers) &&
	       __sharers_defer_finish(mm);
}

/* Entries of a range were cleared: can another CPU that runs @mm hold them? */
static inline bool ceasefire_held_elsewhere(struct mm_struct *mm,
					    unsigned long start,
					    unsigned long end)
{
	return likely(!mm->context.sharers) ||
	       __sharers_held_elsewhere(mm, start, end);
}

/* pgd_free(): no CPU has one of the roots loaded. */
static inline void sharers_exit(struct mm_struct *mm)
{
	if (unlikely(mm->context.sharers))
		__sharers_exit(mm);
	if (unlikely(mm->context.place))
		__sharers_place_exit(mm);
}

/* Has the process copies, or may it get them? */
static inline bool sharers_on(struct mm_struct *mm)
{
	return unlikely(mm->context.sharers_wanted);
}

/* copy_mm(): one more thread is made that runs in @mm; the parent of one by vfork()
 * sleeps meanwhile.
 */
static inline void sharers_thread(struct mm_struct *mm, bool vfork)
{
	if (unlikely(mm->context.sharers_wanted == SHARERS_WANTED) &&
	    !vfork)
		__sharers_thread(mm);
}

/*
 * arch_get_unmapped_area_topdown(): small mappings of a thread lie together; 0: where
 * they would be otherwise. A macro: struct task_struct is not known.
 */
#define sharers_place(wanted, hint, flags, vm_flags)			\
	(sharers_on(current->mm) ?					\
	 __sharers_place(wanted, hint, flags, vm_flags) : 0)

/* A CPU without a copy may get one. */
static inline void sharers_tick(void)
{
	if (unlikely(READ_ONCE(sharers_used)))
		__sharers_tick();
}

#else

#define sharers_withdraw(mm, addr, size) ((void)0)
#define ceasefire_withdraw(mm, addr, size) ((void)0)
#define sharers_defer(cpus, mm, addr) false
#define sharers_defer_finish(mm) false
#define ceasefire_held_elsewhere(mm, start, end) true
static inline void sharers_exit(struct mm_struct *mm) { }
static inline void sharers_thread(struct mm_struct *mm, bool vfork) { }
static inline void sharers_tick(void) { }
#define sharers_on(mm) false
#define sharers_place(...) 0UL

#endif /* CONFIG_CEASEFIRE_SHARERS */

/*
 * huge_ptep_clear_flush(): the entry goes from copies before it is flushed for. A function,
 * since what flushes is not declared for modules, which see this too.
 */
#ifdef CONFIG_CEASEFIRE_SHARERS
pte_t sharers_huge_clear_flush(struct vm_area_struct *vma, unsigned long addr,
			       pte_t *ptep);
#else
#define sharers_huge_clear_flush(vma, addr, ptep) \
	ptep_clear_flush(vma, addr, ptep)
#endif

#endif /* _LINUX_CEASEFIRE_SHARERS_H */
