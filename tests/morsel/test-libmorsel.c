// SPDX-License-Identifier: GPL-2.0-only
/*
 * test-libmorsel.c - each function of libmorsel does what its header says
 *
 * Prints TAP. On a kernel without morsels that is: each says so, in words. Called by
 * meson on this machine, and by tests/suites/morsel.toml in a guest with --here, where a
 * kernel without morsels is a failure.
 */
#include "morsel.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

#define PAGE	4096UL
#define MIB	(1UL << 20)

static unsigned int number, bad;

static void report(bool good, const char *name)
{
	printf("%sok %u - %s\n", good ? "" : "not ", ++number, name);
	bad += !good;
}

/* A call fails with an error, whose words have others in them. */
static void fails(int result, enum morsel_call call, int err, const char *words,
		  const char *name)
{
	int found = errno;
	bool good = result < 0 && found == err && strstr(morsel_strerror(call, err), words);

	if (!good)
		printf("# %d, %s, \"%s\"\n", result, strerror(found),
		       morsel_strerror(call, found));
	report(good, name);
}

/* In a file system that has other files nothing is made, and nothing is left. */
static void no_names(void)
{
	char folder[] = "/tmp/libmorsel.XXXXXX", path[60];

	fails(morsel_open("/etc/passwd", O_RDONLY), MORSEL_CALL_OPEN, EINVAL, "no morsel",
	      "open: another file");
	fails(morsel_open("/etc/passwd", O_WRONLY), MORSEL_CALL_OPEN, EINVAL, "flag",
	      "open: only writing");
	fails(morsel_open("/etc/passwd", O_ACCMODE), MORSEL_CALL_OPEN, EINVAL, "flag",
	      "open: a mode that is none");
	fails(morsel_create_at("/etc/passwd", 0600, MIB, NULL), MORSEL_CALL_OPEN, EEXIST,
	      "something with this name", "create_at: there is another file");
	if (!mkdtemp(folder))
		abort();
	snprintf(path, sizeof(path), "%s/pool", folder);
	fails(morsel_open(path, O_RDWR), MORSEL_CALL_OPEN, ENOENT, "no such morsel", "open: nothing");
	fails(morsel_create_at(path, 0600, MIB, NULL), MORSEL_CALL_OPEN, EINVAL,
	      "mount -t morsel", "create_at: among other files");
	fails(morsel_copy_at(0, path, 0600), MORSEL_CALL_COPY, EINVAL, "its own file system",
	      "copy_at: among other files");
	report(rmdir(folder) == 0, "create_at: nothing is left");
}

static void without(void)
{
	struct morsel_mapping mapping;
	struct morsel_range range = { 0, PAGE };
	struct morsel_stat stat;
	size_t done = 7;
	int fd = memfd_create("no morsel", MFD_CLOEXEC);

	errno = EDOM;
	report(!morsel_supported() && errno == EDOM, "morsels are not supported");
	fails(morsel_create("a", MIB, NULL), MORSEL_CALL_CREATE, ENOSYS, "boot one",
	      "create: a kernel without");
	fails(morsel_copy(fd, "a"), MORSEL_CALL_COPY, ENOSYS, "boot one", "copy: a kernel without");
	fails(morsel_map(fd, PROT_READ, &mapping), MORSEL_CALL_MAP, EINVAL, "no morsel",
	      "map: another file");
	fails(morsel_stat(fd, &stat), MORSEL_CALL_STAT, EINVAL, "no morsel", "stat: another file");
	fails(morsel_populate(fd, &range, 1, &done), MORSEL_CALL_POPULATE, EINVAL, "no morsel",
	      "populate: another file");
	report(done == 0, "populate: nothing is done");
	close(fd);
	no_names();
}

