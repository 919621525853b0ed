// SPDX-License-Identifier: GPL-2.0-only
/*
 * own-tables-bench.c - what page tables of a CPU's own cost the CPU itself
 *
 * What: paths that are longer in a process with upper page tables for each CPU:
 *       the first touch of a region, a page fault in a known one, madvise() of two
 *       pages, a switch to the process and away from it; and one that must not be,
 *       a cycle of a process with one thread. Nobody else runs the process, so that
 *       no flush interrupts anybody in either mode.
 *       In a guest under `qemu -icount shift=0` with one CPU a nanosecond is an
 *       instruction; elsewhere the figures are times.
 * Who:  `ceasefire bench sharers-cost`, see ceasefire-bench(1) and
 *       cli/ceasefire/bench/cost/own_tables.py.
 *
 * Each sample is a process of its own: one that has been told to stop having such
 * tables cannot have them again. Only what is named is timed, what prepares it is not.
 */
#include "../common/counters.h"
#include "../common/environment.h"
#include "../common/json.h"
#include "../common/modes.h"
#include "../common/options.h"
#include "../common/util.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE		4096UL
/* What one table of PTEs covers, and what one of PMDs does. */
#define REGION		(2UL << 20)
#define BLOCK		(1UL << 30)
#define BLOCKS		8UL
/* Few of a block: after 64 the CPU would share its table of PMDs. */
#define REGIONS		32UL
#define KNOWN_PAGES	64UL
#define KNOWN_ROUNDS	50UL
#define CALLS		1000UL

/* What a sample has to say. */
struct sample {
	unsigned long ops;
	uint64_t ns;
};

/* What two readings of the clock take. */
static uint64_t clock_ns;

static char *map(unsigned long length)
{
	char *p = mmap(NULL, length, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED)
		die_errno("mmap");
	return p;
}

static char *align(char *p, unsigned long to)
{
	return (char *)(((unsigned long)p + to - 1) & ~(to - 1));
}

static void touch(char *p)
{
	*(volatile char *)p = 1;
}

static void *sleep_on(void *argument)
{
	(void)argument;
	for (;;)
		pause();
	return NULL;
}

/* Makes of the process one of several threads; the other one is never seen again. */
static void make_thread(void)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, sleep_on, NULL))
		die(EXIT_FAILED, "no thread");
	sleep_ns(5000000);
}

static struct sample touch_blocks(char *area)
{
	uint64_t start = now_ns();

	for (unsigned long block = 0; block < BLOCKS; block++)
		for (unsigned long n = 0; n < REGIONS; n++)
			touch(area + block * BLOCK + n * REGION);
	return (struct sample){ BLOCKS * REGIONS, now_ns() - start - clock_ns };
}

static struct sample first_touch(void)
{
	char *area = align(map((BLOCKS + 1) * BLOCK), BLOCK);

	make_thread();
	return touch_blocks(area);
}

/* The pages are there, the tables of this CPU do not lead to them: nothing but the fill. */
static struct sample fill(void)
{
	char *area = align(map((BLOCKS + 1) * BLOCK), BLOCK);

	touch_blocks(area);
	make_thread();
	return touch_blocks(area);
}

static struct sample known_region(void)
{
	char *area = align(map(2 * REGION), REGION);
	struct sample sample = { KNOWN_ROUNDS * KNOWN_PAGES, 0 };

	make_thread();
	for (unsigned long round = 0; round <= KNOWN_ROUNDS; round++) {
		uint64_t start = now_ns(), end;

		for (unsigned long n = 0; n < KNOWN_PAGES; n++)
			touch(area + n * PAGE);
		end = now_ns();
		/* In the first one the region is new. */
		if (round)
			sample.ns += end - start - clock_ns;
		if (madvise(area, KNOWN_PAGES * PAGE, MADV_DONTNEED))
			die_errno("madvise");
	}
	return sample;
}

static struct sample advise(void)
{
	char *area = align(map(2 * REGION), REGION);
	struct sample sample = { CALLS, 0 };

	make_thread();
	for (unsigned long n = 0; n < CALLS; n++) {
		uint64_t start;

		touch(area);
		touch(area + PAGE);
		start = now_ns();
		if (madvise(area, 2 * PAGE, MADV_DONTNEED))
			die_errno("madvise");
		sample.ns += now_ns() - start - clock_ns;
	}
	return sample;
}

static void pass(int from, int to)
{
	char c;

	if (read(from, &c, 1) != 1)
		die_errno("read from a pipe");
	if (write(to, &c, 1) != 1)
		die_errno("write to a pipe");
}

/* To a process without threads, and back. */
static struct sample switch_process(void)
{
	int there[2], back[2];
	uint64_t start;
	pid_t pid;

