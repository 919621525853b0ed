/* SPDX-License-Identifier: GPL-2.0-only */
/* run.h - one phase of the benchmark; see run.c. */
#ifndef YCSB_RUN_H
#define YCSB_RUN_H

#include "check.h"
#include "options.h"
#include "workload.h"

#include "../common/counters.h"
#include "../common/latency.h"

struct result {
	uint64_t ns;
	uint64_t operations;	/* records, in the load phase */
	struct latency latency[OPERATIONS];
	struct latency all;
	struct counters counters;
};

void phase_run(struct result *result, const struct options *options,
	       enum phase phase, void *database, struct ledger *ledger);

#endif /* YCSB_RUN_H */