static void errors(int fd)
{
	struct morsel_layout layout = { .unit = 3 * MIB };
	struct morsel_range range = { 5 * MIB, 2 * MIB };
	struct morsel_mapping mapping, part;
	char name[300], path[40];
	struct morsel_stat stat;
	int reader, empty;

	memset(name, 'a', sizeof(name) - 1);
	name[sizeof(name) - 1] = 0;
	fails(morsel_create(name, MIB, NULL), MORSEL_CALL_CREATE, EINVAL, "249", "create: a long name");
	fails(morsel_create("a", MIB, &layout), MORSEL_CALL_CREATE, EINVAL, "2 MiB", "create: no unit");
	layout.unit = 2 * MIB;
	fails(morsel_create("a", 1024 * MIB, &layout), MORSEL_CALL_CREATE, EFBIG, "511",
	      "create: more units than there are");
	empty = morsel_create("empty", 0, NULL);
	fails(morsel_map(empty, PROT_READ, &mapping), MORSEL_CALL_MAP, EINVAL, "no size",
	      "map: nothing");
	close(empty);
	fails(morsel_map(fd, PROT_READ | PROT_EXEC, &mapping), MORSEL_CALL_MAP, EPERM, "PROT_EXEC",
	      "map: executable");
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	reader = open(path, O_RDONLY | O_CLOEXEC);
	fails(morsel_map(reader, PROT_READ | PROT_WRITE, &mapping), MORSEL_CALL_MAP, EACCES,
	      "for writing", "map: writable by a descriptor that reads");
	fails(morsel_depopulate(reader, &range, 1, NULL), MORSEL_CALL_DEPOPULATE, EPERM, "only reads",
	      "depopulate: by a descriptor that reads");
	close(reader);
	fails(morsel_populate(fd, &range, 1, NULL), MORSEL_CALL_POPULATE, EINVAL, "behind the morsel",
	      "populate: behind the end");
	fails(morsel_stat(-1, &stat), MORSEL_CALL_STAT, EBADF, "not open", "stat: no descriptor");
	if (morsel_map(fd, PROT_READ, &mapping))
		abort();
	part = (struct morsel_mapping){ mapping.at, PAGE };
	fails(morsel_unmap(&part), MORSEL_CALL_UNMAP, EINVAL, "as a whole", "unmap: a part");
	report(morsel_unmap(&mapping) == 0, "unmap: the rest of it");
	report(strcmp(morsel_strerror(MORSEL_CALL_STAT, EDOM), strerror(EDOM)) == 0,
	       "strerror: an error of nobody");
}

static volatile sig_atomic_t signals;

static void on_signal(int signal)
{
	(void)signal;
	signals++;
}

static unsigned long long pages_of(int fd)
{
	struct morsel_stat stat;

	if (morsel_stat(fd, &stat))
		abort();
	return stat.pages;
}

/* More ranges than the kernel takes at once, while signals come. */
static void vectors(void)
{
	static struct morsel_range ranges[3 * MORSEL_RANGES_MAX + 5];
	const size_t nr = sizeof(ranges) / sizeof(*ranges);
	const struct itimerval often = { { 0, 300 }, { 0, 300 } }, never = { { 0, 0 }, { 0, 0 } };
	int fd = morsel_create("vector", nr * 2 * PAGE, NULL);
	size_t done = 0;

	for (size_t i = 0; i < nr; i++)
		ranges[i] = (struct morsel_range){ i * 2 * PAGE, PAGE };
	signal(SIGALRM, on_signal);
	setitimer(ITIMER_REAL, &often, NULL);
	report(morsel_populate(fd, ranges, nr, &done) == 0 && done == nr,
	       "populate: more ranges than one call has, and signals");
	setitimer(ITIMER_REAL, &never, NULL);
	report(signals > 0, "signals came");
	report(pages_of(fd) == nr, "populate: a page each");
	ranges[2000].offset = nr * 2 * PAGE;
	report(morsel_depopulate(fd, ranges, nr, &done) < 0 && errno == EINVAL && done <= 2000 &&
	       pages_of(fd) == nr - done, "depopulate: it is told how many are done");
	ranges[2000].offset = 2000 * 2 * PAGE;
	report(morsel_depopulate(fd, ranges, nr, NULL) == 0 && pages_of(fd) == 0,
	       "depopulate: all are gone");
	report(morsel_populate(fd, ranges, nr, NULL) == 0 &&
	       morsel_depopulate_async(fd, ranges, nr, &done) == 0 && done == nr &&
	       fsync(fd) == 0 && pages_of(fd) == 0, "depopulate_async: all are gone after fsync()");
	report(morsel_populate(fd, NULL, 0, &done) == 0 && done == 0, "populate: no range");
	report(morsel_depopulate_lazy(fd, ranges, nr, &done) < 0 && errno == EINVAL,
	       "depopulate_lazy: it is not allowed");
	close(fd);
}

