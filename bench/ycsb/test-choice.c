// SPDX-License-Identifier: GPL-2.0-only
/*
 * test-choice.c - the parts of ycsb-bench that need no database (TAP)
 *
 * What: sums, ranks, hashes, values with every bit flipped, the order in which
 *       inserts become visible, quantiles. Built with sanitizers. What is drawn by
 *       chance is compared with YCSB by test-distributions.
 * Who:  meson.
 */
#include "check.h"
#include "distributions.h"
#include "values.h"
#include "workload.h"

#include "../common/latency.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static unsigned int count;
static bool failed;

static void report(bool right, const char *name)
{
	printf("%s %u - %s\n", right ? "ok" : "not ok", ++count, name);
	failed = failed || !right;
}

static void test_zeta(void)
{
	static const uint64_t items[] = { 1, 2, 999, 1000, 1001, 50000, 3000000 };
	bool right = true;

	for (size_t i = 0; i < sizeof(items) / sizeof(*items); i++) {
		double sum = 0;

		for (uint64_t j = items[i]; j; j--)
			sum += 1 / pow((double)j, ZIPFIAN_THETA);
		if (fabs(zeta(items[i], ZIPFIAN_THETA) / sum - 1) > 1e-12) {
			printf("# %" PRIu64 ": %.17g, not %.17g\n", items[i],
			       zeta(items[i], ZIPFIAN_THETA), sum);
			right = false;
		}
	}
	report(right, "zeta() is the sum");
	/* What YCSB has as a constant. */
	report(fabs(zeta(SCRAMBLED_ITEMS, ZIPFIAN_THETA) - 26.46902820178302) <
	       1e-8, "zeta() of the items of a scrambled zipfian");
}

static void test_ranks(void)
{
	struct zipfian z, grown;
	uint64_t previous = 0;
	bool rising = true;

	zipfian_init(&z, 1000, ZIPFIAN_THETA);
	for (unsigned int i = 0; i < 100000; i++) {
		uint64_t rank = zipfian_rank(&z, i / 100000.0);

		rising = rising && rank >= previous;
		previous = rank;
	}
	report(rising, "ranks rise");
	report(zipfian_rank(&z, 0) == 0 &&
	       zipfian_rank(&z, 0.999999 / z.zeta) == 0 &&
	       zipfian_rank(&z, 1.000001 / z.zeta) == 1, "the first two ranks");
	report(zipfian_rank(&z, 0x1.fffffffffffffp-1) == 999, "the last rank");
	zipfian_init(&grown, 10, ZIPFIAN_THETA);
	zipfian_grow(&grown, 1000);
	zipfian_grow(&grown, 500);
	report(grown.items == 1000 && fabs(grown.zeta / z.zeta - 1) < 1e-12,
	       "a distribution grows and does not shrink");
	for (uint64_t items = 1; items < 5; items++) {
		bool below = true;

		zipfian_init(&z, items, ZIPFIAN_THETA);
		for (unsigned int i = 0; i < 1000; i++)
			below = below && zipfian_rank(&z, i / 1000.0) < items;
		report(below, "few items");
	}
}

static void test_random(void)
{
	struct random r, other;
	unsigned int seen[10] = { 0 }, same = 0;
	bool right = true;

	random_init(&r, 1, 0);
	random_init(&other, 1, 1);
	for (unsigned int i = 0; i < 100000; i++) {
		double unit = random_unit(&r);

		right = right && unit >= 0 && unit < 1;
		same += random_next(&r) == random_next(&other);
		seen[random_below(&r, 10)]++;
	}
	for (unsigned int i = 0; i < 10; i++)
		right = right && seen[i] > 9400 && seen[i] < 10600;
	report(right && !same, "random numbers");
}

static void test_keys(void)
{
	char name[KEY_SIZE];

	report(key_name(name, 0) == 23 && !strcmp(name, "user6284781860667377211") &&
	       fnv_hash(0) == 6284781860667377211, "the name of key 0");
}

static void test_values(void)
{
	static const size_t sizes[] = { LEAST_VALUE_SIZE, 25, 31, 32, 100, 1000 };
	bool right = true, noticed = true;
	unsigned char value[1000];
	uint64_t number;
	uint32_t version;

	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		size_t size = sizes[i];

		value_fill(value, size, 12345, 67);
		right = right && value_read(value, size, &number, &version) &&
			number == 12345 && version == 67;
		for (size_t bit = 0; bit < size * 8; bit++) {
			value[bit / 8] ^= (unsigned char)(1 << bit % 8);
			noticed = noticed &&
				  !value_read(value, size, &number, &version);
			value[bit / 8] ^= (unsigned char)(1 << bit % 8);
		}
	}
	report(right, "values are read as they were written");
	report(noticed, "each flipped bit is noticed");
	report(!value_read(value, LEAST_VALUE_SIZE - 1, &number, &version),
	       "a value that is too short");
}

