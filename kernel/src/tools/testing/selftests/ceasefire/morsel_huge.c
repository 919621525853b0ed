// SPDX-License-Identifier: GPL-2.0
/*
 * Morsels whose pages have 2 MiB: the same promises, byte for byte, and each page goes as a whole:
 * from CPUs, from devices, from who has pinned a part of it, and when a part of it breaks.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <linux/futex.h>
#include <linux/memfd.h>
#include <linux/mempolicy.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "checker.h"
#include "file.h"
#include "frames.h"
#include "ktap.h"
#include "map.h"
#include "morsels.h"
#include "peer.h"
#include "regions.h"
#include "stranger.h"
#include "worker.h"

#define OWN	WORD(0x5a)
#define OTHER	WORD(0x33)
#define BOTH	(PROT_READ | PROT_WRITE)
#define PAGES	8
/* 4 KiB of a page. */
#define PARTS	512
/* A part in the middle of the second page. */
#define AT	(PARTS + 300)

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

/* Who has a part of a page keeps all of it, and it is nobody else's. */
static void pinned(void)
{
	long before = morsel_sysfs("pages");
	char *p, part[PAGE];
	struct stranger other;
	struct iovec v;
	int fd, ends[2];

	stranger_start(&other);
	fd = make(GIB);
	p = morsel_map(fd, GIB, BOTH);
	v = (struct iovec){ p + AT * PAGE, PAGE };
	morsel_fill(p, 2 * PARTS, OWN);
	MUST(pipe(ends));
	ENSURE(vmsplice(ends[1], &v, 1, 0) == (long)PAGE, "vmsplice: %m");
	ENSURE(!morsel_depopulate(fd, 0, 2 * UNIT), "depopulate");
	ENSURE(morsel_count(p, 2 * PARTS, 0) == 2 * PARTS, "no zeroes");
	MUST(fsync(fd));
	stranger_fill(&other, FILL_HUGE, 64);
	stranger_fill(&other, FILL_ANON, 64);
	ENSURE(MUST(read(ends[0], part, PAGE)) == (long)PAGE, "read");
	ENSURE(*(uint64_t *)part == OWN, "it is somebody else's: %llx",
	       (unsigned long long)*(uint64_t *)part);
	close(fd);
	MUST(munmap(p, GIB));
	ENSURE(morsel_sysfs("pages") == before, "%ld pages are left",
	       morsel_sysfs("pages") - before);
	stranger_stop(&other);
}

/* A device writes to many parts at a time, and by no mapping that only reads. */
static void direct_io(void)
{
	struct tfile file;
	int fd = make(GIB);
	char *p = morsel_map(fd, GIB, BOTH), *q = morsel_map(fd, GIB, PROT_READ);
	ssize_t got;

	file_make(&file, ON_DISK, 64, 0x33);
	MUST(fsync(file.fd));
	ENSURE(!fcntl(file.fd, F_SETFL, fcntl(file.fd, F_GETFL) | O_DIRECT),
	       "O_DIRECT: %m");
	morsel_fill(p, 2 * PARTS, OWN);
	ENSURE(morsel_count(q, 2 * PARTS, OWN) == 2 * PARTS, "no data");
	got = pread(file.fd, q + 480 * PAGE, 64 * PAGE, 0);
	ENSURE(got == -1 && errno == EFAULT,
	       "%zd bytes were read into what is read-only", got);
	ENSURE(morsel_count(p, 2 * PARTS, OWN) == 2 * PARTS, "other data");
	ENSURE(pread(file.fd, p + 480 * PAGE, 64 * PAGE, 0) == 64 * PAGE,
	       "what may be written to is not: %m");
	ENSURE(morsel_count(q + 480 * PAGE, 64, OTHER) == 64, "other data");
	ENSURE(morsel_count(q, 480, OWN) == 480 &&
	       morsel_count(q + 544 * PAGE, 480, OWN) == 480, "more than that");
	/* Also where nobody has been before. */
	ENSURE(pread(file.fd, p + 4 * UNIT + 480 * PAGE, 64 * PAGE, 0) == 64 * PAGE,
	       "a hole: %m");
	ENSURE(morsel_count(q + 4 * UNIT + 480 * PAGE, 64, OTHER) == 64, "other data");
	ENSURE(pwrite(file.fd, q + 480 * PAGE, 64 * PAGE, 0) == 64 * PAGE,
	       "pwrite: %m");
}

