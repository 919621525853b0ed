// SPDX-License-Identifier: GPL-2.0
/*
 * Morsels and the rest of the kernel: who walks tables, pins pages, kills processes, mirrors
 * memory, and the other mechanisms. Nobody changes what belongs to all (M6), nobody gets
 * more than the mapping allows (M5), and all hear of what is taken away (M3).
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/mempolicy.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "context.h"
#include "file.h"
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

#ifndef SYS_process_mrelease
#define SYS_process_mrelease	448
#endif

#define units	morsel_units
#define UNITS	morsel_nr_units()

/* A device writes by the kernel's mapping of the page, whatever the program may do. */
static void direct_io_of(int disk, uint64_t unit)
{
	int fd = morsel_make_of(unit, unit);
	char *p = morsel_map(fd, unit, BOTH), *q;
	ssize_t got;

	q = morsel_map(fd, unit, PROT_READ);
	morsel_fill(p, PAGES, OWN);
	/* Linked, so that no fault says no. */
	ENSURE(morsel_count(q, PAGES, OWN) == PAGES, "no data");
	got = pread(disk, q, PAGES * PAGE, 0);
	ENSURE(got == -1 && errno == EFAULT,
	       "unit %#llx: %zd bytes were read into what is read-only",
	       (unsigned long long)unit, got);
	ENSURE(morsel_count(p, PAGES, OWN) == PAGES, "other data");
	ENSURE(pread(disk, p, PAGES * PAGE, 0) == PAGES * PAGE,
	       "what may be written to is not: %m");
	ENSURE(morsel_count(q, PAGES, OTHER) == PAGES, "other data");
	/* From there it may be written. */
	ENSURE(pwrite(disk, q, PAGES * PAGE, 0) == PAGES * PAGE,
	       "pwrite: %m");
	close(fd);
	MUST(munmap(p, unit));
	MUST(munmap(q, unit));
}

static int direct_file(void)
{
	struct tfile file;

	file_make(&file, ON_DISK, PAGES, 0x33);
	MUST(fsync(file.fd));
	ENSURE(!fcntl(file.fd, F_SETFL, fcntl(file.fd, F_GETFL) | O_DIRECT),
	       "O_DIRECT: %m");
	return file.fd;
}

static void direct_io(void)
{
	int disk = direct_file();
	size_t i;

	for (i = 0; i < 3; i++)
		direct_io_of(disk, units[i]);
}

static void direct_io_256(void)
{
	morsel_need_256_tib();
	direct_io_of(direct_file(), 256 * TIB);
}

static long rss_at(const char *p)
{
	FILE *maps = fopen("/proc/self/smaps", "r");
	char line[400], begin[40];
	bool here = false;
	long kb = -1;

	ENSURE(maps, "smaps: %m");
	snprintf(begin, sizeof(begin), "%lx-", (unsigned long)p);
	while (kb < 0 && fgets(line, sizeof(line), maps)) {
		here |= !strncmp(line, begin, strlen(begin));
		if (here)
			sscanf(line, "Rss: %ld kB", &kb);
	}
	fclose(maps);
	return kb;
}

/* Looks at what cannot be written to, which changes nothing. */
static void smaps_of(uint64_t unit)
{
	int fd = morsel_make_of(unit, unit);
	char *p = morsel_map(fd, unit, PROT_READ);

	ENSURE(!morsel_populate(fd, 0, UNIT), "populate");
	ENSURE(!probe_read(p), "no data");
	ENSURE(rss_at(p) == 2048, "%ld KiB", rss_at(p));
	ENSURE(rss_at(p) == 2048, "%ld KiB the second time", rss_at(p));
	ENSURE(frame_of(p + 5 * PAGE), "no frame in pagemap");
	close(fd);
	MUST(munmap(p, unit));
}

static void smaps(void)
{
	size_t i;

	for (i = 0; i < 3; i++)
		smaps_of(units[i]);
}

