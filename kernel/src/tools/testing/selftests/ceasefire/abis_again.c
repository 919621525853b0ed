// SPDX-License-Identifier: GPL-2.0
/*
 * Attacks on entries that only one CPU has, and that are used again after a change (I11):
 * after msync() a write makes them anew, after mprotect() they are loaded with other rights.
 * Whoever else has had them by then must be found out.
 *
 * The first thread is on CPU 0, the peer on CPU 1. Needs PCIDs.
 */
#define _GNU_SOURCE
#include <linux/mman.h>
#include <sys/mman.h>
#include <unistd.h>

#include "abis.h"
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
#define TURNS	20
#define PRESENT	0x5b
#define HUGE	(2UL << 20)
#define GIB	(1UL << 30)

static struct tfile file;
static int still_there;

static void start(void)
{
	file_make(&file, ON_DISK, PAGES, OWN);
	MUST(fdatasync(file.fd));
	abis_start();
	if (!write_text(SOURCES, "inserted"))
		ktap_skip("abis/sources: inserted: %m");
}

static void write_pages(char *p, uint64_t word)
{
	size_t page;

	for (page = 0; page < PAGES; page++)
		ENSURE(probe_write(p + page * PAGE, word), "no write");
}

static void read_pages(char *p, uint64_t word)
{
	size_t page;

	for (page = 0; page < PAGES; page++)
		ENSURE(probe_read(p + page * PAGE) == word, "wrong data");
}

static char *mapped(void)
{
	char *p = mmap(regions(1), LENGTH, PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_FIXED, file.fd, 0);

	ENSURE(p != MAP_FAILED, "mmap: %m");
	return p;
}

/* Of the turns of a case: nobody was interrupted, since nobody else has the pages. */
static void nobody_was_asked(struct abis_flushes got, long flushes)
{
	got = abis_flushes_since(got);
	/* What a CPU has lost since it has walked for. */
	PREMISE(!got.young && !got.received,
		"%ld entries were used again, %ld shootdowns", got.young,
		got.received);
	ENSURE(got.local + got.none >= flushes,
	       "%ld local flushes, %ld of nobody, %ld narrow, %ld for all",
	       got.local, got.none, got.narrow, got.all);
}

static void cleaned(void)
{
	struct abis_flushes got = { 0 };
	int turn;
	char *p;

	start();
	p = mapped();
	/* The first turn is about what fault-around has brought. */
	for (turn = 0; turn < TURNS; turn++) {
		if (turn == 2)
			got = abis_flushes();
		write_pages(p, WORD(turn + 1));
		MUST(msync(p, LENGTH, MS_SYNC));
	}
	nobody_was_asked(got, (TURNS - 2) * PAGES);
	file_close(&file);
}

/* The peer reads a page before it is written to again, and loses it with the others. */
static void cleaned_used(void)
{
	char *p;

	start();
	p = mapped();
	write_pages(p, WORD(NEW));
	MUST(msync(p, LENGTH, MS_SYNC));
	peer_finds(p, PAGES, WORD(NEW));
	write_pages(p, WORD(OWN));
	MUST(munmap(p, LENGTH));
	peer_finds(p, PAGES, FAULTED);
	file_close(&file);
}

static void protected(void)
{
	struct abis_flushes got;
	int turn;
	char *p;

	start();
	p = regions(1);
	write_pages(p, WORD(OWN));
	got = abis_flushes();
	for (turn = 0; turn < TURNS; turn++) {
		MUST(mprotect(p, LENGTH, PROT_READ));
		read_pages(p, WORD(OWN));
		ENSURE(!probe_write(p, 1), "it can still be written");
		MUST(mprotect(p, LENGTH, PROT_READ | PROT_WRITE));
		write_pages(p, WORD(OWN));
	}
	nobody_was_asked(got, 2 * TURNS);
	file_close(&file);
}

/* Without a pause: a CPU that was left out of a flush makes up for it when it switches. */
static void protects_and_unmaps(void *p)
{
	size_t page;

	MUST(mprotect(p, LENGTH, PROT_READ));
	MUST(munmap(p, LENGTH));
	for (page = 0; page < PAGES; page++)
		still_there += probe_read((char *)p + page * PAGE) != FAULTED;
}

/*
 * Pages of the peer, whose rights another CPU changes: it does not take them for its own. One
 * on which nothing else runs.
 */
static void protected_others(void)
{
	struct worker other;
	char *p;

	need_cpus(3);
	start();
	worker_start(&other, 2, NULL);
	p = abis_written(PAGES, WORD(OWN));
	worker_run(&other, protects_and_unmaps, p);
	ENSURE(!still_there, "%d pages are still there", still_there);
	peer_finds(p, PAGES, FAULTED);
	file_close(&file);
}

/*
 * A huge page of 1 GiB has no table: its data would be taken for one. It begins with words
 * that are present and no good entries, one for each 2 MiB of it: Linux clears such.
 */
static void huge_page(void)
{
	uint64_t *words;
	size_t i;
	char *p;

	start();
	p = mmap(NULL, GIB, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB | MAP_HUGE_1GB, -1, 0);
	if (p == MAP_FAILED)
		ktap_skip("needs a page of 1 GiB: %m");
	words = (uint64_t *)p;
	for (i = 0; i < PAGE / sizeof(*words); i++)
		words[i] = PRESENT;
	/* A part of it, to which these rights are no news. */
	for (i = 0; i < 4; i++)
		MUST(mprotect(p + i * HUGE, PAGE, PROT_READ | PROT_WRITE));
	for (i = 0; i < PAGE / sizeof(*words); i++)
		ENSURE(words[i] == PRESENT, "word %zu is %llx", i,
		       (unsigned long long)words[i]);
	MUST(munmap(p, GIB));
	file_close(&file);
}

int main(int argc, char **argv)
{
	static const struct ktap_case cases[] = {
		{ "cleaned", cleaned, 0 },
		{ "cleaned_used", cleaned_used, 0 },
		{ "protected", protected, 0 },
		{ "protected_others", protected_others, 0 },
		{ "huge_page", huge_page, 0 },
	};

	return ktap_main(argc, argv, cases, KTAP_COUNT(cases));
}
