// SPDX-License-Identifier: GPL-2.0
/*
 * I6: what is parked belongs to the memory control group that has paid for it.
 * No group gets more than its limit by parking, whoever can still reach the
 * frames; none is killed for what a drain would give back; and parked frames
 * keep no group from going.
 *
 * What a group has is added up from what is in use (memory.stat) and what is
 * parked at all (sysfs): memory.current is what is under test.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/mempolicy.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "env.h"
#include "file.h"
#include "group.h"
#include "ktap.h"
#include "map.h"
#include "peer.h"
#include "stranger.h"

#define LIMIT		(32L << 20)
#define SMALL		(8L << 20)
#define OWN		0x5a
/* What is parked at a time: 4 MiB. */
#define PAGES		1024
/* So often that it is more than the limit, which one who cheats gets past. */
#define ROUNDS		12
#define PROCESSES	4
#define SAMPLES		8

/* Ten times what a drain in the background takes here. */
#define DRAIN_S		20

/* What Linux itself may be above a limit by: a batch of charges of each CPU. */
static long slack(void)
{
	return 64L * (long)PAGE * online_cpus();
}

static long parked(void)
{
	return fpr_sysfs("parked") * (long)PAGE;
}

/* In use and parked, together; nothing of the group may run. */
static long held(enum group g)
{
	/* In this order: a drain in between makes it less, not more. */
	long waits = parked();

	return group_used(g) + waits;
}

static void ensure_within(enum group g, long limit)
{
	long all = held(g), current = group_value(g, "memory.current");

	ENSURE(all <= limit + slack(),
	       "%ld KiB in use and parked, the limit is %ld, memory.current %ld",
	       all >> 10, limit >> 10, current >> 10);
}

static void ensure_alive(enum group g)
{
	ENSURE(!group_line(g, "memory.events", "oom_kill"),
	       "a process was killed for memory that was parked");
}

/* Leave the pages of a new file and free them; no look at any counter. */
static long park_often(long rounds)
{
	const size_t bytes = PAGES * PAGE;

	while (rounds--) {
		int fd = memfd_create("parked", MFD_CLOEXEC);
		void *p;

		if (fd < 0 || ftruncate(fd, (off_t)bytes))
			return -errno;
		p = mmap(NULL, bytes, PROT_READ,
			 MAP_SHARED | MAP_POPULATE | MAP_FPR, fd, 0);
		if (p == MAP_FAILED || munmap(p, bytes))
			return -errno;
		close(fd);
	}
	return 0;
}

/* Four processes of a group park all the time. */
static void of_processes(void)
{
	long parks = vmstat("fpr_park"), all, most = 0;
	struct stranger others[PROCESSES];
	int i;

	fpr_skip_local();
	hold_debts();
	ENSURE(!parked(), "somebody else uses FPR");
	group_start();
	for (i = 0; i < PROCESSES; i++)
		stranger_start(&others[i]);
	group_leave();
	group_set(GROUP_OWN, "memory.max", LIMIT);
	for (i = 0; i < PROCESSES; i++)
		stranger_ask(&others[i], park_often, ROUNDS);
	for (i = 0; i < SAMPLES; i++) {
		sleep_ms(100);
		group_freeze(GROUP_OWN, true);
		all = held(GROUP_OWN);
		most = all > most ? all : most;
		group_freeze(GROUP_OWN, false);
	}
	for (i = 0; i < PROCESSES; i++)
		ENSURE(!stranger_answer(&others[i]),
		       "a process got no memory that was parked");
	group_freeze(GROUP_OWN, true);
	all = held(GROUP_OWN);
	most = all > most ? all : most;
	group_freeze(GROUP_OWN, false);
	ktap_note("at most %ld KiB in use and parked, memory.peak is %ld",
		  most >> 10, group_value(GROUP_OWN, "memory.peak") >> 10);
	PREMISE(vmstat("fpr_park") - parks > 2 * LIMIT / (long)PAGE,
		"only %ld frames were parked", vmstat("fpr_park") - parks);
	ENSURE(most <= LIMIT + slack(),
	       "%ld KiB in use and parked, the limit is %ld", most >> 10,
	       LIMIT >> 10);
	ENSURE(group_value(GROUP_OWN, "memory.peak") <= LIMIT + slack(),
	       "memory.peak is %ld KiB, the limit %ld",
	       group_value(GROUP_OWN, "memory.peak") >> 10, LIMIT >> 10);
	ensure_alive(GROUP_OWN);
	for (i = 0; i < PROCESSES; i++)
		stranger_stop(&others[i]);
}

