// SPDX-License-Identifier: GPL-2.0
/*
 * I1: a frame that the peer may still reach through a stale translation is
 * given to nobody else. Each case takes the frames away from the file along
 * another path of the page allocator, has a stranger take free memory in
 * another way, and looks through the stale translations.
 *
 * What the peer may see: the old content of the file, the poison of freed
 * pages, zeros, or a fault.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include "env.h"
#include "file.h"
#include "ktap.h"
#include "map.h"
#include "peer.h"
#include "stranger.h"

#define PAGES		64
#define OWN		0x5a
#define POISON		0xaa
#define ROUNDS		3
#define FILL_MIB	24

#define KPF_COMPOUND	(1ULL << 15 | 1ULL << 16)

static size_t aliens(const char *addr, size_t pages)
{
	static uint64_t words[PEER_PAGES];
	size_t i, count = 0;

	peer_read(addr, pages, words);
	for (i = 0; i < pages; i++) {
		if (words[i] == WORD(OWN) || words[i] == WORD(POISON) ||
		    !words[i] || words[i] == FAULTED)
			continue;
		if (!count++)
			ktap_note("page %zu reads %016llx", i,
				  (unsigned long long)words[i]);
	}
	return count;
}

/* Take the last reference on each page one by one. */
static void drop_singly(const struct tfile *f)
{
	int ends[2];
	size_t held = 0;

	MUST(pipe2(ends, O_CLOEXEC | O_NONBLOCK));
	MUST(fcntl(ends[1], F_SETPIPE_SZ, MIB));
	while (held < f->pages * PAGE) {
		loff_t at = (loff_t)held;
		ssize_t n = splice(f->fd, &at, ends[1], NULL,
				   f->pages * PAGE - held, 0);

		ENSURE(n > 0, "splice of a file into a pipe: %m");
		held += (size_t)n;
	}
	MUST(ftruncate(f->fd, 0));
	close(ends[0]);
	close(ends[1]);
}

static void attack(enum place place, size_t pages, size_t window,
		   void (*drop)(const struct tfile *f), enum fill fill)
{
	struct stranger stranger;
	struct tfile f;
	int round;

	stranger_start(&stranger);
	file_make(&f, place, pages, OWN);
	peer_start(1);
	hold_debts();
	for (round = 0; round < ROUNDS; round++) {
		long parks;
		size_t seen;
		char *p;

		if (round)
			file_fill(&f, 0, pages, OWN);
		p = leave_stale(&f, 0, window, PROT_READ, MAP_SHARED, OWN);
		parks = vmstat("fpr_park");
		drop(&f);
		stranger_fill(&stranger, fill, FILL_MIB / ROUNDS);
		seen = aliens(p, window);
		ENSURE(!seen, "%zu of %zu stale translations show memory of another owner",
		       seen, window);
		parks = vmstat("fpr_park") - parks;
		ENSURE(parks >= (long)window,
		       "%ld frames were parked, %zu were stale", parks, window);
	}
	stranger_stop(&stranger);
}

static void truncated(void)
{
	attack(ON_TMPFS, PAGES, PAGES, file_drop, FILL_ANON);
}

static void dropped(void)
{
	attack(ON_DISK, PAGES, PAGES, file_drop, FILL_ANON);
}

static void put_singly(void)
{
	attack(ON_TMPFS, PAGES, PAGES, drop_singly, FILL_ANON);
}

static void to_page_cache(void)
{
	attack(ON_DISK, PAGES, PAGES, file_drop, FILL_FILE);
}

static void to_pipe(void)
{
	attack(ON_TMPFS, PAGES, PAGES, drop_singly, FILL_PIPE);
}

static void to_page_table(void)
{
	attack(ON_TMPFS, PAGES, PAGES, file_drop, FILL_TABLE);
}

static void to_slab(void)
{
	attack(ON_DISK, PAGES, PAGES, file_drop, FILL_SLAB);
}