	if (pipe(there) || pipe(back))
		die_errno("pipe");
	pid = fork();
	if (pid < 0)
		die_errno("fork");
	if (!pid) {
		for (unsigned long n = 0; n < 2 * CALLS; n++)
			pass(there[0], back[1]);
		_exit(EXIT_OK);
	}
	make_thread();
	if (write(there[1], "x", 1) != 1)
		die_errno("write to a pipe");
	for (unsigned long n = 0; n < CALLS; n++)
		pass(back[0], there[1]);
	start = now_ns();
	for (unsigned long n = 1; n < CALLS; n++)
		pass(back[0], there[1]);
	return (struct sample){ 2 * (CALLS - 1), now_ns() - start - clock_ns };
}

static struct sample one_thread(void)
{
	/* A neighbour keeps the page tables. */
	char *area = align(map(2 * REGION), REGION);
	uint64_t start;

	touch(area);
	start = now_ns();
	for (unsigned long n = 0; n < CALLS; n++) {
		char *p = mmap(area + PAGE, PAGE, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);

		if (p == MAP_FAILED)
			die_errno("mmap");
		touch(p);
		if (munmap(p, PAGE))
			die_errno("munmap");
	}
	return (struct sample){ CALLS, now_ns() - start - clock_ns };
}

static const struct loop {
	const char *name;
	struct sample (*run)(void);
} loops[] = {
	{ "first-touch", first_touch },
	{ "fill", fill },
	{ "known-region", known_region },
	{ "madvise-2", advise },
	{ "switch", switch_process },
	{ "one-thread", one_thread },
};

static void print(const struct loop *loop, const struct mode *mode,
		  unsigned int repeat, struct sample sample,
		  const struct counters *counters)
{
	struct json json;

	json_begin(&json, stdout, "cycle");
	json_string(&json, "case", loop->name);
	json_string(&json, "variant", mode->name);
	json_unsigned(&json, "repeat", repeat);
	json_unsigned(&json, "ops", sample.ops);
	json_unsigned(&json, "ns", sample.ns);
	json_real(&json, "ns_per_op", (double)sample.ns / (double)sample.ops, 3);
	counters_json(&json, counters);
	json_end(&json);
}

static void measure(const struct loop *loop, const struct mode *mode,
		    unsigned int repeat)
{
	static struct counters before, after;
	struct sample sample;
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid < 0)
		die_errno("fork");
	if (pid) {
		if (waitpid(pid, &status, 0) != pid)
			die_errno("waitpid");
		if (!WIFEXITED(status) || WEXITSTATUS(status))
			die(EXIT_FAILED, "%s in mode %s did not end well",
			    loop->name, mode->name);
		return;
	}
	enter_mode(mode);
	counters_read(&before);
	sample = loop->run();
	counters_read(&after);
	counters_subtract(&after, &before);
	print(loop, mode, repeat, sample, &after);
	exit(EXIT_OK);
}

static void read_clock(void)
{
	uint64_t least = UINT64_MAX;

	for (unsigned int n = 0; n < 100; n++) {
		uint64_t start = now_ns(), took = now_ns() - start;

		if (took < least)
			least = took;
	}
	clock_ns = least;
}

struct options {
	struct mode_list modes;
	unsigned int repeats;
};

static void options_parse(struct options *o, int argc, char **argv)
{
	static const struct program program = {
		"own-tables-bench [options]",
		"Times what is longer where each CPU has page tables of its own, on one CPU.",
		NULL
	};
	const struct program_option list[] = {
		MODES(&o->modes),
		NUMBER("repeats", "N", &o->repeats, 1, 1000, "repeats of each case (5)"),
		{ 0 }
	};

	*o = (struct options){ .repeats = 5 };
	parse_modes(&o->modes, "off,sharers");
	parse_options(&program, list, argc, argv);
}

int main(int argc, char **argv)
{
	struct options options;

	set_program_name("own-tables-bench");
	options_parse(&options, argc, argv);
	require_modes(&options.modes);
	run_on_cpu(nth_cpu(0));
	/* One entry for 2 MiB would need no table of PTEs. */
	if (prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0))
		die_errno("cannot do without huge pages");
	setvbuf(stdout, NULL, _IOLBF, 0);
	read_clock();
	print_environment_json(stdout);
	for (unsigned int repeat = 0; repeat < options.repeats; repeat++)
		for (size_t i = 0; i < sizeof(loops) / sizeof(*loops); i++)
			for (unsigned int n = 0; n < options.modes.count; n++)
				measure(&loops[i], mode_in_turn(&options.modes, repeat, n),
					repeat);
	return EXIT_OK;
}
