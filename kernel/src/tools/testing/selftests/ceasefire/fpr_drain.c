// SPDX-License-Identifier: GPL-2.0
/*
 * I6: parked frames are bounded in number and in time, can be seen, and are
 * there for everybody before somebody has to wait, to be reclaimed from, or to
 * be killed for memory.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "env.h"
#include "file.h"
#include "host.h"
#include "ktap.h"
#include "map.h"
#include "peer.h"
#include "stranger.h"

#define PAGES		256
#define OWN		0x5a

/* A pool that is worth draining: 32 MiB. */
#define LARGE_POOL	8192

/* One that kswapd leaves alone. */
#define FEW_PAGES	24

/* Ten times what a drain by age takes here. */
#define LIMIT_S		8

/* How often to look in 50 ms whether it was drained. */
#define WAITS		40

static void start(struct tfile *f, size_t pages)
{
	file_make(f, ON_TMPFS, pages, OWN);
	peer_start(1);
	hold_debts();
}

/* Free the pages of the file while they are stale. */
static void free_stale(const struct tfile *f)
{
	leave_skipped(f, 0, f->pages);
	file_drop(f);
}

/* The same where nobody flushes meanwhile: all of them get parked. */
static void park(const struct tfile *f)
{
	long parks = vmstat("fpr_park");

	free_stale(f);
	parks = vmstat("fpr_park") - parks;
	PREMISE(parks >= (long)f->pages * 9 / 10, "%ld of %zu frames parked",
		parks, f->pages);
}

/* The number of parked frames is what was parked and not yet taken. */
static void counted(void)
{
	struct tfile f;
	long parked;

	start(&f, PAGES);
	parked = fpr_sysfs("parked");
	ENSURE(fpr_sysfs("contexts") == 0, "somebody else uses FPR");
	park(&f);
	parked = fpr_sysfs("parked") - parked;
	ENSURE(parked >= PAGES * 9 / 10 && parked <= PAGES,
	       "%ld frames are parked, not %d", parked, PAGES);
	ENSURE(fpr_sysfs("contexts") == 1, "%ld contexts",
	       fpr_sysfs("contexts"));
	/* And two tables of sections, 8 bytes in each for 128 MiB. */
	ENSURE(fpr_sysfs("tag_bytes") > 0 &&
	       fpr_sysfs("tag_bytes") <= host_memory() * (long)(8 * MIB / PAGE) +
					 (long)PAGE,
	       "%ld bytes of tags", fpr_sysfs("tag_bytes"));
}

static void at_limit(void)
{
	long drains = vmstat("fpr_drain_limit"), most = 0;
	struct tfile f;
	int round;

	start(&f, PAGES);
	fpr_set("pool_limit", 2 * PAGES);
	for (round = 0; round < 32; round++) {
		free_stale(&f);
		if (fpr_sysfs("parked") > most)
			most = fpr_sysfs("parked");
		file_fill(&f, 0, PAGES, OWN);
		sleep_ms(10);
	}
	ktap_note("at most %ld frames were parked, the limit is %d", most,
		  2 * PAGES);
	ENSURE(fpr_wait_sysfs_at_most("parked", 2 * PAGES, LIMIT_S),
	       "%ld frames stay parked, the limit is %d", fpr_sysfs("parked"),
	       2 * PAGES);
	ENSURE(wait_vmstat_above("fpr_drain_limit", drains, 5),
	       "no drain for the limit");
}

/* Parked frames do not stay for long. */
static void age_of_frames(void)
{
	long drains = vmstat("fpr_drain_age"), parks;
	struct tfile f;

	start(&f, PAGES);
	fpr_set("debt_age_ms", 500);
	parks = vmstat("fpr_park");
	free_stale(&f);
	parks = vmstat("fpr_park") - parks;
	/* On a busy machine that may take longer than they may wait. */
	PREMISE(parks >= PAGES * 9 / 10, "%ld of %d frames parked", parks,
		PAGES);
	ENSURE(fpr_wait_sysfs_at_most("parked", 0, LIMIT_S),
	       "%ld frames are still parked after %d s",
	       fpr_sysfs("parked"), LIMIT_S);
	ENSURE(wait_vmstat_above("fpr_drain_age", drains, 5),
	       "no drain for age");
}

