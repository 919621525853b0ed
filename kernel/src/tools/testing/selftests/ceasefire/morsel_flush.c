// SPDX-License-Identifier: GPL-2.0
/*
 * M1 to M5: who maps a morsel never reaches what is no part of it any more, and never has
 * a right that its mapping has not.
 *
 * The peer holds translations, as elsewhere. Others are strangers, which have mappings of the
 * same object and depopulate it.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "checker.h"
#include "ktap.h"
#include "late.h"
#include "map.h"
#include "morsels.h"
#include "peer.h"
#include "stranger.h"
#include "worker.h"

#define OWN	WORD(0x5a)
#define OTHER	WORD(0x33)
#define BOTH	(PROT_READ | PROT_WRITE)
#define PAGES	8

static int shared_fd;

static long depopulate_there(long length)
{
	return morsel_depopulate(shared_fd, 0, (uint64_t)length);
}

/* It has a mapping, too, so that it comes first where mappings are walked. */
static char *there;

static long map_there(long length)
{
	/* Not where the peer is, which would lose what it holds. */
	pin_to_cpu(0);
	there = mmap(NULL, (size_t)length, BOTH, MAP_SHARED, shared_fd, 0);
	if (there == MAP_FAILED)
		return -errno;
	morsel_fill(there, 1, OTHER);
	return 0;
}

/* The peer has used it, and so its CPU holds it. */
static void peer_holds(char *p, uint64_t word)
{
	morsel_fill(p, PAGES, word);
	peer_touch(p, PAGES);
	ENSURE(peer_count(p, PAGES, word) == PAGES, "the peer does not read it");
}

/* Not one of them is what it was. */
static void peer_finds_none(const char *p, uint64_t word)
{
	size_t left;

	checker_forbid(p, PAGES);
	left = peer_count(p, PAGES, word);
	checker_allow(p, PAGES);
	ENSURE(!left, "the peer still finds %zu of %d pages", left, PAGES);
}

static void start(void)
{
	need_cpus(2);
	pin_to_cpu(0);
	peer_start(1);
}

/*
 * At an address whose tables of the process stay, since something else is beside it: no
 * other flush comes for them.
 */
static char *map_beside(int fd, size_t unit)
{
	/* What the table of the entry stands for. The root is always there. */
	size_t room = unit < morsel_units[morsel_nr_units() - 1] ? 512 * unit : unit;
	char *p = morsel_room(room, room) + (room == unit ? 0 : 2 * unit);

	p = mmap(p, unit, BOTH, MAP_SHARED | MAP_FIXED, fd, 0);
	ENSURE(p != MAP_FAILED, "mmap: %m");
	return p;
}

static void unmapped_of(size_t unit)
{
	int fd = morsel_make_of(unit, unit);
	char *p;

	start();
	p = map_beside(fd, unit);
	peer_holds(p, OWN);
	MUST(munmap(p, unit));
	peer_finds_none(p, OWN);
	ENSURE(peer_count(p, PAGES, FAULTED) == PAGES, "something is there");
}

static void unmapped(void)
{
	unmapped_of(UNIT);
}

static void unmapped_gib(void)
{
	unmapped_of(GIB);
}

static void unmapped_512(void)
{
	unmapped_of(512 * GIB);
}

static void unmapped_256(void)
{
	morsel_need_256_tib();
	unmapped_of(256 * TIB);
}

static void moved(void)
{
	int fd = morsel_make_of(GIB, GIB);
	char *p, *q;

	start();
	p = map_beside(fd, GIB);
	peer_holds(p, OWN);
	q = mremap(p, GIB, GIB, MREMAP_MAYMOVE | MREMAP_FIXED, p + 2 * GIB);
	ENSURE(q == p + 2 * GIB, "mremap: %m");
	ENSURE(peer_count(p, PAGES, FAULTED) == PAGES,
	       "the peer finds something where it was");
	ENSURE(peer_count(q, PAGES, OWN) == PAGES, "not where it is");
}

static void depopulated_of(size_t unit, uint64_t length)
{
	int fd = morsel_make_of(unit, unit);
	char *p;

	start();
	p = morsel_map(fd, unit, BOTH);
	peer_holds(p, OWN);
	ENSURE(!morsel_depopulate(fd, 0, length), "depopulate");
	peer_finds_none(p, OWN);
	ENSURE(peer_count(p, PAGES, 0) == PAGES, "no zeroes");
}

/* Page by page; and the table of them. */
static void depopulated(void)
{
	depopulated_of(UNIT, PAGES * PAGE);
}

static void table_cut(void)
{
	depopulated_of(GIB, UNIT);
}

static void table_cut_512(void)
{
	depopulated_of(512 * GIB, UNIT);
}

static void table_cut_256(void)
{
	morsel_need_256_tib();
	depopulated_of(256 * TIB, UNIT);
}

