/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * ceasefire.h - the user's side of fast page recycling (FPR)
 *
 * What: the mmap(2) flag, and a question to the running kernel.
 * Who:  programs that ask for FPR themselves. Programs that cannot be changed
 *       use libceasefire-preload(7) instead and need nothing from here.
 *
 * MAP_FPR is a hint. A kernel without FPR ignores it with MAP_PRIVATE and
 * MAP_SHARED, so it may always be given:
 *
 *	p = mmap(NULL, len, PROT_READ, MAP_SHARED | MAP_FPR, fd, 0);
 */
#ifndef CEASEFIRE_H
#define CEASEFIRE_H

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

/* mmap(2): munmap of this file mapping need not interrupt other CPUs. */
#ifndef MAP_FPR
#define MAP_FPR 0x800000
#endif

/* The kernel's switch: "1" or "0"; the file is absent where FPR is. */
#define CEASEFIRE_FPR_ENABLED "/sys/kernel/mm/ceasefire/fpr/enabled"

/**
 * ceasefire_fpr_state() - what the running kernel does with MAP_FPR
 *
 * Reads sysfs, so it cannot tell in a sandbox that has no /sys. Leaves errno
 * as it was.
 *
 * Return: 1 when the flag is honoured, 0 when FPR is there but switched off,
 * -1 when the kernel has no FPR or does not say.
 */
static inline int ceasefire_fpr_state(void)
{
	int saved = errno;
	char value = 0;
	int state = -1;
	int fd = open(CEASEFIRE_FPR_ENABLED, O_RDONLY | O_CLOEXEC);

	if (fd >= 0) {
		if (read(fd, &value, 1) == 1)
			state = value != '0';
		close(fd);
	}
	errno = saved;
	return state;
}

#endif /* CEASEFIRE_H */
