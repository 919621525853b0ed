// SPDX-License-Identifier: GPL-2.0
/*
 * Each kind of context at each event of its life, with what the kernel counts:
 * who may recycle from whom decides which of them have to flush (I1, I2). A case
 * notes its counters as a line of a table; what they have to be is checked.
 *
 * The attacks on what the flushes protect are in fpr_context.c and fpr_evict.c.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "context.h"
#include "env.h"
#include "file.h"
#include "group.h"
#include "ktap.h"
#include "map.h"
#include "peer.h"
#include "stranger.h"

#define PAGES		64
#define LENGTH		(PAGES * PAGE)
#define OWN		0x5a
#define TRIES		50
/* Ends at once: what exec is tried with. */
#define PROGRAM		"/proc/self/exe"

enum counter {
	SKIPS, REASONS, EVICTED, STALE, YOUNG, LEAVES, FLUSHES, EXITS, COUNTERS
};

static const char *const names[COUNTERS] = {
	[SKIPS] = "fpr_skip_pages",
	[REASONS] = "fpr_flush_context",
	[EVICTED] = "fpr_evict_skip",
	[STALE] = "fpr_evict_flush_stale",
	[YOUNG] = "fpr_evict_flush_young",
	[LEAVES] = "fpr_leave_flush",
	[FLUSHES] = "fpr_drain_flush",
	[EXITS] = "fpr_drain_exit",
};

static long counted[COUNTERS];
static struct tfile file;
static struct stranger other;

static void begin(void)
{
	vmstat_read(names, counted, COUNTERS);
}

/* What the counters rose by since begin(), as a line. */
static void end(const char *event)
{
	long now[COUNTERS];
	char line[256];
	int used = 0;
	size_t i;

	vmstat_read(names, now, COUNTERS);
	for (i = 0; i < COUNTERS; i++) {
		counted[i] = now[i] - counted[i];
		if (counted[i])
			used += snprintf(line + used, sizeof(line) - used,
					 " %s=%ld", names[i], counted[i]);
	}
	ktap_note("%s:%s, parked=%ld", event, used ? line : " nothing",
		  fpr_sysfs("parked"));
}

static long choose(long kind)
{
	return context_choose((unsigned long)kind);
}

/* A group has a second member. */
static long map_once(long unused)
{
	char *p = mmap(NULL, LENGTH, PROT_READ, MAP_SHARED | MAP_FPR, file.fd,
		       0);

	(void)unused;
	if (p == MAP_FAILED)
		return -1;
	probe_read(p);
	return munmap(p, LENGTH);
}

static void start(unsigned long kind)
{
	pin_to_cpu(0);
	fpr_skip_local();
	group_start();
	file_make(&file, ON_DISK, PAGES, OWN);
	MUST(fdatasync(file.fd));
	stranger_start(&other);
	peer_start(1);
	hold_debts();
	/* Room for the tags of the frames. */
	leave_stale(&file, 0, PAGES, PROT_READ, MAP_SHARED, OWN);
	full_flush();
	MUST(context_choose(kind));
	if (kind == CONTEXT_CHILDREN) {
		ENSURE(!stranger_call(&other, choose, (long)kind), "prctl: %m");
		ENSURE(!stranger_call(&other, map_once, 0), "mmap: %m");
	}
}

/* Mapped and read by the peer. */
static char *in_use(void)
{
	char *p = fpr_map(&file, 0, PAGES, PROT_READ, MAP_SHARED);

	ENSURE(peer_count(p, PAGES, WORD(OWN)) == PAGES, "wrong data");
	return p;
}

/* Each mapping on its own: there is nobody to recycle from whom. */
static void unmaps(unsigned long kind)
{
	char *p = in_use();

	begin();
	MUST(munmap(p, LENGTH));
	end("munmap");
	if (kind == CONTEXT_MAPPING)
		ENSURE(!counted[SKIPS] && counted[REASONS], "it has skipped");
	else
		ENSURE(counted[SKIPS] == PAGES, "%ld pages without a flush",
		       counted[SKIPS]);
	full_flush();
}

static void evicts(void)
{
	int tries;
	char *p = in_use();

	ENSURE(write_text("/proc/self/clear_refs", "1"), "clear_refs: %m");
	full_flush();
	begin();
	for (tries = 0; tries < TRIES && file_cached(&file); tries++)
		group_reclaim(file_cached(&file) * PAGE);
	end("eviction");
	ENSURE(!file_cached(&file), "pages were not evicted");
	/* A group may still owe for what another member has read. */
	ENSURE(counted[EVICTED] >= PAGES / 4 &&
	       counted[EVICTED] + counted[STALE] + counted[YOUNG] >= PAGES,
	       "%ld pages without a flush, %ld with one", counted[EVICTED],
	       counted[STALE] + counted[YOUNG]);
	ENSURE(peer_count(p, PAGES, WORD(OWN)) == PAGES, "wrong data");
	MUST(munmap(p, LENGTH));
	full_flush();
}

/* For another kind: what is left between members has to go. */
static void changes(unsigned long kind)
{
	bool shared = kind == CONTEXT_CHILDREN;
	char *p = in_use();

	MUST(munmap(p, LENGTH));
	begin();
	MUST(context_choose(kind == CONTEXT_PROCESS ? CONTEXT_MAPPING :
						      CONTEXT_PROCESS));
	end("another kind");
	ENSURE(!shared || counted[LEAVES] == 1, "%ld flushes of who leaves",
	       counted[LEAVES]);
	ENSURE(!shared || peer_count(p, PAGES, FAULTED) == PAGES,
	       "the peer still reads what a member has left");
	MUST(context_choose(kind));
	full_flush();
}

/* A process that leaves parked frames behind and then does @what. */
static void ends(const char *what, bool execs, unsigned long kind)
{
	int status;
	pid_t pid;

	begin();
	pid = (pid_t)MUST(fork());
	if (!pid) {
		char *p;

		MUST(context_choose(kind));
		p = mmap(NULL, LENGTH, PROT_READ, MAP_SHARED | MAP_FPR,
			 file.fd, 0);
		ENSURE(p != MAP_FAILED, "mmap: %m");
		ENSURE(probe_read(p) == WORD(OWN), "wrong data");
		munmap(p, LENGTH);
		if (execs)
			execl(PROGRAM, "fpr_contexts", "--end", NULL);
		_exit(execs ? 127 : 0);
	}
	MUST(waitpid(pid, &status, 0));
	end(what);
	ENSURE(WIFEXITED(status) && !WEXITSTATUS(status), "the child fails");
	ENSURE(!counted[LEAVES], "a process without addresses has flushed");
}

static void life(unsigned long kind)
{
	start(kind);
	unmaps(kind);
	evicts();
	changes(kind);
	ends("exec", true, kind);
	ends("exit", false, kind);
	stranger_stop(&other);
}

static void process(void)
{
	life(CONTEXT_PROCESS);
}

static void mapping(void)
{
	life(CONTEXT_MAPPING);
}

static void children(void)
{
	life(CONTEXT_CHILDREN);
}

int main(int argc, char **argv)
{
	static const struct ktap_case cases[] = {
		{ "process", process, 0 },
		{ "mapping", mapping, 0 },
		{ "children", children, 0 },
	};

	if (argc == 2 && !strcmp(argv[1], "--end"))
		return 0;
	return ktap_main(argc, argv, cases, KTAP_COUNT(cases));
}
