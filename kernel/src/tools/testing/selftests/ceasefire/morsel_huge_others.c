// SPDX-License-Identifier: GPL-2.0
/*
 * Morsels whose pages have 2 MiB and the rest of the kernel: each goes as a whole, from devices,
 * from who has pinned a part of it, from who walks tables, and when a part of it breaks; and
 * nobody splits it.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <linux/mempolicy.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "file.h"
#include "frames.h"
#include "ktap.h"
#include "map.h"
#include "mirror.h"
#include "morsels.h"
#include "peer.h"
#include "regions.h"
#include "stranger.h"

#define OWN	WORD(0x5a)
#define OTHER	WORD(0x33)
#define BOTH	(PROT_READ | PROT_WRITE)
#define PAGES	8
/* 4 KiB of a page. */
#define PARTS	512
/* A part in the middle of the second page. */
#define AT	(PARTS + 300)

static int make(void)
{
	return morsel_make_huge(GIB, GIB);
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
	fd = make();
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
	int fd = make();
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

/* Whoever walks tables finds what there is, and changes nothing. */
static void walked(void)
{
	unsigned char here[2 * PARTS];
	unsigned long nodes = 1;
	int fd = make(), i;
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
	read_whole("/proc/self/numa_maps");
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
	int fd = make(), ends[2][2], i;
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
	int fd = make(), status;
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
	fd = make();
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

/* A device with tables of its own hears of what is taken away, and has no more rights. */
static void mirrored(void)
{
	static uint64_t words[PAGES * PAGE / 8];
	int device = mirror_open(), fd = make();
	struct hmm_dmirror_cmd cmd = { .ptr = (uintptr_t)words, .npages = PAGES };
	char *p, *q;

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
	int device = mirror_open(), fd = make();
	struct hmm_dmirror_cmd cmd = { .ptr = (uintptr_t)words, .npages = PAGES };
	char *p;

	p = morsel_map(fd, GIB, BOTH);
	morsel_fill(p, PARTS, OWN);
	cmd.addr = (uintptr_t)p + 4 * PAGE;
	ENSURE(ioctl(device, HMM_DMIRROR_EXCLUSIVE, &cmd), "it has one");
	ENSURE(morsel_count(p, PARTS, OWN) == PARTS, "it was split");
	close(device);
}

/* CPUs with upper tables of their own. */
static void sharers(void)
{
	int fd = make(), i;
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

int main(int argc, char **argv)
{
	static const struct ktap_case cases[] = {
		{ "pinned", pinned, 0 },
		{ "direct_io", direct_io, 0 },
		{ "walked", walked, 0 },
		{ "split", stays_whole, 0 },
		{ "futexes", futexes, 0 },
		{ "broken", broken, 0 },
		{ "mirrored", mirrored, 0 },
		{ "exclusive", exclusive, 0 },
		{ "sharers", sharers, 0 },
	};

	return ktap_main(argc, argv, cases, KTAP_COUNT(cases));
}