static long kib_at(const char *p, const char *name)
{
	FILE *maps = fopen("/proc/self/smaps", "r");
	char line[400], begin[40];
	bool here = false;
	long kb = -1;

	ENSURE(maps, "smaps: %m");
	snprintf(begin, sizeof(begin), "%lx-", (unsigned long)p);
	while (kb < 0 && fgets(line, sizeof(line), maps)) {
		here |= !strncmp(line, begin, strlen(begin));
		if (here && !strncmp(line, name, strlen(name)))
			sscanf(line + strlen(name), " %ld kB", &kb);
	}
	fclose(maps);
	return kb;
}

static void read_all(const char *path)
{
	int fd = (int)MUST(open(path, O_RDONLY | O_CLOEXEC));
	char bytes[PAGE];

	while (MUST(read(fd, bytes, sizeof(bytes))))
		;
	close(fd);
}

/* Whoever walks tables finds what there is, and changes nothing. */
static void walked(void)
{
	unsigned char here[2 * PARTS];
	unsigned long nodes = 1;
	int fd = make(GIB), i;
	char *p = morsel_map(fd, GIB, BOTH), *q = morsel_map(fd, GIB, PROT_READ);
	char text[60];

	morsel_fill(p, 2 * PARTS, OWN);
	ENSURE(morsel_count(q, 2 * PARTS, OWN) == 2 * PARTS, "no data");
	for (i = 0; i < 2; i++) {
		char *at = i ? q : p;

		ENSURE(kib_at(at, "Rss:") == 4096, "%ld KiB", kib_at(at, "Rss:"));
		ENSURE(frame_of(at + AT * PAGE) == frame_of(at + UNIT) + AT - PARTS,
		       "not one page");
		MUST(mincore(at, 2 * UNIT, here));
		ENSURE(here[AT] & 1, "not in memory");
		MUST(madvise(at, 2 * UNIT, MADV_COLD));
		MUST(madvise(at, 2 * UNIT, MADV_PAGEOUT));
		MUST(madvise(at + 5 * PAGE, 7 * PAGE, MADV_COLD));
		MUST(madvise(at + 5 * PAGE, 7 * PAGE, MADV_PAGEOUT));
		MUST(madvise(at, UNIT, MADV_DONTNEED));
		madvise(at, UNIT, 25 /* MADV_COLLAPSE */);
		madvise(at + PAGE, PAGE, MADV_FREE);
		syscall(SYS_mbind, at, GIB, MPOL_BIND, &nodes, 8, MPOL_MF_MOVE);
		syscall(SYS_mbind, at, GIB, MPOL_BIND, &nodes, 8,
			MPOL_MF_STRICT | MPOL_MF_MOVE);
		snprintf(text, sizeof(text), "%lx %lx", (unsigned long)at, UNIT);
		if (!write_text("/sys/kernel/debug/ceasefire/hint", text))
			ktap_skip("no hints on demand: boot the debug kernel");
	}
	for (i = 1; i <= 5; i++) {
		snprintf(text, sizeof(text), "%d", i);
		ENSURE(write_text("/proc/self/clear_refs", text), "clear_refs: %m");
	}
	read_all("/proc/self/numa_maps");
	/* Splits what can be split. */
	snprintf(text, sizeof(text), "%d,0x%lx,0x%lx", getpid(), (unsigned long)p,
		 (unsigned long)p + UNIT);
	write_text("/sys/kernel/debug/split_huge_pages", text);
	write_text("/sys/kernel/debug/split_huge_pages", "1");
	ENSURE(morsel_count(p, 2 * PARTS, OWN) == 2 * PARTS &&
	       morsel_count(q, 2 * PARTS, OWN) == 2 * PARTS, "other data");
	ENSURE(morsel_stat(fd).pages == 2 * PARTS, "%llu pages",
	       (unsigned long long)morsel_stat(fd).pages);
}