static void smaps_256(void)
{
	morsel_need_256_tib();
	smaps_of(256 * TIB);
}

/* Whoever clears bits of entries leaves those alone. */
static void cleared(void)
{
	int fd = morsel_make_of(GIB, GIB), i;
	char *p = morsel_map(fd, GIB, BOTH), text[4];

	morsel_fill(p, 512, OWN);
	for (i = 1; i <= 5; i++) {
		snprintf(text, sizeof(text), "%d", i);
		ENSURE(write_text("/proc/self/clear_refs", text),
		       "clear_refs: %m");
		ENSURE(morsel_count(p, 512, OWN) == 512, "other data");
	}
}

static void hinted(void)
{
	unsigned long nodes = 1;
	char *p, text[60];
	int fd = morsel_make_of(GIB, GIB);

	p = morsel_map(fd, GIB, BOTH);
	morsel_fill(p, 512, OWN);
	snprintf(text, sizeof(text), "%lx %lx", (unsigned long)p, UNIT);
	if (!write_text("/sys/kernel/debug/ceasefire/hint", text))
		ktap_skip("no hints on demand: boot the debug kernel");
	ENSURE(morsel_count(p, 512, OWN) == 512, "other data");
	syscall(SYS_mbind, p, GIB, MPOL_BIND, &nodes, 8, MPOL_MF_MOVE);
	ENSURE(morsel_count(p, 512, OWN) == 512, "other data");
	MUST(madvise(p, UNIT, MADV_COLD));
	ENSURE(morsel_count(p, 512, OWN) == 512, "other data");
}

/* One that only reads is not shared in the eyes of some. */
static void be_reaped(int reader, int ready)
{
	char *p = morsel_map(reader, GIB, PROT_READ);

	morsel_count(p, 512, OWN);
	pin_to_cpu(1);
	MUST(write(ready, "x", 1));
	for (;;)
		pause();
}

/* Nobody else runs on the CPU, so whoever is killed there does not end. */
static pid_t start_hog(int cpu, int ready)
{
	struct sched_param param = { .sched_priority = 1 };
	pid_t pid = fork();

	MUST(pid);
	if (pid)
		return pid;
	pin_to_cpu(cpu);
	MUST(sched_setscheduler(0, SCHED_FIFO, &param));
	MUST(write(ready, "x", 1));
	for (;;)
		;
}

/* Memory of a process that was killed is taken away before it ends. */
static void reaped(void)
{
	int fd = morsel_make_of(GIB, GIB), reader, ends[2], pidfd;
	char *p = morsel_map(fd, GIB, BOTH), byte;
	pid_t pid, hog;
	long result;

	need_cpus(2);
	pin_to_cpu(0);
	morsel_fill(p, 512, OWN);
	reader = morsel_reader(fd);
	MUST(pipe(ends));
	pid = fork();
	MUST(pid);
	if (!pid)
		be_reaped(reader, ends[1]);
	MUST(read(ends[0], &byte, 1));
	pidfd = (int)MUST(syscall(SYS_pidfd_open, pid, 0));
	hog = start_hog(1, ends[1]);
	MUST(read(ends[0], &byte, 1));
	MUST(kill(pid, SIGKILL));
	result = syscall(SYS_process_mrelease, pidfd, 0);
	MUST(kill(hog, SIGKILL));
	MUST(waitpid(hog, NULL, 0));
	MUST(waitpid(pid, NULL, 0));
	PREMISE(!result, "process_mrelease: nothing was taken away");
	ENSURE(morsel_count(p, 512, OWN) == 512, "taken from all");
	ENSURE(morsel_stat(fd).pages == 512, "%llu pages",
	       (unsigned long long)morsel_stat(fd).pages);
}

static uint64_t words[PAGES * PAGE / 8];

static struct hmm_dmirror_cmd command(const char *p)
{
	return (struct hmm_dmirror_cmd) {
		.addr = (uintptr_t)p, .ptr = (uintptr_t)words, .npages = PAGES,
	};
}

