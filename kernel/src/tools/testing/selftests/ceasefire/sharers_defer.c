// SPDX-License-Identifier: GPL-2.0
/*
 * Sharers: what reclaim puts off for many pages is asked of those who have used them
 * (I11), at the end of the batch, or when somebody needs it before that.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "env.h"
#include "file.h"
#include "group.h"
#include "ktap.h"
#include "map.h"
#include "peer.h"
#include "regions.h"

#define PAGES		16
#define LENGTH		(PAGES * PAGE)
#define OWN		0x5a
#define NEW		0x42
#define ROUNDS		20
#define HELD_MS		600
/* Reclaim looks at pages that were used more than once until it takes them. */
#define LONG_HELD_MS	3000

static struct tfile file;

static char *mapped(void)
{
	char *p = mmap(regions(1), LENGTH, PROT_READ, MAP_SHARED | MAP_FIXED,
		       file.fd, 0);

	ENSURE(p != MAP_FAILED, "mmap: %m");
	return p;
}

static void evict(char *p)
{
	MUST(madvise(p, LENGTH, MADV_PAGEOUT));
	PREMISE(!file_cached(&file), "pages of the file stay");
}

/*
 * Who reads a page without an entry has a translation from before. What it reads may be
 * right all the same: the frame may have come back to the file.
 */
static void has_entries(const char *p, size_t pages)
{
	static uint64_t frames[PAGES];
	size_t i;

	frames_of(p, pages, frames);
	for (i = 0; i < pages; i++)
		ENSURE(frames[i], "page %zu was read, and has no entry", i);
}

static void by_batch(void)
{
	long deferred;
	char *p;
	int i;

	file_make(&file, ON_DISK, PAGES, OWN);
	sharers_start();
	p = mapped();
	deferred = vmstat("sharers_defer");
	for (i = 0; i < 4; i++) {
		file_fill(&file, 0, PAGES, i % 2 ? NEW : OWN);
		peer_finds(p, PAGES, WORD(i % 2 ? NEW : OWN));
		has_entries(p, PAGES);
		evict(p);
	}
	ENSURE(vmstat("sharers_defer") >= deferred + 4 * PAGES,
	       "all CPUs were asked");
}

/* Nobody else is interrupted for what one CPU has used. */
static void alone(void)
{
	long received = 0;
	char *p;
	int i;

	file_make(&file, ON_DISK, PAGES, OWN);
	sharers_start();
	p = mapped();
	for (i = 0; i < ROUNDS; i++) {
		ENSURE(*(volatile char *)p == OWN, "wrong data");
		received -= vmstat("nr_tlb_remote_flush_received");
		MUST(madvise(p, LENGTH, MADV_PAGEOUT));
		received += vmstat("nr_tlb_remote_flush_received");
	}
	ENSURE(received < ROUNDS / 2, "%ld shootdowns by %d calls", received,
	       ROUNDS);
}

/* A CPU in lazy mode is not interrupted. */
static void asleep(void)
{
	char *p;
	int i;

	file_make(&file, ON_DISK, PAGES, OWN);
	sleeper_start();
	p = mapped();
	for (i = 0; i < ROUNDS; i++) {
		sleeper_finds(p, WORD(i % 2 ? NEW : OWN));
		has_entries(p, 1);
		evict(p);
		file_fill(&file, 0, PAGES, i % 2 ? OWN : NEW);
	}
}

static struct {
	char *addr;
	bool go, ready;
} other;

static void *evict_other(void *unused)
{
	(void)unused;
	pin_to_cpu(2);
	while (!__atomic_load_n(&other.go, __ATOMIC_ACQUIRE))
		;
	madvise(other.addr, LENGTH, MADV_PAGEOUT);
	return NULL;
}

/*
 * Reclaim waits for the peer, which is held up. Who takes the pages away meanwhile finds
 * no entries, and must wait as well.
 */
