/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * team.h - threads that do the rounds of a program together; see team.c
 *
 * The contract: a program says in a struct work what a member does in a round,
 * and what it looks at when the round is over. Both are called by all members
 * at the same time. Only rounds are timed. What a program takes with team_take()
 * and gives back is what its process maps and unmaps.
 */
#ifndef PARALLEL_TEAM_H
#define PARALLEL_TEAM_H

#include "../common/json.h"
#include "../common/options.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MAX_MEMBERS 256

struct team_options {
	unsigned int threads;
	unsigned int rounds;	/* 0: as many as fit in @seconds */
	double seconds;
	bool pin;
	bool spin;
	bool spoil;		/* make a result wrong, to be noticed */
	bool json;
};

/* Of all programs of this folder; @O points to a struct team_options. */
#define TEAM_OPTIONS(O) \
	NUMBER("threads", "N", &(O)->threads, 1, MAX_MEMBERS, "(one for each CPU)"), \
	NUMBER("rounds", "N", &(O)->rounds, 0, 1000000, \
	       "rounds (0: as many as --seconds has time for, at least one)"), \
	DURATION("seconds", &(O)->seconds, "how long (2)"), \
	FLAG("pin", &(O)->pin, "keep each thread on one CPU; the first one has the data\n" \
	     "at the beginning"), \
	FLAG("spin", &(O)->spin, "wait for the other threads without sleeping, as OpenMP\n" \
	     "programs do: no CPU is idle"), \
	FLAG("spoil", &(O)->spoil, "make a result wrong, which must be noticed: a test of\n" \
	     "the test"), \
	FLAG("json", &(O)->json, "JSON lines instead of text")

struct work {
	const char *type;	/* of the JSON line */
	const char *operation;	/* what shootdowns are counted for, in the plural */
	const char *item;	/* what the rate is of, in the plural */
	void (*round)(unsigned int member, unsigned int round);
	void (*check)(unsigned int member, unsigned int round);
	void (*describe)(struct json *json);	/* the sizes */
};

void team_defaults(struct team_options *options);
/* Before the data are made. */
void team_place(const struct team_options *options);
/* All rounds, and the line about them; returns the exit status. */
int team_run(const struct team_options *options, const struct work *work);

/* For members, within a round or a check. */
void team_meet(void);
void team_did(uint64_t operations, uint64_t items);
void team_wrong(uint64_t times);

/* Private anonymous memory, zero and touched by the caller; and its end. */
void *team_take(size_t bytes);
void team_give(void *memory, size_t bytes);

/* The part of @count that is @member's: from @first up to the return value. */
uint64_t team_part(uint64_t count, unsigned int member, unsigned int threads, uint64_t *first);

/* Each bit of the result depends on each bit of @x. */
static inline uint64_t mix(uint64_t x)
{
	x = (x ^ (x >> 32)) * 0xd6e8feb86659fd93ULL;
	x = (x ^ (x >> 32)) * 0xd6e8feb86659fd93ULL;
	return x ^ (x >> 32);
}

#endif /* PARALLEL_TEAM_H */
