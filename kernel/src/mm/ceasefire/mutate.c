// SPDX-License-Identifier: GPL-2.0
/*
 * Debug builds: /sys/kernel/debug/ceasefire.
 *
 *   mutate		switch one protection off, by name; "none" restores it.
 *			Reading lists all names, the active one in brackets. A
 *			test that does not fail then proves nothing.
 *   skip_local		1: skip although only one CPU runs the process
 *   flush_delay_us	time between request and start of a process's flush
 *   tag_delay_us	time between reading the shared generation and storing it
 *   skip_delay_us	time between clearing entries and tagging their frames; before
 *			reclaim looks at one more page
 *   start_delay_us	time in a tick in which nothing is due, and nothing awaited yet
 *   holds		pages that were held since the kernel booted (core/held.c)
 *   fork_fails		the next fork() of this process fails, with half of an address space
 *   fill_delay_us	time between an entry of a copy and the second look (sharers)
 *   send_delay_us	time between a request and the flush, with interrupts on (sharers)
 *   slots		so many CPUs of a process have copies at most (sharers)
 *   install_delay_us	time between finding a table of a morsel and locking it
 *   clean_delay_us	time for which a cleaner of morsels is late, and who has taken something
 *			does not free it
 *   mark_delay_us	time between a mark and the clear, if the mark comes first (morsels)
 *   steal_delay_us	time between the look at pages of zeroes and the flush (morsels)
 *   copy_delay_us	time after each table that is shared with a copy (morsels)
 *   hint		write "START LENGTH" in bytes, hexadecimal: give NUMA hints for
 *			this part of the own memory, now
 *   first_generation	least generation of processes that start to use FPR
 *   force		Y: whole processes (PR_FPR_SET_AUTO) get it for whatever they
 *			map: anonymous memory, files of the dynamic linker
 *   id_max		newest identifier of a context, after which 1 is next
 *   arena_size		size of the arenas of processes that start to use FPR
 */
#include <linux/debugfs.h>
#include <linux/init.h>
#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/seq_file.h>
#include <linux/string.h>
#include <linux/uaccess.h>

#include "core/core.h"
#include "fpr/fpr.h"

#define CF_MUTATION_NAME(name)	#name,

static const char * const cf_mutation_names[] = {
	"none",
	CF_MUTATIONS(CF_MUTATION_NAME)
};

enum cf_mutation cf_mutation;
u32 cf_skip_local;
u32 cf_flush_delay_us;
u32 cf_tag_delay_us;
u32 cf_skip_delay_us;
u32 cf_rewrite_delay_us;
/* Entries that there are keep their class, so before any is made. */
u32 abis_classes = 15;
u32 abis_flush_delay_us;
u32 cf_install_delay_us;
u32 cf_clean_delay_us;
u32 cf_mark_delay_us;
u32 cf_steal_delay_us;
u32 cf_copy_delay_us;
atomic_t cf_holds;
u32 cf_start_delay_us;
u64 cf_first_generation;
u64 cf_arena_size = CF_ARENA_SIZE;
u32 cf_id_max = CF_ID_MAX;
u32 cf_tickless_cpu = U32_MAX;
u32 cf_fork_fails;
u32 sharers_fill_delay_us;
u32 sharers_send_delay_us;
u32 sharers_slots = U32_MAX;
bool fpr_force;

/**
 * __cf_fork_fails() - is this the fork() that shall fail?
 *
 * Once: then it works again.
 */
bool __cf_fork_fails(void)
{
	u32 pid = READ_ONCE(cf_fork_fails);

	return pid && pid == task_tgid_nr(current) &&
	       try_cmpxchg(&cf_fork_fails, &pid, 0);
}

static int mutate_show(struct seq_file *m, void *v)
{
	int i;

	for (i = 0; i < MUTATE_NR; i++)
		seq_printf(m, i == READ_ONCE(cf_mutation) ? "[%s]\n" : "%s\n",
			   cf_mutation_names[i]);
	return 0;
}

static ssize_t mutate_write(struct file *file, const char __user *ubuf,
			    size_t count, loff_t *pos)
{
	char name[40];
	int i;

	if (count >= sizeof(name))
		return -EINVAL;
	if (copy_from_user(name, ubuf, count))
		return -EFAULT;
	name[count] = '\0';
	i = match_string(cf_mutation_names, MUTATE_NR, strim(name));
	if (i < 0)
		return -EINVAL;
	WRITE_ONCE(cf_mutation, i);
	return count;
}

