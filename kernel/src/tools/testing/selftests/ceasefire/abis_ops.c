// SPDX-License-Identifier: GPL-2.0
/*
 * Attacks on single entries that are changed without a flush, and on other rights
 * (I11): copy on write, mprotect(), msync(), migration, reclaim. Each in three
 * states: the peer has just used the page, its accessed bit was cleared since,
 * and a full flush has come since.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/mempolicy.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "abis.h"
#include "context.h"
#include "env.h"
#include "file.h"
#include "group.h"
#include "ktap.h"
#include "map.h"
#include "peer.h"
#include "regions.h"
#include "userfault.h"
#include "worker.h"

#define PAGES		16
#define LENGTH		(PAGES * PAGE)
#define OWN		0x5a
#define NEW		0x42
#define OTHER		0x77
#define OTHERS		(16 * MIB)
#define ROUNDS		20
#define COPIES		3

/* What a settled page costs: nobody is asked. */
static void check_flushes(enum abis_state state, struct abis_flushes before)
{
	struct abis_flushes got = abis_flushes_since(before);

	if (state != SETTLED)
		return;
	ENSURE(got.uncached >= PAGES && got.none,
	       "%ld of %d entries in no TLB, %ld flushes fell away; %ld used, %ld stale, %ld pending, %ld untracked, %ld others",
	       got.uncached, PAGES, got.none, got.young, got.stale, got.pending,
	       got.untracked, got.other);
	/* Other programs have some, too. */
	PREMISE(!got.received, "%ld shootdowns", got.received);
}

static char *mapped_file(const struct tfile *f, int prot, int flags)
{
	char *p = mmap(regions(1), LENGTH, prot, flags | MAP_FIXED, f->fd, 0);

	ENSURE(p != MAP_FAILED, "mmap: %m");
	return p;
}

/* A page of a file gives way to a copy. */
static void copied(enum abis_state state)
{
	struct abis_flushes got;
	struct tfile file;
	size_t i;
	char *p;

	file_make(&file, ON_TMPFS, PAGES, OWN);
	abis_start();
	p = mapped_file(&file, PROT_READ | PROT_WRITE, MAP_PRIVATE);
	ENSURE(peer_count(p, PAGES, WORD(OWN)) == PAGES, "wrong data");
	abis_bring_to(state);
	got = abis_flushes();
	for (i = 0; i < PAGES; i++)
		*(volatile uint64_t *)(p + i * PAGE) = WORD(NEW);
	check_flushes(state, got);
	peer_finds(p, PAGES, WORD(NEW));
}

static void copied_used(void)
{
	copied(USED);
}

static void copied_cleared(void)
{
	copied(CLEARED);
}

static void copied_settled(void)
{
	copied(SETTLED);
}

static void protected(enum abis_state state)
{
	struct abis_flushes got;
	char *p;

	abis_start();
	p = abis_written(PAGES, WORD(OWN));
	abis_bring_to(state);
	got = abis_flushes();
	MUST(mprotect(p, LENGTH, PROT_READ));
	check_flushes(state, got);
	peer_cannot_write(p, PAGES, WORD(NEW));
	peer_finds(p, PAGES, WORD(OWN));
}

static void protected_used(void)
{
	protected(USED);
}

static void protected_cleared(void)
{
	protected(CLEARED);
}

static void protected_settled(void)
{
	protected(SETTLED);
}

/* Programs use it as a barrier for all CPUs: nobody is left out. */
static void protected_locked(void)
{
	struct abis_flushes got;
	char *p;

	abis_start();
	p = abis_written(PAGES, WORD(OWN));
	MUST(mlock(p, LENGTH));
	abis_settle();
	got = abis_flushes();
	MUST(mprotect(p, LENGTH, PROT_READ));
	got = abis_flushes_since(got);
	ENSURE(!got.none && !got.some, "%ld flushes fell away", got.none);
	PREMISE(got.received || got.all > 1,
		"nobody was interrupted: the peer did not run");
}

/*
 * msync() makes pages clean: whoever writes then sets the dirty bit again, or the write
 * is lost.
 */
