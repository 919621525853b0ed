// SPDX-License-Identifier: GPL-2.0
/*
 * I2: a stale translation never has a right that its process does not have on
 * what the frame is now. A writable one could write to a file that is sealed,
 * read-only or another one; a translation of an anonymous page could show what
 * a child wrote later.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
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
#define EVIL		0x77

/* Pages of the file that begin with @byte. */
static size_t file_count(const struct tfile *f, unsigned char byte)
{
	size_t i, count = 0;
	uint64_t word;

	for (i = 0; i < f->pages; i++) {
		MUST(pread(f->fd, &word, sizeof(word), (off_t)(i * PAGE)));
		count += word == WORD(byte);
	}
	return count;
}

/*
 * A shared mapping that the peer has written to, taken away. Whether the
 * munmap flushed is left to the kernel: the attack below tells.
 */
static char *dirty_then_gone(const struct tfile *f)
{
	char *p;

	peer_start(1);
	hold_debts();
	p = fpr_map(f, 0, PAGES, PROT_READ | PROT_WRITE, MAP_SHARED);
	ENSURE(peer_write(p, PAGES, WORD(WRITTEN)) == PAGES,
	       "the peer cannot write to the mapping");
	MUST(munmap(p, LENGTH));
	return p;
}

static void no_write_through(const struct tfile *f, char *p,
			     unsigned char byte)
{
	size_t writes, evil;

	checker_forbid(p, PAGES);
	writes = peer_write(p, PAGES, WORD(EVIL));
	evil = file_count(f, EVIL);
	ENSURE(!evil, "%zu pages of the file were written through stale translations",
	       evil);
	ENSURE(!writes, "%zu of %d writes to unmapped addresses went through",
	       writes, PAGES);
	ENSURE(file_count(f, byte) == f->pages, "the file changed");
}

static void dirty_write(void)
{
	struct tfile f;
	char *p;

	file_make(&f, ON_TMPFS, PAGES, OWN);
	p = dirty_then_gone(&f);
	no_write_through(&f, p, WRITTEN);
}

static void dirty_write_disk(void)
{
	struct tfile f;
	char *p;

	file_make(&f, ON_DISK, PAGES, OWN);
	p = dirty_then_gone(&f);
	no_write_through(&f, p, WRITTEN);
}

/* The seal promises that nobody can change the file any more. */
static void sealed(void)
{
	struct tfile f;
	char *p;

	file_make(&f, ON_TMPFS, PAGES, OWN);
	p = dirty_then_gone(&f);
	MUST(fcntl(f.fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK));
	no_write_through(&f, p, WRITTEN);
}

/*
 * The frame of a dirty page comes back as page cache of a file that the
 * process may only read.
 */
static void dirty_recycled(void)
{
	struct tfile f, readonly;
	size_t evil;
	char *p, *q;

	file_make(&f, ON_DISK, PAGES, OWN);
	file_make(&readonly, ON_DISK, PAGES, OWN);
	p = dirty_then_gone(&f);
	file_drop(&readonly);
	file_drop(&f);
	q = fpr_map(&readonly, 0, PAGES, PROT_READ, MAP_SHARED);
	ENSURE(probe_read(q) == WORD(OWN), "the file is not readable");
	checker_forbid(p, PAGES);
	peer_write(p, PAGES, WORD(EVIL));
	evil = file_count(&readonly, EVIL);
	ENSURE(!evil, "%zu pages of a read-only file were written", evil);
}

/*
 * A writable translation that never wrote may stay, because the processor
 * looks at the page table again before the first write.
 */
static void clean_writable(void)
{
	struct tfile f;
	char *p;

	file_make(&f, ON_TMPFS, PAGES, OWN);
	peer_start(1);
	hold_debts();
	p = leave_stale(&f, 0, PAGES, PROT_READ | PROT_WRITE, MAP_SHARED, OWN);
	no_write_through(&f, p, OWN);
}

/* The first thread wrote, the peer only read: dirty all the same. */
static void dirty_by_other(void)
{
	struct tfile f;
	char *p;

	file_make(&f, ON_TMPFS, PAGES, OWN);
	peer_start(1);
	hold_debts();
	p = fpr_map(&f, 0, PAGES, PROT_READ | PROT_WRITE, MAP_SHARED);
	memset(p, WRITTEN, LENGTH);
	peer_touch(p, PAGES);
	fpr_unmap_flushes(p, PAGES);
	ENSURE(peer_count(p, PAGES, FAULTED) == PAGES,
	       "the peer reads through translations of dirty pages");
	ENSURE(file_count(&f, WRITTEN) == PAGES, "written data is lost");
}

static char *anon_at;

static long write_in_place(long byte)
{
	size_t i;

	for (i = 0; i < PAGES; i++)
		*(uint64_t *)(anon_at + i * PAGE) = WORD(byte);
	return 0;
}

