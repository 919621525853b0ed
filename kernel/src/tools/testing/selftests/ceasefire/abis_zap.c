// SPDX-License-Identifier: GPL-2.0
/*
 * Attacks on gathers that leave out entries which no CPU has (I11): whatever the
 * accessed bits say, a CPU that has an entry has to lose it with the call that takes
 * the page away.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
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

#define PAGES		16
#define LENGTH		(PAGES * PAGE)
#define LENGTH_KB	((long)(LENGTH / 1024))
#define OWN		0x5a
#define NEW		0x42
/* More than a gather holds: it flushes in its middle. */
#define MANY		12288
/* Of the flush, and until it has begun. */
#define DELAY_MS	4000
#define BEGUN_MS	700

static void dontneed(char *p)
{
	MUST(madvise(p, LENGTH, MADV_DONTNEED));
}

/* None of the entries had to be flushed for, and nobody was interrupted. */
static void fell_away(struct abis_flushes got, long entries)
{
	ENSURE(got.none && !got.some && got.uncached >= entries,
	       "%ld flushes fell away, %ld were for some entries, %ld for all; %ld entries in no TLB, %ld used, %ld stale, %ld pending, %ld untracked, %ld others",
	       got.none, got.some, got.all, got.uncached, got.young, got.stale,
	       got.pending, got.untracked, got.other);
	/* Other programs have some, too. */
	PREMISE(!got.received, "%ld shootdowns", got.received);
}

/* The peer has just used it. */
static void used(void)
{
	char *p;

	abis_start();
	p = abis_written(PAGES, WORD(OWN));
	dontneed(p);
	peer_finds(p, PAGES, 0);
}

static void used_unmapped(void)
{
	char *p;

	abis_start();
	p = abis_written(PAGES, WORD(OWN));
	MUST(munmap(p, LENGTH));
	peer_finds(p, PAGES, FAULTED);
}

/* The bits were cleared, and the peer still has the entries. */
static void cleared(void)
{
	char *p;

	abis_start();
	p = abis_written(PAGES, WORD(OWN));
	abis_clear_accessed();
	dontneed(p);
	peer_finds(p, PAGES, 0);
}

/* A flush of something else says nothing about them. */
static void cleared_elsewhere(void)
{
	char *p;

	abis_start();
	p = abis_written(PAGES, WORD(OWN));
	abis_clear_accessed();
	partial_flush();
	dontneed(p);
	peer_finds(p, PAGES, 0);
}

/* A full flush has come, and nobody has used them since: no flush at all. */
static void settled(void)
{
	struct abis_flushes got;
	char *p;

	abis_start();
	p = abis_written(PAGES, WORD(OWN));
	abis_settle();
	got = abis_flushes();
	dontneed(p);
	got = abis_flushes_since(got);
	peer_finds(p, PAGES, 0);
	fell_away(got, PAGES);
}

/* Used again after that. */
static void used_again(void)
{
	char *p;

	abis_start();
	p = abis_written(PAGES, WORD(OWN));
	abis_settle();
	ENSURE(peer_count(p, PAGES, WORD(OWN)) == PAGES, "wrong data");
	dontneed(p);
	peer_finds(p, PAGES, 0);
}

/* One of them was used again: the flush is for that one. */
static void one_of_them(void)
{
	struct abis_flushes got;
	char *p;

	abis_start();
	p = abis_written(PAGES, WORD(OWN));
	abis_settle();
	ENSURE(peer_count(p + PAGE, 1, WORD(OWN)) == 1, "wrong data");
	got = abis_flushes();
	dontneed(p);
	got = abis_flushes_since(got);
	peer_finds(p, PAGES, 0);
	ENSURE(got.some == 1 && got.uncached == PAGES - 1 && got.young == 1,
	       "%ld flushes for some entries, %ld entries in no TLB, %ld used",
	       got.some, got.uncached, got.young);
}

/* Moved to another address after the bits were cleared; there it is new. */
static void moved(void)
{
	char *p, *q;

	abis_start();
	p = abis_written(PAGES, WORD(OWN));
	q = regions(1);
	abis_clear_accessed();
	ENSURE(mremap(p, LENGTH, LENGTH, MREMAP_MAYMOVE | MREMAP_FIXED, q) == q,
	       "mremap: %m");
	ENSURE(peer_count(q, PAGES, WORD(OWN)) == PAGES, "wrong data");
	dontneed(q);
	peer_finds(q, PAGES, 0);
	peer_finds(p, PAGES, FAULTED);
}

