// SPDX-License-Identifier: GPL-2.0
/*
 * I6, I8: what the kernel keeps for later is shown where people look for it, is
 * bounded for a process and for all of them, and comes back when somebody
 * reclaims.
 */
#define _GNU_SOURCE
#include <sys/mman.h>
#include <unistd.h>

#include "env.h"
#include "file.h"
#include "ktap.h"
#include "map.h"
#include "peer.h"
#include "stranger.h"

#define PAGES		256
#define OWN		0x5a
#define MEMINFO		"/sys/kernel/mm/ceasefire/fpr/meminfo"

/* Ten times what a drain in the background takes here. */
#define LIMIT_S		8

static void start(struct tfile *f, size_t pages)
{
	file_make(f, ON_TMPFS, pages, OWN);
	peer_start(1);
	hold_debts();
}

/* Free the pages of the file while they are stale. */
static void park(const struct tfile *f)
{
	long parked = fpr_sysfs("parked");

	leave_skipped(f, 0, f->pages);
	file_drop(f);
	parked = fpr_sysfs("parked") - parked;
	ENSURE(parked >= (long)f->pages * 9 / 10, "%ld of %zu frames parked",
	       parked, f->pages);
}

/* In pages; what each CPU has counted is added up first. */
static long nr_parked_of_nodes(void)
{
	ENSURE(write_text("/proc/sys/vm/stat_refresh", "1"), "stat_refresh: %m");
	return vmstat("nr_fpr_parked");
}

static void shown(void)
{
	struct tfile f;
	long parked;

	start(&f, PAGES);
	ENSURE(!fpr_sysfs("parked"), "somebody else uses FPR");
	ENSURE(read_kb("/proc/self/status", "FPRParked") <= 0,
	       "the process has parked frames before its first use");
	park(&f);
	parked = fpr_sysfs("parked");
	ENSURE(nr_parked_of_nodes() == parked, "/proc/vmstat has %ld of %ld",
	       vmstat("nr_fpr_parked"), parked);
	ENSURE(read_kb("/proc/self/status", "FPRParked") == parked * 4,
	       "/proc/self/status has %ld kB, %ld pages are parked",
	       read_kb("/proc/self/status", "FPRParked"), parked);
	ENSURE(read_kb(MEMINFO, "Parked") == parked * 4,
	       "meminfo has %ld kB, %ld pages are parked",
	       read_kb(MEMINFO, "Parked"), parked);
	ENSURE(read_kb(MEMINFO, "Tags") == fpr_sysfs("tag_bytes") / 1024,
	       "meminfo has %ld kB of tags, not %ld bytes",
	       read_kb(MEMINFO, "Tags"), fpr_sysfs("tag_bytes"));
	ENSURE(read_kb(MEMINFO, "Contexts") > 0, "contexts take no memory");
	fpr_set("debt_age_ms", 100);
	/* The debt that is held has its own time: let the limit drain it. */
	fpr_set("parked_limit", 0);
	file_fill(&f, 0, PAGES, OWN);
	leave_skipped(&f, 0, PAGES);
	file_drop(&f);
	ENSURE(fpr_wait_sysfs_at_most("parked", 0, LIMIT_S),
	       "%ld frames stay parked", fpr_sysfs("parked"));
	ENSURE(!nr_parked_of_nodes(), "/proc/vmstat has %ld that are gone",
	       vmstat("nr_fpr_parked"));
}

/* One process: what it leaves reachable, and so can park at once. */
static void of_stale_frames(void)
{
	long flushes = vmstat("fpr_flush_limit"), most;
	struct tfile f;
	size_t at;

	start(&f, 4 * PAGES);
	/* Room for tags. */
	leave_skipped(&f, 0, f.pages);
	full_flush();
	fpr_set("stale_limit", PAGES);
	for (at = 0; at < f.pages; at += PAGES / 4) {
		char *p = fpr_map(&f, at, PAGES / 4, PROT_READ, MAP_SHARED);

		peer_touch(p, PAGES / 4);
		MUST(munmap(p, PAGES / 4 * PAGE));
	}
	flushes = vmstat("fpr_flush_limit") - flushes;
	file_drop(&f);
	most = fpr_sysfs("parked");
	ktap_note("%ld flushes, %ld frames parked at once", flushes, most);
	ENSURE(flushes >= 2 && flushes <= 4,
	       "%ld flushes for %zu pages of which %d may be stale", flushes,
	       f.pages, PAGES);
	/* One more munmap() may come before the look at the number. */
	ENSURE(most <= PAGES + PAGES / 4,
	       "%ld frames were parked at once, %d may be stale", most, PAGES);
}