/* Of a morsel that allows it, with more ranges than the kernel takes at once. */
static void lazily(void)
{
	static struct morsel_range ranges[MORSEL_RANGES_MAX + 5];
	const size_t nr = sizeof(ranges) / sizeof(*ranges);
	const struct morsel_layout layout = { .lazy = true };
	int fd = morsel_create("lazy", nr * 2 * PAGE, &layout);
	struct morsel_stat stat;
	char byte = 1;
	size_t done = 0;

	for (size_t i = 0; i < nr; i++)
		ranges[i] = (struct morsel_range){ i * 2 * PAGE, PAGE };
	report(fd >= 0 && morsel_populate(fd, ranges, nr, NULL) == 0, "lazy: there is one");
	report(morsel_depopulate_lazy(fd, ranges, nr, &done) == 0 && done == nr &&
	       morsel_stat(fd, &stat) == 0 && stat.pool == nr, "depopulate_lazy: pages wait");
	report(morsel_populate(fd, ranges, nr, NULL) == 0 && pages_of(fd) == nr &&
	       pread(fd, &byte, 1, 0) == 1 && !byte, "populate: they are used again, as zeroes");
	report(morsel_depopulate_lazy(fd, ranges, nr, NULL) == 0 && fsync(fd) == 0 &&
	       pages_of(fd) == 0, "depopulate_lazy: all are gone after fsync()");
	close(fd);
}

static sigjmp_buf gone;

static void on_bus(int signal)
{
	siglongjmp(gone, signal);
}

static void destroyed(void)
{
	struct morsel_range range = { 0, PAGE };
	struct morsel_mapping mapping, second;
	int fd = morsel_create("destroyed", MIB, NULL);

	if (morsel_map(fd, PROT_READ | PROT_WRITE, &mapping))
		abort();
	*(volatile char *)mapping.at = 7;
	fails(morsel_destroy(fd, 0), MORSEL_CALL_DESTROY, EBUSY, "MORSEL_FORCE", "destroy: it is mapped");
	fails(morsel_destroy(fd, 2), MORSEL_CALL_DESTROY, EINVAL, "no such flag", "destroy: a flag");
	report(morsel_destroy(fd, MORSEL_FORCE) == 0 && pages_of(fd) == 0, "destroy: with force");
	signal(SIGBUS, on_bus);
	if (!sigsetjmp(gone, 1)) {
		(void)*(volatile char *)mapping.at;
		report(false, "destroy: an access raises SIGBUS");
	} else {
		report(true, "destroy: an access raises SIGBUS");
	}
	fails(morsel_destroy(fd, 0), MORSEL_CALL_DESTROY, ENODEV, "before", "destroy: again");
	fails(morsel_map(fd, PROT_READ, &second), MORSEL_CALL_MAP, ENODEV, "a new one", "map: destroyed");
	fails(morsel_populate(fd, &range, 1, NULL), MORSEL_CALL_POPULATE, ENODEV, "a new one",
	      "populate: destroyed");
	report(morsel_unmap(&mapping) == 0, "unmap: destroyed");
	close(fd);
	fd = morsel_create("unmapped", MIB, NULL);
	report(morsel_destroy(fd, 0) == 0, "destroy: nobody has it mapped");
	close(fd);
}

