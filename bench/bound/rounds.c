// SPDX-License-Identifier: GPL-2.0-only
/*
 * rounds.c - one munmap after the other, and how long each could be used
 *
 * What: maps a page, lets the peer read it, unmaps it, and looks once in a
 *       millisecond whether the peer is through, and whether the kernel still
 *       holds the frame. That one is anonymous: the kernel gives it back when each
 *       CPU has caught up, and not before. So whoever can use the page after
 *       the count of waiting pages was seen at zero has a translation that was
 *       settled. That holds while no other process leaves frames.
 *
 *       Ticks come at fixed times, and the peer's fault is one of them, so each
 *       round waits for a time of its own before it unmaps. Nothing is owed when a
 *       round begins: an older debt would settle the new one, too.
 * Who:  main.c.
 */
#include "bound.h"

#include "../common/util.h"

#include <sys/mman.h>

#define POLL_NS MS
#define LIMIT_NS (20000 * MS)
/* The first munmaps of a process flush: what notes frames is still made. */
#define WARM_UP 10
/* Until the peer's CPU is idle after its first read. */
#define LEAD_NS (2 * MS)
/* Longest wait before an munmap: some ticks. */
#define SPREAD_NS (10 * MS)

static struct window window;

/* A time below @below that is the same in each run. */
static uint64_t chance(unsigned int round, unsigned int what, uint64_t below)
{
	return page_word(what, round) % below;
}

static void wait_for_turn(_Atomic unsigned int *turn, unsigned int number)
{
	uint64_t start = now_ns();

	while (atomic_load(turn) != number) {
		if (now_ns() > start + LIMIT_NS)
			die(EXIT_FAILED, "the other thread does not answer");
		sleep_ns(POLL_NS / 10);
	}
}

static void wait_until_nothing_waits(void)
{
	uint64_t start = now_ns();

	while (parked_pages()) {
		if (now_ns() > start + LIMIT_NS)
			die(EXIT_FAILED, "pages wait for %llu s", LIMIT_NS / MS / 1000);
		sleep_ns(POLL_NS);
	}
}

/* Of one munmap. */
struct outcome {
	uint64_t returned;	/* when it did */
	uint64_t settled;	/* when the kernel was seen to hold nothing more; 0: not seen */
	bool gap;		/* this thread did not run for a while */
};

static void watch(struct outcome *o, unsigned int turn)
{
	bool held = parked_pages() > 0;
	uint64_t before = now_ns(), now;

	o->gap |= before > o->returned + GAP_NS;
	/* Also when the peer is through: it tells late, after the kernel has settled. */
	while (atomic_load(&window.ended) != turn || (held && !o->settled)) {
		bool ended = atomic_load(&window.ended) == turn;

		sleep_ns(POLL_NS);
		if (held && !o->settled && !parked_pages())
			o->settled = now_ns();
		now = now_ns();
		o->gap |= !ended && now > before + GAP_NS;
		if (now > o->returned + LIMIT_NS)
			die(EXIT_FAILED, "what was unmapped can be used after %llu s",
			    LIMIT_NS / MS / 1000);
		before = now;
	}
}

static void unmap_once(struct outcome *o, unsigned int turn, uint64_t bound_ns)
{
	uint64_t *p = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			   -1, 0);
	uint64_t called;

	if (p == MAP_FAILED)
		die_errno("mmap");
	*p = page_word(0, turn);
	window.page = p;
	window.word = *p;
	/* Some wake up when they can use it no more: it ends somewhere, too. */
	window.first_sleep = LEAD_NS + SPREAD_NS + chance(turn, 1, bound_ns + bound_ns / 4);
	window.later_sleep = MS + chance(turn, 2, MS);
	atomic_store(&window.turn, turn);
	wait_for_turn(&window.touched, turn);
	sleep_ns(LEAD_NS + chance(turn, 3, SPREAD_NS));
	*o = (struct outcome){ 0 };
	called = now_ns();
	if (munmap(p, PAGE))
		die_errno("munmap");
	o->returned = now_ns();
	o->gap = o->returned > called + GAP_NS;
	watch(o, turn);
}

static void add(struct found *f, const struct outcome *o, uint64_t bound_ns)
{
	bool disturbed = o->gap || window.gap_end > o->returned;
	uint64_t ns;

	f->rounds++;
	f->wrong += window.wrong;
	f->disturbed += disturbed;
	f->seen += o->settled > 0;
	f->after += o->settled && window.began > o->settled;
	if (window.last <= o->returned)
		return;
	ns = window.last - o->returned;
	f->used++;
	f->over += ns > bound_ns;
	latency_add(&f->latency, ns);
	if (disturbed)
		return;
	f->judged++;
	if (ns > f->worst_judged)
		f->worst_judged = ns;
}

void measure_rounds(struct found *f, const struct options *options, enum kind kind,
		    uint64_t bound_ns)
{
	struct counters before;
	struct outcome outcome;

	*f = (struct found){ 0 };
	run_on_cpu(options->cpus[0]);
	peer_start(&window, kind, options->peer_cpus[kind]);
	for (unsigned int turn = 1; turn <= WARM_UP + options->rounds; turn++) {
		wait_until_nothing_waits();
		if (turn == WARM_UP + 1)
			counters_read(&before);
		unmap_once(&outcome, turn, bound_ns);
		if (turn > WARM_UP)
			add(f, &outcome, bound_ns);
	}
	counters_read(&f->counters);
	counters_subtract(&f->counters, &before);
	peer_stop();
}
