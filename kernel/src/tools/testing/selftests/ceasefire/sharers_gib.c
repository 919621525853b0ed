// SPDX-License-Identifier: GPL-2.0
/*
 * Sharers: a CPU that has come to many regions of a GiB, or finds an entry of 1 GiB, has
 * it whole. It is asked for all of it then (I11), nothing of it dangles (I12), and it
 * takes a bounded number of faults.
 */
#define _GNU_SOURCE
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "env.h"
#include "ktap.h"
#include "peer.h"
#include "regions.h"
#include "stranger.h"

#define PAGES		16
#define LENGTH		(PAGES * PAGE)
#define REGIONS		(GIB / REGION)
#define OWN		0x5a
#define NEW		0x42
/* As whole.c of the kernel has it, and a few for whatever else the peer does. */
#define FILLS_MAX	(64 + 16)
#define ROUNDS		200
#define USELESS		3
#define POOL		"/sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages"
#ifndef MAP_HUGE_1GB
#define MAP_HUGE_1GB	(30U << 26)
#endif

/* A GiB, with a page in each of its regions, that the peer has read, all of them. */
static char *linked(void)
{
	long links = vmstat("sharers_whole");
	char *p = whole_gib(MAP_PRIVATE | MAP_ANONYMOUS, -1);
	size_t i;

	for (i = 0; i < REGIONS; i++)
		memset(p + i * REGION, OWN, PAGE);
	memset(p, OWN, LENGTH);
	for (i = 0; i < REGIONS; i++)
		peer_touch(p + i * REGION, 1);
	peer_touch(p, PAGES);
	ENSURE(vmstat("sharers_whole") > links, "the peer has no link");
	return p;
}

static void storm(void)
{
	long fills, tables;

	sharers_start();
	fills = vmstat("sharers_fill");
	linked();
	fills = vmstat("sharers_fill") - fills - (long)REGIONS;
	tables = read_kb("/proc/self/status", "VmPTE");
	ENSURE(fills < FILLS_MAX, "%ld fills for one GiB", fills);
	/* One of each region, and those above; of CPUs and of the process. */
	ENSURE(tables < 4 * (long)(REGIONS + 100), "%ld kB of tables", tables);
}

static void linked_dontneed(void)
{
	char *p;

	sharers_start();
	p = linked();
	MUST(madvise(p, LENGTH, MADV_DONTNEED));
	peer_finds(p, PAGES, 0);
	MUST(madvise(p + GIB - REGION, PAGE, MADV_DONTNEED));
	peer_finds(p + GIB - REGION, 1, 0);
	/* All of it: the union of all masks. */
	MUST(madvise(p, GIB, MADV_DONTNEED));
	peer_finds(p + REGION, 1, 0);
}

static void linked_protected(void)
{
	char *p;

	sharers_start();
	p = linked();
	ENSURE(peer_write(p, PAGES, WORD(OWN)) == PAGES, "no write");
	MUST(mprotect(p, LENGTH, PROT_READ));
	peer_cannot_write(p, PAGES, WORD(NEW));
	peer_finds(p, PAGES, WORD(OWN));
}

/* The table of PMDs goes. */
static void linked_unmapped(void)
{
	char *p;
	int i;

	sharers_start();
	for (i = 0; i < 3; i++) {
		p = linked();
		MUST(munmap(p, GIB));
		peer_finds(p, PAGES, FAULTED);
		ENSURE(mmap(p, GIB, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED |
			    MAP_NORESERVE, -1, 0) == p, "mmap: %m");
		MUST(madvise(p, GIB, MADV_NOHUGEPAGE));
		memset(p, NEW, LENGTH);
		peer_finds(p, PAGES, WORD(NEW));
		MUST(munmap(p, GIB));
	}
}

/* It is at another address. */
static void linked_moved(void)
{
	char *from, *to;

	sharers_start();
	from = linked();
	to = whole_gib(MAP_PRIVATE | MAP_ANONYMOUS, -1);
	ENSURE(mremap(from, GIB, GIB, MREMAP_MAYMOVE | MREMAP_FIXED, to) == to,
	       "mremap: %m");
	peer_finds(from, PAGES, FAULTED);
	peer_finds(to, PAGES, WORD(OWN));
	ENSURE(mmap(from, GIB, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE,
		    -1, 0) == from, "mmap: %m");
	memset(from, NEW, LENGTH);
	peer_finds(from, PAGES, WORD(NEW));
}

/* A CPU that does not use it any more is interrupted a few times, and then not. */
static void linked_left(void)
{
	long received;
	char *p;
	int i;

	sharers_start();
	p = linked();
	received = vmstat("nr_tlb_remote_flush_received");
	for (i = 0; i < ROUNDS; i++) {
		*(volatile char *)p = NEW;
		MUST(madvise(p, PAGE, MADV_DONTNEED));
	}
	received = vmstat("nr_tlb_remote_flush_received") - received;
	ENSURE(received < USELESS + ROUNDS / 10,
	       "%ld shootdowns by %d calls", received, ROUNDS);
	peer_finds(p, 1, 0);
	peer_finds(p + PAGE, PAGES - 1, WORD(OWN));
	MUST(madvise(p, LENGTH, MADV_DONTNEED));
	peer_finds(p, PAGES, 0);
}

/* One entry of 1 GiB, to which the peer has written. */
static char *large(void)
{
	long unconfined = vmstat("sharers_unconfine");
	char *p;

	/* What is written there is a wish. */
	if (read_number(POOL) < 1 &&
	    (!write_text(POOL, "1") || read_number(POOL) < 1))
		ktap_skip("no huge pages of 1 GiB: boot with hugepagesz=1G hugepages=1");
	p = whole_gib(MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB | MAP_HUGE_1GB,
		      -1);
	ENSURE(peer_write(p, PAGES, WORD(OWN)) == PAGES, "no write");
	ENSURE(vmstat("sharers_unconfine") == unconfined,
	       "a CPU goes on without its copy");
	return p;
}

static void large_dontneed(void)
{
	char *p;

	sharers_start();
	p = large();
	MUST(madvise(p, GIB, MADV_DONTNEED));
	peer_finds(p, PAGES, 0);
	MUST(munmap(p, GIB));
	peer_finds(p, PAGES, FAULTED);
}

static void large_protected(void)
{
	char *p;

	sharers_start();
	p = large();
	MUST(mprotect(p, GIB, PROT_READ));
	peer_cannot_write(p, PAGES, WORD(NEW));
	MUST(mprotect(p, GIB, PROT_READ | PROT_WRITE));
	ENSURE(peer_write(p, PAGES, WORD(NEW)) == PAGES, "no write");
	peer_finds(p, PAGES, WORD(NEW));
}

int main(int argc, char **argv)
{
	static const struct ktap_case cases[] = {
		{ "storm", storm, 0 },
		{ "linked_dontneed", linked_dontneed, 0 },
		{ "linked_protected", linked_protected, 0 },
		{ "linked_unmapped", linked_unmapped, 0 },
		{ "linked_moved", linked_moved, 0 },
		{ "linked_left", linked_left, 0 },
		{ "large_dontneed", large_dontneed, 0 },
		{ "large_protected", large_protected, 0 },
	};

	return ktap_main(argc, argv, cases, KTAP_COUNT(cases));
}
