// SPDX-License-Identifier: GPL-2.0
/*
 * A fault on a user address, in a process whose CPUs have copies: is it only that
 * this CPU was not here before?
 *
 * It is the first thing that a fault does, with interrupts off, takes no lock, and
 * is right in any context: where faults are disabled it makes no tables. What it
 * cannot do there the canonical root does, or else such an access would never
 * succeed. In an NMI, and in an interrupt of the kernel, it just fails: nobody tries
 * again there, and what was interrupted may have read CR3.
 *
 * Canonical tables are walked as GUP does it without locks: interrupts are off, so
 * none is freed (RCU). What was withdrawn meanwhile is not filled: withdrawals are
 * counted, from before the walk until the copy has the entry.
 *
 * An NMI may come at any time, and fill as well. Before a fill has set its entry it sets the
 * same bit and entry, or one that the fill then replaces by the same; what was withdrawn
 * meanwhile it does not find. It fills nothing while its CPU leaves regions. From the entry
 * of a fill until the second look it touches no user memory (nmi_uaccess_okay()): what the entry
 * leads to may be somebody else's by then, where a hypervisor does not interrupt a CPU that it
 * does not run. Only strncpy_from_user_nofault() does not ask: BPF of root may read such a string.
 *
 * Locks: none. Caller: handle_page_fault().
 */
#include <linux/ceasefire_morsel.h>
#include <linux/delay.h>
#include <linux/hardirq.h>
#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/uaccess.h>
#include <linux/vmstat.h>

#include <asm/irq_regs.h>
#include <asm/ptrace.h>
#include <asm/tlbflush.h>
#include <asm/trap_pf.h>

#include "../../../../mm/ceasefire/mutate.h"
#include "sharers.h"

/* An access that faults: where, how, and what this CPU's copy has for it. */
struct sharers_access {
	struct sharers		*s;
	struct sharers_cpu	*sc;
	unsigned long		addr, error_code;
	/* The entry for the region; NULL: there is no table. */
	pmd_t			*to;
	/* Was it the first visit to the region? */
	bool			first;
};

/**
 * sharers_canonical_pud() - the canonical entry for a GiB
 * @mm: the process
 * @addr: an address in it
 *
 * Context: interrupts off.
 * Return: where it is, or NULL: the tables end above.
 */
pud_t *sharers_canonical_pud(struct mm_struct *mm, unsigned long addr)
{
	pgd_t *pgd = pgd_offset(mm, addr), top = READ_ONCE(*pgd);
	p4d_t now;

	/* It may be cleared meanwhile: what was read is what leads on. */
	if (pgd_none(top))
		return NULL;
	now = READ_ONCE(*p4d_offset_lockless(pgd, top, addr));
	if (p4d_none(now))
		return NULL;
	return (pud_t *)p4d_pgtable(now) + pud_index(addr);
}

/*
 * A copy does not have what is below: an entry of 1 GiB, or a table of PMDs that belongs
 * to no process, from which nobody withdraws. It has the entry of the GiB instead.
 */
static bool sharers_is_large(pud_t pud)
{
	CF_MUTATION(sharers_links_below, return pud_leaf(pud));
	return pud_leaf(pud) || ceasefire_table_is_linked(pud);
}

/* Where the canonical tables lead; @large: no further than to the entry above. */
static pmd_t *sharers_canonical(struct mm_struct *mm, unsigned long addr,
				bool *large)
{
	pud_t *pud = sharers_canonical_pud(mm, addr), now;

	*large = false;
	if (!pud)
		return NULL;
	now = READ_ONCE(*pud);
	if (!(pud_flags(now) & _PAGE_PRESENT))
		return NULL;
	*large = sharers_is_large(now);
	return *large ? NULL : pud_pgtable(now) + pmd_index(addr);
}

/*
 * What a copy has of an entry. The bits that hardware would set now are set in the
 * canonical one, as hardware does: only while it is what was looked at. MGLRU looks
 * at that of a table, too. Returns false if the entry changed.
 */
static bool sharers_copy_of(pmd_t *from, pmd_t *entry, bool write, pmd_t *copy)
{
	pmdval_t old = pmd_val(*entry), new = old | _PAGE_ACCESSED;
	bool huge = pmd_leaf(*entry);

	if (huge && write && pmd_write(*entry))
		new |= _PAGE_DIRTY;
	if (new != old && !try_cmpxchg(&from->pmd, &old, new))
		return false;
	*entry = __pmd(new);
	*copy = *entry;
	if (huge && !pmd_dirty(*entry))
		*copy = __pmd(new & ~(pmdval_t)_PAGE_RW);
	return true;
}

/*
 * Has the copy all that the access can have from here? Each fault asks: all in registers.
 * @to: where the entry for the region is, NULL without a table
 */
