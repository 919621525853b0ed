// SPDX-License-Identifier: GPL-2.0
/*
 * What goes by one entry (morsel_gib.c), while others walk there all the time, or do everything at
 * once.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gib.h"
#include "ktap.h"
#include "map.h"
#include "morsels.h"
#include "peer.h"

#define OWN	WORD(0x5a)
#define BOTH	(PROT_READ | PROT_WRITE)
#define PAGES	8

/* mm/gup_test.h: the debug kernel walks for each page of a range, without faults. */
struct gup_test {
	uint64_t get_usec, put_usec, addr, size;
	uint32_t pages_per_call, gup_flags, test_flags, which_pages[8];
};

#define GUP_BASIC_TEST	_IOWR('g', 4, struct gup_test)
#define FOLL_NOFAULT	(1U << 5)
/* Of one call. Two reads of an entry are a few instructions apart, so it needs many. */
#define WALKS		32

static void walk_by_smaps(pid_t pid)
{
	char path[40];

	snprintf(path, sizeof(path), "/proc/%d/smaps_rollup", pid);
	read_whole(path);
}

static void walk_by_reading(pid_t pid, char *p)
{
	static char words[WALKS * PAGE];
	struct iovec there = { p, sizeof(words) }, here = { words, sizeof(words) };
	unsigned int i;

	if (process_vm_readv(pid, &here, 1, &there, 1, 0) < 0 && errno != EFAULT)
		_exit(2);
	/* The kernel copies byte by byte, so a word may be half of it. */
	for (i = 0; i < sizeof(words); i++)
		if (words[i] && words[i] != (char)OWN)
			ktap_fail("byte %u: %#x", i, words[i]);
}

static void walk_by_gup(pid_t pid, char *p)
{
	static int fd = -2;
	struct gup_test test = {
		.addr = (uintptr_t)p, .size = WALKS * PAGE, .pages_per_call = WALKS,
		.gup_flags = FOLL_NOFAULT,
	};

	if (fd == -2)
		fd = open("/sys/kernel/debug/gup_test", O_RDWR | O_CLOEXEC);
	if (fd < 0)
		walk_by_reading(pid, p);
	else
		ioctl(fd, GUP_BASIC_TEST, &test);
}

/* Walks by mmap_lock, for ever. */
__attribute__((noreturn))
static void look(pid_t pid, char *p, int cpu)
{
	unsigned int i;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	pin_to_cpu(cpu);
	/* So that the root is linked. */
	probe_read(p);
	for (i = 0;; i++) {
		walk_by_gup(pid, p);
		if (i % 32 == 30)
			walk_by_reading(pid, p);
		if (i % 32 == 31)
			walk_by_smaps(pid);
	}
}

#define LOOKS	3

/* Who walks there by mmap_lock finds a table in each entry that led to one. */
static void walked(void)
{
	int fd = morsel_make_of(gib_unit, gib_unit), i, status;
	char *p = morsel_map(fd, gib_unit, BOTH);
	double end = seconds_until_end(10);
	pid_t pid = getpid(), looks[LOOKS];
	unsigned long rounds;
	int nr = online_cpus() - 1;

	need_cpus(2);
	pin_to_cpu(0);
	nr = nr < LOOKS ? nr : LOOKS;
	for (i = 0; i < nr; i++) {
		looks[i] = (pid_t)MUST(fork());
		if (!looks[i])
			look(pid, p, 1 + i);
	}
	for (rounds = 0; seconds() < end; rounds++) {
		ENSURE(!morsel_populate(fd, 0, WALKS * PAGE), "populate");
		*(volatile uint64_t *)p = OWN;
		ENSURE(!morsel_depopulate(fd, 0, gib_part), "depopulate");
		ENSURE(!waitpid(-1, &status, WNOHANG), "a process ends with %#x", status);
	}
	for (i = 0; i < nr; i++) {
		kill(looks[i], SIGKILL);
		MUST(waitpid(looks[i], NULL, 0));
	}
	ktap_note("%lu rounds, %llu cuts", rounds, (unsigned long long)morsel_stat(fd).cuts);
	MUST(fsync(fd));
	ENSURE(morsel_stat(fd).pages <= WALKS, "%llu pages",
	       (unsigned long long)morsel_stat(fd).pages);
}

