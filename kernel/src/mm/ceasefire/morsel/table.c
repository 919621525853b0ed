// SPDX-License-Identifier: GPL-2.0
/*
 * Page tables of morsels: they are paid for as pages are (charge.c), and freed by RCU, since
 * software walks them (M4).
 *
 * Locks: none. Callers: tree.c, clean.c, own.c, copy.c, steal.c.
 */
#include <linux/err.h>
#include <linux/mm.h>
#include <linux/rcupdate.h>

#include "morsel.h"

/*
 * The kernel's own words for tables of a level; of level 4 it says nothing. For level 3 it has no
 * lock of the table: that is for entries of pages of 1 GiB, see huge.c.
 */
static bool morsel_table_begin(struct ptdesc *table, unsigned int level)
{
	switch (level) {
	case 1:
		return pagetable_pte_ctor(table);
	case 2:
		return pagetable_pmd_ctor(table);
	default:
		if (!ptlock_init(table))
			return false;
		pagetable_pud_ctor(table);
		return true;
	}
}

static void morsel_table_end(struct ptdesc *table, unsigned int level)
{
	switch (level) {
	case 1:
		table->__page_mapping = 0;
		pagetable_pte_dtor(table);
		break;
	case 2:
		/* Where RCU's head was. */
		table->pmd_huge_pte = NULL;
		table->__page_mapping = 0;
		pagetable_pmd_dtor(table);
		break;
	default:
		pagetable_pud_dtor(table);
		ptlock_free(table);
	}
	pagetable_free(table);
}

/* Behind one of level 3 or 4 is room to say what rests, where something may (rest.c). */
static unsigned int morsel_table_order(struct morsel *m, unsigned int level)
{
	return morsel_may_rest(m, level);
}

/**
 * morsel_table_alloc() - an empty page table for a morsel
 * @m: the morsel
 * @level: of the table
 *
 * Context: may sleep.
 * Return: the table, or an error: -ENOMEM, -EDQUOT as morsel_block_alloc().
 */
struct ptdesc *morsel_table_alloc(struct morsel *m, unsigned int level)
{
	unsigned int order = morsel_table_order(m, level);
	struct ptdesc *table;

	if (morsel_charge(m, 1UL << order))
		return ERR_PTR(-EDQUOT);
	table = pagetable_alloc(GFP_KERNEL | __GFP_ZERO, order);
	if (!table)
		goto uncharge;
	if (!morsel_table_begin(table, level)) {
		pagetable_free(table);
		goto uncharge;
	}
	if (level == 1)
		morsel_table_begin_use(m, table);
	/* ceasefire_table_is_linked() */
	if (level == 2)
		table->__page_mapping = (unsigned long)m->inode.i_mapping;
	/* morsel_below_add() */
	if (level > 1)
		table->pt_index = 0;
	atomic_long_add(1L << order, &m->tables);
	return table;

uncharge:
	morsel_uncharge(m, 1UL << order);
	return ERR_PTR(-ENOMEM);
}

/**
 * morsel_table_discard() - give back a table that nobody has seen
 * @m: the morsel
 * @table: the table
 * @level: of the table
 */
void morsel_table_discard(struct morsel *m, struct ptdesc *table,
			  unsigned int level)
{
	unsigned int order = morsel_table_order(m, level);

	atomic_long_sub(1L << order, &m->tables);
	morsel_uncharge(m, 1UL << order);
	morsel_table_end(table, level);
}

static void morsel_table_free_leaves(struct rcu_head *head)
{
	morsel_table_end(container_of(head, struct ptdesc, pt_rcu_head), 1);
}

static void morsel_table_free_middle(struct rcu_head *head)
{
	morsel_table_end(container_of(head, struct ptdesc, pt_rcu_head), 2);
}

/* Of level 3 or 4. */
static void morsel_table_free_upper(struct rcu_head *head)
{
	morsel_table_end(container_of(head, struct ptdesc, pt_rcu_head), 3);
}

/**
 * morsel_table_free() - a table goes that nothing leads to
 * @m: the morsel
 * @table: the table, on no list
 * @level: of the table
 *
 * No CPU's hardware walks it any more. Software may: it is freed by RCU (M4).
 */
void morsel_table_free(struct morsel *m, struct ptdesc *table,
		       unsigned int level)
{
	static const rcu_callback_t by_level[] = {
		NULL, morsel_table_free_leaves, morsel_table_free_middle,
		morsel_table_free_upper, morsel_table_free_upper,
	};
	struct morsel *owner = level > 1 ? m :
		morsel_owner(m, table->__page_mapping);
	unsigned int order = morsel_table_order(m, level);

	morsel_owner_begin(m, owner);
	morsel_uncharge(owner, 1UL << order);
	atomic_long_sub(1L << order, &owner->tables);
	morsel_owner_end(m, owner);
	CF_MUTATION_IF(morsel_no_rcu, level == 1,
		       morsel_table_end(table, level); return);
	call_rcu(&table->pt_rcu_head, by_level[level]);
}
