// SPDX-License-Identifier: GPL-2.0
/*
 * Where the arena places mappings: not where there is one, not right below a
 * stack, and out of the way of what Linux places (I3, I6).
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "checker.h"
#include "env.h"
#include "file.h"
#include "ktap.h"
#include "map.h"
#include "peer.h"

#define PAGES		16
#define LENGTH		(PAGES * PAGE)
#define OWN		0x5a
#define NEW		0x42

#define LIVE	6

/*
 * The arena is full of live mappings, one more found no room, and now comes one
 * that is smaller: it must not take a place that is taken.
 */
static void arena_full(void)
{
	size_t large = 15 * MIB, small = 2 * MIB;
	struct tfile a, b;
	char *live[LIVE];
	int i, round;

	fpr_arena_size(64 * MIB);
	file_make(&a, ON_TMPFS, large / PAGE, OWN);
	file_make(&b, ON_TMPFS, small / PAGE, NEW);
	for (i = 0; i < LIVE; i++) {
		live[i] = mmap(NULL, large, PROT_READ, MAP_SHARED | MAP_FPR,
			       a.fd, 0);
		ENSURE(live[i] != MAP_FAILED, "mmap: %m");
	}
	for (round = 0; round < LIVE; round++) {
		char *p = mmap(NULL, small, PROT_READ, MAP_SHARED | MAP_FPR,
			       b.fd, 0);

		ENSURE(p != MAP_FAILED, "mmap: %m");
		for (i = 0; i < LIVE; i++)
			ENSURE(p >= live[i] + large || p + small <= live[i],
			       "a live mapping was replaced at %p", p);
		ENSURE(probe_read(p) == WORD(NEW), "wrong data");
	}
}

/* What Linux keeps free below a stack. */
#define GAP		(256 * PAGE)

/* Mappings that come down to a stack, which may grow: they keep their distance. */
static void come_by(char *stack, size_t away)
{
	size_t pages = 64, length = pages * PAGE, left;
	struct tfile f;
	char *p;

	ENSURE(stack != MAP_FAILED, "mmap of a stack: %m");
	file_make(&f, ON_TMPFS, pages, OWN);
	for (left = away / length + 1; left; left--) {
		p = fpr_map(&f, 0, pages, PROT_READ, MAP_SHARED);
		ENSURE(p >= stack + PAGE || p + length + GAP <= stack,
		       "a mapping ends %td bytes below a stack",
		       stack - (p + length));
	}
	ENSURE(p < stack, "no mapping came near the stack");
}

static char *stack_at(char *at, int flags)
{
	return mmap(at, PAGE, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_GROWSDOWN | flags, -1, 0);
}

/* A stack lies further below. */
static void stack_gap(void)
{
	size_t away = 4 * MIB;
	struct tfile f;
	char *p;

	file_make(&f, ON_TMPFS, 1, OWN);
	p = fpr_map(&f, 0, 1, PROT_READ, MAP_SHARED);
	come_by(stack_at(p - away, MAP_FIXED_NOREPLACE), away);
}

/* The mapping that came last becomes a stack: there is no room right below it. */
static void stack_beside(void)
{
	struct tfile f;
	char *p;

	file_make(&f, ON_TMPFS, 1, OWN);
	p = fpr_map(&f, 0, 1, PROT_READ, MAP_SHARED);
	come_by(stack_at(p, MAP_FIXED), 0);
}

/*
 * Behind the mappings that came last there is a stack: there is no room below
 * it either, once they have gone.
 */
static void stack_behind(void)
{
	char *p, *q, *r, *stack;
	struct tfile f;

	file_make(&f, ON_TMPFS, 1, OWN);
	p = fpr_map(&f, 0, 1, PROT_READ, MAP_SHARED);
	q = fpr_map(&f, 0, 1, PROT_READ, MAP_SHARED);
	stack = stack_at(p, MAP_FIXED);
	r = fpr_map(&f, 0, 1, PROT_READ, MAP_SHARED);
	MUST(munmap(q, PAGE));
	MUST(munmap(r, PAGE));
	come_by(stack, 0);
}

static void reserve(char *start, char *end, int flags)
{
	char *p = mmap(start, (size_t)(end - start), PROT_NONE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | flags, -1,
		       0);

	ENSURE(p == start, "mmap of %p-%p: %m", start, end);
}

/* Leave no room between @edge and the stack of the process. */
static void leave_no_room_above(char *edge)
{
	unsigned long start[256], end[256], at = (unsigned long)edge;
	FILE *f = fopen("/proc/self/maps", "re");
	size_t i, count = 0;
	char line[512];

	ENSURE(f, "/proc/self/maps: %m");
	while (count < KTAP_COUNT(start) && fgets(line, sizeof(line), f) &&
	       sscanf(line, "%lx-%lx", &start[count], &end[count]) == 2) {
		count++;
		if (strstr(line, "[stack]"))
			break;
	}
	fclose(f);
	for (i = 0; i < count; i++) {
		if (start[i] > at)
			reserve((char *)at, (char *)start[i],
				MAP_FIXED_NOREPLACE);
		if (end[i] > at)
			at = end[i];
	}
	ENSURE(at > (unsigned long)&f, "the stack is not in the list");
}

/* A mapping of the arena above which nothing has room any more. */
static char *last_room(const struct tfile *f)
{
	char *edge = fpr_map(f, 0, 1, PROT_READ, MAP_SHARED);

	leave_no_room_above(edge + PAGE);
	return edge;
}

#define HOLE		(16 * MIB)

