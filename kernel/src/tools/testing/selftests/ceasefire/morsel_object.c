// SPDX-License-Identifier: GPL-2.0
/*
 * Morsels as objects and files: how they are laid out, what goes in comes out, who pays,
 * what limits say, and that all memory comes back. And the error of each misuse.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "group.h"
#include "ktap.h"
#include "morsels.h"
#include "peer.h"
#include "stranger.h"

#define OWN	WORD(0x5a)

static void flags(void)
{
	int fd;

	close(morsel_make(UNIT));
	REFUSED(memfd_create("case", MFD_MORSEL | MFD_HUGETLB), EINVAL);
	REFUSED(memfd_create("case", MFD_MORSEL | MFD_ALLOW_SEALING), EINVAL);
	REFUSED(memfd_create("case", MFD_MORSEL | (22U << 26)),
		EINVAL);
	REFUSED(memfd_create("case", MFD_MORSEL | 0x40000000U), EINVAL);
	REFUSED(memfd_create((const char *)8, MFD_MORSEL), EFAULT);
	fd = memfd_create("case", MFD_MORSEL | MFD_CLOEXEC);
	ENSURE(fcntl(fd, F_GETFD) == FD_CLOEXEC, "it stays over exec");
	REFUSED(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE), EINVAL);
}

static void not_allowed(void)
{
	const char *path = "/sys/kernel/mm/ceasefire/morsel/enabled";

	close(morsel_make(UNIT));
	if (!write_text(path, "never"))
		ktap_skip("%s: %m", path);
	errno = 0;
	if (memfd_create("case", MFD_MORSEL) != -1 || errno != EPERM) {
		write_text(path, "ask");
		ktap_fail("made although root does not allow it: %m");
	}
	ENSURE(!write_text(path, "always"), "there is always something to ask");
	ENSURE(write_text(path, "ask"), "%s: %m", path);
	close(morsel_make(UNIT));
}

/* The smallest unit of which 511 suffice, or what was asked for. */
static void layout(void)
{
	struct morsel_geometry g = { .unit = GIB, .base = PAGE };
	int fd;

	ENSURE(morsel_stat(morsel_make(1)).unit == UNIT, "1 byte");
	ENSURE(morsel_stat(morsel_make(511 * UNIT)).unit == UNIT, "511 units");
	ENSURE(morsel_stat(morsel_make(511 * UNIT + 1)).unit == GIB, "GiB");
	ENSURE(morsel_stat(morsel_make(511 * GIB)).unit == GIB, "511 GiB");
	ENSURE(morsel_stat(morsel_make(511 * GIB + 1)).unit == 512 * GIB,
	       "512 GiB");
	fd = morsel_make_of(4 * MIB, GIB);
	ENSURE(morsel_stat(fd).unit == GIB, "as asked");
	REFUSED(ioctl(fd, MORSEL_IOC_GEOMETRY, &g), EBUSY);
	REFUSED(ftruncate(fd, 512 * GIB), EFBIG);
	fd = memfd_create("case", MFD_MORSEL);
	if (morsel_nr_units() > 3) {
		int large = morsel_make(511 * 512 * GIB + 1);

		ENSURE(morsel_stat(large).unit == 256 * TIB, "256 TiB");
	} else {
		g.unit = 256 * TIB;
		REFUSED(ioctl(fd, MORSEL_IOC_GEOMETRY, &g), EOPNOTSUPP);
		REFUSED(ftruncate(fd, 511 * 512 * GIB + 1), EFBIG);
	}
	g.unit = 512 * 256 * TIB;
	REFUSED(ioctl(fd, MORSEL_IOC_GEOMETRY, &g), EINVAL);
	g.unit = 4 * MIB;
	REFUSED(ioctl(fd, MORSEL_IOC_GEOMETRY, &g), EINVAL);
	g.unit = GIB;
	g.base = 3 * PAGE;
	REFUSED(ioctl(fd, MORSEL_IOC_GEOMETRY, &g), EINVAL);
	g.base = PAGE;
	g.flags = 2;
	REFUSED(ioctl(fd, MORSEL_IOC_GEOMETRY, &g), EINVAL);
	g.flags = 0;
	g.address = UNIT;
	REFUSED(ioctl(fd, MORSEL_IOC_GEOMETRY, &g), EINVAL);
	REFUSED(ioctl(fd, 0x1234, &g), ENOTTY);
}

