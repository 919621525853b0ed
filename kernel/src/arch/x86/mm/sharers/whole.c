// SPDX-License-Identifier: GPL-2.0
/*
 * A copy that has a GiB as the canonical tables have it: an entry of 1 GiB, or, where a
 * CPU has come to many regions that were there already, a link to the canonical table of
 * PMDs. So of the first visits of a CPU to the regions of a GiB, SHARERS_FILLS_MAX are faults
 * for nothing else, and it has one table less. It is noted for the GiB then, in one mask, and
 * is asked for all of it. To come back to a region whose entry was withdrawn is no first visit:
 * what a thread maps and unmaps all day would soon make it one that shares everything.
 *
 * The order is that of a fill (sharers.h), with the entry of the GiB for C, and the mask
 * of the GiB for M. What is below a link changes without the copy, and is flushed for.
 *
 * The table that the copy had there goes: the entry, a flush of everything, then the bits
 * of the regions, then RCU for those who withdraw from it. A withdrawal that comes in
 * between and finds the link has counted the CPU in, and its flush waits for this one.
 *
 * A table of PMDs that belongs to no process is always linked: its entries change without
 * anybody who knows the copies. Where the rights of a mapping are further above, the CPU
 * is unconfined: a copy has all rights there.
 *
 * An entry of 1 GiB is one of hugetlb or of a morsel, whose changes all come by
 * sharers_withdraw(). A CPU that finds another one, of a device, is unconfined.
 *
 * Locks: none; interrupts are off. Callers: fault.c, withdraw.c.
 */
#include <linux/ceasefire_morsel.h>
#include <linux/mm.h>
#include <linux/vmstat.h>

#include <asm/tlbflush.h>
#include <asm/trap_pf.h>

#include "../../../../mm/ceasefire/mutate.h"
#include "sharers.h"

/* Of 512: what one costs at most in a GiB, against being asked for all of it. */
#define SHARERS_FILLS_MAX	64

/**
 * sharers_whole_wanted() - a fault was only for a first visit to a region
 * @copy: the entry, of this CPU
 *
 * Return: true if the GiB should be linked.
 */
bool sharers_whole_wanted(pmd_t *copy)
{
	struct ptdesc *table = virt_to_ptdesc(copy);

	CF_MUTATION(sharers_never_whole, return false);
	return ++table->pt_index >= SHARERS_FILLS_MAX;
}

/**
 * sharers_whole_unwanted() - this CPU is noted for a region no more
 * @copy: the entry for it
 */
void sharers_whole_unwanted(pmd_t *copy)
{
	struct ptdesc *table = virt_to_ptdesc(copy);

	if (table->pt_index)
		table->pt_index--;
}

/**
 * sharers_whole_known() - has the copy a GiB whole, and all that an access can have?
 * @copy: the entry of the copy for the GiB
 * @error_code: of the fault
 */
bool sharers_whole_known(pud_t copy, unsigned long error_code)
{
	if (!sharers_is_whole(copy))
		return false;
	return !pud_leaf(copy) || !(error_code & X86_PF_WRITE) ||
	       pud_write(copy);
}

/* As sharers_copy_of() in fault.c. */
static bool sharers_whole_of(pud_t *from, pud_t entry, bool write, pud_t *copy)
{
	pudval_t old = pud_val(entry), new = old | _PAGE_ACCESSED;

	if (!pud_leaf(entry)) {
		*copy = __pud(new | SHARERS_LINK);
		return true;
	}
	if (write && pud_write(entry))
		new |= _PAGE_DIRTY;
	if (new != old && !try_cmpxchg(&from->pud, &old, new))
		return false;
	*copy = __pud(new & _PAGE_DIRTY ? new : new & ~(pudval_t)_PAGE_RW);
	return true;
}

/* Of devices; what becomes of it nobody says. */
static bool sharers_whole_foreign(pud_t entry)
{
	return pud_leaf(entry) && (pud_devmap(entry) || pud_special(entry));
}

/*
 * A morsel has been cut since the caller looked. The entry will lead to a table again, and nobody
 * withdraws for that: the CPU would find nothing for ever.
 *
 *   fill			cuts			fault of the same CPU
 *   the entry leads to T
 *				entry: nothing
 *				withdraws
 *   reads the count
 *   reads the entry
 *   copy: nothing		flushes
 *   the count is the same				entry: T'
 *							access: nothing, again
 */
static bool sharers_whole_is_nothing(pud_t entry)
{
	CF_MUTATION(sharers_links_nothing, return false);
	return !pud_leaf(entry) && ceasefire_table_is_nothing(entry);
}