static __always_inline bool sharers_is_known(struct sharers_cpu *sc,
					     unsigned long error_code,
					     unsigned long addr, pmd_t **to)
{
	pud_t *pud = sharers_copy_pud(sc, addr), now;
	pmd_t copy;

	*to = NULL;
	if (!pud)
		return false;
	now = READ_ONCE(*pud);
	if (pud_none(now))
		return false;
	if (unlikely(sharers_is_whole(now)))
		return sharers_whole_known(now, error_code);
	*to = pud_pgtable(now) + pmd_index(addr);
	copy = READ_ONCE(**to);
	return sharers_is_walked(copy) &&
	       !(pmd_leaf(copy) && error_code & X86_PF_WRITE &&
		 !pmd_write(copy));
}

/* A CPU is noted before it can walk (I12). Returns whether it was not before. */
static bool sharers_note(struct sharers_gib *gib, unsigned long addr,
			 unsigned int slot)
{
	CF_MUTATION(sharers_unnoted, return true);
	return sharers_mask_set(gib, addr, slot);
}

/* The entry that was found, in the table where it was found. */
static bool sharers_is_other(pmd_t then, pmd_t *at)
{
	pmd_t now = READ_ONCE(*at);

	return pmd_leaf(then) ? pmd_val(then) != pmd_val(now) :
				!sharers_is_walked(now) || pmd_leaf(now) ||
				pmd_pfn(then) != pmd_pfn(now);
}

/* Was something withdrawn since the canonical tables were walked? */
static bool sharers_was_withdrawn(struct sharers_gib *gib, long count,
				  pmd_t then, pmd_t *now)
{
	CF_MUTATION(sharers_no_second_look, return false);
	CF_MUTATION(sharers_looks_at_entry, return sharers_is_other(then, now));
	return atomic_long_read(&gib->withdrawn) != count;
}

/* Nobody changes where a canonical entry leads without taking it from the copies. */
static void sharers_check(pmd_t old, pmd_t new)
{
	VM_WARN_ON_ONCE(sharers_is_walked(old) &&
			(pmd_leaf(old) != pmd_leaf(new) ||
			 pmd_pfn(old) != pmd_pfn(new)));
}

/* Debug builds: makes the time between the first look and the note long. */
static void sharers_fill_pause(void)
{
#ifdef CONFIG_CEASEFIRE_DEBUG
	u32 us = READ_ONCE(sharers_fill_delay_us);

	if (us && !in_nmi())
		mdelay(us / USEC_PER_MSEC);
#endif
}

/* Fill the entry of this CPU's copy for a region; interrupts are off. */
static enum sharers_filled sharers_fill(struct sharers_access *a)
{
	struct sharers *s = a->s;
	struct sharers_gib *gib = sharers_gib(s, a->addr);
	pmd_t *from, entry, copy;
	long withdrawn = 0;
	bool large, raced;

	if (gib)
		withdrawn = atomic_long_read(&gib->withdrawn);
	/* The count before what it is about. */
	smp_rmb();
	from = sharers_canonical(s->mm, a->addr, &large);
	if (large && in_nmi())
		return SHARERS_TOO_LARGE;
	if (large) {
		sharers_fill_pause();
		return sharers_whole_fill(s, a->sc, a->error_code, a->addr);
	}
	if (!from)
		return SHARERS_NOTHING;
	entry = READ_ONCE(*from);
	if (!sharers_is_walked(entry))
		return SHARERS_NOTHING;
	if (!a->to || !gib)
		return SHARERS_NO_TABLES;
	if (!sharers_copy_of(from, &entry, a->error_code & X86_PF_WRITE, &copy))
		return SHARERS_RACED;
	if (pmd_val(READ_ONCE(*a->to)) == pmd_val(copy))
		return SHARERS_KNOWN;

	sharers_check(READ_ONCE(*a->to), copy);
	sharers_fill_pause();
	a->first = sharers_note(gib, a->addr, a->sc->slot);
	sharers_hide();
	WRITE_ONCE(*a->to, copy);
	/* The entry before the second look at the count. */
	smp_mb();
	raced = sharers_was_withdrawn(gib, withdrawn, entry, from);
	if (unlikely(raced)) {
		WRITE_ONCE(*a->to, __pmd(0));
		/* Everything: the table may have had valid entries still. */
		flush_tlb_local();
	}
	sharers_show(s->mm);
	if (unlikely(raced))
		return SHARERS_RACED;
	/*
	 * The root was loaded with a flush; an NMI may come before that. Nobody has
	 * given the copy up meanwhile (a tracer of what was called here).
	 */
	if (!in_nmi() && a->sc->confined &&
	    cpumask_test_cpu(a->sc->cpu, s->unconfined))
		cpumask_clear_cpu(a->sc->cpu, s->unconfined);
	return SHARERS_FILLED;
}

/* Does the copy lead to what the access wants now, or does the fault go on? */
static bool sharers_was_only_that(const struct sharers_access *a)
{
	pmd_t entry;
	pte_t pte;

	if (!a->to)
		return true;
	entry = READ_ONCE(*a->to);
	if (pmd_leaf(entry) || !sharers_is_walked(entry))
		return true;
	pte = ptep_get(pte_offset_kernel(&entry, a->addr));
	return pte_present(pte) &&
	       (!(a->error_code & X86_PF_WRITE) || pte_write(pte));
}

