/* SPDX-License-Identifier: GPL-2.0-only */
/* sample.h - one measurement of one mode; see sample.c. */
#ifndef MUNMAP_SAMPLE_H
#define MUNMAP_SAMPLE_H

#include "data.h"
#include "options.h"

#include "../common/counters.h"
#include "../common/latency.h"

#include <stdint.h>

/* What one kind of operation came to, over all threads that do it. */
struct tally {
	unsigned int threads;
	uint64_t operations;
	uint64_t least;		/* of one thread */
	uint64_t most;
};

struct sample {
	uint64_t ns;
	struct tally io;
	struct tally compute;
	uint64_t wrong;
	struct latency calls;		/* of munmap, case 6 only */
	struct counters counters;	/* what they grew by */
};

void sample_take(struct sample *sample, const struct options *options,
		 const struct data *data, const struct run_mode *mode);

#endif /* MUNMAP_SAMPLE_H */