/* Where the program asked for it to be mapped. */
static void address(void)
{
	struct morsel_geometry g = {
		.unit = UNIT, .base = PAGE, .address = 0x200000000000UL,
	};
	int fd = morsel_make(0);
	char *p;

	MUST(ioctl(fd, MORSEL_IOC_GEOMETRY, &g));
	MUST(ftruncate(fd, 2 * UNIT));
	p = morsel_map(fd, 2 * UNIT, PROT_READ | PROT_WRITE);
	ENSURE((uintptr_t)p == g.address, "it is at %p", (void *)p);
	p = morsel_map(fd, 2 * UNIT, PROT_READ | PROT_WRITE);
	ENSURE((uintptr_t)p != g.address && !((uintptr_t)p % UNIT),
	       "the second is at %p", (void *)p);
}

/* read() and write(), a mapping, and both together. */
static void contents(void)
{
	const uint64_t *units = morsel_units;
	char one[3 * PAGE], two[3 * PAGE], *p;
	size_t i;

	memset(one, 0x33, sizeof(one));
	for (i = 0; i < morsel_nr_units(); i++) {
		uint64_t size = 2 * units[i] - 100;
		uint64_t at = units[i] - PAGE - 10;
		int fd = morsel_make_of(size, units[i]);

		ENSURE(pread(fd, two, sizeof(two), (off_t)at) == sizeof(two) &&
		       !two[0] && !two[sizeof(two) - 1], "a hole: %m");
		ENSURE(!morsel_stat(fd).pages, "a read makes pages");
		ENSURE(pwrite(fd, one, sizeof(one), (off_t)at) == sizeof(one),
		       "pwrite: %m");
		ENSURE(pread(fd, two, sizeof(two), (off_t)at) == sizeof(two) &&
		       !memcmp(one, two, sizeof(one)), "other data");
		p = morsel_map(fd, 2 * units[i], PROT_READ | PROT_WRITE);
		ENSURE(!memcmp(p + at, one, sizeof(one)), "mapped: other data");
		ENSURE(!p[at - 1] && !p[at + sizeof(one)], "more than that");
		p[at + 5] = 7;
		ENSURE(pread(fd, two, 10, (off_t)at) == 10 && two[5] == 7,
		       "what was written is not read");
		ENSURE(pread(fd, two, PAGE, (off_t)size - 10) == 10, "the end");
		ENSURE(!pread(fd, two, PAGE, (off_t)size), "behind the end");
		ENSURE(pwrite(fd, one, PAGE, (off_t)size - 10) == 10, "the end");
		REFUSED(pwrite(fd, one, PAGE, (off_t)size), ENOSPC);
		MUST(munmap(p, 2 * units[i]));
		close(fd);
	}
}

static void seek(void)
{
	int fd = morsel_make_of(3 * GIB, GIB);
	off_t at = (off_t)(GIB + 3 * PAGE);

	REFUSED(lseek(fd, 0, SEEK_DATA), ENXIO);
	ENSURE(!lseek(fd, 0, SEEK_HOLE), "no hole at the begin");
	MUST(pwrite(fd, "x", 1, at));
	ENSURE(lseek(fd, 0, SEEK_DATA) == at, "data: %ld",
	       (long)lseek(fd, 0, SEEK_DATA));
	ENSURE(lseek(fd, at + 5, SEEK_DATA) == at + 5, "within it");
	ENSURE(lseek(fd, at, SEEK_HOLE) == at + (off_t)PAGE, "its end");
	REFUSED(lseek(fd, at + PAGE, SEEK_DATA), ENXIO);
	REFUSED(lseek(fd, 3 * GIB, SEEK_HOLE), ENXIO);
	MUST(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, at,
		       PAGE));
	REFUSED(lseek(fd, 0, SEEK_DATA), ENXIO);
}

#define CUTS	10

