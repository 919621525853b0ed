// SPDX-License-Identifier: GPL-2.0
/*
 * Frames that are moved, for whatever reason, while the peer still reads them
 * through stale translations. The debt stays with the old frame (I1), whoever
 * asked gets what he wanted (I6), and the pages have what they had.
 *
 * The stranger maps the file, too, and it is the stranger's pages that move:
 * what moves a page of our own flushes us, and there is nothing to attack.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/mempolicy.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "env.h"
#include "file.h"
#include "frames.h"
#include "group.h"
#include "ktap.h"
#include "map.h"
#include "peer.h"
#include "stranger.h"

/* As many as a huge page has. */
#define PAGES		512
#define LENGTH		(PAGES * PAGE)
#define OWN		0x5a
/* What the debug kernel writes to free pages. */
#define POISON		0xaa
#define FILL_MIB	64
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE	25
#endif
#define NODE(n)		(1UL << (n))

static struct tfile file;
/* Which of its pages it is about. */
static size_t first;
static struct stranger other;
static uint64_t words[PAGES];
static long parks;

/* What the stranger finds out, in memory of both. */
static struct {
	uint64_t before[PAGES], after[PAGES];
} *seen;

/* Of the stranger: its mapping of the file. */
static char *view;

/* The file at an address where a huge page can be. */
static char *map_aligned(void)
{
	char *room = mmap(NULL, 2 * LENGTH, PROT_NONE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	room += -(uintptr_t)room % LENGTH;
	return mmap(room, LENGTH, PROT_READ | PROT_WRITE,
		    MAP_SHARED | MAP_FIXED, file.fd, (off_t)(first * PAGE));
}

/* The frames of the file; returns how many pages are wrong. */
static long look(long after)
{
	uint64_t *frames = after ? seen->after : seen->before;
	static char right[PAGE];
	long i, wrong = 0;

	if (!view)
		view = map_aligned();
	memset(right, OWN, sizeof(right));
	for (i = 0; i < PAGES; i++) {
		wrong += !!memcmp(view + i * PAGE, right, PAGE);
		frames[i] = frame_of(view + i * PAGE);
		wrong += !frames[i];
	}
	return wrong;
}

static void begin(void)
{
	/* What the stranger frees waits in lists of the CPU where it takes. */
	pin_to_cpu(0);
	seen = mmap(NULL, sizeof(*seen), PROT_READ | PROT_WRITE,
		    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ENSURE(seen != MAP_FAILED, "mmap: %m");
}

/* The file exists: the stranger maps it, the peer reads what we have unmapped. */
static char *stale(void)
{
	char *p;

	stranger_start(&other);
	peer_start(1);
	hold_debts();
	ENSURE(!stranger_call(&other, look, false), "wrong data");
	p = leave_stale(&file, first, PAGES, PROT_READ, MAP_SHARED, OWN);
	parks = vmstat("fpr_park");
	return p;
}

static size_t look_again(void)
{
	size_t i, count = 0;
	long wrong = stranger_call(&other, look, true);

	ENSURE(!wrong, "%ld pages of the file are wrong", wrong);
	for (i = 0; i < PAGES; i++)
		count += seen->before[i] != seen->after[i];
	parks = vmstat("fpr_park") - parks;
	ENSURE(parks >= (long)count, "%zu pages moved, %ld frames were parked",
	       count, parks);
	return count;
}

/* The old frames are for nobody; returns how many the peer still reaches. */
static size_t nobody_follows(const char *p, size_t fill_mib)
{
	size_t i, reached = 0;

	stranger_fill(&other, FILL_ANON, fill_mib);
	peer_read(p, PAGES, words);
	for (i = 0; i < PAGES; i++) {
		reached += words[i] != FAULTED;
		ENSURE(words[i] == WORD(OWN) || words[i] == WORD(POISON) ||
		       words[i] == FAULTED,
		       "stale page %zu reads %016llx of another owner", i,
		       (unsigned long long)words[i]);
	}
	stranger_stop(&other);
	return reached;
}

/* All pages have left, and nobody has flushed on the way. */
static void all_moved(const char *p)
{
	size_t count = look_again(), reached;

	ENSURE(count == PAGES, "%zu of %d pages moved", count, PAGES);
	reached = nobody_follows(p, FILL_MIB);
	PREMISE(holds_enough(reached, PAGES),
		"the peer reaches %zu old frames: nothing to attack with",
		reached);
}

/* Of the stranger: what it takes later comes from this node. */
static long take_from(long node)
{
	unsigned long mask = NODE(node);

	return syscall(SYS_set_mempolicy, MPOL_BIND, &mask, 64);
}

/* Where we say where memory comes from, balancing leaves us alone: it flushes. */
static void need_nodes(void)
{
	if (access("/sys/devices/system/node/node1", F_OK))
		ktap_skip("needs two memory nodes");
	ENSURE(!take_from(0), "set_mempolicy: %m");
}

/* On the first node, like the thread that takes memory later. */
static char *stale_on_node(enum place place)
{
	need_nodes();
	begin();
	file_make(&file, place, PAGES, OWN);
	return stale();
}

static long move_pages_to(long node)
{
	static void *pages[PAGES];
	static int nodes[PAGES], status[PAGES];
	int i;

	for (i = 0; i < PAGES; i++) {
		pages[i] = view + i * PAGE;
		nodes[i] = (int)node;
	}
	return syscall(SYS_move_pages, 0, PAGES, pages, nodes, status,
		       MPOL_MF_MOVE);
}

static void by_pages(void)
{
	char *p = stale_on_node(ON_TMPFS);

	ENSURE(!stranger_call(&other, move_pages_to, 1), "move_pages fails");
	all_moved(p);
}

static long migrate_to(long node)
{
	unsigned long from = ~NODE(node) & (NODE(2) - 1), to = NODE(node);

	return syscall(SYS_migrate_pages, 0, 64, &from, &to);
}

static void by_process(void)
{
	char *p = stale_on_node(ON_TMPFS);
	size_t count;

	/* Some of its pages are ours, too: they may stay, or flush us. */
	ENSURE(stranger_call(&other, migrate_to, 1) >= 0, "migrate_pages fails");
	count = look_again();
	ENSURE(count == PAGES, "%zu of %d pages moved", count, PAGES);
	nobody_follows(p, FILL_MIB);
}

static long bind_to(long node)
{
	unsigned long to = NODE(node);

	return syscall(SYS_mbind, view, LENGTH, MPOL_BIND, &to, 64,
		       MPOL_MF_MOVE | MPOL_MF_STRICT);
}

static void by_mbind(void)
{
	char *p = stale_on_node(ON_TMPFS);

	ENSURE(!stranger_call(&other, bind_to, 1), "mbind fails");
	all_moved(p);
}

#define BALANCING	"/sys/kernel/debug/sched/numa_balancing/"
#define FAR_CPU		2
#define BALANCE_LIMIT_S	60

/* Read from the second node until the pages are there; then memory of the first. */
static long use_far(long pages)
{
	double until = seconds() + BALANCE_LIMIT_S;
	long i, far = 0;

	pin_to_cpu(FAR_CPU);
	syscall(SYS_set_mempolicy, MPOL_DEFAULT, NULL, 0);
	while (far < pages && seconds() < until) {
		for (i = 0, far = 0; i < PAGES; i++) {
			(void)*(volatile char *)(view + i * PAGE);
			far += frame_of(view + i * PAGE) != seen->before[i];
		}
	}
	return take_from(0);
}

/*
 * The kernel itself moves pages to where they are used, but not those of tmpfs.
 */
static void by_balancing(void)
{
	size_t count;
	char *p;

	need_nodes();
	need_cpus(4);
	if (!write_text("/proc/sys/kernel/numa_balancing", "1") ||
	    !write_text(BALANCING "scan_delay_ms", "10") ||
	    !write_text(BALANCING "scan_period_min_ms", "20"))
		ktap_skip("no NUMA balancing");
	p = stale_on_node(ON_DISK);
	ENSURE(!stranger_call(&other, use_far, PAGES / 2), "set_mempolicy fails");
	write_text("/proc/sys/kernel/numa_balancing", "0");
	count = look_again();
	ENSURE(count >= PAGES / 2, "%zu of %d pages moved", count, PAGES);
	nobody_follows(p, FILL_MIB);
}

static long collapse(long unused)
{
	(void)unused;
	return madvise(view, LENGTH, MADV_COLLAPSE);
}

/* Small pages are copied to a huge one. */
static void by_collapse(void)
{
	char *p;

	begin();
	file_make(&file, ON_TMPFS, PAGES, OWN);
	p = stale();
	ENSURE(!stranger_call(&other, collapse, 0), "MADV_COLLAPSE fails");
	all_moved(p);
}

static void by_contiguous(void)
{
	size_t inside, count;
	struct area area;
	long drains;
	char *p;

	begin();
	area_find(&area);
	file_make(&file, ON_TMPFS, PAGES, OWN);
	p = stale();
	inside = frames_in_area(seen->before, PAGES, &area);
	if (!inside)
		ktap_skip("no frame in the contiguous area");
	drains = vmstat("fpr_drain_isolate");
	ENSURE(area_alloc(&area), "the area cannot be allocated: %m");
	/* Who tries again finds them drained with the lists of the CPUs. */
	ENSURE(vmstat("fpr_drain_isolate") > drains,
	       "what has moved out of the way was not drained");
	count = look_again();
	area_free(&area);
	ENSURE(count >= inside, "%zu of %zu pages moved", count, inside);
	nobody_follows(p, 10 * FILL_MIB);
	ktap_note("%zu frames were in the way", inside);
}

/*
 * Compaction takes pages from where memory begins to where it ends, and leaves
 * large free blocks alone. So the file has nearly all memory first, and then only
 * the pages with the lowest frames, and one of each block.
 */
static void make_low(void)
{
	size_t many = (size_t)read_kb("/proc/meminfo", "MemFree") / 4 * 3 / 4;
	uint64_t *frames, lowest = UINT64_MAX, highest;
	size_t at, i;

	many -= many % PAGES;
	frames = mmap(NULL, many * sizeof(*frames), PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ENSURE(frames != MAP_FAILED, "mmap: %m");
	file_make(&file, ON_TMPFS, many, OWN);
	frames_of_file(&file, frames);
	for (at = 0; at < many; at += PAGES) {
		for (i = at, highest = 0; i < at + PAGES; i++)
			if (frames[i] > highest)
				highest = frames[i];
		if (highest < lowest) {
			lowest = highest;
			first = at;
		}
	}
	for (at = 0; at < many; at += PAGES)
		if (at != first)
			MUST(fallocate(file.fd,
				       FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
				       (off_t)((at + 1) * PAGE), LENGTH - PAGE));
	ktap_note("frames below %lu of %ld", (unsigned long)lowest,
		  read_kb("/proc/meminfo", "MemTotal") / 4);
}

static void by_compaction(void)
{
	size_t count;
	char *p;

	begin();
	make_low();
	p = stale();
	ENSURE(write_text("/proc/sys/vm/compact_memory", "1"),
	       "compact_memory: %m");
	count = look_again();
	ENSURE(count >= PAGES / 2, "%zu of %d pages moved", count, PAGES);
	/* They lie where the allocator takes from last. */
	nobody_follows(p, 10 * FILL_MIB);
}

/* The new frame has no debt, and its entry no accessed bit until it is used. */
#define USED		(PAGES / 2)

/*
 * Reclaim has looked at pages and they move before it comes by again. The old
 * frames keep their debt. In the new ones only those are in a TLB that were used
 * since; the others go without a flush.
 */
static void cleared_then_moved(void)
{
	long skips, young;
	size_t i, wrong;
	int tries;

	need_nodes();
	begin();
	stranger_start(&other);
	group_start();
	file_make(&file, ON_DISK, PAGES, OWN);
	MUST(fdatasync(file.fd));
	group_leave();
	peer_start(1);
	hold_debts();
	leave_stale(&file, 0, PAGES, PROT_READ, MAP_SHARED, OWN);
	full_flush();
	view = fpr_map(&file, 0, PAGES, PROT_READ, MAP_SHARED);
	ENSURE(peer_count(view, PAGES, WORD(OWN)) == PAGES, "wrong data");
	look(false);
	full_flush();
	parks = vmstat("fpr_park");
	ENSURE(write_text("/proc/self/clear_refs", "1"), "clear_refs: %m");
	ENSURE(!move_pages_to(1), "move_pages fails: %m");
	parks = vmstat("fpr_park") - parks;
	ENSURE(parks >= PAGES, "%ld of %d old frames were parked", parks, PAGES);
	peer_touch(view, USED);

	skips = vmstat("fpr_evict_skip");
	young = vmstat("fpr_evict_flush_young");
	for (tries = 0; tries < 50 && file_cached(&file); tries++)
		group_reclaim(file_cached(&file) * PAGE);
	ENSURE(!file_cached(&file), "%zu pages were not evicted",
	       file_cached(&file));
	skips = vmstat("fpr_evict_skip") - skips;
	young = vmstat("fpr_evict_flush_young") - young;
	ENSURE(!stranger_call(&other, take_from, 1), "set_mempolicy fails");
	stranger_fill(&other, FILL_ANON, FILL_MIB);
	peer_read(view, PAGES, words);
	for (i = 0, wrong = 0; i < PAGES; i++)
		wrong += words[i] != WORD(OWN);
	ENSURE(!wrong, "%zu of %d pages show memory of another owner", wrong,
	       PAGES);
	ENSURE(skips == PAGES - USED && young == USED,
	       "%ld pages evicted without a flush, %ld with one", skips, young);
	stranger_stop(&other);
}

int main(int argc, char **argv)
{
	static const struct ktap_case cases[] = {
		{ "by_pages", by_pages, 0 },
		{ "by_process", by_process, 0 },
		{ "by_mbind", by_mbind, 0 },
		{ "by_balancing", by_balancing, 0 },
		{ "by_collapse", by_collapse, 0 },
		{ "by_contiguous", by_contiguous, 0 },
		{ "by_compaction", by_compaction, 300 },
		{ "cleared_then_moved", cleared_then_moved, 0 },
	};

	return ktap_main(argc, argv, cases, KTAP_COUNT(cases));
}
