/* SPDX-License-Identifier: GPL-2.0-only */
/* workload.h - what the phases of YCSB ask of a database; see workload.c. */
#ifndef YCSB_WORKLOAD_H
#define YCSB_WORKLOAD_H

#include "distributions.h"

#include <stdatomic.h>

enum operation {
	OP_READ,
	OP_UPDATE,
	OP_INSERT,
	OP_SCAN,
	OP_READ_MODIFY_WRITE,
	OPERATIONS,
};

extern const char *const operation_names[OPERATIONS];

enum distribution {
	DIST_ZIPFIAN,	/* scrambled: popular records are anywhere */
	DIST_LATEST,	/* the newest records are the most popular */
	DIST_UNIFORM,
	DISTRIBUTIONS,
};

extern const char *const distribution_names[DISTRIBUTIONS];

enum phase { LOAD, WORKLOAD_A, WORKLOAD_B, WORKLOAD_C, WORKLOAD_D, WORKLOAD_E,
	     WORKLOAD_F, PHASES };

struct workload {
	const char *name;
	unsigned int percent[OPERATIONS];
	enum distribution distribution;
	unsigned int longest_scan;
};

extern const struct workload workloads[PHASES];

struct request {
	enum operation operation;
	uint64_t key;		/* not of an insert */
	unsigned int length;	/* of a scan */
};

/* Of one thread. */
struct chooser {
	const struct workload *workload;
	enum distribution distribution;
	const _Atomic uint64_t *last;	/* the newest key without gaps below it */
	uint64_t space;			/* a zipfian chooses below this */
	struct zipfian zipfian;
	struct random random;
};

/* What each thread of a phase begins with. */
struct chooser_setup {
	const struct workload *workload;
	enum distribution distribution;
	const _Atomic uint64_t *last;
	uint64_t operations;	/* of all threads; an estimate will do */
	uint64_t seed;
	uint64_t stream;	/* of random numbers, another one for each thread */
};

/* Another one for each thread of each phase. */
static inline uint64_t chooser_stream(const struct workload *workload,
				      unsigned int thread)
{
	return (uint64_t)(workload - workloads) << 32 | thread;
}

void chooser_init(struct chooser *c, const struct chooser_setup *setup);
void chooser_next(struct chooser *c, struct request *request);

#endif /* YCSB_WORKLOAD_H */
