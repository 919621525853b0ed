/* SPDX-License-Identifier: GPL-2.0-only */
/* sample.h - one measurement of one mode; see sample.c. */
#ifndef SCALE_SAMPLE_H
#define SCALE_SAMPLE_H

#include "options.h"

#include "../common/counters.h"
#include "../common/latency.h"

#include <stdint.h>

struct sample {
	uint64_t ns;
	uint64_t operations;	/* of all tasks */
	uint64_t least;		/* of one task */
	uint64_t most;
	uint64_t wrong;
	uint64_t peer_checks;
	struct latency pieces;	/* of the bystander; empty without one */
	struct counters counters;
};

/* @fds: the file of each task, if the test wants files. */
void sample_take(struct sample *sample, const struct options *options,
		 const int *fds, const struct mode *mode);

#endif /* SCALE_SAMPLE_H */
