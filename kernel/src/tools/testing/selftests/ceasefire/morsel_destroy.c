// SPDX-License-Identifier: GPL-2.0
/*
 * Morsels that are destroyed while others use them: nobody reaches what they had, all of it
 * is free at once, and nothing comes into them any more.
 *
 * The peer holds translations of the own mapping, strangers have mappings of their own.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "checker.h"
#include "ktap.h"
#include "late.h"
#include "morsels.h"
#include "peer.h"
#include "stranger.h"

#define OWN	WORD(0x5a)
#define OTHER	WORD(0x33)
#define BOTH	(PROT_READ | PROT_WRITE)
#define PAGES	8

/* 0, or a negative errno. */
static int destroy(int fd, uint32_t flags)
{
	return ioctl(fd, MORSEL_IOC_DESTROY, &flags) ? -errno : 0;
}

static int shared_fd;
static char *there;

static long map_there(long length)
{
	/* Not where the peer is, which would lose what it holds. */
	pin_to_cpu(0);
	there = mmap(NULL, (size_t)length, BOTH, MAP_SHARED, shared_fd, 0);
	if (there == MAP_FAILED)
		return -errno;
	morsel_fill(there, PAGES, OWN);
	return 0;
}

static long unmap_there(long length)
{
	return munmap(there, (size_t)length);
}

static long faults_there(long unused)
{
	(void)unused;
	return (long)morsel_count(there, 1, OWN);
}

/* True if nothing is there for it. */
static long finds_nothing_there(long unused)
{
	(void)unused;
	return probe_read(there) == FAULTED && !probe_write(there, OTHER);
}

/* Who may not, or not yet. */
static void refused(void)
{
	int fd = morsel_make_of(GIB, GIB), reader = morsel_reader(fd);
	struct stranger other;
	char *p;

	shared_fd = fd;
	stranger_start(&other);
	ENSURE(destroy(fd, 2) == -EINVAL, "an unknown flag");
	ENSURE(destroy(fd, MORSEL_FORCE | 0x80000000U) == -EINVAL,
	       "an unknown flag");
	REFUSED(ioctl(fd, MORSEL_IOC_DESTROY, 8), EFAULT);
	ENSURE(destroy(reader, 0) == -EPERM, "by a reader");
	ENSURE(destroy(reader, MORSEL_FORCE) == -EPERM, "by a reader");
	p = morsel_map(fd, GIB, BOTH);
	ENSURE(destroy(fd, 0) == -EBUSY, "mapped here, and not linked");
	morsel_fill(p, PAGES, OWN);
	ENSURE(destroy(fd, 0) == -EBUSY, "mapped here");
	p = mremap(p, GIB, GIB, MREMAP_MAYMOVE | MREMAP_FIXED, p - 4 * GIB);
	ENSURE(p != MAP_FAILED, "mremap: %m");
	ENSURE(destroy(fd, 0) == -EBUSY, "mapped elsewhere");
	ENSURE(!stranger_call(&other, map_there, GIB), "not mapped there");
	MUST(munmap(p, GIB));
	ENSURE(destroy(fd, 0) == -EBUSY, "mapped by another process");
	ENSURE(stranger_call(&other, faults_there, 0) == 1, "it has lost it");
	ENSURE(!stranger_call(&other, unmap_there, GIB), "munmap");
	ENSURE(!destroy(fd, 0), "mapped by nobody");
	ENSURE(destroy(fd, 0) == -ENODEV, "twice");
	stranger_stop(&other);
}