/* Whole pages go, and the ends become zeroes. */
static void bytes(void)
{
	static const struct morsel_range cuts[CUTS] = {
		{ 10, 5 }, { 0, PAGE }, { 1, 2 * PAGE }, { PAGE - 1, 2 },
		{ PAGE - 1, PAGE + 2 }, { 3 * PAGE, UNIT }, { 0, 2 * UNIT },
		{ UNIT - 5, 10 }, { 2 * UNIT - 1, 1 }, { 100, 2 * UNIT - 200 },
	};
	static char now[2 * UNIT], wanted[2 * UNIT];
	const uint64_t *units = morsel_units;
	size_t i, u;

	for (u = 0; u < morsel_nr_units(); u++) {
		int fd = morsel_make_of(2 * UNIT, units[u]);
		char *p = morsel_map(fd, units[u] > UNIT ? units[u] : 2 * UNIT,
				     PROT_READ | PROT_WRITE);

		for (i = 0; i < CUTS; i++) {
			memset(p, 0x5a, 2 * UNIT);
			memset(wanted, 0x5a, sizeof(wanted));
			memset(wanted + cuts[i].offset, 0, cuts[i].length);
			ENSURE(!morsel_depopulate(fd, cuts[i].offset,
						  cuts[i].length), "%zu", i);
			MUST(pread(fd, now, sizeof(now), 0));
			ENSURE(!memcmp(now, wanted, sizeof(now)),
			       "cut %zu: other contents", i);
			ENSURE(!memcmp(p, wanted, sizeof(now)),
			       "cut %zu: other contents are mapped", i);
		}
		close(fd);
	}
}

static void vectors(void)
{
	struct morsel_range ranges[3] = {
		{ 0, PAGE }, { 5 * PAGE, PAGE }, { UNIT, UNIT },
	};
	static struct morsel_range many[MORSEL_RANGES_MAX + 1];
	struct morsel_vec vec = { 0 };
	int fd = morsel_make_of(2 * UNIT, GIB), reader = morsel_reader(fd);
	uint64_t done = 99;

	ENSURE(!morsel_vector(fd, MORSEL_IOC_POPULATE, ranges, 3, &done) &&
	       done == 3, "populate");
	ENSURE(morsel_stat(fd).pages == 514, "%llu pages",
	       (unsigned long long)morsel_stat(fd).pages);
	ENSURE(!morsel_vector(fd, MORSEL_IOC_DEPOPULATE, ranges, 3, &done) &&
	       done == 3, "depopulate");
	ENSURE(!morsel_stat(fd).pages, "pages are left");
	ENSURE(morsel_vector(fd, MORSEL_IOC_DEPOPULATE, many,
			     MORSEL_RANGES_MAX + 1, &done) == -E2BIG, "E2BIG");
	ENSURE(!morsel_vector(fd, MORSEL_IOC_DEPOPULATE, many,
			      MORSEL_RANGES_MAX, &done), "as many as can be");
	ENSURE(!morsel_vector(fd, MORSEL_IOC_DEPOPULATE, many, 0, &done),
	       "nothing");
	MUST(ftruncate(fd, 2 * UNIT));
	ranges[2].length = UNIT + 1;
	ENSURE(morsel_vector(fd, MORSEL_IOC_DEPOPULATE, ranges, 3, &done) ==
	       -EINVAL, "beyond the end");
	ranges[2] = (struct morsel_range){ UNIT, (uint64_t)-PAGE };
	ENSURE(morsel_vector(fd, MORSEL_IOC_POPULATE, ranges, 3, &done) ==
	       -EINVAL, "it wraps");
	ENSURE(!morsel_stat(fd).pages, "a part was done");
	vec.flags = 1;
	REFUSED(ioctl(fd, MORSEL_IOC_DEPOPULATE, &vec), EINVAL);
	vec = (struct morsel_vec){ .ranges = 8, .nr = 1 };
	REFUSED(ioctl(fd, MORSEL_IOC_DEPOPULATE, &vec), EFAULT);
	ENSURE(!morsel_populate(fd, 0, UNIT), "populate");
	ENSURE(morsel_depopulate(reader, 0, UNIT) == -EPERM, "by a reader");
	ENSURE(morsel_populate(reader, 0, UNIT) == -EPERM, "by a reader");
	ENSURE(morsel_stat(fd).pages == 512, "a reader takes pages");
}

