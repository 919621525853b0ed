// SPDX-License-Identifier: GPL-2.0
/*
 * Differential fuzzer: the same random operations on memory, without and with
 * a mechanism, must end the same. Threads go through operations that a seed
 * decides, in a process without any, in one with MAP_FPR, in one that is lazy
 * (LATR), in one with sharers, in one with ABIS, and in one with all of them;
 * return values, errors, faults, and what is in memory and in files at the end
 * are compared with those of the first.
 *
 * It does what a correct program does (I3), and that includes faults: accesses
 * to what is mapped without the right for it, or behind the end of its file. An
 * address that is not mapped is touched by nobody: another thread may have got
 * it, and until the debt of its munmap() is paid, a stale translation may be
 * used there or not.
 *
 * --with fpr|latr|sharers|abis|all	only this one of them
 * --seed N		the first seed; without it a random one
 * --replay N		this seed again and again
 * --seconds N		for how long; default 15
 * --threads N		default: two for each CPU
 * --operations N	of each thread, with each seed
 * --first N		operations before this one are left out
 */
#define _GNU_SOURCE
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

#include "env.h"
#include "fpr_fuzz.h"
#include "fuzz_options.h"
#include "group.h"
#include "ktap.h"

#define OPERATIONS	400
#define MOST_OPERATIONS	2000
#define SECONDS		15
#define MOST_SECONDS	(24 * 3600)
#define OPTIONS		\
	"--with --seed --replay --seconds --threads --operations --first"
/* What the last round, a report and the search for a shorter one may take. */
#define SPARE_S		600

static struct fuzz_plan plan = { .operations = OPERATIONS };
static unsigned int run_seconds = SECONDS;
static bool replay;
static enum fuzz_arm only = FUZZ_PLAIN;

static const char *const counters[] = {
	"fpr_skip", "latr_skip", "sharers_flush_local", "abis_none",
	"sharers_flush_remote", "sharers_flush_all", "sharers_fill",
	"sharers_leave", "abis_some", "abis_all", "abis_uncached",
	"abis_inserted", "abis_local", "abis_narrow",
	"fpr_map", "fpr_skip_pages", "latr_skip_pages", "fpr_park",
	"fpr_recycle", "fpr_va_flush", "fpr_drain_tables", "fpr_evict_skip",
	"fpr_tick_flush", "latr_late",
};

enum { COUNTERS = KTAP_COUNT(counters) };

/* What only this arm, and that of all, counts: the first of @counters, in this order. */
enum { DECISIVE = FUZZ_ALL - FUZZ_FPR };

static long counted[FUZZ_ARMS][COUNTERS];

/* One half of the comparison; counts what happens meanwhile. */
static int run_arm(enum fuzz_arm arm)
{
	long before[COUNTERS], after[COUNTERS];
	int status;
	size_t i;

	vmstat_read(counters, before, COUNTERS);
	status = fuzz_half(&plan, arm != FUZZ_PLAIN, arm);
	vmstat_read(counters, after, COUNTERS);
	for (i = 0; i < COUNTERS; i++)
		counted[arm][i] += after[i] - before[i];
	return status;
}

/* Debts that are paid soon, late, or because something is full. */
static void choose_settings(uint64_t seed)
{
	static const long limits[] = { 64, 512, 1 << 20 };
	static const long ages[] = { 20, 200, 60000 };
	static const unsigned long arenas[] = { 4 * MIB, 64 * MIB, 256 * GIB };
	static const long settles[] = { 2, 12, 2000, 60000 };
	static const long held[] = { 64, 4096 };
	struct fpr_settings now;

	fpr_save_settings(&now);
	fpr_set("pool_limit", limits[fuzz_mix(seed, 1) % KTAP_COUNT(limits)]);
	fpr_set("debt_age_ms", ages[fuzz_mix(seed, 2) % KTAP_COUNT(ages)]);
	if (now.settle_ms >= 0) {
		latr_set("settle_ms", settles[fuzz_mix(seed, 4) % KTAP_COUNT(settles)]);
		latr_set("held_limit", held[fuzz_mix(seed, 5) % KTAP_COUNT(held)]);
	}
	/* Debug kernels only. */
	if (now.arena_size >= 0)
		fpr_arena_size(arenas[fuzz_mix(seed, 3) % KTAP_COUNT(arenas)]);
}

static bool is_tried(enum fuzz_arm arm)
{
	return !only || arm == only;
}

