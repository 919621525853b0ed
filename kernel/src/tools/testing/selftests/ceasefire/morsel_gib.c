// SPDX-License-Identifier: GPL-2.0
/*
 * Units of 512 GiB: a GiB leaves the object by one entry, and the table that it led to is used
 * again (mm/ceasefire/morsel/rest.c). Who is late, or looks elsewhere, finds nothing of it. The
 * same with 512 GiB in units of 256 TiB.
 */
#define _GNU_SOURCE
#include <sys/mman.h>
#include <unistd.h>

#include "checker.h"
#include "gib.h"
#include "ktap.h"
#include "late.h"
#include "map.h"
#include "morsels.h"
#include "peer.h"
#include "regions.h"

#define OWN	WORD(0x5a)
#define OTHER	WORD(0x33)
#define BOTH	(PROT_READ | PROT_WRITE)
#define PAGES	8
#define DELAY_MS	400

static void expect(int fd, uint64_t pages, uint64_t tables, const char *when)
{
	struct morsel_stat stat = morsel_stat(fd);

	ENSURE(stat.pages == pages && stat.tables == tables,
	       "%s: %llu pages and %llu tables, not %llu and %llu", when,
	       (unsigned long long)stat.pages, (unsigned long long)stat.tables,
	       (unsigned long long)pages, (unsigned long long)tables);
}

static uint64_t cuts_of(int fd, uint64_t offset, uint64_t length)
{
	uint64_t before = morsel_stat(fd).cuts;

	ENSURE(!morsel_depopulate(fd, offset, length), "depopulate");
	return morsel_stat(fd).cuts - before;
}

/* A page in each piece of the range. */
static void populate_each(int fd, uint64_t offset, uint64_t length, uint64_t piece)
{
	struct morsel_range ranges[512];
	unsigned int nr = 0;
	uint64_t at;

	for (at = offset; at < offset + length; at += piece) {
		ranges[nr++] = (struct morsel_range){ at, PAGE };
		if (nr == 512 || at + piece >= offset + length) {
			ENSURE(!morsel_vector(fd, MORSEL_IOC_POPULATE, ranges, nr, NULL),
			       "populate");
			nr = 0;
		}
	}
}

/* All that can be cut by an entry of its own, if the first and the last page stay. */
static void populate_most(int fd, uint64_t unit)
{
	uint64_t piece;

	for (piece = PAGE; piece < unit; piece *= 512) {
		populate_each(fd, 0, 512 * piece, piece);
		populate_each(fd, unit - 512 * piece, 512 * piece, piece);
	}
}

/* Table 3.1 of the thesis that morsels come from: the most cuts by size of the unit. */
static void counts(void)
{
	static const struct {
		uint64_t unit, whole, most;
	} rows[] = {
		{ UNIT, 512, 510 },
		{ GIB, 512, 510 + 2 * 511 },
		{ 512 * GIB, 512, 510 + 2 * 2 * 511 },
		{ 256 * TIB, 512, 510 + 3 * 2 * 511 },
	};
	size_t i;

	for (i = 0; i < morsel_nr_units(); i++) {
		uint64_t unit = rows[i].unit, cuts;
		int fd = morsel_make_of(unit, unit);

		populate_most(fd, unit);
		cuts = cuts_of(fd, PAGE, unit - 2 * PAGE);
		ENSURE(cuts == rows[i].most, "unit %zu: %llu cuts, not %llu", i,
		       (unsigned long long)cuts, (unsigned long long)rows[i].most);
		ENSURE(morsel_stat(fd).pages == 2, "%llu pages are left",
		       (unsigned long long)morsel_stat(fd).pages);
		ENSURE(!cuts_of(fd, PAGE, unit - 2 * PAGE), "the same is cut again");
		populate_most(fd, unit);
		cuts = cuts_of(fd, 0, unit);
		ENSURE(cuts == rows[i].whole, "unit %zu: %llu cuts of all, not %llu", i,
		       (unsigned long long)cuts, (unsigned long long)rows[i].whole);
		ENSURE(!morsel_stat(fd).pages, "%llu pages are left",
		       (unsigned long long)morsel_stat(fd).pages);
		close(fd);
	}
}

