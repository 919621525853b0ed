// SPDX-License-Identifier: GPL-2.0
/*
 * A copy of a morsel is what that was at one moment (M12): against CPUs that have the origin's
 * pages cached, threads that write meanwhile, pins, and others who give back what is shared.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "env.h"
#include "file.h"
#include "ktap.h"
#include "map.h"
#include "morsels.h"
#include "peer.h"
#include "ring.h"
#include "worker.h"

#define BOTH	(PROT_READ | PROT_WRITE)
#define OWN	WORD(0x5a)
#define OTHER	WORD(0x33)
#define PAGES	8
#define DELAY_MS	400

#define units	morsel_units
#define UNITS	morsel_nr_units()

static int origin;
static char *p;

static void start(uint64_t unit)
{
	need_cpus(3);
	pin_to_cpu(0);
	peer_start(1);
	origin = morsel_make_of(unit, unit);
	p = morsel_map(origin, unit, BOTH);
	morsel_fill(p, PAGES, OWN);
}

/* The peer can write by what its CPU has; it does, when the copy is ready. */
static void written_later_of(uint64_t unit)
{
	char *q;
	int copy;

	start(unit);
	ENSURE(peer_write(p, PAGES, OWN) == PAGES, "the peer cannot write");
	copy = morsel_copy(origin);
	q = morsel_map(copy, unit, BOTH);
	ENSURE(peer_write(p, PAGES, OTHER) == PAGES, "the peer cannot write");
	ENSURE(morsel_count(q, PAGES, OWN) == PAGES,
	       "%zu of %d pages of the copy are as they were",
	       morsel_count(q, PAGES, OWN), PAGES);
	ENSURE(morsel_count(p, PAGES, OTHER) == PAGES, "the origin has not got it");
}

static void written_later_small(void)
{
	written_later_of(UNIT);
}

static void written_later(void)
{
	written_later_of(GIB);
}

/* Another CPU has read what is shared: it sees what is written, at once. */
static void seen_of(uint64_t unit)
{
	int copy;

	start(unit);
	copy = morsel_copy(origin);
	/* Its table of pages is its own from here on. */
	morsel_fill(p + PAGES * PAGE, 1, OTHER);
	peer_touch(p, PAGES);
	morsel_fill(p, PAGES, OTHER);
	ENSURE(peer_count(p, PAGES, OTHER) == PAGES,
	       "the peer still reads %zu of %d pages as they were",
	       peer_count(p, PAGES, OWN), PAGES);
	close(copy);
}

static void seen_small(void)
{
	seen_of(UNIT);
}

static void seen(void)
{
	seen_of(GIB);
}

/* Debug builds: time after each table that is shared; skips without. */
static void copy_delay(unsigned int ms)
{
	char text[30];

	snprintf(text, sizeof(text), "%u", ms * 1000);
	if (!write_text("/sys/kernel/debug/ceasefire/copy_delay_us", text))
		ktap_skip("no delays: boot the debug kernel");
}

static atomic_int copied;

static void copy_it(void *unused)
{
	(void)unused;
	copied = morsel_copy(origin);
}

/*
 * Two writes, one after the other, the second by what the CPU has cached, while the copy has come
 * between both: the copy has not the second one only. The tables of the first and the second 2 MiB
 * are shared by then, that of the third is not.
 */
static void in_order(char *first)
{
	char *second = p + 2 * UNIT, *q;
	uint64_t before = probe_read(first);
	struct worker other;
	bool early;

	worker_start(&other, 2, NULL);
	/* It is not to write by what it has cached of the others. */
	MUST(mprotect(p, GIB, PROT_READ));
	MUST(mprotect(p, GIB, BOTH));
	*(volatile uint64_t *)second = OWN;
	copy_delay(DELAY_MS);
	worker_begin(&other, copy_it, NULL);
	sleep_ms(DELAY_MS * 3 / 2);
	*(volatile uint64_t *)first = OTHER;
	*(volatile uint64_t *)second = OTHER;
	early = !copied;
	worker_end(&other);
	copy_delay(0);
	q = morsel_map(copied, GIB, BOTH);
	ENSURE(probe_read(first) == OTHER && probe_read(second) == OTHER,
	       "the origin has lost a write");
	ENSURE(probe_read(q + (first - p)) == OTHER || probe_read(q + 2 * UNIT) == OWN,
	       "the copy has the second write, and not the first");
	ENSURE(probe_read(q + (first - p)) == before ||
	       probe_read(q + (first - p)) == OTHER, "the copy has other data");
	PREMISE(!early && probe_read(q + (first - p)) != OTHER,
		"it was not copied at that moment");
}

static void start_tables(void)
{
	start(GIB);
	morsel_fill(p + UNIT, 1, OWN);
	morsel_fill(p + 2 * UNIT, 1, OWN);
}

/* The first one to a page that is there. */
static void order(void)
{
	start_tables();
	in_order(p + UNIT);
}

