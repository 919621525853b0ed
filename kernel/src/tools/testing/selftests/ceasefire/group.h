/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Control groups of our own, out of which pages are reclaimed on demand: what
 * kswapd does to all memory, to few pages and at a known time; and with limits.
 * They go when the case ends.
 */
#ifndef CEASEFIRE_SELFTEST_GROUP_H
#define CEASEFIRE_SELFTEST_GROUP_H

#include <stdbool.h>
#include <stddef.h>

enum group {
	GROUP_OWN,	/* what group_start() makes */
	GROUP_BESIDE,	/* another one */
	GROUP_BELOW,	/* one in the own one, in which nobody may be then */
	GROUPS
};

/* Make it, and enter it: pages that are read or written now are charged to it. */
void group_start(void);
/* Out of it again; its pages stay in it. */
void group_leave(void);
/* The others. */
void group_make(enum group g);
void group_enter(enum group g);
/* Waits until all that was in it has ended. */
void group_remove(enum group g);

/* A file with one number; -1: there is none, or it has no number. */
long group_value(enum group g, const char *name);
void group_set(enum group g, const char *name, long value);
/* A "name 123" line of a file; 0: there is none. */
long group_line(enum group g, const char *file, const char *name);
/* Bytes in use, with those of groups below: what memory.stat knows. */
long group_used(enum group g);
/* Nothing of the group runs in user mode when this returns. */
void group_freeze(enum group g, bool frozen);

/* Reclaim up to so many bytes of it; less if there is no more. */
void group_reclaim(size_t bytes);
/*
 * Pages of files in the youngest generation of its LRU; skips the case without
 * multi-generational LRU or its file in debugfs.
 */
long group_youngest(void);

#endif
