// SPDX-License-Identifier: GPL-2.0
/*
 * The arena: placement, quarantine, and the clamp of page table removal. Random
 * histories are compared with a map that remembers every address.
 */
#include <stdlib.h>
#include <string.h>

#include "arena_state.h"
#include "ktap.h"

enum { PAGE = 4096, HUGE = 2 << 20 };
#define BASE	0x7f0000000000UL
#define SIZE	(64UL * PAGE)

static struct cf_arena new_arena(unsigned long size)
{
	return (struct cf_arena) {
		.base = BASE, .next = BASE + size, .settled = BASE + size,
		.end = BASE + size,
	};
}

static void ranges(void)
{
	struct cf_arena a = new_arena(SIZE);

	a.next = a.end - 10 * PAGE;
	a.settled = a.end - 4 * PAGE;
	CHECK(cf_arena_range(&a, a.end, a.end + PAGE) == CF_RANGE_OUTSIDE);
	CHECK(cf_arena_range(&a, a.next - PAGE, a.next) == CF_RANGE_OUTSIDE);
	CHECK(cf_arena_range(&a, a.end - PAGE, a.end) == CF_RANGE_INSIDE);
	CHECK(cf_arena_range(&a, a.next, a.end) == CF_RANGE_INSIDE);
	CHECK(cf_arena_range(&a, a.end - PAGE, a.end + PAGE) ==
	      CF_RANGE_STRADDLES);
	CHECK(cf_arena_range(&a, a.next - PAGE, a.next + PAGE) ==
	      CF_RANGE_STRADDLES);
	CHECK(!cf_arena_quarantined(&a, a.settled, a.end));
	CHECK(cf_arena_quarantined(&a, a.settled - PAGE, a.end));
	CHECK(cf_arena_quarantined(&a, a.base, a.next + PAGE));
	CHECK(!cf_arena_quarantined(&a, a.base, a.next));
	a.settled = a.next;
	CHECK(!cf_arena_quarantined(&a, a.next - PAGE, a.next + PAGE));
	cf_arena_enter(&a, a.end - PAGE);
	CHECK(a.settled == a.end - PAGE);
	cf_arena_enter(&a, a.end - 5 * PAGE);
	CHECK(a.settled == a.end - PAGE);
}

static void placement(void)
{
	struct cf_arena a = new_arena(8UL * HUGE);
	unsigned long at;

	at = cf_arena_place(&a, a.end - PAGE, PAGE, 0, HUGE);
	CHECK(at == a.end - 2 * PAGE);
	/* Huge mappings coincide with the huge pages of the file. */
	at = cf_arena_place(&a, BASE + HUGE + 4 * PAGE, HUGE, 3 * PAGE, HUGE);
	CHECK(at == BASE + 3 * PAGE);
	at = cf_arena_place(&a, BASE + 2UL * HUGE + 2 * PAGE, HUGE, 3 * PAGE,
			    HUGE);
	CHECK(at == BASE + 3 * PAGE);
	/* Where they would coincide begins below the arena. */
	CHECK(!cf_arena_place(&a, BASE + HUGE + 2 * PAGE, HUGE, 3 * PAGE,
			      HUGE));
	CHECK(!cf_arena_place(&a, BASE, PAGE, 0, HUGE));
	CHECK(!cf_arena_place(&a, BASE - PAGE, PAGE, 0, HUGE));
	CHECK(!cf_arena_place(&a, 0, PAGE, 0, HUGE));
	CHECK(!cf_arena_place(&a, BASE + PAGE, 2 * PAGE, 0, HUGE));
	CHECK(cf_arena_place(&a, BASE + PAGE, PAGE, 0, HUGE) == BASE);
	CHECK(!cf_arena_place(&a, a.end, ~0UL - PAGE + 1, 0, HUGE));
}

