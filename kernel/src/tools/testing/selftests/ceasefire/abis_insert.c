// SPDX-License-Identifier: GPL-2.0
/*
 * Attacks on entries that only the CPU has that has asked for them (I11): a flush goes to
 * CPUs of the class that an entry names, and whoever else may have it must be found out.
 *
 * The first thread is on CPU 0, the peer on CPU 1. Needs PCIDs.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "abis.h"
#include "context.h"
#include "env.h"
#include "file.h"
#include "ktap.h"
#include "map.h"
#include "peer.h"
#include "regions.h"
#include "worker.h"

#define SOURCES	"/sys/kernel/mm/ceasefire/abis/sources"
#define PAGES	16
#define LENGTH	(PAGES * PAGE)
#define OWN	0x5a
#define NEW	0x42
#define ROUNDS	2000
#define DELAY_MS	400

/* Memory to which this CPU has written. */
static char *written(size_t pages, uint64_t word)
{
	char *p = regions(1);
	size_t i;

	for (i = 0; i < pages; i++)
		ENSURE(probe_write(p + i * PAGE, word), "no write");
	return p;
}

/* All of the pages that were asked for were loaded so, and what that was good for. */
static void went_to_nobody_else(struct abis_flushes got, long inserted)
{
	/* A CPU that has lost an entry since walks there. */
	PREMISE(!got.young, "%ld entries were used again", got.young);
	ENSURE(vmstat("abis_inserted") - inserted >= PAGES,
	       "%ld entries were inserted", vmstat("abis_inserted") - inserted);
	ENSURE(got.local == 1 && got.class >= PAGES && !got.narrow,
	       "%ld flushes were local, %ld narrow, %ld for all; %ld entries by class, %ld used, %ld stale, %ld pending, %ld untracked, %ld others",
	       got.local, got.narrow, got.all, got.class, got.young, got.stale,
	       got.pending, got.untracked, got.other);
	/* Other programs have some, too. */
	PREMISE(!got.received, "%ld shootdowns", got.received);
}

/* Own pages go, and nobody is interrupted. */
static void own_pages(void (*let_go)(char *p))
{
	struct abis_flushes got;
	long inserted;
	char *p;

	abis_start_inserted();
	inserted = vmstat("abis_inserted");
	p = written(PAGES, WORD(OWN));
	got = abis_flushes();
	let_go(p);
	went_to_nobody_else(abis_flushes_since(got), inserted);
}

static void unmap(char *p)
{
	MUST(munmap(p, LENGTH));
	ENSURE(probe_read(p) == FAULTED, "it is still there");
}

static void dontneed(char *p)
{
	MUST(madvise(p, LENGTH, MADV_DONTNEED));
	ENSURE(!probe_read(p), "it is still there");
}

static void protect(char *p)
{
	MUST(mprotect(p, LENGTH, PROT_READ));
	ENSURE(!probe_write(p, 1), "it can still be written");
}

static void own_unmapped(void)
{
	own_pages(unmap);
}

static void own_dontneed(void)
{
	own_pages(dontneed);
}

static void own_protected(void)
{
	own_pages(protect);
}

/* Pages of the peer: it is the only one that is asked. */
static void of_the_peer(void (*let_go)(char *p), uint64_t left)
{
	struct abis_flushes got;
	char *p;

	abis_start_inserted();
	p = abis_written(PAGES, WORD(OWN));
	got = abis_flushes();
	let_go(p);
	got = abis_flushes_since(got);
	peer_finds(p, PAGES, left);
	PREMISE(!got.young, "%ld entries were used again", got.young);
	ENSURE(got.narrow == 1 && got.class >= PAGES,
	       "%ld flushes were narrow, %ld local, %ld for all; %ld entries by class",
	       got.narrow, got.local, got.all, got.class);
}

static void drop(char *p)
{
	MUST(madvise(p, LENGTH, MADV_DONTNEED));
}

static void let_go(char *p)
{
	MUST(munmap(p, LENGTH));
}

static void peers_dontneed(void)
{
	of_the_peer(drop, 0);
}

static void peers_unmapped(void)
{
	of_the_peer(let_go, FAULTED);
}

/* Whoever walks there has it, too: both are asked. */
static void both(void)
{
	char *p;

	abis_start_inserted();
	p = written(PAGES, WORD(OWN));
	ENSURE(peer_count(p, PAGES, WORD(OWN)) == PAGES, "wrong data");
	drop(p);
	peer_finds(p, PAGES, 0);
}

