// SPDX-License-Identifier: GPL-2.0
/*
 * Differential fuzzer of morsels: the same random operations of several processes on a
 * memfd, on a morsel, and on morsels that give up memory lazily or have huge pages, must
 * end the same. Return values, errors, faults and what is read are compared with those of
 * the memfd.
 *
 * --seed N		the first seed; without it a random one
 * --replay N		this seed again and again
 * --seconds N		for how long; default 15
 * --processes N	default: one more than there are CPUs
 * --operations N	of each process, with each seed
 */
#define _GNU_SOURCE
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

#include "env.h"
#include "fuzz_options.h"
#include "ktap.h"
#include "morsel_fuzz.h"

#define OPERATIONS	400
#define MOST_OPERATIONS	5000
#define SECONDS		15
#define MOST_SECONDS	(24 * 3600)
#define OPTIONS		"--seed --replay --seconds --processes --operations"
/* What the last seed may take. */
#define SPARE_S		600
/* Operations before the one that differs. */
#define CONTEXT		10

static struct mfuzz_plan plan = { .operations = OPERATIONS };
static unsigned int run_seconds = SECONDS;
static bool replay;

static void print_operation(unsigned int number, const struct mfuzz_record *r)
{
	ktap_note("  %u: %s, offset %#llx, length %#llx", number,
		  mfuzz_op_name(r->op), (unsigned long long)r->offset,
		  (unsigned long long)r->length);
}

static void print_result(enum mfuzz_arm arm, const struct mfuzz_record *r)
{
	ktap_note("  %s: %s, signal %d code %d at %#llx, result %016llx",
		  mfuzz_arm_name(arm),
		  r->error ? strerrorname_np(r->error) ?: "a status" : "no error",
		  r->fault.signal, r->fault.code,
		  (unsigned long long)r->fault.at,
		  (unsigned long long)r->value);
}

static void report(enum mfuzz_arm arm, unsigned int process, unsigned int at)
{
	unsigned int i = at > CONTEXT ? at - CONTEXT : 0;

	ktap_note("a %s is not as a memfd: seed %llu, process %u of %u, operation %u of %u",
		  mfuzz_arm_name(arm), (unsigned long long)plan.seed, process,
		  plan.processes, at, plan.operations);
	for (; i <= at; i++)
		print_operation(i, mfuzz_recorded(arm, process, i));
	print_result(MFUZZ_MEMFD, mfuzz_recorded(MFUZZ_MEMFD, process, at));
	print_result(arm, mfuzz_recorded(arm, process, at));
}

/* True if all records are those of the memfd. */
static bool is_same(enum mfuzz_arm arm)
{
	unsigned int process, at;

	for (at = 0; at <= plan.operations; at++)
		for (process = 0; process < plan.processes; process++)
			if (memcmp(mfuzz_recorded(MFUZZ_MEMFD, process, at),
				   mfuzz_recorded(arm, process, at),
				   sizeof(struct mfuzz_record))) {
				report(arm, process, at);
				return false;
			}
	return true;
}

static void same_results(void)
{
	static const char *const counters[] = {
		"morsel_lazy_pages", "morsel_lazy_flush_taken",
	};
	uint64_t cuts, all_cuts = 0;
	unsigned long rounds = 0, runs = 0;
	long lazy[2], was[2];
	enum mfuzz_arm arm;
	double end;

	mfuzz_start(plan.processes, plan.operations);
	ktap_note("seed %llu, %u processes, %u operations each",
		  (unsigned long long)plan.seed, plan.processes,
		  plan.operations);
	vmstat_read(counters, was, 2);
	end = seconds() + run_seconds;
	do {
		for (arm = 0; arm < MFUZZ_ARMS; arm++) {
			if (!mfuzz_has(&plan, arm))
				continue;
			ENSURE(mfuzz_go(&plan, arm, &cuts),
			       "after %lu rounds without a difference", rounds);
			all_cuts += cuts;
			runs++;
			ENSURE(is_same(arm),
			       "after %lu rounds without a difference", rounds);
		}
		rounds++;
		plan.seed += !replay;
	} while (seconds() < end);
	vmstat_read(counters, lazy, 2);
	ktap_note("%lu rounds, %lu operations, %llu entries cut, %ld pages given up",
		  rounds, runs * plan.processes * plan.operations,
		  (unsigned long long)all_cuts, lazy[0] - was[0]);
	/* With fewer it is by chance. */
	if (plan.operations < OPERATIONS)
		return;
	ENSURE(all_cuts, "no morsel was depopulated");
	ENSURE(lazy[0] > was[0], "nothing was given up lazily");
}

static void read_options(int argc, char **argv)
{
	enum { SEED, REPLAY, DURATION, PROCESSES, COUNT };
	static const struct option options[] = {
		{ "seed", required_argument, NULL, SEED },
		{ "replay", required_argument, NULL, REPLAY },
		{ "seconds", required_argument, NULL, DURATION },
		{ "processes", required_argument, NULL, PROCESSES },
		{ "operations", required_argument, NULL, COUNT },
		{ NULL, 0, NULL, 0 },
	};
	bool seeded = false;
	int at, found;

	opterr = 0;
	while ((found = getopt_long(argc, argv, ":", options, &at)) >= 0) {
		switch (found) {
		case SEED:
		case REPLAY:
			plan.seed = fuzz_number(options[at].name, optarg, 0,
						UINT64_MAX);
			replay = found == REPLAY;
			seeded = true;
			break;
		case DURATION:
			run_seconds = fuzz_count("seconds", optarg, 0,
						 MOST_SECONDS);
			break;
		case PROCESSES:
			plan.processes = fuzz_count("processes", optarg, 1,
						    MFUZZ_PROCESSES);
			break;
		case COUNT:
			plan.operations = fuzz_count("operations", optarg, 1,
						     MOST_OPERATIONS);
			break;
		case ':':
			fuzz_wrong_use("%s needs a value", argv[optind - 1]);
		default:
			fuzz_wrong_use("no option '%s': there are " OPTIONS,
				       argv[optind - 1]);
		}
	}
	if (optind < argc)
		fuzz_wrong_use("no argument '%s': options only", argv[optind]);
	if (!seeded)
		plan.seed = fuzz_any_seed();
	if (!plan.processes)
		plan.processes = 1 + (unsigned int)online_cpus();
	if (plan.processes > MFUZZ_PROCESSES)
		plan.processes = MFUZZ_PROCESSES;
}

int main(int argc, char **argv)
{
	struct ktap_case cases[] = {
		{ "same_results", same_results, 0 },
	};

	read_options(argc, argv);
	cases[0].timeout = run_seconds + SPARE_S;
	return ktap_main(1, argv, cases, KTAP_COUNT(cases));
}