static void copied(void)
{
	const struct morsel_layout lazy = { .lazy = true };
	struct morsel_mapping one, other;
	struct morsel_stat stat;
	int fd = morsel_create("origin", 1024 * MIB, NULL), copy, empty;

	if (morsel_map(fd, PROT_READ | PROT_WRITE, &one))
		abort();
	((volatile char *)one.at)[0] = 7;
	((volatile char *)one.at)[PAGE] = 7;
	copy = morsel_copy(fd, "copy");
	report(copy >= 0 && fcntl(copy, F_GETFD) == FD_CLOEXEC, "copy");
	report(morsel_map(copy, PROT_READ | PROT_WRITE, &other) == 0 && other.length == one.length &&
	       ((char *)other.at)[0] == 7, "copy: it has what there was");
	((volatile char *)one.at)[0] = 8;
	((volatile char *)other.at)[PAGE] = 9;
	report(((char *)other.at)[0] == 7 && ((char *)one.at)[PAGE] == 7 &&
	       ((char *)one.at)[0] == 8 && ((char *)other.at)[PAGE] == 9,
	       "copy: each keeps what is written to it");
	report(morsel_stat(copy, &stat) == 0 && stat.pages == 1, "copy: it has a page of its own");
	close(copy);
	empty = morsel_create("empty", 0, NULL);
	fails(morsel_copy(empty, "a"), MORSEL_CALL_COPY, EINVAL, "no size", "copy: nothing");
	close(empty);
	empty = morsel_create("lazy", MIB, &lazy);
	fails(morsel_copy(empty, "a"), MORSEL_CALL_COPY, EOPNOTSUPP, "lazily", "copy: a lazy one");
	close(empty);
	fails(morsel_copy(0, "a"), MORSEL_CALL_COPY, EXDEV, "one file system", "copy: another file");
	if (morsel_destroy(fd, MORSEL_FORCE))
		abort();
	fails(morsel_copy(fd, "a"), MORSEL_CALL_COPY, ENODEV, "destroyed", "copy: destroyed");
	close(fd);
}

static void names(void)
{
	static const char path[] = "/mnt/pool", second[] = "/mnt/second";
	struct morsel_layout layout = { .unit = 3 * MIB };
	struct morsel_mapping mapping;
	struct morsel_stat stat;
	int fd;

	if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("test", "/mnt", "morsel", 0, NULL)) {
		printf("# %s\n", strerror(errno));
		report(false, "a file system of morsels is mounted");
		return;
	}
	fails(morsel_create_at(path, 0600, MIB, &layout), MORSEL_CALL_OPEN, EINVAL, "no such unit",
	      "create_at: no unit");
	report(access(path, F_OK) < 0, "create_at: nothing is left of it");
	fd = morsel_create_at(path, 0640, 5 * MIB, NULL);
	report(fd >= 0 && fcntl(fd, F_GETFD) == FD_CLOEXEC, "create_at");
	report(morsel_map(fd, PROT_READ | PROT_WRITE, &mapping) == 0, "map: one with a name");
	((char *)mapping.at)[MIB] = 7;
	morsel_unmap(&mapping);
	close(fd);
	fails(morsel_create_at(path, 0600, MIB, NULL), MORSEL_CALL_OPEN, EEXIST, "remove it",
	      "create_at: again");
	fd = morsel_open(path, O_RDONLY);
	report(fd >= 0 && morsel_stat(fd, &stat) == 0 && stat.pages == 1, "open: it has stayed");
	fails(morsel_map(fd, PROT_READ | PROT_WRITE, &mapping), MORSEL_CALL_MAP, EACCES,
	      "for writing", "map: writable, of one that is open for reading");
	fails(morsel_destroy(fd, MORSEL_FORCE), MORSEL_CALL_DESTROY, EPERM, "only reads",
	      "destroy: by a descriptor that reads");
	fails(morsel_copy(fd, "a"), MORSEL_CALL_COPY, EXDEV, "has a name", "copy: one with a name");
	fails(morsel_copy_at(fd, path, 0600), MORSEL_CALL_COPY, EEXIST, "remove it", "copy_at: itself");
	close(morsel_copy_at(fd, second, 0600));
	close(fd);
	fd = morsel_open(second, O_RDWR);
	report(morsel_map(fd, PROT_READ | PROT_WRITE, &mapping) == 0 &&
	       ((char *)mapping.at)[MIB] == 7, "copy_at: it has what there was");
	morsel_unmap(&mapping);
	close(fd);
	fd = morsel_create("unnamed", MIB, NULL);
	fails(morsel_copy_at(fd, "/mnt/third", 0600), MORSEL_CALL_COPY, EXDEV, "has none",
	      "copy_at: one without a name");
	report(access("/mnt/third", F_OK) < 0, "copy_at: nothing is left of it");
	close(fd);
	report(unlink(path) == 0 && unlink(second) == 0 && umount("/mnt") == 0, "it is removed");
}

