// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * mmap.c - mmap() and mmap64() with MAP_FPR for chosen files
 *
 * What: the symbols that libceasefire-preload.so puts before the C library's to
 *       add the flag (those in sandbox.c add nothing, for those in shared.c see
 *       there). See libceasefire-preload(7).
 * Who:  any program, through LD_PRELOAD.
 *
 * The program must not notice: same errors, same errno, no lock, no heap, no
 * other library function, little stack (a signal handler may map files), a
 * mapping that works whatever happens to the flag. So the kernel is called
 * directly and a call that fails with the flag is made again without it.
 *
 * A file is looked up by its descriptor at each call. Remembering the answer
 * by descriptor would be wrong as soon as the descriptor is used again, and
 * asking whether it still is the same file costs as much as looking it up.
 */
/* With it the headers would turn every mmap into mmap64, definitions too. */
#undef _FILE_OFFSET_BITS

#include "config.h"
#include "rawsys.h"
#include "shared.h"

#include "../include/ceasefire.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/types.h>

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif
#ifndef MAP_SHARED_VALIDATE
#define MAP_SHARED_VALIDATE 0x03
#endif
#ifndef MAP_SYNC
#define MAP_SYNC 0x80000
#endif

#define EXPORT __attribute__((visibility("default")))
#define unlikely(x) __builtin_expect(!!(x), 0)

/* Kinds of mappings that FPR is not for, or that ask for it themselves. */
#define UNSUITABLE_FLAGS                                                      \
	(MAP_ANONYMOUS | MAP_FIXED | MAP_FIXED_NOREPLACE | MAP_32BIT |        \
	 MAP_HUGETLB | MAP_GROWSDOWN | MAP_STACK | MAP_SYNC | MAP_FPR)

/* Most paths fit here; a longer one gets memory of its own. */
#define SHORT_PATH 512
#define LONG_PATH 4096

/* What the kernel adds to the path of a file that has been removed. */
static const char deleted[] = " (deleted)";

enum verdict { ADD, OTHER_PATH, UNSUITABLE };

static bool path_wanted(const struct config *config, const char *path)
{
	return list_matches(config->paths, path) &&
	       !list_matches(config->exclude, path);
}

/*
 * @path has @length bytes and room for a NUL. A name may really end in
 * " (deleted)": such a file is wanted under either reading, unless one of them
 * is excluded.
 */
static bool link_wanted(const struct config *config, char *path, size_t length)
{
	size_t cut = length - (sizeof(deleted) - 1);
	bool wanted;

	path[length] = '\0';
	/* "pipe:[1]", "anon_inode:...", "(unreachable)/...", a memfd */
	if (path[0] != '/' || strncmp(path, "/memfd:", strlen("/memfd:")) == 0)
		return false;
	if (length < sizeof(deleted) || strcmp(path + cut, deleted) != 0)
		return path_wanted(config, path);

	wanted = list_matches(config->paths, path);
	if (list_matches(config->exclude, path))
		return false;
	path[cut] = '\0';
	return (wanted || list_matches(config->paths, path)) &&
	       !list_matches(config->exclude, path);
}

/*
 * Writes "/proc/thread-self/fd/N": a thread may have descriptors of its own.
 * @fd is not negative.
 */
static void name_of_link(char *name, int fd)
{
	static const char prefix[] = "/proc/thread-self/fd/";
	char digits[10];
	size_t at = sizeof(digits);

	do {
		digits[--at] = (char)('0' + fd % 10);
		fd /= 10;
	} while (fd);
	memcpy(name, prefix, sizeof(prefix) - 1);
	memcpy(name + sizeof(prefix) - 1, digits + at, sizeof(digits) - at);
	name[sizeof(prefix) - 1 + sizeof(digits) - at] = '\0';
}

