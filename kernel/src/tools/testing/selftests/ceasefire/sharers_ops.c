// SPDX-License-Identifier: GPL-2.0
/*
 * Sharers: whatever changes a translation, the CPU that has used the region is asked to
 * flush (I11): each operation of Linux that changes entries of pages, or the entry
 * that leads to them.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/mempolicy.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "env.h"
#include "file.h"
#include "ktap.h"
#include "map.h"
#include "peer.h"
#include "regions.h"
#include "stranger.h"
#include "userfault.h"

#define PAGES		16
#define LENGTH		(PAGES * PAGE)
#define OWN		0x5a
#define NEW		0x42
#define SWAP_PAGES	256
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE	25
#endif
#define HINT		"/sys/kernel/debug/ceasefire/hint"
#define BALANCING	"/sys/kernel/debug/sched/numa_balancing/"
#define KSM		"/sys/kernel/mm/ksm/"
#define TRACING		"/sys/kernel/tracing/"

static struct stranger child;

/* To which the peer has written. */
static char *written(void)
{
	char *p = regions(1);

	ENSURE(peer_write(p, PAGES, WORD(OWN)) == PAGES, "no write");
	return p;
}

/* In place of what was there, at the beginning of a region. */
static char *mapped_file(const struct tfile *f, int prot, int flags)
{
	char *p = mmap(regions(1), LENGTH, prot, flags | MAP_FIXED, f->fd, 0);

	ENSURE(p != MAP_FAILED, "mmap: %m");
	return p;
}

/* The page of zeroes gives way to one of its own. */
static void first_written(void)
{
	char *p;

	sharers_start();
	p = regions(1);
	peer_finds(p, PAGES, 0);
	memset(p, NEW, LENGTH);
	peer_finds(p, PAGES, WORD(NEW));
}

/* A page of a file gives way to a copy. */
static void copied_on_write(void)
{
	struct tfile file;
	char *p;

	file_make(&file, ON_TMPFS, PAGES, OWN);
	sharers_start();
	p = mapped_file(&file, PROT_READ | PROT_WRITE, MAP_PRIVATE);
	peer_finds(p, PAGES, WORD(OWN));
	memset(p, NEW, LENGTH);
	peer_finds(p, PAGES, WORD(NEW));
}

static long child_reads(long p)
{
	return (long)*(volatile uint64_t *)p;
}

/* What fork() shares nobody writes to any more; who does gets a copy. */
static void copied_after_fork(void)
{
	char *p;

	sharers_start();
	p = written();
	stranger_start(&child);
	ENSURE(peer_write(p, PAGES / 2, WORD(NEW)) == PAGES / 2, "no write");
	ENSURE((uint64_t)stranger_call(&child, child_reads, (long)p) ==
	       WORD(OWN), "the child sees what was written later");
	peer_finds(p + LENGTH / 2, PAGES / 2, WORD(OWN));
	memset(p + LENGTH / 2, NEW, LENGTH / 2);
	peer_finds(p, PAGES, WORD(NEW));
	stranger_stop(&child);
}

