// SPDX-License-Identifier: GPL-2.0-only
/*
 * stencil.c - stencil-bench: Jacobi's method on a square grid
 *
 * What: in a sweep each point becomes the mean of its four neighbours, from one
 *       grid into the other; each thread has a band of rows. A round begins with
 *       the same values and makes so many sweeps; an operation is a sweep. The
 *       result is compared, to the last bit, with that of one thread.
 * Who:  people, and `ceasefire bench run numa-stencil`: it unmaps nothing while it runs,
 *       and half of its rows are on the wrong node when it begins.
 */
#include "team.h"

#include "../common/util.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <string.h>

struct options {
	struct team_options team;
	unsigned int size;	/* points of a row, without the borders */
	unsigned int sweeps;	/* in a round */
};

static struct options options;
static double *grids[2];
static uint64_t expected;
static atomic_ullong checksum;

static void parse(int argc, char **argv)
{
	static const struct program program = {
		"stencil-bench [options]",
		"Threads make each point of a grid the mean of its neighbours.", NULL
	};
	struct options *o = &options;
	const struct program_option list[] = {
		TEAM_OPTIONS(&o->team),
		NUMBER("size", "N", &o->size, 2, 16384, "rows and columns (256)"),
		NUMBER("sweeps", "N", &o->sweeps, 1, 100000, "in each round (20)"),
		{ 0 }
	};

	*o = (struct options){ .size = 256, .sweeps = 20 };
	team_defaults(&o->team);
	parse_options(&program, list, argc, argv);
	if (o->team.threads > o->size)
		die(EXIT_USAGE, "there are fewer rows (--size) than --threads");
}

static size_t width(void)
{
	return options.size + 2UL;
}

static size_t bytes_of_grid(void)
{
	return width() * width() * sizeof(double);
}

/* Rows 1 to --size are points, those around them stay what they are. */
static void set_row(double *grid, size_t row)
{
	for (size_t i = 0; i < width(); i++)
		grid[row * width() + i] = (double)(mix(row * width() + i) >> 40);
}

static void sweep_row(const double *from, double *to, size_t row)
{
	for (size_t at = row * width() + 1; at <= row * width() + options.size; at++)
		to[at] = 0.25 * (from[at - width()] + from[at + width()] + from[at - 1] +
				 from[at + 1]);
}

static uint64_t sum_row(const double *grid, size_t row)
{
	uint64_t sum = 0, bits;

	for (size_t at = row * width(); at < (row + 1) * width(); at++) {
		memcpy(&bits, &grid[at], sizeof(bits));
		sum += mix(bits + mix(at));
	}
	return sum;
}

static void make_grids(void)
{
	for (unsigned int i = 0; i < 2; i++) {
		grids[i] = team_take(bytes_of_grid());
		for (size_t row = 0; row < width(); row++)
			set_row(grids[i], row);
	}
}

/* By one thread, in grids that go again. */
static void sweep_alone(void)
{
	make_grids();
	for (unsigned int sweep = 0; sweep < options.sweeps; sweep++) {
		for (size_t row = 1; row <= options.size; row++)
			sweep_row(grids[sweep % 2], grids[(sweep + 1) % 2], row);
	}
	for (size_t row = 1; row <= options.size; row++)
		expected += sum_row(grids[options.sweeps % 2], row);
	for (unsigned int i = 0; i < 2; i++)
		team_give(grids[i], bytes_of_grid());
}

/* The rows of a member: from @first up to the return value. */
static size_t rows_of(unsigned int member, size_t *first)
{
	uint64_t from;
	uint64_t end = team_part(options.size, member, options.team.threads, &from);

	*first = from + 1;
	return end + 1;
}

static void run_round(unsigned int member, unsigned int round)
{
	size_t first, end = rows_of(member, &first);

	for (unsigned int sweep = 0; sweep < options.sweeps; sweep++) {
		for (size_t row = first; row < end; row++)
			sweep_row(grids[sweep % 2], grids[(sweep + 1) % 2], row);
		team_meet();
	}
	if (options.team.spoil && !round && !member)
		grids[options.sweeps % 2][width() + 1] += 1;
	if (!member)
		team_did(options.sweeps,
			 (uint64_t)options.sweeps * options.size * options.size);
}

/* And the first values again, by whom they belong to. */
static void check_round(unsigned int member, unsigned int round)
{
	size_t first, end = rows_of(member, &first);
	uint64_t sum = 0;

	(void)round;
	for (size_t row = first; row < end; row++)
		sum += sum_row(grids[options.sweeps % 2], row);
	atomic_fetch_add(&checksum, sum);
	team_meet();
	if (!member)
		team_wrong(atomic_exchange(&checksum, 0) != expected);
	for (size_t row = first; row < end; row++)
		set_row(grids[0], row);
}

static void describe(struct json *json)
{
	json_unsigned(json, "size", options.size);
	json_unsigned(json, "sweeps", options.sweeps);
}

static const struct work work = {
	.type = "stencil",
	.operation = "sweeps",
	.item = "points",
	.round = run_round,
	.check = check_round,
	.describe = describe,
};

int main(int argc, char **argv)
{
	set_program_name("stencil-bench");
	parse(argc, argv);
	team_place(&options.team);
	sweep_alone();
	make_grids();
	return team_run(&options.team, &work);
}
