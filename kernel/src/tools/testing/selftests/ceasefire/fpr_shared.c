// SPDX-License-Identifier: GPL-2.0
/*
 * I1 for frames that several processes hold: web servers with workers, readers
 * of one database, parallel searches. What one of them settles says nothing
 * about the others.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "context.h"
#include "env.h"
#include "file.h"
#include "ktap.h"
#include "map.h"
#include "peer.h"
#include "stranger.h"

#define PAGES		16
#define OWN		0x5a
#define FILL_MIB	24
/* How long a munmap notes that a frame is shared: enough for two others. */
#define DELAY_MS	3000

#define WORKERS		4
#define WORKER_CYCLES	2000

static struct tfile file;
static long shared_tags;

/* In the second process: hold and leave the pages from @first on. */
static long map_and_unmap(long first)
{
	char *p = mmap(NULL, PAGES * PAGE, PROT_READ, MAP_SHARED | MAP_FPR,
		       file.fd, (off_t)((unsigned long)first * PAGE));
	long i, good = 0;

	if (p == MAP_FAILED)
		return -1;
	for (i = 0; i < PAGES; i++)
		good += probe_read(p + (size_t)i * PAGE) == WORD(OWN);
	munmap(p, PAGES * PAGE);
	return good;
}

static long flush_all(long unused)
{
	(void)unused;
	full_flush();
	return 0;
}

static void second_maps(struct stranger *second, long first)
{
	long skips = vmstat("fpr_skip");
	int tries;

	/* The first ones may flush, see fpr_unmap(). */
	for (tries = 0; tries < 20 && vmstat("fpr_skip") == skips; tries++) {
		if (tries)
			sleep_ms(5);
		ENSURE(stranger_call(second, map_and_unmap, first) == PAGES,
		       "the second process reads wrong data");
	}
	ENSURE(vmstat("fpr_skip") > skips,
	       "no munmap of the second process skipped");
}

/* Let a stranger take memory, look through stale entries. */
static void look_after(struct stranger *stranger, enum fill fill, const char *p)
{
	size_t secrets;

	stranger_fill(stranger, fill, FILL_MIB);
	secrets = peer_count(p, PAGES, WORD(SECRET));
	ENSURE(!secrets, "%zu of %d pages of another process are readable",
	       secrets, PAGES);
	ENSURE(shared_tags >= PAGES,
	       "%ld tags became shared ones, %d frames are", shared_tags,
	       PAGES);
}

static void look(struct stranger *stranger, const char *p)
{
	look_after(stranger, FILL_ANON, p);
}

static char *both_hold(struct stranger *second, struct stranger *stranger,
		       bool second_is_last)
{
	long shared = vmstat("fpr_shared");
	char *p;

	fpr_skip_local();
	file_make(&file, ON_TMPFS, PAGES, OWN);
	stranger_start(second);
	stranger_start(stranger);
	peer_start(1);
	hold_debts();
	if (!second_is_last)
		second_maps(second, 0);
	p = leave_stale(&file, 0, PAGES, PROT_READ, MAP_SHARED, OWN);
	if (second_is_last)
		second_maps(second, 0);
	shared_tags = vmstat("fpr_shared") - shared;
	PREMISE(peer_count(p, PAGES, WORD(OWN)) > 0,
		"the peer holds nothing any more");
	return p;
}

static void second_exits(void)
{
	struct stranger second, stranger;
	char *p = both_hold(&second, &stranger, true);

	stranger_stop(&second);
	file_drop(&file);
	look(&stranger, p);
	stranger_stop(&stranger);
}

static void second_flushes(void)
{
	struct stranger second, stranger;
	char *p = both_hold(&second, &stranger, true);

	stranger_call(&second, flush_all, 0);
	file_drop(&file);
	look(&stranger, p);
	stranger_stop(&stranger);
	stranger_stop(&second);
}

/* The tag is ours; the second process flushes: that does not settle it. */
static void first_was_other(void)
{
	struct stranger second, stranger;
	char *p = both_hold(&second, &stranger, false);

	stranger_call(&second, flush_all, 0);
	file_drop(&file);
	look(&stranger, p);
	stranger_stop(&stranger);
	stranger_stop(&second);
}

static char *second_stale;

static long second_leaves(long cpu)
{
	peer_start((int)cpu);
	second_stale = leave_stale(&file, 0, PAGES, PROT_READ, MAP_SHARED, OWN);
	return 0;
}

static long second_secrets(long unused)
{
	(void)unused;
	return (long)peer_count(second_stale, PAGES, WORD(SECRET));
}