/* Fewer pages than a table has: each entry moves. */
static void moved(void)
{
	char *from, *to;

	sharers_start();
	from = written();
	to = regions(1);
	ENSURE(mremap(from, LENGTH, LENGTH, MREMAP_MAYMOVE | MREMAP_FIXED,
		      to) == to, "mremap: %m");
	peer_finds(from, PAGES, FAULTED);
	ENSURE(mmap(from, LENGTH, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == from,
	       "mmap: %m");
	memset(from, NEW, LENGTH);
	peer_finds(from, PAGES, WORD(NEW));
	peer_finds(to, PAGES, WORD(OWN));
}

static void need_two_nodes(void)
{
	if (access("/sys/devices/system/node/node1", F_OK))
		ktap_skip("needs two memory nodes");
}

/* To the other node; returns how many have left. */
static size_t move_away(char *p)
{
	static void *pages[PAGES];
	static int nodes[PAGES], status[PAGES];
	size_t i, count = 0;

	for (i = 0; i < PAGES; i++)
		pages[i] = p + i * PAGE;
	MUST(syscall(SYS_move_pages, 0, PAGES, pages, NULL, status, 0));
	for (i = 0; i < PAGES; i++)
		nodes[i] = !status[i];
	MUST(syscall(SYS_move_pages, 0, PAGES, pages, nodes, status,
		     MPOL_MF_MOVE));
	for (i = 0; i < PAGES; i++)
		count += status[i] == nodes[i];
	return count;
}

static void migrated(void)
{
	size_t count;
	char *p;

	need_two_nodes();
	sharers_start();
	p = written();
	count = move_away(p);
	PREMISE(count == PAGES, "%zu of %d pages moved", count, PAGES);
	memset(p, NEW, LENGTH);
	peer_finds(p, PAGES, WORD(NEW));
}

/* Each use after that has to be seen. */
static void hinted(void)
{
	char *p, text[40];
	long hints;

	need_two_nodes();
	if (!write_text(BALANCING "scan_delay_ms", "1000000") ||
	    !write_text("/proc/sys/kernel/numa_balancing", "1"))
		ktap_skip("no NUMA balancing");
	sharers_start();
	p = written();
	hints = vmstat("numa_hint_faults");
	snprintf(text, sizeof(text), "%lx %lx", (unsigned long)p, LENGTH);
	ENSURE(write_text(HINT, text), "%s: %m", HINT);
	peer_finds(p, PAGES, WORD(OWN));
	hints = vmstat("numa_hint_faults") - hints;
	write_text("/proc/sys/kernel/numa_balancing", "0");
	ENSURE(hints >= PAGES, "%ld of %d uses were seen", hints, PAGES);
}

/* Pages that wait in lists of a CPU are not looked at by reclaim. */
static void drain_lists(void)
{
	ENSURE(write_text("/proc/sys/vm/drop_caches", "1"), "drop_caches: %m");
}

static size_t merged(char *p, char *q)
{
	size_t i, count = 0;

	for (i = 0; i < PAGES; i++) {
		uint64_t frame = frame_of(p + i * PAGE);

		count += frame && frame == frame_of(q + i * PAGE);
	}
	return count;
}

/* Two pages become one, that nobody writes to. */
static void merged_pages(void)
{
	double end = seconds() + 200;
	char *p, *q;
	int i;

	if (access(KSM "run", W_OK))
		ktap_skip("no KSM");
	sharers_start();
	p = written();
	q = regions(1);
	/* The peer writes the first word of a page. */
	for (i = 0; i < PAGES; i++)
		*(uint64_t *)(q + i * PAGE) = WORD(OWN);
	MUST(madvise(p, LENGTH, MADV_MERGEABLE));
	MUST(madvise(q, LENGTH, MADV_MERGEABLE));
	ENSURE(write_text(KSM "sleep_millisecs", "1") &&
	       write_text(KSM "pages_to_scan", "10000") &&
	       write_text(KSM "smart_scan", "0") &&
	       write_text(KSM "run", "1"), "ksm cannot be started: %m");
	while (merged(p, q) < PAGES && seconds() < end)
		sleep_ms(20);
	write_text(KSM "run", "0");
	ENSURE(merged(p, q) == PAGES, "not merged");
	ENSURE(peer_write(p, PAGES, WORD(NEW)) == PAGES, "no write");
	peer_finds(q, PAGES, WORD(OWN));
	peer_finds(p, PAGES, WORD(NEW));
	write_text(KSM "run", "2");
	write_text(KSM "run", "0");
}

/* Reclaim takes pages of a file; others come in their place. */
static void reclaimed(void)
{
	struct tfile file;
	char *p;

	file_make(&file, ON_DISK, PAGES, OWN);
	sharers_start();
	p = mapped_file(&file, PROT_READ, MAP_SHARED);
	peer_finds(p, PAGES, WORD(OWN));
	MUST(madvise(p, LENGTH, MADV_PAGEOUT));
	PREMISE(!file_cached(&file), "pages of the file stay");
	file_fill(&file, 0, PAGES, NEW);
	peer_finds(p, PAGES, WORD(NEW));
}

/* What is written after the page went to swap must not be lost. */
static void swapped(void)
{
	long in_swap;
	char path[100];
	char *p;

	swap_on(path, sizeof(path), SWAP_PAGES);
	sharers_start();
	p = written();
	drain_lists();
	MUST(madvise(p, LENGTH, MADV_PAGEOUT));
	in_swap = read_kb("/proc/self/status", "VmSwap") / (long)(PAGE / 1024);
	ENSURE(peer_write(p, PAGES, WORD(NEW)) == PAGES, "no write");
	peer_finds(p, PAGES, WORD(NEW));
	memset(p, OWN, LENGTH);
	peer_finds(p, PAGES, WORD(OWN));
	swap_off(path);
	PREMISE(in_swap == PAGES, "%ld of %d pages are in swap", in_swap,
		PAGES);
}

/* MADV_FREE: what is written later stays, whatever reclaim does. */
static void freed_then_written(void)
{
	char *p;

	sharers_start();
	p = written();
	drain_lists();
	MUST(madvise(p, LENGTH, MADV_FREE));
	ENSURE(peer_write(p, PAGES, WORD(NEW)) == PAGES, "no write");
	drain_lists();
	MUST(madvise(p, LENGTH, MADV_PAGEOUT));
	peer_finds(p, PAGES, WORD(NEW));
}

static int open_userfault(uint64_t features)
{
	struct uffdio_api api = { .api = UFFD_API, .features = features };
	int uffd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);

	if (uffd < 0 || ioctl(uffd, UFFDIO_API, &api))
		ktap_skip("no userfaultfd that can do this: %m");
	return uffd;
}

