/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Sharers: which CPUs can hold a translation, exactly, for each region of 2 MiB.
 *
 * A CPU that runs a process of this kind walks a copy of its own of the upper page
 * tables, from the root down to the tables of PMDs, which starts empty. The tables
 * of PTEs are shared: a copy leads to them. All software goes on with the
 * tables from mm->pgd, the canonical ones; only hardware walks a copy. The first
 * access of a CPU to a region faults, the CPU is noted for the region, and then
 * gets the entry. Whoever is not noted cannot have walked there, so a flush goes to
 * those who are (I11), and no table is freed while a copy leads to it (I12).
 *
 *   mask.c	who is noted, for each region of a process
 *   copy.c	the copy of a CPU: its tables and entries
 *   cpu.c	which root a CPU loads, and when that changes
 *   fault.c	an entry of a copy is filled
 *   whole.c	a copy has a GiB as the canonical tables have it
 *   withdraw.c	the canonical entry has changed: copies lose theirs
 *   flush.c	flushes that go to those who are noted
 *   defer.c	the same for what reclaim puts off
 *   leave.c	a CPU that does not use a region is noted no more
 *   process.c	processes that get copies, and lose them
 *   ldt.c	the one entry of the kernel's half that is a process' own
 *
 * A huge entry is copied as it is, with the accessed bit set, and writable only if
 * it is dirty: then no CPU ever has a bit to set in a copy. A fault sets bits in the
 * canonical entry where hardware would.
 *
 * What a copy cannot do, the canonical root does: a CPU that has it loaded is
 * unconfined, and every flush of the process is for it, too.
 *
 * The order that all of it rests on; C is a canonical entry, S that of the copy of
 * CPU c, M the mask of the region, N counts withdrawals in its GiB, T a table of PTEs:
 *
 *   fill (c)		walk (c)	flush			withdraw
 *   n = N		reads S		changes a PTE		C = 0
 *   T = C		reads a PTE	barrier			barrier
 *   M |= c				reads M			N++
 *   S = T				asks all in M		reads M
 *   barrier				interrupts, waits	S = 0 for all in M
 *   N still n?						flush of the region
 *   else S = 0,						frees T (RCU)
 *   flush of all
 *
 * - Nobody is missed. A flush that reads M without c does so before c sets its bit,
 *   so c walks after that, and sees the changed PTE.
 * - No entry dangles. A withdrawal that matters clears C after c has read it, so N++
 *   comes after n = N. If it reads M without c, then N++ is before c sets its bit;
 *   if with c, it clears S, or does so before S is set, and N++ is before that. So c
 *   sees N changed, and undoes its fill with a flush of everything: T may have valid
 *   PTEs still. The interrupt waits for the fill, which has interrupts off, and
 *   software that reads T is waited for by RCU. Where a hypervisor puts off the interrupt of a
 *   CPU that it does not run, the fill is undone when it goes on, and no NMI uses it before.
 * - To look at C again would not do. Where a table of PMDs is moved or given up, what
 *   c has found in it stays as it was. And T can have been at another address
 *   meanwhile, where its PTEs changed, and c was not asked to flush for those.
 * - A mask belongs to the region, not to T, and a bit goes only when its CPU has
 *   flushed everything with S = 0 (leave.c). So who finds no table any more still
 *   finds whom to flush.
 */
#ifndef _X86_MM_SHARERS_H
#define _X86_MM_SHARERS_H

#include <linux/atomic.h>
#include <linux/cpumask.h>
#include <linux/list.h>
#include <linux/mm_types.h>
#include <linux/pgtable.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>

#include <asm/sharers.h>
#include <asm/tlbflush.h>

/* A bit of a mask each. CPUs for which there is none are unconfined. */
#define SHARERS_SLOTS		64

/* Whatever a copy lacks the canonical root has: no memory is no reason to kill. */
#define SHARERS_GFP		(__GFP_NORETRY | __GFP_NOWARN)