/* Each call has a name for it, and changes nothing. */
static void gone_of(int fd)
{
	struct morsel_geometry g = { .unit = GIB, .base = PAGE };
	int punch = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
	char byte = 1;

	REFUSED(ftruncate(fd, UNIT), ENODEV);
	REFUSED(ftruncate(fd, 0), ENODEV);
	REFUSED(pread(fd, &byte, 1, 0), ENODEV);
	REFUSED(pwrite(fd, &byte, 1, 0), ENODEV);
	REFUSED(lseek(fd, 0, SEEK_DATA), ENODEV);
	REFUSED(fallocate(fd, 0, 0, UNIT), ENODEV);
	REFUSED(fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, UNIT), ENODEV);
	REFUSED(fallocate(fd, punch, 0, UNIT), ENODEV);
	REFUSED(mmap(NULL, GIB, BOTH, MAP_SHARED, fd, 0), ENODEV);
	REFUSED(ioctl(fd, MORSEL_IOC_GEOMETRY, &g), ENODEV);
	ENSURE(morsel_populate(fd, 0, 0) == -ENODEV &&
	       morsel_populate(fd, 0, UNIT) == -ENODEV, "populate");
	ENSURE(morsel_depopulate(fd, 0, 0) == -ENODEV &&
	       morsel_depopulate(fd, 0, UNIT) == -ENODEV, "depopulate");
	ENSURE(destroy(fd, MORSEL_FORCE) == -ENODEV, "twice");
	ENSURE(!morsel_stat(fd).pages, "it has pages");
}

static void gone(void)
{
	int fd = morsel_make_of(GIB, GIB);
	char *p = morsel_map(fd, GIB, BOTH);

	morsel_fill(p, PAGES, OWN);
	ENSURE(!destroy(fd, MORSEL_FORCE), "destroy");
	gone_of(fd);
	REFUSED(madvise(p, UNIT, MADV_REMOVE), ENODEV);
	ENSURE(madvise(p, UNIT, MADV_POPULATE_WRITE), "populated");
	ENSURE(!morsel_stat(fd).pages, "it has pages");
	MUST(munmap(p, GIB));
	/* One that nobody maps, and one that has never had a size. */
	fd = morsel_make_of(UNIT, GIB);
	ENSURE(!destroy(fd, 0), "destroy");
	gone_of(fd);
	fd = morsel_make_of(0, 0);
	ENSURE(!destroy(fd, 0), "destroy");
	gone_of(fd);
}

static void start(void)
{
	need_cpus(2);
	pin_to_cpu(0);
	peer_start(1);
}

/* The peer holds the pages; others map them, have not touched them yet, or are forked later. */
static void held_of(size_t unit)
{
	int fd = morsel_make_of(unit, unit), status;
	struct stranger other;
	char *p, *fresh;
	pid_t pid;

	shared_fd = fd;
	stranger_start(&other);
	ENSURE(!stranger_call(&other, map_there, (long)unit), "not mapped there");
	start();
	p = morsel_map(fd, unit, BOTH);
	fresh = morsel_map(fd, unit, PROT_READ);
	morsel_fill(p, PAGES, OWN);
	peer_touch(p, PAGES);
	ENSURE(peer_count(p, PAGES, OWN) == PAGES, "the peer does not read it");
	ENSURE(!destroy(fd, MORSEL_FORCE), "destroy");
	checker_forbid(p, PAGES);
	ENSURE(peer_count(p, PAGES, FAULTED) == PAGES,
	       "the peer still finds something");
	checker_allow(p, PAGES);
	ENSURE(!peer_write(p, PAGES, OTHER), "the peer writes");
	ENSURE(probe_read(fresh) == FAULTED, "who comes later finds something");
	ENSURE(stranger_call(&other, finds_nothing_there, 0),
	       "another process finds something");
	pid = fork();
	MUST(pid);
	if (!pid) {
		*(volatile char *)p = 1;
		_exit(0);
	}
	MUST(waitpid(pid, &status, 0));
	ENSURE(WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS,
	       "a child ends with %#x", status);
	p = mremap(p, unit, unit, MREMAP_MAYMOVE | MREMAP_FIXED, p - 4 * unit);
	ENSURE(p != MAP_FAILED, "mremap: %m");
	ENSURE(probe_read(p) == FAULTED, "something is where it has moved");
	MUST(mprotect(p, unit, PROT_READ));
	MUST(munmap(p, unit));
	MUST(munmap(fresh, unit));
	ENSURE(!stranger_call(&other, unmap_there, (long)unit), "munmap");
	ENSURE(!morsel_stat(fd).mappings && !morsel_stat(fd).pages,
	       "something is left");
	stranger_stop(&other);
}

