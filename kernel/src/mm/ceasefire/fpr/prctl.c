// SPDX-License-Identifier: GPL-2.0
/*
 * prctl(PR_FPR): fast page recycling of whole processes, so that programs that
 * do not pass MAP_FPR profit, and those that load no library either.
 *
 * mm->fpr_auto is the size up to which a mapping of a file is made as if the
 * flag had been given. It changes at any time, and says nothing about mappings
 * that exist; so no lock. A child of vfork() sets it for its parent. fork() and
 * execve() inherit it (cf_mm_init()), but for an execve() that gains privileges:
 * who starts such a program must not decide for how long it can reach what it
 * has unmapped (I2). Contexts are in choice.c.
 *
 * Locks: none. Callers: prctl(), begin_new_exec().
 */
#include <linux/ceasefire.h>
#include <linux/compat.h>
#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/uaccess.h>

#include "fpr.h"

/**
 * fpr_prctl() - prctl(PR_FPR)
 * @operation: PR_FPR_*
 * @arg3: of the operation
 * @arg4: unused, has to be 0
 * @arg5: unused, has to be 0
 *
 * Return: 0 or a negative errno, see uapi/linux/ceasefire.h.
 */
int fpr_prctl(unsigned long operation, unsigned long arg3, unsigned long arg4,
	      unsigned long arg5)
{
	if (arg4 || arg5)
		return -EINVAL;
	switch (operation) {
	case PR_FPR_SET_AUTO:
		if (in_compat_syscall() && arg3 == U32_MAX)
			arg3 = ULONG_MAX;
		WRITE_ONCE(current->mm->fpr_auto, arg3);
		return 0;
	case PR_FPR_GET_AUTO:
		return put_user((u64)READ_ONCE(current->mm->fpr_auto),
				(u64 __user *)arg3);
	case PR_FPR_SET_CONTEXT:
		return cf_group_choose(arg3);
	case PR_FPR_GET_CONTEXT:
		return put_user(cf_group_kind(),
				(unsigned int __user *)arg3);
	default:
		return -EINVAL;
	}
}

/**
 * __fpr_exec_secure() - a program starts that has more rights than its caller
 * @mm: its new address space
 */
void __fpr_exec_secure(struct mm_struct *mm)
{
	CF_MUTATION(fpr_auto_secure, return);
	WRITE_ONCE(mm->fpr_auto, 0);
	WRITE_ONCE(mm->cf_policy, NULL);
	cf_group_leave(mm);
}
