// SPDX-License-Identifier: GPL-2.0
/*
 * Files of the fuzzer, and operations that go through a file or through its
 * page cache instead of through a mapping.
 *
 * Those that are read only are made once, and the same for all. The area is
 * written by all threads of a run, but no thread looks at the words of others.
 * Only what belongs to one thread alone changes its size, loses pages, or is
 * the target of a write. Sizes are full pages: what a mapping writes behind the
 * end of a file may be there when the file grows, or not.
 *
 * Called by all threads; what makes files only before there are threads.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "env.h"
#include "file.h"
#include "fpr_fuzz.h"
#include "group.h"
#include "ktap.h"

#define WORDS		(PAGE / sizeof(uint64_t))
#define READ_PAGES	(FUZZ_PAGES + 64)
#define AREA_PAGES	64
/* A file of a thread gets no longer. */
#define MOST_PAGES	(FUZZ_OWN_PAGES + 32)
/* What reclaim is asked for. */
#define RECLAIM		(64 * PAGE)

/* What threads have in common; the rest is -1. */
static int common[FUZZ_BACKINGS];

static int read_only(enum place place, uint64_t seed)
{
	static uint64_t page[WORDS];
	struct tfile f;
	char path[64];
	size_t i, n;
	int fd;

	file_make(&f, place, READ_PAGES, 0);
	for (n = 0; n < READ_PAGES; n++) {
		for (i = 0; i < WORDS; i++)
			page[i] = fuzz_mix(seed, n * WORDS + i);
		MUST(pwrite(f.fd, page, PAGE, (off_t)(n * PAGE)));
	}
	MUST(fsync(f.fd));
	snprintf(path, sizeof(path), "/proc/self/fd/%d", f.fd);
	fd = (int)MUST(open(path, O_RDONLY | O_CLOEXEC));
	file_close(&f);
	return fd;
}

/* The files that nobody writes to. */
void fuzz_shared_files(void)
{
	memset(common, -1, sizeof(common));
	common[FUZZ_READ_DISK] = read_only(ON_DISK, 1);
	common[FUZZ_READ_MEMORY] = read_only(ON_TMPFS, 2);
}

/* The file that all threads of a run write to. */
void fuzz_area(void)
{
	struct tfile f;

	file_make(&f, ON_DISK, AREA_PAGES, 0);
	common[FUZZ_AREA] = f.fd;
}

void fuzz_own_files(struct fuzz_thread *t)
{
	unsigned char byte = (unsigned char)(t->number + 1);
	struct tfile f;

	memcpy(t->fd, common, sizeof(common));
	file_make(&f, ON_DISK, FUZZ_OWN_PAGES, byte);
	t->fd[FUZZ_OWN_DISK] = f.fd;
	file_make(&f, ON_TMPFS, FUZZ_OWN_PAGES, byte);
	t->fd[FUZZ_OWN_MEMORY] = f.fd;
}

/* Offsets of mappings are below. */
size_t fuzz_file_pages(enum fuzz_backing backing)
{
	switch (backing) {
	case FUZZ_READ_DISK:
	case FUZZ_READ_MEMORY:
		return READ_PAGES;
	case FUZZ_AREA:
		return AREA_PAGES;
	default:
		return FUZZ_OWN_PAGES;
	}
}

static uint64_t sum_file(int fd, uint64_t sum)
{
	uint64_t page[WORDS];
	struct stat st;
	off_t at;
	size_t i;

	MUST(fstat(fd, &st));
	for (at = 0; at < st.st_size; at += (off_t)PAGE) {
		ENSURE(pread(fd, page, PAGE, at) == (ssize_t)PAGE,
		       "a file of %lld bytes ends at %lld: %m",
		       (long long)st.st_size, (long long)at);
		for (i = 0; i < WORDS; i++)
			sum = fuzz_mix(sum, page[i]);
	}
	return fuzz_mix(sum, (uint64_t)st.st_size);
}

