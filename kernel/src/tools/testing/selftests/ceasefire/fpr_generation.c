// SPDX-License-Identifier: GPL-2.0
/*
 * I1 and the two numbers behind it: only a completed full flush makes a stale
 * frame clean. A partial flush does not, and neither does a full flush that is
 * still on its way to the CPU that holds the translation.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include "context.h"
#include "env.h"
#include "file.h"
#include "ktap.h"
#include "map.h"
#include "peer.h"
#include "stranger.h"

#define PAGES		64
#define OWN		0x5a
#define FILL_MIB	32
/* The flush in flight takes this long at least. */
#define DELAY_MS	1000
/* More than are invalidated one by one. */
#define FLUSHED_PAGES	256
#define ROUNDS		5
/* Whoever else runs on the peer's CPU takes its translations. */
#define FLIGHTS		20
/* Of the generation in a tag. */
#define TAG_GEN_BITS	41

/* Skip at one address, flush a single page at another, give the frames away. */
static void partial_proves_nothing(void)
{
	struct stranger stranger;
	struct tfile f;
	size_t leaked;
	long parks;
	char *p;

	stranger_start(&stranger);
	file_make(&f, ON_TMPFS, PAGES, OWN);
	peer_start(1);
	hold_debts();
	/* Its page tables are there before the skip. */
	partial_flush();
	p = leave_stale(&f, 0, PAGES, PROT_READ, MAP_SHARED, OWN);
	partial_flush();
	partial_flush();
	ENSURE(peer_count(p, PAGES, WORD(OWN)) > 0,
	       "a flush of one page took all translations of the peer");
	parks = vmstat("fpr_park");
	file_drop(&f);
	stranger_fill(&stranger, FILL_ANON, FILL_MIB);
	leaked = peer_count(p, PAGES, WORD(SECRET));
	ENSURE(!leaked, "%zu of %d pages of another process are readable",
	       leaked, PAGES);
	parks = vmstat("fpr_park") - parks;
	ENSURE(parks >= PAGES, "%ld frames parked, %d are stale", parks, PAGES);
	stranger_stop(&stranger);
}

/* After a full flush nothing is stale: the frames need no parking. */
static void full_settles(void)
{
	struct tfile f;
	long parks;
	char *p;

	file_make(&f, ON_TMPFS, PAGES, OWN);
	peer_start(1);
	hold_debts();
	p = leave_stale(&f, 0, PAGES, PROT_READ, MAP_SHARED, OWN);
	full_flush();
	ENSURE(peer_count(p, PAGES, FAULTED) == PAGES,
	       "stale translations survived a full flush");
	parks = vmstat("fpr_park");
	file_drop(&f);
	parks = vmstat("fpr_park") - parks;
	ENSURE(!parks, "%ld frames parked that no CPU can reach", parks);
}

static bool flush_now, flush_done;

/*
 * MADV_DONTNEED of many pages holds mmap_lock for reading only. If the flush held it
 * for writing, one lost translation would make the peer wait in a fault until the
 * flush is over, and then all are lost.
 */
static void *flusher(void *unused)
{
	size_t length = FLUSHED_PAGES * PAGE;
	char *p = mmap(NULL, length, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)unused;
	ENSURE(p != MAP_FAILED, "mmap: %m");
	pin_to_cpu(2);
	for (;;) {
		memset(p, OWN, length);
		while (!__atomic_load_n(&flush_now, __ATOMIC_ACQUIRE))
			sleep_ms(1);
		__atomic_store_n(&flush_now, false, __ATOMIC_RELEASE);
		/* A range is flushed by those who have used it. */
		if (context_has_sharers() == 1)
			full_flush();
		else
			MUST(madvise(p, length, MADV_DONTNEED));
		__atomic_store_n(&flush_done, true, __ATOMIC_RELEASE);
	}
	return NULL;
}

/*
 *   CPU 0                 CPU 1 (peer)          CPU 2
 *   munmap, skips         holds the pages
 *                                               full flush is requested
 *   frees the frames,
 *   a stranger takes them
 *                         must not read them
 *                         interrupt: flushes
 *                                               full flush is complete
 *
 * The debug kernel waits between the request and the interrupts.
 */