/* Processes with a part of their own each, and one in which all do everything. */
#define USERS	4

/* Zero, or what all write: perhaps half of it, as the kernel copies byte by byte. */
static bool is_known(uint64_t word)
{
	return !(word & ~OWN) && (word & OWN & WORD(0x02)) * 0x2d == word;
}

static bool use_common(int fd, char *p, unsigned int *seed)
{
	uint64_t at = (uint64_t)(rand_r(seed) % 8) * 50 * UNIT + rand_r(seed) % 512 * PAGE;
	uint64_t word = OWN;

	switch (rand_r(seed) % 7) {
	case 0:
		return !morsel_depopulate(fd, 0, gib_part);
	case 1:
		return !morsel_leave(fd, 0, gib_part);
	case 2:
		return !morsel_depopulate(fd, at & ~(UNIT - 1), 2 * UNIT);
	case 3:
		return !morsel_populate(fd, at, 20 * PAGE);
	case 4:
		return pwrite(fd, &word, 8, (off_t)at) == 8;
	case 5:
		return pread(fd, &word, 8, (off_t)at) == 8 && is_known(word);
	default:
		word = probe_read(p + at);
		return is_known(word) && probe_write(p + at, OWN);
	}
}

static bool use_own(int fd, char *p, uint64_t at, unsigned int *seed)
{
	uint64_t more = (uint64_t)(rand_r(seed) % 100) * UNIT, word = WORD(rand_r(seed) % 255 + 1);
	int err;

	morsel_fill(p + at + more, PAGES, word);
	if (morsel_count(p + at + more, PAGES, word) != PAGES)
		return false;
	err = rand_r(seed) % 2 ? morsel_leave(fd, at, gib_part) :
				 morsel_depopulate(fd, at, gib_part);
	return !err && morsel_count(p + at + more, PAGES, 0) == PAGES;
}

__attribute__((noreturn))
static void use(int fd, unsigned int number, double end)
{
	char *p = morsel_map(fd, gib_unit, BOTH);
	unsigned int seed = number + 1, i;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (i = 0; seconds() < end; i++) {
		if (!use_common(fd, p, &seed))
			_exit(2);
		if (!use_own(fd, p, (number + 1) * gib_part, &seed))
			_exit(3);
		if (i % 16 == 15 && fsync(fd))
			_exit(4);
	}
	_exit(0);
}

static void storm(void)
{
	double end = seconds_until_end(10);
	int fd = morsel_make_of(gib_unit, gib_unit), status;
	unsigned int i;
	uint64_t most;

	for (i = 0; i < USERS; i++)
		if (!MUST(fork()))
			use(fd, i, end);
	for (i = 0; i < USERS; i++) {
		MUST(wait(&status));
		ENSURE(!status, "a process ends with %#x", status);
	}
	ENSURE(!morsel_depopulate(fd, 0, gib_unit), "depopulate");
	MUST(fsync(fd));
	ENSURE(!morsel_stat(fd).pages && !morsel_stat(fd).waiting, "%llu pages, %llu wait",
	       (unsigned long long)morsel_stat(fd).pages,
	       (unsigned long long)morsel_stat(fd).waiting);
	ktap_note("%llu cuts, %llu tables", (unsigned long long)morsel_stat(fd).cuts,
		  (unsigned long long)morsel_stat(fd).tables);
	/* For a part one, and as many as waited at a time, or were in the hands of somebody. */
	most = (uint64_t)(USERS + 1) *
	       (gib_tables * (1 + USERS) + morsel_sysfs("limit") / 8 / FULL);
	ENSURE(morsel_stat(fd).tables <= ROOT + most, "%llu tables",
	       (unsigned long long)morsel_stat(fd).tables);
}

IN_256_TIB(walked)
IN_256_TIB(storm)

int main(int argc, char **argv)
{
	static const struct ktap_case cases[] = {
		{ "walked", walked, 300 },
		{ "walked_256", walked_256, 300 },
		{ "storm", storm, 300 },
		{ "storm_256", storm_256, 300 },
	};

	return ktap_main(argc, argv, cases, KTAP_COUNT(cases));
}
