// SPDX-License-Identifier: GPL-2.0-only
/*
 * fpr-run.c - start a program with or without fast page recycling
 *
 * What: fpr-run on|off COMMAND [ARGUMENT...] becomes the command. With "on" all
 *       that it maps from files recycles, as with `ceasefire run`, which takes
 *       longer to start than many programs run.
 * Who:  the suites of `ceasefire bench run`.
 */
#include "../common/modes.h"
#include "../common/util.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

/* linux/ceasefire.h */
#ifndef PR_FPR
#define PR_FPR		0x465052
#define PR_FPR_SET_AUTO	1
#endif

int main(int argc, char **argv)
{
	bool on;

	set_program_name("fpr-run");
	if (argc < 3 || (strcmp(argv[1], "on") && strcmp(argv[1], "off")))
		die(EXIT_USAGE, "usage: fpr-run on|off COMMAND [ARGUMENT...]");
	on = !strcmp(argv[1], "on");
	if (on) {
		require_fpr();
		if (prctl(PR_FPR, PR_FPR_SET_AUTO, ULONG_MAX, 0, 0))
			die_errno("prctl");
	}
	execvp(argv[2], argv + 2);
	die(errno == ENOENT ? 127 : 126, "%s: %s", argv[2], strerror(errno));
}
