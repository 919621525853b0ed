// SPDX-License-Identifier: GPL-2.0
/*
 * I5: only the removal of a whole mapping by its owner may skip the flush.
 * After everything else that takes pages away or changes what they may be used
 * for, the peer must see the effect at once: the address is still in use, or
 * the pages go to somebody else.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "checker.h"
#include "env.h"
#include "file.h"
#include "ktap.h"
#include "map.h"
#include "peer.h"
#include "stranger.h"

#define PAGES		16
#define LENGTH		(PAGES * PAGE)
#define OWN		0x5a
#define WRITTEN		0x33
#define NEW		0x42

static struct tfile file;
static long skips;

/* A mapping of the file that the peer has read; the process uses FPR. */
static char *mapped(enum place place, int prot, int flags)
{
	char *p;

	file_make(&file, place, PAGES, OWN);
	peer_start(1);
	hold_debts();
	p = fpr_map(&file, 0, PAGES, prot, flags);
	peer_touch(p, PAGES);
	skips = vmstat("fpr_skip");
	return p;
}

static void expect(const char *p, uint64_t word)
{
	static uint64_t words[PAGES];
	size_t i;

	checker_forbid(p, PAGES);
	peer_read(p, PAGES, words);
	checker_allow(p, PAGES);
	for (i = 0; i < PAGES; i++)
		ENSURE(words[i] == word, "page %zu: the peer reads %016llx, not %016llx",
		       i, (unsigned long long)words[i],
		       (unsigned long long)word);
	ENSURE(vmstat("fpr_skip") == skips, "a flush was skipped");
}

static void truncated(void)
{
	char *p = mapped(ON_TMPFS, PROT_READ, MAP_SHARED);

	MUST(ftruncate(file.fd, 0));
	expect(p, FAULTED);
	MUST(ftruncate(file.fd, LENGTH));
	expect(p, 0);
}

static void truncated_disk(void)
{
	char *p = mapped(ON_DISK, PROT_READ, MAP_SHARED);

	MUST(ftruncate(file.fd, 0));
	expect(p, FAULTED);
}

static void punched(void)
{
	char *p = mapped(ON_TMPFS, PROT_READ, MAP_SHARED);

	MUST(fallocate(file.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
		       LENGTH));
	expect(p, 0);
}

static void punched_disk(void)
{
	char *p = mapped(ON_DISK, PROT_READ, MAP_SHARED);

	MUST(fallocate(file.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
		       LENGTH));
	expect(p, 0);
}

/* Private pages that are thrown away: the file shows through again. */
static void dontneed(void)
{
	char *p = mapped(ON_TMPFS, PROT_READ | PROT_WRITE, MAP_PRIVATE);

	ENSURE(peer_write(p, PAGES, WORD(WRITTEN)) == PAGES, "no write");
	MUST(madvise(p, LENGTH, MADV_DONTNEED));
	expect(p, WORD(OWN));
	ENSURE(probe_read(p) == WORD(OWN), "the caller reads old data");
}

