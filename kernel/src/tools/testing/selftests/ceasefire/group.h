/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A control group of our own, out of which pages are reclaimed on demand: what
 * kswapd does to all memory, to few pages and at a known time. It goes when
 * the case ends.
 */
#ifndef CEASEFIRE_SELFTEST_GROUP_H
#define CEASEFIRE_SELFTEST_GROUP_H

#include <stddef.h>

/* Make it, and enter it: pages that are read or written now are charged to it. */
void group_start(void);
/* Out of it again; its pages stay in it. */
void group_leave(void);
/* Reclaim up to so many bytes of it; less if there is no more. */
void group_reclaim(size_t bytes);
/*
 * Pages of files in the youngest generation of its LRU; skips the case without
 * multi-generational LRU or its file in debugfs.
 */
long group_youngest(void);

#endif