/*
 * Two processes with a peer each, on CPUs of their own; their debts are settled
 * by the drains when the file goes, or by time (@age_ms) before.
 */
static void two_peers_until(long age_ms)
{
	long ages = vmstat("fpr_drain_age"), ticks = vmstat("fpr_tick_flush");
	struct stranger second, stranger;
	long shared, secrets, parks;
	char *p;

	need_cpus(3);
	shared = vmstat("fpr_shared");
	file_make(&file, ON_TMPFS, PAGES, OWN);
	stranger_start(&second);
	stranger_start(&stranger);
	peer_start(1);
	hold_debts();
	p = leave_stale(&file, 0, PAGES, PROT_READ, MAP_SHARED, OWN);
	if (age_ms)
		fpr_set("debt_age_ms", age_ms);
	ENSURE(!stranger_call(&second, second_leaves, 2), "second process");
	shared_tags = vmstat("fpr_shared") - shared;
	if (age_ms) {
		/* Ours was queued with the long time; theirs, the shared one. */
		ENSURE(wait_vmstat_above("fpr_drain_age", ages + 1, 60),
		       "the debts do not get old");
		/* The work that counts it waits for the ticks after that. */
		sleep_ms((unsigned int)age_ms);
	}
	parks = vmstat("fpr_park");
	file_drop(&file);
	parks = vmstat("fpr_park") - parks;
	ENSURE(!age_ms || !parks, "%ld frames were still parked", parks);
	ENSURE(!age_ms || vmstat("fpr_tick_flush") > ticks,
	       "no tick has flushed");
	look(&stranger, p);
	secrets = stranger_call(&second, second_secrets, 0);
	ENSURE(!secrets, "%ld of %d pages of another process are readable in the second one",
	       secrets, PAGES);
	stranger_stop(&stranger);
	stranger_stop(&second);
}

static void two_peers(void)
{
	two_peers_until(0);
}

static void two_peers_age(void)
{
	two_peers_until(4000);
}

/*
 * One large folio, of which two processes hold a part each. The frames wait in
 * the pool of the one that ends; our part is still stale then.
 */
static void parts_of_a_folio(void)
{
	struct stranger second, stranger;
	long parks;
	char *p;

	fpr_skip_local();
	file_make(&file, ON_HUGE, 512, OWN);
	stranger_start(&second);
	stranger_start(&stranger);
	peer_start(1);
	hold_debts();
	shared_tags = PAGES;	/* the folio is, its frames are not */
	second_maps(&second, 0);
	p = leave_stale(&file, 256, PAGES, PROT_READ, MAP_SHARED, OWN);
	parks = vmstat("fpr_park");
	file_drop(&file);
	ENSURE(vmstat("fpr_park") - parks >= 512, "the folio was not parked");
	stranger_stop(&second);
	look_after(&stranger, FILL_HUGE, p);
	stranger_stop(&stranger);
}

static struct tfile page;
static struct { bool unmaps; } *second_state;

static long second_unmaps_late(long cpu)
{
	char *p = mmap(NULL, PAGE, PROT_READ, MAP_SHARED | MAP_FPR, page.fd, 0);

	pin_to_cpu((int)cpu);
	if (p == MAP_FAILED || probe_read(p) != WORD(OWN))
		return -1;
	__atomic_store_n(&second_state->unmaps, true, __ATOMIC_RELEASE);
	return munmap(p, PAGE);
}

/*
 *   we                    second process        both
 *   skip: our tag
 *                         finds it, still owed;
 *                         reads the shared
 *                         generation
 *                                               are flushed, with the next
 *                                               shared generation
 *   map again, skip:
 *   our tag is enough
 *                         stores the old shared
 *                         generation: settled?
 *   drop the page
 *
 * We tag in the name of a group, whose generation the flush of its members leaves
 * as it is; that of a process it takes further. The debug kernel waits between the
 * two steps of the second process.
 */