static void in_flight(void)
{
	struct stranger stranger;
	struct tfile f;
	pthread_t t;
	int round;

	need_cpus(3);
	stranger_start(&stranger);
	file_make(&f, ON_TMPFS, PAGES, OWN);
	peer_start(1);
	hold_debts();
	ENSURE(!pthread_create(&t, NULL, flusher, NULL), "no thread");
	for (round = 0; round < FLIGHTS; round++) {
		char *p = leave_stale(&f, 0, PAGES, PROT_READ, MAP_SHARED, OWN);
		size_t held, leaked;
		long parks = vmstat("fpr_park");
		double end;

		__atomic_store_n(&flush_done, false, __ATOMIC_RELEASE);
		fpr_flush_delay(DELAY_MS);
		__atomic_store_n(&flush_now, true, __ATOMIC_RELEASE);
		sleep_ms(DELAY_MS / 10);
		file_drop(&f);
		/* Who still reads them now held them when they were freed. */
		held = PAGES - peer_count(p, PAGES, FAULTED);
		stranger_fill(&stranger, FILL_ANON, 1);
		leaked = peer_count(p, PAGES, WORD(SECRET));
		parks = vmstat("fpr_park") - parks;
		fpr_flush_delay(0);
		end = seconds() + 60;
		while (!__atomic_load_n(&flush_done, __ATOMIC_ACQUIRE)) {
			ENSURE(seconds() < end, "the flush does not end");
			sleep_ms(1);
		}
		ktap_note("round %d: %zu held, %ld parked", round, held, parks);
		ENSURE(!leaked, "%zu of %d pages of another process are readable",
		       leaked, PAGES);
		ENSURE(!held || parks >= PAGES,
		       "%ld frames parked while the peer held %zu", parks,
		       held);
		ENSURE(peer_count(p, PAGES, FAULTED) == PAGES,
		       "stale translations survived a full flush");
		/* Each of them is one that could have leaked. */
		if (held >= PAGES / 4)
			break;
		file_fill(&f, 0, PAGES, OWN);
	}
	ENSURE(round < FLIGHTS, "the flush was never in flight");
	stranger_stop(&stranger);
}

/*
 * A process whose generations do not fit into a tag any more: a tag that cuts
 * them off looks old, and the frames clean.
 */
static void too_large(void)
{
	long skips = vmstat("fpr_skip"), flushes;
	struct stranger stranger;
	struct tfile f;
	int round;

	fpr_first_generation(1UL << TAG_GEN_BITS);
	stranger_start(&stranger);
	file_make(&f, ON_TMPFS, PAGES, OWN);
	peer_start(1);
	hold_debts();
	flushes = vmstat("fpr_flush_tags");
	/* The first munmap may flush for want of hooks, the next of tags. */
	for (round = 0; round < ROUNDS; round++) {
		char *p = fpr_map(&f, 0, PAGES, PROT_READ, MAP_SHARED);
		size_t leaked;

		peer_touch(p, PAGES);
		MUST(munmap(p, PAGES * PAGE));
		file_drop(&f);
		stranger_fill(&stranger, FILL_ANON, FILL_MIB / ROUNDS);
		leaked = peer_count(p, PAGES, WORD(SECRET));
		ENSURE(!leaked, "%zu of %d pages of another process are readable",
		       leaked, PAGES);
		file_fill(&f, 0, PAGES, OWN);
		sleep_ms(100);
	}
	ENSURE(vmstat("fpr_skip") == skips, "a munmap skipped its flush");
	flushes = vmstat("fpr_flush_tags") - flushes;
	ENSURE(flushes > 1, "%ld munmaps flushed for their tags", flushes);
	stranger_stop(&stranger);
}

int main(int argc, char **argv)
{
	static const struct ktap_case cases[] = {
		{ "partial_proves_nothing", partial_proves_nothing, 0 },
		{ "full_settles", full_settles, 0 },
		{ "in_flight", in_flight, 300 },
		{ "too_large", too_large, 0 },
	};

	return ktap_main(argc, argv, cases, KTAP_COUNT(cases));
}
