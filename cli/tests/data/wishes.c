// SPDX-License-Identifier: GPL-2.0-only
/*
 * Tells what a process as a whole was to have: "1 0" if it is lazy (PR_LATR), and
 * its CPUs do not note what they use (PR_SHARERS).
 */
#include <stdio.h>
#include <sys/prctl.h>

/* linux/ceasefire.h */
enum { LATR = 0x4c415452, SHARERS = 0x53485253, GET = 2 };

int main(void)
{
	unsigned int lazy = 9, sharers = 9;

	if (prctl(LATR, GET, &lazy, 0, 0) || prctl(SHARERS, GET, &sharers, 0, 0))
		perror("prctl");
	printf("%u %u\n", lazy, sharers);
	return 0;
}