static void cleaned(enum abis_state state)
{
	struct abis_flushes got;
	struct tfile file;
	long made;
	size_t i;
	char *p;

	file_make(&file, ON_DISK, PAGES, OTHER);
	MUST(fdatasync(file.fd));
	abis_start();
	p = mapped_file(&file, PROT_READ | PROT_WRITE, MAP_SHARED);
	ENSURE(peer_write(p, PAGES, WORD(OWN)) == PAGES, "no write");
	abis_bring_to(state);
	made = vmstat("abis_cleaned");
	got = abis_flushes();
	MUST(msync(p, LENGTH, MS_SYNC));
	check_flushes(state, got);
	made = vmstat("abis_cleaned") - made;
	if (state == USED)
		ENSURE(made == PAGES, "%ld of %d entries have lost their bit",
		       made, PAGES);
	ENSURE(peer_write(p, PAGES, WORD(NEW)) == PAGES, "no write");
	MUST(msync(p, LENGTH, MS_SYNC));
	MUST(munmap(p, LENGTH));
	MUST(posix_fadvise(file.fd, 0, 0, POSIX_FADV_DONTNEED));
	PREMISE(!file_cached(&file), "the file stays in the page cache");
	for (i = 0; i < PAGES; i++) {
		uint64_t word = 0;

		MUST(pread(file.fd, &word, sizeof(word), (off_t)(i * PAGE)));
		ENSURE(word == WORD(NEW), "page %zu was not written: %llx", i,
		       (unsigned long long)word);
	}
}

static void cleaned_used(void)
{
	cleaned(USED);
}

static void cleaned_cleared(void)
{
	cleaned(CLEARED);
}

static void cleaned_settled(void)
{
	cleaned(SETTLED);
}