/* Neither does the right to read what was unmapped, freed or not. */
static void age_of_rights(void)
{
	struct tfile f;
	double begin;
	char *p;

	start(&f, PAGES);
	fpr_set("debt_age_ms", 500);
	p = leave_stale(&f, 0, PAGES, PROT_READ, MAP_SHARED, OWN);
	begin = seconds();
	while (peer_count(p, PAGES, FAULTED) < PAGES) {
		ENSURE(seconds() < begin + LIMIT_S,
		       "the peer still reads %zu of %d pages after %d s",
		       PAGES - peer_count(p, PAGES, FAULTED), PAGES, LIMIT_S);
		sleep_ms(20);
	}
	ktap_note("unreachable after %.1f s", seconds() - begin);
}

/*
 * Time alone is no reason to interrupt a CPU: it flushes at its tick. When it
 * has, frames that it could reach are clean.
 */
static void age_by_ticks(void)
{
	long drains = vmstat("fpr_drain_age"), flushes = vmstat("fpr_drain_flush");
	long ticks = vmstat("fpr_tick_flush"), parks;
	struct stranger stranger;
	size_t secrets;
	struct tfile f;
	char *p;

	stranger_start(&stranger);
	start(&f, PAGES);
	/* Half of it is for the ticks; a busy emulator may miss some. */
	fpr_set("debt_age_ms", 4000);
	p = leave_stale(&f, 0, PAGES, PROT_READ, MAP_SHARED, OWN);
	ENSURE(wait_vmstat_above("fpr_drain_age", drains, 40),
	       "the debt does not get old");
	/* The work that counts it waits for the ticks after that. */
	sleep_ms(4000);
	parks = vmstat("fpr_park");
	file_drop(&f);
	stranger_fill(&stranger, FILL_ANON, 16);
	secrets = peer_count(p, PAGES, WORD(SECRET));
	ENSURE(!secrets, "%zu of %d pages of another process are readable",
	       secrets, PAGES);
	ENSURE(vmstat("fpr_park") == parks, "frames were still parked");
	ENSURE(vmstat("fpr_tick_flush") > ticks, "no tick has flushed");
	ENSURE(vmstat("fpr_drain_flush") == flushes,
	       "the debt was settled by interrupts");
	stranger_stop(&stranger);
}

/* Again and again: each debt has its own time. */
static void age_repeats(void)
{
	struct tfile f;
	int round;

	start(&f, PAGES);
	fpr_set("debt_age_ms", 100);
	for (round = 0; round < 10; round++) {
		free_stale(&f);
		ENSURE(fpr_wait_sysfs_at_most("parked", 0, LIMIT_S),
		       "round %d: %ld frames stay parked", round,
		       fpr_sysfs("parked"));
		file_fill(&f, 0, PAGES, OWN);
	}
}

static long free_mib(void)
{
	return read_kb("/proc/meminfo", "MemFree") / 1024;
}

/* What is left above the part that only the kernel's own threads may take. */
static long spare_mib(void)
{
	return free_mib() - read_number("/proc/sys/vm/min_free_kbytes") / 1024;
}

/*
 * What runs stays in memory: where hardly any is left, its pages would be evicted
 * and read again all the time, and each MiB that is taken would take seconds.
 */
static long stay(long flags)
{
	return mlockall((int)flags);
}

static void start_in_little(struct stranger *s)
{
	MUST(stay(MCL_CURRENT));
	stranger_start(s);
	ENSURE(!stranger_call(s, stay, MCL_CURRENT), "mlockall");
}

/*
 * In so little memory the stranger may be killed for it. That says nothing about
 * kswapd; before_oom() and by_reclaim() ask what the killer finds.
 */
static void fill_little(struct stranger *s, size_t mib)
{
	PREMISE(stranger_fill_or_die(s, FILL_ANON, mib),
		"the stranger was killed for memory");
}

static void leave_little(struct stranger *s)
{
	leave_free(free_mib() - spare_mib() + 24);
	/* What is left in pieces. */
	if (spare_mib() > 24)
		fill_little(s, (size_t)(spare_mib() - 24));
}

/*
 * kswapd gives up after many vain attempts, perhaps of earlier cases, until
 * somebody else has reclaimed something: clean pages of a file.
 */
