/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The fuzzer of morsels: what its files share. morsel_fuzz.c says what it is about.
 *
 *   morsel_fuzz.c	options, seeds, the verdict
 *   morsel_fuzz_run.c	one run of a plan by several processes; the object
 *   morsel_fuzz_ops.c	what a process does
 *   morsel_fuzz_copy.c	the same with a copy of the object
 */
#ifndef CEASEFIRE_SELFTEST_MORSEL_FUZZ_H
#define CEASEFIRE_SELFTEST_MORSEL_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fpr_fuzz.h"
#include "morsels.h"

#define MFUZZ_PROCESSES	8
#define MFUZZ_RUNS	128

enum mfuzz_arm {
	MFUZZ_MEMFD,
	MFUZZ_MORSEL,
	MFUZZ_LAZY,		/* a morsel that allows it */
	MFUZZ_HUGE,		/* one whose pages have 2 MiB */
	MFUZZ_ARMS,
};

/* Everything that a run depends on, but for the timing and the arm. */
struct mfuzz_plan {
	uint64_t seed;
	unsigned int processes, operations;
};

/* What one operation did and what came of it. Compared as bytes, so without padding. */
struct mfuzz_record {
	uint32_t op;		/* number in the table plus 1; 0: not reached */
	int32_t error;
	uint64_t offset, length;
	struct fuzz_fault fault;
	uint64_t value;		/* sum of what was read */
};

/* Pages of the object that one process reads and writes, and nobody else. */
struct mfuzz_run {
	uint64_t first, pages;
	unsigned int owner;
};

struct mfuzz_layout {
	uint64_t unit, size;
	/* A copy of a morsel is one. */
	bool copies;
	unsigned int nr;
	struct mfuzz_run run[MFUZZ_RUNS];
};

/* Where it is mapped: nothing comes above 128 TiB that is not asked for there. */
static inline void *mfuzz_hint(const struct mfuzz_layout *l)
{
	return l->size > 64 * TIB ? (void *)(128 * TIB) : NULL;
}

struct mfuzz_process {
	const struct mfuzz_layout *layout;
	enum mfuzz_arm arm;
	unsigned int number;
	uint64_t random;
	int fd, disk, ends[2];
	char *map;
	int prot;
	/* Of the object, or NULL: none yet. */
	int copy;
	char *copy_map;
	struct mfuzz_record *record;
};

static inline uint64_t mfuzz_random(struct mfuzz_process *p)
{
	p->random = fuzz_mix(p->random, 1);
	return p->random;
}

static inline uint64_t mfuzz_pick(struct mfuzz_process *p, uint64_t below)
{
	return mfuzz_random(p) % below;
}

/* morsel_fuzz_ops.c */
/* Pages of the process, @most of them or fewer; the record says which. */
struct morsel_range mfuzz_pages(struct mfuzz_process *p, uint64_t most);
/* What a call has returned goes into the record. */
void mfuzz_result(struct mfuzz_process *p, long value);
void mfuzz_map(struct mfuzz_process *p);
void mfuzz_operation(struct mfuzz_process *p);
/* Read anything, and forget it: what is there is for others to say. */
void mfuzz_noise(struct mfuzz_process *p);
/* Take all of it away, or a part of its end, and say how. */
void mfuzz_clear(struct mfuzz_process *p);
uint64_t mfuzz_sum_all(struct mfuzz_process *p);
const char *mfuzz_op_name(uint32_t op);

/* morsel_fuzz_copy.c */
void mfuzz_copy(struct mfuzz_process *p);
void mfuzz_copy_read(struct mfuzz_process *p);
void mfuzz_copy_write(struct mfuzz_process *p);
void mfuzz_copy_punch(struct mfuzz_process *p);

/* morsel_fuzz_run.c */
const char *mfuzz_arm_name(enum mfuzz_arm arm);
void mfuzz_start(unsigned int processes, unsigned int operations);
struct mfuzz_record *mfuzz_recorded(enum mfuzz_arm arm, unsigned int process,
				    unsigned int operation);
/* Has an arm what the plan wants? Huge pages are for large units only. */
bool mfuzz_has(const struct mfuzz_plan *plan, enum mfuzz_arm arm);
/* Returns whether all processes came to the end; @cuts: of the object, ever. */
bool mfuzz_go(const struct mfuzz_plan *plan, enum mfuzz_arm arm, uint64_t *cuts);

#endif