/* A flush has been sent for them just now: the munmap() that follows needs none. */
static void cleaned_then_unmapped(void)
{
	struct abis_flushes got;
	struct tfile file;
	char *p;

	file_make(&file, ON_DISK, PAGES, OTHER);
	MUST(fdatasync(file.fd));
	abis_start();
	p = mapped_file(&file, PROT_READ | PROT_WRITE, MAP_SHARED);
	ENSURE(peer_write(p, PAGES, WORD(OWN)) == PAGES, "no write");
	MUST(msync(p, LENGTH, MS_SYNC));
	got = abis_flushes();
	MUST(madvise(p, LENGTH, MADV_DONTNEED));
	check_flushes(SETTLED, got);
	/* And if somebody has used them again, it does. */
	ENSURE(peer_count(p, PAGES, WORD(OWN)) == PAGES, "wrong data");
	ENSURE(mmap(p, LENGTH, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == p,
	       "mmap: %m");
	peer_finds(p, PAGES, 0);
}

static size_t move_to(char *p, int node)
{
	int i, nodes[PAGES], status[PAGES];
	void *pages[PAGES];
	size_t count = 0;

	for (i = 0; i < PAGES; i++) {
		pages[i] = p + i * PAGE;
		nodes[i] = node;
	}
	MUST(syscall(SYS_move_pages, 0, PAGES, pages, nodes, status,
		     MPOL_MF_MOVE));
	for (i = 0; i < PAGES; i++)
		count += status[i] == node;
	return count;
}

static void migrated(enum abis_state state)
{
	struct abis_flushes got;
	size_t count;
	char *p;

	if (access("/sys/devices/system/node/node1", F_OK))
		ktap_skip("needs two nodes");
	abis_start();
	p = abis_written(PAGES, WORD(OWN));
	MUST(move_to(p, 0));
	ENSURE(peer_write(p, PAGES, WORD(OWN)) == PAGES, "no write");
	abis_bring_to(state);
	got = abis_flushes();
	count = move_to(p, 1);
	PREMISE(count == PAGES, "%zu of %d pages moved", count, PAGES);
	check_flushes(state, got);
	memset(p, NEW, LENGTH);
	peer_finds(p, PAGES, WORD(NEW));
}

static void migrated_used(void)
{
	migrated(USED);
}

static void migrated_cleared(void)
{
	migrated(CLEARED);
}

static void migrated_settled(void)
{
	migrated(SETTLED);
}

/* Pages that have moved, and that nobody has used since, move again without a flush. */
static void migrated_again(bool used)
{
	struct abis_flushes got;
	size_t count;
	char *p;

	if (access("/sys/devices/system/node/node1", F_OK))
		ktap_skip("needs two nodes");
	abis_start();
	p = abis_written(PAGES, WORD(OWN));
	MUST(move_to(p, 0));
	count = move_to(p, 1);
	PREMISE(count == PAGES, "%zu of %d pages moved", count, PAGES);
	if (used)
		ENSURE(peer_write(p, PAGES, WORD(OWN)) == PAGES, "no write");
	got = abis_flushes();
	count = move_to(p, 0);
	PREMISE(count == PAGES, "%zu of %d pages moved", count, PAGES);
	check_flushes(used ? USED : SETTLED, got);
	memset(p, NEW, LENGTH);
	peer_finds(p, PAGES, WORD(NEW));
}

static void migrated_twice(void)
{
	migrated_again(false);
}

static void migrated_twice_used(void)
{
	migrated_again(true);
}

/* Reclaim takes pages of a file, and others come in their place. */
static void reclaimed(enum abis_state state)
{
	struct abis_flushes got;
	struct tfile file;
	char *p, *other;

	file_make(&file, ON_DISK, PAGES, OWN);
	MUST(fdatasync(file.fd));
	abis_start();
	p = mapped_file(&file, PROT_READ, MAP_SHARED);
	ENSURE(peer_count(p, PAGES, WORD(OWN)) == PAGES, "wrong data");
	abis_bring_to(state);
	got = abis_flushes();
	MUST(madvise(p, LENGTH, MADV_PAGEOUT));
	got = abis_flushes_since(got);
	PREMISE(!file_cached(&file), "pages of the file stay");
	if (state == SETTLED)
		ENSURE(got.uncached >= PAGES, "%ld of %d entries in no TLB",
		       got.uncached, PAGES);
	/* The frames get another use before the file comes back. */
	other = mmap(NULL, OTHERS, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ENSURE(other != MAP_FAILED, "mmap: %m");
	memset(other, OTHER, OTHERS);
	file_fill(&file, 0, PAGES, NEW);
	peer_finds(p, PAGES, WORD(NEW));
}

static void reclaimed_used(void)
{
	reclaimed(USED);
}

static void reclaimed_cleared(void)
{
	reclaimed(CLEARED);
}

static void reclaimed_settled(void)
{
	reclaimed(SETTLED);
}

static struct worker reclaimer;

static void reclaim(void *unused)
{
	(void)unused;
	group_reclaim(LENGTH);
}

/* Wait until two pages have no entry any more; the second one is to be touched. */
static bool two_gone(const char *p, size_t *first, size_t *second)
{
	double end = seconds() + 10;
	uint64_t frames[PAGES];
	size_t i, count;

	do {
		sleep_ms(10);
		count = 0;
		frames_of(p, PAGES, frames);
		for (i = 0; i < PAGES && count < 2; i++)
			if (!frames[i])
				*(count++ ? second : first) = i;
	} while (count < 2 && seconds() < end);
	return count == 2;
}

/*
 * Reclaim has cleared entries, and is to flush for them later. Fault-around makes one
 * of them again, since somebody holds on to the page; and its page gives way to a
 * copy before that flush has come. Return whether it came to that.
 */
static bool copied_before_flush(char *p)
{
	size_t first, second, found;

	MUST(madvise(p, LENGTH, MADV_DONTNEED));
	ENSURE(peer_count(p, PAGES, WORD(OWN)) == PAGES, "wrong data");
	fpr_skip_delay(300);
	worker_begin(&reclaimer, reclaim, NULL);
	if (!two_gone(p, &first, &second))
		return false;
	ENSURE(p[second * PAGE] == OWN, "wrong data");
	if (!frame_of(p + first * PAGE))
		return false;
	*(volatile uint64_t *)(p + first * PAGE) = WORD(NEW);
	found = peer_count(p + first * PAGE, 1, WORD(NEW));
	/* Reclaim goes on until it is done, also when this process ends here. */
	fpr_skip_delay(0);
	ENSURE(found, "the peer does not find the copy");
	return true;
}

/* Several times, as the peer may have to do something else, and flushes then. */
static void copied_beside_reclaim(void)
{
	int tries, done, hold[2];
	struct tfile file;
	off_t from = 0;
	char *p;

	need_cpus(3);
	group_start();
	file_make(&file, ON_DISK, PAGES, OWN);
	MUST(fdatasync(file.fd));
	group_leave();
	abis_start();
	worker_start(&reclaimer, 2, NULL);
	MUST(pipe(hold));
	ENSURE(MUST(splice(file.fd, &from, hold[1], NULL, LENGTH, 0)) ==
	       LENGTH, "the pages are not held");
	p = mapped_file(&file, PROT_READ | PROT_WRITE, MAP_PRIVATE);
	for (tries = done = 0; tries < ROUNDS && done < COPIES; tries++) {
		done += copied_before_flush(p);
		fpr_skip_delay(0);
		worker_end(&reclaimer);
	}
	PREMISE(done == COPIES, "%d copies before a flush", done);
}

static struct worker writer;

static void write_new(void *p)
{
	*(volatile uint64_t *)p = WORD(NEW);
}

#define REWRITE_MS	300

/*
 * An entry is read, changed and written, and the peer uses it for the first time in
 * between. Then its page gives way to a copy.
 */
static void copied_while_rewritten(void)
{
	struct tfile file;
	size_t i, met = 0;
	char *p, *q;

	need_cpus(3);
	file_make(&file, ON_TMPFS, PAGES, OWN);
	abis_start();
	worker_start(&writer, 2, NULL);
	p = mapped_file(&file, PROT_READ | PROT_WRITE, MAP_PRIVATE);
	ENSURE(peer_count(p, PAGES, WORD(OWN)) == PAGES, "wrong data");
	protect_async(p, LENGTH);
	abis_settle();
	fpr_rewrite_delay(REWRITE_MS);
	for (i = 0; i < PAGES; i++) {
		q = p + i * PAGE;
		worker_begin(&writer, write_new, q);
		sleep_ms(REWRITE_MS / 3);
		met += peer_count(q, 1, WORD(OWN));
		worker_end(&writer);
		peer_finds(q, 1, WORD(NEW));
	}
	fpr_rewrite_delay(0);
	PREMISE(met >= PAGES / 2, "the peer has read %zu pages in between", met);
}

/* A device mirrors the page tables, and sets no accessed bit. */
static void secondary_mmu(void)
{
	struct abis_flushes got;
	char *p;
	int fd;

	abis_start();
	p = abis_written(PAGES, WORD(OWN));
	fd = open("/dev/hmm_dmirror0", O_RDWR | O_CLOEXEC);
	if (fd < 0)
		ktap_skip("no /dev/hmm_dmirror0: boot the debug kernel");
	abis_settle();
	got = abis_flushes();
	MUST(madvise(p, LENGTH, MADV_DONTNEED));
	got = abis_flushes_since(got);
	ENSURE(!got.none && !got.uncached,
	       "%ld flushes fell away behind a device's back", got.none);
	close(fd);
}

/* A processor that promises nothing about its accessed bits. */
static void unproven(void)
{
	struct abis_flushes got;
	char *p;

	abis_start();
	p = abis_written(PAGES, WORD(OWN));
	abis_settle();
	fpr_set("evict", 0);
	got = abis_flushes();
	MUST(madvise(p, LENGTH, MADV_DONTNEED));
	got = abis_flushes_since(got);
	ENSURE(!got.none && !got.uncached,
	       "%ld flushes fell away by bits that mean nothing", got.none);
}

int main(int argc, char **argv)
{
	static const struct ktap_case cases[] = {
		{ "copied_used", copied_used, 0 },
		{ "copied_cleared", copied_cleared, 0 },
		{ "copied_settled", copied_settled, 0 },
		{ "protected_used", protected_used, 0 },
		{ "protected_cleared", protected_cleared, 0 },
		{ "protected_settled", protected_settled, 0 },
		{ "protected_locked", protected_locked, 0 },
		{ "cleaned_used", cleaned_used, 0 },
		{ "cleaned_cleared", cleaned_cleared, 0 },
		{ "cleaned_settled", cleaned_settled, 0 },
		{ "cleaned_then_unmapped", cleaned_then_unmapped, 0 },
		{ "migrated_used", migrated_used, 0 },
		{ "migrated_cleared", migrated_cleared, 0 },
		{ "migrated_settled", migrated_settled, 0 },
		{ "migrated_twice", migrated_twice, 0 },
		{ "migrated_twice_used", migrated_twice_used, 0 },
		{ "reclaimed_used", reclaimed_used, 0 },
		{ "reclaimed_cleared", reclaimed_cleared, 0 },
		{ "reclaimed_settled", reclaimed_settled, 0 },
		{ "copied_beside_reclaim", copied_beside_reclaim, 0 },
		{ "copied_while_rewritten", copied_while_rewritten, 0 },
		{ "secondary_mmu", secondary_mmu, 0 },
		{ "unproven", unproven, 0 },
	};

	return ktap_main(argc, argv, cases, KTAP_COUNT(cases));
}
