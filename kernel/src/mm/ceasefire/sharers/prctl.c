// SPDX-License-Identifier: GPL-2.0
/*
 * Processes that want CPUs to note what they use (sharers): who asks for it, and
 * whom root makes have it. The mechanism is in arch/x86/mm/sharers.
 *
 * It is a wish of the address space, which begins to count when the process makes
 * its second thread; so a program that has threads already cannot have it any more.
 *
 * Locks: none. Callers: prctl(), begin_new_exec(), sysfs.
 */
#include <linux/ceasefire.h>
#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/uaccess.h>

#include "sharers.h"

enum sharers_enabled sharers_enabled __read_mostly = SHARERS_ASK;

/* Is it too late for this address space? What is executed next can have them. */
static bool sharers_is_late(struct mm_struct *mm)
{
	return READ_ONCE(mm->context.sharers_wanted) != SHARERS_WANTED &&
	       (get_nr_threads(current) > 1 || sharers_is_stopped(mm));
}

static int sharers_set(struct mm_struct *mm, unsigned long on)
{
	switch (on) {
	case 0:
		WRITE_ONCE(mm->context.sharers_wanted, SHARERS_UNWANTED);
		sharers_stop(mm);
		return 0;
	case 1:
		if (READ_ONCE(sharers_enabled) == SHARERS_NEVER)
			return -EPERM;
		if (sharers_is_late(mm)) {
			WRITE_ONCE(mm->context.sharers_wanted, SHARERS_NEXT);
			return -EBUSY;
		}
		WRITE_ONCE(mm->context.sharers_wanted, SHARERS_WANTED);
		return 0;
	default:
		return -EINVAL;
	}
}

/**
 * sharers_prctl() - prctl(PR_SHARERS)
 * @operation: PR_SHARERS_*
 * @arg3: of the operation
 * @arg4: unused, has to be 0
 * @arg5: unused, has to be 0
 *
 * Return: 0 or a negative errno, see uapi/linux/ceasefire.h.
 */
int sharers_prctl(unsigned long operation, unsigned long arg3,
		  unsigned long arg4, unsigned long arg5)
{
	struct mm_struct *mm = current->mm;
	unsigned int on;

	if (arg4 || arg5)
		return -EINVAL;
	switch (operation) {
	case PR_SHARERS_SET:
		return sharers_set(mm, arg3);
	case PR_SHARERS_GET:
		on = READ_ONCE(mm->context.sharers_wanted) != SHARERS_UNWANTED;
		return put_user(on, (unsigned int __user *)arg3);
	default:
		return -EINVAL;
	}
}

/**
 * __sharers_exec() - a program begins
 * @mm: its address space
 *
 * Also one that gains privileges: it is not its caller who decides that.
 */
void __sharers_exec(struct mm_struct *mm)
{
	switch (READ_ONCE(sharers_enabled)) {
	case SHARERS_NEVER:
		mm->context.sharers_wanted = SHARERS_UNWANTED;
		break;
	case SHARERS_ASK:
		break;
	case SHARERS_ALWAYS:
		mm->context.sharers_wanted = SHARERS_WANTED;
		break;
	}
}

/**
 * sharers_enable() - who may have copies from now on
 * @enabled: what root has chosen
 *
 * Context: may sleep. With SHARERS_NEVER flushes go to all when it returns, and CPUs
 * lose their copies as sharers_stop() says.
 */
void sharers_enable(enum sharers_enabled enabled)
{
	WRITE_ONCE(sharers_enabled, enabled);
	if (enabled == SHARERS_NEVER)
		sharers_stop_all();
}
