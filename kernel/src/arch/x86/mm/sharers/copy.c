// SPDX-License-Identifier: GPL-2.0
/*
 * The copy of a CPU: a root with the kernel's half as in any other, and tables down
 * to those of PMDs, made when the CPU first gets there.
 *
 * Tables are added by the CPU itself, with interrupts off, and all of them are freed
 * with the process, but for those that a CPU gives up (whole.c), by RCU: so others may
 * walk the copy of a CPU at any time. A root is on pgd_list, so that it gets what is
 * changed in the kernel's half.
 *
 * They, the roots and the masks count as page tables of the process (pgtables_bytes, so
 * the OOM killer sees them) and are charged to its cgroup.
 *
 * Locks: pgd_lock for the list. Callers: fault.c, whole.c, withdraw.c, leave.c.
 */
#include <linux/ceasefire_check.h>
#include <linux/mm.h>
#include <linux/pgalloc.h>
#include <linux/slab.h>

#include <asm/tlbflush.h>

#include "sharers.h"

/* Below the root, with five levels. */
#define SHARERS_LEVELS	3

struct sharers_tables {
	unsigned int nr;
	struct ptdesc *table[SHARERS_LEVELS];
};

static struct ptdesc *sharers_table_alloc(struct mm_struct *mm)
{
	struct ptdesc *table = pagetable_alloc(GFP_PGTABLE_USER | SHARERS_GFP, 0);

	if (!table)
		return NULL;
	pagetable_pud_ctor(table);
	table->pt_index = 0;
	mm_inc_nr_puds(mm);
	return table;
}

static void sharers_table_free(struct mm_struct *mm, struct ptdesc *table)
{
	mm_dec_nr_puds(mm);
	pagetable_pud_dtor(table);
	pagetable_free(table);
}

static void sharers_table_free_rcu(struct rcu_head *head)
{
	struct ptdesc *table = container_of(head, struct ptdesc, pt_rcu_head);

	pagetable_pud_dtor(table);
	pagetable_free(table);
}

/**
 * sharers_table_drop() - a copy needs a table no more, and no CPU begins to walk it
 * @mm: the process
 * @table: the table, of the copy of this CPU, or of one that nobody fills any more
 *
 * Those who walk the copies of others may still read it, and so may a CPU that is about to
 * load another root: both have interrupts off.
 */
void sharers_table_drop(struct mm_struct *mm, struct ptdesc *table)
{
	list_del(&table->pt_list);
	mm_dec_nr_puds(mm);
	call_rcu(&table->pt_rcu_head, sharers_table_free_rcu);
}

/* As pgd_ctor(), with what is special in the kernel's half of this process. */
static void sharers_root_ctor(struct mm_struct *mm, pgd_t *root)
{
	struct ptdesc *table = virt_to_ptdesc(root);

	spin_lock(&pgd_lock);
	clone_pgd_range(root + KERNEL_PGD_BOUNDARY,
			mm->pgd + KERNEL_PGD_BOUNDARY, KERNEL_PGD_PTRS);
	table->pt_mm = mm;
	list_add(&table->pt_list, &pgd_list);
	spin_unlock(&pgd_lock);
}

static void sharers_root_dtor(pgd_t *root)
{
	spin_lock(&pgd_lock);
	list_del(&virt_to_ptdesc(root)->pt_list);
	spin_unlock(&pgd_lock);
}

/**
 * sharers_cpu_alloc() - an empty copy, which no CPU has yet
 * @mm: the process
 *
 * Context: may sleep.
 * Return: the copy, or NULL without memory.
 */
struct sharers_cpu *sharers_cpu_alloc(struct mm_struct *mm)
{
	struct sharers_cpu *sc = kzalloc(sizeof(*sc),
					 GFP_KERNEL_ACCOUNT | SHARERS_GFP);

	if (!sc)
		return NULL;
	sc->root = (pgd_t *)__get_free_pages(GFP_PGTABLE_USER | SHARERS_GFP,
					     PGD_ALLOCATION_ORDER);
	if (!sc->root) {
		kfree(sc);
		return NULL;
	}
	sharers_root_ctor(mm, sc->root);
	mm_inc_nr_puds(mm);
	ceasefire_root(mm, sc->root);
	sc->cpu = -1;
	INIT_LIST_HEAD(&sc->tables);
	return sc;
}

/**
 * sharers_cpu_cut() - a root leads to no table any more
 * @sc: the copy of any CPU; nobody fills it
 *
 * A CPU may have it loaded: it has to be flushed before tables are freed.
 */
void sharers_cpu_cut(struct sharers_cpu *sc)
{
	unsigned int i;

	for (i = 0; i < KERNEL_PGD_BOUNDARY; i++)
		if (pgd_val(sc->root[i]))
			set_pgd(sc->root + i, __pgd(0));
}

/**
 * sharers_cpu_empty() - free the tables of a copy
 * @mm: the process
 * @sc: the copy; no CPU begins to walk the tables
 *
 * Context: may sleep.
 */
void sharers_cpu_empty(struct mm_struct *mm, struct sharers_cpu *sc)
{
	struct ptdesc *table, *next;

	list_for_each_entry_safe(table, next, &sc->tables, pt_list) {
		sharers_table_drop(mm, table);
		cond_resched();
	}
}

