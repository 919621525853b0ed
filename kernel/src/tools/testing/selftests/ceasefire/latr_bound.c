// SPDX-License-Identifier: GPL-2.0
/*
 * For how long a CPU can use what a lazy munmap() has left, and for how long
 * memory waits (I9, I6). Limits here are ten times what it takes and more: that
 * what is left goes at all, and by whom, is what the kernel decides.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "context.h"
#include "env.h"
#include "file.h"
#include "ktap.h"
#include "map.h"
#include "peer.h"

#define PAGES	64
#define OWN	0x5a
#define LIMIT_S	20

/* Until the peer can use none of the pages; how long that took, in seconds. */
static double wait_until_settled(char *p)
{
	double start = seconds();

	while (peer_count(p, PAGES, FAULTED) < PAGES)
		ENSURE(seconds() < start + LIMIT_S,
		       "what was unmapped can be used after %d s", LIMIT_S);
	return seconds() - start;
}

/* Stale translations on CPU 1, which runs all the time, as they are left. */
static char *leave_for(unsigned int settle_ms, unsigned int late_ms)
{
	char *p;

	latr_set("settle_ms", settle_ms);
	latr_set("late_ms", late_ms);
	/* What was owed before has other terms. */
	full_flush();
	p = leave_writable(NULL, PAGES, WORD(OWN));
	return p;
}

/* The same of the page of zeroes. */
static char *leave_zeroes(void)
{
	size_t held = 0;
	int tries;

	for (tries = 0; tries < 20; tries++) {
		char *p = fpr_map(NULL, 0, PAGES, PROT_READ | PROT_WRITE,
				  MAP_PRIVATE);

		peer_touch(p, PAGES);
		if (!fpr_unmap(p, PAGES))
			continue;
		held = peer_count(p, PAGES, 0);
		if (holds_enough(held, PAGES))
			return p;
	}
	ktap_retry("%zu of %d stale translations: nothing to attack with", held,
		   PAGES);
}

/* A CPU that ticks needs no interrupt. */
static void by_ticks(void)
{
	long late = vmstat("latr_late"), ticks = vmstat("fpr_tick_flush");
	double took;
	char *p;

	pin_to_cpu(0);
	peer_start(1);
	p = leave_for(500, 60000);
	took = wait_until_settled(p);
	ktap_note("settled after %.1f s", took);
	ENSURE(vmstat("fpr_tick_flush") > ticks, "no tick has flushed");
	ENSURE(vmstat("latr_late") == late, "CPUs were interrupted");
}

/* One that does not is interrupted, for each generation that it has missed. */
static void without_tick(void)
{
	long late = vmstat("latr_late");
	char *p;

	pin_to_cpu(0);
	peer_start(1);
	latr_tickless_cpu(1);
	p = leave_for(20, 60);
	wait_until_settled(p);
	/* What else runs on that CPU for a moment makes it compare. */
	PREMISE(wait_vmstat_above("latr_late", late, 1), "nobody was interrupted");
	ktap_note("%ld interrupts", vmstat("latr_late") - late);
}

/* Entries that lead to no frame of the process: memory that was only read. */
static void only_read(void)
{
	char *p;

	pin_to_cpu(0);
	peer_start(1);
	latr_set("settle_ms", 500);
	latr_set("late_ms", 60000);
	p = leave_zeroes();
	wait_until_settled(p);
}

/* What was owed before the process was lazy says nothing about when it is due. */
static void after_recycling(void)
{
	char *p;

	pin_to_cpu(0);
	peer_start(1);
	MUST(context_lazy(0));
	fpr_set("debt_age_ms", 60000);
	setenv("CEASEFIRE_TEST_MECHANISM", "fpr", 1);
	leave_writable(NULL, PAGES, WORD(OWN));
	setenv("CEASEFIRE_TEST_MECHANISM", "latr", 1);
	MUST(context_lazy(1));
	p = leave_for(500, 60000);
	wait_until_settled(p);
}

/* Anonymous memory waits, and comes back. */
static void memory(void)
{
	pin_to_cpu(0);
	peer_start(1);
	leave_for(2000, 60000);
	ENSURE(fpr_sysfs("parked") >= PAGES / 2, "nothing waits");
	ENSURE(fpr_wait_sysfs_at_most("parked", 0, LIMIT_S),
	       "%ld pages wait after %d s", fpr_sysfs("parked"), LIMIT_S);
}

/*
 * A tick makes that nothing is due and takes a generation, which takes long here. The
 * timer comes in between, and finds nothing to do; all the same it has to be paid.
 */
#define START_ROUNDS	15

static void started_by_tick(void)
{
	int round;

	pin_to_cpu(0);
	peer_start(1);
	fpr_start_delay(40);
	for (round = 0; round < START_ROUNDS; round++) {
		leave_for(20, 60000);
		ENSURE(fpr_wait_sysfs_at_most("parked", 0, LEFT_LIMIT_S),
		       "round %d: %ld pages wait after %d s", round,
		       fpr_sysfs("parked"), LEFT_LIMIT_S);
	}
}

static struct {
	char *pages;
	atomic_int stage;
	size_t seen;
} sleeper;

static void *sleeps(void *unused)
{
	size_t i;

	(void)unused;
	pin_to_cpu(1);
	for (i = 0; i < PAGES; i++)
		probe_read(sleeper.pages + i * PAGE);
	atomic_store(&sleeper.stage, 1);
	while (atomic_load(&sleeper.stage) == 1)
		sleep_ms(2000);
	for (i = 0; i < PAGES; i++)
		sleeper.seen += probe_read(sleeper.pages + i * PAGE) != FAULTED;
	return NULL;
}

/* While the process sleeps there is no tick that looks at it. */
static void asleep(void)
{
	pthread_t thread;

	pin_to_cpu(0);
	latr_set("settle_ms", 500);
	sleeper.pages = fpr_map(NULL, 0, PAGES, PROT_READ | PROT_WRITE,
				MAP_PRIVATE);
	memset(sleeper.pages, OWN, PAGES * PAGE);
	ENSURE(!pthread_create(&thread, NULL, sleeps, NULL), "no thread");
	while (!atomic_load(&sleeper.stage))
		;
	fpr_unmap(sleeper.pages, PAGES);
	atomic_store(&sleeper.stage, 2);
	ENSURE(!pthread_join(thread, NULL), "the thread is lost");
	ENSURE(!sleeper.seen, "%zu of %d pages can be used after the sleep",
	       sleeper.seen, PAGES);
}

int main(int argc, char **argv)
{
	static const struct ktap_case cases[] = {
		{ "by_ticks", by_ticks, 0 },
		{ "without_tick", without_tick, 0 },
		{ "only_read", only_read, 0 },
		{ "after_recycling", after_recycling, 0 },
		{ "memory", memory, 0 },
		{ "started_by_tick", started_by_tick, 300 },
		{ "asleep", asleep, 0 },
	};

	setenv("CEASEFIRE_TEST_MECHANISM", "latr", 1);
	return ktap_main(argc, argv, cases, KTAP_COUNT(cases));
}
