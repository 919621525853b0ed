// SPDX-License-Identifier: GPL-2.0
/*
 * Which mechanism decides about the munmap()s of a process: what it has chosen by
 * prctl() or inherited (mm_struct.cf_policy), or the usual one, which acts only
 * on what mmap() was asked for (cf_usual_policy, registry.c).
 *
 * A choice is inherited over fork() and execve(), and lost by an execve() that
 * gains privileges. A mechanism can also be that of all programs that are executed.
 * The choice changes with mmap_lock held for writing, so no munmap() is
 * on its way; and with nothing owed, so that what one mechanism has left is never
 * judged by the rules of another one. A process has either a choice or a context
 * of several processes (choice.c), which is FPR's: cf_group_lock is held where one
 * of them is set and the other one looked at.
 *
 * Locks: see above. Callers: prctl() of the mechanisms, do_mmap().
 */
#include <linux/compat.h>
#include <linux/fs.h>
#include <linux/hugetlb.h>
#include <linux/mm.h>

#include "core.h"
#include "group.h"

/**
 * cf_file_eligible() - do the pages of a file come from the page cache?
 * @file: the file
 *
 * Return: true if they do, by the usual path; a driver may still map its own.
 */
bool cf_file_eligible(struct file *file)
{
	struct inode *inode = file_inode(file);

	return (S_ISREG(inode->i_mode) || S_ISBLK(inode->i_mode)) &&
	       !IS_DAX(inode) && !is_file_hugepages(file) &&
	       !ceasefire_has_tables(file);
}

/* What comes from now on is due by other terms, and what was is about to be paid. */
static void cf_policy_undue(struct cf_ctx *ctx)
{
	CF_MUTATION(latr_keeps_due, return);
	xchg(&ctx->due, 0);
}

/* Pay for all that a process has left; mmap_lock is held for writing. */
static void cf_policy_settle(struct cf_ctx *ctx)
{
	CF_MUTATION(latr_off_unsettled, return);
	cf_policy_undue(ctx);
	cf_arena_settle(ctx);
	if (cf_owes_skips(ctx) || cf_is_owed(ctx))
		cf_flush(ctx);
	/*
	 * Whoever releases at this moment has found lists that were not paid yet, and is
	 * about to put them back: the flush finds nothing that waits. With other terms
	 * from now on nobody would look again.
	 */
	cf_kick_release(ctx);
}

/* The mechanism changes, and with it whether accessed bits are noted (young.c). */
static void cf_policy_set(struct mm_struct *mm, const struct cf_policy *policy)
{
	struct cf_ctx *ctx = mm->cf;

	cf_born_begin(ctx);
	WRITE_ONCE(mm->cf_policy, policy);
	cf_born_end(ctx);
}

/**
 * cf_policy_choose() - choose the mechanism of the current process
 * @policy: the mechanism, NULL for the usual one
 *
 * Context: may sleep and sends IPIs.
 * Return: 0 when nothing is left of the last one; -EINVAL: the process shares its
 * context with others, -EINTR.
 */
int cf_policy_choose(const struct cf_policy *policy)
{
	struct mm_struct *mm = current->mm;
	bool chosen;

	if (mmap_write_lock_killable(mm))
		return -EINTR;
	if (mm->cf && mm->cf_policy != policy)
		cf_policy_settle(mm->cf);
	spin_lock(&cf_group_lock);
	chosen = !policy || !mm->cf_group;
	if (chosen)
		cf_policy_set(mm, policy);
	spin_unlock(&cf_group_lock);
	mmap_write_unlock(mm);
	return chosen ? 0 : -EINVAL;
}

/**
 * cf_policy_begin() - the mechanism of a process that has just been executed
 * @mm: the process, without a context
 * @policy: the mechanism
 *
 * It stays without if its caller has chosen a context of several processes for it.
 */
void cf_policy_begin(struct mm_struct *mm, const struct cf_policy *policy)
{
	spin_lock(&cf_group_lock);
	if (!mm->cf_group)
		WRITE_ONCE(mm->cf_policy, policy);
	spin_unlock(&cf_group_lock);
}

/**
 * cf_map_area() - mmap() in a process that has chosen a mechanism
 * @file: what is mapped, NULL for anonymous memory
 * @addr: hint of the program
 * @len: length in bytes, page aligned
 * @pgoff: offset in pages
 * @flags: MAP_*
 * @vm_flags: flags of the mapping
 *
 * Context: mmap_lock held for writing.
 * Return: an address, or 0 for the usual one.
 */
unsigned long cf_map_area(struct file *file, unsigned long addr,
			  unsigned long len, unsigned long pgoff,
			  unsigned long flags, vm_flags_t vm_flags)
{
	const struct cf_policy *policy = READ_ONCE(current->mm->cf_policy);

	/* What exec maps belongs to a process that has not begun. */
	if (!policy || current->in_execve || in_compat_syscall() ||
	    test_thread_flag(TIF_ADDR32))
		return 0;
	return policy->map_area(file, addr, len, pgoff, flags, vm_flags);
}
