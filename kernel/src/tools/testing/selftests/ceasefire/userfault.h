/* SPDX-License-Identifier: GPL-2.0 */
/* Pages that userfaultfd moves from one mapping to another. */
#ifndef CEASEFIRE_SELFTEST_USERFAULT_H
#define CEASEFIRE_SELFTEST_USERFAULT_H

#include <stddef.h>

/*
 * Anonymous memory without the flag whose pages, filled with @byte, are in
 * frames that the peer can still write to through its @held translations at
 * @stale: they were recycled for a mapping with the flag, and moved from there.
 */
char *move_recycled(char *stale, size_t held, size_t pages, unsigned char byte);

#endif
