// SPDX-License-Identifier: GPL-2.0
/*
 * Attacks on entries that others than the program change (I11): userfaultfd moves their
 * pages, KSM merges them, NUMA balancing makes them inaccessible. In each state that an
 * entry can be in: the peer has just used the page; its accessed bit was cleared since;
 * and a full flush has come since; and only the peer has it, which the entry names.
 *
 * The first thread is on CPU 0, the peer on CPU 1. Those of the last state need PCIDs.
 */
#define _GNU_SOURCE
#include <linux/mempolicy.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "abis.h"
#include "env.h"
#include "ktap.h"
#include "map.h"
#include "peer.h"
#include "regions.h"
#include "userfault.h"

#define PAGES	16
#define LENGTH	(PAGES * PAGE)
#define OWN	0x5a
#define NEW	0x42
#define KSM	"/sys/kernel/mm/ksm/"
#define SCANS	"/sys/kernel/debug/sched/numa_balancing/"
#define HINTS	"/proc/sys/kernel/numa_balancing"
/* Newer than the headers of some distributions. */
#ifndef MPOL_F_NUMA_BALANCING
#define MPOL_F_NUMA_BALANCING	(1 << 13)
#endif

static void start(enum abis_state state)
{
	if (state == INSERTED)
		abis_start_inserted();
	else
		abis_start();
}

/*
 * Nobody is asked for entries that nobody has, and only the peer for its own. KSM and
 * userfaultfd change them one by one, so each of them is counted.
 */
static void check_flushes(enum abis_state state, struct abis_flushes before)
{
	struct abis_flushes got = abis_flushes_since(before);

	if (state == SETTLED)
		ENSURE(got.none >= PAGES && got.uncached >= PAGES,
		       "%ld flushes fell away, %ld entries in no TLB; %ld used, %ld stale, %ld pending, %ld untracked",
		       got.none, got.uncached, got.young, got.stale,
		       got.pending, got.untracked);
	PREMISE(state != INSERTED || !got.young, "%ld entries were used again",
		got.young);
	if (state == INSERTED)
		ENSURE(got.narrow >= PAGES && got.class >= PAGES,
		       "%ld flushes were narrow, %ld for all; %ld entries by class",
		       got.narrow, got.all, got.class);
}

/* userfaultfd moves pages; at their old address is nothing any more. */
static void moved(enum abis_state state)
{
	struct abis_flushes got;
	char *p, *q;

	start(state);
	p = abis_written(PAGES, WORD(OWN));
	q = regions(1);
	abis_bring_to(state);
	got = abis_flushes();
	move_pages_to(q, p, PAGES);
	check_flushes(state, got);
	memset(q, NEW, LENGTH);
	peer_finds(p, PAGES, 0);
	peer_finds(q, PAGES, WORD(NEW));
}

static void moved_used(void)
{
	moved(USED);
}

static void moved_cleared(void)
{
	moved(CLEARED);
}

static void moved_settled(void)
{
	moved(SETTLED);
}

static void moved_inserted(void)
{
	moved(INSERTED);
}

static void ksm(const char *name, const char *value)
{
	char path[64];

	snprintf(path, sizeof(path), KSM "%s", name);
	if (!write_text(path, value))
		ktap_skip("%s: %m", path);
}

/* Do all pages have one frame? */
static bool are_one(const char *p)
{
	uint64_t frames[PAGES];
	size_t i;

	frames_of(p, PAGES, frames);
	for (i = 1; i < PAGES; i++)
		if (frames[i] != frames[0])
			return false;
	return frames[0];
}

/* KSM has pages of the same content share a frame, which nobody may write to. */
static void merge(char *p)
{
	double end = seconds() + seconds_until_end(20);
	bool merged;

	MUST(madvise(p, LENGTH, MADV_MERGEABLE));
	ksm("pages_to_scan", "10000");
	ksm("sleep_millisecs", "10");
	ksm("run", "1");
	while (!(merged = are_one(p)) && seconds() < end)
		sleep_ms(20);
	ksm("run", "0");
	PREMISE(merged, "the pages were not merged");
}

/* Whoever could write to a page before it was merged writes to a copy. */
static void merged(enum abis_state state)
{
	struct abis_flushes got;
	size_t i;
	char *p;

	start(state);
	p = abis_written(PAGES, WORD(OWN));
	abis_bring_to(state);
	got = abis_flushes();
	merge(p);
	check_flushes(state, got);
	ENSURE(peer_write(p, 1, WORD(NEW)) == 1, "no write");
	ENSURE(probe_read(p) == WORD(NEW), "the peer has written elsewhere");
	for (i = 1; i < PAGES; i++)
		ENSURE(probe_read(p + i * PAGE) == WORD(OWN),
		       "page %zu was changed", i);
	peer_finds(p, 1, WORD(NEW));
	peer_finds(p + PAGE, PAGES - 1, WORD(OWN));
}

