// SPDX-License-Identifier: GPL-2.0
/*
 * Local descriptor tables, where user space has page tables of its own (PTI).
 *
 * Linux maps an LDT at an address of the kernel's half that is different in each
 * process, for both halves of a root. The first LDT of a process makes the entry of
 * its root, the end of the process takes it away; the tables below are shared. Each
 * root of the process needs the same entry, or a CPU that loads a selector from the LDT
 * finds nothing there.
 *
 * Which roots a process has says pgd_list. A root that is made meanwhile gets the entry
 * from mm->pgd under pgd_lock, or is on the list when this one looks:
 *
 *   first LDT			new root (copy.c)
 *   entry of mm->pgd		pgd_lock
 *   pgd_lock			copies the kernel's half
 *   all on the list		joins the list
 *
 * An entry goes before its tables are flushed for and freed (I4). LDTs that
 * replace each other are unmapped with a flush of their range, which has no mask: it
 * goes to all CPUs (flush.c).
 *
 * Locks: pgd_lock. Callers: map_ldt_struct(), free_ldt_pgtables().
 */
#include <linux/mm.h>

#include <asm/pgtable.h>
#include <asm/sharers.h>

#include "../../../../mm/ceasefire/mutate.h"
#include "sharers.h"

/* One entry, of both halves. */
static void sharers_copy_entry(pgd_t *to, pgd_t *from)
{
	set_pgd(to, *from);
#ifdef CONFIG_MITIGATION_PAGE_TABLE_ISOLATION
	set_pgd(kernel_to_user_pgdp(to), *kernel_to_user_pgdp(from));
#endif
}

/**
 * __sharers_ldt() - the entry of a process for its LDT was made, or is gone
 * @mm: the process, which has copies
 *
 * Context: may sleep; with PTI.
 */
void __sharers_ldt(struct mm_struct *mm)
{
	pgd_t *from = pgd_offset(mm, LDT_BASE_ADDR), *to;
	struct ptdesc *table;

	CF_MUTATION(sharers_ldt_unseen, return);
	spin_lock(&pgd_lock);
	list_for_each_entry(table, &pgd_list, pt_list) {
		if (table->pt_mm != mm)
			continue;
		to = pgd_offset_pgd((pgd_t *)ptdesc_address(table),
				    LDT_BASE_ADDR);
		if (to != from)
			sharers_copy_entry(to, from);
	}
	spin_unlock(&pgd_lock);
}
