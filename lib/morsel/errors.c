// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * errors.c - what went wrong with a morsel, and what to do
 *
 * What: morsel_strerror() of morsel.h. The errors of each call are those of its manual page.
 * Who:  programs that link with libmorsel.
 */
#include "morsel.h"

#include <errno.h>
#include <string.h>

#define BIT(CALL)	(1U << MORSEL_CALL_##CALL)
#define RANGES		(BIT(POPULATE) | BIT(DEPOPULATE))

static const struct message {
	unsigned int calls;
	int err;
	const char *text;
} messages[] = {
	{ BIT(CREATE) | BIT(COPY), ENOSYS,
	  "this kernel has no morsels: boot one with the patch of ceasefire and CONFIG_CEASEFIRE_MORSEL, "
	  "and see what `ceasefire doctor` says" },
	{ BIT(CREATE) | BIT(COPY), EPERM,
	  "the administrator does not allow morsels, or pages of 1 GiB, which need CAP_IPC_LOCK: see "
	  "/sys/kernel/mm/ceasefire/morsel/enabled" },
	{ BIT(CREATE), EINVAL,
	  "there is no such unit or page, or the name is too long: take units of 2 MiB, 1 GiB, 512 GiB or 256 TiB, "
	  "pages of 4 KiB, or 2 MiB or 1 GiB in larger units, an address that is a multiple of the unit, and a "
	  "name of at most 249 bytes" },
	{ BIT(CREATE), EFBIG,
	  "a morsel has at most 511 units: take a larger unit, or none, and the kernel chooses" },
	{ BIT(CREATE) | BIT(OPEN), EOPNOTSUPP,
	  "this machine cannot have such morsels: they need page tables of their own, which Xen PV does "
	  "not give, large units or pages need a processor that has them, and large pages are never lazy" },
	{ BIT(OPEN), EPERM,
	  "the administrator does not allow new morsels: see /sys/kernel/mm/ceasefire/morsel/enabled" },
	{ BIT(OPEN), EINVAL,
	  "it is no morsel, or there is no such unit or flag: give a path in a file system of morsels, as "
	  "made by `mount -t morsel morsel DIR`" },
	{ BIT(COPY), EINVAL,
	  "it has no size, or the path is among other files, or the name is too long: give a morsel of more "
	  "than 0 bytes, a path in its own file system, or a name of at most 249 bytes" },
	{ BIT(COPY), EOPNOTSUPP,
	  "one that may be depopulated lazily, or has large pages, cannot be copied: make it with "
	  "another layout" },
	{ BIT(COPY), EXDEV,
	  "both are not in one file system of morsels, or it is no morsel: take morsel_copy_at() for one that has a name, and "
	  "morsel_copy() for one that has none" },
	{ BIT(COPY), ENODEV,
	  "the morsel was destroyed: there is nothing to copy" },
	{ BIT(COPY), ENOMEM,
	  "there is no memory, or a limit is reached: raise memory.max of the control group or "
	  "/sys/kernel/mm/ceasefire/morsel/limit" },
	{ BIT(OPEN) | BIT(COPY), EACCES,
	  "it, or its folder, is somebody else's: open it for reading only, or have the owner change the mode" },
	{ BIT(OPEN) | BIT(COPY), EEXIST,
	  "there is something with this name: open it, or remove it first" },
	{ BIT(OPEN) | BIT(COPY), ENOENT,
	  "there is no such morsel or folder: see where `mount -t morsel` has put them" },
	{ BIT(OPEN), EFBIG,
	  "a morsel has at most 511 units: take a larger unit, or none, and the kernel chooses" },
	{ BIT(MAP), EINVAL,
	  "it is no morsel, or has no size: give a descriptor of morsel_create() or morsel_open() of more "
	  "than 0 bytes" },
	{ BIT(MAP), EACCES,
	  "the descriptor does not allow that: open it for reading, and for writing if PROT_WRITE is asked for" },
	{ BIT(MAP), EPERM,
	  "a morsel cannot be executed: leave PROT_EXEC out" },
	{ BIT(MAP), ENOMEM,
	  "no address is free for so much, or the process has too many mappings: see ulimit -v and vm.max_map_count" },
	{ BIT(UNMAP), EINVAL,
	  "a morsel is unmapped as a whole: give what morsel_map() has filled" },
	{ BIT(STAT), EINVAL,
	  "it is no morsel: give a descriptor of morsel_create() or morsel_open()" },
	{ BIT(DESTROY), EBUSY,
	  "a process has it mapped: unmap it there, or take MORSEL_FORCE, and whoever uses it gets SIGBUS" },
	{ BIT(DESTROY), EINVAL,
	  "there is no such flag, or it is no morsel: give 0 or MORSEL_FORCE" },
	{ BIT(DESTROY), ENODEV,
	  "it has been destroyed before" },
	{ BIT(MAP) | RANGES, ENODEV,
	  "the morsel was destroyed: make a new one" },
	{ RANGES, EINVAL,
	  "a range ends behind the morsel, or it is no morsel, or no lazy one: see how large it is with "
	  "fstat(2), and make it with a lazy layout for morsel_depopulate_lazy()" },
	{ RANGES | BIT(DESTROY), EPERM,
	  "the descriptor only reads: open it for writing" },
	{ RANGES, EFAULT,
	  "the ranges are not in memory: give the address of an array of struct morsel_range" },
	{ BIT(POPULATE), ENOMEM,
	  "there is no memory, or a limit is reached: take some away by morsel_depopulate(), or raise "
	  "memory.max of the control group or /sys/kernel/mm/ceasefire/morsel/limit" },
	{ ~0U, EBADF,
	  "the descriptor is not open" },
	{ ~0U, EMFILE,
	  "the process has as many descriptors as it may: see ulimit -n" },
};

const char *morsel_strerror(enum morsel_call call, int err)
{
	for (size_t i = 0; i < sizeof(messages) / sizeof(*messages); i++)
		if (messages[i].err == err && messages[i].calls & 1U << call)
			return messages[i].text;
	return strerror(err);
}