static void revive_kswapd(void)
{
	struct stranger stranger;
	struct tfile cache;

	leave_free(160);
	file_make(&cache, ON_DISK, 32 * MIB / PAGE, OWN);
	leave_free(128);
	stranger_start(&stranger);
	fill_little(&stranger, (size_t)spare_mib() + 16);
	stranger_stop(&stranger);
	file_close(&cache);
}

static bool kswapd_has_given_up(void)
{
	return read_kb("/proc/zoneinfo", "  node_unreclaimable") == 1;
}

/* kswapd looks for pages to evict although there is a pool. */
static bool kswapd_prefers_eviction(long scanned)
{
	return vmstat("pgscan_kswapd") > scanned + LARGE_POOL / 2 &&
	       fpr_sysfs("parked") > LARGE_POOL / 2;
}

/* Fills a pool that others have drained; there may be too little left for that. */
static void refill(const struct tfile *f)
{
	if (fpr_sysfs("parked") >= LARGE_POOL / 2)
		return;
	leave_free(free_mib() - spare_mib() + 2 * LARGE_POOL / (MIB / PAGE));
	file_fill(f, 0, LARGE_POOL, OWN);
	free_stale(f);
}

/* All of the memory but a little, and give the kernel's threads time. */
static void by_kswapd(void)
{
	long drains = vmstat("fpr_drain_kswapd"), scanned = 0;
	struct stranger stranger;
	struct tfile f;
	int i;

	revive_kswapd();
	start_in_little(&stranger);
	start(&f, LARGE_POOL);
	/* An allocation may be faster than kswapd and drain itself: once more. */
	for (i = 0; i < 5 * WAITS && vmstat("fpr_drain_kswapd") == drains; i++) {
		if (i % WAITS == 0) {
			if (kswapd_has_given_up())
				revive_kswapd();
			refill(&f);
			leave_little(&stranger);
			scanned = vmstat("pgscan_kswapd");
		}
		/* It would take minutes to evict all there is. */
		if (kswapd_prefers_eviction(scanned))
			break;
		/*
		 * Below the mark that wakes kswapd, above the one for others.
		 * It sleeps as long as the smallest zone has enough.
		 */
		if (spare_mib() > 8 - 4 * (i / WAITS))
			fill_little(&stranger, 1);
		sleep_ms(50);
	}
	ktap_note("%ld MiB free, %ld frames parked, %ld pages scanned in %d looks",
		  free_mib(), fpr_sysfs("parked"),
		  vmstat("pgscan_kswapd") - scanned, i);
	ENSURE(vmstat("fpr_drain_kswapd") > drains,
	       "kswapd did not drain the pool");
	stranger_stop(&stranger);
}

/* With what is on the lists of the CPUs, if it has found too little elsewhere. */
static long drained_by_reclaim(void)
{
	return vmstat("fpr_drain_reclaim") + vmstat("fpr_drain_pcp");
}

/*
 * The allocating task itself takes from the pool when it finds no page. Of so few
 * frames kswapd and shrinker keep off, so they cannot be faster.
 */
static void by_reclaim(void)
{
	long drains = drained_by_reclaim(), ooms = vmstat("fpr_drain_oom");
	struct stranger stranger;
	struct tfile f;
	long mib;

	start_in_little(&stranger);
	start(&f, FEW_PAGES);
	leave_little(&stranger);
	park(&f);
	/* With nothing left to reclaim the stranger is killed, but after that. */
	for (mib = read_kb("/proc/meminfo", "MemAvailable") / 1024 + 256;
	     mib > 0 && drained_by_reclaim() == drains; mib--)
		if (!stranger_fill_or_die(&stranger, FILL_ANON, 1))
			break;
	ENSURE(drained_by_reclaim() > drains || vmstat("fpr_drain_oom") == ooms,
	       "reclaim has left the pool to the OOM killer");
	PREMISE(drained_by_reclaim() > drains || fpr_sysfs("parked"),
		"the pool was drained for others: nothing to attack with");
	ENSURE(drained_by_reclaim() > drains, "reclaim did not drain the pool");
	ENSURE(!fpr_sysfs("parked"), "%ld frames are still parked",
	       fpr_sysfs("parked"));
	stranger_stop(&stranger);
}

/* The first to be killed for memory; ends with the case. */
static pid_t victim(void)
{
	pid_t pid = (pid_t)MUST(fork());

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	write_text("/proc/self/oom_score_adj", "1000");
	for (;;)
		pause();
}