/* By another process, which has a mapping of its own that comes first. */
static void depopulated_there(void)
{
	struct stranger other;
	char *p;

	shared_fd = morsel_make_of(GIB, GIB);
	stranger_start(&other);
	ENSURE(!stranger_call(&other, map_there, GIB), "not mapped there");
	start();
	p = morsel_map(shared_fd, GIB, BOTH);
	peer_holds(p, OWN);
	ENSURE(!stranger_call(&other, depopulate_there, UNIT), "depopulate");
	peer_finds_none(p, OWN);
	/* What was freed is poisoned: anything but zeroes is wrong. */
	ENSURE(peer_count(p, PAGES, 0) == PAGES, "no zeroes");
	stranger_stop(&other);
}

/* What was taken away is somebody else's, who sees no write. */
static void reused(void)
{
	int fd = morsel_make_of(GIB, GIB);
	struct stranger other;
	size_t i, writes;
	char *p;

	stranger_start(&other);
	start();
	p = morsel_map(fd, GIB, BOTH);
	for (i = 0; i < 20; i++) {
		peer_holds(p, OWN);
		ENSURE(!morsel_depopulate(fd, 0, UNIT), "depopulate");
		stranger_fill(&other, FILL_ANON, 4);
		writes = peer_write(p, PAGES, OTHER);
		ENSURE(writes == PAGES, "the peer cannot write");
		ENSURE(morsel_count(p, PAGES, OTHER) == PAGES,
		       "it has written elsewhere");
	}
	stranger_stop(&other);
}

/* Each process once, however many mappings and ranges. */
static void once(void)
{
	int fd = morsel_make_of(GIB, GIB), i;
	struct morsel_range ranges[64];
	long flushes, received;
	char *p[4];

	start();
	for (i = 0; i < 4; i++)
		p[i] = morsel_map(fd, GIB, BOTH);
	ENSURE(!morsel_populate(fd, 0, 64 * UNIT), "populate");
	for (i = 0; i < 64; i++)
		ranges[i] = (struct morsel_range){ i * UNIT + i * PAGE, PAGE };
	for (i = 0; i < 4; i++)
		peer_touch(p[i], PAGES);
	flushes = (long)morsel_stat(fd).flushes;
	received = vmstat("nr_tlb_remote_flush_received");
	ENSURE(!morsel_vector(fd, MORSEL_IOC_DEPOPULATE, ranges, 64, NULL),
	       "depopulate");
	received = vmstat("nr_tlb_remote_flush_received") - received;
	flushes = (long)morsel_stat(fd).flushes - flushes;
	ENSURE(flushes == 1, "%ld flushes of one process", flushes);
	ENSURE(received <= 2, "%ld interrupts", received);
	ENSURE(morsel_stat(fd).cuts == 64, "%llu cuts",
	       (unsigned long long)morsel_stat(fd).cuts);
}

static atomic_bool all_taken;

static void take_all(void *arg)
{
	(void)arg;
	ENSURE(!morsel_depopulate(shared_fd, 0, PAGES * PAGE), "depopulate");
	atomic_store(&all_taken, true);
}

/*
 * Who comes second finds nothing to take, and may not say so before the first one has flushed.
 *
 * The flush has its number long before it is carried out. Each thread of the kernel that runs on
 * the peer's CPU meanwhile makes it catch up, so the peer looks as soon as the pages are cut.
 */
static void two_at_once(void)
{
	struct worker other;
	double end;
	bool before;
	char *p, *q;

	need_cpus(3);
	start();
	worker_start(&other, 2, NULL);
	shared_fd = morsel_make_of(GIB, GIB);
	p = morsel_map(shared_fd, GIB, BOTH);
	/* Flushes of processes that have used the flag can be made late. */
	q = mmap(NULL, PAGE, BOTH, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FPR, -1, 0);
	ENSURE(q != MAP_FAILED, "mmap: %m");
	*(volatile char *)q = 1;
	peer_holds(p, OWN);
	fpr_flush_delay(500);
	worker_begin(&other, take_all, NULL);
	end = seconds() + 60;
	while (frame_of(p + (PAGES - 1) * PAGE))
		ENSURE(seconds() < end, "no page is taken");
	before = !atomic_load(&all_taken);
	ENSURE(!morsel_depopulate(shared_fd, 0, PAGES * PAGE), "depopulate");
	peer_finds_none(p, OWN);
	fpr_flush_delay(0);
	worker_end(&other);
	PREMISE(before, "the other one was too fast");
}