static void held(void)
{
	held_of(GIB);
}

static void held_small(void)
{
	held_of(UNIT);
}

static void held_512(void)
{
	held_of(512 * GIB);
}

/* Nothing waits: what is left are the root, and what is above tables of pages. */
static void at_once(void)
{
	int fd = morsel_make_of(GIB, GIB);
	char *p = morsel_map(fd, GIB, BOTH);
	struct morsel_stat stat;

	ENSURE(!morsel_populate(fd, 0, 64 * UNIT), "populate");
	morsel_fill(p, PAGES, OWN);
	stat = morsel_stat(fd);
	ENSURE(stat.pages == 64 * 512 && stat.tables == 65, "%llu tables",
	       (unsigned long long)stat.tables);
	ENSURE(!destroy(fd, MORSEL_FORCE), "destroy");
	stat = morsel_stat(fd);
	ENSURE(!stat.pages && stat.tables == 1, "%llu pages, %llu tables",
	       (unsigned long long)stat.pages,
	       (unsigned long long)stat.tables);
}

/* Who had a page keeps it. */
static void pinned(void)
{
	int fd = morsel_make_of(GIB, GIB), ends[2];
	char *p = morsel_map(fd, GIB, BOTH), byte[PAGE];
	struct iovec v = { p, PAGE };

	morsel_fill(p, PAGES, OWN);
	MUST(pipe(ends));
	ENSURE(vmsplice(ends[1], &v, 1, 0) == PAGE, "vmsplice: %m");
	ENSURE(!destroy(fd, MORSEL_FORCE), "destroy");
	ENSURE(!morsel_stat(fd).pages, "pages that others have are counted");
	ENSURE(read(ends[0], byte, PAGE) == PAGE && byte[0] == 0x5a,
	       "the pipe has something else");
	v.iov_base = p;
	ENSURE(vmsplice(ends[1], &v, 1, 0) == -1, "a page that is gone");
}

#define DELAY_MS	800

static int populate_late(char *at)
{
	(void)at;
	return morsel_populate(shared_fd, PAGE, PAGE) ?: 1;
}

/* Destroyed while somebody has found the table, and has not locked it yet. */
static void against(int (*act)(char *at), int expected)
{
	size_t units[] = { UNIT, GIB }, i;

	for (i = 0; i < 2; i++) {
		struct late l;
		char *p;
		int came;

		shared_fd = morsel_make_of(UNIT, units[i]);
		p = morsel_map(shared_fd, units[i], BOTH);
		morsel_fill(p, 1, OTHER);
		late_begin(&l, act, p + PAGE, DELAY_MS);
		ENSURE(!destroy(shared_fd, MORSEL_FORCE), "destroy");
		came = late_end(&l);
		ENSURE(came == expected, "it has come to %d", came);
		ENSURE(!morsel_stat(shared_fd).pages, "%llu pages",
		       (unsigned long long)morsel_stat(shared_fd).pages);
	}
}

static void fault_against(void)
{
	against(late_write, -1);
}

static void populate_against(void)
{
	against(populate_late, -ENODEV);
}

/* One of both: it is mapped, or it is destroyed. */
static atomic_int result;

static void *map_once(void *fd)
{
	char *p = mmap(NULL, GIB, BOTH, MAP_SHARED, *(int *)fd, 0);

	result = p == MAP_FAILED ? -errno : 1;
	return NULL;
}

#define ROUNDS	500