/* Zeroes, memory, and the table; and what is beside it stays. */
static void comes_back(void)
{
	int fd = morsel_make_of(gib_unit, gib_unit), i;
	char *p = morsel_map(fd, gib_unit, BOTH);

	morsel_fill(p + gib_part - PAGE, 1, OTHER);
	morsel_fill(p + 2 * gib_part, 1, OTHER);
	for (i = 0; i < 50; i++) {
		morsel_fill(p + gib_part, PAGES, OWN);
		morsel_fill(p + gib_part + i * UNIT, PAGES, OWN);
		morsel_fill(p + 2 * gib_part - PAGES * PAGE, PAGES, OWN);
		ENSURE(cuts_of(fd, gib_part, gib_part) == 1, "not one cut");
		MUST(fsync(fd));
		/* Three of the highest level below the root, of which one rests. */
		expect(fd, 2, ROOT + 3 * gib_tables + (gib_tables > 1) + 2, "taken away");
		ENSURE(!morsel_count(p + gib_part, PAGES, OWN) &&
		       !morsel_count(p + gib_part + i * UNIT, PAGES, OWN) &&
		       !morsel_count(p + 2 * gib_part - PAGES * PAGE, PAGES, OWN),
		       "it is still there");
		ENSURE(!probe_read(p + gib_part), "no zeroes");
		ENSURE(probe_read(p + gib_part - PAGE) == OTHER &&
		       probe_read(p + 2 * gib_part) == OTHER, "what is beside it has gone");
	}
	ENSURE(!morsel_depopulate(fd, 0, 3 * gib_part), "depopulate");
	MUST(fsync(fd));
	expect(fd, 0, ROOT + 3 * gib_tables + (gib_tables > 1), "all of it");
	/* Nothing is there: nobody has to flush for it. */
	ENSURE(!cuts_of(fd, 0, gib_unit), "cuts of nothing");
}

/* It goes while others have it, and a second table for the GiB is there meanwhile. */
static void left(void)
{
	int fd = morsel_make_of(gib_unit, gib_unit);
	char *p = morsel_map(fd, gib_unit, BOTH);

	morsel_fill(p, PAGES, OWN);
	morsel_fill(p + 7 * UNIT, PAGES, OWN);
	morsel_fill(p + GIB - UNIT, PAGES, OWN);
	morsel_clean_delay(DELAY_MS);
	ENSURE(!morsel_leave(fd, 0, gib_part), "depopulate");
	PREMISE(morsel_stat(fd).waiting, "it is free by now");
	ENSURE(morsel_stat(fd).waiting == 3 * FULL, "%llu wait",
	       (unsigned long long)morsel_stat(fd).waiting);
	ENSURE(!morsel_count(p, PAGES, OWN), "it is still there");
	morsel_fill(p, PAGES, OTHER);
	PREMISE(morsel_stat(fd).waiting, "it was free too early");
	morsel_clean_delay(0);
	MUST(fsync(fd));
	ENSURE(!morsel_stat(fd).waiting, "%llu wait",
	       (unsigned long long)morsel_stat(fd).waiting);
	ENSURE(morsel_count(p, PAGES, OTHER) == PAGES, "what came later has gone");
	/* Of level 3 there is one: it has rested before others had freed what it led to. */
	expect(fd, PAGES, ROOT + gib_tables + 1 + 1, "later");
	/* Both are used in turn, and there is never a third one. */
	ENSURE(cuts_of(fd, 0, gib_part) == 1, "not one cut");
	MUST(fsync(fd));
	expect(fd, 0, ROOT + gib_tables + 1, "in the end");
	morsel_fill(p, 1, OWN);
	expect(fd, 1, ROOT + gib_tables + 1 + 1, "once more");
}

/* Pieces of what is below a table of level 2, by several cleaners; and the bound of M9. */
static void pieces(void)
{
	long limit = morsel_sysfs("limit");
	int fd = morsel_make_of(gib_unit, gib_unit), i;
	uint64_t most = 0;

	/* Of what may wait to be freed by others it is a part. */
	morsel_set("limit", 100000000);
	for (i = 0; i < 20; i++) {
		populate_each(fd, 0, 2 * GIB, 4 * UNIT);
		ENSURE(!morsel_leave(fd, i % 2 * GIB, GIB), "depopulate");
		ENSURE(!morsel_leave(fd, 0, 2 * GIB), "depopulate");
		if (i % 4 == 3)
			MUST(fsync(fd));
	}
	MUST(fsync(fd));
	ENSURE(!morsel_stat(fd).pages && !morsel_stat(fd).waiting, "%llu pages, %llu wait",
	       (unsigned long long)morsel_stat(fd).pages,
	       (unsigned long long)morsel_stat(fd).waiting);
	morsel_clean_delay(DELAY_MS);
	morsel_set("limit", morsel_sysfs("pages") + 16 * 1024);
	for (i = 0; i < 4; i++) {
		populate_each(fd, 0, 3 * UNIT, UNIT);
		ENSURE(!morsel_leave(fd, 0, GIB), "depopulate");
		if (morsel_stat(fd).waiting > most)
			most = morsel_stat(fd).waiting;
	}
	morsel_clean_delay(0);
	morsel_set("limit", limit);
	PREMISE(most, "it is free by now");
	ENSURE((long)most <= 2048 + morsel_sysfs("pages") / 8, "%llu pages wait",
	       (unsigned long long)most);
	MUST(fsync(fd));
	ENSURE(!morsel_stat(fd).pages && !morsel_stat(fd).waiting, "not all is free");
}

