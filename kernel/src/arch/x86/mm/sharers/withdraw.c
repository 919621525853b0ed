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
 * Locks: the caller's page table lock. Callers: hooks of sharers_withdraw().
 */
#include <linux/mm.h>
#include <linux/vmstat.h>

#include "../../../../mm/ceasefire/mutate.h"
#include "sharers.h"

static void sharers_withdraw_region(struct sharers *s, unsigned long addr)
{
	unsigned long *mask = sharers_mask(s, addr), slots;
	unsigned int slot;

	if (!mask)
		return;
	slots = READ_ONCE(*mask);
	for_each_set_bit(slot, &slots, SHARERS_SLOTS)
		sharers_copy_clear(s->slots[slot], addr);
}

/**
 * __sharers_withdraw() - take entries out of copies
 * @mm: the process
 * @addr: address of what the canonical entry leads to
 * @size: how much that is, PMD_SIZE or more
 *
 * Context: any. The canonical entry has been changed, and that is visible.
 */
void __sharers_withdraw(struct mm_struct *mm, unsigned long addr,
			unsigned long size)
{
	struct sharers *s = mm->context.sharers;
	unsigned long end = addr + size;

	CF_MUTATION(sharers_copies_stay, return);
	for (; addr < end; addr += PMD_SIZE)
		sharers_withdraw_region(s, addr);
}
