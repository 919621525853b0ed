// SPDX-License-Identifier: GPL-2.0-only
/*
 * distributions.c - random numbers, zipfian ranks, the hash of key numbers
 *
 * What: rank i of a zipfian distribution has a probability that falls with
 *       1/(i+1)^theta. Ranks are drawn with the closed formula of Gray et al.,
 *       "Quickly generating billion-record synthetic databases" (SIGMOD 1994):
 *       exact for the first two ranks, an inverted integral for the others.
 *       YCSB draws so, too, so that its deviations from the exact distribution
 *       are the same here.
 * Who:  workload.c, and values.c for the hash.
 */
#include "distributions.h"

#include <math.h>

/* Sums up to here are made term by term. */
#define DIRECT_TERMS 1000u

__extension__ typedef unsigned __int128 wide;

static uint64_t mix(uint64_t x)
{
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
	return x ^ (x >> 31);
}

/* Another @stream is another sequence: each thread has its own. */
void random_init(struct random *r, uint64_t seed, uint64_t stream)
{
	r->state = mix(mix(seed + 1) ^ (stream * 0xd1342543de82ef95ULL));
}

/* splitmix64 */
uint64_t random_next(struct random *r)
{
	r->state += 0x9e3779b97f4a7c15ULL;
	return mix(r->state);
}

/* From 0 to less than 1. */
double random_unit(struct random *r)
{
	return (double)(random_next(r) >> 11) * 0x1p-53;
}

/* From 0 to less than @limit, which is not 0; the bias is below 2^-64 * @limit. */
uint64_t random_below(struct random *r, uint64_t limit)
{
	return (uint64_t)(((wide)random_next(r) * limit) >> 64);
}

/*
 * The sum of 1/i^theta for i from 1 to @items. The tail is the Euler-Maclaurin
 * formula up to the first derivative; the next term is below 1e-14.
 */
double zeta(uint64_t items, double theta)
{
	uint64_t direct = items < DIRECT_TERMS ? items : DIRECT_TERMS;
	double a = (double)direct, b = (double)items;
	double sum = 0;

	/* The small ones first. */
	for (uint64_t i = direct; i; i--)
		sum += pow((double)i, -theta);
	if (items == direct)
		return sum;
	sum += (pow(b, 1 - theta) - pow(a, 1 - theta)) / (1 - theta);
	sum += (pow(b, -theta) - pow(a, -theta)) / 2;
	sum += theta * (pow(a, -theta - 1) - pow(b, -theta - 1)) / 12;
	return sum;
}

static void zipfian_set(struct zipfian *z)
{
	double two = 1 + pow(0.5, z->theta);

	z->eta = (1 - pow(2 / (double)z->first_items, 1 - z->theta)) /
		 (1 - two / z->zeta);
}

void zipfian_init(struct zipfian *z, uint64_t items, double theta)
{
	z->items = z->first_items = items;
	z->theta = theta;
	z->alpha = 1 / (1 - theta);
	z->zeta = zeta(items, theta);
	zipfian_set(z);
}

/*
 * To @items; never to fewer. YCSB leaves the first number of items in eta, so
 * that ranks beyond the first two are a little too small afterwards. Results
 * are to be comparable with its own: so does this.
 */
void zipfian_grow(struct zipfian *z, uint64_t items)
{
	if (items <= z->items)
		return;
	while (z->items < items)
		z->zeta += pow((double)++z->items, -z->theta);
	zipfian_set(z);
}

/* The rank that belongs to @unit, from 0 to less than 1; 0 is the most popular. */
uint64_t zipfian_rank(const struct zipfian *z, double unit)
{
	double scaled = unit * z->zeta;
	uint64_t rank;

	if (scaled < 1)
		return 0;
	if (scaled < 1 + pow(0.5, z->theta))
		return 1;
	rank = (uint64_t)((double)z->items *
			  pow(z->eta * unit - z->eta + 1, z->alpha));
	/* Rounded up from the very last unit. */
	return rank < z->items ? rank : z->items - 1;
}

/*
 * FNV-1a of the eight bytes of @number, least significant first, without the
 * sign that it has as a signed number: what YCSB calls the hash of a key.
 */
uint64_t fnv_hash(uint64_t number)
{
	uint64_t hash = 0xcbf29ce484222325ULL;

	for (unsigned int i = 0; i < 8; i++) {
		hash ^= number >> (8 * i) & 0xff;
		hash *= 0x100000001b3ULL;
	}
	return hash >> 63 ? -hash : hash;
}
