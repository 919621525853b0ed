/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Hooks of ceasefire in the life of a process: begin, credentials, exec, exit.
 */
#ifndef _LINUX_CEASEFIRE_EXIT_H
#define _LINUX_CEASEFIRE_EXIT_H

#include <linux/ceasefire_core.h>

struct mmu_gather;
struct seq_file;

#ifdef CONFIG_CEASEFIRE_CORE

void __cf_group_inherit(struct mm_struct *mm);
void __cf_group_exit(struct mm_struct *mm);
void __cf_creds_changed(struct mm_struct *mm);
void __cf_exec_failed(struct mm_struct *mm);
void __cf_exit_begin(struct mm_struct *mm);
void __cf_exit_tables(struct mm_struct *mm, struct mmu_gather *tlb);
void __cf_exit_end(struct mm_struct *mm);
void __cf_task_mem(struct seq_file *m, struct mm_struct *mm);

/* A new address space has no context (fork, exec); what was chosen goes on. */
static inline void cf_mm_init(struct mm_struct *mm)
{
	mm->cf = NULL;
	mm->cf_group = NULL;
	mm->cf_policy = current->mm ? READ_ONCE(current->mm->cf_policy) : NULL;
	if (current->mm && unlikely(READ_ONCE(current->mm->cf_group)))
		__cf_group_inherit(mm);
}

/* commit_creds(): whom a process trusts is for its old credentials only (I2). */
static inline void cf_creds_changed(struct mm_struct *mm)
{
	/* Without a choice, too: another thread may be about to give it up. */
	if (mm && unlikely(READ_ONCE(mm->cf_group) || READ_ONCE(mm->cf)))
		__cf_creds_changed(mm);
}

/* bprm_mm_init(): an address space goes that exit_mmap() does not see. */
static inline void cf_exec_failed(struct mm_struct *mm)
{
	if (unlikely(mm->cf_group))
		__cf_exec_failed(mm);
}

/* exit_mmap(), at its start, before free_pgtables(), and at its end. */
static inline void cf_exit_begin(struct mm_struct *mm)
{
	if (unlikely(mm->cf))
		__cf_exit_begin(mm);
}

static inline void cf_exit_tables(struct mm_struct *mm, struct mmu_gather *tlb)
{
	if (unlikely(mm->cf))
		__cf_exit_tables(mm, tlb);
}

static inline void cf_exit_end(struct mm_struct *mm)
{
	if (unlikely(mm->cf))
		__cf_exit_end(mm);
	if (unlikely(mm->cf_group))
		__cf_group_exit(mm);
}

/* task_mem(): memory that the process keeps from others (I8). */
static inline void cf_task_mem(struct seq_file *m, struct mm_struct *mm)
{
	if (cf_on())
		__cf_task_mem(m, mm);
}

#else

static inline void cf_mm_init(struct mm_struct *mm) { }

/* A macro: the compiler would look at the task, and change code around it. */
#define cf_creds_changed(mm)	((void)0)

static inline void cf_exec_failed(struct mm_struct *mm) { }
static inline void cf_exit_begin(struct mm_struct *mm) { }
static inline void cf_exit_tables(struct mm_struct *mm,
				  struct mmu_gather *tlb) { }
static inline void cf_exit_end(struct mm_struct *mm) { }
static inline void cf_task_mem(struct seq_file *m, struct mm_struct *mm) { }

#endif /* CONFIG_CEASEFIRE_CORE */

#ifdef CONFIG_CEASEFIRE_FPR

int fpr_prctl(unsigned long operation, unsigned long arg3, unsigned long arg4,
	      unsigned long arg5);
void __fpr_exec_secure(struct mm_struct *mm);

/* What prctl() has set for the process goes on. */
static inline void fpr_mm_init(struct mm_struct *mm)
{
	mm->fpr_auto = current->mm ? READ_ONCE(current->mm->fpr_auto) : 0;
}

/* What a caller has chosen is not for a program with privileges that it lacks. */
static inline void fpr_exec_secure(struct mm_struct *mm)
{
	if (unlikely(mm->fpr_auto || mm->cf_group || mm->cf_policy))
		__fpr_exec_secure(mm);
}

#else

static inline void fpr_mm_init(struct mm_struct *mm) { }
static inline void fpr_exec_secure(struct mm_struct *mm) { }

#endif /* CONFIG_CEASEFIRE_FPR */

#ifdef CONFIG_CEASEFIRE_LATR

int latr_prctl(unsigned long operation, unsigned long arg3,
	       unsigned long arg4, unsigned long arg5);