static void late_shared_tag(void)
{
	struct stranger second, stranger;
	long shared, drains;
	size_t secrets;
	double end;
	char *p;

	need_cpus(3);
	fpr_skip_local();
	second_state = mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ENSURE(second_state != MAP_FAILED, "mmap: %m");
	file_make(&file, ON_TMPFS, PAGES, OWN);
	file_make(&page, ON_TMPFS, 1, OWN);
	stranger_start(&second);
	stranger_start(&stranger);
	peer_start(1);
	hold_debts();
	MUST(context_choose(CONTEXT_CHILDREN));
	/* Frames of both, whose drain will flush both. */
	shared = vmstat("fpr_shared");
	leave_skipped(&file, 0, PAGES);
	second_maps(&second, 0);
	ENSURE(vmstat("fpr_shared") - shared >= PAGES, "nothing is shared");

	do {
		p = fpr_map(&page, 0, 1, PROT_READ, MAP_SHARED);
		peer_touch(p, 1);
	} while (!fpr_unmap(p, 1));
	fpr_tag_delay(DELAY_MS);
	stranger_ask(&second, second_unmaps_late, 2);
	end = seconds() + 60;
	while (!__atomic_load_n(&second_state->unmaps, __ATOMIC_ACQUIRE))
		ENSURE(seconds() < end, "the second process does not unmap");
	sleep_ms(DELAY_MS / 10);
	shared = vmstat("fpr_shared");
	drains = vmstat("fpr_drain_limit");
	fpr_set("pool_limit", 1);
	file_drop(&file);
	ENSURE(wait_vmstat_above("fpr_drain_limit", drains, 60),
	       "the shared frames are not drained");
	ENSURE(peer_count(p, 1, FAULTED), "the flush did not reach the peer");
	fpr_set("pool_limit", 1 << 20);
	p = fpr_map(&page, 0, 1, PROT_READ, MAP_SHARED);
	peer_touch(p, 1);
	fpr_unmap_skips(p, 1);
	ENSURE(vmstat("fpr_shared") == shared,
	       "the second process came too early");
	fpr_tag_delay(0);
	ENSURE(!stranger_answer(&second), "the second process cannot unmap");
	ENSURE(vmstat("fpr_shared") > shared, "the frame is not shared");
	PREMISE(peer_count(p, 1, WORD(OWN)), "the peer holds nothing any more");

	file_drop(&page);
	stranger_fill(&stranger, FILL_ANON, FILL_MIB);
	secrets = peer_count(p, 1, WORD(SECRET));
	ENSURE(!secrets, "a page of another process is readable");
	stranger_stop(&second);
	stranger_stop(&stranger);
}

static int work(void)
{
	int i, k;

	for (i = 0; i < WORKER_CYCLES; i++) {
		char *p = mmap(NULL, PAGES * PAGE, PROT_READ,
			       MAP_SHARED | MAP_FPR, file.fd, 0);

		if (p == MAP_FAILED)
			return 2;
		for (k = 0; k < PAGES; k++) {
			uint64_t word = *(uint64_t *)(p + (size_t)k * PAGE);

			if (word != WORD(OWN))
				return 3;
		}
		munmap(p, PAGES * PAGE);
	}
	return 0;
}

/* Workers on the same file while its pages come and go. */
static void workers(void)
{
	long skips, flushes, shared;
	int i, left = WORKERS, status;

	fpr_skip_local();
	file_make(&file, ON_DISK, PAGES, OWN);
	skips = vmstat("fpr_skip");
	flushes = vmstat("fpr_flush_tags");
	shared = vmstat("fpr_shared");
	for (i = 0; i < WORKERS; i++)
		if (!MUST(fork())) {
			pin_to_cpu(i % online_cpus());
			_exit(work());
		}
	while (left) {
		pid_t done = waitpid(-1, &status, WNOHANG);

		if (done > 0) {
			left--;
			ENSURE(!status, "a worker ended with status %x",
			       (unsigned int)status);
			continue;
		}
		/* Not all of it can go while it is mapped. */
		posix_fadvise(file.fd, 0, 0, POSIX_FADV_DONTNEED);
		sleep_ms(5);
	}
	skips = vmstat("fpr_skip") - skips;
	flushes = vmstat("fpr_flush_tags") - flushes;
	shared = vmstat("fpr_shared") - shared;
	ktap_note("%ld skips, %ld flushes for tags, %ld shared tags", skips,
		  flushes, shared);
	ENSURE(skips > WORKERS * WORKER_CYCLES * 9L / 10, "%ld skips in %d cycles",
	       skips, WORKERS * WORKER_CYCLES);
	ENSURE(flushes < skips / 100, "%ld flushes because of other tags",
	       flushes);
	ENSURE(shared > 0, "no tag was shared");
}

int main(int argc, char **argv)
{
	static const struct ktap_case cases[] = {
		/* First: later ones share frames that they owe for long. */
		{ "two_peers_age", two_peers_age, 0 },
		{ "second_exits", second_exits, 0 },
		{ "second_flushes", second_flushes, 0 },
		{ "first_was_other", first_was_other, 0 },
		{ "two_peers", two_peers, 0 },
		{ "parts_of_a_folio", parts_of_a_folio, 0 },
		{ "late_shared_tag", late_shared_tag, 0 },
		{ "workers", workers, 300 },
	};

	return ktap_main(argc, argv, cases, KTAP_COUNT(cases));
}
