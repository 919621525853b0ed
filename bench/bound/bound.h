/* SPDX-License-Identifier: GPL-2.0-only */
/* bound.h - what the parts of bound-bench tell each other; see main.c. */
#ifndef BOUND_H
#define BOUND_H

#include "../common/counters.h"
#include "../common/latency.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define PAGE 4096ul
#define MS 1000000ull

/* Who looks at its clock all the time and finds that so much has passed did not run. */
#define GAP_NS (4 * MS)

enum kind {
	KIND_BUSY,	/* runs the process all the time, and ticks */
	KIND_IDLE,	/* the process sleeps there, and nothing else runs */
	KIND_ISOLATED,	/* runs the process all the time, and its ticks pay nothing */
	KINDS,
};

extern const char *const kind_names[KINDS];

#define MAX_CPUS 512

struct options {
	unsigned int kinds;	/* bits */
	bool memory;
	unsigned int rounds;
	unsigned int pages;	/* of an munmap of --kind memory */
	double seconds;		/* of --kind memory */
	bool json;
	int cpus[MAX_CPUS];	/* that this program was given; it unmaps on the first one */
	unsigned int cpu_count;
	int peer_cpus[KINDS];
};

/* What the kernel has promised, in its own words. */
struct settings {
	unsigned int settle_ms;
	unsigned int late_ms;
	uint64_t held_limit;	/* pages */
	uint64_t tick_ns;
};

/* settings.c */
void settings_read(struct settings *settings);
uint64_t settings_bound_ns(const struct settings *settings, enum kind kind);
uint64_t parked_pages(void);
int isolated_cpu(int otherwise);
const char *take_tick(int cpu);
void give_tick_back(void);

/*
 * One munmap and who uses what it has unmapped. The thread that unmaps writes what
 * is before @turn, and then @turn; the peer writes the rest, and then @touched and
 * @ended. So everything but these three is read and written by one of them at a time.
 */
struct window {
	const volatile uint64_t *page;
	uint64_t word;		/* that is in it */
	uint64_t first_sleep;	/* KIND_IDLE: from the first use to the second */
	uint64_t later_sleep;	/* KIND_IDLE: from one use to the next */
	_Atomic unsigned int turn;	/* of this window; 0: there is none yet */

	_Alignas(128) uint64_t began;	/* of the last use that was possible: before it ... */
	uint64_t last;		/* ... and after it */
	uint64_t gap_end;	/* until when the peer did not run, the last time; 0: it did */
	uint64_t wrong;		/* uses that found something else */
	_Atomic unsigned int touched;	/* the peer's TLB has the page of this turn */
	_Atomic unsigned int ended;	/* the peer can use it no more */
};

/* peer.c */
#define LAST_TURN (~0u)
void peer_start(struct window *window, enum kind kind, int cpu);
void peer_stop(void);

/* What a number of munmaps has shown. */
struct found {
	unsigned int rounds;
	unsigned int used;	/* windows in which what was unmapped was used at all */
	unsigned int disturbed;	/* windows in which one of both threads did not run for a while */
	unsigned int seen;	/* windows whose end the kernel has shown */
	unsigned int after;	/* of these: a use began later than that */
	unsigned int over;	/* longer than the bound, the disturbed ones, too */
	unsigned int judged;	/* used, and not disturbed */
	uint64_t worst_judged;	/* of these, ns */
	uint64_t wrong;
	struct latency latency;	/* of windows in which something was used */
	struct counters counters;
};

/* rounds.c */
void measure_rounds(struct found *found, const struct options *options, enum kind kind,
		    uint64_t bound_ns);

/* What waits while all CPUs unmap. */
struct waiting {
	unsigned int threads;
	uint64_t operations;
	uint64_t peak;		/* pages */
	uint64_t left;		/* pages, LEFT_MS after the last munmap */
	uint64_t ns;
	struct counters counters;
};

#define LEFT_MS 100

/* memory.c */
void measure_memory(struct waiting *waiting, const struct options *options);

#endif /* BOUND_H */
