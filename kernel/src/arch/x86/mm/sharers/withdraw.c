// SPDX-License-Identifier: GPL-2.0
/*
 * An entry of the canonical tables has changed: copies lose theirs before that is
 * flushed for, so that no CPU finds again what the flush takes away (I12).
 *
 * All that changes where such an entry leads comes by here: a table of PTEs that is
 * freed, moved or replaced by a huge entry; a huge entry that is removed, split,
 * moved, protected or cleaned, or whose accessed bit is cleared, so that the next
 * access sets it again. The flush that follows goes to those whom the mask names,
 * as any other; it is what makes sure that nobody walks there any more.
 *
 * A CPU that is about to fill finds that it was counted, and does it over.
 *
 * Locks: the caller's page table lock. Callers: hooks of sharers_withdraw().
 */
#include <linux/hugetlb.h>
#include <linux/mm.h>
#include <linux/vmstat.h>

#include <asm/tlbflush.h>

#include "../../../../mm/ceasefire/mutate.h"
#include "sharers.h"

static void sharers_withdraw_region(struct sharers *s, struct sharers_gib *gib,
				    unsigned long addr)
{
	unsigned long slots = READ_ONCE(*sharers_mask(gib, addr));
	unsigned int slot;

	for_each_set_bit(slot, &slots, SHARERS_SLOTS)
		sharers_copy_clear(s->slots[slot], addr);
}

/* Of a GiB, or a part of it. */
static void sharers_withdraw_gib(struct sharers *s, struct sharers_gib *gib,
				 unsigned long addr, unsigned long end)
{
	unsigned long whole;
	unsigned int slot;

	/* Who makes it now looks at the canonical entry after that. */
	if (!gib)
		return;
	atomic_long_inc(&gib->withdrawn);
	/* Counted before the masks are read. */
	smp_mb__after_atomic();
	whole = READ_ONCE(gib->whole);
	for_each_set_bit(slot, &whole, SHARERS_SLOTS)
		sharers_whole_clear(s->slots[slot], addr,
				    end - addr == PUD_SIZE);
	for (; addr < end; addr += PMD_SIZE)
		sharers_withdraw_region(s, gib, addr);
}

/* Of many; a morsel may have 262,144, of which few were ever used. */
static void sharers_withdraw_gibs(struct sharers *s, unsigned long addr,
				  unsigned long end)
{
	struct sharers_gib *gib;
	unsigned long index;

	xa_for_each_range(&s->gibs, index, gib, addr >> SHARERS_GIB_SHIFT,
			  (end - 1) >> SHARERS_GIB_SHIFT)
		sharers_withdraw_gib(s, gib, max(addr, index << SHARERS_GIB_SHIFT),
				     min(end, (index + 1) << SHARERS_GIB_SHIFT));
}

/**
 * __sharers_withdraw() - take entries out of copies
 * @mm: the process
 * @addr: address of what the canonical entry leads to
 * @size: how much that is, PMD_SIZE or more
 *
 * Context: any. The canonical entry has been changed, and that is visible. With all of
 * a GiB it is the one that leads to the table of PMDs.
 */
void __sharers_withdraw(struct mm_struct *mm, unsigned long addr,
			unsigned long size)
{
	struct sharers *s = mm->context.sharers;
	unsigned long end = addr + size;

	CF_MUTATION(sharers_copies_stay, return);
	/* CPUs give up tables of their copies. */
	rcu_read_lock();
	if ((addr ^ (end - 1)) >> SHARERS_GIB_SHIFT)
		sharers_withdraw_gibs(s, addr, end);
	else
		sharers_withdraw_gib(s, sharers_gib(s, addr), addr, end);
	rcu_read_unlock();
}

/**
 * sharers_huge_clear_flush() - huge_ptep_clear_flush() of x86
 * @vma: mapping of huge pages
 * @addr: address of one
 * @ptep: its entry, of PMDs or PUDs
 *
 * The entry goes from copies between the two steps that ptep_clear_flush() has in one.
 *
 * Context: the lock of the entry.
 *
 * Return: the entry that was there.
 */
pte_t sharers_huge_clear_flush(struct vm_area_struct *vma, unsigned long addr,
			       pte_t *ptep)
{
	pte_t old = huge_ptep_get_and_clear(vma->vm_mm, addr, ptep, PMD_SIZE);

	if (pte_accessible(vma->vm_mm, old))
		flush_tlb_page(vma, addr);
	return old;
}
