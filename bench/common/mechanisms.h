/* SPDX-License-Identifier: GPL-2.0-only */
/* mechanisms.h - what a mode can consist of; see mechanisms.c. */
#ifndef BENCH_MECHANISMS_H
#define BENCH_MECHANISMS_H

#include <stdbool.h>

#define MECHANISMS 4

struct mechanism {
	const char *name;
	int map_flags;		/* of mappings that are to use it */
	bool (*offered)(void);	/* by this kernel, now */
	void (*require)(void);	/* ends the program where it is not, and says why */
	int (*ask)(bool on);	/* for all mappings of this process and what it becomes */
	bool of_process;	/* no mapping asks for it: it is the process that does */
};

extern const struct mechanism mechanisms[MECHANISMS];

/* Ends the program where FPR would do nothing. */
void require_fpr(void);

#endif /* BENCH_MECHANISMS_H */