/* What was counted says whether each arm was what it is called. */
static void check_counted(void)
{
	enum fuzz_arm arm, mechanism;
	size_t i;

	for (i = 0; i < COUNTERS; i++)
		ktap_note("%s: %ld off, %ld fpr, %ld latr, %ld sharers, %ld abis, %ld all",
			  counters[i], counted[FUZZ_PLAIN][i],
			  counted[FUZZ_FPR][i], counted[FUZZ_LATR][i],
			  counted[FUZZ_SHARERS][i], counted[FUZZ_ABIS][i],
			  counted[FUZZ_ALL][i]);
	for (arm = FUZZ_PLAIN; arm < FUZZ_ARMS; arm++) {
		for (i = 0; i < DECISIVE && arm != FUZZ_ALL; i++) {
			mechanism = FUZZ_FPR + (enum fuzz_arm)i;
			ENSURE(arm == mechanism || !counted[arm][i],
			       "%s has made %ld of %s", fuzz_arm_name(arm),
			       counted[arm][i], counters[i]);
			if (!is_tried(mechanism) || arm != mechanism)
				continue;
			ENSURE(counted[arm][i], "%s did nothing",
			       fuzz_arm_name(arm));
		}
	}
	/* Who is lazy recycles nothing. */
	for (i = FUZZ_LATR - FUZZ_FPR; i < DECISIVE && is_tried(FUZZ_ALL); i++)
		ENSURE(counted[FUZZ_ALL][i], "all has made none of %s",
		       counters[i]);
}

static void same_results(void)
{
	unsigned long rounds = 0, halves = 0, each;
	struct fuzz_difference d;
	double end;

	group_start();
	fuzz_shared_files();
	fuzz_start(plan.threads, plan.operations);
	ktap_note("seed %llu, %u threads, %u operations each",
		  (unsigned long long)plan.seed, plan.threads,
		  plan.operations - plan.first);
	end = seconds() + run_seconds;
	do {
		choose_settings(plan.seed);
		d.status[0] = run_arm(FUZZ_PLAIN);
		for (d.arm = FUZZ_FPR; d.arm < FUZZ_ARMS; d.arm++) {
			if (!is_tried(d.arm))
				continue;
			d.status[1] = run_arm(d.arm);
			halves++;
			fuzz_compare(&plan, &d);
			if (!d.found)
				continue;
			fuzz_report(&plan, &d);
			fuzz_shrink(&plan, &d);
			ktap_fail("after %lu rounds without a difference",
				  rounds);
		}
		rounds++;
		plan.seed += !replay;
	} while (seconds() < end);

	each = (unsigned long)plan.threads * (plan.operations - plan.first);
	ktap_note("%lu rounds, %lu operations, %lu comparisons", rounds,
		  (rounds + halves) * each, halves * (each + plan.threads));
	check_counted();
}

static enum fuzz_arm parse_arm(const char *text)
{
	enum fuzz_arm arm;

	for (arm = FUZZ_FPR; arm < FUZZ_ARMS; arm++)
		if (!strcmp(text, fuzz_arm_name(arm)))
			return arm;
	fuzz_wrong_use("--with is fpr, latr, sharers, abis or all, not '%s'", text);
}

static void read_options(int argc, char **argv)
{
	enum { WITH, SEED, REPLAY, DURATION, THREADS, COUNT, FIRST };
	static const struct option options[] = {
		{ "with", required_argument, NULL, WITH },
		{ "seed", required_argument, NULL, SEED },
		{ "replay", required_argument, NULL, REPLAY },
		{ "seconds", required_argument, NULL, DURATION },
		{ "threads", required_argument, NULL, THREADS },
		{ "operations", required_argument, NULL, COUNT },
		{ "first", required_argument, NULL, FIRST },
		{ NULL, 0, NULL, 0 },
	};
	bool seeded = false;
	int at, found;

	opterr = 0;
	while ((found = getopt_long(argc, argv, ":", options, &at)) >= 0) {
		switch (found) {
		case WITH:
			only = parse_arm(optarg);
			break;
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
		case THREADS:
			plan.threads = fuzz_count("threads", optarg, 1,
						  FUZZ_THREADS);
			break;
		case COUNT:
			plan.operations = fuzz_count("operations", optarg, 1,
						     MOST_OPERATIONS);
			break;
		case FIRST:
			plan.first = fuzz_count("first", optarg, 0,
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
	if (plan.first >= plan.operations)
		fuzz_wrong_use("--first %u is not below --operations %u", plan.first,
			       plan.operations);
	if (!seeded)
		plan.seed = fuzz_any_seed();
	if (!plan.threads)
		plan.threads = 2 * (unsigned int)online_cpus();
	if (plan.threads > FUZZ_THREADS)
		plan.threads = FUZZ_THREADS;
}

int main(int argc, char **argv)
{
	struct ktap_case cases[] = {
		{ "same_results", same_results, 0 },
	};

	read_options(argc, argv);
	/* Here each arm chooses. */
	unsetenv("CEASEFIRE_TEST_MECHANISM");
	cases[0].timeout = run_seconds + SPARE_S;
	return ktap_main(1, argv, cases, KTAP_COUNT(cases));
}
