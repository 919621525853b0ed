// SPDX-License-Identifier: GPL-2.0
/*
 * Morsels whose pages have 1 GiB: as morsel_huge.c, where they differ. Walks of page tables know
 * no such entries, so that they have to keep away, and copies of upper tables have them.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
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
#include "ktap.h"
#include "map.h"
#include "mirror.h"
#include "morsels.h"
#include "peer.h"
#include "regions.h"

#define OWN	WORD(0x5a)
#define OTHER	WORD(0x33)
#define BOTH	(PROT_READ | PROT_WRITE)
#define PAGES	8
/* 4 KiB of a page. */
#define PARTS	(GIB / PAGE)
#define ALL	(512 * GIB)
/* On both sides of the end of the first page. */
#define EDGE	(GIB - 4 * PAGE)

static int make(void)
{
	int fd = memfd_create("gigantic", MFD_MORSEL | MFD_CLOEXEC | MFD_HUGE_1GB);

	if (fd < 0 && errno == EOPNOTSUPP)
		ktap_skip("no pages of 1 GiB: %m");
	ENSURE(fd >= 0, "memfd_create: %m");
	if (morsel_sysfs("limit") < (long)(5 * PARTS / 2))
		ktap_skip("two pages need 5 GiB of memory");
	MUST(ftruncate(fd, (off_t)ALL));
	return fd;
}

static void start(void)
{
	need_cpus(2);
	pin_to_cpu(0);
	peer_start(1);
}

static void gone(int fd, char *p, long before)
{
	close(fd);
	MUST(munmap(p, ALL));
	ENSURE(morsel_sysfs("pages") == before, "%ld pages are left",
	       morsel_sysfs("pages") - before);
}

/* By calls and by mappings, and byte by byte. */
static void contents(void)
{
	static char one[8 * PAGE], two[8 * PAGE];
	long before = morsel_sysfs("pages");
	int fd = make();
	char *p = morsel_map(fd, ALL, BOTH);

	ENSURE(morsel_stat(fd).unit == ALL && morsel_stat(fd).base == GIB, "another layout");
	memset(one, 0x33, sizeof(one));
	ENSURE(pread(fd, two, sizeof(two), EDGE) == sizeof(two) && !two[0], "a hole: %m");
	ENSURE(pwrite(fd, one, sizeof(one), EDGE) == sizeof(one), "pwrite: %m");
	ENSURE(!memcmp(p + EDGE, one, sizeof(one)), "mapped: other data");
	ENSURE(!p[EDGE - 1] && !p[EDGE + sizeof(one)] && !p[0] && !p[2 * GIB - 1],
	       "more than that");
	ENSURE(morsel_stat(fd).pages == 2 * PARTS, "%llu pages",
	       (unsigned long long)morsel_stat(fd).pages);
	ENSURE(lseek(fd, 5, SEEK_HOLE) == (off_t)(2 * GIB), "a hole");
	/* Of both a part. */
	ENSURE(!morsel_depopulate(fd, EDGE + 10, 5 * PAGE), "depopulate");
	ENSURE(p[EDGE + 9] == 0x33 && !p[EDGE + 10] && !p[GIB] &&
	       !p[EDGE + 10 + 5 * PAGE - 1] && p[EDGE + 10 + 5 * PAGE] == 0x33,
	       "what is left of them");
	ENSURE(!morsel_depopulate(fd, 0, GIB + 6 * PAGE), "depopulate");
	ENSURE(morsel_stat(fd).pages == PARTS, "%llu pages",
	       (unsigned long long)morsel_stat(fd).pages);
	ENSURE(!p[EDGE], "it is still there");
	gone(fd, p, before);
}

/* Not one of them is what it was. */
static void depopulated(void)
{
	int fd = make();
	char *p, *at;
	size_t left;

	start();
	p = morsel_map(fd, ALL, BOTH);
	at = p + GIB + 100 * PAGE;
	morsel_fill(at, PAGES, OWN);
	peer_touch(at, PAGES);
	ENSURE(!morsel_depopulate(fd, GIB, GIB), "depopulate");
	checker_forbid(at, PAGES);
	left = peer_count(at, PAGES, OWN);
	checker_allow(at, PAGES);
	ENSURE(!left, "the peer still finds %zu of %d pages", left, PAGES);
	ENSURE(peer_count(at, PAGES, 0) == PAGES, "no zeroes");
	ENSURE(morsel_stat(fd).cuts == 1, "%llu cuts",
	       (unsigned long long)morsel_stat(fd).cuts);
}