/* Of a huge page whose bit was cleared, and that was split. */
static void split(void)
{
	char *p;

	abis_start();
	p = huge_region(PAGES, WORD(OWN));
	abis_clear_accessed();
	/* A part of it goes, so that the rest is mapped by small entries. */
	MUST(madvise(p + REGION / 2, PAGE, MADV_DONTNEED));
	ENSURE(peer_count(p, PAGES, WORD(OWN)) == PAGES, "wrong data");
	dontneed(p);
	peer_finds(p, PAGES, 0);
}

/* The bits were cleared when nobody took note of that yet. */
static void switched_on(void)
{
	char *p;

	abis_prepare();
	p = abis_written(PAGES, WORD(OWN));
	abis_clear_accessed();
	if (context_abis(1))
		ktap_skip("prctl(PR_ABIS): %m");
	dontneed(p);
	peer_finds(p, PAGES, 0);
}

/* The same where the process has a context for something else. */
static void switched_on_late(void)
{
	struct tfile file;
	char *p;

	abis_prepare();
	file_make(&file, ON_TMPFS, 1, OWN);
	fpr_map(&file, 0, 1, PROT_READ, MAP_SHARED);
	p = abis_written(PAGES, WORD(OWN));
	abis_clear_accessed();
	if (context_abis(1))
		ktap_skip("prctl(PR_ABIS): %m");
	dontneed(p);
	peer_finds(p, PAGES, 0);
}

/* Root switches it off and on: bits are noted all the time. */
static void off_and_on(void)
{
	struct abis_flushes got;
	char *p;

	abis_start();
	p = abis_written(PAGES, WORD(OWN));
	abis_settle();
	abis_enable("never");
	got = abis_flushes();
	dontneed(p);
	got = abis_flushes_since(got);
	ENSURE(!got.none && !got.uncached, "it is used although switched off");
	ENSURE(peer_write(p, PAGES, WORD(OWN)) == PAGES, "no write");
	abis_clear_accessed();
	abis_enable("ask");
	dontneed(p);
	peer_finds(p, PAGES, 0);
}