static void merged_used(void)
{
	merged(USED);
}

static void merged_cleared(void)
{
	merged(CLEARED);
}

static void merged_settled(void)
{
	merged(SETTLED);
}

static void merged_inserted(void)
{
	merged(INSERTED);
}

/* Also takes new pages from where CPUs collect them, so that they can be moved. */
static void allow_nodes(char *p, unsigned int mode, unsigned long nodes)
{
	MUST(syscall(SYS_mbind, p, LENGTH, mode, &nodes, 64, MPOL_MF_MOVE));
}

/* Until the entries of some memory, and of little else, are hints. */
static void wait_for_hints(void)
{
	static const char *const waits[] = {
		"scan_delay_ms", "scan_period_min_ms", "scan_period_max_ms",
	};
	long made = vmstat("numa_pte_updates");
	double end = seconds() + seconds_until_end(20);
	char path[96];
	size_t i;

	for (i = 0; i < sizeof(waits) / sizeof(*waits); i++) {
		snprintf(path, sizeof(path), SCANS "%s", waits[i]);
		if (!write_text(path, "50"))
			ktap_skip("%s: %m", path);
	}
	if (!write_text(HINTS, "1"))
		ktap_skip(HINTS ": %m");
	while (vmstat("numa_pte_updates") - made < PAGES && seconds() < end)
		sleep_ms(20);
	made = vmstat("numa_pte_updates") - made;
	ENSURE(write_text(HINTS, "0"), HINTS ": %m");
	PREMISE(made >= PAGES, "%ld hints", made);
}

static size_t on_node(char *p, int node)
{
	void *pages[PAGES];
	int status[PAGES];
	size_t i, count = 0;

	for (i = 0; i < PAGES; i++)
		pages[i] = p + i * PAGE;
	MUST(syscall(SYS_move_pages, 0, PAGES, pages, NULL, status, 0));
	for (i = 0; i < PAGES; i++)
		count += status[i] == node;
	return count;
}

/*
 * A hint: the entry of a page of the other node becomes one without access. The first
 * thread comes by, and the page moves to its node, without another flush: the hint was
 * flushed for. Who has the entry from before would write to the old frame.
 */
static void hinted(enum abis_state state)
{
	size_t i, near;
	char *p;

	if (access("/sys/devices/system/node/node1", F_OK))
		ktap_skip("needs two nodes");
	start(state);
	p = regions(1);
	allow_nodes(p, MPOL_BIND, 2);
	ENSURE(peer_write(p, PAGES, WORD(OWN)) == PAGES, "no write");
	allow_nodes(p, MPOL_BIND | MPOL_F_NUMA_BALANCING, 3);
	abis_bring_to(state);
	wait_for_hints();
	for (i = 0; i < PAGES; i++)
		ENSURE(probe_read(p + i * PAGE) == WORD(OWN), "wrong data");
	near = on_node(p, 0);
	PREMISE(near >= PAGES / 2, "%zu of %d pages have come", near, PAGES);
	ENSURE(peer_write(p, PAGES, WORD(NEW)) == PAGES, "no write");
	for (i = 0; i < PAGES; i++)
		ENSURE(probe_read(p + i * PAGE) == WORD(NEW),
		       "the peer has written page %zu elsewhere", i);
}

static void hinted_used(void)
{
	hinted(USED);
}

static void hinted_cleared(void)
{
	hinted(CLEARED);
}

static void hinted_inserted(void)
{
	hinted(INSERTED);
}

int main(int argc, char **argv)
{
	static const struct ktap_case cases[] = {
		{ "moved_used", moved_used, 0 },
		{ "moved_cleared", moved_cleared, 0 },
		{ "moved_settled", moved_settled, 0 },
		{ "moved_inserted", moved_inserted, 0 },
		{ "merged_used", merged_used, 0 },
		{ "merged_cleared", merged_cleared, 0 },
		{ "merged_settled", merged_settled, 0 },
		{ "merged_inserted", merged_inserted, 0 },
		{ "hinted_used", hinted_used, 0 },
		{ "hinted_cleared", hinted_cleared, 0 },
		{ "hinted_inserted", hinted_inserted, 0 },
	};

	return ktap_main(argc, argv, cases, KTAP_COUNT(cases));
}
