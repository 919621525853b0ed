// SPDX-License-Identifier: GPL-2.0
/*
 * prctl(PR_ABIS): processes that ask for ABIS, and those that root makes have it.
 *
 * The choice is that of the address space, with the rules of the other mechanisms:
 * inherited over fork() and execve(), lost by an execve() that gains privileges. It
 * needs a context of the process (../core/context.c), which tags and generations
 * belong to. Who asks gets it at once; who inherits it, when it makes its second
 * thread: before, nobody else can have an entry but CPUs where it was before.
 *
 * Locks: mmap_lock for writing. Callers: prctl(), copy_mm(), begin_new_exec().
 */
#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/uaccess.h>

#include <asm/tlbflush.h>

#include "abis.h"

/*
 * Bits that were cleared before it was noted are owed for (cf_born_begin()). One
 * flush pays, so that it begins now and not with the next full one.
 */
static void abis_begin(struct mm_struct *mm, struct cf_ctx *ctx)
{
	if (cf_is_owed_for(ctx, READ_ONCE(ctx->born)))
		flush_tlb_mm_range(mm, 0, TLB_FLUSH_ALL, 0, false);
}

/* mmap_lock is held for writing. */
static int abis_choose(struct mm_struct *mm)
{
	struct cf_ctx *ctx = mm->cf;

	if (!mm->context.abis) {
		cf_born_begin(ctx);
		WRITE_ONCE(mm->context.abis, true);
		cf_born_end(ctx);
	}
	ctx = ctx ?: cf_ctx_create(mm);
	if (!ctx) {
		WRITE_ONCE(mm->context.abis, false);
		return -ENOMEM;
	}
	abis_begin(mm, ctx);
	return 0;
}

static int abis_set(struct mm_struct *mm, unsigned long on)
{
	int err = 0;

	if (on > 1)
		return -EINVAL;
	if (on && !abis_is_possible())
		return -EOPNOTSUPP;
	if (on && READ_ONCE(abis_enabled) == ABIS_NEVER)
		return -EPERM;
	if (mmap_write_lock_killable(mm))
		return -EINTR;
	if (on)
		err = abis_choose(mm);
	else
		WRITE_ONCE(mm->context.abis, false);
	mmap_write_unlock(mm);
	return err;
}

/**
 * abis_prctl() - prctl(PR_ABIS)
 * @operation: PR_ABIS_*
 * @arg3: of the operation
 * @arg4: unused, has to be 0
 * @arg5: unused, has to be 0
 *
 * Return: 0 or a negative errno, see uapi/linux/ceasefire.h.
 */
int abis_prctl(unsigned long operation, unsigned long arg3,
	       unsigned long arg4, unsigned long arg5)
{
	struct mm_struct *mm = current->mm;
	unsigned int on;

	if (arg4 || arg5)
		return -EINVAL;
	switch (operation) {
	case PR_ABIS_SET:
		return abis_set(mm, arg3);
	case PR_ABIS_GET:
		on = READ_ONCE(mm->context.abis);
		return put_user(on, (unsigned int __user *)arg3);
	default:
		return -EINVAL;
	}
}

/**
 * __abis_exec() - a program begins
 * @mm: its address space
 *
 * Also one that gains privileges: it is not its caller who decides that.
 */
void __abis_exec(struct mm_struct *mm)
{
	if (READ_ONCE(abis_enabled) == ABIS_ALWAYS && abis_is_possible())
		mm->context.abis = true;
}

/**
 * __abis_exec_secure() - a program begins that has privileges which its caller lacks
 * @mm: its address space
 */
void __abis_exec_secure(struct mm_struct *mm)
{
	CF_MUTATION(abis_secure, return);
	mm->context.abis = false;
}

/**
 * __abis_thread() - a process that has it is about to get one more thread
 * @mm: its address space, current->mm
 *
 * Without memory it has to do as if it had not asked; the next thread asks again.
 *
 * Context: may sleep.
 */
void __abis_thread(struct mm_struct *mm)
{
	struct cf_ctx *ctx = READ_ONCE(mm->cf);
	u64 born = ctx ? READ_ONCE(ctx->born) : 0;

	/* For ever: another thread is in the middle of a fork(), which pays in the end. */
	if (READ_ONCE(abis_enabled) == ABIS_NEVER ||
	    (ctx && (born == U64_MAX || !cf_is_owed_for(ctx, born))) ||
	    mmap_write_lock_killable(mm))
		return;
	ctx = mm->cf ?: cf_ctx_create(mm);
	if (ctx)
		abis_begin(mm, ctx);
	mmap_write_unlock(mm);
}