static void calls_of_files(void)
{
	int fd = morsel_make_of(UNIT, GIB), reader = morsel_reader(fd);
	int punch = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
	struct stat st;

	MUST(fallocate(fd, 0, 0, UNIT));
	MUST(fstat(fd, &st));
	ENSURE(st.st_blocks == 4096 && st.st_size == UNIT, "%ld blocks",
	       (long)st.st_blocks);
	MUST(fallocate(fd, punch, 0, UNIT));
	ENSURE(!morsel_stat(fd).pages, "pages are left");
	MUST(fallocate(fd, punch, UNIT - PAGE, UNIT));
	MUST(fallocate(fd, 0, UNIT, UNIT));
	MUST(fstat(fd, &st));
	ENSURE(st.st_size == 2 * UNIT, "it has not grown");
	REFUSED(fallocate(fd, FALLOC_FL_KEEP_SIZE, UNIT, 2 * UNIT), EINVAL);
	REFUSED(fallocate(fd, FALLOC_FL_ZERO_RANGE, 0, UNIT), EOPNOTSUPP);
	REFUSED(fallocate(fd, FALLOC_FL_COLLAPSE_RANGE, 0, UNIT), EOPNOTSUPP);
	REFUSED(fallocate(reader, punch, 0, UNIT), EBADF);
	MUST(fsync(fd));
}

/* Smaller and larger again: what was behind the end is gone. */
static void sizes(void)
{
	uint64_t units[] = { UNIT, GIB };
	size_t i;

	for (i = 0; i < 2; i++) {
		int fd = morsel_make_of(2 * UNIT, units[i]);
		size_t len = units[i] > UNIT ? units[i] : 2 * UNIT;
		char *p = morsel_map(fd, len, PROT_READ | PROT_WRITE);

		morsel_fill(p, 1024, OWN);
		MUST(ftruncate(fd, 10 * PAGE + 4));
		ENSURE(morsel_stat(fd).pages == 11, "%llu pages",
		       (unsigned long long)morsel_stat(fd).pages);
		ENSURE(probe_read(p + 10 * PAGE) == (OWN & 0xffffffff),
		       "the last page is not cut");
		ENSURE(probe_read(p + 11 * PAGE) == FAULTED &&
		       !probe_write(p + 11 * PAGE, OWN), "behind the end");
		MUST(ftruncate(fd, 2 * UNIT));
		ENSURE(!probe_read(p + 11 * PAGE), "it has come back");
		MUST(ftruncate(fd, 0));
		ENSURE(!morsel_stat(fd).pages, "pages are left");
		ENSURE(probe_read(p) == FAULTED, "it has nothing");
		MUST(munmap(p, len));
		close(fd);
	}
}

/* Free pages, with those that CPUs keep for themselves. */
static long free_pages(void)
{
	long sum = read_kb("/proc/meminfo", "MemFree") / 4, count;
	FILE *zones = fopen("/proc/zoneinfo", "r");
	char line[200];

	ENSURE(zones, "zoneinfo: %m");
	while (fgets(line, sizeof(line), zones))
		if (sscanf(line, " count: %ld", &count) == 1)
			sum += count;
	fclose(zones);
	return sum;
}

/* Frames that wait for RCU, or with a CPU. */
static void settle(void)
{
	write_text("/proc/sys/vm/drop_caches", "3");
	sleep_ms(1500);
	/* CPUs count for themselves as well. */
	write_text("/proc/sys/vm/stat_refresh", "1");
}

#define ROUNDS	100
#define PARTS	5
#define NEAR	64

static void populate_and_depopulate(int fd, char *p)
{
	int round;

	for (round = 0; round < ROUNDS; round++) {
		uint64_t at = (uint64_t)(round % PARTS) * 100 * MIB + PAGE;
		size_t len = (size_t)(1 + round % PARTS) * MIB;

		if (round % 2)
			ENSURE(!morsel_populate(fd, at, len), "populate");
		morsel_fill(p + at, len / PAGE, OWN);
		ENSURE(!morsel_depopulate(fd, at, len), "depopulate");
	}
}

/* The most times that all of it is done; what is lost is lost each time. */
#define PASSES	6

