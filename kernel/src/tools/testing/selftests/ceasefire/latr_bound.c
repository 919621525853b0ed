// SPDX-License-Identifier: GPL-2.0
/*
 * For how long a CPU can use what a lazy munmap() has left, and for how long
 * memory waits (I9, I6). Limits here are ten times what it takes and more: that
 * what is left goes at all, and by whom, is what the kernel decides.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
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
#include "stranger.h"

#define PAGES	64
#define OWN	0x5a
#define LIMIT_S	20
/* For what does not come at all, where it usually takes part of a second. */
#define STUCK_S	100

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

/* Owed is enough, the peer may have lost what it held. */
static void owe_for(unsigned int settle_ms, unsigned int late_ms)
{
	int tries;

	latr_set("settle_ms", settle_ms);
	latr_set("late_ms", late_ms);
	full_flush();
	for (tries = 0; tries < 20; tries++) {
		char *p = fpr_map(NULL, 0, PAGES, PROT_READ | PROT_WRITE,
				  MAP_PRIVATE);

		memset(p, OWN, PAGES * PAGE);
		peer_touch(p, PAGES);
		if (fpr_unmap(p, PAGES))
			return;
	}
	ktap_retry("no munmap() was lazy: nothing is owed");
}

/* As leave_for(), of the page of zeroes. */
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
	p = leave_for(200, 600);
	wait_until_settled(p);
	/* What else runs on that CPU for a moment makes it compare. */
	ENSURE_ONCE(wait_vmstat_above("latr_late", late, 1), "nobody was interrupted");
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
	PREMISE(fpr_sysfs("parked") >= PAGES / 2, "nothing waits");
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
		owe_for(20, 60000);
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

/*
 * CPU 1 runs the peer and nothing else: whatever comes in between makes it compare. Work
 * that no CPU is asked for in particular is done on CPU 0, which is idle most of the time.
 */
static void quiet(bool on)
{
	write_text("/sys/devices/virtual/workqueue/cpumask", on ? "1" : "7");
	write_text("/proc/sys/vm/stat_interval", on ? "3600" : "1");
	write_text("/proc/sys/kernel/watchdog", on ? "0" : "1");
}

/*
 * Late CPUs are interrupted @count times as long as @holds, for what was left since. What
 * else makes them compare says nothing.
 */
static void interrupted_often(int count, const atomic_bool *holds,
			      const char *while_what)
{
	long late = vmstat("latr_late") + count;
	double begin = seconds(), end = begin + STUCK_S;
	int rounds = 0;

	/* Long enough for a look at what is left, on a busy machine, too. */
	latr_set("settle_ms", 100);
	latr_set("late_ms", 400);
	for (; vmstat("latr_late") < late; rounds++) {
		char *p = leave_writable(NULL, PAGES, WORD(OWN));

		while (peer_count(p, PAGES, FAULTED) < PAGES &&
		       atomic_load(holds) && seconds() < end)
			sleep_ms(10);
		ENSURE(atomic_load(holds) && seconds() < end,
		       "late CPUs are not interrupted while %s", while_what);
	}
	ktap_note("%d times in %d rounds and %.1f s", count, rounds,
		  seconds() - begin);
}

/* In the stranger: its CPU is in the kernel for long, and no grace period ends. */
static long hold_up(long holds)
{
	double begin;
	char *p;

	pin_to_cpu(2);
	p = fpr_map(NULL, 0, 1, PROT_READ | PROT_WRITE, MAP_PRIVATE);
	*(volatile char *)p = OWN;
	begin = seconds();
	atomic_store((atomic_bool *)holds, true);
	MUST(madvise(p, PAGE, MADV_DONTNEED));
	atomic_store((atomic_bool *)holds, false);
	return (long)((seconds() - begin) * 1000);
}

#define HELD_MS		8000
/* One more for a generation from before, and one for the first. */
#define INTERRUPTS	4

/*
 * The work waits for the first of several generations, which takes a grace period. CPUs
 * that are late for another one are interrupted all the same.
 */