/* What a mapping may do goes, and the mapping itself. */
static void mappings(void)
{
	int fd = make(), status;
	char *p, *q;
	pid_t pid;

	start();
	p = morsel_map(fd, ALL, BOTH);
	morsel_fill(p, PAGES, OWN);
	peer_touch(p, PAGES);
	ENSURE(peer_write(p, PAGES, OTHER) == PAGES, "the peer cannot write");
	MUST(mprotect(p, ALL, PROT_READ));
	ENSURE(!peer_write(p, PAGES, OWN), "the peer can write");
	ENSURE(peer_count(p, PAGES, OTHER) == PAGES, "the peer cannot read");
	MUST(mprotect(p, ALL, BOTH));
	q = mremap(p, ALL, ALL, MREMAP_MAYMOVE | MREMAP_FIXED, p - 4 * ALL);
	ENSURE(q == p - 4 * ALL, "mremap: %m");
	ENSURE(peer_count(p, PAGES, FAULTED) == PAGES, "where it was");
	ENSURE(peer_count(q, PAGES, OTHER) == PAGES, "not where it is");
	pid = fork();
	MUST(pid);
	if (!pid)
		_exit(morsel_count(q, PAGES, OTHER) != PAGES ||
		      !probe_write(q, OWN));
	MUST(waitpid(pid, &status, 0));
	ENSURE(!status && probe_read(q) == OWN, "the child has something else");
	MUST(munmap(q, ALL));
	ENSURE(peer_count(q, PAGES, FAULTED) == PAGES, "something is there");
}

/* Who has a part of a page keeps all of it. */
static void pinned(void)
{
	long before = morsel_sysfs("pages");
	int fd = make(), ends[2];
	char *p = morsel_map(fd, ALL, BOTH), part[PAGE];
	struct iovec v = { p + EDGE, PAGE };

	morsel_fill(p + EDGE, 1, OWN);
	MUST(pipe(ends));
	ENSURE(vmsplice(ends[1], &v, 1, 0) == (long)PAGE, "vmsplice: %m");
	ENSURE(!morsel_depopulate(fd, 0, GIB), "depopulate");
	ENSURE(!probe_read(p + EDGE), "no zeroes");
	/* Another page, which must not be the same. */
	morsel_fill(p + EDGE, 1, OTHER);
	ENSURE(MUST(read(ends[0], part, PAGE)) == (long)PAGE, "read");
	ENSURE(*(uint64_t *)part == OWN, "it is somebody else's: %llx",
	       (unsigned long long)*(uint64_t *)part);
	gone(fd, p, before);
}

/* A device writes to many parts at a time, and by no mapping that only reads. */
static void direct_io(void)
{
	struct tfile file;
	int fd = make();
	char *p = morsel_map(fd, ALL, BOTH), *q = morsel_map(fd, ALL, PROT_READ);
	ssize_t got;

	file_make(&file, ON_DISK, PAGES, 0x33);
	MUST(fsync(file.fd));
	ENSURE(!fcntl(file.fd, F_SETFL, fcntl(file.fd, F_GETFL) | O_DIRECT),
	       "O_DIRECT: %m");
	ENSURE(pread(file.fd, p + EDGE, PAGES * PAGE, 0) == PAGES * PAGE, "a hole: %m");
	ENSURE(morsel_count(q + EDGE, PAGES, OTHER) == PAGES, "other data");
	morsel_fill(p + EDGE, PAGES, OWN);
	got = pread(file.fd, q + EDGE, PAGES * PAGE, 0);
	ENSURE(got == -1 && errno == EFAULT,
	       "%zd bytes were read into what is read-only", got);
	ENSURE(morsel_count(p + EDGE, PAGES, OWN) == PAGES, "other data");
	ENSURE(pread(file.fd, p + EDGE, PAGES * PAGE, 0) == PAGES * PAGE,
	       "what may be written to is not: %m");
	ENSURE(morsel_count(q + EDGE, PAGES, OTHER) == PAGES, "other data");
	ENSURE(pwrite(file.fd, q + EDGE, PAGES * PAGE, 0) == PAGES * PAGE,
	       "pwrite: %m");
}

/* Whoever walks tables finds nothing there, and changes nothing. */
static void walked(void)
{
	unsigned char here[PAGES];
	unsigned long nodes = 1;
	uint64_t entries[PAGES];
	int fd = make(), i, map;
	char *p = morsel_map(fd, ALL, BOTH), text[4];

	morsel_fill(p + EDGE, PAGES, OWN);
	map = (int)MUST(open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC));
	ENSURE(pread(map, entries, sizeof(entries), (off_t)((uintptr_t)(p + EDGE) / PAGE * 8)) ==
	       sizeof(entries) && !(entries[0] >> 63) && !(entries[PAGES - 1] >> 63),
	       "pagemap has something else");
	read_whole("/proc/self/smaps");
	read_whole("/proc/self/numa_maps");
	MUST(mincore(p + EDGE, PAGES * PAGE, here));
	MUST(madvise(p, 2 * GIB, MADV_COLD));
	MUST(madvise(p, 2 * GIB, MADV_PAGEOUT));
	MUST(madvise(p, GIB, MADV_DONTNEED));
	MUST(madvise(p, 2 * UNIT, MADV_POPULATE_WRITE));
	syscall(SYS_mbind, p, ALL, MPOL_BIND, &nodes, 8, MPOL_MF_STRICT | MPOL_MF_MOVE);
	for (i = 1; i <= 5; i++) {
		snprintf(text, sizeof(text), "%d", i);
		ENSURE(write_text("/proc/self/clear_refs", text), "clear_refs: %m");
	}
	ENSURE(morsel_count(p + EDGE, PAGES, OWN) == PAGES, "other data");
	ENSURE(morsel_stat(fd).pages == 2 * PARTS, "%llu pages",
	       (unsigned long long)morsel_stat(fd).pages);
}

