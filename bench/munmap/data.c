// SPDX-License-Identifier: GPL-2.0-only
/*
 * data.c - make or open the files that are mapped, and fill the page cache
 *
 * What: each page begins with page_word(), so that the benchmark also notices
 *       wrong data. Files that it makes are removed at once and live as long
 *       as their descriptors: nothing is left behind, however it ends. With
 *       shared-write the second word is the version that was written last.
 * Who:  main.c.
 */
#include "data.h"

#include "../common/util.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <linux/fs.h>

#define PAGE 4096

static uint64_t bytes_needed(const struct options *options)
{
	return (uint64_t)options->offsets * options->pages * PAGE;
}

static void write_pattern(int fd, const char *name, unsigned int file,
			  uint64_t bytes)
{
	char page[PAGE] = { 0 };

	for (uint64_t at = 0; at < bytes; at += PAGE) {
		uint64_t word = page_word(file, at / PAGE);

		memcpy(page, &word, sizeof(word));
		if (pwrite(fd, page, PAGE, (off_t)at) != PAGE)
			die_errno("cannot write to %s", name);
	}
	/* Clean pages: nothing to write back while it runs. */
	if (fsync(fd))
		die_errno("cannot sync %s", name);
}

/* Reads all of it into the page cache. Returns whether the pattern is there. */
static bool read_all(int fd, const char *name, unsigned int file,
		     uint64_t bytes)
{
	char page[PAGE];
	bool pattern = true;

	for (uint64_t at = 0; at < bytes; at += PAGE) {
		uint64_t word;
		ssize_t n = pread(fd, page, PAGE, (off_t)at);

		if (n != PAGE)
			die(EXIT_FAILED, "cannot read %s: %s", name,
			    n < 0 ? strerror(errno) : "it is too short");
		memcpy(&word, page, sizeof(word));
		pattern = pattern && word == page_word(file, at / PAGE);
	}
	return pattern;
}

static uint64_t size_of(int fd, const char *path)
{
	struct stat st;
	uint64_t size = 0;

	if (fstat(fd, &st))
		die_errno("%s", path);
	if (S_ISREG(st.st_mode))
		return (uint64_t)st.st_size;
	if (!S_ISBLK(st.st_mode))
		die(EXIT_USAGE, "%s is neither a file nor a block device", path);
	if (ioctl(fd, BLKGETSIZE64, &size))
		die_errno("%s", path);
	return size;
}

static int open_given(const char *path, const struct options *options)
{
	int fd = open(path, (options->fill ? O_RDWR : O_RDONLY) | O_CLOEXEC);

	if (fd < 0)
		die(EXIT_USAGE, "cannot open %s: %s", path, strerror(errno));
	if (size_of(fd, path) < bytes_needed(options))
		die(EXIT_USAGE, "%s is too small, %llu bytes are needed (--offsets, --pages)",
		    path, (unsigned long long)bytes_needed(options));
	return fd;
}

/* Shared by all processes: whoever writes to a place notes its version. */
static size_t versions_size(const struct options *options)
{
	return (size_t)MAX_FILES * options->offsets * sizeof(uint32_t);
}

void data_open(struct data *data, const struct options *options)
{
	const char *folder = options->folder ? options->folder : getenv("TMPDIR");
	uint64_t bytes = bytes_needed(options);

	data->versions = mmap(NULL, versions_size(options),
			      PROT_READ | PROT_WRITE,
			      MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (data->versions == MAP_FAILED)
		die_errno("mmap");
	if (!folder || !*folder)
		folder = "/tmp";
	data->count = options->path_count ? options->path_count : options->files;
	data->checked = true;
	for (unsigned int i = 0; i < data->count; i++) {
		const char *name = options->path_count ? options->paths[i] :
							 folder;

		data->fds[i] = options->path_count ? open_given(name, options) :
						     make_scratch_file(folder);
		if (!options->path_count || options->fill)
			write_pattern(data->fds[i], name, i, bytes);
		if (!read_all(data->fds[i], name, i, bytes))
			data->checked = false;
	}
}

static bool is_right(const char *page, unsigned int file, uint64_t number,
		     uint32_t version)
{
	uint64_t words[2];

	memcpy(words, page, sizeof(words));
	return words[0] == page_word(file, number) && words[1] == version;
}

/*
 * Reads the files after a sample with shared-write and returns how many pages
 * are wrong. What a file system holds is read from its disk, so that a page
 * that was written to but taken for clean is noticed, too.
 */
uint64_t data_verify(const struct data *data, const struct options *options)
{
	uint64_t pages = (uint64_t)options->offsets * options->pages, wrong = 0;
	char page[PAGE];

	if (options->access != ACCESS_SHARED_WRITE)
		return 0;
	for (unsigned int i = 0; i < data->count; i++) {
		const uint32_t *versions = data->versions + i * options->offsets;
		struct stat st;

		if (fsync(data->fds[i]) || fstat(data->fds[i], &st))
			die_errno("cannot sync a file");
		/* A null block device forgets what is written to it. */
		if (S_ISREG(st.st_mode))
			posix_fadvise(data->fds[i], 0, 0, POSIX_FADV_DONTNEED);
		for (uint64_t n = 0; n < pages; n++) {
			if (pread(data->fds[i], page, PAGE, (off_t)(n * PAGE)) !=
			    PAGE)
				die_errno("cannot read a file");
			wrong += !is_right(page, i, n,
					   versions[n / options->pages]);
		}
	}
	return wrong;
}
