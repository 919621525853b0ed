// SPDX-License-Identifier: GPL-2.0
/*
 * What can be seen of a morsel: MORSEL_IOC_STAT, fdinfo, and what the OOM killer says. The same
 * for all of them is in sysfs.c and in /proc/vmstat.
 *
 * Locks: i_mmap_rwsem, for reading; that of steal.c, the inode's i_lock, a name's. Callers:
 * file.c; the OOM killer.
 */
#include <linux/dcache.h>
#include <linux/init.h>
#include <linux/mm.h>
#include <linux/oom.h>
#include <linux/printk.h>
#include <linux/ratelimit.h>
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
		.base = morsel_page_size(m),
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
	seq_printf(s, "morsel_base:\t%llu kB\n", stat.base >> 10);
	seq_printf(s, "morsel_pages:\t%llu kB\n", stat.pages << (PAGE_SHIFT - 10));
	seq_printf(s, "morsel_tables:\t%llu kB\n",
		   stat.tables << (PAGE_SHIFT - 10));
	seq_printf(s, "morsel_pool:\t%llu kB\n", stat.pool << (PAGE_SHIFT - 10));
	seq_printf(s, "morsel_mappings:\t%llu\n", stat.mappings);
}

/* Of memory: one that has less is no reason for there being none. */
#define MORSEL_OOM_SHARE	64

#define MORSEL_KIB(pages)	((pages) << (PAGE_SHIFT - 10))

static void morsel_show_large(struct morsel *m)
{
	long pages = atomic_long_read(&m->pages);
	struct dentry *dentry;

	if (pages < totalram_pages() / MORSEL_OOM_SHARE)
		return;
	spin_lock(&m->inode.i_lock);
	dentry = hlist_entry_safe(m->inode.i_dentry.first, struct dentry,
				  d_u.d_alias);
	if (dentry) {
		/* Any bytes may be in a name. */
		spin_lock(&dentry->d_lock);
		pr_info("ceasefire: morsel %*pE: pages:%ldkB tables:%ldkB mappings:%ld\n",
			(int)dentry->d_name.len, dentry->d_name.name,
			MORSEL_KIB(pages),
			MORSEL_KIB(atomic_long_read(&m->tables)),
			atomic_long_read(&m->mapped));
		spin_unlock(&dentry->d_lock);
	}
	spin_unlock(&m->inode.i_lock);
}

/* A few pages must not keep the OOM killer from what it does, for ever. */
#define MORSEL_OOM_ENOUGH	256

/* No process has this memory, so its own report names nobody. */
static int morsel_oom_notify(struct notifier_block *nb, unsigned long unused,
			     void *freed)
{
	static DEFINE_RATELIMIT_STATE(often, DEFAULT_RATELIMIT_INTERVAL,
				      DEFAULT_RATELIMIT_BURST);
	unsigned long taken = morsel_steal_all();

	if (taken >= MORSEL_OOM_ENOUGH)
		*(unsigned long *)freed += taken;
	if (__ratelimit(&often))
		morsel_each(morsel_show_large);
	return NOTIFY_OK;
}

static struct notifier_block morsel_oom_notifier = {
	.notifier_call = morsel_oom_notify,
};

static int __init morsel_show_init(void)
{
	return register_oom_notifier(&morsel_oom_notifier);
}
fs_initcall(morsel_show_init);
