/* SPDX-License-Identifier: GPL-2.0-only */
/* distributions.h - random numbers and how keys are chosen; see distributions.c. */
#ifndef YCSB_DISTRIBUTIONS_H
#define YCSB_DISTRIBUTIONS_H

#include <stdint.h>

/* The skew of all zipfian choices of YCSB. */
#define ZIPFIAN_THETA 0.99
/*
 * A scrambled zipfian draws from so many items, whatever the number of records
 * is: the same records stay popular when the database grows.
 */
#define SCRAMBLED_ITEMS UINT64_C(10000000001)

struct random {
	uint64_t state;
};

struct zipfian {
	uint64_t items;
	uint64_t first_items;	/* before any zipfian_grow() */
	double theta;
	double zeta;	/* of all items */
	double alpha;
	double eta;
};

void random_init(struct random *r, uint64_t seed, uint64_t stream);
uint64_t random_next(struct random *r);
double random_unit(struct random *r);
uint64_t random_below(struct random *r, uint64_t limit);

double zeta(uint64_t items, double theta);
void zipfian_init(struct zipfian *z, uint64_t items, double theta);
void zipfian_grow(struct zipfian *z, uint64_t items);
uint64_t zipfian_rank(const struct zipfian *z, double unit);

uint64_t fnv_hash(uint64_t number);

#endif /* YCSB_DISTRIBUTIONS_H */
