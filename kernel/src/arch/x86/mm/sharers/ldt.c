// SPDX-License-Identifier: GPL-2.0
/*
 * Local descriptor tables, where user space has page tables of its own (PTI).
 *
 * Linux maps an LDT at an address of the kernel's half that is different in each
 * process, for both halves of a root. The first LDT of a process makes the entry of
 * its root, the end of the process takes it away; the tables below are shared. Each
 * root of the process needs the same entry, or a CPU that loads a selector from the LDT
 * finds nothing there. And no root has it any more when its tables are freed (I4).
 *
 * A root that is made meanwhile is one of the slots already, or gets what is right now,
 * before a CPU can load it; pgd_lock is held from one to the other.
 *
 * Copies may begin while another thread makes the first LDT: either that one sees that
 * there are copies, or their roots are made after the entry (sharers_ldt()).
 *
 * LDTs that replace each other are unmapped with a flush of their range, which has no
 * mask: it goes to all CPUs (flush.c).
 *
 * Locks: pgd_lock, sharers.lock in it. Callers: map_ldt_struct(), free_ldt_pgtables(),
 * sharers_add().
 */
#include <linux/mm.h>
#include <linux/pgtable.h>

#include <asm/sharers.h>

#include "../../../../mm/ceasefire/mutate.h"
#include "sharers.h"

/* One entry, of both halves; @from is NULL: none. */
static void sharers_set_entry(pgd_t *to, pgd_t *from)
{
	pgd_t none = __pgd(0);

	set_pgd(to, from ? *from : none);
#ifdef CONFIG_MITIGATION_PAGE_TABLE_ISOLATION
	set_pgd(kernel_to_user_pgdp(to),
		from ? *kernel_to_user_pgdp(from) : none);
#endif
}

/* Under pgd_lock. */
static void sharers_set_ldt(struct sharers *s, struct sharers_cpu *sc)
{
	pgd_t *from = pgd_offset(s->mm, LDT_BASE_ADDR);

	sharers_set_entry(pgd_offset_pgd(sc->root, LDT_BASE_ADDR),
			  s->no_ldt ? NULL : from);
}

/**
 * sharers_ldt_root() - a root was made, and is about to be one of the slots
 * @s: of the process
 * @sc: the slot
 *
 * Context: pgd_lock, until it is one.
 */
void sharers_ldt_root(struct sharers *s, struct sharers_cpu *sc)
{
	if (cpu_feature_enabled(X86_FEATURE_PTI))
		sharers_set_ldt(s, sc);
}

/**
 * __sharers_ldt() - the entry of a process for its LDT was made, or is about to go
 * @mm: the process, which has copies
 * @there: it was made
 *
 * Context: may sleep; with PTI.
 */
void __sharers_ldt(struct mm_struct *mm, bool there)
{
	struct sharers *s = mm->context.sharers;
	unsigned int i, nr;

	CF_MUTATION(sharers_ldt_unseen, return);
	/* Most processes have none. */
	if (!pgd_val(*pgd_offset(mm, LDT_BASE_ADDR)))
		return;
	spin_lock(&pgd_lock);
	s->no_ldt = !there;
	raw_spin_lock_irq(&s->lock);
	nr = s->nr;
	raw_spin_unlock_irq(&s->lock);
	for (i = 0; i < nr; i++)
		sharers_set_ldt(s, s->slots[i]);
	spin_unlock(&pgd_lock);
}