static volatile int code, lsb;

static void on_bus(int signal, siginfo_t *info, void *context)
{
	(void)signal;
	(void)context;
	code = info->si_code;
	lsb = info->si_addr_lsb;
}

/* A part breaks, and all of the page goes. */
static void broken(void)
{
	struct sigaction action = { .sa_sigaction = on_bus, .sa_flags = SA_SIGINFO };
	struct sigaction was;
	char bytes[PAGE], *p;
	int fd = make();

	ktap_expect_log("due to hardware memory corruption");
	start();
	p = morsel_map(fd, ALL, BOTH);
	morsel_fill(p + EDGE, PAGES, OWN);
	peer_touch(p + EDGE, PAGES);
	MUST(sigaction(SIGBUS, &action, &was));
	MUST(madvise(p + EDGE, PAGE, 100 /* MADV_HWPOISON */));
	MUST(sigaction(SIGBUS, &was, NULL));
	ENSURE(code == BUS_MCEERR_AR && lsb == 30, "code %d, of 2^%d bytes", code, lsb);
	ENSURE(peer_count(p + EDGE, 4, FAULTED) == 4, "the peer reads it");
	ENSURE(peer_count(p, PAGES, FAULTED) == PAGES, "the peer reads its begin");
	ENSURE(peer_count(p + GIB, 4, OWN) == 4, "another is gone, too");
	REFUSED(pread(fd, bytes, PAGE, EDGE), EIO);
	ENSURE(morsel_stat(fd).pages == PARTS, "%llu pages",
	       (unsigned long long)morsel_stat(fd).pages);
	ENSURE(!morsel_depopulate(fd, 0, GIB), "depopulate");
	ENSURE(!pread(fd, bytes, PAGE, EDGE) || !bytes[0], "no zeroes");
}

/* A device with tables of its own has nothing to look at. */
static void mirrored(void)
{
	struct hmm_dmirror_cmd cmd = { .npages = 1 };
	int device = mirror_open(), fd;
	uint64_t word[PAGE / 8];
	char *p;

	fd = make();
	p = morsel_map(fd, ALL, BOTH);
	morsel_fill(p, PAGES, OWN);
	cmd.addr = (uintptr_t)p;
	cmd.ptr = (uintptr_t)word;
	ENSURE(ioctl(device, HMM_DMIRROR_READ, &cmd), "it may look");
	ENSURE(morsel_count(p, PAGES, OWN) == PAGES, "other data");
	close(device);
}

/* CPUs with upper tables of their own. */
static void sharers(void)
{
	int fd = make(), i;
	char *p, *q;

	sharers_start();
	q = morsel_map(fd, ALL, BOTH);
	p = morsel_map(fd, ALL, BOTH);
	for (i = 0; i < 2; i++) {
		morsel_fill(q + 100 * PAGE, PAGES, OWN);
		peer_finds(p + 100 * PAGE, PAGES, OWN);
		ENSURE(!morsel_depopulate(fd, 0, GIB), "depopulate");
		peer_finds(p + 100 * PAGE, PAGES, 0);
	}
	MUST(mprotect(p, ALL, PROT_READ));
	morsel_fill(q, PAGES, OWN);
	peer_finds(p, PAGES, OWN);
	peer_cannot_write(p, PAGES, OTHER);
	MUST(munmap(p, ALL));
	peer_finds(p, PAGES, FAULTED);
}

/* Where a limit is reached nobody is killed. */
static void limits(void)
{
	long before = morsel_sysfs("pages");
	int fd = make();
	char *p = morsel_map(fd, ALL, BOTH);

	morsel_set("limit", before + (long)PARTS + 100);
	ENSURE(probe_write(p, OWN), "no page");
	ENSURE(!probe_write(p + GIB, OWN), "more than the limit");
	ENSURE(morsel_populate(fd, 0, 2 * GIB) == -ENOMEM, "more than the limit");
	ENSURE(!morsel_depopulate(fd, 0, GIB), "depopulate");
	ENSURE(probe_write(p + GIB, OWN), "what was given back");
	gone(fd, p, before);
}

int main(int argc, char **argv)
{
	static const struct ktap_case cases[] = {
		{ "contents", contents, 0 },
		{ "depopulated", depopulated, 0 },
		{ "mappings", mappings, 0 },
		{ "pinned", pinned, 0 },
		{ "direct_io", direct_io, 0 },
		{ "walked", walked, 0 },
		{ "mirrored", mirrored, 0 },
		{ "sharers", sharers, 0 },
		{ "limits", limits, 0 },
		/* Last: one page is lost. */
		{ "broken", broken, 0 },
	};

	return ktap_main(argc, argv, cases, KTAP_COUNT(cases));
}
