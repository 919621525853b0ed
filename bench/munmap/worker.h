/* SPDX-License-Identifier: GPL-2.0-only */
/* worker.h - the threads that do I/O and compute; see worker.c. */
#ifndef MUNMAP_WORKER_H
#define MUNMAP_WORKER_H

#include "data.h"
#include "options.h"

#include "../common/latency.h"

#include <stdatomic.h>
#include <stdint.h>

enum kind {
	KIND_IO, KIND_COMPUTE, KIND_MIXED,
	KIND_OWNER,	/* does I/O, on what peers have read */
	KIND_PEER,
};

/* What a thread has done so far; a cache line pair of its own. */
struct progress {
	_Alignas(128) atomic_ullong io;
	atomic_ullong compute;
	atomic_ullong wrong;	/* pages with other data than the file's */
};

/* Shared by all processes of a sample. */
struct control {
	_Alignas(128) atomic_uint ready;
	_Alignas(128) atomic_bool stop;
	atomic_bool measured;	/* the window is open */
	/* Of the munmap() calls of an owner in the window. */
	struct latency calls;
	struct progress progress[MAX_THREADS];
};

struct job {
	const struct options *options;
	const struct data *data;
	struct control *control;
	unsigned int index;	/* of all threads of the sample */
	int cpu;		/* -1: anywhere */
	int flags;		/* of mmap */
	enum kind kind;
};

void *worker_run(void *job);

#endif /* MUNMAP_WORKER_H */
