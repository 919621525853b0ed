/* SPDX-License-Identifier: GPL-2.0-only */
/* options.h - what ycsb-bench is asked to do; see options.c. */
#ifndef YCSB_OPTIONS_H
#define YCSB_OPTIONS_H

#include "engine.h"
#include "pool.h"
#include "workload.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MAX_PHASES 64
#define MAX_THREADS 512

struct options {
	const struct engine_ops *engine;
	enum phase phases[MAX_PHASES];
	unsigned int phase_count;
	const char *folder;		/* --dir */
	uint64_t records;		/* of the load phase */
	uint64_t operations;		/* of a phase, all threads together */
	double seconds;			/* instead, or 0 */
	unsigned int threads;
	unsigned int batch;		/* records of a write while loading */
	size_t value_size;
	uint64_t seed;
	enum distribution distribution;	/* DISTRIBUTIONS: as the workload says */
	bool sync;
	bool only_loaded;		/* --only-loaded: with its first versions */
	bool mapped;			/* --mmap */
	uint64_t map_size;		/* bytes; LMDB, 0: by the records, or as it is */
	bool no_read_ahead;		/* LMDB */
	uint64_t cache;			/* bytes; LevelDB, pool; 0: its own default */
	enum pool_way evict;		/* pool */
	unsigned int open_files;	/* LevelDB, 0: its own default */
	uint64_t file_size;		/* bytes; LevelDB, 0: its own default */
	uint64_t print;			/* --print-operations, 0: run */
	bool json;
};

void options_parse(struct options *options, int argc, char **argv);

#endif /* YCSB_OPTIONS_H */