static void large(void)
{
	struct morsel_layout layout = { .page = 2 * MIB };
	struct morsel_mapping mapping;
	struct morsel_stat stat;
	int fd = morsel_create("large", 5 * MIB, &layout);

	report(fd >= 0 && morsel_map(fd, PROT_READ | PROT_WRITE, &mapping) == 0 &&
	       mapping.length == 1024 * MIB, "create: large pages, in a larger unit");
	((char *)mapping.at)[4 * MIB] = 7;
	report(morsel_stat(fd, &stat) == 0 && stat.base == 2 * MIB && stat.pages == 512,
	       "stat: a large page");
	fails(morsel_copy(fd, "a"), MORSEL_CALL_COPY, EOPNOTSUPP, "large", "copy: large pages");
	morsel_unmap(&mapping);
	close(fd);
	layout.lazy = true;
	fails(morsel_create("a", MIB, &layout), MORSEL_CALL_CREATE, EOPNOTSUPP, "never lazy",
	      "create: large and lazy");
	layout = (struct morsel_layout){ .page = 4 * MIB };
	fails(morsel_create("a", MIB, &layout), MORSEL_CALL_CREATE, EINVAL, "pages of 4 KiB",
	      "create: no such page");
	layout = (struct morsel_layout){ .page = 1ULL << 50 };
	fails(morsel_create("a", MIB, &layout), MORSEL_CALL_CREATE, EINVAL, "pages of 4 KiB",
	      "create: a page larger than all");
}

static void all(void)
{
	struct morsel_layout layout = { .unit = 1024 * MIB, .address = 0x200000000000 };
	struct morsel_mapping mapping, second;
	struct morsel_stat stat;
	int fd, there;

	errno = EDOM;
	report(morsel_supported() && errno == EDOM, "morsels are supported");
	fd = morsel_create("test", 5 * MIB + 1, NULL);
	report(fd >= 0 && fcntl(fd, F_GETFD) == FD_CLOEXEC, "create");
	report(morsel_map(fd, PROT_READ | PROT_WRITE, &mapping) == 0 && mapping.length == 6 * MIB,
	       "map: whole units");
	((char *)mapping.at)[5 * MIB] = 7;
	report(morsel_map(fd, PROT_READ, &second) == 0 && second.at != mapping.at &&
	       ((char *)second.at)[5 * MIB] == 7, "map: a second time");
	report(morsel_stat(fd, &stat) == 0 && stat.pages == 1 && stat.unit == 2 * MIB &&
	       stat.mappings == 2, "stat");
	report(morsel_unmap(&second) == 0 && morsel_unmap(&mapping) == 0, "unmap");
	errors(fd);
	close(fd);
	there = morsel_create("there", MIB, &layout);
	report(there >= 0 && morsel_map(there, PROT_READ, &mapping) == 0 &&
	       mapping.at == (void *)layout.address && mapping.length == layout.unit,
	       "create: a unit and an address");
	close(there);
	vectors();
	lazily();
	large();
	destroyed();
	copied();
	no_names();
	names();
}

int main(int argc, char **argv)
{
	bool here = argc > 1 && strcmp(argv[1], "--here") == 0;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (here || morsel_supported())
		all();
	else
		without();
	printf("1..%u\n", number);
	return bad != 0;
}
