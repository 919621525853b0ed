/* SPDX-License-Identifier: GPL-2.0 */
/*
 * An emulator that compares each use of a TLB entry with the page tables, if
 * one runs below this kernel: what it is to look at, and what is forbidden. It
 * counts violations by itself; without it these functions do nothing.
 */
#ifndef CEASEFIRE_SELFTEST_CHECKER_H
#define CEASEFIRE_SELFTEST_CHECKER_H

#include <stdbool.h>
#include <stddef.h>

/* Is there one? */
bool checker_present(void);
/* Look at the accesses of this process (where it looks at chosen ones only). */
void checker_watch(void);
/*
 * From now on no use of a stale translation of these pages is right, by any
 * thread of this process. Where a case says so the kernel has to have flushed:
 * not for frames that only wait, which nobody else gets.
 */
void checker_forbid(const void *addr, size_t pages);
/* Takes it back, for cases that leave stale translations there once more. */
void checker_allow(const void *addr, size_t pages);

#endif