/* One more first visit that was only for an entry: of many, others use the GiB, too. */
static void sharers_visited(const struct sharers_access *a)
{
	if (a->first && a->to && !in_nmi() && sharers_whole_wanted(a->to))
		sharers_whole_fill(a->s, a->sc, a->error_code, a->addr);
}

/* May a fault sleep here? As do_user_addr_fault() sees it. */
static bool sharers_may_sleep(struct mm_struct *mm, struct pt_regs *regs)
{
	return current->mm == mm && !faulthandler_disabled() &&
	       (user_mode(regs) || regs->flags & X86_EFLAGS_IF);
}

/* Fill, with tables where they are missing and may be made. */
static enum sharers_filled sharers_fill_any(struct sharers_access *a,
					    struct pt_regs *regs)
{
	struct sharers_cpu *before = a->sc;
	struct sharers *s = a->s;
	enum sharers_filled filled;

	filled = sharers_fill(a);
	if (filled != SHARERS_NO_TABLES || !sharers_may_sleep(s->mm, regs) ||
	    !sharers_copy_make(s->mm, s, a->addr))
		return filled;
	/* Another CPU may lack others. */
	a->sc = sharers_here(s);
	if (a->sc != before || !a->sc->confined)
		return SHARERS_RACED;
	a->to = sharers_copy(a->sc, a->addr);
	return sharers_fill(a);
}

/*
 * Has nobody below read CR3, to go by it later, and is nobody below in the middle of a fill? A task
 * with interrupts off may be: KVM on its way to the guest, which comes back by what it has noted,
 * or the code of this file. There only tracers touch user memory, for call chains and for BPF, with
 * page faults disabled: they get -EFAULT.
 */
static bool sharers_may_give_up(const struct pt_regs *regs)
{
	struct pt_regs *interrupted = get_irq_regs();

	if (in_task())
		return regs->flags & X86_EFLAGS_IF || !faulthandler_disabled();
	return !in_nmi() && interrupted && user_mode(interrupted);
}

/* It goes on with the canonical root. */
static void sharers_give_up(struct sharers *s, enum sharers_unconfined why)
{
	/* This may be another CPU now. */
	struct sharers_cpu *sc = sharers_here(s);

	if (sc && sc->confined)
		sharers_unconfine(s, sc, why);
}

/* The copy does not have it. */
static noinline enum sharers_fault
sharers_fault_unknown(struct sharers *s, struct pt_regs *regs,
		      unsigned long error_code, unsigned long addr, pmd_t *to)
{
	struct sharers_access a = {
		.s = s, .sc = sharers_here(s), .to = to,
		.addr = addr, .error_code = error_code,
	};
	enum sharers_filled filled = sharers_fill_any(&a, regs);

	switch (filled) {
	case SHARERS_NOTHING:
		return SHARERS_AGAIN;
	case SHARERS_FILLED:
		count_vm_event(SHARERS_FILL);
		if (!sharers_was_only_that(&a))
			return SHARERS_GO_ON;
		count_vm_event(SHARERS_FILL_ONLY);
		sharers_visited(&a);
		return SHARERS_RETRY;
	case SHARERS_KNOWN:
		return SHARERS_GO_ON;
	case SHARERS_RACED:
		count_vm_event(SHARERS_FILL_RACE);
		return SHARERS_RETRY;
	case SHARERS_NO_TABLES:
	case SHARERS_TOO_LARGE:
		break;
	}
	if (!sharers_may_give_up(regs))
		return SHARERS_GO_ON;
	CF_MUTATION(sharers_gives_up, return SHARERS_GO_ON);
	sharers_give_up(s, filled == SHARERS_TOO_LARGE ? SHARERS_HAS_LARGE :
							 SHARERS_HAS_NO_TABLES);
	return SHARERS_RETRY;
}

/**
 * __sharers_fault() - a fault on a user address
 * @mm: the current process, which has copies
 * @regs: of the access
 * @error_code: of the fault
 * @addr: the address
 *
 * Context: interrupts off, also when it returns; may be on meanwhile.
 * Return: what the caller does next.
 */
enum sharers_fault __sharers_fault(struct mm_struct *mm, struct pt_regs *regs,
				   unsigned long error_code,
				   unsigned long addr)
{
	struct sharers *s = mm->context.sharers;
	struct sharers_cpu *sc = sharers_here(s);
	pmd_t *to;

	/* Of the kernel's half, user mode gets as far as the vsyscall page. */
	if (addr >= TASK_SIZE_MAX)
		return SHARERS_GO_ON;
	/* Somebody else's address space is loaded here, or none for sure. */
	if (this_cpu_read(cpu_tlbstate.loaded_mm) != mm ||
	    !sc || !sc->confined || sc->leaving)
		return SHARERS_GO_ON;
	return sharers_is_known(sc, error_code, addr, &to) ? SHARERS_GO_ON :
	       sharers_fault_unknown(s, regs, error_code, addr, to);
}