/* The same frames again and again are not more than they are. */
static void of_few_frames(void)
{
	long flushes, skips;
	struct tfile f;
	int round;

	start(&f, PAGES / 4);
	leave_skipped(&f, 0, f.pages);
	fpr_set("stale_limit", PAGES);
	flushes = vmstat("fpr_flush_limit");
	skips = vmstat("fpr_skip");
	for (round = 0; round < 32; round++) {
		char *p = fpr_map(&f, 0, f.pages, PROT_READ, MAP_SHARED);

		peer_touch(p, f.pages);
		MUST(munmap(p, f.pages * PAGE));
	}
	ENSURE(vmstat("fpr_flush_limit") == flushes,
	       "%ld flushes for %d frames", vmstat("fpr_flush_limit") - flushes,
	       PAGES / 4);
	ENSURE(vmstat("fpr_skip") >= skips + 24, "%ld munmaps skipped",
	       vmstat("fpr_skip") - skips);
}

/* More than one munmap() may tag at a time; see CF_GATHER_MAX. */
#define GATHER_MAX	16384

/* Large folios, mapped by entries of base pages: few in number, many frames. */
static long unmap_large(const struct tfile *f, size_t first, size_t pages)
{
	long flushes = vmstat("fpr_flush_limit");
	char *p = fpr_map(f, first, pages, PROT_READ, MAP_SHARED);

	MUST(madvise(p, pages * PAGE, MADV_NOHUGEPAGE));
	MUST(madvise(p, pages * PAGE, MADV_POPULATE_READ));
	peer_touch(p, PAGES);
	MUST(munmap(p, pages * PAGE));
	return vmstat("fpr_flush_limit") - flushes;
}

/*
 * The first munmaps of frames make room for their tags, one section of memory
 * after the other, and flush for that.
 */
static void make_tags(const struct tfile *f, size_t first, size_t pages)
{
	int tries;

	for (tries = 0; tries < 20; tries++) {
		long skips = vmstat("fpr_skip");
		long flushes = unmap_large(f, first, pages);

		ENSURE(!flushes, "%ld flushes for %zu frames", flushes, pages);
		if (vmstat("fpr_skip") > skips)
			return;
		sleep_ms(5);
	}
	ktap_retry("no munmap of large folios skipped");
}

static void of_one_gather(void)
{
	struct tfile f;
	size_t first;

	fpr_skip_local();
	file_make(&f, ON_HUGE, GATHER_MAX + 4096, OWN);
	peer_start(1);
	hold_debts();
	fpr_set("stale_limit", 4 * GATHER_MAX);
	for (first = 0; first < f.pages; first += GATHER_MAX / 4)
		make_tags(&f, first, GATHER_MAX / 4);
	ENSURE(unmap_large(&f, 0, f.pages) > 0,
	       "%zu frames were tagged at once", f.pages);
}

static struct tfile others;

static long park_other(long unused)
{
	(void)unused;
	start(&others, PAGES);
	park(&others);
	return fpr_sysfs("parked");
}

/* Each of two processes has less than it may, both together more. */
static void of_all(void)
{
	long drains, parked;
	struct stranger other;
	struct tfile f;

	need_cpus(3);
	stranger_start(&other);
	parked = stranger_call(&other, park_other, 0);
	ENSURE(parked >= PAGES * 9 / 10, "the other process has parked %ld",
	       parked);
	file_make(&f, ON_TMPFS, PAGES, OWN);
	peer_start(2);
	drains = vmstat("fpr_drain_limit");
	fpr_set("parked_limit", PAGES * 3 / 2);
	leave_skipped(&f, 0, f.pages);
	file_drop(&f);
	/* A drain takes what is there; what is freed meanwhile may stay. */
	ENSURE(fpr_wait_sysfs_at_most("parked", PAGES * 3 / 2, LIMIT_S),
	       "%ld frames stay parked, the limit is %d", fpr_sysfs("parked"),
	       PAGES * 3 / 2);
	ENSURE(wait_vmstat_above("fpr_drain_limit", drains, LIMIT_S),
	       "no drain for the limit");
	stranger_stop(&other);
}

/* Somebody reclaims: the pool is drained, and not by him. */
static void by_shrinker(void)
{
	long drains = vmstat("fpr_drain_shrinker");
	long flushes = vmstat("fpr_drain_reclaim");
	struct tfile f;

	start(&f, PAGES);
	park(&f);
	ENSURE(write_text("/proc/sys/vm/drop_caches", "2"), "drop_caches: %m");
	ENSURE(fpr_wait_sysfs_at_most("parked", 0, LIMIT_S),
	       "%ld frames stay parked", fpr_sysfs("parked"));
	ENSURE(vmstat("fpr_drain_shrinker") > drains,
	       "the shrinker has drained nothing");
	ENSURE(vmstat("fpr_drain_reclaim") == flushes,
	       "who reclaims has drained himself");
}

int main(int argc, char **argv)
{
	static const struct ktap_case cases[] = {
		{ "shown", shown, 0 },
		{ "of_stale_frames", of_stale_frames, 0 },
		{ "of_few_frames", of_few_frames, 0 },
		{ "of_one_gather", of_one_gather, 0 },
		{ "of_all", of_all, 0 },
		{ "by_shrinker", by_shrinker, 0 },
	};

	return ktap_main(argc, argv, cases, KTAP_COUNT(cases));
}
