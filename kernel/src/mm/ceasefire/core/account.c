// SPDX-License-Identifier: GPL-2.0
/*
 * Memory that fast page recycling holds, where people look for it (I6, I8):
 * nr_fpr_parked in /proc/vmstat and of each node, FPRParked in /proc/PID/status,
 * and in /sys/kernel/mm/ceasefire/fpr/parked; and the limit of all together.
 *
 * Locks: none; cf_account_parked() runs under that of a pool. Page tables that
 * wait for a drain are in VmPTE of their process, as all page tables are.
 * Callers: pool.c and the mechanisms (count), task_mem(), ../sysfs.c (show).
 */
#include <linux/mm.h>
#include <linux/seq_file.h>
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
 * @node: its node; who gives the page away asks for that before
 * @nr: number of its base pages, negative if it leaves
 *
 * Context: any.
 */
void cf_account_parked(struct pglist_data *node, long nr)
{
	atomic_long_add(nr, &cf_nr_parked);
	CF_MUTATION(fpr_hide_parked, return);
	mod_node_page_state(node, NR_FPR_PARKED, nr);
}

/* Of all contexts together; a share of the memory, see pressure.c. */
unsigned long cf_parked_limit __read_mostly = ULONG_MAX;

/* Drains them all; of pressure.c. */
struct work_struct *cf_limit_work __ro_after_init;

/**
 * cf_limit_parked() - drain all pools soon if together they hold too much
 *
 * Context: any.
 */
void cf_limit_parked(void)
{
	CF_MUTATION(fpr_no_total_limit, return);
	if (unlikely(cf_parked() > READ_ONCE(cf_parked_limit)))
		queue_work(cf_wq, cf_limit_work);
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
