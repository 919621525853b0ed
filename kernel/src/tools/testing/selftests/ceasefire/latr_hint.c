// SPDX-License-Identifier: GPL-2.0
/*
 * NUMA hints of lazy processes: a CPU goes on using an entry that is inaccessible in
 * the page tables, until its tick. Nobody else takes that for an entry that no CPU
 * has (I10): no update is lost when the page moves, and no write passes what protects
 * it.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/mempolicy.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "env.h"
#include "ktap.h"
#include "map.h"
#include "peer.h"
#include "userfault.h"

#define PAGES		64
#define LENGTH		(PAGES * PAGE)
#define HUGE_LENGTH	(2 * MIB)
/* Of a huge page; each of them that the peer's TLB has lost settles the whole page. */
#define HUGE_USED	8
#define OWN		0x5a
#define STALE		0x33
#define HINT		"/sys/kernel/debug/ceasefire/hint"
#define BALANCING	"/sys/kernel/debug/sched/numa_balancing/"
#define LIMIT_S		60

/* Hints are given, but only those that we ask for. */
static void balance(const char *delay_ms)
{
	if (access("/sys/devices/system/node/node1", F_OK))
		ktap_skip("needs two memory nodes");
	if (!write_text(BALANCING "scan_delay_ms", delay_ms) ||
	    !write_text("/proc/sys/kernel/numa_balancing", "1"))
		ktap_skip("no NUMA balancing");
}

static void start(void)
{
	balance("1000000");
	pin_to_cpu(0);
	peer_start(1);
	hold_debts();
}

/* How many pages the peer uses: those that it remembers. */
static size_t used(size_t length)
{
	return length == HUGE_LENGTH ? HUGE_USED : PAGES;
}

