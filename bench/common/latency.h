/* SPDX-License-Identifier: GPL-2.0-only */
/* latency.h - how long things took: a histogram with a resolution of 3 %. */
#ifndef BENCH_LATENCY_H
#define BENCH_LATENCY_H

#include "json.h"

#include <stdint.h>

/* Powers of two of nanoseconds, each in so many equal parts. */
#define LATENCY_PARTS 32
#define LATENCY_BUCKETS (64 * LATENCY_PARTS)

struct latency {
	uint64_t count;
	uint64_t max;
	uint64_t bucket[LATENCY_BUCKETS];
};

static inline unsigned int latency_bucket(uint64_t ns)
{
	unsigned int log;

	if (ns < LATENCY_PARTS)
		return (unsigned int)ns;
	log = 63 - (unsigned int)__builtin_clzll(ns);
	return (log - 4) * LATENCY_PARTS +
	       (unsigned int)((ns >> (log - 5)) & (LATENCY_PARTS - 1));
}

/* The least time of a bucket. */
static inline uint64_t latency_of_bucket(unsigned int bucket)
{
	unsigned int log = bucket / LATENCY_PARTS + 4;

	if (bucket < LATENCY_PARTS)
		return bucket;
	return (UINT64_C(1) << log) +
	       ((uint64_t)(bucket % LATENCY_PARTS) << (log - 5));
}

static inline void latency_add(struct latency *l, uint64_t ns)
{
	l->bucket[latency_bucket(ns)]++;
	l->count++;
	if (ns > l->max)
		l->max = ns;
}

/* The time that a share of all, 0.999 for instance, did not exceed; 0: none. */
static inline uint64_t latency_quantile(const struct latency *l, double share)
{
	uint64_t rank = (uint64_t)((double)l->count * share), seen = 0;

	for (unsigned int i = 0; i < LATENCY_BUCKETS; i++) {
		seen += l->bucket[i];
		if (seen > rank)
			return latency_of_bucket(i);
	}
	return l->max;
}

static inline void latency_merge(struct latency *to, const struct latency *from)
{
	for (unsigned int i = 0; i < LATENCY_BUCKETS; i++)
		to->bucket[i] += from->bucket[i];
	to->count += from->count;
	if (from->max > to->max)
		to->max = from->max;
}

void latency_json_quantiles(struct json *json, const struct latency *l);

/*
 * Two members: `latency_ns`, quantiles, and `histogram`, a list of [ns, count]:
 * the least time of each bucket that is not empty, eight equal ones to a power of two.
 */
void latency_json(struct json *json, const struct latency *l);

#endif /* BENCH_LATENCY_H */