static int mutate_open(struct inode *inode, struct file *file)
{
	return single_open(file, mutate_show, NULL);
}

static const struct file_operations mutate_fops = {
	.open = mutate_open,
	.read = seq_read,
	.write = mutate_write,
	.llseek = seq_lseek,
	.release = single_release,
};

#ifdef CONFIG_NUMA_BALANCING
static ssize_t hint_write(struct file *file, const char __user *ubuf,
			  size_t count, loff_t *pos)
{
	struct mm_struct *mm = current->mm;
	struct vm_area_struct *vma;
	unsigned long start, len;
	char text[40] = "";
	long err = count;

	if (count >= sizeof(text))
		return -EINVAL;
	if (copy_from_user(text, ubuf, count))
		return -EFAULT;
	if (sscanf(text, "%lx %lx", &start, &len) != 2)
		return -EINVAL;
	mmap_read_lock(mm);
	vma = vma_lookup(mm, start);
	if (vma && len <= vma->vm_end - start)
		change_prot_numa(vma, start, start + len);
	else
		err = -ENOMEM;
	mmap_read_unlock(mm);
	return err;
}

static const struct file_operations hint_fops = {
	.open = simple_open,
	.write = hint_write,
	.llseek = noop_llseek,
};

static void __init cf_hint_init(struct dentry *dir)
{
	debugfs_create_file("hint", 0200, dir, NULL, &hint_fops);
}
#else
static void __init cf_hint_init(struct dentry *dir) { }
#endif

static int __init cf_mutate_init(void)
{
	struct dentry *dir = debugfs_create_dir("ceasefire", NULL);

	debugfs_create_file("mutate", 0600, dir, NULL, &mutate_fops);
	cf_hint_init(dir);
	debugfs_create_u32("skip_local", 0600, dir, &cf_skip_local);
	debugfs_create_u32("flush_delay_us", 0600, dir, &cf_flush_delay_us);
	debugfs_create_u32("tag_delay_us", 0600, dir, &cf_tag_delay_us);
	debugfs_create_u32("skip_delay_us", 0600, dir, &cf_skip_delay_us);
	debugfs_create_u32("rewrite_delay_us", 0600, dir,
			   &cf_rewrite_delay_us);
	debugfs_create_u32("abis_classes", 0600, dir, &abis_classes);
	debugfs_create_u32("abis_flush_delay_us", 0600, dir,
			   &abis_flush_delay_us);
	debugfs_create_u32("start_delay_us", 0600, dir, &cf_start_delay_us);
	debugfs_create_atomic_t("holds", 0400, dir, &cf_holds);
	debugfs_create_u64("first_generation", 0600, dir,
			   &cf_first_generation);
	debugfs_create_u64("arena_size", 0600, dir, &cf_arena_size);
	debugfs_create_bool("force", 0600, dir, &fpr_force);
	debugfs_create_u32("id_max", 0600, dir, &cf_id_max);
	debugfs_create_u32("tickless_cpu", 0600, dir, &cf_tickless_cpu);
	debugfs_create_u32("fork_fails", 0600, dir, &cf_fork_fails);
	debugfs_create_u32("fill_delay_us", 0600, dir, &sharers_fill_delay_us);
	debugfs_create_u32("send_delay_us", 0600, dir, &sharers_send_delay_us);
	debugfs_create_u32("slots", 0600, dir, &sharers_slots);
#ifdef CONFIG_CEASEFIRE_MORSEL
	debugfs_create_u32("install_delay_us", 0600, dir,
			   &cf_install_delay_us);
	debugfs_create_u32("clean_delay_us", 0600, dir, &cf_clean_delay_us);
	debugfs_create_u32("mark_delay_us", 0600, dir, &cf_mark_delay_us);
	debugfs_create_u32("steal_delay_us", 0600, dir, &cf_steal_delay_us);
	debugfs_create_u32("copy_delay_us", 0600, dir, &cf_copy_delay_us);
#endif
	pr_warn("ceasefire: built for testing, not secure\n");
	return 0;
}
late_initcall(cf_mutate_init);
