// SPDX-License-Identifier: GPL-2.0-only
/*
 * latency.c - how long things took, as members of a JSON object
 */
#include "latency.h"

/* Less detail than is kept: eight parts to a power of two. */
#define PARTS_PRINTED 8
#define STEP (LATENCY_PARTS / PARTS_PRINTED)

void latency_json_quantiles(struct json *json, const struct latency *l)
{
	json_unsigned(json, "p50", latency_quantile(l, 0.5));
	json_unsigned(json, "p99", latency_quantile(l, 0.99));
	json_unsigned(json, "p99.9", latency_quantile(l, 0.999));
	json_unsigned(json, "max", l->max);
}

void latency_json(struct json *json, const struct latency *l)
{
	json_open_object(json, "latency_ns");
	latency_json_quantiles(json, l);
	json_close_object(json);
	json_open_list(json, "histogram");
	for (unsigned int i = 0; i < LATENCY_BUCKETS; i += STEP) {
		uint64_t count = 0;

		for (unsigned int part = 0; part < STEP; part++)
			count += l->bucket[i + part];
		if (count)
			json_pair(json, latency_of_bucket(i), count);
	}
	json_close_list(json);
}