/* Linux finds no other room than where stale translations are. */
static void placed(void)
{
	size_t pages = HOLE / PAGE, held = 0;
	char *p, *q, *target = NULL;
	struct tfile f;
	int tries;

	file_make(&f, ON_TMPFS, pages, OWN);
	peer_start(1);
	hold_debts();
	last_room(&f);
	for (tries = 0; tries < 20 && !holds_enough(held, PAGES); tries++) {
		p = fpr_map(&f, 0, pages, PROT_READ, MAP_SHARED);
		target = p + HOLE - LENGTH;
		peer_touch(target, PAGES);
		held = 0;
		if (fpr_unmap(p, pages))
			held = peer_count(target, PAGES, WORD(OWN));
		if (!holds_enough(held, PAGES))
			reserve(p, p + HOLE, MAP_FIXED_NOREPLACE);
	}
	PREMISE(holds_enough(held, PAGES),
		"the peer holds %zu of %d stale translations",
		held, PAGES);
	q = mmap(NULL, HOLE, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ENSURE(q != MAP_FAILED, "mmap: %m");
	ENSURE(q <= target && q + HOLE >= target + LENGTH,
	       "mmap has found room at %p, not at %p", q, target);
	memset(target, NEW, LENGTH);
	checker_forbid(target, PAGES);
	held = peer_count(target, PAGES, WORD(OWN));
	ENSURE(!held, "the peer reads the unmapped file in %zu of %d pages", held,
	       PAGES);
	held = peer_count(target, PAGES, WORD(NEW));
	checker_allow(target, PAGES);
	ENSURE(held == PAGES, "the peer reads the new memory in %zu of %d pages",
	       held, PAGES);
}

#define ROUNDS		40

/* Mappings of Linux have come down to the arena: that is no flush each. */
static void gives_way(void)
{
	long flushes, skips;
	struct tfile f;
	int i;

	file_make(&f, ON_TMPFS, PAGES, OWN);
	peer_start(1);
	hold_debts();
	leave_skipped(&f, 0, PAGES);
	last_room(&f);
	flushes = vmstat("fpr_va_flush");
	skips = vmstat("fpr_skip");
	for (i = 0; i < ROUNDS; i++) {
		char *p = fpr_map(&f, 0, PAGES, PROT_READ, MAP_SHARED);

		peer_touch(p, PAGES);
		fpr_unmap(p, PAGES);
		p = mmap(NULL, LENGTH, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS,
			 -1, 0);
		ENSURE(p != MAP_FAILED, "mmap: %m");
	}
	flushes = vmstat("fpr_va_flush") - flushes;
	skips = vmstat("fpr_skip") - skips;
	ENSURE(flushes < ROUNDS / 4, "%ld flushes for %d mappings", flushes,
	       ROUNDS);
	ENSURE(skips > ROUNDS / 2, "%ld of %d unmaps skipped", skips, ROUNDS);
}

#define RESERVED	(300 * GIB)
/* More than is left between two huge mappings. */
#define WIDE		(4 * MIB)

/* A huge mapping takes all that the arena had left: it is found another place. */
static void reserved(void)
{
	long refused, settled;
	char *p, *big;
	struct tfile f;
	int i;

	file_make(&f, ON_TMPFS, PAGES, OWN);
	p = fpr_map(&f, 0, PAGES, PROT_READ, MAP_SHARED);
	big = mmap(NULL, RESERVED, PROT_NONE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	ENSURE(big != MAP_FAILED, "mmap: %m");
	ENSURE(big < p && big + RESERVED > p - GIB,
	       "the large mapping is at %p, not below %p", big, p);
	refused = vmstat("fpr_map_ineligible_arena");
	settled = vmstat("fpr_drain_tables");
	for (i = 0; i < ROUNDS; i++) {
		p = mmap(NULL, WIDE, PROT_READ, MAP_SHARED | MAP_FPR, f.fd, 0);
		ENSURE(p != MAP_FAILED, "mmap: %m");
		MUST(munmap(p, WIDE));
	}
	refused = vmstat("fpr_map_ineligible_arena") - refused;
	settled = vmstat("fpr_drain_tables") - settled;
	ENSURE(!refused && settled < ROUNDS / 4,
	       "%ld of %d mappings found no room, settled %ld times", refused,
	       ROUNDS, settled);
}

/*
 * Memory lies as Linux would have it: at a boundary of huge pages only if it is a whole
 * number of them. Else arrays of about the same size take each other's place in a TLB.
 */
static void boundaries(void)
{
	size_t length = 2 * MIB + PAGE;
	char *p[3];
	int i;

	for (i = 0; i < 3; i++) {
		p[i] = mmap(NULL, length, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FPR, -1, 0);
		ENSURE(p[i] != MAP_FAILED, "mmap: %m");
		ENSURE(!i || p[i - 1] - p[i] == (long)length,
		       "%p and %p do not lie next to each other", p[i - 1], p[i]);
	}
	for (i = 0; i < 3; i++) {
		p[i] = mmap(NULL, 2 * MIB, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FPR, -1, 0);
		ENSURE(p[i] != MAP_FAILED, "mmap: %m");
		ENSURE(!((unsigned long)p[i] % (2 * MIB)),
		       "%p has no place for a huge page", p[i]);
	}
}

int main(int argc, char **argv)
{
	static const struct ktap_case cases[] = {
		{ "arena_full", arena_full, 0 },
		{ "stack_gap", stack_gap, 0 },
		{ "stack_beside", stack_beside, 0 },
		{ "stack_behind", stack_behind, 0 },
		{ "placed", placed, 0 },
		{ "gives_way", gives_way, 0 },
		{ "reserved", reserved, 0 },
		{ "boundaries", boundaries, 0 },
	};

	return ktap_main(argc, argv, cases, KTAP_COUNT(cases));
}