/* Rights that the peer has got, and that are taken from it. */
static void peers_protected(void)
{
	char *p;

	abis_start_inserted();
	p = abis_written(PAGES, WORD(OWN));
	MUST(mprotect(p, LENGTH, PROT_READ));
	ENSURE(!peer_write(p, PAGES, WORD(NEW)), "the peer can still write");
}

/*
 * Rights that grow are no reason for a flush. The entry goes on naming the peer, which
 * has it with those of before.
 */
static void rights_grow(void)
{
	struct abis_flushes got;
	struct tfile file;
	char *p;

	abis_start_inserted();
	file_make(&file, ON_TMPFS, 1, OWN);
	p = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, file.fd, 0);
	ENSURE(p != MAP_FAILED, "mmap: %m");
	ENSURE(peer_count(p, 1, WORD(OWN)) == 1, "wrong data");
	MUST(mprotect(p, PAGE, PROT_READ | PROT_WRITE));
	got = abis_flushes();
	MUST(munmap(p, PAGE));
	got = abis_flushes_since(got);
	peer_finds(p, 1, FAULTED);
	PREMISE(!got.young, "%ld entries were used again", got.young);
	ENSURE(got.class == 1, "%ld entries by class", got.class);
}

/* The peer has what was there before a write to a private mapping. */
static void copied(void)
{
	struct abis_flushes got;
	struct tfile file;
	char *p;

	abis_start_inserted();
	file_make(&file, ON_TMPFS, 1, OWN);
	p = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, file.fd, 0);
	ENSURE(p != MAP_FAILED, "mmap: %m");
	ENSURE(peer_count(p, 1, WORD(OWN)) == 1, "wrong data");
	got = abis_flushes();
	ENSURE(probe_write(p, WORD(NEW)), "no write");
	got = abis_flushes_since(got);
	peer_finds(p, 1, WORD(NEW));
	PREMISE(!got.young, "%ld entries were used again", got.young);
	ENSURE(got.narrow == 1, "%ld flushes were narrow, %ld for all",
	       got.narrow, got.all);
}

/*
 * Somebody looks whether the pages are used (clear_refs, as reclaim does): the entries name
 * nobody any more, and the peer has them still.
 */
static void cleared(void)
{
	char *p;

	abis_start_inserted();
	p = abis_written(PAGES, WORD(OWN));
	abis_clear_accessed();
	drop(p);
	peer_finds(p, PAGES, 0);
}

/* Moved to another address: what the peer had was for the old one. */
static void moved(void)
{
	char *p, *q;

	abis_start_inserted();
	p = abis_written(PAGES, WORD(OWN));
	q = regions(1);
	ENSURE(mremap(p, LENGTH, LENGTH, MREMAP_MAYMOVE | MREMAP_FIXED, q) == q,
	       "mremap: %m");
	peer_finds(p, PAGES, FAULTED);
	ENSURE(peer_count(q, PAGES, WORD(OWN)) == PAGES, "wrong data");
	drop(q);
	peer_finds(q, PAGES, 0);
}

static char *page;

static void write_page(void *unused)
{
	(void)unused;
	ENSURE(probe_write(page, WORD(OWN)), "no write");
}

static void drop_page(void *unused)
{
	(void)unused;
	MUST(madvise(page, PAGE, MADV_DONTNEED));
}

static uint64_t found;

static void read_page(void *unused)
{
	(void)unused;
	found = probe_read(page);
}

static void go_elsewhere(void *unused)
{
	(void)unused;
	pin_to_cpu(3);
}

/* A thread takes away what it got on another CPU; somebody else is there now. */
static void thread_moved(void)
{
	struct worker first, second;

	abis_start_inserted();
	need_cpus(4);
	worker_start(&first, 2, NULL);
	worker_start(&second, 2, NULL);
	page = regions(1);
	worker_run(&first, write_page, NULL);
	worker_run(&first, go_elsewhere, NULL);
	worker_run(&first, drop_page, NULL);
	worker_run(&second, read_page, NULL);
	ENSURE(!found, "the CPU still has it: %llx", (unsigned long long)found);
}

/* A process that keeps CPU 2, until it is killed. */
static pid_t occupy(void)
{
	pid_t child = MUST(fork());

	if (!child) {
		pin_to_cpu(2);
		for (;;)
			sched_yield();
	}
	sleep_ms(200);
	return child;
}

/*
 * The CPU runs another process, and has the entry still. Nobody interrupts it: it has to
 * find out when it comes back.
 */