/* As many references as one of the page cache would have, and one more. */
#define PINS	511

/* Nobody splits it, however many parts of it are pinned. */
static void stays_whole(void)
{
	int fd = make(GIB), ends[2][2], i;
	char *p = morsel_map(fd, GIB, BOTH);
	struct iovec parts[PINS];

	morsel_fill(p, 2 * PARTS, OWN);
	for (i = 0; i < PINS; i++)
		parts[i] = (struct iovec){ p + (size_t)i * PAGE, PAGE };
	for (i = 0; i < 2; i++) {
		size_t first = (size_t)i * 256, count = i ? PINS - 256 : 256;

		MUST(pipe(ends[i]));
		MUST(fcntl(ends[i][1], F_SETPIPE_SZ, MIB));
		ENSURE(vmsplice(ends[i][1], parts + first, count, 0) == (long)(count * PAGE),
		       "vmsplice: %m");
	}
	MUST(madvise(p, PAGE, MADV_COLD));
	MUST(madvise(p, PAGE, MADV_PAGEOUT));
	ENSURE(morsel_count(p, 2 * PARTS, OWN) == 2 * PARTS, "it was split");
	for (i = 0; i < 2; i++) {
		close(ends[i][0]);
		close(ends[i][1]);
	}
	ENSURE(morsel_count(p, 2 * PARTS, OWN) == 2 * PARTS, "it was freed");
}

/* Both see the same word of a part, by two mappings. */
static void futexes(void)
{
	int fd = make(GIB), status;
	char *p = morsel_map(fd, GIB, BOTH), *q = morsel_map(fd, GIB, BOTH);
	int *word = (int *)(p + AT * PAGE), *same = (int *)(q + AT * PAGE);
	struct timespec limit = { .tv_sec = 60 };
	long woken = 0;
	pid_t pid;
	int i;

	*word = 1;
	pid = fork();
	MUST(pid);
	if (!pid)
		_exit(syscall(SYS_futex, same, FUTEX_WAIT, 1, &limit, NULL, 0) != 0);
	for (i = 0; i < 6000 && !woken; i++) {
		/* Another part has another key. */
		ENSURE(!syscall(SYS_futex, word + PAGE / 4, FUTEX_WAKE, INT_MAX, NULL,
				NULL, 0), "of another part");
		woken = syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
		sleep_ms(10);
	}
	MUST(waitpid(pid, &status, 0));
	ENSURE(woken == 1 && !status, "woken %ld, status %d", woken, status);
}

static long read_there(long fd)
{
	char *q = mmap(NULL, GIB, PROT_READ, MAP_SHARED, (int)fd, 0);

	if (q == MAP_FAILED)
		return -errno;
	return probe_read(q + (PARTS - 1) * PAGE) == OWN &&
	       probe_read(q + AT * PAGE) == FAULTED &&
	       probe_read(q + 2 * UNIT) == OWN;
}

static volatile int code, lsb;

static void on_bus(int signal, siginfo_t *info, void *context)
{
	(void)signal;
	(void)context;
	code = info->si_code;
	lsb = info->si_addr_lsb;
}