/* The peer has it cached, and by a table of its own with sharers. */
static void reached(char *p, int fd)
{
	peer_finds(p, PAGES, OWN);
	/* What is taken is there for a while longer, and nobody reaches it. */
	morsel_clean_delay(DELAY_MS);
	ENSURE(!morsel_leave(fd, 0, gib_part), "depopulate");
	PREMISE(morsel_stat(fd).waiting, "it is free by now");
	checker_forbid(p, PAGES);
	peer_finds(p, PAGES, 0);
	checker_allow(p, PAGES);
	ENSURE(peer_write(p, PAGES, OTHER) == PAGES, "the peer cannot write");
	morsel_clean_delay(0);
	MUST(fsync(fd));
	ENSURE(morsel_count(p, PAGES, OTHER) == PAGES, "it has written elsewhere");
	peer_finds(p, PAGES, OTHER);
	ENSURE(!morsel_depopulate(fd, 0, gib_part), "depopulate");
	peer_finds(p, PAGES, 0);
}

static void unreachable(void)
{
	int fd = morsel_make_of(gib_unit, gib_unit);
	char *p = morsel_map(fd, gib_unit, BOTH);

	need_cpus(2);
	pin_to_cpu(0);
	peer_start(1);
	morsel_fill(p, PAGES, OWN);
	reached(p, fd);
}

static void sharers(void)
{
	int fd = morsel_make_of(gib_unit, gib_unit), i;
	char *p;

	sharers_start();
	p = morsel_map(fd, gib_unit, BOTH);
	for (i = 0; i < 3; i++) {
		morsel_fill(p, PAGES, OWN);
		reached(p, fd);
	}
}

/*
 * The peer has seen that there is a table for the GiB, and is late to link it: it has been cut by
 * then. What is there in its place is never linked, or the peer would find no page there for ever.
 */
static void late_link(void)
{
	int fd = morsel_make_of(gib_unit, gib_unit);
	char *p;

	sharers_start();
	p = morsel_map(fd, gib_unit, BOTH);
	morsel_fill(p, 1, OWN);
	peer_finds(p, 1, OWN);
	/* Its copy has tables for the GiB, and has to link it anew. */
	ENSURE(!morsel_depopulate(fd, 0, gib_part), "depopulate");
	morsel_fill(p, 1, OWN);
	sharers_fill_delay(4 * DELAY_MS);
	peer_begin_watch(p, 1, 0);
	sleep_ms(DELAY_MS);
	ENSURE(!morsel_depopulate(fd, 0, gib_part), "depopulate");
	sharers_fill_delay(0);
	sleep_ms(DELAY_MS);
	peer_end_watch();
	PREMISE(!peer_watch_saw_alien(), "the peer was too early");
	peer_finds(p, 1, 0);
}

/*
 * The table of level 2 that a fault has found is cut, and rests, while another one is used for the
 * GiB. What the fault makes must not be in there.
 */
static void late_table(void)
{
	int fd = morsel_make_of(gib_unit, gib_unit);
	char *p = morsel_map(fd, gib_unit, BOTH);
	struct late l;

	morsel_fill(p, 1, OTHER);
	late_begin(&l, late_write, p + 100 * UNIT, 8 * DELAY_MS);
	morsel_clean_delay(DELAY_MS);
	ENSURE(!morsel_leave(fd, 0, gib_part), "depopulate");
	morsel_fill(p, 1, OTHER);
	morsel_clean_delay(0);
	MUST(fsync(fd));
	expect(fd, 1, ROOT + gib_tables + 1 + 1 + 1, "with the table that the fault has");
	ENSURE(late_end(&l) == 1 && probe_read(l.at) == OWN, "the write is lost");
	ENSURE(!morsel_depopulate(fd, 0, gib_part), "depopulate");
	MUST(fsync(fd));
	expect(fd, 0, ROOT + gib_tables + 1, "in the end");
	morsel_fill(p, 1, OTHER);
	morsel_clean_delay(DELAY_MS);
	ENSURE(!morsel_leave(fd, 0, gib_part), "depopulate");
	morsel_fill(p, 1, OTHER);
	morsel_clean_delay(0);
	ENSURE(!probe_read(l.at), "it is back");
}

/* It is cut because the object gets smaller: nothing is to come behind its end. */
static void late_size(void)
{
	int fd = morsel_make_of(2 * gib_part, gib_unit);
	char *p = morsel_map(fd, gib_unit, BOTH);
	struct late l;

	morsel_fill(p, 1, OTHER);
	morsel_fill(p + gib_part, 1, OTHER);
	late_begin(&l, late_write, p + gib_part + 100 * UNIT, 4 * DELAY_MS);
	MUST(ftruncate(fd, PAGE));
	ENSURE(late_end(&l) == -1, "it has written behind the end");
	MUST(fsync(fd));
	expect(fd, 1, ROOT + 2 * gib_tables + 1, "smaller");
}

