// SPDX-License-Identifier: GPL-2.0
/*
 * Sharers: a CPU that has used a region is asked to flush, at any time and by whatever
 * way (I11), and no copy leads to a table that is gone (I12). One that has not is
 * left alone.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "context.h"
#include "env.h"
#include "ktap.h"
#include "peer.h"
#include "regions.h"

#define PAGES		16
#define LENGTH		(PAGES * PAGE)
#define OWN		0x5a
#define NEW		0x42
#define ROUNDS		200
/* More than tlb_single_page_flush_ceiling. */
#define MANY		64
/* A CPU that does not use a region is interrupted so often, and then never again. */
#define USELESS		3
#define SHARED		50
/* Regions, one each 25 ms, until all CPUs have had a tick in user mode; fewer than take a GiB. */
#define LEAVES		40

/* Memory that only one CPU uses: nobody else is interrupted for it. */
static void private_memory(void)
{
	long before;
	char *p;
	int i;

	sharers_start();
	p = regions(1);
	before = vmstat("nr_tlb_remote_flush_received");
	for (i = 0; i < ROUNDS; i++) {
		memset(p, OWN, LENGTH);
		MUST(madvise(p, LENGTH, MADV_DONTNEED));
		ENSURE(!p[0] && !p[LENGTH - 1], "old data");
	}
	before = vmstat("nr_tlb_remote_flush_received") - before;
	ENSURE(before < ROUNDS / 10, "%ld shootdowns by %d calls", before,
	       ROUNDS);
}

static void dontneed(void)
{
	char *p;

	sharers_start();
	p = regions(1);
	ENSURE(peer_write(p, PAGES, WORD(OWN)) == PAGES, "no write");
	MUST(madvise(p, LENGTH, MADV_DONTNEED));
	peer_finds(p, PAGES, 0);
}

static void protected(void)
{
	char *p;

	sharers_start();
	p = regions(1);
	ENSURE(peer_write(p, PAGES, WORD(OWN)) == PAGES, "no write");
	MUST(mprotect(p, LENGTH, PROT_READ));
	peer_cannot_write(p, PAGES, WORD(NEW));
	peer_finds(p, PAGES, WORD(OWN));
}

/* The first use is by both at the same time, or by one after the other. */
static void unmapped(void)
{
	char *p;

	sharers_start();
	p = regions(1);
	ENSURE(peer_write(p, PAGES, WORD(OWN)) == PAGES, "no write");
	MUST(munmap(p, LENGTH));
	peer_finds(p, PAGES, FAULTED);
}