static void watch_area(int uffd, char *p, uint64_t mode)
{
	struct uffdio_register area = {
		.range = { .start = (unsigned long)p, .len = LENGTH },
		.mode = mode,
	};

	ENSURE(!ioctl(uffd, UFFDIO_REGISTER, &area), "UFFDIO_REGISTER: %m");
}

/* Pages go from one mapping to another. */
static void moved_by_user(void)
{
	int uffd = open_userfault(UFFD_FEATURE_MOVE);
	struct uffdio_move order;
	char *from, *to;

	sharers_start();
	from = written();
	to = regions(1);
	watch_area(uffd, to, UFFDIO_REGISTER_MODE_MISSING);
	order = (struct uffdio_move) {
		.dst = (unsigned long)to, .src = (unsigned long)from,
		.len = LENGTH,
	};
	ENSURE(!ioctl(uffd, UFFDIO_MOVE, &order), "UFFDIO_MOVE: %m");
	peer_finds(from, PAGES, 0);
	peer_finds(to, PAGES, WORD(OWN));
}

static struct {
	int uffd;
	size_t faults;
} guard;

static void protect(char *p, uint64_t mode)
{
	struct uffdio_writeprotect order = {
		.range = { .start = (unsigned long)p, .len = LENGTH },
		.mode = mode,
	};

	ENSURE(!ioctl(guard.uffd, UFFDIO_WRITEPROTECT, &order),
	       "UFFDIO_WRITEPROTECT: %m");
}

/* Lets each write go on, page by page. */
static void *guard_main(void *unused)
{
	struct pollfd poll_for = { .fd = guard.uffd, .events = POLLIN };
	struct uffd_msg message;

	(void)unused;
	pin_to_cpu(2);
	while (poll(&poll_for, 1, -1) >= 0) {
		struct uffdio_writeprotect order = { .range.len = PAGE };

		if (read(guard.uffd, &message, sizeof(message)) <= 0)
			continue;
		order.range.start = message.arg.pagefault.address & -PAGE;
		__atomic_add_fetch(&guard.faults, 1, __ATOMIC_RELAXED);
		MUST(ioctl(guard.uffd, UFFDIO_WRITEPROTECT, &order));
	}
	return NULL;
}