static void away(void)
{
	struct worker user;
	pid_t child;
	int i;

	abis_start_inserted();
	need_cpus(3);
	worker_start(&user, 2, NULL);
	for (i = 0; i < 10; i++) {
		page = regions(1);
		worker_run(&user, write_page, NULL);
		child = occupy();
		/* fork() has flushed: once more, with the other process there. */
		worker_run(&user, drop_page, NULL);
		worker_run(&user, write_page, NULL);
		sleep_ms(50);
		drop_page(NULL);
		worker_run(&user, read_page, NULL);
		kill(child, SIGKILL);
		MUST(waitpid(child, NULL, 0));
		ENSURE(!found, "the CPU still has it: %llx",
		       (unsigned long long)found);
	}
}

/*
 * What the tables of one page lead to must not be found at another address. Two pages
 * are loaded by the same tables, one after the other; beside each of them is a page at
 * the place of the other one, which only the peer has.
 */
static void alias(void)
{
	char *a, *b;
	int i;

	abis_start_inserted();
	a = regions(2);
	b = a + REGION + PAGE;
	for (i = 0; i < ROUNDS; i++) {
		MUST(madvise(a, 2 * PAGE, MADV_DONTNEED));
		MUST(madvise(b - PAGE, 2 * PAGE, MADV_DONTNEED));
		ENSURE(peer_write(a + PAGE, 1, WORD(OWN)) == 1 &&
		       peer_write(b - PAGE, 1, WORD(OWN)) == 1, "no write");
		ENSURE(probe_write(a, WORD(1)) && probe_write(b, WORD(NEW)),
		       "no write");
		ENSURE(probe_read(a + PAGE) == WORD(OWN) &&
		       probe_read(b - PAGE) == WORD(OWN),
		       "it finds %llx and %llx at addresses where that never was, in round %d",
		       (unsigned long long)probe_read(a + PAGE),
		       (unsigned long long)probe_read(b - PAGE), i);
	}
}

static long own_faults(void)
{
	struct rusage usage;

	MUST(getrusage(RUSAGE_THREAD, &usage));
	return usage.ru_minflt;
}

/*
 * A CPU that goes on by those tables finds nothing beside the page: it faults where the
 * peer has a page. Seen where upper levels are cached; see alias() for what is worse.
 */
static void forgotten(void)
{
	long before;
	char *a;
	int i;

	abis_start_inserted();
	a = regions(1);
	for (i = 0; i < 50; i++) {
		MUST(madvise(a, 2 * PAGE, MADV_DONTNEED));
		ENSURE(peer_write(a + PAGE, 1, WORD(OWN)) == 1, "no write");
		ENSURE(probe_write(a, WORD(1)), "no write");
		before = own_faults();
		ENSURE(probe_read(a + PAGE) == WORD(OWN), "wrong data");
		ENSURE(own_faults() == before, "%ld faults for a page that is there",
		       own_faults() - before);
	}
}

/* Entries made without are flushed for as ever, and those made with it after it is off. */
static void switched(void)
{
	struct abis_flushes got;
	char *p, *q;

	abis_start_inserted();
	p = abis_written(PAGES, WORD(OWN));
	abis_sources("uncached");
	q = abis_written(PAGES, WORD(OWN));
	got = abis_flushes();
	drop(p);
	drop(q);
	got = abis_flushes_since(got);
	peer_finds(p, PAGES, 0);
	peer_finds(q, PAGES, 0);
	ENSURE(!got.narrow && !got.local && got.all >= 2,
	       "%ld flushes were narrow, %ld local, %ld for all", got.narrow,
	       got.local, got.all);
}

static struct tfile shared;

static void punch(void *unused)
{
	(void)unused;
	MUST(fallocate(shared.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
		       LENGTH));
}

/*
 * The process does not want it any more while a gather has left entries out, and has not
 * flushed for them: that of a hole in a file, which waits for nobody.
 */
static void switched_off_beside(void)
{
	struct worker other;
	char *p;

	abis_start_inserted();
	need_cpus(3);
	worker_start(&other, 2, NULL);
	file_make(&shared, ON_TMPFS, PAGES, OWN);
	p = mmap(NULL, LENGTH, PROT_READ | PROT_WRITE, MAP_SHARED, shared.fd, 0);
	ENSURE(p != MAP_FAILED, "mmap: %m");
	ENSURE(peer_write(p, PAGES, WORD(NEW)) == PAGES, "no write");
	abis_flush_delay(DELAY_MS);
	worker_begin(&other, punch, NULL);
	sleep_ms(DELAY_MS / 2);
	MUST(context_abis(0));
	abis_flush_delay(0);
	worker_end(&other);
	peer_finds(p, PAGES, 0);
}

