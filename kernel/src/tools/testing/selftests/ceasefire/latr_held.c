// SPDX-License-Identifier: GPL-2.0
/*
 * Memory of a lazy process that is not even freed before its debt is settled (I6):
 * it is counted, it comes back in time, to whoever needs it, and when the process
 * ends. Until then it is nobody else's (I1), like what cannot be held.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "context.h"
#include "env.h"
#include "group.h"
#include "host.h"
#include "ktap.h"
#include "map.h"
#include "peer.h"
#include "stranger.h"

#define PAGES	64
#define LENGTH	(PAGES * PAGE)
#define OWN	0x5a
#define NEW	0x21
#define LIMIT_S	8
#define TRIES	20

/* How many pages were held since the kernel booted. */
static long holds_now(void)
{
	long holds = read_number("/sys/kernel/debug/ceasefire/holds");

	if (holds < 0)
		ktap_skip("no debug kernel");
	return holds;
}

static char *written(size_t pages)
{
	char *p = mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	ENSURE(p != MAP_FAILED, "mmap: %m");
	memset(p, OWN, pages * PAGE);
	return p;
}

/* Held for as long as the case lasts, most of them; @frames: which, unless NULL. */
static char *hold_frames(uint64_t *frames)
{
	long holds;
	int tries;
	char *p;

	for (tries = 0; tries < TRIES; tries++) {
		p = written(PAGES);
		peer_touch(p, PAGES);
		if (frames)
			frames_of(p, PAGES, frames);
		holds = holds_now();
		MUST(munmap(p, LENGTH));
		if (holds_now() - holds >= PAGES * 9 / 10)
			return p;
	}
	ktap_retry("only %ld of %d pages are held",
		   holds_now() - holds, PAGES);
}

static char *hold(void)
{
	return hold_frames(NULL);
}

static void start(void)
{
	pin_to_cpu(0);
	peer_start(1);
	hold_debts();
}

static void counted(void)
{
	long before, holds, parked;

	start();
	before = fpr_sysfs("parked");
	holds = holds_now();
	hold();
	holds = holds_now() - holds;
	parked = fpr_sysfs("parked") - before;
	/* And what could not be held. */
	ENSURE(parked >= holds, "%ld pages are held, %ld wait", holds, parked);
	ENSURE(read_kb("/proc/self/status", "FPRParked") >=
	       holds * (long)(PAGE / 1024), "the process does not count them");
	ENSURE(vmstat("nr_fpr_parked") >= holds, "the node does not count them");
}

/* However little it is at a time, and however steadily it comes. */
static void trickle(void)
{
	const int rounds = 1000, bound = 400;
	long holds, most = 0;
	int i;

	pin_to_cpu(0);
	peer_start(1);
	holds = holds_now();
	for (i = 0; i < rounds; i++) {
		char *p = written(1);

		peer_touch(p, 1);
		MUST(munmap(p, PAGE));
		if (fpr_sysfs("parked") > most)
			most = fpr_sysfs("parked");
		sleep_ms(4);
	}
	holds = holds_now() - holds;
	ktap_note("at most %ld pages waited, %ld were held", most, holds);
	PREMISE(holds > rounds * 3 / 4, "only %ld pages were held", holds);
	/* Once it can be the host, which has kept a CPU from ticking for seconds. */
	ENSURE_ONCE(most <= bound, "%ld pages wait for a debt that is paid", most);
	ENSURE(fpr_wait_sysfs_at_most("parked", 0, LIMIT_S),
	       "%ld pages wait after %d s", fpr_sysfs("parked"), LIMIT_S);
}