/* A device with tables of its own hears of what is taken away. */
static void mirrored(void)
{
	int device = mirror_open(), fd = morsel_make_of(GIB, GIB);
	char *p = morsel_map(fd, GIB, BOTH);
	struct hmm_dmirror_cmd cmd = command(p);

	morsel_fill(p, PAGES, OWN);
	MUST(ioctl(device, HMM_DMIRROR_READ, &cmd));
	ENSURE(words[0] == OWN, "it reads something else");
	ENSURE(!morsel_depopulate(fd, 0, UNIT), "depopulate");
	MUST(ioctl(device, HMM_DMIRROR_READ, &cmd));
	ENSURE(!words[0], "it reads %llx", (unsigned long long)words[0]);
	words[0] = OTHER;
	MUST(ioctl(device, HMM_DMIRROR_WRITE, &cmd));
	ENSURE(probe_read(p) == OTHER, "what it writes is not there");
	close(device);
}

/* And has no more rights than the mapping. */
static void mirrored_read_only(void)
{
	size_t i;

	for (i = 0; i < UNITS; i++) {
		int device = mirror_open(), fd = morsel_make_of(units[i], units[i]);
		char *p = morsel_map(fd, units[i], BOTH), *q;
		struct hmm_dmirror_cmd cmd;

		q = morsel_map(fd, units[i], PROT_READ);
		morsel_fill(p, PAGES, OWN);
		ENSURE(morsel_count(q, PAGES, OWN) == PAGES, "no data");
		words[0] = OTHER;
		cmd = command(q);
		ENSURE(ioctl(device, HMM_DMIRROR_WRITE, &cmd),
		       "a device may write");
		ENSURE(morsel_count(p, PAGES, OWN) == PAGES, "other data");
		close(device);
		close(fd);
		MUST(munmap(p, units[i]));
		MUST(munmap(q, units[i]));
	}
}

/* CPUs with upper tables of their own. */
static void sharers_of(size_t unit, int prot)
{
	int fd = morsel_make_of(unit, unit), i;
	char *p, *q;

	sharers_start();
	q = morsel_map(fd, unit, BOTH);
	p = morsel_map(fd, unit, prot);
	for (i = 0; i < 3; i++) {
		morsel_fill(q, PAGES, OWN);
		peer_finds(p, PAGES, OWN);
		if (!(prot & PROT_WRITE))
			peer_cannot_write(p, PAGES, OTHER);
		ENSURE(!morsel_depopulate(fd, 0, UNIT), "depopulate");
		peer_finds(p, PAGES, 0);
	}
	MUST(mprotect(p, unit, PROT_READ));
	morsel_fill(q, PAGES, OWN);
	peer_finds(p, PAGES, OWN);
	peer_cannot_write(p, PAGES, OTHER);
	MUST(munmap(p, unit));
	peer_finds(p, PAGES, FAULTED);
}

static void sharers_small(void)
{
	sharers_of(UNIT, BOTH);
}

static void sharers_gib(void)
{
	sharers_of(GIB, BOTH);
}

static void sharers_gib_read(void)
{
	sharers_of(GIB, PROT_READ);
}

static void sharers_512(void)
{
	sharers_of(512 * GIB, BOTH);
}

static void sharers_512_read(void)
{
	sharers_of(512 * GIB, PROT_READ);
}

static void sharers_256(void)
{
	morsel_need_256_tib();
	sharers_of(256 * TIB, BOTH);
}

static void sharers_256_read(void)
{
	morsel_need_256_tib();
	sharers_of(256 * TIB, PROT_READ);
}