void __latr_exec(struct mm_struct *mm);

static inline void latr_exec(struct mm_struct *mm)
{
	__latr_exec(mm);
}

#else

static inline void latr_exec(struct mm_struct *mm) { }

#endif /* CONFIG_CEASEFIRE_LATR */

#ifdef CONFIG_CEASEFIRE_SHARERS

int sharers_prctl(unsigned long operation, unsigned long arg3,
		  unsigned long arg4, unsigned long arg5);
void __sharers_exec(struct mm_struct *mm);
void __sharers_exit_end(struct mm_struct *mm);

/* A new address space has no copies; that it wants them goes on. */
static inline void sharers_mm_init(struct mm_struct *mm)
{
	mm->context.sharers = NULL;
	mm->context.place = NULL;
	mm->context.sharers_wanted =
		current->mm && READ_ONCE(current->mm->context.sharers_wanted) ?
		SHARERS_WANTED : SHARERS_UNWANTED;
}

static inline void sharers_exec_secure(struct mm_struct *mm)
{
	mm->context.sharers_wanted = SHARERS_UNWANTED;
}

static inline void sharers_exec(struct mm_struct *mm)
{
	__sharers_exec(mm);
}

/* The process is gone, though others may hold on to what is left of it. */
static inline void sharers_exit_end(struct mm_struct *mm)
{
	if (unlikely(mm->context.sharers))
		__sharers_exit_end(mm);
}

#else

static inline void sharers_mm_init(struct mm_struct *mm) { }
static inline void sharers_exec_secure(struct mm_struct *mm) { }
static inline void sharers_exec(struct mm_struct *mm) { }
static inline void sharers_exit_end(struct mm_struct *mm) { }

#endif /* CONFIG_CEASEFIRE_SHARERS */

#ifdef CONFIG_CEASEFIRE_DEBUG
bool __cf_fork_fails(void);

/*
 * mm_init(): shall it fail here, where the new address space still has what it has copied
 * from its parent?
 */
static inline bool ceasefire_fork_fails(void)
{
	return __cf_fork_fails();
}
#else
#define ceasefire_fork_fails()	false
#endif

#ifdef CONFIG_CEASEFIRE_ABIS

int abis_prctl(unsigned long operation, unsigned long arg3,
	       unsigned long arg4, unsigned long arg5);
void __abis_exec(struct mm_struct *mm);
void __abis_exec_secure(struct mm_struct *mm);
void __abis_thread(struct mm_struct *mm);

/* What prctl() has set for the process goes on. */
static inline void abis_mm_init(struct mm_struct *mm)
{
	mm->context.abis = current->mm && READ_ONCE(current->mm->context.abis);
}

static inline void abis_exec_secure(struct mm_struct *mm)
{
	if (unlikely(mm->context.abis))
		__abis_exec_secure(mm);
}

static inline void abis_exec(struct mm_struct *mm)
{
	__abis_exec(mm);
}

/* copy_mm(): one more thread is made; the parent of one by vfork() sleeps meanwhile. */
static inline void abis_thread(struct mm_struct *mm, bool vfork)
{
	if (unlikely(READ_ONCE(mm->context.abis)) && !vfork)
		__abis_thread(mm);
}

#else

static inline void abis_mm_init(struct mm_struct *mm) { }
static inline void abis_exec_secure(struct mm_struct *mm) { }
static inline void abis_exec(struct mm_struct *mm) { }
static inline void abis_thread(struct mm_struct *mm, bool vfork) { }

#endif /* CONFIG_CEASEFIRE_ABIS */

/* mm_init() */
static inline void ceasefire_mm_init(struct mm_struct *mm)
{
	cf_mm_init(mm);
	fpr_mm_init(mm);
	sharers_mm_init(mm);
	abis_mm_init(mm);
}

/* exit_mmap(), at its end. */
static inline void ceasefire_exit_end(struct mm_struct *mm)
{
	cf_exit_end(mm);
	sharers_exit_end(mm);
}

/* begin_new_exec(): a program with privileges that its caller lacks (I2). */
static inline void ceasefire_exec_secure(struct mm_struct *mm)
{
	fpr_exec_secure(mm);
	sharers_exec_secure(mm);
	abis_exec_secure(mm);
}

/* begin_new_exec(): each program gets what root wants all of them to have. */
static inline void ceasefire_exec(struct mm_struct *mm)
{
	latr_exec(mm);
	sharers_exec(mm);
	abis_exec(mm);
}

#endif /* _LINUX_CEASEFIRE_EXIT_H */