/* Folios larger than the per-cpu lists take, put one by one. */
static void large_folio(void)
{
	struct tfile probe;
	uint64_t flags;
	void *p;

	file_make(&probe, ON_LARGE, PAGES, OWN);
	p = (void *)MUST((long)mmap(NULL, PAGE, PROT_READ,
				    MAP_SHARED | MAP_POPULATE, probe.fd, 0));
	flags = frame_flags(frame_of(p));
	ENSURE(flags & KPF_COMPOUND, "the file has no large folios");
	munmap(p, PAGE);
	file_close(&probe);
	attack(ON_LARGE, PAGES, PAGES, drop_singly, FILL_ANON);
}

/* A folio of 2 MiB of which a part was mapped by single entries. */
static void huge_folio(void)
{
	attack(ON_HUGE, 512, 16, file_drop, FILL_ANON);
}

/*
 * 2 MiB mapped by one entry: such a munmap must flush, or note all frames of the
 * folio, not only the first one. The rest is freed by a hole in the file.
 */
static void huge_entry(void)
{
	size_t pages = 512, first = 64, seen;
	struct stranger stranger;
	struct tfile f;
	int round;

	stranger_start(&stranger);
	file_make(&f, ON_HUGE, pages, OWN);
	peer_start(1);
	hold_debts();
	for (round = 0; round < ROUNDS; round++) {
		char *p = fpr_map(&f, 0, pages, PROT_READ, MAP_SHARED);
		size_t hole = first + (size_t)round * PAGES;
		long huge;

		/* No more than a small TLB holds. */
		peer_touch(p + hole * PAGE, PAGES);
		huge = read_kb("/proc/self/smaps_rollup", "ShmemPmdMapped");
		ENSURE(round || huge == 2048, "not mapped by one entry");
		MUST(munmap(p, pages * PAGE));
		MUST(fallocate(f.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
			       (off_t)(hole * PAGE), PAGES * PAGE));
		stranger_fill(&stranger, FILL_ANON, FILL_MIB / ROUNDS);
		seen = aliens(p + hole * PAGE, PAGES);
		ENSURE(!seen, "%zu of %d pages show memory of another owner",
		       seen, PAGES);
		file_close(&f);
		file_make(&f, ON_HUGE, pages, OWN);
	}
	stranger_stop(&stranger);
}

/* The pages leave through reclaim, for a stranger that wants all memory. */
static void reclaimed(void)
{
	struct stranger stranger;
	struct tfile f;
	size_t seen, mib;
	char *p;

	stranger_start(&stranger);
	file_make(&f, ON_DISK, PAGES, OWN);
	peer_start(1);
	hold_debts();
	leave_free(192);
	p = leave_stale(&f, 0, PAGES, PROT_READ, MAP_SHARED, OWN);
	/* What is free, and a good part of what the page cache has. */
	mib = (size_t)read_kb("/proc/meminfo", "MemAvailable") / 1024;
	stranger_fill(&stranger, FILL_ANON, mib * 9 / 10);
	seen = aliens(p, PAGES);
	ENSURE(!seen, "%zu of %d stale translations show memory of another owner",
	       seen, PAGES);
	stranger_stop(&stranger);
}

int main(int argc, char **argv)
{
	static const struct ktap_case cases[] = {
		{ "truncated", truncated, 0 },
		{ "dropped", dropped, 0 },
		{ "put_singly", put_singly, 0 },
		{ "to_page_cache", to_page_cache, 0 },
		{ "to_pipe", to_pipe, 0 },
		{ "to_page_table", to_page_table, 0 },
		{ "to_slab", to_slab, 0 },
		{ "large_folio", large_folio, 0 },
		{ "huge_folio", huge_folio, 0 },
		{ "huge_entry", huge_entry, 0 },
		{ "reclaimed", reclaimed, 300 },
	};

	return ktap_main(argc, argv, cases, KTAP_COUNT(cases));
}
