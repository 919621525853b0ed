// SPDX-License-Identifier: GPL-2.0
/*
 * The short way of mmap(): a small mapping that is only read has its cached
 * pages from the start. What a program can see of it is what fault-around does
 * anyway; where it would see more, the pages are left to faults.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "env.h"
#include "file.h"
#include "ktap.h"
#include "map.h"

#define PAGES	8
#define OWN	0x5a

static struct tfile file;

static long faults(void)
{
	struct rusage usage;

	MUST(getrusage(RUSAGE_SELF, &usage));
	return usage.ru_minflt;
}

/* A neighbour, so that the page table of the next mappings is there. */
static void prepare(enum place where)
{
	int tries = 500;
	char *p;

	file_make(&file, where, PAGES, OWN);
	for (;;) {
		p = fpr_map(&file, 0, PAGES, PROT_READ, MAP_SHARED);
		ENSURE(p[0] == OWN, "wrong data");
		/* Not where a table ends: those below would need another one. */
		if (((uintptr_t)p & (2 * MIB - 1)) > MIB || !tries--)
			break;
	}
}

static size_t present(char *p)
{
	size_t i, n = 0;

	for (i = 0; i < PAGES; i++)
		n += !!frame_of(p + i * PAGE);
	return n;
}

static void cached_pages(void)
{
	long before;
	size_t i;
	char *p;

	prepare(ON_DISK);
	p = fpr_map(&file, 0, PAGES, PROT_READ, MAP_SHARED);
	ENSURE(present(p) == PAGES, "%zu pages are there", present(p));
	before = faults();
	for (i = 0; i < PAGES; i++)
		ENSURE(((volatile char *)p)[i * PAGE] == OWN, "wrong data");
	ENSURE(faults() == before, "a page was faulted in");
	MUST(munmap(p, PAGES * PAGE));
}

/* Not those beyond the end, and none that truncation does not find. */
static void end_of_file(void)
{
	char *p;

	prepare(ON_DISK);
	MUST(ftruncate(file.fd, 2 * PAGE + 100));
	p = fpr_map(&file, 0, PAGES, PROT_READ, MAP_SHARED);
	ENSURE(present(p) == 3, "%zu pages are there", present(p));
	ENSURE(p[2 * PAGE + 99] == OWN && !p[2 * PAGE + 100], "wrong data");
	MUST(ftruncate(file.fd, 0));
	ENSURE(!present(p), "%zu pages outlive their file", present(p));
}

static void as_fault(enum place where, int prot, int flags)
{
	char *p;

	prepare(where);
	p = fpr_map(&file, 0, PAGES, prot, flags);
	ENSURE(!present(p), "%zu pages without a fault", present(p));
	MUST(munmap(p, PAGES * PAGE));
}

/* userfaultfd may ask for the first fault of a page that is in the cache. */
static void shared_memory(void)
{
	as_fault(ON_TMPFS, PROT_READ, MAP_SHARED);
}

/* A write would meet an entry that must be flushed. */
static void writable(void)
{
	as_fault(ON_DISK, PROT_READ | PROT_WRITE, MAP_PRIVATE);
	as_fault(ON_DISK, PROT_READ | PROT_WRITE, MAP_SHARED);
}

static void inaccessible(void)
{
	as_fault(ON_DISK, PROT_NONE, MAP_PRIVATE);
}

/* Mappings that follow each other in memory and in the file become one. */
static void merged(void)
{
	long before, count = 0;
	char *p, *q;
	FILE *maps;
	char line[512];

	prepare(ON_DISK);
	p = fpr_map(&file, 4, 4, PROT_READ, MAP_SHARED);
	q = fpr_map(&file, 0, 4, PROT_READ, MAP_SHARED);
	ENSURE(q + 4 * PAGE == p, "not below the one before");
	maps = fopen("/proc/self/maps", "re");
	ENSURE(maps, "maps: %m");
	while (fgets(line, sizeof(line), maps)) {
		unsigned long start, end;

		if (sscanf(line, "%lx-%lx", &start, &end) == 2 &&
		    start == (unsigned long)q)
			count = (long)((end - start) / PAGE);
	}
	fclose(maps);
	ENSURE(count == 8, "a mapping of %ld pages, not of 8", count);
	before = faults();
	ENSURE(q[0] == OWN && p[0] == OWN, "wrong data");
	ktap_note("%ld faults", faults() - before);
}

/* What one mapping was is not what the next one is that has its structure. */
static void one_after_another(void)
{
	struct tfile other;
	int i;

	prepare(ON_DISK);
	file_make(&other, ON_DISK, PAGES, OWN + 1);
	for (i = 0; i < 200; i++) {
		int flags = i & 1 ? MAP_SHARED : MAP_PRIVATE;
		struct tfile *f = i & 2 ? &file : &other;
		size_t first = (size_t)i % 4;
		char *p = fpr_map(f, first, 4, PROT_READ, flags);

		ENSURE(p[3 * PAGE] == (i & 2 ? OWN : OWN + 1), "wrong data");
		ENSURE(smaps_has_flag(p, "sh") == !!(i & 1), "wrong flags");
		if (i % 5 == 0) {
			MUST(mprotect(p, PAGE, PROT_NONE));
			ENSURE(!smaps_has_flag(p, "rd"), "still readable");
			MUST(munmap(p, PAGE));
			MUST(munmap(p + PAGE, 3 * PAGE));
		} else {
			MUST(munmap(p, 4 * PAGE));
		}
	}
}

#define TAGS_FILE	"/sys/kernel/mm/ceasefire/fpr/meminfo"

static void use_tags(void)
{
	int tries;

	fpr_skip_local();
	file_make(&file, ON_DISK, PAGES, OWN);
	for (tries = 0; tries < 1000; tries++) {
		long before = vmstat("fpr_skip");
		char *p = fpr_map(&file, 0, PAGES, PROT_READ, MAP_SHARED);

		ENSURE(p[0] == OWN, "wrong data");
		MUST(munmap(p, PAGES * PAGE));
		if (vmstat("fpr_skip") > before)
			return;
		sleep_ms(10);
	}
	ktap_fail("no munmap was skipped");
}

/* The memory of tags is given back a minute after the last who used it. */
static void tags_given_back(void)
{
	long used, left;
	int i, status;
	pid_t child;

	child = (pid_t)MUST(fork());
	if (!child) {
		use_tags();
		_exit(0);
	}
	MUST(waitpid(child, &status, 0));
	ENSURE(WIFEXITED(status) && !WEXITSTATUS(status), "no tags to give back");
	used = read_kb(TAGS_FILE, "Tags");
	PREMISE(used >= 256, "only %ld kB of tags", used);
	for (i = 0; i < 600; i++) {
		left = read_kb(TAGS_FILE, "Tags");
		if (left < 256)
			return;
		sleep_ms(1000);
	}
	ktap_fail("%ld of %ld kB of tags are kept", left, used);
}

int main(int argc, char **argv)
{
	static const struct ktap_case cases[] = {
		{ "cached_pages", cached_pages, 0 },
		{ "end_of_file", end_of_file, 0 },
		{ "shared_memory", shared_memory, 0 },
		{ "writable", writable, 0 },
		{ "inaccessible", inaccessible, 0 },
		{ "merged", merged, 0 },
		{ "one_after_another", one_after_another, 0 },
		{ "tags_given_back", tags_given_back, 700 },
	};

	return ktap_main(argc, argv, cases, KTAP_COUNT(cases));
}
