// SPDX-License-Identifier: GPL-2.0
/*
 * Memory that fast page recycling holds, where people look for it (I6, I8):
 * nr_fpr_parked in /proc/vmstat and of each node, FPRParked in /proc/PID/status,
 * and all of it in /sys/kernel/mm/ceasefire/fpr/meminfo.
 *
 * Locks: none; cf_account_parked() runs under that of a pool. Page tables that
 * wait for a drain are in VmPTE of their process, as all page tables are.
 * Callers: pool.c, recycle.c (count); task_mem(), sysfs.c (show).
 */
#include <linux/mm.h>
#include <linux/seq_file.h>
#include <linux/sysfs.h>
#include <linux/vmstat.h>

#include "core.h"

/*
 * Exact, other than the counters of nodes: who waits for frames has to find none
 * counted when there are none.
 */
atomic_long_t cf_nr_parked;

/**
 * cf_parked() - parked base pages of all contexts
 *
 * Return: their number.
 */
long cf_parked(void)
{
	return atomic_long_read(&cf_nr_parked);
}

/**
 * cf_account_parked() - a page enters or leaves a pool
 * @page: the page
 * @nr: number of its base pages, negative if it leaves
 *
 * Context: any.
 */
void cf_account_parked(struct page *page, long nr)
{
	atomic_long_add(nr, &cf_nr_parked);
	CF_MUTATION(fpr_hide_parked, return);
	mod_node_page_state(page_pgdat(page), NR_FPR_PARKED, nr);
}

/**
 * __cf_task_mem() - what a process has parked, for /proc/PID/status
 * @m: where to
 * @mm: the process, which cannot exit meanwhile
 *
 * What it has parked with a group is not in there: it belongs to all of them.
 */
void __cf_task_mem(struct seq_file *m, struct mm_struct *mm)
{
	struct cf_ctx *ctx = READ_ONCE(mm->cf);

	CF_MUTATION(fpr_hide_parked, return);
	if (ctx)
		seq_printf(m, "FPRParked:\t%8lu kB\n",
			   READ_ONCE(ctx->nr) << (PAGE_SHIFT - 10));
}

/**
 * cf_meminfo() - all memory of fast page recycling, a line each
 * @buf: of sysfs
 *
 * Return: length of the text.
 */
ssize_t cf_meminfo(char *buf)
{
	unsigned long parked = cf_parked();

	CF_MUTATION(fpr_hide_parked, parked = 0);

	return sysfs_emit(buf,
			  "Parked:     %8lu kB\n"
			  "Tags:       %8lu kB\n"
			  "Contexts:   %8lu kB\n",
			  parked << (PAGE_SHIFT - 10),
			  cf_tags_bytes() >> 10,
			  DIV_ROUND_UP(cf_ctx_count() * sizeof(struct cf_ctx) +
				       cf_group_bytes(), 1024));
}