/* In a process that uses FPR, or is lazy, all is flushed as ever. */
static void other_mechanisms(bool lazily)
{
	int fd = morsel_make_of(2 * UNIT, UNIT), i;
	char *p, *arena;

	need_cpus(2);
	pin_to_cpu(0);
	if (lazily && context_lazy(1))
		ktap_skip("prctl(PR_LATR): %m");
	peer_start(1);
	for (i = 0; i < 10; i++) {
		p = mmap(NULL, 2 * UNIT, BOTH, MAP_SHARED | MAP_FPR, fd, 0);
		ENSURE(p != MAP_FAILED, "mmap: %m");
		ENSURE(!((uintptr_t)p % UNIT), "at %p", (void *)p);
		morsel_fill(p, PAGES, OWN);
		ENSURE(peer_count(p, PAGES, OWN) == PAGES, "other data");
		ENSURE(!morsel_depopulate(fd, 0, UNIT), "depopulate");
		ENSURE(peer_count(p, PAGES, 0) == PAGES, "no zeroes");
		MUST(munmap(p, 2 * UNIT));
		ENSURE(peer_count(p, PAGES, FAULTED) == PAGES, "still there");
	}
	/* Where tables may have been left. */
	arena = mmap(NULL, 8 * UNIT, BOTH,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FPR, -1, 0);
	ENSURE(arena != MAP_FAILED, "mmap: %m");
	for (i = 0; i < 8; i++)
		morsel_fill(arena + i * UNIT, PAGES, OTHER);
	peer_touch(arena, PAGES);
	MUST(munmap(arena, 8 * UNIT));
	p = (char *)(((uintptr_t)arena + UNIT - 1) & ~(UNIT - 1)) + UNIT;
	p = mmap(p, 2 * UNIT, BOTH, MAP_SHARED | MAP_FIXED, fd, 0);
	ENSURE(p != MAP_FAILED, "mmap: %m");
	ENSURE(probe_write(p, OWN) && probe_write(p + UNIT, OWN),
	       "no access at an address of the arena");
	ENSURE(peer_count(p, 1, OWN) == 1, "other data");
}

static void with_fpr(void)
{
	other_mechanisms(false);
}

static void with_latr(void)
{
	other_mechanisms(true);
}

/* Nothing private comes into a unit, whatever is said about huge pages. */
static void huge_pages(void)
{
	int fd = morsel_make_of(GIB, GIB);
	char *p;

	MUST(prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0));
	p = morsel_map(fd, GIB, BOTH);
	morsel_fill(p, 512, OWN);
	MUST(prctl(PR_SET_THP_DISABLE, 0, 0, 0, 0));
	p = morsel_map(fd, GIB, BOTH);
	ENSURE(morsel_count(p, 512, OWN) == 512, "other data");
	p = mmap(NULL, GIB, BOTH, MAP_SHARED | MAP_STACK, fd, 0);
	ENSURE(p != MAP_FAILED && morsel_count(p, 512, OWN) == 512, "stack");
}

/*
 * Processes that map, write, check, move, protect, fork, populate and depopulate at random,
 * and end at random. A page is zero, or was written by somebody: its words say so.
 */
#define STRESS_PROCESSES	4
#define STRESS_PAGES		2048

static const char *stress_fault;

static void stress_page(char *page)
{
	uint64_t first = *(volatile uint64_t *)page;
	uint64_t last = *(volatile uint64_t *)(page + PAGE - 8);

	if ((first && first != OWN) || (last && last != OWN))
		stress_fault = "a word that nobody has written";
	*(volatile uint64_t *)page = OWN;
	*(volatile uint64_t *)(page + PAGE - 8) = OWN;
}

static void *stress_thread(void *base)
{
	unsigned int seed = (unsigned int)syscall(SYS_gettid);
	int i;

	for (i = 0; i < 4000; i++)
		stress_page((char *)base +
			    (size_t)(rand_r(&seed) % STRESS_PAGES) * PAGE);
	return NULL;
}