static void protected_by_user(void)
{
	pthread_t thread;
	char *p;

	need_cpus(3);
	guard.uffd = open_userfault(UFFD_FEATURE_PAGEFAULT_FLAG_WP);
	sharers_start();
	p = written();
	watch_area(guard.uffd, p, UFFDIO_REGISTER_MODE_WP);
	ENSURE(!pthread_create(&thread, NULL, guard_main, NULL), "no thread");
	protect(p, UFFDIO_WRITEPROTECT_MODE_WP);
	ENSURE(peer_write(p, PAGES, WORD(NEW)) == PAGES, "no write");
	ENSURE(guard.faults == PAGES, "%zu of %d writes were seen",
	       guard.faults, PAGES);
	peer_finds(p, PAGES, WORD(NEW));
}

/* mov $OWN, %eax; ret; with room for a breakpoint where it begins. */
static const unsigned char function[] = { 0x90, 0xb8, OWN, 0, 0, 0, 0xc3 };

static void probe(const char *command)
{
	if (!write_text(TRACING "uprobe_events", command))
		ktap_skip("no uprobes: %m");
}

/* The second number of the line that begins with the file's name. */
static long probe_hits(void)
{
	FILE *f = fopen(TRACING "uprobe_profile", "re");
	char name[256], event[64];
	long hits = -1;

	if (!f)
		return -1;
	while (fscanf(f, "%255s %63s %ld", name, event, &hits) == 3)
		if (!strcmp(event, "sharers"))
			break;
	fclose(f);
	return hits;
}

/* A breakpoint is put into a copy of the page. */
static void probed(void)
{
	char path[] = "/run/ceasefire-probe-XXXXXX", command[128];
	static uint64_t results[1];
	static char page[PAGE];
	struct tfile file;
	long hits;
	char *p;

	if (access(TRACING "uprobe_events", W_OK))
		ktap_skip("no uprobes");
	file.fd = mkostemp(path, O_CLOEXEC);
	ENSURE(file.fd >= 0, "%s: %m", path);
	memcpy(page, function, sizeof(function));
	MUST(pwrite(file.fd, page, PAGE, 0));
	MUST(fchmod(file.fd, 0755));
	snprintf(command, sizeof(command), "p:ceasefire/sharers %s:0x0", path);
	probe(command);
	sharers_start();
	p = mmap(regions(1), PAGE, PROT_READ | PROT_EXEC,
		 MAP_PRIVATE | MAP_FIXED, file.fd, 0);
	ENSURE(p != MAP_FAILED, "mmap: %m");
	peer_call(p, 1, results);
	ENSURE(results[0] == OWN, "the function does not return");
	ENSURE(write_text(TRACING "events/ceasefire/sharers/enable", "1"),
	       "enable: %m");
	peer_call(p, 1, results);
	hits = probe_hits();
	write_text(TRACING "events/ceasefire/sharers/enable", "0");
	peer_call(p, 1, results);
	write_text(TRACING "uprobe_events", "-:ceasefire/sharers");
	unlink(path);
	ENSURE(hits == 1, "%ld calls were seen", hits);
	ENSURE(results[0] == OWN, "the function does not return");
}

/* Small pages become a huge one, and the table goes. */
static void collapsed(void)
{
	char *p;

	sharers_start();
	p = written();
	MUST(madvise(p, REGION, MADV_HUGEPAGE));
	if (madvise(p, REGION, MADV_COLLAPSE))
		ktap_retry("MADV_COLLAPSE: %m");
	memset(p, NEW, LENGTH);
	peer_finds(p, PAGES, WORD(NEW));
	peer_finds(p + LENGTH, PAGES, 0);
}

static char *view;

static long child_collapses(long unused)
{
	(void)unused;
	return madvise(view, REGION, MADV_COLLAPSE);
}