static struct tfile shared;

static long leave_shared(long unused)
{
	(void)unused;
	leave_skipped(&shared, 0, shared.pages);
	return 0;
}

/* Frames that several processes reach wait in a pool that is nobody's. */
static void of_shared_frames(void)
{
	long before = vmstat("fpr_shared");
	struct stranger others[2];
	int round;
	size_t i;

	fpr_skip_local();
	hold_debts();
	group_start();
	file_make(&shared, ON_TMPFS, PAGES, OWN);
	for (i = 0; i < KTAP_COUNT(others); i++)
		stranger_start(&others[i]);
	group_set(GROUP_OWN, "memory.max", LIMIT);
	for (round = 0; round < ROUNDS; round++) {
		for (i = 0; i < KTAP_COUNT(others); i++)
			stranger_call(&others[i], leave_shared, 0);
		file_drop(&shared);
		ensure_within(GROUP_OWN, LIMIT);
		file_fill(&shared, 0, PAGES, OWN);
	}
	PREMISE(vmstat("fpr_shared") - before >= (ROUNDS - 1) * PAGES,
		"only %ld frames were shared", vmstat("fpr_shared") - before);
	ensure_alive(GROUP_OWN);
	for (i = 0; i < KTAP_COUNT(others); i++)
		stranger_stop(&others[i]);
}

/* One process that parks, seen after each time. */
static void park_rounds(enum group g, long limit)
{
	long drains = vmstat("fpr_drain_cgroup");
	struct tfile f;
	int round;

	peer_start(1);
	hold_debts();
	file_make(&f, ON_TMPFS, PAGES, OWN);
	for (round = 0; round < ROUNDS; round++) {
		leave_skipped(&f, 0, PAGES);
		file_drop(&f);
		ensure_within(g, limit);
		file_fill(&f, 0, PAGES, OWN);
	}
	ENSURE(vmstat("fpr_drain_cgroup") > drains,
	       "the group has drained nothing");
	ensure_alive(g);
}

/* Throttled, not killed: the same bound, but for what one call has got. */
static void at_high(void)
{
	group_start();
	group_set(GROUP_OWN, "memory.high", LIMIT);
	park_rounds(GROUP_OWN, LIMIT);
}

/* The limit is that of a group further up. */
static void nested(void)
{
	group_start();
	group_leave();
	group_make(GROUP_BELOW);
	group_set(GROUP_OWN, "memory.max", LIMIT);
	group_enter(GROUP_BELOW);
	park_rounds(GROUP_OWN, LIMIT);
}

static void park(const struct tfile *f)
{
	leave_skipped(f, 0, f->pages);
	file_drop(f);
	PREMISE(parked() >= (long)(f->pages * PAGE) * 9 / 10,
		"only %ld KiB are parked", parked() >> 10);
}

/* memory.fpr_parked, and memory.reclaim gives it back. */
static void shown(void)
{
	long waits, current;
	struct tfile f;

	group_start();
	peer_start(1);
	hold_debts();
	file_make(&f, ON_TMPFS, PAGES, OWN);
	ENSURE(!group_value(GROUP_OWN, "memory.fpr_parked"),
	       "memory.fpr_parked is %ld at first",
	       group_value(GROUP_OWN, "memory.fpr_parked"));
	park(&f);
	waits = parked();
	current = group_value(GROUP_OWN, "memory.current");
	ENSURE(group_value(GROUP_OWN, "memory.fpr_parked") == waits,
	       "memory.fpr_parked is %ld, %ld bytes are parked",
	       group_value(GROUP_OWN, "memory.fpr_parked"), waits);
	ENSURE(current >= waits, "memory.current is %ld, %ld bytes are parked",
	       current, waits);
	group_reclaim((size_t)waits / 2);
	ENSURE(!parked(), "%ld KiB stay parked", parked() >> 10);
	ENSURE(!group_value(GROUP_OWN, "memory.fpr_parked"),
	       "memory.fpr_parked is %ld, nothing is parked",
	       group_value(GROUP_OWN, "memory.fpr_parked"));
	current -= group_value(GROUP_OWN, "memory.current");
	ENSURE(current >= waits * 9 / 10, "%ld of %ld bytes were given back",
	       current, waits);
}