/*
 * The table of level 3 in which a fault is to make one of level 2 is cut, and rests: it does not
 * wake with something in it.
 */
static void late_middle(void)
{
	struct late l;
	char *p;
	int fd;

	gib_in_256_tib();
	fd = morsel_make_of(gib_unit, gib_unit);
	p = morsel_map(fd, gib_unit, BOTH);
	morsel_fill(p, 1, OTHER);
	late_begin(&l, late_write, p + 100 * GIB, 4 * DELAY_MS);
	ENSURE(!morsel_depopulate(fd, 0, gib_part), "depopulate");
	ENSURE(late_end(&l) == 1 && probe_read(l.at) == OWN, "the write is lost");
	MUST(fsync(fd));
	/* One of level 2 rests. */
	expect(fd, 1, ROOT + gib_tables + 1 + 1, "later");
	ENSURE(!probe_read(p), "what was there is back");
}

/*
 * A fault has seen that a table of level 2 rests, and takes it when it is gone again: what leads
 * there is not counted twice, or nobody would know any more when there is nothing.
 */
static void late_rested(void)
{
	char *p, *gib;
	struct late l;
	int fd;

	gib_in_256_tib();
	fd = morsel_make_of(gib_unit, gib_unit);
	p = morsel_map(fd, gib_unit, BOTH);
	gib = p + 5 * GIB;
	morsel_fill(p, 1, OTHER);
	morsel_fill(gib, 1, OTHER);
	ENSURE(cuts_of(fd, 5 * GIB, GIB) == 1, "not one cut");
	MUST(fsync(fd));
	late_begin(&l, late_write, gib, 4 * DELAY_MS);
	morsel_fill(gib + UNIT, 1, OTHER);
	morsel_clean_delay(4 * DELAY_MS);
	ENSURE(!morsel_leave(fd, 5 * GIB, GIB), "depopulate");
	ENSURE(late_end(&l) == 1 && probe_read(gib) == OWN, "the write is lost");
	morsel_clean_delay(0);
	MUST(fsync(fd));
	ENSURE(cuts_of(fd, 0, GIB) == 1 && cuts_of(fd, 5 * GIB, GIB) == 1, "not one cut each");
	MUST(fsync(fd));
	ENSURE(!cuts_of(fd, 0, gib_part), "cuts of nothing");
}

/* A table of level 2 that leads nowhere goes with that of level 3, and nobody works for ever. */
static void bare(void)
{
	unsigned int i;
	char *p;
	int fd;

	gib_in_256_tib();
	fd = morsel_make_of(gib_unit, gib_unit);
	p = morsel_map(fd, gib_unit, BOTH);
	morsel_fill(p, 1, OWN);
	morsel_fill(p + 5 * GIB, 1, OWN);
	ENSURE(cuts_of(fd, 5 * GIB, UNIT) == 1, "not one cut");
	ENSURE(!morsel_leave(fd, 0, gib_part), "depopulate");
	for (i = 0; morsel_stat(fd).waiting && i < 100; i++)
		sleep_ms(100);
	ENSURE(!morsel_stat(fd).waiting, "%llu wait", (unsigned long long)morsel_stat(fd).waiting);
	MUST(fsync(fd));
	expect(fd, 0, ROOT + gib_tables + 1, "all of it");
	morsel_fill(p + 5 * GIB, 1, OWN);
	expect(fd, 1, ROOT + gib_tables + 1 + 1, "once more");
}

IN_256_TIB(comes_back)
IN_256_TIB(left)
IN_256_TIB(unreachable)
IN_256_TIB(sharers)
IN_256_TIB(late_table)
IN_256_TIB(late_size)

int main(int argc, char **argv)
{
	static const struct ktap_case cases[] = {
		{ "counts", counts, 0 },
		{ "comes_back", comes_back, 0 },
		{ "left", left, 0 },
		{ "pieces", pieces, 0 },
		{ "unreachable", unreachable, 0 },
		{ "sharers", sharers, 0 },
		{ "late_link", late_link, 0 },
		{ "late_table", late_table, 0 },
		{ "late_size", late_size, 0 },
		{ "late_middle", late_middle, 0 },
		{ "late_rested", late_rested, 0 },
		{ "bare", bare, 0 },
		{ "comes_back_256", comes_back_256, 0 },
		{ "left_256", left_256, 0 },
		{ "unreachable_256", unreachable_256, 0 },
		{ "sharers_256", sharers_256, 0 },
		{ "late_table_256", late_table_256, 0 },
		{ "late_size_256", late_size_256, 0 },
	};

	return ktap_main(argc, argv, cases, KTAP_COUNT(cases));
}