/* Tables of the quarantine never go with a neighbour, all others may. */
static void clamp(void)
{
	struct cf_arena a = new_arena(SIZE);
	unsigned long floor = 0, ceiling = 0;

	/* Nothing under quarantine: as given. */
	cf_arena_clamp(&a, BASE - PAGE, BASE, &floor, &ceiling);
	CHECK(floor == 0 && ceiling == 0);

	a.next = BASE + 4 * PAGE;
	a.settled = BASE + 10 * PAGE;
	cf_arena_clamp(&a, BASE, BASE + PAGE, &floor, &ceiling);
	CHECK(floor == 0 && ceiling == a.next);
	ceiling = BASE + 2 * PAGE;
	cf_arena_clamp(&a, BASE, BASE + PAGE, &floor, &ceiling);
	CHECK(ceiling == BASE + 2 * PAGE);
	/* Right below the quarantine, and right above it. */
	ceiling = 0;
	cf_arena_clamp(&a, BASE + 3 * PAGE, a.next, &floor, &ceiling);
	CHECK(floor == 0 && ceiling == a.next);

	ceiling = 0;
	cf_arena_clamp(&a, a.settled, a.end, &floor, &ceiling);
	CHECK(floor == a.settled && ceiling == 0);
	floor = a.settled + PAGE;
	cf_arena_clamp(&a, a.settled + 2 * PAGE, a.end, &floor, &ceiling);
	CHECK(floor == a.settled + PAGE && ceiling == 0);

	floor = 0;
	cf_arena_clamp(&a, BASE + 5 * PAGE, BASE + 6 * PAGE, &floor, &ceiling);
	CHECK(floor == BASE + 5 * PAGE && ceiling == BASE + 6 * PAGE);
}

enum { PAGES = SIZE / PAGE, FREE = 0, LIVE = 1, CACHED = 2 };

static void flush_pages(unsigned char *state)
{
	int i;

	for (i = 0; i < PAGES; i++)
		if (state[i] == CACHED)
			state[i] = FREE;
}

/*
 * Random mmap() and munmap(): no page is handed out while it may be cached.
 * wrap_settles = false is the mistake that this must find.
 */
static int aba(unsigned int seed, bool wrap_settles)
{
	struct cf_arena a = new_arena(SIZE);
	unsigned char state[PAGES] = { 0 };
	int i, round, bad = 0;

	srandom(seed);
	for (round = 0; round < 2000; round++) {
		unsigned long len = (1 + random() % 5) * PAGE, from, at;
		unsigned int first = random() % PAGES, last;

		/* Tables are many, or a claim: settled without a wrap */
		if (!(random() % 50)) {
			flush_pages(state);
			a.settled = a.next;
		}
		if (random() % 2) {
			/* munmap() of a run of live pages that skips */
			if (state[first] != LIVE)
				continue;
			for (last = first; last < PAGES &&
			     state[last] == LIVE; last++)
				;
			at = BASE + first * PAGE;
			if (cf_arena_range(&a, at, BASE + last * PAGE) !=
			    CF_RANGE_INSIDE) {
				memset(state + first, FREE, last - first);
				continue;
			}
			cf_arena_enter(&a, BASE + last * PAGE);
			memset(state + first, CACHED, last - first);
			continue;
		}
		for (from = a.next;;) {
			at = cf_arena_place(&a, from, len, 0, HUGE);
			if (!at) {
				if (wrap_settles)
					flush_pages(state);
				a.settled = a.end;
				a.next = a.end;
				break;
			}
			first = (at - BASE) / PAGE;
			last = first + len / PAGE;
			for (i = first; i < (int)last; i++)
				if (state[i] == LIVE)
					break;
			if (i < (int)last) {
				from = BASE + i * PAGE;
				continue;
			}
			for (i = first; i < (int)last; i++) {
				bad += state[i] == CACHED;
				state[i] = LIVE;
			}
			a.next = at;
			break;
		}
		/* All that may be cached is under quarantine. */
		for (i = 0; i < PAGES; i++)
			if (state[i] == CACHED && wrap_settles)
				bad += !cf_arena_quarantined(&a,
							     BASE + i * PAGE,
							     BASE + i * PAGE + PAGE);
	}
	return bad;
}

static void no_address_comes_back_unsettled(void)
{
	unsigned int seed;

	for (seed = 1; seed <= 200; seed++)
		CHECK(!aba(seed, true));
}

static void a_wrap_that_settles_nothing_is_found(void)
{
	CHECK(aba(1, false));
}

int main(void)
{
	static const struct ktap_case cases[] = {
		{ "arena.ranges", ranges },
		{ "arena.placement", placement },
		{ "arena.clamp", clamp },
		{ "arena.no_address_comes_back_unsettled",
		  no_address_comes_back_unsettled },
		{ "arena.a_wrap_that_settles_nothing_is_found",
		  a_wrap_that_settles_nothing_is_found },
	};

	return KTAP_RUN(cases);
}
