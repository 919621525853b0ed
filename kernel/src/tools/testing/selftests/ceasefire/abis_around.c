// SPDX-License-Identifier: GPL-2.0
/*
 * Which pages of a file get entries that only the CPU has that has asked for them (I11):
 * the one that was asked for, and those that fault-around maps beside it where they are
 * about to be used.
 *
 * The first thread is on CPU 0, the peer on CPU 1. Needs PCIDs.
 */
#define _GNU_SOURCE
#include <linux/kernel-page-flags.h>
#include <sys/mman.h>

#include "abis.h"
#include "env.h"
#include "file.h"
#include "ktap.h"
#include "map.h"
#include "peer.h"
#include "regions.h"

#define PAGES	16
#define LENGTH	(PAGES * PAGE)
#define STEPS	4
/* Bits of /proc/kpageflags; the kernel does not promise the second one. */
#define KPF_MLOCKED	33
#define KPF(name)	(1ULL << KPF_##name)
#define OWN	0x5a
#define NEW	0x42

/* At the beginning of a page table. */
static char *mapped(struct tfile *file, size_t pages, int prot, int flags)
{
	char *p;

	file_make(file, ON_TMPFS, pages, OWN);
	p = mmap(regions(1), pages * PAGE, prot, flags | MAP_FIXED, file->fd, 0);
	ENSURE(p != MAP_FAILED, "mmap: %m");
	return p;
}

/* Pages of a file that are read and then copied. The first fault maps and loads them all. */
static void own_copied(void)
{
	struct abis_flushes got;
	struct tfile file;
	size_t i;
	char *p;

	abis_start_inserted();
	p = mapped(&file, PAGES, PROT_READ | PROT_WRITE, MAP_PRIVATE);
	got = abis_flushes();
	for (i = 0; i < PAGES; i++)
		ENSURE(probe_read(p + i * PAGE) == WORD(OWN) &&
		       probe_write(p + i * PAGE, WORD(NEW)), "page %zu", i);
	got = abis_flushes_since(got);
	PREMISE(got.young < PAGES / 2, "%ld entries were used again", got.young);
	ENSURE(got.local + got.young >= PAGES && got.class >= PAGES / 2,
	       "%ld flushes were local, %ld for all; %ld entries by class, %ld used",
	       got.local, got.all, got.class, got.young);
}

/* Read in order, all are loaded: when they go this CPU is the only one that is asked. */
static void in_order(void)
{
	struct abis_flushes got;
	struct tfile file;
	long before;
	size_t i;
	char *p;

	abis_start_inserted();
	p = mapped(&file, STEPS * PAGES, PROT_READ, MAP_SHARED);
	before = vmstat("abis_inserted");
	for (i = 0; i < STEPS * PAGES; i++)
		ENSURE(probe_read(p + i * PAGE) == WORD(OWN), "wrong data");
	before = vmstat("abis_inserted") - before;
	ENSURE(before >= STEPS * PAGES, "%ld entries were inserted", before);
	/* As many as one flush is for page by page. */
	got = abis_flushes();
	MUST(munmap(p, PAGES * PAGE));
	got = abis_flushes_since(got);
	PREMISE(!got.young, "%ld entries were used again", got.young);
	ENSURE(got.local == 1 && got.class >= PAGES,
	       "%ld flushes were local, %ld for all; %ld entries by class",
	       got.local, got.all, got.class);
	/* And the peer has none of them that it has not read. */
	ENSURE(peer_count(p + PAGES * PAGE, PAGES, WORD(OWN)) == PAGES,
	       "wrong data");
	MUST(munmap(p + PAGES * PAGE, (STEPS - 1) * PAGES * PAGE));
	peer_finds(p, STEPS * PAGES, FAULTED);
}

/*
 * Without the other source, a page beside the one that was asked for is like any other. Where the
 * mapping is longer than what is mapped at a time, and not read in order, it is not loaded.
 */
static void alone(void)
{
	struct tfile file;
	long before;
	char *p;

	abis_start_inserted();
	abis_sources("inserted");
	p = mapped(&file, 2 * PAGES, PROT_READ, MAP_SHARED);
	before = vmstat("abis_inserted");
	ENSURE(probe_read(p + PAGE) == WORD(OWN), "wrong data");
	ENSURE(vmstat("abis_inserted") - before == 1, "%ld entries were inserted",
	       vmstat("abis_inserted") - before);
	ENSURE(peer_count(p, PAGES, WORD(OWN)) == PAGES, "wrong data");
	MUST(munmap(p, 2 * LENGTH));
	peer_finds(p, PAGES, FAULTED);
}

/*
 * Pages of a large folio that different CPUs have asked for have entries that differ in the
 * name only. mlock() shall find that they are all of the folio, and lock it. Its first fault
 * maps all of it; where some are mapped already, each page has its own.
 */
static void large_folio(void)
{
	struct tfile file;
	uint64_t flags;
	long inserted;
	size_t i;
	char *p;

	abis_start_inserted();
	file_make(&file, ON_LARGE, PAGES, OWN);
	p = mmap(regions(1), LENGTH, PROT_READ | PROT_WRITE,
		 MAP_SHARED | MAP_FIXED, file.fd, 0);
	ENSURE(p != MAP_FAILED, "mmap: %m");
	ENSURE(probe_write(p, WORD(OWN)), "no write");
	inserted = vmstat("abis_inserted");
	for (i = 0; i < PAGES; i++) {
		MUST(madvise(p + i * PAGE, PAGE, MADV_DONTNEED));
		ENSURE(i % 2 ? peer_write(p + i * PAGE, 1, WORD(OWN)) == 1 :
			       probe_write(p + i * PAGE, WORD(OWN)),
		       "no write");
	}
	inserted = vmstat("abis_inserted") - inserted;
	ENSURE(inserted >= PAGES, "%ld entries were inserted", inserted);
	flags = frame_flags(frame_of(p));
	PREMISE(flags & KPF(COMPOUND_HEAD), "no large folio");
	ENSURE(!(flags & KPF(MLOCKED)), "it is locked");
	MUST(mlock(p, LENGTH));
	flags = frame_flags(frame_of(p));
	ENSURE(flags & KPF(MLOCKED), "it is not locked: %llx",
	       (unsigned long long)flags);
	MUST(munlock(p, LENGTH));
}

int main(int argc, char **argv)
{
	static const struct ktap_case cases[] = {
		{ "own_copied", own_copied, 0 },
		{ "in_order", in_order, 0 },
		{ "alone", alone, 0 },
		{ "large_folio", large_folio, 0 },
	};

	return ktap_main(argc, argv, cases, KTAP_COUNT(cases));
}
