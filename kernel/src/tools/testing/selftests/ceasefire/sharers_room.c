// SPDX-License-Identifier: GPL-2.0
/*
 * Placement in processes with sharers takes a bounded amount of room, however many threads
 * there are, come and go, and leave something behind; and what somebody else has put
 * there is not in the way. See sharers_place.c.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "env.h"
#include "granule.h"
#include "ktap.h"
#include "worker.h"

#define PAGES		8
#define CROWD		600
#define GENERATIONS	1000

/* One granule after the other, up to a limit, then as ever; holes are used again. */
static void full(void)
{
	static char *piece[GRANULES_EACH * 8 + 1];
	long granules, spent = 0;
	size_t i, count = 0;
	struct worker w;
	int round;

	placement_start();
	worker_start(&w, -1, NULL);
	granules = vmstat("sharers_granule");
	for (round = 0; round < 3; round++) {
		for (count = 0; count < KTAP_COUNT(piece); count++) {
			piece[count] = map_in(&w, MIB);
			if (distance(piece[0], piece[count]) > GIB)
				break;
		}
		spent = vmstat("sharers_granule") - granules;
		ENSURE(spent == GRANULES_EACH, "%ld granules in round %d",
		       spent, round);
		ENSURE(count >= GRANULES_EACH * 7 && count <= GRANULES_EACH * 8,
		       "%zu pieces of 1 MiB in %ld granules", count, spent);
		if (!round) {
			/* A hole in the first one is found. */
			MUST(munmap(piece[1], MIB));
			ENSURE(map_in(&w, MIB) == piece[1],
			       "a hole is not used again");
		}
		for (i = 0; i <= count; i++)
			MUST(munmap(piece[i], MIB));
	}
	ktap_note("%zu pieces of 1 MiB in %ld granules", count, spent);
}

/* Somebody has mapped something in the room of a granule, and below. */
static void taken(void)
{
	char *own, *foreign, *next;
	struct worker w;
	size_t i;

	placement_start();
	worker_start(&w, -1, NULL);
	own = map_in(&w, PAGE);
	foreign = map_with(&w, own - 2 * GRANULE, 2 * GRANULE,
			   PROT_READ | PROT_WRITE, MAP_FIXED_NOREPLACE);
	ENSURE(foreign == own - 2 * GRANULE, "mmap: %p", foreign);
	MUST(madvise(foreign, 2 * GRANULE, MADV_NOHUGEPAGE));
	memset(foreign, 0x5a, PAGE);
	memset(own - PAGE, 0x5a, PAGE);
	for (i = 0; i < 2 * REGION / PAGE; i++) {
		next = map_in(&w, PAGE);
		ENSURE(next + PAGE <= foreign || next > own, "%p in %p", next,
		       foreign);
		*next = 1;
	}
	ENSURE(distance(own, next) > GIB, "%p is near what others map, %p",
	       next, foreign);
	ENSURE(*foreign == 0x5a && own[-1] == 0x5a, "other data");
}

static void use_and_leave(void *arg)
{
	char *p = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	ENSURE(p != MAP_FAILED, "mmap: %m");
	memset(p, 1, PAGES * PAGE);
	MUST(munmap(p + PAGE, (PAGES - 1) * PAGE));
	if (arg)
		*(char **)arg = p;
	else
		MUST(munmap(p, PAGE));
}

/* Threads that come and go: room is used again. */
static void come_and_go(void)
{
	long granules, tables;
	struct worker w;
	int i;

	placement_start();
	/* Once before, for what is there from then on. */
	worker_start(&w, -1, NULL);
	worker_run(&w, use_and_leave, NULL);
	worker_stop(&w);
	granules = vmstat("sharers_granule");
	tables = read_kb("/proc/self/status", "VmPTE");
	for (i = 0; i < GENERATIONS; i++) {
		worker_start(&w, -1, NULL);
		worker_run(&w, use_and_leave, NULL);
		worker_stop(&w);
	}
	granules = vmstat("sharers_granule") - granules;
	tables = read_kb("/proc/self/status", "VmPTE") - tables;
	ktap_note("%d threads: %ld granules, %ld kB of page tables",
		  GENERATIONS, granules, tables);
	/* One may not be gone yet when the next one comes. */
	ENSURE(granules <= 8, "%ld granules for threads that come and go",
	       granules);
	ENSURE(tables <= 128, "%ld kB of page tables are left", tables);
}

