// SPDX-License-Identifier: GPL-2.0-only
/*
 * fpr_force - run a command with fast page recycling for each file that it maps
 *
 *   fpr_force COMMAND [ARGUMENT...]
 *
 * Becomes the command; what that forks and executes inherits the setting, unless
 * it gains privileges. Called by tests/foreign/run, and by hand to repeat what
 * it has found.
 *
 * Exit status: that of the command; 2 for wrong use, 77 without FPR in the
 * kernel, 126 and 127 as in a shell.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>

/* linux/ceasefire.h */
#ifndef PR_FPR
#define PR_FPR		0x465052
#define PR_FPR_SET_AUTO	1
#endif

int main(int argc, char **argv)
{
	if (argc < 2) {
		fputs("usage: fpr_force COMMAND [ARGUMENT...]\n", stderr);
		return 2;
	}
	if (prctl(PR_FPR, PR_FPR_SET_AUTO, ULONG_MAX, 0, 0)) {
		perror("fpr_force: this kernel has no FPR");
		return 77;
	}
	execvp(argv[1], argv + 1);
	fprintf(stderr, "fpr_force: %s: ", argv[1]);
	perror(NULL);
	return errno == ENOENT ? 127 : 126;
}
