// SPDX-License-Identifier: GPL-2.0
/*
 * The way from the top of a morsel to an entry: which tables lead there, and the locks of those.
 *
 * Nobody is kept from cutting a table meanwhile: who changes an entry looks again when he has the
 * lock of its table (M2).
 *
 * Locks: none. Callers: all who walk a morsel.
 */
#include <linux/mm.h>
#include <linux/pgtable.h>

#include "morsel.h"

/**
 * morsel_lockptr() - the lock of a table
 * @m: the morsel
 * @table: the table
 * @level: of the table
 *
 * For levels 1 and 2 it is the one that generic code takes, or else the object's.
 */
spinlock_t *morsel_lockptr(struct morsel *m, unsigned long *table,
			   unsigned int level)
{
	if (table == m->top || level > 2)
		return &m->lock;
	return ptlock_ptr(virt_to_ptdesc(table));
}

/**
 * morsel_entry() - an entry that leads to a table
 * @m: the morsel, which has a unit
 * @offset: in it, in bytes
 * @level: of the table that has the entry; 2 or more
 *
 * Return: where the entry is; it stays there as long as the object, for the same offset. NULL:
 * tables are missing above, from the first or since they were cut.
 */
unsigned long *morsel_entry(struct morsel *m, u64 offset, unsigned int level)
{
	unsigned int at = m->level + 1;
	unsigned long *entry = m->top + (offset >> morsel_shift(at));
	unsigned long next;

	while (at > level) {
		next = READ_ONCE(*entry);
		if (!morsel_leads(next))
			return NULL;
		at--;
		entry = morsel_table(next) + morsel_index(offset, at);
	}
	return entry;
}

/**
 * morsel_gap_end() - how far it is the same that there is nothing
 * @m: the morsel, which has a unit
 * @offset: for which a table is missing
 *
 * Return: behind the last byte that the missing table would lead to, the highest one.
 */
u64 morsel_gap_end(struct morsel *m, u64 offset)
{
	unsigned int level = m->level + 1;
	unsigned long *entry;

	while (level > m->base + 1) {
		entry = morsel_entry(m, offset, level);
		if (!entry || !morsel_leads(READ_ONCE(*entry)))
			break;
		level--;
	}
	return (offset | (morsel_span(level) - 1)) + 1;
}

/**
 * morsel_above() - the entry that leads to the table of a page
 * @m: the morsel, which has a unit
 * @offset: in it, in bytes
 *
 * Return: as morsel_entry().
 */
unsigned long *morsel_above(struct morsel *m, u64 offset)
{
	return morsel_entry(m, offset, m->base + 1);
}