/*
 * After a fork an anonymous page belongs to two processes. The parent unmaps
 * it, the child writes to it in place; the parent must not see that.
 */
static void anon_shared(void)
{
	struct stranger child;
	struct tfile f;
	size_t secrets;

	file_make(&f, ON_TMPFS, PAGES, OWN);
	peer_start(1);
	hold_debts();
	anon_at = fpr_map(&f, 0, PAGES, PROT_READ | PROT_WRITE, MAP_PRIVATE);
	memset(anon_at, WRITTEN, LENGTH);
	/* Here the other process has to have the mapping. */
	stranger_start(&child);
	peer_touch(anon_at, PAGES);
	MUST(munmap(anon_at, LENGTH));
	checker_forbid(anon_at, PAGES);
	stranger_call(&child, write_in_place, SECRET);
	secrets = peer_count(anon_at, PAGES, WORD(SECRET));
	ENSURE(!secrets, "%zu of %d pages show what the child wrote", secrets,
	       PAGES);
	ENSURE(peer_count(anon_at, PAGES, FAULTED) == PAGES,
	       "the peer reads anonymous pages after their munmap");
	stranger_stop(&child);
}

/* A page of code: mov $value, %eax; ret. */
static void make_code(struct tfile *f, unsigned char value)
{
	const unsigned char code[] = { 0xb8, value, 0, 0, 0, 0xc3 };
	size_t i;

	file_make(f, ON_DISK, PAGES, 0);
	for (i = 0; i < PAGES; i++)
		MUST(pwrite(f->fd, code, sizeof(code), (off_t)(i * PAGE)));
	/* Clean, so that it can be dropped. */
	MUST(fsync(f->fd));
}

static size_t calls_that_return(const char *p, uint64_t value)
{
	uint64_t results[PAGES];
	size_t i, count = 0;

	peer_call(p, PAGES, results);
	for (i = 0; i < PAGES; i++)
		count += results[i] == value;
	return count;
}

/*
 * The right to execute one file is not the right to execute another one, whose
 * pages come to be where the first one's were.
 */
static void code_recycled(void)
{
	struct tfile code, other;
	size_t left = 0, run;
	char *p, *q;
	int tries;

	make_code(&code, 1);
	make_code(&other, 2);
	file_drop(&other);
	peer_start(1);
	hold_debts();
	for (tries = 0; tries < 10 && left < PAGES * 7 / 8; tries++) {
		p = mmap(NULL, LENGTH, PROT_READ | PROT_EXEC,
			 MAP_SHARED | MAP_FPR, code.fd, 0);
		ENSURE(p != MAP_FAILED, "mmap: %m");
		ENSURE(calls_that_return(p, 1) == PAGES, "the code does not run");
		MUST(munmap(p, LENGTH));
		left = calls_that_return(p, 1);
		/* Time for the kernel to make room for tags. */
		sleep_ms(5);
	}
	checker_forbid(p, PAGES);
	file_drop(&code);
	q = fpr_map(&other, 0, PAGES, PROT_READ, MAP_SHARED);
	peer_touch(q, PAGES);
	run = calls_that_return(p, 2);
	ENSURE(!run, "%zu of %d pages of a file that is not executable were executed",
	       run, PAGES);
	ENSURE(!left, "%zu of %d pages were executed after their munmap", left,
	       PAGES);
}

/* Executable only later: the same. */
static void code_later(void)
{
	struct tfile code;
	size_t left;
	long skips;
	char *p;

	make_code(&code, 1);
	peer_start(1);
	hold_debts();
	p = fpr_map(&code, 0, PAGES, PROT_READ, MAP_SHARED);
	MUST(mprotect(p, LENGTH, PROT_READ | PROT_EXEC));
	ENSURE(calls_that_return(p, 1) == PAGES, "the code does not run");
	skips = vmstat("fpr_skip");
	MUST(munmap(p, LENGTH));
	checker_forbid(p, PAGES);
	left = calls_that_return(p, FAULTED);
	ENSURE(left == PAGES, "%zu of %d pages were executed after their munmap",
	       PAGES - left, PAGES);
	ENSURE(vmstat("fpr_skip") == skips, "the munmap skipped its flush");
}

int main(int argc, char **argv)
{
	static const struct ktap_case cases[] = {
		{ "dirty_write", dirty_write, 0 },
		{ "dirty_write_disk", dirty_write_disk, 0 },
		{ "sealed", sealed, 0 },
		{ "dirty_recycled", dirty_recycled, 0 },
		{ "clean_writable", clean_writable, 0 },
		{ "dirty_by_other", dirty_by_other, 0 },
		{ "anon_shared", anon_shared, 0 },
		{ "code_recycled", code_recycled, 0 },
		{ "code_later", code_later, 0 },
	};

	return ktap_main(argc, argv, cases, KTAP_COUNT(cases));
}