/* What fault-around maps beside the page that was touched nobody has. */
static void beside(void)
{
	struct abis_flushes got;
	struct tfile file;
	uint64_t frames[PAGES];
	long born;
	char *p;
	int i;

	file_make(&file, ON_DISK, PAGES, OWN);
	abis_start();
	born = vmstat("abis_born");
	p = mmap(regions(1), LENGTH, PROT_READ, MAP_PRIVATE | MAP_FIXED,
		 file.fd, 0);
	ENSURE(p != MAP_FAILED, "mmap: %m");
	ENSURE(p[0] == OWN, "wrong data");
	frames_of(p, PAGES, frames);
	for (i = 0; i < PAGES; i++)
		ENSURE(frames[i], "page %d is not mapped: nothing to look at", i);
	ENSURE(vmstat("abis_born") - born >= PAGES - 1, "%ld entries are born so",
	       vmstat("abis_born") - born);
	got = abis_flushes();
	MUST(madvise(p + PAGE, LENGTH - PAGE, MADV_DONTNEED));
	got = abis_flushes_since(got);
	fell_away(got, PAGES - 1);
	ENSURE(p[PAGE] == OWN, "wrong data");
	/* And what the peer has touched it has to lose. */
	ENSURE(peer_count(p, PAGES, WORD(OWN)) == PAGES, "wrong data");
	ENSURE(mmap(p, LENGTH, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == p,
	       "mmap: %m");
	peer_finds(p, PAGES, 0);
}

/* smaps has a line for each mapping; this is for one that begins there. */
static long referenced_kb(const char *p)
{
	FILE *f = fopen("/proc/self/smaps", "re");
	char line[256], want[32];
	bool here = false;
	long kb = -1;

	snprintf(want, sizeof(want), "%lx-", (unsigned long)p);
	while (f && fgets(line, sizeof(line), f)) {
		if (!strncmp(line, want, strlen(want)))
			here = true;
		if (here && sscanf(line, "Referenced: %ld", &kb) == 1)
			break;
	}
	if (f)
		fclose(f);
	return kb;
}

/* All who ask for the use see what they would see otherwise. */
static void use_is_kept(void)
{
	struct tfile file;
	char *p;

	file_make(&file, ON_DISK, PAGES, OWN);
	abis_start();
	p = mmap(regions(1), LENGTH, PROT_READ, MAP_PRIVATE | MAP_FIXED,
		 file.fd, 0);
	ENSURE(p != MAP_FAILED, "mmap: %m");
	ENSURE(p[0] == OWN, "wrong data");
	ENSURE(referenced_kb(p) == LENGTH_KB, "%ld kB of %ld are used",
	       referenced_kb(p), LENGTH_KB);
	abis_clear_accessed();
	ENSURE(!referenced_kb(p), "%ld kB are used after that was cleared",
	       referenced_kb(p));
}

/* A table goes, and no entry of it was used. */
static void table_goes(void)
{
	struct abis_flushes got;
	char *p;
	long kb;

	abis_start();
	p = abis_written(PAGES, WORD(OWN));
	abis_settle();
	kb = read_kb("/proc/self/status", "VmPTE");
	got = abis_flushes();
	MUST(munmap(p, REGION));
	got = abis_flushes_since(got);
	ENSURE(read_kb("/proc/self/status", "VmPTE") < kb,
	       "the table stays: nothing to attack with");
	peer_finds(p, PAGES, FAULTED);
	ENSURE(got.some && got.uncached >= PAGES,
	       "%ld flushes for some, %ld entries in no TLB", got.some,
	       got.uncached);
	/* Once it can be that the peer did not run. */
	ENSURE_ONCE(got.received, "nobody was interrupted");
}

static struct worker freer;
static char *many;
static volatile int freeing;

static void free_all(void *unused)
{
	(void)unused;
	freeing = 1;
	MUST(madvise(many, MANY * PAGE, MADV_FREE));
	freeing = 2;
}

/*
 * MADV_FREE clears the bits and flushes in the end. Before that another thread takes
 * the pages away, so many that some are free before the end of that.
 */
static void freed_beside(void)
{
	struct abis_flushes got;
	uint64_t alien;

	need_cpus(3);
	if (context_has_sharers() == 1)
		ktap_skip("with sharers nothing makes the flush late");
	abis_start();
	worker_start(&freer, 2, NULL);
	many = mmap(NULL, (MANY + 512) * PAGE, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ENSURE(many != MAP_FAILED, "mmap: %m");
	MUST(madvise(many, (MANY + 512) * PAGE, MADV_NOHUGEPAGE));
	memset(many, OWN, MANY * PAGE);
	ENSURE(peer_count(many, PAGES, WORD(OWN)) == PAGES, "wrong data");
	got = abis_flushes();
	fpr_flush_delay(DELAY_MS);
	peer_begin_watch(many, PAGES, WORD(OWN));
	worker_begin(&freer, free_all, NULL);
	sleep_ms(BEGUN_MS);
	fpr_flush_delay(0);
	MUST(madvise(many, MANY * PAGE, MADV_DONTNEED));
	PREMISE(freeing == 1, "it was too fast");
	alien = peer_end_watch();
	worker_end(&freer);
	got = abis_flushes_since(got);
	ENSURE(alien == WORD(OWN) || !alien, "the peer has read %llx",
	       (unsigned long long)alien);
	/* Also if the peer has not met one; where NUMA hints came they flush. */
	ENSURE_ONCE(got.pending > MANY / 2, "%ld entries had a flush coming",
		    got.pending);
}

int main(int argc, char **argv)
{
	static const struct ktap_case cases[] = {
		{ "used", used, 0 },
		{ "used_unmapped", used_unmapped, 0 },
		{ "cleared", cleared, 0 },
		{ "cleared_elsewhere", cleared_elsewhere, 0 },
		{ "settled", settled, 0 },
		{ "used_again", used_again, 0 },
		{ "one_of_them", one_of_them, 0 },
		{ "moved", moved, 0 },
		{ "split", split, 0 },
		{ "switched_on", switched_on, 0 },
		{ "switched_on_late", switched_on_late, 0 },
		{ "off_and_on", off_and_on, 0 },
		{ "beside", beside, 0 },
		{ "use_is_kept", use_is_kept, 0 },
		{ "table_goes", table_goes, 0 },
		{ "freed_beside", freed_beside, 0 },
	};

	return ktap_main(argc, argv, cases, KTAP_COUNT(cases));
}
