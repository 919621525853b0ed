// SPDX-License-Identifier: GPL-2.0-only
/*
 * spread.c - spread-bench, threads that read here and there in much memory
 *
 * What: in a round a large mapping is made, all members read a word of it at each
 *       step, and it is unmapped. Nobody writes, so all pages are the kernel's page of
 *       zeros: what it takes are page faults and page tables, which are what counts
 *       here. An operation is a word that a member reads; each has to be zero.
 * Who:  people, and the suite `sharers-spread` of `ceasefire bench run`.
 */
#include "team.h"

#include "../common/util.h"

#include <sys/mman.h>

#define MIB (1UL << 20)

static struct {
	struct team_options team;
	unsigned int gib, step;
} options;

static char *memory;

static size_t size(void)
{
	return (size_t)options.gib << 30;
}

static void take(void)
{
	memory = mmap(NULL, size(), PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (memory == MAP_FAILED)
		die_errno("mmap of %u GiB", options.gib);
	/* A huge page would be one fault. Not all kernels have them. */
	madvise(memory, size(), MADV_NOHUGEPAGE);
}

static void do_round(unsigned int member, unsigned int round)
{
	uint64_t words = 0, wrong = 0;

	(void)round;
	if (!member)
		take();
	team_meet();
	for (size_t at = 0; at < size(); at += options.step * MIB, words++)
		wrong += *(volatile uint64_t *)(memory + at) != 0;
	team_wrong(wrong);
	team_did(words, words);
}

static void check(unsigned int member, unsigned int round)
{
	(void)round;
	team_wrong(options.team.spoil && !member);
	if (!member && munmap(memory, size()))
		die_errno("munmap");
}

static void describe(struct json *json)
{
	json_unsigned(json, "gib", options.gib);
	json_unsigned(json, "step", options.step);
}

static const struct work work = {
	.type = "spread", .operation = "words", .item = "words",
	.round = do_round, .check = check, .describe = describe,
};

int main(int argc, char **argv)
{
	static const struct program program = {
		"spread-bench [options]",
		"Threads read a word here and there in much memory.", NULL
	};
	const struct program_option list[] = {
		NUMBER("gib", "N", &options.gib, 1, 16384, "how much, in GiB (64)"),
		NUMBER("step", "N", &options.step, 1, 1024, "a word each N MiB (2)"),
		TEAM_OPTIONS(&options.team),
		{ 0 }
	};

	set_program_name("spread-bench");
	team_defaults(&options.team);
	options.gib = 64;
	options.step = 2;
	parse_options(&program, list, argc, argv);
	team_place(&options.team);
	return team_run(&options.team, &work);
}