/* To one that is not, in a table that is there. */
static void order_hole(void)
{
	start_tables();
	ENSURE(!morsel_depopulate(origin, UNIT, PAGE), "depopulate");
	in_order(p + UNIT);
}

/* Where there is no table, either. */
static void order_no_table(void)
{
	start_tables();
	ENSURE(!morsel_depopulate(origin, 0, UNIT), "depopulate");
	/* That one has none, and there is one before it, so that as many are shared by then. */
	morsel_fill(p + 3 * UNIT, 1, OWN);
	ENSURE(!morsel_depopulate(origin, UNIT, UNIT), "depopulate");
	morsel_fill(p, 1, OWN);
	in_order(p + UNIT);
}

/* All that a thread writes again and again, one page after the other. */
static atomic_bool ends;
static char *all;
static size_t step;
#define ROUND	64

static void write_rounds(void *unused)
{
	uint64_t round;
	size_t i;

	(void)unused;
	for (round = 1; !atomic_load(&ends); round++)
		for (i = 0; i < ROUND; i++)
			*(volatile uint64_t *)(all + i * step) = round;
}

/* Each copy is somewhere in a round: first pages of it, then pages of the one before. */
static void snapshots_of(uint64_t unit, size_t apart)
{
	double end = seconds_until_end(4) - seconds();
	struct worker other;
	size_t i, copies = 0, within = 0;

	need_cpus(2);
	pin_to_cpu(0);
	origin = morsel_make_of(unit, unit);
	all = morsel_map(origin, unit, BOTH);
	step = apart;
	atomic_store(&ends, false);
	worker_start(&other, 1, NULL);
	worker_begin(&other, write_rounds, NULL);
	end = seconds() + end / 2;
	while (seconds() < end) {
		int copy = morsel_copy(origin);
		char *q = morsel_map(copy, unit, PROT_READ);
		uint64_t first = *(uint64_t *)q, last = first;

		for (i = 0; i < ROUND; i++) {
			uint64_t word = *(uint64_t *)(q + i * step);

			ENSURE(word <= last && word + 1 >= first,
			       "copy %zu: page %zu has %llu behind %llu", copies, i,
			       (unsigned long long)word, (unsigned long long)last);
			last = word;
		}
		within += first != last;
		copies++;
		close(copy);
		MUST(munmap(q, unit));
	}
	atomic_store(&ends, true);
	worker_end(&other);
	worker_stop(&other);
	ktap_note("%zu copies, %zu of them in the middle of a round", copies, within);
	PREMISE(within, "no copy was made while a round was written");
	close(origin);
	MUST(munmap(all, unit));
}

static void snapshots(void)
{
	snapshots_of(UNIT, UNIT / ROUND);
	snapshots_of(GIB, UNIT / 8);
}

/* Who has pinned a page writes to it without an entry: to the origin, whose memory it is. */
static void pinned(void)
{
	size_t i;

	for (i = 0; i < UNITS; i++) {
		char *q;
		struct tfile file;
		struct ring ring;
		int copy;

		file_make(&file, ON_TMPFS, PAGES, 0x33);
		origin = morsel_make_of(units[i], units[i]);
		p = morsel_map(origin, units[i], BOTH);
		morsel_fill(p, PAGES, OWN);
		ring_pin(&ring, p, PAGES * PAGE);
		copy = morsel_copy(origin);
		q = morsel_map(copy, units[i], BOTH);
		ENSURE(morsel_count(q, PAGES, OWN) == PAGES, "the copy has other data");
		ring_read(&ring, file.fd, p, PAGES * PAGE);
		ENSURE(morsel_count(q, PAGES, OWN) == PAGES,
		       "unit %zu: %zu pages of the copy were written to", i,
		       PAGES - morsel_count(q, PAGES, OWN));
		ENSURE(morsel_count(p, PAGES, OTHER) == PAGES,
		       "unit %zu: the origin has lost what was read", i);
		/* It has not moved when it is written to, either. */
		morsel_fill(p, PAGES, OWN);
		ring_read(&ring, file.fd, p, PAGES * PAGE);
		ENSURE(morsel_count(p, PAGES, OTHER) == PAGES,
		       "unit %zu: the pin is of another page", i);
		ring_close(&ring);
		close(copy);
		close(origin);
		MUST(munmap(p, units[i]));
		MUST(munmap(q, units[i]));
		close(file.fd);
	}
}

/* It has unmapped it since. */
static void pinned_before(void)
{
	struct tfile file;
	struct ring ring;
	int copy;
	char *q;

	file_make(&file, ON_TMPFS, PAGES, 0x33);
	origin = morsel_make_of(GIB, GIB);
	p = morsel_map(origin, GIB, BOTH);
	morsel_fill(p, PAGES, OWN);
	ring_pin(&ring, p, PAGES * PAGE);
	MUST(munmap(p, GIB));
	copy = morsel_copy(origin);
	ring_read(&ring, file.fd, p, PAGES * PAGE);
	q = morsel_map(copy, GIB, BOTH);
	ENSURE(morsel_count(q, PAGES, OWN) == PAGES,
	       "%zu pages of the copy were written to",
	       PAGES - morsel_count(q, PAGES, OWN));
	MUST(munmap(q, GIB));
	q = morsel_map(origin, GIB, BOTH);
	ENSURE(morsel_count(q, PAGES, OTHER) == PAGES,
	       "the origin has lost what was read");
	ring_close(&ring);
}