static void stress_process(int fd, size_t size, unsigned int seed)
{
	char *p = morsel_map(fd, size, BOTH), *q;
	pthread_t thread;
	pid_t pid;
	int i;

	srand(seed);
	if (pthread_create(&thread, NULL, stress_thread, p))
		_exit(3);
	for (i = 0; i < 300; i++) {
		uint64_t at = (uint64_t)(rand() % STRESS_PAGES) * PAGE;
		uint64_t len = (uint64_t)(rand() % 600) * PAGE;

		if (at + len > STRESS_PAGES * PAGE)
			len = STRESS_PAGES * PAGE - at;
		switch (rand() % 6) {
		case 0:
		case 1:
			morsel_depopulate(fd, at, len);
			break;
		case 2:
			morsel_populate(fd, at, len);
			break;
		case 3:
			q = morsel_map(fd, size, rand() % 2 ? BOTH : PROT_READ);
			morsel_count(q, 16, 0);
			munmap(q, size);
			break;
		case 4:
			q = morsel_map(fd, size, PROT_READ);
			morsel_count(q + at, 1, 0);
			mprotect(q, size, BOTH);
			stress_page(q + at);
			mremap(q, size, size, MREMAP_MAYMOVE);
			munmap(q, size);
			break;
		case 5:
			if (rand() % 10)
				break;
			pid = fork();
			if (!pid) {
				stress_page(p + at);
				_exit(0);
			}
			waitpid(pid, NULL, 0);
			break;
		}
		stress_page(p + at);
	}
	if (rand() % 2)
		pthread_join(thread, NULL);
	_exit(stress_fault ? 1 : 0);
}

static void stress_of(size_t unit)
{
	double end = seconds_until_end(15);
	size_t size = unit == UNIT ? STRESS_PAGES * PAGE : unit;
	int fd = morsel_make_of(size, unit), i, status;
	unsigned int seed = 1;

	while (seconds() < end) {
		for (i = 0; i < STRESS_PROCESSES; i++, seed++)
			if (!fork())
				stress_process(fd, size, seed);
		for (i = 0; i < STRESS_PROCESSES; i++) {
			MUST(wait(&status));
			ENSURE(!status, "a process ends with %#x", status);
		}
	}
	ENSURE(!morsel_depopulate(fd, 0, STRESS_PAGES * PAGE), "depopulate");
	ENSURE(!morsel_stat(fd).pages && !morsel_stat(fd).mappings,
	       "%llu pages, %llu mappings",
	       (unsigned long long)morsel_stat(fd).pages,
	       (unsigned long long)morsel_stat(fd).mappings);
	ktap_note("%u processes", seed - 1);
}

static void stress_small(void)
{
	stress_of(UNIT);
}

static void stress_gib(void)
{
	stress_of(GIB);
}

int main(int argc, char **argv)
{
	static const struct ktap_case cases[] = {
		{ "direct_io", direct_io, 0 },
		{ "direct_io_256", direct_io_256, 0 },
		{ "smaps", smaps, 0 },
		{ "smaps_256", smaps_256, 0 },
		{ "cleared", cleared, 0 },
		{ "hinted", hinted, 0 },
		{ "reaped", reaped, 0 },
		{ "mirrored", mirrored, 0 },
		{ "mirrored_read_only", mirrored_read_only, 0 },
		{ "sharers_small", sharers_small, 0 },
		{ "sharers_gib", sharers_gib, 0 },
		{ "sharers_gib_read", sharers_gib_read, 0 },
		{ "sharers_512", sharers_512, 0 },
		{ "sharers_512_read", sharers_512_read, 0 },
		{ "sharers_256", sharers_256, 0 },
		{ "sharers_256_read", sharers_256_read, 0 },
		{ "with_fpr", with_fpr, 0 },
		{ "with_latr", with_latr, 0 },
		{ "huge_pages", huge_pages, 0 },
		{ "stress_small", stress_small, 300 },
		{ "stress_gib", stress_gib, 300 },
	};

	return ktap_main(argc, argv, cases, KTAP_COUNT(cases));
}
