/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A thread that does one thing to a morsel, and is late: it has found where a table or a page is to
 * be, and has not locked that yet, while others take it away. Debug kernels only; skips elsewhere.
 */
#ifndef CEASEFIRE_SELFTEST_LATE_H
#define CEASEFIRE_SELFTEST_LATE_H

#include <pthread.h>
#include <stdatomic.h>

struct late {
	pthread_t thread;
	int (*act)(char *at);
	char *at;
	/* What came of it; 0: nothing yet. */
	atomic_int result;
};

/* Writes a word of 0x5a there; 1, or -1: it cannot. */
int late_write(char *at);
/* Start it on CPU 1, to be late by @ms, and wait until it has begun. This thread is on CPU 0. */
void late_begin(struct late *l, int (*act)(char *at), char *at, unsigned int ms);
/* What came of it; all others are in time again. */
int late_end(struct late *l);

#endif
