/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Memory of a process with sharers, in regions of 2 MiB of its own, so that nobody is
 * noted for it but who uses it; and what the peer finds there.
 */
#ifndef CEASEFIRE_SELFTEST_REGIONS_H
#define CEASEFIRE_SELFTEST_REGIONS_H

#include <stddef.h>
#include <stdint.h>

#include "env.h"

#define REGION	(2 * MIB)

/* This process has sharers, on CPU 0, and a peer on CPU 1; skips where it cannot. */
void sharers_start(void);

/* @count regions that nobody has used, without huge pages, with one behind them. */
char *regions(size_t count);

/* A GiB, aligned, so that it has all of a table of PMDs; -1: of anonymous memory. */
char *whole_gib(int flags, int fd);

/* One entry of 2 MiB, whose first pages the peer has written; skips without. */
char *huge_region(size_t pages, uint64_t word);

/* The peer has to find @word in each of the pages, at once. */
void peer_finds(const char *p, size_t pages, uint64_t word);
/* It must not be able to write to any of them; it tries @word. */
void peer_cannot_write(char *p, size_t pages, uint64_t word);

/*
 * Instead of a peer: a thread on CPU 1 that sleeps, so that its CPU has nothing to do
 * between two looks, and is in lazy mode.
 */
void sleeper_start(void);
void sleeper_finds(const char *p, uint64_t word);

#endif