/*
 * The OOM killer is called, by hand: an allocation calls it only when reclaim
 * has drained before. Called by hand it kills whatever it finds to be free, and
 * after the drain: without its victim it would take us.
 */
static void before_oom(void)
{
	long drains = vmstat("fpr_drain_oom");
	pid_t pid = victim();
	struct tfile f;
	int status;

	start(&f, PAGES);
	park(&f);
	ENSURE(write_text("/proc/sysrq-trigger", "f"), "sysrq: %m");
	ENSURE(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status),
	       "the OOM killer has not taken its victim");
	ENSURE(vmstat("fpr_drain_oom") > drains,
	       "the OOM killer was called without a drain before");
}

/*
 * A stream through a file larger than memory, and a process that wants half of
 * it: nobody is killed, and reclaim does not give up.
 */
static void stream_under_pressure(void)
{
	long kills = vmstat("oom_kill"), hopeless, skips = vmstat("fpr_skip");
	long total = read_kb("/proc/meminfo", "MemAvailable") / 1024;
	struct stranger stranger;
	struct tfile f;
	double end;

	stranger_start(&stranger);
	file_make(&f, ON_DISK, 16 * MIB / PAGE, OWN);
	peer_start(1);
	hopeless = vmstat("pgscan_direct");
	leave_free(total * 3 / 10);
	stranger_fill(&stranger, FILL_ANON, (size_t)total / 10);
	end = seconds() + 4;
	while (seconds() < end) {
		size_t at;

		for (at = 0; at < f.pages; at += PAGES) {
			char *p = fpr_map(&f, at, PAGES, PROT_READ, MAP_SHARED);

			ENSURE(peer_count(p, PAGES, WORD(OWN)) == PAGES,
			       "wrong data at page %zu", at);
			MUST(munmap(p, PAGES * PAGE));
		}
		stranger_fill(&stranger, FILL_ANON, 1);
		file_drop(&f);
	}
	ktap_note("%ld skips, %ld pages scanned by allocating tasks, %ld frames parked now",
		  vmstat("fpr_skip") - skips, vmstat("pgscan_direct") - hopeless,
		  fpr_sysfs("parked"));
	ENSURE(vmstat("oom_kill") == kills, "a process was killed for memory");
	ENSURE(vmstat("fpr_skip") > skips, "nothing skipped");
	stranger_stop(&stranger);
}

/* The pool of a process goes with it, whether it exits or is killed. */
static void exit_empties(void)
{
	long parked = fpr_sysfs("parked"), contexts = fpr_sysfs("contexts");
	int by_signal, status;

	for (by_signal = 0; by_signal < 2; by_signal++) {
		pid_t pid = (pid_t)MUST(fork());

		if (!pid) {
			struct tfile f;

			start(&f, PAGES);
			park(&f);
			if (fpr_sysfs("parked") < parked + PAGES * 9 / 10)
				_exit(1);
			if (by_signal)
				kill(getpid(), SIGKILL);
			_exit(0);
		}
		MUST(waitpid(pid, &status, 0));
		ENSURE(by_signal ? WIFSIGNALED(status) : !status,
		       "the process that parks failed (status %x)",
		       (unsigned int)status);
		ENSURE(fpr_wait_sysfs_at_most("parked", parked, 5),
		       "%ld frames stay parked after exit",
		       fpr_sysfs("parked") - parked);
		ENSURE(fpr_wait_sysfs_at_most("contexts", contexts, 5),
		       "the context stays after exit");
	}
}

int main(int argc, char **argv)
{
	static const struct ktap_case cases[] = {
		{ "counted", counted, 0 },
		{ "at_limit", at_limit, 0 },
		{ "age_of_frames", age_of_frames, 0 },
		{ "age_of_rights", age_of_rights, 0 },
		{ "age_by_ticks", age_by_ticks, 0 },
		{ "age_repeats", age_repeats, 0 },
		{ "by_kswapd", by_kswapd, 300 },
		{ "by_reclaim", by_reclaim, 300 },
		{ "before_oom", before_oom, 0 },
		{ "stream_under_pressure", stream_under_pressure, 600 },
		{ "exit_empties", exit_empties, 0 },
	};

	return ktap_main(argc, argv, cases, KTAP_COUNT(cases));
}
