// SPDX-License-Identifier: GPL-2.0
/*
 * prctl(PR_LATR): processes that ask to be lazy.
 *
 * The choice is that of the address space (../core/policy.c has who inherits it).
 *
 * Locks: none here. Caller: prctl().
 */
#include <linux/ceasefire.h>
#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/uaccess.h>

#include "latr.h"

static int latr_set(unsigned long on)
{
	switch (on) {
	case 0:
		if (READ_ONCE(current->mm->cf_policy) != &latr_policy)
			return 0;
		return cf_policy_choose(NULL);
	case 1:
		if (READ_ONCE(latr_enabled) == LATR_NEVER)
			return -EPERM;
		return cf_policy_choose(&latr_policy);
	default:
		return -EINVAL;
	}
}

/**
 * latr_prctl() - prctl(PR_LATR)
 * @operation: PR_LATR_*
 * @arg3: of the operation
 * @arg4: unused, has to be 0
 * @arg5: unused, has to be 0
 *
 * Return: 0 or a negative errno, see uapi/linux/ceasefire.h.
 */
int latr_prctl(unsigned long operation, unsigned long arg3,
	       unsigned long arg4, unsigned long arg5)
{
	unsigned int on;

	if (arg4 || arg5)
		return -EINVAL;
	switch (operation) {
	case PR_LATR_SET:
		return latr_set(arg3);
	case PR_LATR_GET:
		on = READ_ONCE(current->mm->cf_policy) == &latr_policy;
		return put_user(on, (unsigned int __user *)arg3);
	default:
		return -EINVAL;
	}
}
