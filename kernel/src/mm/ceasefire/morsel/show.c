// SPDX-License-Identifier: GPL-2.0
/*
 * What can be seen of a morsel: MORSEL_IOC_STAT, and fdinfo. The same for all of them is
 * in sysfs.c and in /proc/vmstat.
 *
 * Locks: i_mmap_rwsem, for reading. Callers: file.c.
 */
#include <linux/mm.h>
#include <linux/seq_file.h>

#include "morsel.h"

static unsigned long morsel_mappings(struct morsel *m)
{
	struct address_space *mapping = m->inode.i_mapping;
	struct vm_area_struct *vma;
	unsigned long nr = 0;

	i_mmap_lock_read(mapping);
	vma_interval_tree_foreach(vma, &mapping->i_mmap, 0, ULONG_MAX)
		nr++;
	i_mmap_unlock_read(mapping);
	return nr;
}

/**
 * morsel_get_stat() - MORSEL_IOC_STAT
 * @m: the morsel
 * @stat: filled
 */
void morsel_get_stat(struct morsel *m, struct morsel_stat *stat)
{
	*stat = (struct morsel_stat) {
		.unit = m->level ? morsel_unit(m) : 0,
		.pages = atomic_long_read(&m->pages),
		.tables = atomic_long_read(&m->tables),
		.mappings = morsel_mappings(m),
		.cuts = atomic_long_read(&m->cuts),
		.flushes = atomic_long_read(&m->flushes),
		.waiting = atomic_long_read(&m->waiting),
		.pool = READ_ONCE(m->nr_pool),
	};
}

/**
 * morsel_show_fdinfo() - /proc/PID/fdinfo/N
 * @s: where to
 * @file: the morsel
 */
void morsel_show_fdinfo(struct seq_file *s, struct file *file)
{
	struct morsel_stat stat;

	morsel_get_stat(morsel_of(file_inode(file)), &stat);
	seq_printf(s, "morsel_unit:\t%llu kB\n", stat.unit >> 10);
	seq_printf(s, "morsel_pages:\t%llu kB\n", stat.pages << (PAGE_SHIFT - 10));
	seq_printf(s, "morsel_tables:\t%llu kB\n",
		   stat.tables << (PAGE_SHIFT - 10));
	seq_printf(s, "morsel_pool:\t%llu kB\n", stat.pool << (PAGE_SHIFT - 10));
	seq_printf(s, "morsel_mappings:\t%llu\n", stat.mappings);
}
