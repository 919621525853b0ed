// SPDX-License-Identifier: GPL-2.0-only
/*
 * latency.c - prints how long things took, as fields of a JSON object
 */
#include "latency.h"

#include <inttypes.h>

/* Less detail than is kept: eight parts to a power of two. */
#define PARTS_PRINTED 8
#define STEP (LATENCY_PARTS / PARTS_PRINTED)

void latency_print_json(const struct latency *l, FILE *out)
{
	const char *comma = "";

	fprintf(out, "\"latency_ns\":{\"p50\":%" PRIu64 ",\"p99\":%" PRIu64
		",\"p99.9\":%" PRIu64 ",\"max\":%" PRIu64 "},\"histogram\":[",
		latency_quantile(l, 0.5), latency_quantile(l, 0.99),
		latency_quantile(l, 0.999), l->max);
	for (unsigned int i = 0; i < LATENCY_BUCKETS; i += STEP) {
		uint64_t count = 0;

		for (unsigned int part = 0; part < STEP; part++)
			count += l->bucket[i + part];
		if (!count)
			continue;
		fprintf(out, "%s[%" PRIu64 ",%" PRIu64 "]", comma,
			latency_of_bucket(i), count);
		comma = ",";
	}
	fprintf(out, "]");
}
