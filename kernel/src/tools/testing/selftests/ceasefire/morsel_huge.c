// SPDX-License-Identifier: GPL-2.0
/*
 * Morsels whose pages have 2 MiB: the same promises, byte for byte. morsel_huge_others.c has what
 * the rest of the kernel does with them.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/fs.h>
#include <linux/memfd.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "checker.h"
#include "ktap.h"
#include "map.h"
#include "morsels.h"
#include "peer.h"
#include "worker.h"

#define OWN	WORD(0x5a)
#define OTHER	WORD(0x33)
#define BOTH	(PROT_READ | PROT_WRITE)
#define PAGES	8
/* 4 KiB of a page. */
#define PARTS	512

#define ONLY_HUGE	(MFD_MORSEL | MFD_CLOEXEC | MFD_HUGE_2MB)

static int make(uint64_t size)
{
	int fd = memfd_create("huge", ONLY_HUGE);

	if (fd < 0 && errno == EINVAL)
		ktap_skip("no morsels");
	ENSURE(fd >= 0, "memfd_create: %m");
	MUST(ftruncate(fd, (off_t)size));
	return fd;
}

static int make_of(uint64_t unit)
{
	return morsel_make_huge(unit, unit);
}

static void start(void)
{
	need_cpus(2);
	pin_to_cpu(0);
	peer_start(1);
}

/* What can be asked for, and what not. */
static void layout(void)
{
	struct morsel_geometry g = { .unit = GIB, .base = UNIT };
	int fd, plain = morsel_make(UNIT);

	fd = make(0);
	ENSURE(morsel_stat(fd).base == UNIT, "made with other pages");
	MUST(ftruncate(fd, 1));
	ENSURE(morsel_stat(fd).unit == GIB, "not the smallest unit");
	REFUSED(ioctl(fd, MORSEL_IOC_GEOMETRY, &g), EBUSY);
	ENSURE(morsel_stat(make(511 * GIB + 1)).unit == 512 * GIB, "511 GiB");
	ENSURE(morsel_stat(make_of(GIB)).base == UNIT, "not as asked");
	ENSURE(morsel_stat(plain).base == PAGE, "made with other pages");
	fd = make(0);
	g.unit = UNIT;
	REFUSED(ioctl(fd, MORSEL_IOC_GEOMETRY, &g), EINVAL);
	g.base = 3 * PAGE;
	REFUSED(ioctl(fd, MORSEL_IOC_GEOMETRY, &g), EINVAL);
	g.unit = GIB;
	g.base = GIB;
	REFUSED(ioctl(fd, MORSEL_IOC_GEOMETRY, &g), EINVAL);
	g.base = UNIT;
	g.flags = MORSEL_ALLOW_LAZY;
	REFUSED(ioctl(fd, MORSEL_IOC_GEOMETRY, &g), EOPNOTSUPP);
	ENSURE(morsel_stat(fd).base == UNIT, "changed by what was refused");
	/* Nothing is said: as it was made; and what is said later counts. */
	g = (struct morsel_geometry){ .unit = GIB };
	MUST(ioctl(fd, MORSEL_IOC_GEOMETRY, &g));
	ENSURE(morsel_stat(fd).base == UNIT, "not as it was made");
	fd = make(0);
	g = (struct morsel_geometry){ .unit = UNIT, .base = PAGE };
	MUST(ioctl(fd, MORSEL_IOC_GEOMETRY, &g));
	ENSURE(morsel_stat(fd).base == PAGE, "not as asked");
	REFUSED(memfd_create("huge", MFD_MORSEL | MFD_HUGE_16MB), EINVAL);
	REFUSED(memfd_create("huge", ONLY_HUGE | MFD_HUGETLB), EINVAL);
	/* No copies, in neither direction. */
	fd = memfd_create("copy", MFD_MORSEL);
	REFUSED(ioctl(fd, FICLONE, make(GIB)), EOPNOTSUPP);
	REFUSED(ioctl(make(0), FICLONE, plain), EOPNOTSUPP);
}

static bool is_all(const char *p, size_t length, char byte)
{
	return !length || (p[0] == byte && !memcmp(p, p + 1, length - 1));
}

