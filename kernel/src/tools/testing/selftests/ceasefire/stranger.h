/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The stranger: another process that takes free memory and writes to it, to
 * find out whether somebody else still sees that memory.
 *
 * It is forked before the mappings under attack are made: a fork flushes the
 * TLBs of the parent, and an attack after that would prove nothing.
 */
#ifndef CEASEFIRE_SELFTEST_STRANGER_H
#define CEASEFIRE_SELFTEST_STRANGER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* The byte that its memory is made of. */
#define SECRET	0xee

enum fill {
	FILL_ANON,	/* anonymous memory */
	FILL_FILE,	/* page cache */
	FILL_PIPE,	/* kernel pages: pipe buffers */
	FILL_TABLE,	/* page tables */
	FILL_SLAB,	/* slab objects */
	FILL_HUGE,	/* anonymous memory in folios of 2 MiB */
};

struct stranger {
	pid_t pid;
	int link;	/* orders go there, results come back */
};

void stranger_start(struct stranger *s);
/* Take and write @mib MiB more; returns when that is done. */
void stranger_fill(struct stranger *s, enum fill kind, size_t mib);
/* The same where it may be killed for memory: false if it was. */
bool stranger_fill_or_die(struct stranger *s, enum fill kind, size_t mib);
/* Run @call in the stranger in two halves, to do something meanwhile. */
void stranger_ask(struct stranger *s, long (*call)(long argument),
		  long argument);
long stranger_answer(struct stranger *s);
/* Run @call in the stranger; returns its result. */
long stranger_call(struct stranger *s, long (*call)(long argument),
		   long argument);
void stranger_stop(struct stranger *s);

#endif
