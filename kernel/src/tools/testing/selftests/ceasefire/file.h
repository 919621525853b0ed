/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Files under test: unlinked as soon as they are open, every page made of one
 * byte value, and no page dirty in a mapping under test.
 */
#ifndef CEASEFIRE_SELFTEST_FILE_H
#define CEASEFIRE_SELFTEST_FILE_H

#include <stdbool.h>
#include <stddef.h>

enum place {
	ON_TMPFS,	/* a memfd */
	ON_DISK,	/* below CEASEFIRE_TEST_DIR: a disk file system */
	ON_LARGE,	/* a memfd made of 64 KiB folios */
	ON_HUGE,	/* a tmpfs with 2 MiB folios, mounted by the case */
};

struct tfile {
	int fd;
	enum place place;
	size_t pages;
};

/* Make a file; skips the case when there is no such place. */
void file_make(struct tfile *f, enum place where, size_t pages,
	       unsigned char byte);
/* Fill the pages with another byte; those ON_LARGE all of them only. */
void file_fill(const struct tfile *f, size_t first, size_t pages,
	       unsigned char byte);
/* Take the file's pages out of the page cache, by truncation if need be. */
void file_drop(const struct tfile *f);
/* The pages of the file that are cached. */
size_t file_cached(const struct tfile *f);
bool file_page_cached(const struct tfile *f, size_t page);
void file_close(struct tfile *f);

/* Make a file or a disk a swap area, as mkswap does. */
void swap_format(int fd);
/* Swap to a new file of so many pages, whose name goes to @path; skips where that cannot be. */
void swap_on(char *path, size_t size, size_t pages);
void swap_off(const char *path);

#endif