static void late_again(void)
{
	struct stranger other;
	atomic_bool *holds;
	long held;

	need_cpus(3);
	holds = mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ENSURE(holds != MAP_FAILED, "mmap: %m");
	stranger_start(&other);
	pin_to_cpu(0);
	peer_start(1);
	latr_tickless_cpu(1);
	quiet(true);
	wait_until_settled(leave_for(100, 400));
	fpr_flush_delay(HELD_MS);
	stranger_ask(&other, hold_up, (long)holds);
	while (!atomic_load(holds))
		sleep_ms(1);
	sleep_ms(100);
	/* It is not for flushes of this process. */
	fpr_flush_delay(0);
	interrupted_often(INTERRUPTS, holds, "no grace period ends");
	held = stranger_answer(&other);
	stranger_stop(&other);
	quiet(false);
	PREMISE(held > HELD_MS * 9 / 10, "the stranger was held up for %ld ms",
		held);
}

#define CHUNK	256
#define MANY	(8 * CHUNK)
#define TRIES	100
#define FAIR	"/sys/kernel/debug/sched/fair_server/cpu2/"

static struct {
	atomic_bool drains, drained, over;
	int wake[2];
} cpu2;

static void *drain(void *unused)
{
	(void)unused;
	pin_to_cpu(2);
	while (!atomic_load(&cpu2.drains))
		sleep_ms(1);
	write_text("/proc/sys/vm/compact_memory", "1");
	atomic_store(&cpu2.drained, true);
	return NULL;
}

/* Nobody else runs there then. */
static void *hog(void *unused)
{
	struct sched_param parameter = { .sched_priority = 1 };
	char c;

	(void)unused;
	pin_to_cpu(2);
	MUST(sched_setscheduler(0, SCHED_FIFO, &parameter));
	MUST(read(cpu2.wake[0], &c, 1));
	while (!atomic_load(&cpu2.over))
		;
	return NULL;
}

/* Who gives the frames back does not run any more, in the middle of it. */
static void starve_drain(void)
{
	double end = seconds() + LIMIT_S;
	long parked = fpr_sysfs("parked");

	atomic_store(&cpu2.drains, true);
	while (fpr_sysfs("parked") == parked)
		ENSURE(seconds() < end, "nobody drains");
	MUST(write(cpu2.wake[1], "", 1));
	sleep_ms(100);
	parked = fpr_sysfs("parked");
	sleep_ms(100);
	PREMISE(parked && fpr_sysfs("parked") == parked,
		"%ld frames wait, then %ld", parked, fpr_sysfs("parked"));
	ktap_note("%ld frames wait", parked);
}

/* Whoever drains for a process may be kept from running: late CPUs do not go on meanwhile. */
static void drain_starves(void)
{
	pthread_t threads[2];
	int i;

	need_cpus(3);
	pin_to_cpu(0);
	MUST(pipe(cpu2.wake));
	/* Or else the kernel gives others some time. */
	if (!write_text(FAIR "runtime", "0") ||
	    !write_text("/proc/sys/kernel/sched_rt_runtime_us", "-1"))
		ktap_skip("no real-time thread can run alone: %m");
	ENSURE(!pthread_create(&threads[0], NULL, drain, NULL) &&
	       !pthread_create(&threads[1], NULL, hog, NULL), "no thread");
	peer_start(1);
	latr_tickless_cpu(1);
	quiet(true);
	latr_set("held_limit", 1 << 20);
	leave_for(20, 60000);
	/* What flushes all in between begins anew. */
	for (i = 0; i < TRIES && fpr_sysfs("parked") < MANY; i++) {
		char *p = fpr_map(NULL, 0, CHUNK, PROT_READ | PROT_WRITE,
				  MAP_PRIVATE);

		memset(p, OWN, CHUNK * PAGE);
		peer_touch(p, 1);
		fpr_unmap(p, CHUNK);
	}
	PREMISE(fpr_sysfs("parked") >= MANY, "only %ld frames wait",
		fpr_sysfs("parked"));
	starve_drain();
	interrupted_often(INTERRUPTS, &cpu2.drains, "somebody drains");
	PREMISE(!atomic_load(&cpu2.drained), "the drain is over");
	atomic_store(&cpu2.over, true);
	for (i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	quiet(false);
	write_text("/proc/sys/kernel/sched_rt_runtime_us", "950000");
	write_text(FAIR "runtime", "50000000");
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
		{ "late_again", late_again, 300 },
		{ "drain_starves", drain_starves, 300 },
	};

	setenv("CEASEFIRE_TEST_MECHANISM", "latr", 1);
	return ktap_main(argc, argv, cases, KTAP_COUNT(cases));
}