/* A region has one mask, and those of a GiB are in one page. */
#define SHARERS_REGION_SHIFT	PMD_SHIFT
#define SHARERS_GIB_SHIFT	PUD_SHIFT

/* Of one GiB and one process. */
struct sharers_gib {
	/* Which: its address by SHARERS_GIB_SHIFT. */
	unsigned long		index;
	/* By region. */
	unsigned long		*regions;
	/* Those that have the GiB whole. */
	unsigned long		whole;
	/* The union of what they ever were. */
	unsigned long		ever;
	/* Withdrawals, so that a fill notices. */
	atomic_long_t		withdrawn;
};

/* Of one CPU and one process. */
struct sharers_cpu {
	pgd_t			*root;
	unsigned int		slot;
	/* -1: none has it yet */
	int			cpu;
	/* Of that CPU, interrupts off: does it load the root, may NMIs fill? */
	bool			confined;
	bool			leaving;
	/* Flushes that were done here, of those that were asked. */
	u64			done;
	/* The GiB that was looked for last, by any CPU; it stays. */
	struct sharers_gib	*last;
	struct list_head	tables;
	atomic64_t		asked ____cacheline_aligned_in_smp;
};

/* Of one process. */
struct sharers {
	struct mm_struct	*mm;
	/* struct sharers_gib; entries are never removed. */
	struct xarray		gibs;
	/* By slot, made in advance; @nr of them. */
	struct sharers_cpu	*slots[SHARERS_SLOTS];
	unsigned int		nr;
	/* Those below have a CPU. */
	unsigned int		taken;
	/* @nr, @taken; may be taken with interrupts off, under a run queue's lock */
	raw_spinlock_t		lock;
	/* The entry for an LDT is about to go (PTI); pgd_lock */
	bool			no_ldt;
	/* Flushes go to all, and no CPU gets a copy. */
	bool			stopped;
	struct list_head	list;
	struct work_struct	more;
	/* CPUs that may have used the canonical root since they flushed last. */
	cpumask_var_t		unconfined;
	/* By CPU, NULL: has no slot. */
	struct sharers_cpu	*cpu[];
};

/* Why a CPU goes on with the canonical root. */
enum sharers_unconfined {
	SHARERS_HAS_NO_TABLES,	/* and cannot make them now */
	SHARERS_HAS_LARGE,	/* an entry that is not copied */
	SHARERS_HAS_STOPPED,	/* none of the process has a copy any more */
};

/* What this CPU has of a process; NULL: nothing. Interrupts off. */
static inline struct sharers_cpu *sharers_here(struct sharers *s)
{
	return READ_ONCE(s->cpu[smp_processor_id()]);
}

/* Does the hardware walk this entry, and does it lead to a table of PTEs? */
static inline bool sharers_is_walked(pmd_t pmd)
{
	return pmd_flags(pmd) & _PAGE_PRESENT;
}

/*
 * Of an entry of a copy that leads to a canonical table of PMDs; and of one that its
 * CPU was interrupted for since it walked there. Hardware ignores both.
 */
#define SHARERS_LINK		_PAGE_SOFTW2
#define SHARERS_ASKED		_PAGE_SOFTW1

/* Does the copy have the GiB as the canonical tables have it? */
static inline bool sharers_is_whole(pud_t pud)
{
	return pud_val(pud) & (SHARERS_LINK | _PAGE_PSE);
}

/*
 * The entry of the copy of any CPU for a GiB; NULL: a table is missing. RCU read side, or
 * interrupts off.
 */
static inline pud_t *sharers_copy_pud(struct sharers_cpu *sc, unsigned long addr)
{
	pgd_t *pgd = pgd_offset_pgd(sc->root, addr);
	p4d_t *p4d;

	if (pgd_none(READ_ONCE(*pgd)))
		return NULL;
	p4d = p4d_offset(pgd, addr);
	return p4d_none(READ_ONCE(*p4d)) ? NULL : pud_offset(p4d, addr);
}