/*
 * However often: what is depopulated is free. Compared with what is free when all of it was
 * done before, since the kernel's own caches grow by some hundred pages at first, and now and
 * then later.
 */
static void comes_back(void)
{
	int fd = morsel_make_of(GIB, GIB), pass;
	char *p = morsel_map(fd, GIB, PROT_READ | PROT_WRITE);
	long before, now = 0, total = 0;

	/* So does what reads the counters, for the first time. */
	for (pass = 0; pass < 3; pass++) {
		settle();
		free_pages();
	}
	for (pass = 0; pass < PASSES; pass++) {
		before = now;
		populate_and_depopulate(fd, p);
		settle();
		now = free_pages();
		total = morsel_sysfs("pages");
		/* Tables of which only a part went are still there. */
		ENSURE(!morsel_stat(fd).pages && total <= 32 &&
		       !vmstat("nr_morsel_pages"),
		       "%llu pages, %ld of all",
		       (unsigned long long)morsel_stat(fd).pages, total);
		if (pass && before - now <= NEAR)
			break;
	}
	ktap_note("%d rounds of %d parts: %ld of %ld free pages fewer than before",
		  ROUNDS, PARTS, before - now, before);
	ENSURE(pass < PASSES, "%ld of %ld pages are missing, %ld tables",
	       before - now, before, total);
}

/* And what is closed, with all in it. */
static void closed(void)
{
	long before = morsel_sysfs("pages");
	int fd = morsel_make_of(GIB, GIB);
	char *p = morsel_map(fd, GIB, PROT_READ | PROT_WRITE);

	morsel_fill(p, 1000, OWN);
	ENSURE(!morsel_populate(fd, 100 * MIB, 8 * MIB), "populate");
	ENSURE(vmstat("nr_morsel_pages") >= 3048, "%ld counted",
	       vmstat("nr_morsel_pages"));
	close(fd);
	ENSURE(morsel_count(p, 1000, OWN) == 1000, "gone with the descriptor");
	MUST(munmap(p, GIB));
	sleep_ms(100);
	ENSURE(morsel_sysfs("pages") == before, "%ld pages are left",
	       morsel_sysfs("pages") - before);
}

/* Populate in blocks, and free in blocks: no page is lost when others pin some. */
static void pinned(void)
{
	int fd = morsel_make_of(GIB, GIB), ends[2], i;
	char *p = morsel_map(fd, GIB, PROT_READ | PROT_WRITE), byte[PAGE];
	struct iovec v;

	ENSURE(!morsel_populate(fd, 0, UNIT), "populate");
	morsel_fill(p, 512, OWN);
	MUST(pipe(ends));
	for (i = 0; i < 8; i++) {
		v = (struct iovec){ p + i * 50 * PAGE, PAGE };
		ENSURE(vmsplice(ends[1], &v, 1, 0) == PAGE, "vmsplice: %m");
	}
	ENSURE(!morsel_depopulate(fd, 0, UNIT), "depopulate");
	ENSURE(!morsel_stat(fd).pages, "pages that others have are counted");
	morsel_fill(p, 512, WORD(0x11));
	for (i = 0; i < 8; i++)
		ENSURE(read(ends[0], byte, PAGE) == PAGE && byte[0] == 0x5a,
		       "the pipe has something else");
}

/* The creator's group pays, whoever populates; root's limit is for all. */
static void limit(void)
{
	long before = morsel_sysfs("limit");
	int fd = morsel_make_of(GIB, GIB);
	char *p = morsel_map(fd, GIB, PROT_READ | PROT_WRITE);
	struct morsel_range ranges[2] = { { 0, UNIT }, { UNIT, 100 * UNIT } };
	uint64_t done, read_word;
	int err;

	morsel_set("limit", morsel_sysfs("pages") + 2000);
	err = morsel_vector(fd, MORSEL_IOC_POPULATE, ranges, 2, &done);
	read_word = probe_read(p + 500 * MIB);
	morsel_set("limit", before);
	ENSURE(err == -ENOMEM && done == 1, "error %d, %llu ranges done", err,
	       (unsigned long long)done);
	ENSURE(read_word == FAULTED, "one more page");
	ENSURE(!probe_read(p + 500 * MIB), "none although there is room now");
}

