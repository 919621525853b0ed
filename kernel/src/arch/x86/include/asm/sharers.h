/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Hooks of sharers in arch/x86/mm: which root a CPU loads, faults, flushes.
 * arch/x86/mm/sharers/sharers.h has what it is about.
 */
#ifndef _ASM_X86_SHARERS_H
#define _ASM_X86_SHARERS_H

#include <linux/ceasefire_sharers.h>
#include <linux/irqflags.h>
#include <linux/mm_types.h>
#include <linux/sched.h>

struct flush_tlb_info;
struct mmu_gather;
struct pt_regs;

/* What a fault on a user address was for. */
enum sharers_fault {
	SHARERS_GO_ON,		/* not for us */
	SHARERS_RETRY,		/* done: the access may succeed now */
	SHARERS_AGAIN,		/* not for us now, but when it was handled */
};

#ifdef CONFIG_CEASEFIRE_SHARERS

pgd_t *__sharers_root(struct mm_struct *mm);
bool __sharers_behind(struct mm_struct *mm);
void __sharers_switch(struct mm_struct *mm, bool *need_flush);
void flush_tlb_mm_cpus(struct mm_struct *mm, unsigned long start,
		       unsigned long end, unsigned int stride_shift,
		       bool freed_tables);
void __sharers_flush_here(const struct flush_tlb_info *info);
void __sharers_ldt(struct mm_struct *mm, bool there);
void __sharers_flush_deferred(void);
enum sharers_fault __sharers_fault(struct mm_struct *mm, struct pt_regs *regs,
				   unsigned long error_code,
				   unsigned long addr);

/* The root that this CPU has or is to have in CR3 for @mm. Interrupts off. */
static inline pgd_t *sharers_root(struct mm_struct *mm)
{
	return unlikely(mm->context.sharers) ? __sharers_root(mm) : mm->pgd;
}

/* Was a flush asked of this CPU that it has not done, while it was lazy? */
static inline bool sharers_behind(struct mm_struct *mm)
{
	return unlikely(mm->context.sharers) && __sharers_behind(mm);
}

/*
 * switch_mm_irqs_off(): this CPU is about to load the root of @mm, is in
 * mm_cpumask, and that is visible.
 */
static inline void sharers_switch(struct mm_struct *mm, bool *need_flush)
{
	if (unlikely(mm->context.sharers)) {
		/* By address only here: all others keep it in a register. */
		bool flush = *need_flush;

		__sharers_switch(mm, &flush);
		*need_flush = flush;
	}
}

/*
 * The entry for an LDT was made in mm->pgd, or is about to go: all roots have the same.
 * The barrier is for a process that gets copies right now.
 */
static inline void sharers_ldt(struct mm_struct *mm, bool there)
{
	smp_mb(); /* the entry before the question */
	if (unlikely(mm->context.sharers))
		__sharers_ldt(mm, there);
}

/*
 * flush_tlb_func(): true if it is one of those. One that is for no process is a batch of
 * reclaim. A macro: the structure is not known.
 */
#define sharers_flush_here(info)					\
({									\
	if (unlikely(!(info)->mm && READ_ONCE(sharers_used)))		\
		__sharers_flush_deferred();				\
	if (unlikely((info)->sharers))					\
		__sharers_flush_here(info);				\
	unlikely((info)->sharers);					\
})

/* handle_page_fault(), before the fault is handled; interrupts are off. */
static inline enum sharers_fault sharers_fault(struct pt_regs *regs,
					       unsigned long error_code,
					       unsigned long addr)
{
	struct mm_struct *mm = current->mm;

	return mm && unlikely(mm->context.sharers) ?
	       __sharers_fault(mm, regs, error_code, addr) : SHARERS_GO_ON;
}

/* The same when it was handled, where that is worth it: saves a second fault. */
static inline void sharers_fault_again(struct pt_regs *regs,
				       unsigned long error_code,
				       unsigned long addr)
{
	local_irq_disable();
	__sharers_fault(current->mm, regs, error_code, addr);
}

/*
 * Tables are freed by RCU: those that walk them with interrupts off, as GUP and a
 * fill do, are not waited for by an interrupt. A macro, for the same reason.
 */
#define sharers_remove_table(tlb, table)				\
	(unlikely((tlb)->mm->context.sharers) &&			\
	 (tlb_remove_table(tlb, table), true))

#else

#define sharers_root(mm)	((mm)->pgd)
#define sharers_behind(mm)	false
#define sharers_switch(mm, need_flush) ((void)0)
/* Without sharers the flush of all CPUs of a process is the one that there is. */
#define flush_tlb_mm_cpus flush_tlb_mm_range
#define sharers_ldt(mm, there) ((void)0)
#define sharers_flush_here(info) false
#define sharers_fault(regs, error_code, addr) SHARERS_GO_ON
#define sharers_fault_again(regs, error_code, addr) ((void)0)
#define sharers_remove_table(tlb, table) false

#endif /* CONFIG_CEASEFIRE_SHARERS */

#endif /* _ASM_X86_SHARERS_H */