static void dontneed_anon(void)
{
	char *q;

	mapped(ON_TMPFS, PROT_READ, MAP_SHARED);
	q = mmap(NULL, LENGTH, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ENSURE(q != MAP_FAILED, "mmap: %m");
	ENSURE(peer_write(q, PAGES, WORD(WRITTEN)) == PAGES, "no write");
	MUST(madvise(q, LENGTH, MADV_DONTNEED));
	expect(q, 0);
	ENSURE(!probe_read(q), "the caller reads old data");
}

/* Pages that wait in lists of a CPU are not looked at by reclaim. */
static void drain_lists(void)
{
	ENSURE(write_text("/proc/sys/vm/drop_caches", "1"), "drop_caches: %m");
}

/* What is written after MADV_FREE stays, under pressure too. */
static void freed_then_written(void)
{
	char *q;

	mapped(ON_TMPFS, PROT_READ, MAP_SHARED);
	q = mmap(NULL, LENGTH, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ENSURE(q != MAP_FAILED, "mmap: %m");
	madvise(q, LENGTH, MADV_NOHUGEPAGE);
	ENSURE(peer_write(q, PAGES, WORD(WRITTEN)) == PAGES, "no write");
	drain_lists();
	MUST(madvise(q, LENGTH, MADV_FREE));
	ENSURE(peer_write(q, PAGES, WORD(NEW)) == PAGES, "no write");
	drain_lists();
	MUST(madvise(q, LENGTH, MADV_PAGEOUT));
	expect(q, WORD(NEW));
}

static void protected_none(void)
{
	char *p = mapped(ON_TMPFS, PROT_READ, MAP_SHARED);

	MUST(mprotect(p, LENGTH, PROT_NONE));
	expect(p, FAULTED);
	MUST(mprotect(p, LENGTH, PROT_READ));
	expect(p, WORD(OWN));
}

static void protected_read_only(void)
{
	char *p = mapped(ON_TMPFS, PROT_READ | PROT_WRITE, MAP_SHARED);
	size_t writes;

	ENSURE(peer_write(p, PAGES, WORD(WRITTEN)) == PAGES, "no write");
	MUST(mprotect(p, LENGTH, PROT_READ));
	checker_forbid(p, PAGES);
	writes = peer_write(p, PAGES, WORD(NEW));
	checker_allow(p, PAGES);
	ENSURE(!writes, "%zu writes went through", writes);
	expect(p, WORD(WRITTEN));
}

/* The mapping is replaced where it is; nobody was asked for the address. */
static void mapped_over(void)
{
	char *q, *p = mapped(ON_TMPFS, PROT_READ, MAP_SHARED);

	q = mmap(p, LENGTH, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	ENSURE(q == p, "mmap: %m");
	memset(q, NEW, LENGTH);
	expect(q, WORD(NEW));
}

/* A private page is copied on the first write: the peer must see the copy. */
static void copied_on_write(void)
{
	char *p = mapped(ON_TMPFS, PROT_READ | PROT_WRITE, MAP_PRIVATE);

	memset(p, NEW, LENGTH);
	expect(p, WORD(NEW));
}

static void copied_after_fork(void)
{
	struct stranger child;
	char *p = mapped(ON_TMPFS, PROT_READ | PROT_WRITE, MAP_PRIVATE);

	memset(p, WRITTEN, LENGTH);
	peer_touch(p, PAGES);
	stranger_start(&child);
	peer_touch(p, PAGES);
	memset(p, NEW, LENGTH);
	expect(p, WORD(NEW));
	stranger_stop(&child);
}

static void remapped_pages(void)
{
	char *p = mapped(ON_TMPFS, PROT_READ, MAP_SHARED);

	file_fill(&file, 0, 1, NEW);
	/* Page 0 in place of the others. */
	if (syscall(SYS_remap_file_pages, p + PAGE, PAGE, 0, 0, 0))
		ktap_skip("no remap_file_pages");
	ENSURE(peer_count(p, 2, WORD(NEW)) == 2,
	       "the peer does not see the page that was put there");
}

/* The frames move; the peer follows, and nobody reads the old ones. */
static void migrated(void)
{
	static void *pages[PAGES];
	static int status[PAGES];
	static int nodes[PAGES];
	struct stranger stranger;
	uint64_t before[PAGES], moved = 0;
	size_t i;
	char *p;

	stranger_start(&stranger);
	p = mapped(ON_TMPFS, PROT_READ, MAP_SHARED);
	for (i = 0; i < PAGES; i++) {
		pages[i] = p + i * PAGE;
		before[i] = frame_of(pages[i]);
	}
	if (access("/sys/devices/system/node/node1", F_OK))
		ktap_skip("needs two memory nodes");
	/* Where they are now, then to the other node. */
	MUST(syscall(SYS_move_pages, 0, PAGES, pages, NULL, status, 0));
	for (i = 0; i < PAGES; i++)
		nodes[i] = status[i] ? 0 : 1;
	MUST(syscall(SYS_move_pages, 0, PAGES, pages, nodes, status,
		     4 /* MPOL_MF_MOVE_ALL */));
	for (i = 0; i < PAGES; i++) {
		probe_read(pages[i]);
		moved += frame_of(pages[i]) != before[i];
	}
	ENSURE(moved > PAGES / 2, "%llu of %d pages moved",
	       (unsigned long long)moved, PAGES);
	stranger_fill(&stranger, FILL_ANON, 32);
	expect(p, WORD(OWN));
	file_fill(&file, 0, PAGES, NEW);
	expect(p, WORD(NEW));
	stranger_stop(&stranger);
}

/* Pages that were evicted come back in other frames at the same address. */
static void paged_out(void)
{
	char *p = mapped(ON_DISK, PROT_READ, MAP_SHARED);

	MUST(madvise(p, LENGTH, MADV_PAGEOUT));
	file_fill(&file, 0, PAGES, NEW);
	expect(p, WORD(NEW));
}

/* A part of a mapping: whether it skips or not, the rest stays as it is. */
static void part_of_mapping(void)
{
	char *q, *p = mapped(ON_TMPFS, PROT_READ, MAP_SHARED);

	MUST(munmap(p + 4 * PAGE, 4 * PAGE));
	ENSURE(peer_count(p, 4, WORD(OWN)) == 4, "pages before are gone");
	ENSURE(peer_count(p + 8 * PAGE, 8, WORD(OWN)) == 8,
	       "pages behind are gone");
	q = mmap(p + 4 * PAGE, 4 * PAGE, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	ENSURE(q == p + 4 * PAGE, "mmap: %m");
	memset(q, NEW, 4 * PAGE);
	ENSURE(peer_count(q, 4, WORD(NEW)) == 4,
	       "the peer reads the unmapped part of the file");
}

int main(int argc, char **argv)
{
	static const struct ktap_case cases[] = {
		{ "truncated", truncated, 0 },
		{ "truncated_disk", truncated_disk, 0 },
		{ "punched", punched, 0 },
		{ "punched_disk", punched_disk, 0 },
		{ "dontneed", dontneed, 0 },
		{ "dontneed_anon", dontneed_anon, 0 },
		{ "freed_then_written", freed_then_written, 0 },
		{ "protected_none", protected_none, 0 },
		{ "protected_read_only", protected_read_only, 0 },
		{ "mapped_over", mapped_over, 0 },
		{ "copied_on_write", copied_on_write, 0 },
		{ "copied_after_fork", copied_after_fork, 0 },
		{ "remapped_pages", remapped_pages, 0 },
		{ "migrated", migrated, 0 },
		{ "paged_out", paged_out, 0 },
		{ "part_of_mapping", part_of_mapping, 0 },
	};

	return ktap_main(argc, argv, cases, KTAP_COUNT(cases));
}