static void map_against(void)
{
	int i, both = 0, mapped = 0;

	for (i = 0; i < ROUNDS; i++) {
		int fd = morsel_make_of(GIB, GIB), err;
		pthread_t other;

		ENSURE(!pthread_create(&other, NULL, map_once, &fd), "no thread");
		err = destroy(fd, 0);
		pthread_join(other, NULL);
		ENSURE(!err || err == -EBUSY, "destroy: error %d", err);
		ENSURE(result == 1 || result == -ENODEV, "mmap: %d", result);
		both += !err && result == 1;
		mapped += result == 1;
		close(fd);
	}
	ktap_note("%d of %d were mapped first", mapped, ROUNDS);
	ENSURE(!both, "%d were mapped and destroyed", both);
}

/* Everything at once, until each of them finds out. */
/* Calls fail from the first moment on, accesses when all have flushed. */
static bool goes(const char *p)
{
	double end = seconds() + 60;

	while (probe_read(p) != FAULTED)
		if (seconds() > end)
			return false;
	return true;
}

static void storm_process(int fd, unsigned int seed)
{
	char *p = mmap(NULL, GIB, BOTH, MAP_SHARED, fd, 0), *q;
	uint64_t word;
	int i;

	if (p == MAP_FAILED)
		_exit(errno != ENODEV);
	for (i = 0; i < 1000000; i++) {
		uint64_t at = (seed + (unsigned int)i * 7919) % 4096 * PAGE;

		probe_write(p + at, OWN);
		word = probe_read(p + at);
		if (word && word != OWN && word != FAULTED)
			_exit(2);
		switch (i % 5) {
		case 0:
			if (morsel_populate(fd, at, 300 * PAGE) == -ENODEV)
				_exit(!goes(p + at));
			break;
		case 1:
			morsel_depopulate(fd, at, 200 * PAGE);
			break;
		case 2:
			q = mremap(p, GIB, GIB, MREMAP_MAYMOVE);
			if (q == MAP_FAILED)
				_exit(3);
			p = q;
			break;
		case 3:
			q = mmap(NULL, GIB, PROT_READ, MAP_SHARED, fd, 0);
			if (q == MAP_FAILED)
				break;
			probe_read(q + at);
			munmap(q, GIB);
			break;
		case 4:
			if (i % 50 != 4)
				break;
			if (!fork()) {
				probe_write(p + at, OWN);
				_exit(0);
			}
			wait(NULL);
			break;
		}
	}
	_exit(4);
}

#define STORMS	20

static void storm(void)
{
	long before = morsel_sysfs("pages");
	unsigned int i, k;
	int status;

	for (i = 0; i < STORMS; i++) {
		int fd = morsel_make_of(GIB, GIB);

		for (k = 0; k < 3; k++)
			if (!fork())
				storm_process(fd, i * 3 + k);
		sleep_ms(20 + i * 7);
		ENSURE(!destroy(fd, MORSEL_FORCE), "destroy");
		for (k = 0; k < 3; k++) {
			MUST(wait(&status));
			ENSURE(!status, "a process ends with %#x", status);
		}
		ENSURE(!morsel_stat(fd).pages && !morsel_stat(fd).mappings,
		       "%llu pages, %llu mappings",
		       (unsigned long long)morsel_stat(fd).pages,
		       (unsigned long long)morsel_stat(fd).mappings);
		close(fd);
	}
	sleep_ms(100);
	ENSURE(morsel_sysfs("pages") <= before, "%ld pages are left",
	       morsel_sysfs("pages") - before);
}

int main(int argc, char **argv)
{
	static const struct ktap_case cases[] = {
		{ "refused", refused, 0 },
		{ "gone", gone, 0 },
		{ "held", held, 0 },
		{ "held_small", held_small, 0 },
		{ "held_512", held_512, 0 },
		{ "at_once", at_once, 0 },
		{ "pinned", pinned, 0 },
		{ "fault_against", fault_against, 0 },
		{ "populate_against", populate_against, 0 },
		{ "map_against", map_against, 0 },
		{ "storm", storm, 300 },
	};

	return ktap_main(argc, argv, cases, KTAP_COUNT(cases));
}