/* By calls and by mappings, across the end of a page and of a unit. */
static void contents(void)
{
	uint64_t units[] = { GIB, 512 * GIB };
	static char one[3 * PAGE], two[3 * PAGE];
	size_t i;

	memset(one, 0x33, sizeof(one));
	for (i = 0; i < 2; i++) {
		uint64_t at[] = { UNIT - PAGE - 10, units[i] - 2 * PAGE - 10 };
		int fd = make_of(units[i]);
		char *p = morsel_map(fd, units[i], BOTH);
		size_t j;

		for (j = 0; j < 2; j++) {
			size_t length = j ? 2 * PAGE : sizeof(one);
			off_t from = (off_t)at[j];

			ENSURE(pread(fd, two, length, from) == (long)length &&
			       is_all(two, length, 0), "a hole: %m");
			ENSURE(pwrite(fd, one, length, from) == (long)length,
			       "pwrite: %m");
			ENSURE(pread(fd, two, length, from) == (long)length &&
			       !memcmp(one, two, length), "other data");
			ENSURE(!memcmp(p + from, one, length), "mapped: other data");
			ENSURE(!p[from - 1] && !p[from + (long)length], "more than that");
			p[from + 5] = 7;
			ENSURE(pread(fd, two, 10, from) == 10 && two[5] == 7,
			       "what was written is not read");
		}
		ENSURE(morsel_stat(fd).pages == 3 * PARTS, "%llu pages",
		       (unsigned long long)morsel_stat(fd).pages);
		ENSURE(lseek(fd, 5, SEEK_HOLE) == (off_t)(2 * UNIT), "a hole");
		ENSURE(lseek(fd, (off_t)(2 * UNIT + 5), SEEK_DATA) ==
		       (off_t)(units[i] - UNIT), "data");
		ENSURE(lseek(fd, (off_t)(units[i] - PAGE), SEEK_DATA) ==
		       (off_t)(units[i] - PAGE), "data where it is asked for");
		MUST(munmap(p, units[i]));
		close(fd);
	}
}

/* A part of a page is zeroed, and the rest stays; a whole one is gone. */
static void ends(void)
{
	int fd = make(GIB);
	char *p = morsel_map(fd, GIB, BOTH);
	uint64_t from = UNIT / 2 + 10, to = 3 * UNIT - PAGE - 7;

	memset(p, 0x11, 4 * UNIT);
	ENSURE(!morsel_depopulate(fd, from, to - from), "depopulate");
	ENSURE(morsel_stat(fd).pages == 3 * PARTS, "%llu pages",
	       (unsigned long long)morsel_stat(fd).pages);
	ENSURE(is_all(p, from, 0x11), "what is before it");
	ENSURE(is_all(p + from, to - from, 0), "no zeroes");
	ENSURE(is_all(p + to, 4 * UNIT - to, 0x11), "what is behind it");
	/* A part of one only, by another call. */
	MUST(madvise(p + 3 * UNIT + PAGE, 5 * PAGE, MADV_REMOVE));
	ENSURE(is_all(p + 3 * UNIT, PAGE, 0x11) &&
	       is_all(p + 3 * UNIT + PAGE, 5 * PAGE, 0) &&
	       is_all(p + 3 * UNIT + 6 * PAGE, UNIT - 6 * PAGE, 0x11),
	       "a part of a page");
	/* A smaller size, in the middle of a page, and the old one. */
	MUST(ftruncate(fd, (off_t)(3 * UNIT + UNIT / 2)));
	ENSURE(is_all(p + 3 * UNIT + UNIT / 2, UNIT / 2, 0), "behind the end");
	ENSURE(probe_read(p + 4 * UNIT) == FAULTED, "far behind the end");
	MUST(ftruncate(fd, (off_t)GIB));
	ENSURE(is_all(p + 3 * UNIT + UNIT / 2, UNIT / 2, 0), "what was cut off");
	/* What is written behind the end, in the last page, is no part of what comes there. */
	MUST(ftruncate(fd, (off_t)(3 * UNIT + 10)));
	p[3 * UNIT + 11] = 7;
	p[3 * UNIT + UNIT - 1] = 7;
	MUST(ftruncate(fd, (off_t)GIB));
	ENSURE(is_all(p + 3 * UNIT + 10, UNIT - 10, 0), "what was behind the end");
	ENSURE(!probe_read(p + 4 * UNIT), "what was cut off");
	MUST(ftruncate(fd, 0));
	ENSURE(!morsel_stat(fd).pages, "%llu pages",
	       (unsigned long long)morsel_stat(fd).pages);
}