/* More than are flushed one by one, by whoever it is. */
static void many(void)
{
	char *p;

	abis_start_inserted();
	p = written(64, WORD(OWN));
	MUST(madvise(p, 64 * PAGE, MADV_DONTNEED));
	ENSURE(!probe_read(p) && !probe_read(p + 63 * PAGE), "it is still there");
	p = abis_written(64, WORD(OWN));
	MUST(madvise(p, 64 * PAGE, MADV_DONTNEED));
	peer_finds(p, 64, 0);
}

/* Two CPUs of the same class: an entry of the one is not that of the other. */
static void same_class(void)
{
	char *p;

	abis_classes(1);
	abis_start_inserted();
	p = abis_written(PAGES, WORD(OWN));
	drop(p);
	peer_finds(p, PAGES, 0);
}

/* A child inherits names, and what they stand for is its parent's. */
static void forked(void)
{
	int status;
	pid_t child;
	char *p;

	abis_start_inserted();
	p = abis_written(PAGES, WORD(OWN));
	child = MUST(fork());
	if (!child) {
		pin_to_cpu(1);
		if (probe_read(p) != WORD(OWN) || !probe_write(p, WORD(NEW)))
			_exit(1);
		_exit(probe_read(p) != WORD(NEW));
	}
	/* Waits for the CPU of the peer: it spins. */
	MUST(waitpid(child, &status, 0));
	ENSURE(!status, "the child ends with status %x", status);
	ENSURE(probe_write(p, WORD(NEW)), "no write");
	peer_finds(p, 1, WORD(NEW));
	peer_finds(p + PAGE, 1, WORD(OWN));
	drop(p);
	peer_finds(p, PAGES, 0);
}

/* Each kind of page that has no entry of that kind. */
static void others(void)
{
	struct tfile file;
	long before;
	char *p;

	abis_start_inserted();
	file_make(&file, ON_TMPFS, 1, OWN);
	before = vmstat("abis_inserted");
	p = mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE, file.fd, 0);
	ENSURE(p != MAP_FAILED && probe_read(p) == WORD(OWN), "mmap: %m");
	p = regions(1);
	/* The page of zeroes. */
	ENSURE(!probe_read(p), "no zero");
	ENSURE(vmstat("abis_inserted") == before,
	       "%ld entries were inserted", vmstat("abis_inserted") - before);
}

/* What the machine cannot do is an error, and nothing has changed. */
static void sources_are_checked(void)
{
	char line[64];
	ssize_t len;
	bool can;
	int fd;

	abis_sources("uncached");
	can = has_word("/proc/cpuinfo", "pcid") && !has_word("/proc/cpuinfo", "pti");
	ENSURE(write_text(SOURCES, "inserted") == can, "sources: %m");
	ENSURE(can || errno == EOPNOTSUPP, "it is another error: %m");
	fd = MUST(open(SOURCES, O_RDONLY));
	len = MUST(read(fd, line, sizeof(line) - 1));
	line[len] = '\0';
	close(fd);
	ENSURE(!strcmp(line, can ? "inserted\n" : "uncached\n"), "it says %s", line);
	ENSURE(!write_text(SOURCES, "nosuch") && errno == EINVAL,
	       "sources: %m");
}

int main(int argc, char **argv)
{
	static const struct ktap_case cases[] = {
		{ "sources_are_checked", sources_are_checked, 0 },
		{ "own_unmapped", own_unmapped, 0 },
		{ "own_dontneed", own_dontneed, 0 },
		{ "own_protected", own_protected, 0 },
		{ "peers_unmapped", peers_unmapped, 0 },
		{ "peers_dontneed", peers_dontneed, 0 },
		{ "peers_protected", peers_protected, 0 },
		{ "both", both, 0 },
		{ "rights_grow", rights_grow, 0 },
		{ "copied", copied, 0 },
		{ "cleared", cleared, 0 },
		{ "moved", moved, 0 },
		{ "thread_moved", thread_moved, 0 },
		{ "away", away, 0 },
		{ "alias", alias, 0 },
		{ "forgotten", forgotten, 0 },
		{ "switched", switched, 0 },
		{ "switched_off_beside", switched_off_beside, 0 },
		{ "many", many, 0 },
		{ "same_class", same_class, 0 },
		{ "forked", forked, 0 },
		{ "others", others, 0 },
	};

	return ktap_main(argc, argv, cases, KTAP_COUNT(cases));
}