/**
 * sharers_cpu_free() - free a copy, which has no tables as a rule
 * @mm: the process
 * @sc: the copy; no CPU has the root loaded
 */
void sharers_cpu_free(struct mm_struct *mm, struct sharers_cpu *sc)
{
	sharers_cpu_empty(mm, sc);
	sharers_root_dtor(sc->root);
	mm_dec_nr_puds(mm);
	free_pages((unsigned long)sc->root, PGD_ALLOCATION_ORDER);
	kfree(sc);
}

/* How many tables a copy lacks on the way to a region. */
static unsigned int sharers_copy_lacks(struct sharers_cpu *sc, unsigned long addr)
{
	pgd_t *pgd = pgd_offset_pgd(sc->root, addr);
	pud_t *pud;

	if (pgd_none(READ_ONCE(*pgd)))
		return 3;
	pud = sharers_copy_pud(sc, addr);
	if (!pud)
		return 2;
	return pud_none(READ_ONCE(*pud));
}

/* The next table that was brought, zeroed before it is linked; or NULL. */
static unsigned long sharers_tables_take(struct sharers_cpu *sc,
					 struct sharers_tables *stock)
{
	struct ptdesc *table;

	if (!stock->nr)
		return 0;
	table = stock->table[--stock->nr];
	list_add(&table->pt_list, &sc->tables);
	/* Others may walk here as soon as it is linked. */
	smp_wmb();
	return __pa(ptdesc_address(table)) | _PAGE_TABLE;
}

/* The entry of a copy for a GiB, with tables from @stock where they are missing. */
static pud_t *sharers_copy_gib(struct sharers_cpu *sc, unsigned long addr,
			       struct sharers_tables *stock)
{
	pgd_t *pgd = pgd_offset_pgd(sc->root, addr);
	unsigned long table;
	p4d_t *p4d;

	if (pgd_none(READ_ONCE(*pgd))) {
		table = sharers_tables_take(sc, stock);
		if (!table)
			return NULL;
		set_pgd(pgd, __pgd(table));
	}
	p4d = p4d_offset(pgd, addr);
	if (p4d_none(READ_ONCE(*p4d))) {
		table = sharers_tables_take(sc, stock);
		if (!table)
			return NULL;
		set_p4d(p4d, __p4d(table));
	}
	return pud_offset(p4d, addr);
}

/**
 * sharers_copy() - the entry of a copy for a region
 * @sc: the copy of any CPU
 * @addr: an address of the region
 *
 * Context: RCU read side, or interrupts off.
 * Return: where it is, or NULL: a table is missing, or the copy has the GiB whole.
 */
pmd_t *sharers_copy(struct sharers_cpu *sc, unsigned long addr)
{
	pud_t *pud = sharers_copy_pud(sc, addr), now;

	if (!pud)
		return NULL;
	now = READ_ONCE(*pud);
	if (pud_none(now) || sharers_is_whole(now))
		return NULL;
	return pud_pgtable(now) + pmd_index(addr);
}

static void sharers_copy_add(struct sharers_cpu *sc, unsigned long addr,
			     struct sharers_tables *stock)
{
	pud_t *pud = sharers_copy_gib(sc, addr, stock);
	unsigned long table;

	if (!pud || !pud_none(READ_ONCE(*pud)))
		return;
	table = sharers_tables_take(sc, stock);
	if (table)
		set_pud(pud, __pud(table));
}

/**
 * sharers_copy_make() - see to it that the copy of this CPU has an entry
 * @mm: the current process
 * @s: of the process
 * @addr: an address of the region
 *
 * Context: interrupts off; on meanwhile, so that the CPU may be another one then, whose
 * copy may lack more. May sleep.
 * Return: false without memory.
 */
bool sharers_copy_make(struct mm_struct *mm, struct sharers *s,
		       unsigned long addr)
{
	unsigned int lacks = sharers_copy_lacks(sharers_here(s), addr);
	struct sharers_tables stock = { };
	struct sharers_cpu *sc;
	bool made;

	local_irq_enable();
	made = sharers_gib_make(s, addr);
	while (made && stock.nr < lacks) {
		stock.table[stock.nr] = sharers_table_alloc(mm);
		made = stock.table[stock.nr];
		stock.nr += made;
	}
	local_irq_disable();
	sc = sharers_here(s);
	if (made && sc)
		sharers_copy_add(sc, addr, &stock);
	if (stock.nr) {
		local_irq_enable();
		while (stock.nr)
			sharers_table_free(mm, stock.table[--stock.nr]);
		local_irq_disable();
	}
	return made;
}

/**
 * sharers_copy_clear() - a copy leads to a region no more
 * @sc: the copy of any CPU
 * @addr: an address of the region
 */
void sharers_copy_clear(struct sharers_cpu *sc, unsigned long addr)
{
	pmd_t *pmd = sharers_copy(sc, addr);

	/* Its CPU sets bits in it, and fills it. */
	if (pmd && pmd_val(READ_ONCE(*pmd)))
		xchg(&pmd->pmd, 0);
}