/* A sum of what the thread has in files. */
uint64_t fuzz_sum_files(const struct fuzz_thread *t)
{
	size_t i, at = (size_t)t->number * FUZZ_AREA_STRIDE;
	uint64_t word, sum;

	sum = sum_file(t->fd[FUZZ_OWN_DISK], 0);
	sum = sum_file(t->fd[FUZZ_OWN_MEMORY], sum);
	for (i = 0; i < AREA_PAGES; i++) {
		MUST(pread(t->fd[FUZZ_AREA], &word, sizeof(word),
			   (off_t)(i * PAGE + at)));
		sum = fuzz_mix(sum, word);
	}
	return sum;
}

static enum fuzz_backing pick_own(struct fuzz_thread *t)
{
	return fuzz_pick(t, 2) ? FUZZ_OWN_DISK : FUZZ_OWN_MEMORY;
}

static void result(struct fuzz_record *record, ssize_t n)
{
	record->error = n < 0 ? errno : 0;
	record->value = (uint64_t)n;
}

/* A read into memory. */
void fuzz_pread(struct fuzz_thread *t, struct fuzz_range *r,
		struct fuzz_record *record)
{
	static const enum fuzz_backing from[] = {
		FUZZ_READ_DISK, FUZZ_READ_MEMORY, FUZZ_OWN_DISK,
		FUZZ_OWN_MEMORY,
	};
	char *to = fuzz_word(t, r, 0, 0);
	size_t length = sizeof(uint64_t);

	record->backing = from[fuzz_pick(t, KTAP_COUNT(from))];
	record->argument = fuzz_pick(t, FUZZ_OWN_PAGES);
	fuzz_no_area(r);
	if (r->pages)
		length = r->pages * PAGE;
	result(record, pread(t->fd[record->backing], to, length,
			     (off_t)(record->argument * PAGE)));
}

/* A write out of memory. */
void fuzz_pwrite(struct fuzz_thread *t, struct fuzz_range *r,
		 struct fuzz_record *record)
{
	fuzz_no_area(r);
	record->backing = pick_own(t);
	record->argument = fuzz_pick(t, MOST_PAGES - r->pages);
	result(record, pwrite(t->fd[record->backing], r->addr, r->pages * PAGE,
			      (off_t)(record->argument * PAGE)));
}

void fuzz_truncate(struct fuzz_thread *t, struct fuzz_range *r,
		   struct fuzz_record *record)
{
	(void)r;
	record->backing = pick_own(t);
	record->argument = fuzz_pick(t, MOST_PAGES);
	result(record, ftruncate(t->fd[record->backing],
				 (off_t)(record->argument * PAGE)));
}

void fuzz_punch(struct fuzz_thread *t, struct fuzz_range *r,
		struct fuzz_record *record)
{
	(void)r;
	record->backing = pick_own(t);
	record->argument = fuzz_pick(t, FUZZ_OWN_PAGES);
	result(record, fallocate(t->fd[record->backing],
				 FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
				 (off_t)(record->argument * PAGE),
				 (off_t)((1 + fuzz_pick(t, 16)) * PAGE)));
}

/* Clean pages that nobody maps leave the page cache. */
void fuzz_fadvise(struct fuzz_thread *t, struct fuzz_range *r,
		  struct fuzz_record *record)
{
	(void)r;
	record->backing = (uint32_t)(1 + fuzz_pick(t, FUZZ_OWN_MEMORY));
	if (fuzz_pick(t, 2))
		MUST(fdatasync(t->fd[record->backing]));
	record->error = posix_fadvise(t->fd[record->backing], 0, 0,
				      POSIX_FADV_DONTNEED);
}

void fuzz_drop_caches(struct fuzz_thread *t, struct fuzz_range *r,
		      struct fuzz_record *record)
{
	(void)t;
	(void)r;
	record->error = write_text("/proc/sys/vm/drop_caches", "1") ? 0 : errno;
}

/* As reclaim does when it looks what is in use. */
void fuzz_clear_refs(struct fuzz_thread *t, struct fuzz_range *r,
		     struct fuzz_record *record)
{
	(void)t;
	(void)r;
	record->error = write_text("/proc/self/clear_refs", "1") ? 0 : errno;
}

/* The group is not made for threads, so one only. */
void fuzz_reclaim(struct fuzz_thread *t, struct fuzz_range *r,
		  struct fuzz_record *record)
{
	(void)r;
	(void)record;
	if (!t->number)
		group_reclaim(RECLAIM);
}