static void test_ledger(struct ledger *l)
{
	ledger_init(l, 100, false);
	report(ledger_records(l) == 0 && ledger_claim(l, 3) == 0 &&
	       ledger_claim(l, 1) == 3, "numbers of new records");
	ledger_inserted(l, 1);
	ledger_inserted(l, 3);
	report(ledger_records(l) == 0, "none is seen while the first is missing");
	ledger_inserted(l, 0);
	report(ledger_records(l) == 2, "up to the next gap");
	ledger_inserted(l, 2);
	report(ledger_records(l) == 4, "all");
	ledger_unlock(l, 2, ledger_lock(l, 2) + 1);
	report(ledger_lock(l, 2) == 2, "a version");
	ledger_unlock(l, 2, 2);
}

/* A store of one record. */
static struct bytes stored_key, stored_value;

static bool stub_get(void *session, struct bytes key, visit_fn *visit,
		     void *context)
{
	(void)session;
	if (key.size != stored_key.size ||
	    memcmp(key.data, stored_key.data, key.size) != 0)
		return false;
	visit(context, key, stored_value);
	return true;
}

static void stub_scan(void *session, struct bytes from, size_t limit,
		      visit_fn *visit, void *context)
{
	(void)session;
	(void)from;
	(void)limit;
	if (stored_key.size)
		visit(context, stored_key, stored_value);
}

/* Did exactly this record and these versions pass? */
static bool passes(struct ledger *l, uint32_t version, bool locked)
{
	static const struct engine_ops stub = { .get = stub_get };
	static char name[KEY_SIZE], value[100];
	uint64_t before = atomic_load(&l->wrong);

	stored_key = (struct bytes){ name, key_name(name, 2) };
	stored_value = (struct bytes){ value, sizeof(value) };
	value_fill(value, sizeof(value), 2, version);
	check_get(l, &stub, NULL, 2, locked);
	return atomic_load(&l->wrong) == before;
}

/* @l as test_ledger() has left it: record 2 has version 2. */
static void test_checks(struct ledger *l)
{
	static const struct engine_ops stub = { .get = stub_get,
						.scan = stub_scan };
	char value[100], name[KEY_SIZE];
	uint64_t before;

	report(passes(l, 2, false) && passes(l, 3, false),
	       "the version of the ledger, or one that is being written");
	report(!passes(l, 1, false), "a version that is too old");
	report(!passes(l, 4, false), "a version that nobody has written");
	report(passes(l, 2, true) && !passes(l, 3, true), "the version under the lock");

	before = atomic_load(&l->wrong);
	check_get(l, &stub, NULL, 1, false);
	report(atomic_load(&l->wrong) == before + 1, "a record that is not found");

	stored_key = (struct bytes){ name, key_name(name, 1) };
	stored_value = (struct bytes){ value, sizeof(value) };
	value_fill(value, sizeof(value), 2, 1);
	before = atomic_load(&l->wrong);
	check_get(l, &stub, NULL, 1, false);
	report(atomic_load(&l->wrong) == before + 1, "the record of another key");

	value_fill(value, sizeof(value), 1, 1);
	before = atomic_load(&l->wrong);
	check_scan(l, &stub, NULL, 1, 1);
	report(atomic_load(&l->wrong) == before, "a scan");
	check_scan(l, &stub, NULL, 0, 1);
	report(atomic_load(&l->wrong) == before + 1,
	       "a scan that begins with another record");
	check_rows(l, &stub, NULL, false);
	report(atomic_load(&l->wrong) == before + 2, "too few records");
}

static void test_latency(void)
{
	struct latency *l = calloc(2, sizeof(*l));
	bool right = true;

	for (uint64_t ns = 1; ns < UINT64_C(1) << 62; ns += ns / 7 + 1) {
		uint64_t least = latency_of_bucket(latency_bucket(ns));

		right = right && least <= ns && ns - least <= ns / 32;
	}
	report(right, "a bucket is right to 3 %");
	for (uint64_t i = 0; i < 1000; i++)
		latency_add(&l[i % 2], i < 990 ? 20 : 30);
	latency_merge(&l[0], &l[1]);
	report(l->count == 1000 && l->max == 30 &&
	       latency_quantile(l, 0.5) == 20 && latency_quantile(l, 0.98) == 20 &&
	       latency_quantile(l, 0.995) == 30, "quantiles");
	free(l);
}

int main(void)
{
	static struct ledger ledger;

	test_zeta();
	test_ranks();
	test_random();
	test_keys();
	test_values();
	test_ledger(&ledger);
	test_checks(&ledger);
	test_latency();
	printf("1..%u\n", count);
	return failed;
}