/* Not one of them is what it was. */
static void peer_finds_none(const char *p, uint64_t word)
{
	size_t left;

	checker_forbid(p, PAGES);
	left = peer_count(p, PAGES, word);
	checker_allow(p, PAGES);
	ENSURE(!left, "the peer still finds %zu of %d pages", left, PAGES);
}

static void depopulated_of(uint64_t unit)
{
	int fd = make_of(unit);
	char *p;

	start();
	p = morsel_map(fd, unit, BOTH);
	morsel_fill(p + 100 * PAGE, PAGES, OWN);
	peer_touch(p + 100 * PAGE, PAGES);
	ENSURE(!morsel_depopulate(fd, 0, UNIT), "depopulate");
	peer_finds_none(p + 100 * PAGE, OWN);
	ENSURE(peer_count(p + 100 * PAGE, PAGES, 0) == PAGES, "no zeroes");
	ENSURE(morsel_stat(fd).cuts == 1, "%llu cuts",
	       (unsigned long long)morsel_stat(fd).cuts);
	/* More pages than are flushed one by one. */
	ENSURE(!morsel_populate(fd, 0, 100 * UNIT), "populate");
	morsel_fill(p + 100 * PAGE, PAGES, OWN);
	peer_touch(p + 100 * PAGE, PAGES);
	ENSURE(!morsel_depopulate(fd, 0, 100 * UNIT), "depopulate");
	peer_finds_none(p + 100 * PAGE, OWN);
}

static void depopulated(void)
{
	depopulated_of(GIB);
}

static void depopulated_512(void)
{
	depopulated_of(512 * GIB);
}

/* What a mapping may do goes, and the mapping itself. */
static void mappings(void)
{
	int fd = make(GIB);
	char *p, *q;

	start();
	p = morsel_map(fd, GIB, BOTH);
	morsel_fill(p, PAGES, OWN);
	peer_touch(p, PAGES);
	ENSURE(peer_write(p, PAGES, OTHER) == PAGES, "the peer cannot write");
	MUST(mprotect(p, GIB, PROT_READ));
	ENSURE(!peer_write(p, PAGES, OWN), "the peer can write");
	ENSURE(peer_count(p, PAGES, OTHER) == PAGES, "the peer cannot read");
	MUST(mprotect(p, GIB, PROT_NONE));
	ENSURE(peer_count(p, PAGES, FAULTED) == PAGES, "the peer can read");
	MUST(mprotect(p, GIB, BOTH));
	ENSURE(peer_count(p, PAGES, OTHER) == PAGES, "the peer cannot read");
	q = mremap(p, GIB, GIB, MREMAP_MAYMOVE | MREMAP_FIXED, p + 4 * GIB);
	ENSURE(q == p + 4 * GIB, "mremap: %m");
	ENSURE(peer_count(p, PAGES, FAULTED) == PAGES, "where it was");
	ENSURE(peer_count(q, PAGES, OTHER) == PAGES, "not where it is");
	REFUSED(mprotect(q, UNIT, PROT_READ), EINVAL);
	REFUSED(munmap(q, UNIT), EINVAL);
	MUST(munmap(q, GIB));
	ENSURE(peer_count(q, PAGES, FAULTED) == PAGES, "something is there");
}

/* A child has the same memory. */
static void forked(void)
{
	int fd = make(GIB), status;
	char *p = morsel_map(fd, GIB, BOTH);
	pid_t pid;

	morsel_fill(p, 2 * PARTS, OWN);
	pid = fork();
	MUST(pid);
	if (!pid) {
		bool same = morsel_count(p, 2 * PARTS, OWN) == 2 * PARTS;

		morsel_fill(p, 2 * PARTS, OTHER);
		_exit(!same || morsel_depopulate(fd, UNIT, UNIT));
	}
	MUST(waitpid(pid, &status, 0));
	ENSURE(!status, "the child finds something else");
	ENSURE(morsel_count(p, PARTS, OTHER) == PARTS, "not shared");
	ENSURE(morsel_count(p + UNIT, PARTS, 0) == PARTS, "it is still there");
}