static void not_over(void)
{
	pthread_t thread;
	double begin;
	char *p, *q;

	need_cpus(3);
	file_make(&file, ON_DISK, PAGES, OWN);
	sharers_start();
	p = mapped();
	q = regions(1);
	memset(q, OWN, PAGE);
	other.addr = p;
	ENSURE(!pthread_create(&thread, NULL, evict_other, NULL), "no thread");
	sleep_ms(50);
	peer_finds(p, PAGES, WORD(OWN));
	/* In a region where it has not been. */
	sharers_fill_delay(HELD_MS);
	begin = seconds();
	peer_begin_watch(q, 1, WORD(OWN));
	sleep_ms(50);
	__atomic_store_n(&other.go, true, __ATOMIC_RELEASE);
	sleep_ms(50);
	MUST(madvise(p, LENGTH, MADV_DONTNEED));
	begin = seconds() - begin;
	sharers_fill_delay(0);
	peer_end_watch();
	pthread_join(thread, NULL);
	PREMISE(!file_cached(&file), "pages of the file stay");
	/* It cannot have answered before. */
	ENSURE(begin > HELD_MS / 1000.0 * 0.75,
	       "it took %.0f ms, while a CPU may have had the pages",
	       begin * 1000);
}

static void *reclaim_group(void *unused)
{
	(void)unused;
	pin_to_cpu(2);
	/* All that it uses it has used before: nothing holds it up later. */
	group_reclaim(0);
	__atomic_store_n(&other.ready, true, __ATOMIC_RELEASE);
	while (!__atomic_load_n(&other.go, __ATOMIC_ACQUIRE))
		;
	group_reclaim(LENGTH);
	return NULL;
}

/*
 * The same of a control group, whose reclaim holds no lock of the process. mprotect() finds
 * no entries that it would have to flush for.
 */
static void by_group(void)
{
	long deferred, cleared;
	pthread_t thread;
	double begin, took;
	char *p, *q;

	need_cpus(3);
	group_start();
	file_make(&file, ON_DISK, PAGES, OWN);
	group_leave();
	sharers_start();
	p = mapped();
	q = regions(1);
	memset(q, OWN, PAGE);
	ENSURE(!pthread_create(&thread, NULL, reclaim_group, NULL), "no thread");
	while (!__atomic_load_n(&other.ready, __ATOMIC_ACQUIRE))
		sleep_ms(1);
	peer_finds(p, PAGES, WORD(OWN));
	/* Pages that wait in lists of a CPU are not looked at by reclaim. */
	ENSURE(write_text("/proc/sys/vm/drop_caches", "1"), "drop_caches: %m");
	deferred = vmstat("sharers_defer") + PAGES;
	sharers_fill_delay(LONG_HELD_MS);
	begin = seconds();
	peer_begin_watch(q, 1, WORD(OWN));
	sleep_ms(50);
	__atomic_store_n(&other.go, true, __ATOMIC_RELEASE);
	do
		cleared = vmstat("sharers_defer");
	while (cleared < deferred && seconds() - begin < LONG_HELD_MS / 2000.0);
	MUST(mprotect(p, LENGTH, PROT_NONE));
	took = seconds() - begin;
	sharers_fill_delay(0);
	peer_end_watch();
	pthread_join(thread, NULL);
	PREMISE(cleared >= deferred, "reclaim has not taken the pages");
	ENSURE(took > LONG_HELD_MS / 1000.0 * 0.9,
	       "it took %.0f ms, while a CPU may have had the pages",
	       took * 1000);
}

int main(int argc, char **argv)
{
	static const struct ktap_case cases[] = {
		{ "by_batch", by_batch, 0 },
		{ "alone", alone, 0 },
		{ "asleep", asleep, 0 },
		{ "not_over", not_over, 0 },
		{ "by_group", by_group, 0 },
	};

	return ktap_main(argc, argv, cases, KTAP_COUNT(cases));
}