/* A limit is reached where pages that are pinned are copied, which comes last. */
static void fails_late(void)
{
	struct morsel_geometry g = { .unit = GIB, .base = PAGE,
				     .flags = MORSEL_ALLOW_LAZY };
	long limit = morsel_sysfs("limit"), before;
	int to = (int)MUST(memfd_create("copy", MFD_MORSEL | MFD_CLOEXEC));
	struct ring ring;
	char *q;

	origin = morsel_make_of(GIB, GIB);
	p = morsel_map(origin, GIB, BOTH);
	morsel_fill(p, PAGES, OWN);
	ring_pin(&ring, p, PAGES * PAGE);
	before = morsel_sysfs("pages");
	/* A table above, one of pages, and three pages. */
	morsel_set("limit", before + 5);
	ENSURE(ioctl(to, FICLONE, origin) && errno == ENOMEM, "FICLONE: %m");
	ENSURE(morsel_stat(to).pages == 0, "%llu pages are left",
	       (unsigned long long)morsel_stat(to).pages);
	MUST(fsync(to));
	ENSURE(morsel_sysfs("pages") == before + 1, "%ld pages and tables are left",
	       morsel_sysfs("pages") - before);
	ENSURE(morsel_count(p, PAGES, OWN) == PAGES, "the origin has other data");
	morsel_set("limit", limit);
	morsel_fill(p, 2, OTHER);
	/* It has a layout now, and cannot become a copy again. */
	ENSURE(ioctl(to, MORSEL_IOC_GEOMETRY, &g) && errno == EBUSY, "geometry: %m");
	ENSURE(ioctl(to, FICLONE, origin) && errno == EINVAL, "FICLONE: %m");
	close(to);
	to = morsel_copy(origin);
	q = morsel_map(to, GIB, BOTH);
	ENSURE(morsel_count(q, 2, OTHER) == 2 &&
	       morsel_count(q + 2 * PAGE, PAGES - 2, OWN) == PAGES - 2,
	       "the copy has other data");
	ring_close(&ring);
	MUST(munmap(q, GIB));
	close(to);
	/* It has counted for itself before. */
	ENSURE(morsel_sysfs("pages") == before - 1, "%ld pages are left",
	       morsel_sysfs("pages") - before + 1);
}

static atomic_bool taken;

static void take_all(void *unused)
{
	(void)unused;
	ENSURE(!morsel_depopulate(origin, 0, GIB), "depopulate");
	taken = true;
}

/*
 * The origin gives its tables up, which takes a while until all CPUs know. The copy is the last one
 * who has them, and goes: what the peer can still reach is not free yet.
 */
static void goes_meanwhile(void)
{
	struct worker other;
	double end;
	uint64_t words[PAGES];
	size_t i, held = 0;
	bool early;
	int copy;
	char *q;

	start(GIB);
	worker_start(&other, 2, NULL);
	/* Flushes of processes that have used the flag can be made late. */
	q = mmap(NULL, PAGE, BOTH, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FPR, -1, 0);
	ENSURE(q != MAP_FAILED, "mmap: %m");
	*(volatile char *)q = 1;
	copy = morsel_copy(origin);
	peer_touch(p, PAGES);
	fpr_flush_delay(500);
	worker_begin(&other, take_all, NULL);
	end = seconds() + 60;
	while (frame_of(p))
		ENSURE(seconds() < end, "nothing is taken");
	close(copy);
	peer_read(p, PAGES, words);
	early = !taken;
	fpr_flush_delay(0);
	for (i = 0; i < PAGES; i++) {
		held += words[i] == OWN;
		/* What was freed is poisoned. */
		ENSURE(words[i] == OWN || !words[i],
		       "the peer reads what was freed: %llx",
		       (unsigned long long)words[i]);
	}
	worker_end(&other);
	ENSURE(peer_count(p, PAGES, 0) == PAGES, "no zeroes");
	PREMISE(early && held == PAGES, "the peer was too late");
}

int main(int argc, char **argv)
{
	static const struct ktap_case cases[] = {
		{ "written_later", written_later, 0 },
		{ "written_later_small", written_later_small, 0 },
		{ "seen", seen, 0 },
		{ "seen_small", seen_small, 0 },
		{ "order", order, 0 },
		{ "order_hole", order_hole, 0 },
		{ "order_no_table", order_no_table, 0 },
		{ "snapshots", snapshots, 0 },
		{ "pinned", pinned, 0 },
		{ "pinned_before", pinned_before, 0 },
		{ "fails_late", fails_late, 0 },
		{ "goes_meanwhile", goes_meanwhile, 0 },
	};

	return ktap_main(argc, argv, cases, KTAP_COUNT(cases));
}
