/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * pool.h - a buffer pool: an address for each page of a file, some of them in memory
 *
 * Who uses a page has it fixed, alone or together with others that only read it. What is
 * not fixed may be evicted, in groups, after it was written to the file if it is dirty. An
 * error of the file ends the program.
 */
#ifndef YCSB_POOL_H
#define YCSB_POOL_H

#include <stdbool.h>
#include <stdint.h>

#define POOL_PAGE 4096u
/* Pages in memory, beside four for each thread. */
#define POOL_LEAST 64u

/* How memory leaves the pool. */
enum pool_way {
	POOL_DONTNEED,	/* MADV_DONTNEED of anonymous memory, a call a page */
	POOL_REMOVE,	/* MADV_REMOVE of a memfd, a call a page */
	POOL_VECTOR,	/* MORSEL_IOC_DEPOPULATE of a group */
	POOL_LAZY,	/* the same with MORSEL_LAZY: nobody is interrupted */
	POOL_WAYS,
};

extern const char *const pool_ways[POOL_WAYS];

struct pool;

/* For a file of at most @pages, of which @room are in memory. */
struct pool *pool_open(int file, enum pool_way way, uint64_t pages, uint64_t room);
/* Pages that all pools have evicted since the last call. */
uint64_t pool_evicted(void);
/* Writes what is dirty; nobody uses the pool. */
void pool_close(struct pool *pool);
/* The same without an end: nobody has a page fixed to write to it. */
void pool_write(struct pool *pool);

/* Returns the page, which stays where it is until pool_unfix(). */
void *pool_fix(struct pool *pool, uint64_t page, bool alone);
/* The same for one that is not in the file yet: zeroes, and alone. */
void *pool_make(struct pool *pool, uint64_t page);
void pool_unfix(struct pool *pool, uint64_t page);
/* Of a page that is fixed alone: it was written to. */
void pool_unfix_dirty(struct pool *pool, uint64_t page);

#endif /* YCSB_POOL_H */
