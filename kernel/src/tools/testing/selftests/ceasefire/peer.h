/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The peer: a second thread of the case, alone on a CPU of its own, that holds
 * translations while the first thread takes the mappings away. Between two
 * requests it spins in user mode, so that nothing replaces the address space
 * on its CPU: without PCIDs any such switch would drop what it holds.
 *
 * Also the probes: accesses that survive SIGSEGV and SIGBUS, from any thread.
 */
#ifndef CEASEFIRE_SELFTEST_PEER_H
#define CEASEFIRE_SELFTEST_PEER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Most pages of one request. */
#define PEER_PAGES	1024

/* What a probe reports for an access that faulted. */
#define FAULTED		0xfa017fa017fa017fULL

/* Every test page consists of one byte value, repeated. */
#define WORD(byte)	((uint64_t)(byte) * 0x0101010101010101ULL)

uint64_t probe_read(const void *addr);
bool probe_write(void *addr, uint64_t word);

/* Start the peer on @cpu; the case must have forked its strangers before. */
void peer_start(int cpu);

/* Fill its TLB: read one word of each page, all of which must be mapped. */
void peer_touch(const void *addr, size_t pages);
/* The first word of each page, or FAULTED. */
void peer_read(const void *addr, size_t pages, uint64_t *words);
/* How many of the pages begin with @word (which may be FAULTED). */
size_t peer_count(const void *addr, size_t pages, uint64_t word);
/* Write @word to each page; returns how many of the writes went through. */
size_t peer_write(void *addr, size_t pages, uint64_t word);
/*
 * Run the function that each page begins with; its result, or FAULTED. It must
 * be short, without a stack frame, and leave a number in %eax.
 */
void peer_call(const void *addr, size_t pages, uint64_t *results);

/* A request in two halves: the peer runs while the caller does its part. */
void peer_begin_watch(const void *addr, size_t pages, uint64_t expected);
/* Ends the watch; returns the first word seen that was neither @expected nor
 * a fault, or @expected.
 */
uint64_t peer_end_watch(void);
bool peer_watch_saw_alien(void);

#endif