/* What the entries allow that the copy does not have; 0: one of them has just gone. */
static unsigned long sharers_whole_rights(struct mm_struct *mm, unsigned long addr)
{
	pgd_t *pgd = pgd_offset(mm, addr), top = READ_ONCE(*pgd);
	p4d_t p4d;

	if (pgd_none(top))
		return 0;
	p4d = READ_ONCE(*p4d_offset_lockless(pgd, top, addr));
	CF_MUTATION(sharers_links_writable, return _PAGE_TABLE);
	return pgd_flags(top) & p4d_flags(p4d);
}

static void sharers_whole_note(struct sharers_gib *gib, unsigned int slot)
{
	CF_MUTATION(sharers_whole_unnoted, return);
	sharers_mask_set_whole(gib, slot);
}

/* What the copy had is walked no more. */
static void sharers_whole_drop(struct sharers *s, struct sharers_cpu *sc,
			       struct sharers_gib *gib, pud_t had)
{
	if (pud_none(had) || sharers_is_whole(had))
		return;
	flush_tlb_local();
	sharers_mask_clear_regions(gib, sc->slot);
	sharers_table_drop(s->mm, virt_to_ptdesc(pud_pgtable(had)));
}

/**
 * sharers_whole_fill() - this CPU's copy gets a GiB whole
 * @s: of the process
 * @sc: of this CPU, confined
 * @error_code: of the fault
 * @addr: an address in it
 *
 * Context: interrupts off, not in an NMI.
 * Return: what came of it.
 */
enum sharers_filled sharers_whole_fill(struct sharers *s,
				       struct sharers_cpu *sc,
				       unsigned long error_code,
				       unsigned long addr)
{
	struct sharers_gib *gib = sharers_gib(s, addr);
	pud_t *to = sharers_copy_pud(sc, addr);
	pud_t *from, entry, copy, had;
	unsigned long rights;
	long withdrawn;
	bool raced;

	if (!gib || !to)
		return SHARERS_NO_TABLES;
	withdrawn = atomic_long_read(&gib->withdrawn);
	/* The count before what it is about. */
	smp_rmb();
	from = sharers_canonical_pud(s->mm, addr);
	if (!from)
		return SHARERS_NOTHING;
	entry = READ_ONCE(*from);
	if (!(pud_flags(entry) & _PAGE_PRESENT) ||
	    sharers_whole_is_nothing(entry))
		return SHARERS_NOTHING;
	rights = sharers_whole_rights(s->mm, addr);
	if (!(rights & _PAGE_PRESENT))
		return SHARERS_RACED;
	if (sharers_whole_foreign(entry) || !(rights & _PAGE_RW))
		return SHARERS_TOO_LARGE;
	if (!sharers_whole_of(from, entry, error_code & X86_PF_WRITE, &copy))
		return SHARERS_RACED;
	if (pud_val(READ_ONCE(*to)) == pud_val(copy))
		return SHARERS_KNOWN;
	sharers_whole_note(gib, sc->slot);
	sharers_hide();
	/* Also the entry before the second look at the count. */
	had = __pud(xchg(&to->pud, pud_val(copy)));
	raced = atomic_long_read(&gib->withdrawn) != withdrawn;
	if (unlikely(raced)) {
		WRITE_ONCE(*to, __pud(0));
		flush_tlb_local();
	}
	sharers_show(s->mm);
	sharers_whole_drop(s, sc, gib, had);
	if (unlikely(raced))
		return SHARERS_RACED;
	count_vm_event(SHARERS_WHOLE);
	return SHARERS_FILLED;
}

/**
 * sharers_whole_clear() - a copy has a GiB whole no more
 * @sc: the copy of any CPU
 * @addr: an address in it
 * @tables: the canonical table of PMDs goes; or else what is below has changed, and only
 *	an entry of 1 GiB is meant
 */
void sharers_whole_clear(struct sharers_cpu *sc, unsigned long addr,
			 bool tables)
{
	pud_t *pud = sharers_copy_pud(sc, addr);
	pudval_t old;

	CF_MUTATION(sharers_whole_stays, return);
	if (!pud)
		return;
	old = pud_val(READ_ONCE(*pud));
	/* Its CPU sets bits in it, and may put something else there. */
	while (old & _PAGE_PSE || (tables && old & SHARERS_LINK))
		if (try_cmpxchg(&pud->pud, &old, 0))
			break;
}