/* The same of a file by another process: ours loses its table. */
static void collapsed_by_other(void)
{
	struct tfile file;
	char *p;

	file_make(&file, ON_TMPFS, REGION / PAGE, OWN);
	view = mmap(regions(1), REGION, PROT_READ | PROT_WRITE,
		    MAP_SHARED | MAP_FIXED, file.fd, 0);
	ENSURE(view != MAP_FAILED, "mmap: %m");
	memset(view, OWN, REGION);
	stranger_start(&child);
	sharers_start();
	p = mmap(regions(1), REGION, PROT_READ | PROT_WRITE,
		 MAP_SHARED | MAP_FIXED, file.fd, 0);
	ENSURE(p != MAP_FAILED, "mmap: %m");
	MUST(munmap(view, REGION));
	peer_finds(p, PAGES, WORD(OWN));
	if (stranger_call(&child, child_collapses, 0))
		ktap_retry("MADV_COLLAPSE fails");
	memset(p, NEW, LENGTH);
	peer_finds(p, PAGES, WORD(NEW));
	stranger_stop(&child);
}

/* A huge entry goes to another address. */
static void huge_moved(void)
{
	char *from, *to;

	sharers_start();
	from = huge_region(PAGES, WORD(OWN));
	to = regions(1);
	ENSURE(mremap(from, REGION, REGION, MREMAP_MAYMOVE | MREMAP_FIXED,
		      to) == to, "mremap: %m");
	peer_finds(from, PAGES, FAULTED);
	peer_finds(to, PAGES, WORD(OWN));
}

static void huge_after_fork(void)
{
	char *p;

	sharers_start();
	p = huge_region(PAGES, WORD(OWN));
	stranger_start(&child);
	ENSURE(peer_write(p, PAGES, WORD(NEW)) == PAGES, "no write");
	ENSURE((uint64_t)stranger_call(&child, child_reads, (long)p) ==
	       WORD(OWN), "the child sees what was written later");
	peer_finds(p, PAGES, WORD(NEW));
	stranger_stop(&child);
}

/* Of a pool: fork() shares it, and the first who writes gets a copy. */
static void pool_after_fork(void)
{
	char *p;

	if (!write_text("/proc/sys/vm/nr_hugepages", "4"))
		ktap_skip("no huge pages");
	sharers_start();
	p = mmap(NULL, REGION, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);
	if (p == MAP_FAILED)
		ktap_skip("no huge pages: %m");
	ENSURE(peer_write(p, PAGES, WORD(OWN)) == PAGES, "no write");
	stranger_start(&child);
	ENSURE(peer_write(p, PAGES, WORD(NEW)) == PAGES, "no write");
	ENSURE((uint64_t)stranger_call(&child, child_reads, (long)p) ==
	       WORD(OWN), "the child sees what was written later");
	memset(p, OWN, LENGTH);
	peer_finds(p, PAGES, WORD(OWN));
	stranger_stop(&child);
}

int main(int argc, char **argv)
{
	static const struct ktap_case cases[] = {
		{ "first_written", first_written, 0 },
		{ "copied_on_write", copied_on_write, 0 },
		{ "copied_after_fork", copied_after_fork, 0 },
		{ "moved", moved, 0 },
		{ "migrated", migrated, 0 },
		{ "hinted", hinted, 0 },
		{ "merged_pages", merged_pages, 300 },
		{ "reclaimed", reclaimed, 0 },
		{ "swapped", swapped, 0 },
		{ "freed_then_written", freed_then_written, 0 },
		{ "moved_by_user", moved_by_user, 0 },
		{ "protected_by_user", protected_by_user, 30 },
		{ "probed", probed, 0 },
		{ "collapsed", collapsed, 0 },
		{ "collapsed_by_other", collapsed_by_other, 0 },
		{ "huge_moved", huge_moved, 0 },
		{ "huge_after_fork", huge_after_fork, 0 },
		{ "pool_after_fork", pool_after_fork, 0 },
	};

	return ktap_main(argc, argv, cases, KTAP_COUNT(cases));
}