/* Unmap 1 MiB again and again. */
static long churn(long rounds)
{
	while (rounds--) {
		size_t length = MIB;
		char *p = mmap(NULL, length, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (p == MAP_FAILED)
			return -1;
		memset(p, OWN, length);
		if (munmap(p, length))
			return -1;
	}
	return 0;
}

/* A control group is not at its limit by what only waits. */
static void of_group(void)
{
	const long limit = 6 * (long)MIB;
	struct stranger stranger;
	long holds, drains;

	pin_to_cpu(0);
	fpr_skip_local();
	hold_debts();
	group_start();
	stranger_start(&stranger);
	group_leave();
	group_set(GROUP_OWN, "memory.max", limit);
	holds = holds_now();
	drains = vmstat("fpr_drain_cgroup");
	ENSURE(!stranger_call(&stranger, churn, 40), "it got no memory");
	holds = holds_now() - holds;
	PREMISE(holds > 2 * limit / (long)PAGE, "only %ld pages were held",
		holds);
	ENSURE(!group_line(GROUP_OWN, "memory.events", "oom_kill"),
	       "a process was killed for memory that was held");
	ENSURE(vmstat("fpr_drain_cgroup") > drains, "the group was not drained");
	ENSURE(group_value(GROUP_OWN, "memory.fpr_parked") > 0,
	       "the group does not know what waits");
	stranger_stop(&stranger);
	ENSURE(fpr_wait_sysfs_at_most("parked", 0, LEFT_LIMIT_S),
	       "%ld pages wait after the end", fpr_sysfs("parked"));
	ENSURE(group_value(GROUP_OWN, "memory.fpr_parked") == 0,
	       "the group counts %ld bytes that wait after the end",
	       group_value(GROUP_OWN, "memory.fpr_parked"));
}

/* With the process it goes, too. */
static void ends(void)
{
	long before = fpr_sysfs("parked");
	int killed, status;

	for (killed = 0; killed < 2; killed++) {
		pid_t pid = (pid_t)MUST(fork());

		if (!pid) {
			start();
			hold();
			if (fpr_sysfs("parked") < before + PAGES * 9 / 10)
				_exit(1);
			if (killed)
				kill(getpid(), SIGKILL);
			_exit(0);
		}
		MUST(waitpid(pid, &status, 0));
		ENSURE(killed ? WIFSIGNALED(status) : !status,
		       "the process failed (status %x)", (unsigned int)status);
		ENSURE(fpr_wait_sysfs_at_most("parked", before, LEFT_LIMIT_S),
		       "%ld pages wait after its end",
		       fpr_sysfs("parked") - before);
	}
}

/* To whoever needs free memory it is given at once, after a flush. */
static void drained(void)
{
	size_t faulted;
	char *p;

	start();
	p = hold();
	ENSURE(write_text("/proc/sys/vm/compact_memory", "1"), "compaction: %m");
	ENSURE(fpr_wait_sysfs_at_most("parked", 0, LIMIT_S),
	       "%ld pages wait after a drain", fpr_sysfs("parked"));
	faulted = peer_count(p, PAGES, FAULTED);
	ENSURE(faulted == PAGES, "%zu of %d pages can be read after a drain",
	       PAGES - faulted, PAGES);
}

/* As a process that is not lazy any more it holds nothing. */
static void switched_off(void)
{
	start();
	hold();
	MUST(context_lazy(0));
	ENSURE(fpr_wait_sysfs_at_most("parked", 0, LIMIT_S),
	       "%ld pages wait after it was switched off", fpr_sysfs("parked"));
}

/* Those of which somebody else has a reference are freed by whoever has the last. */
static void others_have_some(void)
{
	struct stranger stranger;
	size_t i, secrets;
	int ends[2];
	char *p, *q;

	stranger_start(&stranger);
	start();
	MUST(pipe(ends));
	MUST(fcntl(ends[1], F_SETPIPE_SZ, (int)LENGTH));
	p = written(PAGES);
	for (i = 0; i < PAGES; i += 2) {
		struct iovec part = { p + i * PAGE, PAGE };

		ENSURE(vmsplice(ends[1], &part, 1, 0) == (ssize_t)PAGE,
		       "vmsplice: %m");
	}
	peer_touch(p, PAGES);
	MUST(munmap(p, LENGTH));
	close(ends[0]);
	close(ends[1]);
	PREMISE(peer_count(p, PAGES, FAULTED) < PAGES,
		"nothing was left to see");
	/* The flag asks for frames that were used before. */
	q = mmap(NULL, LENGTH, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FPR, -1, 0);
	ENSURE(q != MAP_FAILED, "mmap: %m");
	memset(q, NEW, LENGTH);
	ENSURE(!peer_count(p, PAGES, WORD(NEW)),
	       "new memory is seen at an address that was unmapped");
	stranger_fill(&stranger, FILL_ANON, 64);
	secrets = peer_count(p, PAGES, WORD(SECRET));
	ENSURE(!secrets, "%zu of %d pages of another process are readable",
	       secrets, PAGES);
	stranger_stop(&stranger);
}

/* A frame of what is held turns out to be bad: it leaves like any other. */
static void bad_frame(void)
{
	uint64_t frames[PAGES];
	char text[32], *p;

	start();
	group_start();
	p = hold_frames(frames);
	ENSURE(frames[0], "no frame numbers");
	snprintf(text, sizeof(text), "0x%llx",
		 (unsigned long long)frames[PAGES / 2] * PAGE);
	if (!write_text("/sys/devices/system/memory/hard_offline_page", text))
		ktap_note("memory_failure() says: %m");
	ENSURE(peer_count(p + PAGES / 2 * PAGE, 1, FAULTED) == 1,
	       "a bad frame can be read");
	ENSURE(write_text("/proc/sys/vm/compact_memory", "1"), "compaction: %m");
	ENSURE(fpr_wait_sysfs_at_most("parked", 0, LIMIT_S),
	       "%ld pages wait after a drain", fpr_sysfs("parked"));
}

int main(int argc, char **argv)
{
	static const struct ktap_case cases[] = {
		{ "counted", counted, 0 },
		{ "trickle", trickle, 300 },
		{ "of_group", of_group, 0 },
		{ "ends", ends, 0 },
		{ "drained", drained, 0 },
		{ "switched_off", switched_off, 0 },
		{ "others_have_some", others_have_some, 0 },
		{ "bad_frame", bad_frame, 0 },
	};

	setenv("CEASEFIRE_TEST_MECHANISM", "latr", 1);
	return ktap_main(argc, argv, cases, KTAP_COUNT(cases));
}