static __attribute__((noinline)) bool
file_wanted(const struct config *config, int fd)
{
	char name[sizeof("/proc/thread-self/fd/2147483647")];
	char path[SHORT_PATH];
	bool wanted = false;
	long length, page;

	name_of_link(name, fd);
	length = raw_readlink(name, path, sizeof(path));
	if (length <= 0)
		return false;
	if (length < (long)sizeof(path))
		return link_wanted(config, path, (size_t)length);

	/* Possibly cut off. */
	page = raw_mmap(NULL, LONG_PATH + 1, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (RAW_IS_ERROR(page))
		return false;
	length = raw_readlink(name, (char *)page, LONG_PATH);
	if (length > 0)
		wanted = link_wanted(config, (char *)page, (size_t)length);
	raw_munmap((void *)page, LONG_PATH + 1);
	return wanted;
}

static inline bool suitable(const void *addr, int flags, int fd)
{
	int type = flags & MAP_TYPE;

	return !(flags & UNSUITABLE_FLAGS) && !addr && fd >= 0 &&
	       (type == MAP_SHARED || type == MAP_PRIVATE ||
		type == MAP_SHARED_VALIDATE);
}

static void count(atomic_ulong *counter)
{
	atomic_fetch_add_explicit(counter, 1, memory_order_relaxed);
}

static __attribute__((noinline, cold)) void
report(const struct config *config, enum verdict verdict, size_t length, int fd,
       bool failed)
{
	struct stats *stats = config->stats;
	struct line line;

	if (stats && failed)
		count(&stats->failed);
	else if (stats)
		count(verdict == ADD ? &stats->added :
		      verdict == OTHER_PATH ? &stats->other_path :
		      &stats->unsuitable);

	if (config->verbose < VERBOSE_MAPPINGS)
		return;
	line_start(&line);
	line_text(&line, failed ? "failed" :
		  verdict == ADD ? "MAP_FPR" :
		  verdict == OTHER_PATH ? "other path" : "not suitable");
	line_text(&line, ": ");
	line_number(&line, length);
	line_text(&line, " bytes");
	if (fd >= 0) {
		char name[sizeof("/proc/thread-self/fd/2147483647")];
		char path[256];
		long n;

		name_of_link(name, fd);
		n = raw_readlink(name, path, sizeof(path));
		line_text(&line, " of ");
		line_name(&line, path, n > 0 ? (size_t)n : 0);
	}
	line_send(&line, &config->output);
}

static inline void *finish(long result)
{
	if (unlikely(RAW_IS_ERROR(result))) {
		errno = (int)-result;
		return MAP_FAILED;
	}
	return (void *)result;
}

static __attribute__((noinline)) void *
map_with_care(const struct config *config, void *addr, size_t length, int prot,
	      int flags, int fd, off_t offset)
{
	enum verdict verdict = OTHER_PATH;
	long result = -EINVAL;

	if (shared_wanted(config, addr, length, prot, flags))
		result = shared_map(config, length, prot, flags);
	if (!config->active || !suitable(addr, flags, fd))
		verdict = UNSUITABLE;
	else if (config->every_path || file_wanted(config, fd))
		verdict = ADD;

	if (verdict == ADD)
		result = raw_mmap(addr, length, prot, flags | MAP_FPR, fd,
				  offset);
	if (RAW_IS_ERROR(result))
		result = raw_mmap(addr, length, prot, flags, fd, offset);
	if (flags & MAP_FIXED && !RAW_IS_ERROR(result))
		shared_replaced(addr, length);
	if (config->watched && !(flags & MAP_ANONYMOUS))
		report(config, verdict, length, fd, RAW_IS_ERROR(result));
	return finish(result);
}

/* The two common cases are straight lines: nothing to do, and every file. */
EXPORT void *mmap(void *addr, size_t length, int prot, int flags, int fd,
		  off_t offset)
{
	const struct config *config = config_get();
	struct window *window = NULL;
	long result;
	void *p;

	if (config->windows)
		window = window_open(config->windows);
	if (!window) {
		result = raw_mmap(addr, length, prot, flags, fd, offset);
		if (unlikely(flags & MAP_FIXED) && !RAW_IS_ERROR(result))
			shared_replaced(addr, length);
		return finish(result);
	}

	if (!config->every_path || config->watched ||
	    !suitable(addr, flags, fd)) {
		p = map_with_care(config, addr, length, prot, flags, fd,
				  offset);
	} else {
		result = raw_mmap(addr, length, prot, flags | MAP_FPR, fd,
				  offset);
		if (RAW_IS_ERROR(result))
			result = raw_mmap(addr, length, prot, flags, fd,
					  offset);
		p = finish(result);
	}
	window_close(window);
	return p;
}

/* off_t has 64 bits here: both names mean the same. */
_Static_assert(sizeof(off_t) == 8, "mmap64 must be the same as mmap");
EXPORT void *mmap64(void *addr, size_t length, int prot, int flags, int fd,
		    off_t offset) __attribute__((alias("mmap")));

/*
 * Before any other library's constructor (-z initfirst): what descriptor 2 is
 * must be known before somebody's file can take its number.
 */
static __attribute__((constructor)) void start(int argc, char **argv, char **env)
{
	(void)argc;
	(void)argv;
	config_start(env);
}

static __attribute__((destructor)) void say_stats(void)
{
	const struct config *config = config_get();

	if (config->stats && !sandbox_ahead())
		stats_say(config->stats, &config->output);
}