/* Anonymous memory to which the peer has written. */
static char *written(size_t length)
{
	char *p = mmap(NULL, length, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	ENSURE(p != MAP_FAILED, "mmap: %m");
	if (length == HUGE_LENGTH && madvise(p, length, MADV_HUGEPAGE))
		ktap_skip("no transparent huge pages");
	ENSURE(peer_write(p, used(length), WORD(OWN)) == used(length),
	       "no write");
	PREMISE(length < HUGE_LENGTH ||
		read_kb("/proc/self/smaps_rollup", "AnonHugePages") == 2048,
		"not mapped by one entry");
	return p;
}

static void give_hints(const char *p, size_t length)
{
	char text[40];
	long skips = vmstat("latr_hint_skip");

	snprintf(text, sizeof(text), "%lx %lx", (unsigned long)p, length);
	ENSURE(write_text(HINT, text), "%s: %m", HINT);
	PREMISE(vmstat("latr_hint_skip") > skips, "the peer did not run");
}

/*
 * The same, and the peer still writes through the entries that it has had: no fault
 * tells the kernel of a use.
 */
static void hint_unseen(char *p, size_t length)
{
	long updates = vmstat("numa_pte_updates"), faults;

	give_hints(p, length);
	updates = vmstat("numa_pte_updates") - updates;
	ENSURE(updates >= (long)(length / PAGE), "%ld of %zu entries got a hint",
	       updates, length / PAGE);
	faults = vmstat("numa_hint_faults");
	ENSURE(peer_write(p, used(length), WORD(STALE)) == used(length),
	       "no write");
	faults = vmstat("numa_hint_faults") - faults;
	PREMISE(length == HUGE_LENGTH ? !faults :
		holds_enough(PAGES - (size_t)faults, PAGES),
		"%ld hints were seen: nothing to attack with", faults);
}

/* How many pages begin with this word. */
static size_t count(const char *p, size_t pages, uint64_t word)
{
	size_t i, found = 0;

	for (i = 0; i < pages; i++)
		found += *(const volatile uint64_t *)(p + i * PAGE) == word;
	return found;
}

/*
 * How many of the pages are on a node after they were sent there; one that somebody
 * else has isolated stays. A huge page is sent by its first address.
 */
static size_t move_to(char *p, size_t pages, int node)
{
	static void *addresses[PAGES];
	static int nodes[PAGES], status[PAGES];
	size_t i, found = 0;

	for (i = 0; i < pages; i++) {
		addresses[i] = p + i * PAGE;
		nodes[i] = node;
	}
	ENSURE(syscall(SYS_move_pages, 0, pages, addresses, nodes, status,
		       MPOL_MF_MOVE) >= 0, "move_pages: %m");
	for (i = 0; i < pages; i++)
		found += status[i] == node;
	return found;
}

/* What is written after a page has moved is written to the page. */
static void of_moved(size_t length)
{
	size_t sent = length == HUGE_LENGTH ? 1 : PAGES, arrived, kept;
	char *p;

	start();
	p = written(length);
	/* Or the lists of the peer's CPU are drained while pages move. */
	ENSURE(write_text("/proc/sys/vm/drop_caches", "1"), "drop_caches: %m");
	hint_unseen(p, length);
	arrived = move_to(p, sent, 1);
	PREMISE(holds_enough(arrived, sent), "%zu of %zu pages have moved",
		arrived, sent);
	ENSURE(peer_write(p, used(length), WORD(OWN)) == used(length),
	       "no write");
	kept = count(p, used(length), WORD(OWN));
	ENSURE(kept == used(length), "%zu of %zu updates were lost",
	       used(length) - kept, used(length));
}

static void moved(void)
{
	of_moved(LENGTH);
}

static void huge_moved(void)
{
	of_moved(HUGE_LENGTH);
}

/* The first page that moves pays for the hints of all: the others move in silence. */
static void moved_one_by_one(void)
{
	size_t i, arrived = 0;
	long received, settled;
	char *p;

	start();
	p = written(LENGTH);
	hint_unseen(p, LENGTH);
	received = vmstat("nr_tlb_remote_flush_received");
	settled = vmstat("latr_hint_settle");
	for (i = 0; i < PAGES; i++)
		arrived += move_to(p + i * PAGE, 1, 1);
	received = vmstat("nr_tlb_remote_flush_received") - received;
	settled = vmstat("latr_hint_settle") - settled;
	PREMISE(holds_enough(arrived, PAGES), "%zu of %d pages have moved",
		arrived, PAGES);
	ENSURE(settled == 1, "%ld flushes settled the hints of one range",
	       settled);
	/* Others that the kernel sends meanwhile: a few. */
	ENSURE(received <= PAGES / 8, "%ld shootdowns for %d pages that moved",
	       received, PAGES);
}

/* mprotect() over entries with a hint takes the right to write from all CPUs. */
static void of_protected(size_t length)
{
	size_t passed;
	char *p;

	start();
	p = written(length);
	hint_unseen(p, length);
	MUST(mprotect(p, length, PROT_READ));
	passed = peer_write(p, used(length), WORD(OWN));
	ENSURE(!passed, "%zu of %zu writes passed mprotect()", passed,
	       used(length));
}

static void protected(void)
{
	of_protected(LENGTH);
}

static void huge_protected(void)
{
	of_protected(HUGE_LENGTH);
}

/*
 * Somebody on the other node takes the hints, and there is no memory for the pages
 * there. They stay, and their entries are read-only from then on, as they are after
 * mprotect(): that looks like nothing to flush for.
 */
#define FAR_CPU		2
#define FAILURES	"/sys/kernel/debug/fail_page_alloc/"
#define FAIL_NTH	"/proc/thread-self/fail-nth"

static void protected_after_failure(void)
{
	long faults, migrated;
	size_t i, passed;
	char *p;

	need_cpus(FAR_CPU + 1);
	if (!write_text(FAILURES "min-order", "0") ||
	    !write_text(FAILURES "ignore-gfp-highmem", "N"))
		ktap_skip("no fault injection: boot the debug kernel");
	start();
	p = written(LENGTH);
	hint_unseen(p, LENGTH);
	faults = vmstat("numa_hint_faults");
	migrated = vmstat("numa_pages_migrated");
	pin_to_cpu(FAR_CPU);
	for (i = 0; i < PAGES; i++) {
		MUST(write_text(FAIL_NTH, "1") ? 0 : -1);
		ENSURE(probe_read(p + i * PAGE) == WORD(STALE), "wrong data");
		MUST(write_text(FAIL_NTH, "0") ? 0 : -1);
	}
	faults = vmstat("numa_hint_faults") - faults;
	migrated = vmstat("numa_pages_migrated") - migrated;
	PREMISE(holds_enough((size_t)faults, PAGES) && !migrated,
		"%ld hints were taken, %ld pages have moved", faults, migrated);
	MUST(mprotect(p, LENGTH, PROT_READ));
	passed = peer_write(p, PAGES, WORD(OWN));
	ENSURE(!passed, "%zu of %d writes passed mprotect()", passed, PAGES);
}

/* Faults of what is registered end in SIGBUS. */
static int watch(char *p, size_t length, uint64_t features, uint64_t mode)
{
	struct uffdio_api api = {
		.api = UFFD_API, .features = UFFD_FEATURE_SIGBUS | features,
	};
	struct uffdio_register area = {
		.range = { .start = (unsigned long)p, .len = length },
		.mode = mode,
	};
	int uffd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);

	if (uffd < 0 || ioctl(uffd, UFFDIO_API, &api))
		ktap_skip("no such userfaultfd: %m");
	ENSURE(!ioctl(uffd, UFFDIO_REGISTER, &area), "UFFDIO_REGISTER: %m");
	return uffd;
}