/* Where a limit is reached nobody is killed, and what is given back makes room. */
static void limits(void)
{
	long total = morsel_sysfs("pages");
	int fd = make(GIB);
	char *p = morsel_map(fd, GIB, BOTH);

	/* Two pages, and the tables. */
	morsel_set("limit", total + 2 * PARTS + 100);
	ENSURE(probe_write(p, OWN) && probe_write(p + UNIT, OWN), "no page");
	ENSURE(!probe_write(p + 2 * UNIT, OWN), "more than the limit");
	ENSURE(morsel_populate(fd, 0, 3 * UNIT) == -ENOMEM, "more than the limit");
	ENSURE(!morsel_depopulate(fd, 0, UNIT), "depopulate");
	ENSURE(probe_write(p + 2 * UNIT, OWN), "what was given back");
	ENSURE(probe_read(p + UNIT) == OWN, "other data");
	close(fd);
	MUST(munmap(p, GIB));
	ENSURE(morsel_sysfs("pages") == total, "%ld pages are left",
	       morsel_sysfs("pages") - total);
}

/* What is left to others comes back as well. */
static void left(void)
{
	struct morsel_range all = { 0, 20 * UNIT };
	struct morsel_vec vec = { .ranges = (uintptr_t)&all, .nr = 1,
				  .flags = MORSEL_ASYNC };
	int fd = make(GIB);
	char *p = morsel_map(fd, GIB, BOTH);

	ENSURE(!morsel_populate(fd, 0, 20 * UNIT), "populate");
	morsel_fill(p, 20 * PARTS, OWN);
	MUST(ioctl(fd, MORSEL_IOC_DEPOPULATE, &vec));
	ENSURE(morsel_count(p, 20 * PARTS, 0) == 20 * PARTS, "no zeroes");
	ENSURE(!morsel_depopulate(fd, 0, GIB), "depopulate");
	MUST(fsync(fd));
	ENSURE(!morsel_stat(fd).pages && !morsel_stat(fd).waiting, "%llu pages",
	       (unsigned long long)morsel_stat(fd).pages);
}

static char *wanted;
static bool got;

static void touch(void *unused)
{
	(void)unused;
	got = probe_write(wanted, OWN);
}

/* Where there is memory for one, all who come at the same time find it. */
static void last_one(void)
{
	struct worker other;
	int fd, i;
	char *p;

	need_cpus(2);
	pin_to_cpu(0);
	fd = make(GIB);
	p = morsel_map(fd, GIB, BOTH);
	ENSURE(!morsel_populate(fd, 0, UNIT) && !probe_read(p), "populate");
	worker_start(&other, 1, NULL);
	morsel_set("limit", morsel_sysfs("pages") + PARTS / 2);
	wanted = p;
	for (i = 0; i < 50; i++) {
		bool here;

		ENSURE(!morsel_depopulate(fd, 0, UNIT), "depopulate");
		worker_begin(&other, touch, NULL);
		here = probe_write(p + PAGE, OWN);
		worker_end(&other);
		ENSURE(here && got, "round %d: %s finds no memory", i,
		       here ? "the other one" : "this one");
	}
}

/* All of it is gone for good, whoever maps it. */
static void destroyed(void)
{
	uint32_t flags = MORSEL_FORCE;
	int fd;
	char *p;

	start();
	fd = make(GIB);
	p = morsel_map(fd, GIB, BOTH);
	morsel_fill(p, 2 * PARTS, OWN);
	peer_touch(p, PAGES);
	MUST(ioctl(fd, MORSEL_IOC_DESTROY, &flags));
	ENSURE(peer_count(p, PAGES, FAULTED) == PAGES, "the peer reads it");
	ENSURE(!morsel_stat(fd).pages, "%llu pages",
	       (unsigned long long)morsel_stat(fd).pages);
}

int main(int argc, char **argv)
{
	static const struct ktap_case cases[] = {
		{ "layout", layout, 0 },
		{ "contents", contents, 0 },
		{ "ends", ends, 0 },
		{ "depopulated", depopulated, 0 },
		{ "depopulated_512", depopulated_512, 0 },
		{ "mappings", mappings, 0 },
		{ "forked", forked, 0 },
		{ "limits", limits, 0 },
		{ "left", left, 0 },
		{ "last_one", last_one, 0 },
		{ "destroyed", destroyed, 0 },
	};

	return ktap_main(argc, argv, cases, KTAP_COUNT(cases));
}