/* Frames that are used again are paid for once. */
static void used_again(void)
{
	long recycles = vmstat("fpr_recycle"), before;
	int tries;

	group_start();
	peer_start(1);
	hold_debts();
	for (tries = 0; tries < 20 && parked() < (long)(PAGES * PAGE) * 9 / 10;
	     tries++) {
		char *p = fpr_map(NULL, 0, PAGES, PROT_READ | PROT_WRITE,
				  MAP_PRIVATE | MAP_POPULATE);

		fpr_unmap(p, PAGES);
	}
	before = group_value(GROUP_OWN, "memory.current");
	PREMISE(parked() >= (long)(PAGES * PAGE) * 9 / 10,
		"only %ld KiB are parked", parked() >> 10);
	recycles = vmstat("fpr_recycle");
	fpr_map(NULL, 0, PAGES, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_POPULATE);
	recycles = vmstat("fpr_recycle") - recycles;
	PREMISE(recycles >= PAGES * 9 / 10, "%ld pages were recycled", recycles);
	before -= group_value(GROUP_OWN, "memory.current");
	ENSURE(labs(before) <= slack() + (PAGES - recycles) * (long)PAGE,
	       "memory.current is %ld KiB other with %ld frames recycled",
	       before >> 10, recycles);
}

/* Who has paid goes on to pay, and can get it back from where it is not. */
static void moved(void)
{
	struct tfile f;
	long waits;

	group_start();
	group_make(GROUP_BESIDE);
	peer_start(1);
	hold_debts();
	file_make(&f, ON_TMPFS, PAGES, OWN);
	leave_skipped(&f, 0, PAGES);
	group_enter(GROUP_BESIDE);
	park(&f);
	waits = parked();
	ENSURE(group_value(GROUP_OWN, "memory.current") >= waits,
	       "the old group pays for %ld KiB, %ld are parked",
	       group_value(GROUP_OWN, "memory.current") >> 10, waits >> 10);
	ENSURE(group_value(GROUP_BESIDE, "memory.current") < waits / 2,
	       "the new group pays for %ld KiB",
	       group_value(GROUP_BESIDE, "memory.current") >> 10);
	group_set(GROUP_OWN, "memory.max", 1L << 20);
	ENSURE(group_value(GROUP_OWN, "memory.current") <= (1L << 20) + slack(),
	       "the old group has %ld KiB, its limit is 1024",
	       group_value(GROUP_OWN, "memory.current") >> 10);
	ensure_alive(GROUP_OWN);
}

static long make_shared(long unused)
{
	(void)unused;
	file_fill(&shared, 0, shared.pages, OWN);
	return 0;
}

/* Pages of another group do not count for those who can reach them. */
static void of_others(void)
{
	struct stranger other;

	group_start();
	group_make(GROUP_BESIDE);
	file_make(&shared, ON_TMPFS, 4 * PAGES, OWN);
	file_drop(&shared);
	group_enter(GROUP_BESIDE);
	stranger_start(&other);
	group_enter(GROUP_OWN);
	stranger_call(&other, make_shared, 0);
	peer_start(1);
	hold_debts();
	group_set(GROUP_OWN, "memory.max", SMALL);
	park(&shared);
	ENSURE(group_value(GROUP_OWN, "memory.current") < SMALL,
	       "the group pays for %ld KiB, which are not its own",
	       group_value(GROUP_OWN, "memory.current") >> 10);
	ENSURE(group_value(GROUP_BESIDE, "memory.current") >= parked(),
	       "the other group pays for %ld KiB, %ld are parked",
	       group_value(GROUP_BESIDE, "memory.current") >> 10,
	       parked() >> 10);
	ensure_alive(GROUP_OWN);
	stranger_stop(&other);
}

/* Is there a group below our own that was removed, and has not gone? */
static long dying(void)
{
	return group_line(GROUP_OWN, "cgroup.stat", "nr_dying_descendants");
}

static long make_below(long unused)
{
	group_enter(GROUP_BELOW);
	return make_shared(unused);
}