static int shared_fd;

static long fill_shared(long pages)
{
	char *p = mmap(NULL, GIB, PROT_READ | PROT_WRITE, MAP_SHARED, shared_fd,
		       0);

	if (p == MAP_FAILED)
		return -errno;
	morsel_fill(p, (size_t)pages, OWN);
	return munmap(p, GIB);
}

/* Nobody is killed for what is left when all users are gone. */
static void charged(void)
{
	struct stranger other;
	long before;

	group_start();
	shared_fd = morsel_make_of(GIB, GIB);
	group_leave();
	before = group_value(GROUP_OWN, "memory.current");
	stranger_start(&other);
	ENSURE(!stranger_call(&other, fill_shared, 4096), "not filled");
	ENSURE(group_value(GROUP_OWN, "memory.current") - before >=
	       15 * (long)MIB, "%ld bytes are in the creator's group",
	       group_value(GROUP_OWN, "memory.current") - before);
	ENSURE(!morsel_depopulate(shared_fd, 0, GIB), "depopulate");
	sleep_ms(1500);
	ENSURE(group_value(GROUP_OWN, "memory.current") - before <= (long)MIB,
	       "%ld bytes stay there",
	       group_value(GROUP_OWN, "memory.current") - before);
	group_set(GROUP_OWN, "memory.max", 8 * (long)MIB);
	ENSURE(morsel_populate(shared_fd, 0, 16 * MIB) == -ENOMEM,
	       "more than the group may have");
	stranger_stop(&other);
}

/* Pins are no way to have memory that nobody pays for. */
static void pins_are_charged(void)
{
	int fd, ends[2], i;
	long before, now;
	struct iovec v;
	char *p;

	group_start();
	fd = morsel_make_of(GIB, GIB);
	group_leave();
	p = morsel_map(fd, GIB, PROT_READ | PROT_WRITE);
	MUST(pipe(ends));
	if (fcntl(ends[1], F_SETPIPE_SZ, 1 << 20) < 0)
		ktap_skip("no large pipe: %m");
	before = group_value(GROUP_OWN, "memory.current");
	for (i = 0; i < 200; i++) {
		*(volatile uint64_t *)p = OWN;
		v = (struct iovec){ p, PAGE };
		ENSURE(vmsplice(ends[1], &v, 1, 0) == PAGE, "vmsplice: %m");
		ENSURE(!morsel_depopulate(fd, 0, PAGE), "depopulate");
	}
	now = group_value(GROUP_OWN, "memory.current") - before;
	ENSURE(now >= 150 * (long)PAGE, "%ld bytes for 200 pages", now);
	close(ends[0]);
	close(ends[1]);
}

static void shown(void)
{
	char path[60];
	int fd = morsel_make_of(GIB, GIB);

	ENSURE(!morsel_populate(fd, 0, UNIT), "populate");
	morsel_map(fd, GIB, PROT_READ);
	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	ENSURE(read_kb(path, "morsel_pages") == 2048, "%ld kB",
	       read_kb(path, "morsel_pages"));
	ENSURE(read_kb(path, "morsel_unit") == 1024 * 1024, "unit");
	ENSURE(read_kb(path, "morsel_tables") == 8, "tables");
	ENSURE(morsel_stat(fd).mappings == 1, "mappings");
}

int main(int argc, char **argv)
{
	static const struct ktap_case cases[] = {
		{ "flags", flags, 0 },
		{ "not_allowed", not_allowed, 0 },
		{ "layout", layout, 0 },
		{ "address", address, 0 },
		{ "contents", contents, 0 },
		{ "seek", seek, 0 },
		{ "bytes", bytes, 0 },
		{ "vectors", vectors, 0 },
		{ "calls_of_files", calls_of_files, 0 },
		{ "sizes", sizes, 0 },
		{ "comes_back", comes_back, 0 },
		{ "closed", closed, 0 },
		{ "pinned", pinned, 0 },
		{ "limit", limit, 0 },
		{ "charged", charged, 0 },
		{ "pins_are_charged", pins_are_charged, 0 },
		{ "shown", shown, 0 },
	};

	return ktap_main(argc, argv, cases, KTAP_COUNT(cases));
}
