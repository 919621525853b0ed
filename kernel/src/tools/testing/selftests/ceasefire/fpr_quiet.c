// SPDX-License-Identifier: GPL-2.0
/*
 * CPUs that have nothing to do with a process are not interrupted for it, whatever
 * it does and whoever asks: somebody runs something else there, and has perhaps
 * isolated the CPU for it. The last CPU of the guest runs nothing in these cases;
 * what it is sent by other CPUs is counted, while the same work is done without
 * FPR and with it.
 *
 * Not the first use alone: each round is with new processes, so that contexts
 * come and go.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "env.h"
#include "file.h"
#include "group.h"
#include "ktap.h"
#include "map.h"
#include "stranger.h"

#define OWN	0x5a
#define PAGES	64
#define LENGTH	(PAGES * PAGE)
#define ROUNDS	25
/* Of a round in which all CPUs are asked once there is one at least. */
#define ENOUGH	(ROUNDS - 5)

static struct tfile file;
static int quiet_cpu, flag;

/* Function calls and flushes that other CPUs have asked @quiet_cpu for. */
static long times_asked(void)
{
	FILE *f = fopen("/proc/interrupts", "r");
	char line[4096];
	long sum = 0;
	int found = 0;

	ENSURE(f, "/proc/interrupts: %m");
	while (fgets(line, sizeof(line), f)) {
		char *at = line + strspn(line, " ");
		int cpu;
		long n = 0;

		if (strncmp(at, "CAL:", 4) && strncmp(at, "TLB:", 4))
			continue;
		found++;
		at += 4;
		for (cpu = 0; cpu <= quiet_cpu; cpu++)
			n = strtol(at, &at, 10);
		sum += n;
	}
	fclose(f);
	ENSURE(found == 2, "/proc/interrupts has no CAL and TLB");
	return sum;
}

static long uses(long unused)
{
	char *p = mmap(NULL, LENGTH, PROT_READ, MAP_SHARED | flag, file.fd, 0);
	size_t i;

	(void)unused;
	if (p == MAP_FAILED)
		return -1;
	for (i = 0; i < PAGES; i++)
		if (*(volatile char *)(p + i * PAGE) != OWN)
			return -1;
	return munmap(p, LENGTH);
}

static char *mapped;

static long maps(long unused)
{
	(void)unused;
	mapped = mmap(NULL, LENGTH, PROT_READ, MAP_SHARED | MAP_POPULATE | flag,
		      file.fd, 0);
	return mapped == MAP_FAILED ? -1 : 0;
}

/* Two processes leave the same frames, which are freed then. */
static void both_leave(struct stranger s[2])
{
	int i;

	file_fill(&file, 0, PAGES, OWN);
	if (file.place == ON_DISK)
		MUST(fdatasync(file.fd));
	for (i = 0; i < 2; i++)
		stranger_start(&s[i]);
	/* The first munmap() makes room for tags. */
	for (i = 0; i < 4; i++)
		ENSURE(!stranger_call(&s[i % 2], uses, 0), "wrong data");
	file_drop(&file);
}

static void both_end(struct stranger s[2])
{
	stranger_stop(&s[0]);
	stranger_stop(&s[1]);
}

static void comes_and_goes(void)
{
	struct stranger s[2];

	both_leave(s);
	both_end(s);
}

static void compacted(void)
{
	struct stranger s[2];

	both_leave(s);
	ENSURE(write_text("/proc/sys/vm/compact_memory", "1"), "compact: %m");
	both_end(s);
}

/* The debt is paid by ticks of those that it is about, or by nobody else. */
static void got_old(void)
{
	struct stranger s[2];

	both_leave(s);
	ENSURE(fpr_wait_sysfs_at_most("parked", 0, 60), "frames stay parked");
	both_end(s);
}

/* Pages that two processes have mapped are evicted. */
static void evicted(void)
{
	struct stranger s[2];
	int i, tries;

	file_fill(&file, 0, PAGES, OWN);
	MUST(fdatasync(file.fd));
	for (i = 0; i < 2; i++) {
		stranger_start(&s[i]);
		/* Room for tags. */
		ENSURE(!stranger_call(&s[i], uses, 0), "wrong data");
		ENSURE(!stranger_call(&s[i], maps, 0), "mmap: %m");
	}
	for (tries = 0; tries < 20 && file_cached(&file); tries++)
		group_reclaim(file_cached(&file) * PAGE);
	both_end(s);
}

static long repeat(void (*work)(void), int with)
{
	long before;
	int i;

	flag = with;
	before = times_asked();
	for (i = 0; i < ROUNDS; i++)
		work();
	return times_asked() - before;
}

static void compare(void (*work)(void), enum place place)
{
	long shared, plain, fpr;

	need_cpus(3);
	quiet_cpu = online_cpus() - 1;
	pin_to_cpu(0);
	fpr_skip_local();
	group_start();
	file_make(&file, place, PAGES, OWN);
	plain = repeat(work, 0);
	shared = vmstat("fpr_shared");
	fpr = repeat(work, MAP_FPR);
	shared = vmstat("fpr_shared") - shared;
	ktap_note("CPU %d was interrupted %ld times without FPR, %ld times with it",
		  quiet_cpu, plain, fpr);
	/* What is sent for other reasons comes now and then in either. */
	ENSURE(fpr < plain + ENOUGH / 2, "a CPU that runs nothing was interrupted");
	ENSURE(shared >= ROUNDS, "%ld tags became shared in %d rounds", shared,
	       ROUNDS);
}

static void by_new_processes(void)
{
	compare(comes_and_goes, ON_TMPFS);
}

static void by_compaction(void)
{
	compare(compacted, ON_TMPFS);
}

static void by_age(void)
{
	fpr_set("debt_age_ms", 40);
	compare(got_old, ON_TMPFS);
}

static void by_eviction(void)
{
	compare(evicted, ON_DISK);
}

static const struct ktap_case cases[] = {
	{ "by_new_processes", by_new_processes, 0 },
	{ "by_compaction", by_compaction, 0 },
	{ "by_age", by_age, 300 },
	{ "by_eviction", by_eviction, 300 },
};

int main(int argc, char **argv)
{
	return ktap_main(argc, argv, cases, KTAP_COUNT(cases));
}
