/* SPDX-License-Identifier: GPL-2.0-only */
/* counters.h - the kernel's counters of shootdowns and of FPR; see counters.c. */
#ifndef BENCH_COUNTERS_H
#define BENCH_COUNTERS_H

#include "json.h"

#include <stdint.h>

#define MAX_COUNTERS 160
#define COUNTER_NAME 48

struct counters {
	unsigned int count;
	struct counter {
		char name[COUNTER_NAME];
		uint64_t value;
	} list[MAX_COUNTERS];
};

void counters_read(struct counters *counters);
void counters_subtract(struct counters *counters, const struct counters *before);
int64_t counters_get(const struct counters *counters, const char *name);
void counters_json(struct json *json, const struct counters *counters);

#endif /* BENCH_COUNTERS_H */