/* The same with userfaultfd. */
static void of_write_protected(size_t length)
{
	struct uffdio_writeprotect order = {
		.range.len = length, .mode = UFFDIO_WRITEPROTECT_MODE_WP,
	};
	size_t passed;
	char *p;
	int uffd;

	start();
	p = written(length);
	uffd = watch(p, length, UFFD_FEATURE_PAGEFAULT_FLAG_WP,
		     UFFDIO_REGISTER_MODE_WP);
	ENSURE(peer_write(p, used(length), WORD(OWN)) == used(length),
	       "no write");
	hint_unseen(p, length);
	order.range.start = (unsigned long)p;
	ENSURE(!ioctl(uffd, UFFDIO_WRITEPROTECT, &order),
	       "UFFDIO_WRITEPROTECT: %m");
	passed = peer_write(p, used(length), WORD(OWN));
	ENSURE(!passed, "%zu of %zu writes passed write protection", passed,
	       used(length));
}

static void write_protected(void)
{
	of_write_protected(LENGTH);
}

static void huge_write_protected(void)
{
	of_write_protected(HUGE_LENGTH);
}

/* Pages that userfaultfd carries away are not written to where they were. */
static void carried_away(void)
{
	struct uffdio_move order = { .len = PAGE };
	size_t i, kept;
	char *p, *q;
	int uffd;

	start();
	p = written(LENGTH);
	q = mmap(NULL, LENGTH, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ENSURE(q != MAP_FAILED, "mmap: %m");
	uffd = watch(q, LENGTH, UFFD_FEATURE_MOVE, UFFDIO_REGISTER_MODE_MISSING);
	hint_unseen(p, LENGTH);
	for (i = 0; i < PAGES; i++) {
		order.src = (unsigned long)(p + i * PAGE);
		order.dst = (unsigned long)(q + i * PAGE);
		ENSURE(!ioctl(uffd, UFFDIO_MOVE, &order), "UFFDIO_MOVE: %m");
	}
	peer_write(p, PAGES, WORD(OWN));
	kept = count(q, PAGES, WORD(STALE));
	ENSURE(kept == PAGES, "%zu of %d pages were written to where they are not",
	       PAGES - kept, PAGES);
}

/* A hint is seen after a while, and nobody is interrupted for that. */
static void seen_in_time(void)
{
	double end = seconds() + LIMIT_S;
	long faults, late = vmstat("latr_late");
	char *p;

	start();
	latr_set("settle_ms", 500);
	p = written(LENGTH);
	hint_unseen(p, LENGTH);
	faults = vmstat("numa_hint_faults");
	do {
		peer_write(p, PAGES, WORD(OWN));
		ENSURE(seconds() < end, "no hint was seen for %d s", LIMIT_S);
	} while (vmstat("numa_hint_faults") < faults + PAGES / 2);
	ENSURE(vmstat("latr_late") == late, "CPUs were interrupted");
}

/* Threads count in words of their own, in all pages, while those move. */
#define WRITERS	3

static char *target;
static atomic_bool over;
static uint64_t turns[WRITERS];

static void *count_up(void *arg)
{
	size_t own = (size_t)arg, i;

	pin_to_cpu((int)own + 1);
	while (!over) {
		for (i = 0; i < PAGES; i++)
			((volatile uint64_t *)(target + i * PAGE))[own]++;
		turns[own]++;
	}
	return NULL;
}

/* As long as CEASEFIRE_TEST_SECONDS says. */
static void under_writers(void)
{
	double end;
	pthread_t threads[WRITERS];
	size_t i, own, moved_pages = 0, lost = 0;
	long skips = vmstat("latr_hint_skip");
	int node = 0;

	need_cpus(WRITERS + 1);
	balance("1000000");
	pin_to_cpu(0);
	target = mmap(NULL, LENGTH, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	ENSURE(target != MAP_FAILED, "mmap: %m");
	for (own = 0; own < WRITERS; own++)
		MUST(pthread_create(&threads[own], NULL, count_up, (void *)own) ?
		     -1 : 0);
	end = seconds_until_end(5);
	while (seconds() < end) {
		give_hints(target, LENGTH);
		node = !node;
		moved_pages += move_to(target, PAGES, node);
	}
	over = true;
	for (own = 0; own < WRITERS; own++)
		MUST(pthread_join(threads[own], NULL) ? -1 : 0);
	for (own = 0; own < WRITERS; own++)
		for (i = 0; i < PAGES; i++)
			lost += turns[own] !=
				((uint64_t *)(target + i * PAGE))[own];
	ktap_note("%ld hints, %zu pages moved, %llu updates",
		  vmstat("latr_hint_skip") - skips, moved_pages,
		  (unsigned long long)(turns[0] + turns[1] + turns[2]) * PAGES);
	ENSURE(moved_pages > PAGES, "%zu pages have moved", moved_pages);
	ENSURE(!lost, "%zu of %d words are wrong: updates were lost", lost,
	       WRITERS * PAGES);
}

/* The kernel itself gives hints, to threads on two nodes. */
static void by_kernel(void)
{
	double end = seconds() + LIMIT_S;
	long skips = vmstat("latr_hint_skip");
	char *p;

	balance("10");
	if (!write_text(BALANCING "scan_period_min_ms", "20"))
		ktap_skip("no NUMA balancing");
	pin_to_cpu(0);
	peer_start(1);
	p = written(LENGTH);
	while (vmstat("latr_hint_skip") == skips) {
		ENSURE(seconds() < end, "the kernel gives no hints for %d s",
		       LIMIT_S);
		peer_write(p, PAGES, WORD(OWN));
	}
}

int main(int argc, char **argv)
{
	static const struct ktap_case cases[] = {
		{ "moved", moved, 0 },
		{ "huge_moved", huge_moved, 0 },
		{ "moved_one_by_one", moved_one_by_one, 0 },
		{ "protected", protected, 0 },
		{ "huge_protected", huge_protected, 0 },
		{ "protected_after_failure", protected_after_failure, 0 },
		{ "write_protected", write_protected, 0 },
		{ "huge_write_protected", huge_write_protected, 0 },
		{ "carried_away", carried_away, 0 },
		{ "seen_in_time", seen_in_time, 0 },
		{ "under_writers", under_writers, 7200 },
		{ "by_kernel", by_kernel, 0 },
	};

	setenv("CEASEFIRE_TEST_MECHANISM", "latr", 1);
	return ktap_main(argc, argv, cases, KTAP_COUNT(cases));
}