/* Each thread leaves something: more of them than there can be granules. */
static void left_behind(void)
{
	static char *left[GENERATIONS];
	long granules, tables;
	struct worker w;
	int i;

	placement_start();
	granules = vmstat("sharers_granule");
	tables = read_kb("/proc/self/status", "VmPTE");
	for (i = 0; i < GENERATIONS; i++) {
		worker_start(&w, -1, NULL);
		worker_run(&w, use_and_leave, &left[i]);
		worker_stop(&w);
		*(int *)left[i] = i;
	}
	granules = vmstat("sharers_granule") - granules;
	tables = read_kb("/proc/self/status", "VmPTE") - tables;
	ktap_note("%d threads: %ld granules, %ld kB of page tables",
		  GENERATIONS, granules, tables);
	for (i = 0; i < GENERATIONS; i++)
		ENSURE(*(int *)left[i] == i, "thread %d has left %d", i,
		       *(int *)left[i]);
	ENSURE(granules > GRANULES / 2 && granules <= GRANULES, "%ld granules",
	       granules);
	/* A table for each granule, or two. */
	ENSURE(tables <= 2 * 4 * GRANULES + 128, "%ld kB of page tables",
	       tables);
}

/* More threads at a time than there can be granules, with stacks there. */
static void crowd(void)
{
	static struct worker w[CROWD];
	static char *own[CROWD];
	pthread_attr_t attr;
	long granules;
	int i;

	placement_start();
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 64 << 10);
	granules = vmstat("sharers_granule");
	for (i = 0; i < CROWD; i++)
		worker_start(&w[i], -1, &attr);
	for (i = 0; i < CROWD; i++) {
		own[i] = map_in(&w[i], PAGE);
		*(int *)own[i] = i;
	}
	granules = vmstat("sharers_granule") - granules;
	ENSURE(granules == GRANULES, "%ld granules", granules);
	for (i = 0; i < CROWD; i++)
		ENSURE(*(int *)own[i] == i, "mapping %d is %d", i,
		       *(int *)own[i]);
	for (i = 0; i < CROWD; i++)
		worker_stop(&w[i]);
}

/* Lines of /proc/self/maps. */
static long mappings(void)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	long count = 0;
	int c;

	ENSURE(maps, "/proc/self/maps: %m");
	while ((c = getc(maps)) != EOF)
		count += c == '\n';
	fclose(maps);
	return count;
}

struct costs {
	long tables, mappings;
};

static void use_some(void *arg)
{
	size_t i, len;
	char *p;

	(void)arg;
	for (i = 0; i < 32; i++) {
		len = (1 + i % 8) * PAGE;
		p = mmap(NULL, len, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		ENSURE(p != MAP_FAILED, "mmap: %m");
		memset(p, 1, len);
	}
}

/* Threads that use some memory each; in a child, which begins without any. */
static struct costs costs_of(bool placement)
{
	struct worker w[8];
	struct costs c;
	int ends[2], status, i;
	pid_t child;

	sharers_placement(placement);
	MUST(pipe(ends));
	child = (pid_t)MUST(fork());
	if (!child) {
		for (i = 0; i < 8; i++)
			worker_start(&w[i], i % online_cpus(), NULL);
		c.tables = read_kb("/proc/self/status", "VmPTE");
		c.mappings = mappings();
		for (i = 0; i < 8; i++)
			worker_run(&w[i], use_some, NULL);
		c.tables = read_kb("/proc/self/status", "VmPTE") - c.tables;
		c.mappings = mappings() - c.mappings;
		_exit(write(ends[1], &c, sizeof(c)) != sizeof(c));
	}
	MUST(waitpid(child, &status, 0));
	ENSURE(!status && read(ends[0], &c, sizeof(c)) == sizeof(c),
	       "the child has failed");
	close(ends[0]);
	close(ends[1]);
	return c;
}

/* What it costs: tables, and mappings that are not merged any more. */
static void costs(void)
{
	struct costs off, on;
	long most;

	placement_start();
	off = costs_of(false);
	on = costs_of(true);
	ktap_note("8 threads map 32 times each: what comes on top");
	ktap_note("without placement: %ld kB of page tables, %ld mappings",
		  off.tables, off.mappings);
	ktap_note("with placement: %ld kB, %ld mappings", on.tables,
		  on.mappings);
	/* Two tables a thread, and those above them, for each CPU, too. */
	most = 8 * 2 * 4 + (online_cpus() + 1) * 4 * 4;
	ENSURE(on.tables <= off.tables + most, "%ld kB, not %ld", on.tables,
	       off.tables);
	ENSURE(on.mappings <= off.mappings + 8, "%ld mappings, not %ld",
	       on.mappings, off.mappings);
}

int main(int argc, char **argv)
{
	static const struct ktap_case cases[] = {
		{ "full", full, 0 },
		{ "taken", taken, 0 },
		{ "come_and_go", come_and_go, 0 },
		{ "left_behind", left_behind, 0 },
		{ "crowd", crowd, 0 },
		{ "costs", costs, 0 },
	};

	return ktap_main(argc, argv, cases, KTAP_COUNT(cases));
}