/* What came of an attempt to fill. */
enum sharers_filled {
	SHARERS_NOTHING,	/* the canonical tables lead nowhere */
	SHARERS_FILLED,
	SHARERS_KNOWN,		/* there was nothing to fill */
	SHARERS_NO_TABLES,	/* of the copy */
	SHARERS_TOO_LARGE,	/* an entry that is not copied */
	SHARERS_RACED,		/* the canonical entry changed meanwhile */
};

/* mask.c */
struct sharers_gib *sharers_gib(struct sharers *s, unsigned long addr);
bool sharers_gib_make(struct sharers *s, unsigned long addr);
unsigned long *sharers_mask(struct sharers_gib *gib, unsigned long addr);
bool sharers_mask_set(struct sharers_gib *gib, unsigned long addr,
		      unsigned int slot);
void sharers_mask_set_whole(struct sharers_gib *gib, unsigned int slot);
void sharers_mask_clear_regions(struct sharers_gib *gib, unsigned int slot);
bool sharers_mask_range(struct sharers *s, unsigned long start,
			unsigned long end, unsigned long *slots);
void sharers_gibs_free(struct sharers *s);

/* copy.c */
struct sharers_cpu *sharers_cpu_alloc(struct mm_struct *mm);
void sharers_cpu_cut(struct sharers_cpu *sc);
void sharers_cpu_empty(struct mm_struct *mm, struct sharers_cpu *sc);
void sharers_cpu_free(struct mm_struct *mm, struct sharers_cpu *sc);
void sharers_table_drop(struct mm_struct *mm, struct ptdesc *table);
pmd_t *sharers_copy(struct sharers_cpu *sc, unsigned long addr);
bool sharers_copy_make(struct mm_struct *mm, struct sharers *s,
		       unsigned long addr);
void sharers_copy_clear(struct sharers_cpu *sc, unsigned long addr);

/* cpu.c */
void sharers_update(struct mm_struct *mm);
void sharers_unconfine(struct sharers *s, struct sharers_cpu *sc,
		       enum sharers_unconfined why);

/* fault.c */
pud_t *sharers_canonical_pud(struct mm_struct *mm, unsigned long addr);

/* whole.c */
bool sharers_whole_known(pud_t copy, unsigned long error_code);
enum sharers_filled sharers_whole_fill(struct sharers *s,
				       struct sharers_cpu *sc,
				       unsigned long error_code,
				       unsigned long addr);
bool sharers_whole_wanted(pmd_t *copy);
void sharers_whole_unwanted(pmd_t *copy);
void sharers_whole_clear(struct sharers_cpu *sc, unsigned long addr,
			 bool tables);

/* An NMI neither touches user memory nor fills: see nmi_uaccess_okay(). Interrupts are off. */
static inline void sharers_hide(void)
{
	this_cpu_write(cpu_tlbstate.loaded_mm, LOADED_MM_SWITCHING);
	barrier();
}

static inline void sharers_show(struct mm_struct *mm)
{
	barrier();
	this_cpu_write(cpu_tlbstate.loaded_mm, mm);
}

/* leave.c */
void sharers_leave_unused(struct sharers *s, struct sharers_cpu *sc,
			  unsigned long start, unsigned long end, bool whole);
bool sharers_find_gone(struct sharers *s, struct sharers_cpu *sc,
		       unsigned long start, unsigned long end,
		       unsigned long *gone);
void sharers_leave_gone(struct sharers *s, struct sharers_cpu *sc,
			unsigned long addr, const unsigned long *gone);

/* ldt.c */
#ifdef CONFIG_MODIFY_LDT_SYSCALL
void sharers_ldt_root(struct sharers *s, struct sharers_cpu *sc);
#else
static inline void sharers_ldt_root(struct sharers *s,
				    struct sharers_cpu *sc) { }
#endif

/* process.c */
void sharers_want_more(struct sharers *s);

#endif /* _X86_MM_SHARERS_H */
