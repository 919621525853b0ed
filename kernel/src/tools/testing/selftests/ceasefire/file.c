// SPDX-License-Identifier: GPL-2.0
/* Files under test, see file.h. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/swap.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "env.h"
#include "file.h"
#include "ktap.h"

#define EXT4_MAGIC	0xef53
#define XFS_MAGIC	0x58465342

#ifndef SYS_cachestat
#define SYS_cachestat	451
#endif

#define CHUNK		(16 * PAGE)

#define LARGE_FOLIO	(16 * PAGE)
#define LARGE_SWITCH	\
	"/sys/kernel/mm/transparent_hugepage/hugepages-64kB/shmem_enabled"

static const char *disk_dir(void)
{
	const char *dir = getenv("CEASEFIRE_TEST_DIR");
	struct statfs fs;

	if (!dir)
		dir = "/tmp";
	MUST(statfs(dir, &fs));
	if (fs.f_type != EXT4_MAGIC && fs.f_type != XFS_MAGIC)
		ktap_skip("%s (CEASEFIRE_TEST_DIR) is not on ext4 or XFS", dir);
	return dir;
}

/* A mount that nobody else sees and that goes with the process. */
static int open_on_huge(void)
{
	static const char *const at = "/mnt";
	int fd;

	if (access("/sys/kernel/mm/transparent_hugepage", F_OK))
		ktap_skip("no transparent huge pages");
	MUST(unshare(CLONE_NEWNS));
	MUST(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL));
	MUST(mount("ceasefire", at, "tmpfs", 0, "huge=always"));
	fd = (int)MUST(open(at, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
	return fd;
}

static int open_on_disk(void)
{
	char path[512];
	int fd;

	snprintf(path, sizeof(path), "%s/ceasefire.XXXXXX", disk_dir());
	fd = mkostemp(path, O_CLOEXEC);
	ENSURE(fd >= 0, "%s: %m", path);
	unlink(path);
	return fd;
}

/*
 * Large folios come from faults, not from write(2), and only where address and
 * offset are aligned alike.
 */
static void fill_large(const struct tfile *f, unsigned char byte)
{
	size_t length = f->pages * PAGE;
	char *room, *p;

	if (!write_text(LARGE_SWITCH, "always"))
		ktap_skip("no " LARGE_SWITCH);
	MUST(ftruncate(f->fd, (off_t)length));
	room = mmap(NULL, length + LARGE_FOLIO, PROT_NONE,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ENSURE(room != MAP_FAILED, "mmap: %m");
	p = (char *)(((uintptr_t)room + LARGE_FOLIO - 1) & ~(LARGE_FOLIO - 1));
	p = mmap(p, length, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
		 f->fd, 0);
	ENSURE(p != MAP_FAILED, "mmap: %m");
	memset(p, byte, length);
	MUST(munmap(room, length + LARGE_FOLIO));
	write_text(LARGE_SWITCH, "never");
}

void file_fill(const struct tfile *f, size_t first, size_t pages,
	       unsigned char byte)
{
	static char block[CHUNK];
	size_t done = 0;

	if (f->place == ON_LARGE) {
		fill_large(f, byte);
		return;
	}
	memset(block, byte, sizeof(block));
	while (done < pages * PAGE) {
		size_t want = pages * PAGE - done;
		ssize_t n = pwrite(f->fd, block, want < CHUNK ? want : CHUNK,
				   (off_t)(first * PAGE + done));

		ENSURE(n > 0, "write: %m");
		done += (size_t)n;
	}
	if (f->place == ON_DISK)
		MUST(fdatasync(f->fd));
}

void file_make(struct tfile *f, enum place where, size_t pages,
	       unsigned char byte)
{
	f->place = where;
	f->pages = pages;
	if (where == ON_TMPFS || where == ON_LARGE)
		f->fd = (int)MUST(memfd_create("ceasefire", MFD_CLOEXEC |
					       MFD_ALLOW_SEALING));
	else if (where == ON_HUGE)
		f->fd = open_on_huge();
	else
		f->fd = open_on_disk();
	file_fill(f, 0, pages, byte);
}

/* Pages of a range that are in the page cache; length 0: to the end. */
static size_t cached_in(const struct tfile *f, uint64_t off, uint64_t length)
{
	struct { uint64_t off, len; } range = { off, length };
	struct { uint64_t cache, dirty, writeback, evicted, recent; } stat;

	MUST(syscall(SYS_cachestat, f->fd, &range, &stat, 0));
	return stat.cache;
}

size_t file_cached(const struct tfile *f)
{
	return cached_in(f, 0, 0);
}

bool file_page_cached(const struct tfile *f, size_t page)
{
	return cached_in(f, page * PAGE, PAGE);
}

void file_drop(const struct tfile *f)
{
	int tries;

	if (f->place != ON_DISK) {
		MUST(ftruncate(f->fd, 0));
		MUST(ftruncate(f->fd, (off_t)(f->pages * PAGE)));
		return;
	}
	for (tries = 0; tries < 50 && file_cached(f); tries++) {
		if (tries)
			sleep_ms(20);
		MUST(fdatasync(f->fd));
		posix_fadvise(f->fd, 0, 0, POSIX_FADV_DONTNEED);
	}
	ENSURE(!file_cached(f), "%zu of %zu pages stay in the page cache",
	       file_cached(f), f->pages);
}

void file_close(struct tfile *f)
{
	close(f->fd);
	f->fd = -1;
}

void swap_format(int fd)
{
	static struct {
		char boot[1024];
		uint32_t version, last_page, bad_pages;
		char empty[PAGE - 1024 - 3 * sizeof(uint32_t) - 10];
		char magic[10];
	} header = { .version = 1, .magic = "SWAPSPACE2" };
	off_t size = MUST(lseek(fd, 0, SEEK_END));

	header.last_page = (uint32_t)((size_t)size / PAGE - 1);
	ENSURE(pwrite(fd, &header, sizeof(header), 0) == sizeof(header),
	       "swap area: %m");
	MUST(fsync(fd));
}

/* Linux wants a name for it. */
void swap_on(char *path, size_t size, size_t pages)
{
	const char *dir = getenv("CEASEFIRE_TEST_DIR");
	static char page[PAGE];
	int fd;

	snprintf(path, size, "%s/swap.XXXXXX", dir ? dir : "/tmp");
	fd = mkostemp(path, O_CLOEXEC);
	ENSURE(fd >= 0, "%s: %m", path);
	while (pages--)
		MUST(write(fd, page, PAGE));
	swap_format(fd);
	close(fd);
	if (swapon(path, 0)) {
		unlink(path);
		ktap_skip("no swap in %s: %m", path);
	}
}

void swap_off(const char *path)
{
	MUST(swapoff(path));
	unlink(path);
}
