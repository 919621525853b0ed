// SPDX-License-Identifier: GPL-2.0-only
/*
 * workload.c - the six core workloads of YCSB, operation by operation
 *
 * What: proportions of operations, how keys are chosen, lengths of scans.
 * Who:  run.c, and main.c for --print-operations, which a test compares with
 *       what YCSB itself does (reference/).
 */
#include "workload.h"

const char *const operation_names[OPERATIONS] = {
	[OP_READ] = "read",
	[OP_UPDATE] = "update",
	[OP_INSERT] = "insert",
	[OP_SCAN] = "scan",
	[OP_READ_MODIFY_WRITE] = "read-modify-write",
};

const char *const distribution_names[DISTRIBUTIONS] = {
	[DIST_ZIPFIAN] = "zipfian",
	[DIST_LATEST] = "latest",
	[DIST_UNIFORM] = "uniform",
};

const struct workload workloads[PHASES] = {
	[LOAD] = { "load", { [OP_INSERT] = 100 }, DIST_UNIFORM, 0 },
	[WORKLOAD_A] = { "a", { [OP_READ] = 50, [OP_UPDATE] = 50 },
			 DIST_ZIPFIAN, 0 },
	[WORKLOAD_B] = { "b", { [OP_READ] = 95, [OP_UPDATE] = 5 },
			 DIST_ZIPFIAN, 0 },
	[WORKLOAD_C] = { "c", { [OP_READ] = 100 }, DIST_ZIPFIAN, 0 },
	[WORKLOAD_D] = { "d", { [OP_READ] = 95, [OP_INSERT] = 5 },
			 DIST_LATEST, 0 },
	[WORKLOAD_E] = { "e", { [OP_SCAN] = 95, [OP_INSERT] = 5 },
			 DIST_ZIPFIAN, 100 },
	[WORKLOAD_F] = { "f", { [OP_READ] = 50, [OP_READ_MODIFY_WRITE] = 50 },
			 DIST_ZIPFIAN, 0 },
};

void chooser_init(struct chooser *c, const struct chooser_setup *setup)
{
	uint64_t last = atomic_load(setup->last);

	*c = (struct chooser){
		.workload = setup->workload,
		.distribution = setup->distribution,
		.last = setup->last,
		/*
		 * Twice the inserts to be expected: a number that does not
		 * change under way, so that a key keeps its popularity.
		 */
		.space = last + 2 + setup->operations *
			 setup->workload->percent[OP_INSERT] / 100 * 2,
	};
	random_init(&c->random, setup->seed, setup->stream);
	if (c->distribution == DIST_ZIPFIAN)
		zipfian_init(&c->zipfian, SCRAMBLED_ITEMS, ZIPFIAN_THETA);
	else if (c->distribution == DIST_LATEST)
		zipfian_init(&c->zipfian, last, ZIPFIAN_THETA);
}

static uint64_t next_key(struct chooser *c)
{
	uint64_t last = atomic_load(c->last), key;

	switch (c->distribution) {
	case DIST_ZIPFIAN:
		/* Keys that are not there yet are drawn again. */
		do {
			double unit = random_unit(&c->random);

			key = fnv_hash(zipfian_rank(&c->zipfian, unit)) % c->space;
		} while (key > last);
		return key;
	case DIST_LATEST:
		zipfian_grow(&c->zipfian, last);
		return last - zipfian_rank(&c->zipfian, random_unit(&c->random));
	default:
		return random_below(&c->random, last + 1);
	}
}

void chooser_next(struct chooser *c, struct request *request)
{
	unsigned int draw = (unsigned int)random_below(&c->random, 100);
	enum operation operation = 0;

	while (draw >= c->workload->percent[operation])
		draw -= c->workload->percent[operation++];
	*request = (struct request){ .operation = operation };
	if (operation != OP_INSERT)
		request->key = next_key(c);
	if (operation == OP_SCAN)
		request->length = 1 + (unsigned int)
			random_below(&c->random, c->workload->longest_scan);
}