/* A group is removed: its frames are drained, and then it is gone. */
static void removed(void)
{
	double end = seconds() + DRAIN_S;
	struct stranger other;
	long waits;

	group_start();
	file_make(&shared, ON_TMPFS, PAGES, OWN);
	file_drop(&shared);
	group_leave();
	group_make(GROUP_BELOW);
	stranger_start(&other);
	stranger_call(&other, make_below, 0);
	stranger_stop(&other);
	/* Anything else of it would stay, too: what the stranger has read. */
	PREMISE(group_line(GROUP_BELOW, "memory.stat", "file") ==
		(long)(PAGES * PAGE) &&
		!group_line(GROUP_BELOW, "memory.stat", "anon"),
		"the group has other pages");
	peer_start(1);
	hold_debts();
	park(&shared);
	waits = parked();
	group_remove(GROUP_BELOW);
	sleep_ms(100);
	ENSURE(dying(), "the group has gone, its %ld KiB have not", waits >> 10);
	ENSURE(group_value(GROUP_OWN, "memory.fpr_parked") == waits,
	       "the group above has %ld parked, not %ld",
	       group_value(GROUP_OWN, "memory.fpr_parked"), waits);
	ENSURE(write_text("/proc/sys/vm/drop_caches", "2"), "drop_caches: %m");
	ENSURE(fpr_wait_sysfs_at_most("parked", 0, DRAIN_S),
	       "%ld frames stay parked", fpr_sysfs("parked"));
	while (dying() && seconds() < end)
		sleep_ms(20);
	ENSURE(!dying(), "the group does not go");
}

/*
 * The page takes its charge along, and the frame that it leaves is parked: the
 * task that moves it pays, and the group can have too much for a moment.
 */
static void migrated(void)
{
	static int nodes[PAGES], status[PAGES];
	static void *pages[PAGES];
	struct tfile f;
	long current;
	char *p;
	int i;

	if (access("/sys/devices/system/node/node1", F_OK))
		ktap_skip("needs two memory nodes");
	group_start();
	peer_start(1);
	hold_debts();
	file_make(&f, ON_TMPFS, PAGES, OWN);
	p = mmap(NULL, PAGES * PAGE, PROT_READ, MAP_SHARED, f.fd, 0);
	ENSURE(p != MAP_FAILED, "mmap: %m");
	/* A single page table, and the pages where they are now. */
	for (i = 0; i < PAGES; i++)
		pages[i] = p + i * PAGE;
	leave_skipped(&f, 0, PAGES);
	ENSURE(probe_read(p) == WORD(OWN), "the file has no pages");
	MUST(madvise(p, PAGES * PAGE, MADV_POPULATE_READ));
	MUST(syscall(SYS_move_pages, 0, PAGES, pages, NULL, status, 0));
	for (i = 0; i < PAGES; i++)
		nodes[i] = !status[0];
	current = group_value(GROUP_OWN, "memory.current");
	MUST(syscall(SYS_move_pages, 0, PAGES, pages, nodes, status,
		     MPOL_MF_MOVE));
	PREMISE(parked() >= (long)(PAGES * PAGE) / 2, "only %ld KiB are parked",
		parked() >> 10);
	current = group_value(GROUP_OWN, "memory.current") - current;
	ENSURE(current >= parked() - slack(),
	       "the group pays for %ld KiB more, %ld are parked", current >> 10,
	       parked() >> 10);
	/* Again, where there is no room for both. */
	group_set(GROUP_OWN, "memory.max", group_used(GROUP_OWN) + slack());
	ENSURE(!parked(), "%ld KiB stay parked", parked() >> 10);
	leave_skipped(&f, 0, PAGES);
	MUST(madvise(p, PAGES * PAGE, MADV_POPULATE_READ));
	for (i = 0; i < PAGES; i++)
		nodes[i] = !nodes[i];
	MUST(syscall(SYS_move_pages, 0, PAGES, pages, nodes, status, MPOL_MF_MOVE));
	ENSURE(fpr_wait_sysfs_at_most("parked", slack() / (long)PAGE, DRAIN_S),
	       "%ld KiB stay parked above the limit", parked() >> 10);
	ensure_alive(GROUP_OWN);
}

int main(int argc, char **argv)
{
	static const struct ktap_case cases[] = {
		{ "of_processes", of_processes, 600 },
		{ "of_shared_frames", of_shared_frames, 0 },
		{ "at_high", at_high, 0 },
		{ "nested", nested, 0 },
		{ "shown", shown, 0 },
		{ "used_again", used_again, 0 },
		{ "moved", moved, 0 },
		{ "of_others", of_others, 0 },
		{ "removed", removed, 0 },
		{ "migrated", migrated, 0 },
	};

	return ktap_main(argc, argv, cases, KTAP_COUNT(cases));
}