static void protected(void)
{
	const uint64_t *units = morsel_units;
	size_t i;

	start();
	for (i = 0; i < morsel_nr_units(); i++) {
		int fd = morsel_make_of(units[i], units[i]);
		char *p = morsel_map(fd, units[i], BOTH);

		peer_holds(p, OWN);
		MUST(mprotect(p, units[i], PROT_READ));
		ENSURE(!peer_write(p, PAGES, OTHER), "the peer writes");
		ENSURE(peer_count(p, PAGES, OWN) == PAGES, "other data");
		MUST(mprotect(p, units[i], BOTH));
		ENSURE(peer_write(p, PAGES, OTHER) == PAGES, "it cannot write");
		MUST(mprotect(p, units[i], PROT_NONE));
		ENSURE(peer_count(p, PAGES, FAULTED) == PAGES, "it reads");
		MUST(munmap(p, units[i]));
		close(fd);
	}
}

/* Two mappings of one process, of which one cannot write; each kind of attach entry. */
static void read_only(void)
{
	const uint64_t *units = morsel_units;
	size_t i;

	for (i = 0; i < morsel_nr_units(); i++) {
		int fd = morsel_make_of(units[i], units[i]);
		char *p = morsel_map(fd, units[i], BOTH), *q, *r;

		q = morsel_map(fd, units[i], PROT_READ);
		r = morsel_map(morsel_reader(fd), units[i], PROT_READ);
		morsel_fill(p, PAGES, OWN);
		ENSURE(probe_read(q) == OWN && probe_read(r) == OWN, "no data");
		ENSURE(!probe_write(q, OTHER) && !probe_write(r, OTHER),
		       "a read-only mapping is written to");
		ENSURE(mprotect(r, units[i], BOTH) && errno == EACCES,
		       "a reader gets the right to write: %m");
		ENSURE(probe_write(p, OTHER) && probe_read(q) == OTHER,
		       "the other one cannot be written to");
		close(fd);
	}
}

#define DELAY_MS	800

/* The table goes between the moment it was found and the one when it is locked (M2). */
static void fault_against_cut(void)
{
	int fd = morsel_make_of(GIB, GIB);
	char *p = morsel_map(fd, GIB, BOTH);
	struct late l;

	morsel_fill(p, 1, OTHER);
	late_begin(&l, late_write, p + PAGE, DELAY_MS);
	ENSURE(!morsel_depopulate(fd, 0, UNIT), "depopulate");
	ENSURE(late_end(&l) == 1 && probe_read(l.at) == OWN, "the write is lost");
	ENSURE(morsel_stat(fd).pages == 1, "%llu pages, one of them nowhere",
	       (unsigned long long)morsel_stat(fd).pages);
}

/* The same, and the table is freed before it is locked (M4). */
static void fault_against_free(void)
{
	int fd = morsel_make_of(GIB, GIB);
	char *p = morsel_map(fd, GIB, BOTH);
	struct late l;

	morsel_fill(p, 1, OTHER);
	late_begin(&l, late_write, p + PAGE, 4 * DELAY_MS);
	ENSURE(!morsel_depopulate(fd, 0, UNIT), "depopulate");
	/* The table waits for a second. */
	sleep_ms(1700);
	ENSURE(late_end(&l) == 1 && probe_read(l.at) == OWN, "the write is lost");
}

/* The object gets smaller at that moment: nothing is to come behind its end. */
static void fault_against_size(void)
{
	size_t units[] = { UNIT, GIB }, i;

	for (i = 0; i < 2; i++) {
		int fd = morsel_make_of(UNIT, units[i]);
		char *p = morsel_map(fd, units[i], BOTH);
		struct late l;

		morsel_fill(p, 1, OTHER);
		late_begin(&l, late_write, p + 100 * PAGE, DELAY_MS);
		MUST(ftruncate(fd, 10 * PAGE));
		ENSURE(late_end(&l) == -1, "it has written behind the end");
		ENSURE(morsel_stat(fd).pages == 1, "%llu pages",
		       (unsigned long long)morsel_stat(fd).pages);
	}
}

int main(int argc, char **argv)
{
	static const struct ktap_case cases[] = {
		{ "unmapped", unmapped, 0 },
		{ "unmapped_gib", unmapped_gib, 0 },
		{ "unmapped_512", unmapped_512, 0 },
		{ "unmapped_256", unmapped_256, 0 },
		{ "moved", moved, 0 },
		{ "depopulated", depopulated, 0 },
		{ "two_at_once", two_at_once, 0 },
		{ "table_cut", table_cut, 0 },
		{ "table_cut_512", table_cut_512, 0 },
		{ "table_cut_256", table_cut_256, 0 },
		{ "depopulated_there", depopulated_there, 0 },
		{ "reused", reused, 0 },
		{ "once", once, 0 },
		{ "protected", protected, 0 },
		{ "read_only", read_only, 0 },
		{ "fault_against_cut", fault_against_cut, 0 },
		{ "fault_against_free", fault_against_free, 0 },
		{ "fault_against_size", fault_against_size, 0 },
	};

	return ktap_main(argc, argv, cases, KTAP_COUNT(cases));
}