/* A part breaks, and all of the page goes, from all who use it; nobody takes zeroes for it. */
static void broken(void)
{
	struct sigaction action = { .sa_sigaction = on_bus, .sa_flags = SA_SIGINFO };
	long before = morsel_sysfs("pages");
	struct stranger other;
	uint64_t frame, flags;
	char bytes[PAGE], *p;
	int fd;

	ktap_expect_log("due to hardware memory corruption");
	need_cpus(2);
	pin_to_cpu(0);
	fd = make(GIB);
	stranger_start(&other);
	peer_start(1);
	p = morsel_map(fd, GIB, BOTH);
	morsel_fill(p, 3 * PARTS, OWN);
	peer_touch(p + AT * PAGE, PAGES);
	frame = frame_of(p + AT * PAGE);
	ENSURE(frame, "no frame number");
	ENSURE(frame_give_up("hard", frame), "memory_failure() says: %m");
	ENSURE(peer_count(p + AT * PAGE, PAGES, FAULTED) == PAGES, "the peer reads it");
	ENSURE(peer_count(p + UNIT, PAGES, FAULTED) == PAGES, "the peer reads its begin");
	ENSURE(!probe_write(p + AT * PAGE, OWN), "it can be written to");
	ENSURE(morsel_count(p, PARTS, OWN) == PARTS &&
	       morsel_count(p + 2 * UNIT, PARTS, OWN) == PARTS, "others are gone, too");
	ENSURE(stranger_call(&other, read_there, fd) == 1,
	       "another process sees something else");
	ENSURE(morsel_stat(fd).pages == 2 * PARTS, "%llu pages",
	       (unsigned long long)morsel_stat(fd).pages);
	REFUSED(pread(fd, bytes, PAGE, AT * PAGE), EIO);
	REFUSED(pwrite(fd, bytes, PAGE, AT * PAGE), EIO);
	ENSURE(lseek(fd, 0, SEEK_HOLE) == (off_t)(3 * UNIT), "it is said to be a hole");
	ENSURE(!morsel_populate(fd, 0, 3 * UNIT), "populate");
	ENSURE(probe_read(p + AT * PAGE) == FAULTED, "there is another page");
	/* A part of it does not make it good. */
	ENSURE(!morsel_depopulate(fd, UNIT, PAGE), "depopulate");
	ENSURE(probe_read(p + UNIT) == FAULTED, "a part is zero");
	ENSURE(!morsel_depopulate(fd, UNIT, UNIT), "depopulate");
	ENSURE(!probe_read(p + AT * PAGE), "the page that was taken away");
	ENSURE(probe_write(p + AT * PAGE, OWN), "it cannot be written to");
	/* Who uses it is told how much has gone. */
	MUST(sigaction(SIGBUS, &action, NULL));
	MUST(madvise(p + AT * PAGE, PAGE, 100 /* MADV_HWPOISON */));
	ENSURE(code == BUS_MCEERR_AR && lsb == 21, "code %d, of 2^%d bytes", code, lsb);
	close(fd);
	MUST(munmap(p, GIB));
	stranger_stop(&other);
	sleep_ms(100);
	ENSURE(morsel_sysfs("pages") == before, "%ld pages are left",
	       morsel_sysfs("pages") - before);
	frame_flags_read(frame, &flags, 1);
	ENSURE(flags & KPF_HWPOISON && !(flags & KPF_BUDDY), "the frame is free again");
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

/* As lib/test_hmm_uapi.h has it. */
struct hmm_dmirror_cmd {
	uint64_t addr, ptr, npages, cpages, faults;
};

#define HMM_DMIRROR_READ	_IOWR('H', 0x00, struct hmm_dmirror_cmd)
#define HMM_DMIRROR_WRITE	_IOWR('H', 0x01, struct hmm_dmirror_cmd)
#define HMM_DMIRROR_EXCLUSIVE	_IOWR('H', 0x05, struct hmm_dmirror_cmd)

/* A device with tables of its own hears of what is taken away, and has no more rights. */
static void mirrored(void)
{
	static uint64_t words[PAGES * PAGE / 8];
	int device = open("/dev/hmm_dmirror0", O_RDWR | O_CLOEXEC), fd;
	struct hmm_dmirror_cmd cmd = { .ptr = (uintptr_t)words, .npages = PAGES };
	char *p, *q;

	if (device < 0)
		ktap_skip("no /dev/hmm_dmirror0: boot the debug kernel");
	fd = make(GIB);
	p = morsel_map(fd, GIB, BOTH);
	q = morsel_map(fd, GIB, PROT_READ);
	morsel_fill(p, 2 * PARTS, OWN);
	ENSURE(morsel_count(q, 2 * PARTS, OWN) == 2 * PARTS, "no data");
	/* Across the end of a page. */
	cmd.addr = (uintptr_t)p + UNIT - 4 * PAGE;
	MUST(ioctl(device, HMM_DMIRROR_READ, &cmd));
	ENSURE(words[0] == OWN && words[7 * PAGE / 8] == OWN, "it reads something else");
	ENSURE(!morsel_depopulate(fd, 0, UNIT), "depopulate");
	MUST(ioctl(device, HMM_DMIRROR_READ, &cmd));
	ENSURE(!words[0] && words[7 * PAGE / 8] == OWN, "it reads %llx, %llx",
	       (unsigned long long)words[0], (unsigned long long)words[7 * PAGE / 8]);
	words[0] = OTHER;
	MUST(ioctl(device, HMM_DMIRROR_WRITE, &cmd));
	ENSURE(probe_read(p + UNIT - 4 * PAGE) == OTHER, "what it writes is not there");
	cmd.addr = (uintptr_t)q + UNIT;
	ENSURE(ioctl(device, HMM_DMIRROR_WRITE, &cmd), "a device may write");
	ENSURE(morsel_count(p + UNIT, PARTS, OWN) == PARTS, "other data");
	close(device);
}

/* Nor has it one for itself, for which others would have to lose theirs. */
static void exclusive(void)
{
	static uint64_t words[PAGES * PAGE / 8];
	int device = open("/dev/hmm_dmirror0", O_RDWR | O_CLOEXEC), fd;
	struct hmm_dmirror_cmd cmd = { .ptr = (uintptr_t)words, .npages = PAGES };
	char *p;

	if (device < 0)
		ktap_skip("no /dev/hmm_dmirror0: boot the debug kernel");
	fd = make(GIB);
	p = morsel_map(fd, GIB, BOTH);
	morsel_fill(p, PARTS, OWN);
	cmd.addr = (uintptr_t)p + 4 * PAGE;
	ENSURE(ioctl(device, HMM_DMIRROR_EXCLUSIVE, &cmd), "it has one");
	ENSURE(morsel_count(p, PARTS, OWN) == PARTS, "it was split");
	close(device);
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

/* CPUs with upper tables of their own. */
static void sharers(void)
{
	int fd = make(GIB), i;
	char *p, *q;

	sharers_start();
	q = morsel_map(fd, GIB, BOTH);
	p = morsel_map(fd, GIB, BOTH);
	for (i = 0; i < 3; i++) {
		morsel_fill(q + 100 * PAGE, PAGES, OWN);
		peer_finds(p + 100 * PAGE, PAGES, OWN);
		ENSURE(!morsel_depopulate(fd, 0, UNIT), "depopulate");
		peer_finds(p + 100 * PAGE, PAGES, 0);
	}
	MUST(mprotect(p, GIB, PROT_READ));
	morsel_fill(q, PAGES, OWN);
	peer_finds(p, PAGES, OWN);
	peer_cannot_write(p, PAGES, OTHER);
	MUST(munmap(p, GIB));
	peer_finds(p, PAGES, FAULTED);
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
		{ "pinned", pinned, 0 },
		{ "direct_io", direct_io, 0 },
		{ "walked", walked, 0 },
		{ "split", stays_whole, 0 },
		{ "futexes", futexes, 0 },
		{ "broken", broken, 0 },
		{ "limits", limits, 0 },
		{ "left", left, 0 },
		{ "mirrored", mirrored, 0 },
		{ "exclusive", exclusive, 0 },
		{ "last_one", last_one, 0 },
		{ "sharers", sharers, 0 },
		{ "destroyed", destroyed, 0 },
	};

	return ktap_main(argc, argv, cases, KTAP_COUNT(cases));
}
