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
#include <stdint.h>
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

/* Most frames that it can be asked for. */
#define STRANGER_FRAMES	64

struct stranger {
	pid_t pid;
	int link;	/* orders go there, results come back */
	uint64_t *wanted;	/* frames, STRANGER_FRAMES; shared with it */
};

void stranger_start(struct stranger *s);
/* Take and write @mib MiB more; returns when that is done. */
void stranger_fill(struct stranger *s, enum fill kind, size_t mib);
/*
 * Take and write anonymous memory until these frames are part of it, at most @mib
 * MiB; returns how many are. What was freed together comes back together: it ends
 * when some have come, and then no more of them.
 */
size_t stranger_take(struct stranger *s, const uint64_t *frames, size_t count,
		     size_t mib);
/* As stranger_fill(), where it may be killed for memory: false if it was. */
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
