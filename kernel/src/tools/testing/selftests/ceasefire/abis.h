/* SPDX-License-Identifier: GPL-2.0 */
/* A process with ABIS, what its peer has in its TLB, and what was flushed for it. */
#ifndef CEASEFIRE_SELFTEST_ABIS_H
#define CEASEFIRE_SELFTEST_ABIS_H

#include <stddef.h>
#include <stdint.h>

#include "env.h"

/*
 * This process has ABIS, on CPU 0, and a peer on CPU 1; nothing is paid by ticks. Skips
 * where it cannot.
 */
void abis_start(void);
/* The same with entries that only one CPU has; skips where the machine has no PCIDs. */
void abis_start_inserted(void);
/* The same without the choice, which comes later. */
void abis_prepare(void);

/* As reclaim does when it looks who uses a page; without a flush. */
void abis_clear_accessed(void);
/* The same, and no CPU has any of it any more. */
void abis_settle(void);

/* Of an entry: who may have it. The last one is named in it; see abis_start_inserted(). */
enum abis_state { USED, CLEARED, SETTLED, INSERTED };

/* All entries that the peer has just used; nothing is to be done for the first and the last. */
void abis_bring_to(enum abis_state state);

/* Private memory without huge pages, to which the peer has written @word. */
char *abis_written(size_t pages, uint64_t word);

/* What of flushes, and how often another CPU was interrupted for one. */
struct abis_flushes {
	long none, some, all, local, narrow, received;
	long uncached, class, young, stale, pending, untracked, other;
};

struct abis_flushes abis_flushes(void);
struct abis_flushes abis_flushes_since(struct abis_flushes before);

#endif
