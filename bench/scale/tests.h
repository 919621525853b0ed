/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * tests.h - what a test is: a loop that a task carries out until it is stopped
 *
 * The contract: run() calls task_ready() and begins to repeat its operation. It
 * counts each in progress->done when it is complete, looks at control->stop
 * often, and counts in progress->wrong whatever it reads that should not be
 * there. It gives task->flags to mmap() and knows nothing else of FPR (shared_* give none). A task has a
 * file of its own, if the test wants one: page @n of it begins with page_word(task->index, n).
 */
#ifndef SCALE_TESTS_H
#define SCALE_TESTS_H

#include "options.h"

#include "../common/latency.h"

#include <stdatomic.h>
#include <stdint.h>

#define PAGE 4096UL

/* tlb_flush* and shared_*: blocks that are changed in turn, and the pages of each. */
#define FLUSH_BLOCKS 64U
#define BLOCK_PAGES 4U
#define FLUSH_PAGES (FLUSH_BLOCKS * BLOCK_PAGES)

/* What a task has done so far; cache lines of its own. */
struct progress {
	_Alignas(128) atomic_ullong done;
	atomic_ullong wrong;
	/* Of the peer thread of a task, if the test has one. */
	_Alignas(128) atomic_ullong peer_checks;
	atomic_ullong peer_wrong;
};

/* Shared by all processes of a sample. */
struct control {
	_Alignas(128) atomic_uint ready;
	_Alignas(128) atomic_bool stop;
	struct progress progress[MAX_TASKS];
	/* Of the bystander, which writes only while the window is open. */
	_Alignas(128) atomic_bool measures;
	struct latency pieces;
};

struct task {
	const struct options *options;
	struct control *control;
	struct progress *progress;
	unsigned int index;
	int cpu;
	int peer_cpu;		/* another one, where there is one */
	int fd;			/* -1: the test wants no file */
	int flags;		/* for mmap(): MAP_FPR or none */
	bool spoil;		/* true until it was done */
};

struct test {
	const char *name;
	const char *what;
	bool wants_file;
	bool threads_only;	/* tasks look at each other's pages */
	bool two_nodes;		/* needs a second one */
	void (*run)(struct task *task);
};

extern const struct test *const all_tests[];
extern const unsigned int test_count;

/* With --bystander, in place of the last task's test. */
void run_bystander(struct task *task);

extern const struct test page_fault1, page_fault2, page_fault3;
extern const struct test mmap1, mmap2, write1;
extern const struct test tlb_flush1, tlb_flush2, tlb_flush3;
extern const struct test own_munmap, own_file, own_dontneed, own_free, own_protect, own_copy;
extern const struct test own_sync, own_move;
extern const struct test shared_munmap, shared_dontneed, shared_free, shared_protect, shared_copy;

/*
 * Room for a task's pages where no other page is: more than a table of the
 * last level has, far from what the kernel gives out, with what is mapped there at once
 * in its first half.
 */
#define OWN_AREA (4UL << 20)
#define OWN_AREAS 0x100000000000UL

static inline char *own_area(unsigned int index)
{
	return (char *)(OWN_AREAS + index * OWN_AREA);
}

/* The window of the monitor opens when all tasks are. */
static inline void task_ready(const struct task *task)
{
	atomic_fetch_add(&task->control->ready, 1);
}

static inline bool stopped(const struct task *task)
{
	return atomic_load_explicit(&task->control->stop, memory_order_relaxed);
}

/* With --spoil: makes a word wrong, once. */
static inline void spoil(struct task *task, volatile uint64_t *word)
{
	if (task->spoil)
		*word ^= 1;
	task->spoil = false;
}

#endif /* SCALE_TESTS_H */