/* Somebody else's table is where the old one was. */
static void mapped_again(char *p, uint64_t byte)
{
	ENSURE(mmap(p, REGION, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == p,
	       "mmap: %m");
	MUST(madvise(p, REGION, MADV_NOHUGEPAGE));
	memset(p, (int)byte, LENGTH);
}

/* All of a region, so that the table goes. */
static void unmap_with_table(char *p)
{
	long kb = read_kb("/proc/self/status", "VmPTE");

	MUST(munmap(p, REGION));
	ENSURE(read_kb("/proc/self/status", "VmPTE") < kb,
	       "the table stays: nothing to attack with");
}

static void table_freed(void)
{
	char *p;
	int i;

	sharers_start();
	for (i = 0; i < 20; i++) {
		p = regions(1);
		ENSURE(peer_write(p, PAGES, WORD(OWN)) == PAGES, "no write");
		unmap_with_table(p);
		peer_finds(p, PAGES, FAULTED);
		mapped_again(p, NEW);
		peer_finds(p, PAGES, WORD(NEW));
	}
}

/* mremap() takes the table along: it is at another address then. */
static void table_moved(void)
{
	char *from, *to;

	sharers_start();
	from = regions(1);
	to = regions(1);
	ENSURE(peer_write(from, PAGES, WORD(OWN)) == PAGES, "no write");
	ENSURE(mremap(from, REGION, REGION, MREMAP_MAYMOVE | MREMAP_FIXED,
		      to) == to, "mremap: %m");
	peer_finds(from, PAGES, FAULTED);
	peer_finds(to, PAGES, WORD(OWN));
	mapped_again(from, NEW);
	peer_finds(from, PAGES, WORD(NEW));
}

/*
 * The peer has read where its entry is to lead, and is held up. Nobody knows that it
 * comes when that changes, but it has tables there.
 */
static long races;

static void late_begin(char *p)
{
	sharers_fill_delay(0);
	peer_touch(p + REGION, 1);
	races = vmstat("sharers_fill_race");
	sharers_fill_delay(300);
	peer_begin_watch(p, 1, WORD(OWN));
	sleep_ms(50);
}

static void late_end(void)
{
	sleep_ms(500);
	sharers_fill_delay(0);
	peer_end_watch();
}

/* Where the kernel says that the peer was late it has had to start again. */
static void late_was_late(void)
{
	if (vmstat("sharers_fill_race") == races)
		ktap_retry("the peer was too early, or too late");
}

static void late_fill(void)
{
	char *p;

	sharers_start();
	/* Once before: what is written for the first time is flushed for, too. */
	p = regions(1);
	memset(p, OWN, LENGTH);
	unmap_with_table(p);
	mapped_again(p, NEW);
	p = regions(1);
	memset(p, OWN, LENGTH);
	late_begin(p);
	unmap_with_table(p);
	mapped_again(p, NEW);
	late_end();
	peer_finds(p, PAGES, WORD(NEW));
	late_was_late();
}

/* A GiB, aligned: its table of PMDs is moved, and stays as it is. */
static void late_fill_moved(void)
{
	char *from, *to;

	sharers_start();
	from = whole_gib(MAP_PRIVATE | MAP_ANONYMOUS, -1);
	to = whole_gib(MAP_PRIVATE | MAP_ANONYMOUS, -1);
	memset(from, OWN, LENGTH);
	late_begin(from);
	ENSURE(mremap(from, GIB, GIB, MREMAP_MAYMOVE | MREMAP_FIXED, to) == to,
	       "mremap: %m");
	mapped_again(from, NEW);
	late_end();
	peer_finds(from, PAGES, WORD(NEW));
	peer_finds(to, PAGES, WORD(OWN));
	late_was_late();
}

/* Two mappings of huge pages have a table of PMDs in common; one gives it up. */
static void late_fill_unshared(void)
{
	char *p, *q;
	int fd;

	if (!write_text("/proc/sys/vm/nr_hugepages", "4"))
		ktap_skip("no huge pages");
	fd = memfd_create("pool", MFD_HUGETLB);
	if (fd < 0 || ftruncate(fd, GIB))
		ktap_skip("no huge pages: %m");
	sharers_start();
	p = whole_gib(MAP_SHARED | MAP_NORESERVE, fd);
	q = whole_gib(MAP_SHARED | MAP_NORESERVE, fd);
	*p = OWN;
	p[REGION] = OWN;
	ENSURE(*q == OWN, "wrong data");
	late_begin(q);
	MUST(munmap(q, GIB));
	late_end();
	peer_finds(q, 1, FAULTED);
	ENSURE(*p == OWN, "wrong data");
	late_was_late();
}

static struct {
	char *addr;
	bool go;
	bool done;
} other;

static void *flush_other(void *unused)
{
	(void)unused;
	pin_to_cpu(2);
	while (!__atomic_load_n(&other.go, __ATOMIC_ACQUIRE))
		;
	MUST(madvise(other.addr, PAGE, MADV_DONTNEED));
	__atomic_store_n(&other.done, true, __ATOMIC_RELEASE);
	return NULL;
}

/*
 * Memory that FPR may leave to others: if nobody else has used it, the flush is done
 * here and leaves no debt; else it is skipped.
 */
static void recycled_memory(void)
{
	long skipped, local, others, received;
	char *p;
	int i;

	sharers_start();
	skipped = vmstat("fpr_skip");
	local = vmstat("fpr_flush_local");
	others = vmstat("fpr_flush_tags") + vmstat("fpr_flush_nested");
	received = vmstat("nr_tlb_remote_flush_received");
	for (i = 0; i < ROUNDS; i++) {
		p = mmap(NULL, LENGTH, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FPR, -1, 0);
		ENSURE(p != MAP_FAILED, "mmap: %m");
		memset(p, OWN, LENGTH);
		/* The peer comes to what is mapped last, and to nothing before. */
		if (i >= ROUNDS - SHARED)
			peer_touch(p, PAGES);
		else
			ENSURE(vmstat("fpr_skip") == skipped, "a flush was skipped");
		MUST(munmap(p, LENGTH));
	}
	/* The first may come before there is room for tags; the kernel may look for NUMA hints. */
	local = vmstat("fpr_flush_local") - local;
	others = vmstat("fpr_flush_tags") + vmstat("fpr_flush_nested") - others;
	ENSURE(local >= (ROUNDS - SHARED) * 9 / 10 && local + others >= ROUNDS - SHARED,
	       "%ld flushes were local, %ld had another reason", local, others);
	/* Not all: frames get tags a moment after they are first left behind. */
	ENSURE(vmstat("fpr_skip") > skipped, "no flush of the last was skipped");
	received = vmstat("nr_tlb_remote_flush_received") - received;
	ENSURE(received < ROUNDS / 10, "%ld shootdowns", received);
}

/* Two others flush a page each; the peer hears of both at once. */
static void two_at_once(void)
{
	pthread_t thread;
	char *p;

	need_cpus(3);
	sharers_start();
	p = regions(2);
	other.addr = p + PAGE;
	ENSURE(!pthread_create(&thread, NULL, flush_other, NULL), "no thread");
	sleep_ms(50);
	ENSURE(peer_write(p, 2, WORD(OWN)) == 2, "no write");
	/* Held up, with interrupts off, in another region. */
	memset(p + REGION, OWN, PAGE);
	sharers_fill_delay(300);
	peer_begin_watch(p + REGION, 1, WORD(OWN));
	sleep_ms(50);
	__atomic_store_n(&other.go, true, __ATOMIC_RELEASE);
	MUST(madvise(p, PAGE, MADV_DONTNEED));
	sharers_fill_delay(0);
	peer_end_watch();
	pthread_join(thread, NULL);
	peer_finds(p, 2, 0);
}

/* It leaves a region that it does not use, and has nothing of it then. */
static void left(void)
{
	long received, leaves;
	char *p;
	int i;

	sharers_start();
	p = regions(1);
	ENSURE(peer_write(p, PAGES, WORD(OWN)) == PAGES, "no write");
	leaves = vmstat("sharers_leave");
	received = vmstat("nr_tlb_remote_flush_received");
	for (i = 0; i < ROUNDS; i++) {
		*(volatile char *)p = NEW;
		MUST(madvise(p, PAGE, MADV_DONTNEED));
	}
	received = vmstat("nr_tlb_remote_flush_received") - received;
	ENSURE(vmstat("sharers_leave") > leaves, "the peer does not leave");
	ENSURE(received < USELESS + ROUNDS / 10,
	       "%ld shootdowns by %d calls", received, ROUNDS);
	MUST(madvise(p, LENGTH, MADV_DONTNEED));
	peer_finds(p, PAGES, 0);
}

/* More than is flushed page by page, so that everything is: the peer goes on all the same. */
static void long_dontneed(void)
{
	char *p;
	int i;

	sharers_start();
	p = regions(1);
	for (i = 0; i < 3; i++) {
		ENSURE(peer_write(p, MANY, WORD(OWN)) == MANY, "no write");
		MUST(madvise(p, MANY * PAGE, MADV_DONTNEED));
		peer_finds(p, MANY, 0);
	}
}

/*
 * A thread that maps and unmaps goes from CPU to CPU. Its table goes each time, and with
 * it what the last CPU was noted for.
 */
static void goes_round(char *at)
{
	long received = vmstat("nr_tlb_remote_flush_received");
	int i;

	for (i = 0; i < ROUNDS; i++) {
		pin_to_cpu(i & 1);
		ENSURE(mmap(at, LENGTH, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == at,
		       "mmap: %m");
		memset(at, OWN, LENGTH);
		MUST(munmap(at, LENGTH));
	}
	received = vmstat("nr_tlb_remote_flush_received") - received;
	ENSURE(received < ROUNDS / 10, "%ld shootdowns by %d calls", received,
	       ROUNDS);
}

static void moves_on(void)
{
	char *p;

	sharers_start();
	p = regions(1);
	MUST(munmap(p, REGION));
	goes_round(p + REGION / 2);
}

/* The same where nothing else is in the GiB: the table above goes, too. */
static void moves_on_alone(void)
{
	char *p;

	sharers_start();
	p = whole_gib(MAP_PRIVATE | MAP_ANONYMOUS, -1);
	MUST(munmap(p, GIB));
	goes_round(p + GIB - REGION / 2);
}

/* A CPU in lazy mode is not interrupted: it finds out when that ends. */
static void asleep(void)
{
	char *p;
	int i;

	sleeper_start();
	p = regions(1);
	for (i = 0; i < 20; i++) {
		memset(p, OWN, PAGE);
		sleeper_finds(p, WORD(OWN));
		MUST(madvise(p, PAGE, MADV_DONTNEED));
		sleeper_finds(p, 0);
	}
}

static void huge_dontneed(void)
{
	char *p;

	sharers_start();
	p = huge_region(PAGES, WORD(OWN));
	MUST(madvise(p, REGION, MADV_DONTNEED));
	peer_finds(p, PAGES, 0);
}

static void huge_protected(void)
{
	char *p;

	sharers_start();
	p = huge_region(PAGES, WORD(OWN));
	MUST(mprotect(p, REGION, PROT_READ));
	peer_cannot_write(p, PAGES, WORD(NEW));
	MUST(mprotect(p, REGION, PROT_READ | PROT_WRITE));
	ENSURE(peer_write(p, PAGES, WORD(NEW)) == PAGES, "no write");
	peer_finds(p, PAGES, WORD(NEW));
}

/* The entry becomes a table, and part of what it leads to goes. */
static void huge_split(void)
{
	char *p;

	sharers_start();
	p = huge_region(PAGES, WORD(OWN));
	MUST(madvise(p, PAGE, MADV_DONTNEED));
	peer_finds(p, 1, 0);
	peer_finds(p + PAGE, PAGES - 1, WORD(OWN));
	MUST(madvise(p, LENGTH, MADV_DONTNEED));
	peer_finds(p, PAGES, 0);
}

/* Huge pages of a pool. */
static void pool_dontneed(void)
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
	MUST(mprotect(p, REGION, PROT_READ));
	ENSURE(!peer_write(p, PAGES, WORD(NEW)), "writes went through");
	MUST(mprotect(p, REGION, PROT_READ | PROT_WRITE));
	MUST(madvise(p, REGION, MADV_DONTNEED));
	peer_finds(p, PAGES, 0);
	MUST(munmap(p, REGION));
	peer_finds(p, PAGES, FAULTED);
}

/* A CPU that was in the kernel has its copy until its next tick in user mode. */
static void fills_end(char *p)
{
	long fills;
	int i;

	for (i = 1; i < LEAVES; i++, p += REGION) {
		fills = vmstat("sharers_fill");
		ENSURE(peer_write(p, PAGES, WORD(OWN)) == PAGES, "no write");
		if (vmstat("sharers_fill") == fills)
			break;
		usleep(25000);
	}
	ENSURE(i < LEAVES, "copies are filled still");
}

/* All processes lose it, and those that are there go on. */
static void switched_off_by_root(void)
{
	char *p;

	sharers_start();
	p = regions(LEAVES);
	ENSURE(peer_write(p, PAGES, WORD(OWN)) == PAGES, "no write");
	sharers_enable("never");
	MUST(madvise(p, LENGTH, MADV_DONTNEED));
	peer_finds(p, PAGES, 0);
	fills_end(p + REGION);
	MUST(munmap(p, LEAVES * REGION));
	peer_finds(p, PAGES, FAULTED);
}

/* Running CPUs go on with the page tables of the process. */
static void switched_off(void)
{
	char *p;

	sharers_start();
	p = regions(LEAVES);
	ENSURE(peer_write(p, PAGES, WORD(OWN)) == PAGES, "no write");
	MUST(context_sharers(0));
	MUST(madvise(p, LENGTH, MADV_DONTNEED));
	peer_finds(p, PAGES, 0);
	fills_end(p + REGION);
	MUST(munmap(p, LEAVES * REGION));
	peer_finds(p, PAGES, FAULTED);
}

int main(int argc, char **argv)
{
	static const struct ktap_case cases[] = {
		{ "private_memory", private_memory, 0 },
		{ "dontneed", dontneed, 0 },
		{ "protected", protected, 0 },
		{ "unmapped", unmapped, 0 },
		{ "table_freed", table_freed, 0 },
		{ "table_moved", table_moved, 0 },
		{ "late_fill", late_fill, 0 },
		{ "late_fill_moved", late_fill_moved, 0 },
		{ "late_fill_unshared", late_fill_unshared, 0 },
		{ "two_at_once", two_at_once, 0 },
		{ "recycled_memory", recycled_memory, 0 },
		{ "left", left, 0 },
		{ "long_dontneed", long_dontneed, 0 },
		{ "moves_on", moves_on, 0 },
		{ "moves_on_alone", moves_on_alone, 0 },
		{ "asleep", asleep, 0 },
		{ "huge_dontneed", huge_dontneed, 0 },
		{ "huge_protected", huge_protected, 0 },
		{ "huge_split", huge_split, 0 },
		{ "pool_dontneed", pool_dontneed, 0 },
		{ "switched_off", switched_off, 0 },
		{ "switched_off_by_root", switched_off_by_root, 0 },
	};

	return ktap_main(argc, argv, cases, KTAP_COUNT(cases));
}
