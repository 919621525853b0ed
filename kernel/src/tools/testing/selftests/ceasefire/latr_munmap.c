// SPDX-License-Identifier: GPL-2.0
/*
 * What munmap() of a lazy process leaves to ticks, and what it flushes for, each
 * with its reason (I5, I8). What is left meets nothing but what was there (I1, I2),
 * within limits (I6).
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <linux/userfaultfd.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "checker.h"
#include "context.h"
#include "env.h"
#include "file.h"
#include "ktap.h"
#include "map.h"
#include "peer.h"

#define PAGES	64
#define LENGTH	(PAGES * PAGE)
#define OWN	0x5a
#define NEW	0x21
#define WRITTEN	0x33
#define TRIES	20

/* mov $1, %eax; ret */
static const unsigned char code[] = { 0xb8, 1, 0, 0, 0, 0xc3 };

static void start(void)
{
	pin_to_cpu(0);
	peer_start(1);
	hold_debts();
}

/* Nothing that comes later is where stale translations lead. */
static void anonymous(void)
{
	char *p, *q;

	start();
	p = leave_writable(NULL, PAGES, WORD(WRITTEN));
	/* The flag asks for frames that were used before. */
	q = mmap(NULL, LENGTH, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FPR, -1, 0);
	ENSURE(q != MAP_FAILED, "mmap: %m");
	memset(q, NEW, LENGTH);
	ENSURE(!peer_count(p, PAGES, WORD(NEW)),
	       "new memory is seen at an address that was unmapped");
	ENSURE(peer_count(p, PAGES, FAULTED) < PAGES,
	       "the munmap flushed: nothing was left to see");
}

/* A mapping of a file that is lazy, twice: its frames, and those of the next. */
static void of_file(enum place place, int flags)
{
	struct tfile f, other;
	char *p, *q;

	file_make(&f, place, PAGES, OWN);
	file_make(&other, place, PAGES, NEW);
	start();
	p = leave_stale(&f, 0, PAGES, PROT_READ, flags, OWN);
	file_drop(&f);
	q = fpr_map(&other, 0, PAGES, PROT_READ, flags);
	peer_touch(q, PAGES);
	ENSURE(!peer_count(p, PAGES, WORD(NEW)),
	       "another file is seen at an address that was unmapped");
}

static void shared_file(void)
{
	of_file(ON_DISK, MAP_SHARED);
}

static void private_file(void)
{
	of_file(ON_DISK, MAP_PRIVATE);
}

static void shared_memory(void)
{
	of_file(ON_TMPFS, MAP_SHARED);
}

static void large_folios(void)
{
	of_file(ON_LARGE, MAP_SHARED);
}

/* Old code may run until it is settled; nothing else may in its place. */
static void old_code(void)
{
	uint64_t results[PAGES];
	struct tfile f, other;
	size_t i, run = 0;
	char *p = NULL, *q;
	int tries;

	file_make(&f, ON_TMPFS, PAGES, OWN);
	for (i = 0; i < PAGES; i++)
		MUST(pwrite(f.fd, code, sizeof(code), (off_t)(i * PAGE)));
	file_make(&other, ON_DISK, PAGES, NEW);
	file_drop(&other);
	start();
	for (tries = 0; tries < TRIES && run < PAGES / 2; tries++) {
		p = fpr_map(&f, 0, PAGES, PROT_READ | PROT_EXEC, MAP_SHARED);
		peer_call(p, PAGES, results);
		if (!fpr_unmap(p, PAGES))
			continue;
		peer_call(p, PAGES, results);
		for (run = i = 0; i < PAGES; i++)
			run += results[i] == 1;
	}
	PREMISE(run >= PAGES / 2, "%zu of %d stale translations", run, PAGES);
	file_drop(&f);
	q = mmap(NULL, LENGTH, PROT_READ, MAP_SHARED | MAP_FPR, other.fd, 0);
	ENSURE(q != MAP_FAILED, "mmap: %m");
	peer_touch(q, PAGES);
	/* Only looked at: what is free is poisoned, and no code. */
	ENSURE(!peer_count(p, PAGES, WORD(NEW)),
	       "a file could be executed that is not executable");
}

/* Unmapped by shmdt(), which takes another way. */
static void system_v(void)
{
	int tries, id = (int)MUST(shmget(IPC_PRIVATE, LENGTH, IPC_CREAT | 0600));
	long skips = vmstat("fpr_skip");
	char *p = shmat(id, NULL, 0);

	ENSURE(p != (char *)-1, "shmat: %m");
	memset(p, OWN, LENGTH);
	MUST(shmdt(p));
	start();
	for (tries = 0; tries < TRIES && vmstat("fpr_skip") == skips; tries++) {
		p = shmat(id, NULL, SHM_RDONLY);
		ENSURE(p != (char *)-1, "shmat: %m");
		ENSURE(peer_count(p, PAGES, WORD(OWN)) == PAGES,
		       "the peer does not see the segment");
		MUST(shmdt(p));
	}
	MUST(shmctl(id, IPC_RMID, NULL));
	ENSURE(vmstat("fpr_skip") > skips, "no shmdt was lazy");
}

/* One munmap of what the peer has touched, and the counter that it must raise. */
static void flushes_for(char *p, size_t pages, const char *why)
{
	long skips = vmstat("fpr_skip"), before = vmstat(why);
	size_t faulted;

	MUST(munmap(p, pages * PAGE));
	checker_forbid(p, pages);
	before = vmstat(why) - before;
	skips = vmstat("fpr_skip") - skips;
	faulted = peer_count(p, pages, FAULTED);
	ENSURE(before > 0, "%s is not counted", why);
	ENSURE(!skips, "the munmap was lazy");
	ENSURE(faulted == pages, "the peer reads what was unmapped");
}

static char *touched(char *p)
{
	ENSURE(p != MAP_FAILED, "mmap: %m");
	peer_touch(p, PAGES);
	return p;
}

static char *touched_anonymous(int flags, void *at)
{
	return touched(mmap(at, LENGTH, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE | flags,
			    -1, 0));
}

/* A mapping that exists, so that the process has an arena. */
static void first_mapping(void)
{
	MUST(munmap(touched_anonymous(0, NULL), LENGTH));
}

static void dirty(void)
{
	struct tfile f;
	char *p;

	file_make(&f, ON_DISK, PAGES, OWN);
	start();
	first_mapping();
	p = mmap(NULL, LENGTH, PROT_READ | PROT_WRITE, MAP_SHARED, f.fd, 0);
	ENSURE(p != MAP_FAILED, "mmap: %m");
	ENSURE(peer_write(p, PAGES, WORD(WRITTEN)) == PAGES, "no write");
	flushes_for(p, PAGES, "fpr_flush_dirty");
}

static void chosen_address(void)
{
	start();
	first_mapping();
	flushes_for(touched_anonymous(MAP_FIXED_NOREPLACE, (void *)(1UL << 40)),
		    PAGES, "fpr_flush_outside");
}

/* The pages of @p are a child's, too, when they are unmapped. */
static void shared_with_child(char *p, size_t pages)
{
	pid_t child = (pid_t)MUST(fork());

	if (!child) {
		pause();
		_exit(0);
	}
	peer_touch(p, pages);
	flushes_for(p, pages, "fpr_flush_anon");
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
}

static void of_child(void)
{
	start();
	first_mapping();
	shared_with_child(touched_anonymous(0, NULL), PAGES);
}

#define HUGE_PAGES	512
#define HUGE_LENGTH	(HUGE_PAGES * PAGE)

/* 2 MiB mapped by one entry, which the peer has used. */
static char *touched_huge(void)
{
	long huge = vmstat("thp_fault_alloc");
	char *p = mmap(NULL, HUGE_LENGTH, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	ENSURE(p != MAP_FAILED, "mmap: %m");
	if (madvise(p, HUGE_LENGTH, MADV_HUGEPAGE))
		ktap_skip("no transparent huge pages");
	memset(p, OWN, HUGE_LENGTH);
	PREMISE(vmstat("thp_fault_alloc") > huge, "no huge page was free");
	peer_touch(p, HUGE_PAGES);
	return p;
}

/* All frames of a huge page wait, not only the first one. */
static void huge(void)
{
	long skips = vmstat("fpr_skip"), parked = 0;
	char *p = NULL, *q;
	int tries;

	start();
	for (tries = 0; tries < TRIES && vmstat("fpr_skip") == skips; tries++) {
		p = touched_huge();
		parked = fpr_sysfs("parked");
		fpr_unmap(p, HUGE_PAGES);
	}
	parked = fpr_sysfs("parked") - parked;
	ENSURE(vmstat("fpr_skip") > skips, "no munmap was lazy");
	ENSURE(parked >= HUGE_PAGES, "%ld of %d frames wait", parked, HUGE_PAGES);
	q = mmap(NULL, HUGE_LENGTH, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FPR, -1, 0);
	ENSURE(q != MAP_FAILED, "mmap: %m");
	memset(q, NEW, HUGE_LENGTH);
	ENSURE(!peer_count(p, HUGE_PAGES, WORD(NEW)),
	       "new memory is seen at an address that was unmapped");
}

static void huge_of_child(void)
{
	start();
	first_mapping();
	shared_with_child(touched_huge(), HUGE_PAGES);
}

static void huge_dirty(void)
{
	struct tfile f;
	char *p;

	file_make(&f, ON_HUGE, HUGE_PAGES, OWN);
	start();
	first_mapping();
	p = mmap(NULL, HUGE_LENGTH, PROT_READ | PROT_WRITE, MAP_SHARED, f.fd, 0);
	ENSURE(p != MAP_FAILED, "mmap: %m");
	ENSURE(peer_write(p, HUGE_PAGES, WORD(WRITTEN)) == HUGE_PAGES, "no write");
	PREMISE(read_kb("/proc/self/smaps_rollup", "ShmemPmdMapped") == 2048,
		"not mapped by one entry");
	flushes_for(p, HUGE_PAGES, "fpr_flush_dirty");
}

static void watched(void)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register what = { .mode = UFFDIO_REGISTER_MODE_MISSING };
	long uffd = syscall(SYS_userfaultfd, O_CLOEXEC);
	char *p;

	if (uffd < 0)
		ktap_skip("no userfaultfd: %m");
	start();
	first_mapping();
	p = touched_anonymous(0, NULL);
	what.range.start = (unsigned long)p;
	what.range.len = LENGTH;
	MUST(ioctl((int)uffd, UFFDIO_API, &api));
	MUST(ioctl((int)uffd, UFFDIO_REGISTER, &what));
	flushes_for(p, PAGES, "fpr_flush_mixed");
}

static void never(void)
{
	char *p;

	start();
	first_mapping();
	p = touched_anonymous(0, NULL);
	ENSURE(write_text("/sys/kernel/mm/ceasefire/latr/enabled", "never"),
	       "it cannot be switched off: %m");
	flushes_for(p, PAGES, "fpr_flush_disabled");
}

/*
 * Ticks pay for what is unmapped slowly: where that is slow, it takes long until the limit
 * is met.
 */
#define HELD_ROUNDS	100
#define HELD_MOST	1000

static bool goes_on(int round, long limits)
{
	return round < HELD_ROUNDS ||
	       (round < HELD_MOST && vmstat("fpr_flush_limit") == limits);
}

/* What waits is bounded, however fast it comes. */
static void held(void)
{
	long limits = vmstat("fpr_flush_limit"), most = 0, skips;
	int i;

	start();
	first_mapping();
	latr_set("held_limit", 4 * PAGES);
	skips = vmstat("fpr_skip");
	for (i = 0; goes_on(i, limits); i++) {
		MUST(munmap(touched_anonymous(0, NULL), LENGTH));
		if (fpr_sysfs("parked") > most)
			most = fpr_sysfs("parked");
	}
	ktap_note("at most %ld of %d pages waited, %ld munmaps were lazy", most,
		  4 * PAGES, vmstat("fpr_skip") - skips);
	ENSURE(vmstat("fpr_skip") > skips, "no munmap was lazy");
	ENSURE(vmstat("fpr_flush_limit") > limits, "the limit was never met");
	ENSURE(most <= 4 * PAGES, "%ld pages wait, the limit is %d", most,
	       4 * PAGES);
}

/* More than a quarter of the limit is flushed for at once. */
static void held_at_once(void)
{
	int tries;

	start();
	first_mapping();
	for (tries = 0; tries < TRIES; tries++)
		fpr_unmap(touched_anonymous(0, NULL), PAGES);
	latr_set("held_limit", 4 * PAGES - 4);
	flushes_for(touched_anonymous(0, NULL), PAGES, "fpr_flush_limit");
}

/* Reclaim, or the program, has said before that the pages are not used: they count. */
static void held_cold(void)
{
	long limits = vmstat("fpr_flush_limit"), most = 0;
	char *p;
	int i;

	start();
	first_mapping();
	latr_set("held_limit", 4 * PAGES);
	for (i = 0; goes_on(i, limits); i++) {
		p = touched_anonymous(0, NULL);
		MUST(madvise(p, LENGTH, MADV_COLD));
		MUST(munmap(p, LENGTH));
		if (fpr_sysfs("parked") > most)
			most = fpr_sysfs("parked");
	}
	ENSURE(most <= 4 * PAGES, "%ld pages wait, the limit is %d", most,
	       4 * PAGES);
	ENSURE(vmstat("fpr_flush_limit") > limits, "the limit was never met");
}

/* When the call returns nothing can be used any more. */
static void switched_off(void)
{
	size_t faulted;
	char *p;

	start();
	p = leave_writable(NULL, PAGES, WORD(WRITTEN));
	MUST(context_lazy(0));
	checker_forbid(p, PAGES);
	faulted = peer_count(p, PAGES, FAULTED);
	ENSURE(faulted == PAGES, "%zu of %d pages can still be read",
	       PAGES - faulted, PAGES);
	/* And munmap() is as ever. */
	p = touched_anonymous(0, NULL);
	MUST(munmap(p, LENGTH));
	ENSURE(peer_count(p, PAGES, FAULTED) == PAGES,
	       "munmap() is lazy after it was switched off");
}

/* The thread that unmaps is on a CPU that needs no tick to know. */
static void own_cpu(void)
{
	long skips = vmstat("fpr_skip");
	size_t i, read = 0;
	int tries;

	start();
	/* Whatever else runs on this CPU makes it flush: many times. */
	for (tries = 0; tries < 10 * TRIES; tries++) {
		char *p = touched_anonymous(0, NULL);

		memset(p, OWN, LENGTH);
		MUST(munmap(p, LENGTH));
		for (i = 0; i < PAGES; i++)
			read += probe_read(p + i * PAGE) != FAULTED;
	}
	ENSURE(vmstat("fpr_skip") > skips, "no munmap was lazy");
	ENSURE(!read, "%zu pages can be read where they were unmapped", read);
}

/*
 * The short way of mmap() is for files; a device whose mapping becomes anonymous
 * takes the usual one, also where the last mapping was.
 */
static void device_at_last_address(void)
{
	int zero = (int)MUST(open("/dev/zero", O_RDONLY | O_CLOEXEC));
	char *p, *q;

	p = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ENSURE(p != MAP_FAILED, "mmap: %m");
	memset(p, OWN, 2 * PAGE);
	MUST(munmap(p, PAGE));
	q = mmap(p, PAGE, PROT_READ, MAP_PRIVATE | MAP_FIXED, zero, 0);
	ENSURE(q == p, "mmap of /dev/zero: %m");
	ENSURE(*q == 0 && p[PAGE] == OWN, "wrong data");
}

/* As a dynamic linker does it: the address is the kernel's, the parts are not. */
static void loaded(void)
{
	long claims = vmstat("fpr_va_flush"), skips;
	struct tfile f;
	int tries;
	char *p;

	file_make(&f, ON_TMPFS, 4 * PAGES, OWN);
	start();
	first_mapping();
	skips = vmstat("fpr_skip");
	for (tries = 0; tries < TRIES && vmstat("fpr_skip") == skips; tries++) {
		p = mmap(NULL, 4 * LENGTH, PROT_READ, MAP_PRIVATE, f.fd, 0);
		ENSURE(p != MAP_FAILED, "mmap: %m");
		ENSURE(mmap(p + LENGTH, LENGTH, PROT_READ | PROT_EXEC,
			    MAP_PRIVATE | MAP_FIXED, f.fd,
			    LENGTH) == p + LENGTH, "mmap: %m");
		ENSURE(mmap(p + 2 * LENGTH, LENGTH, PROT_READ,
			    MAP_PRIVATE | MAP_FIXED, f.fd,
			    2 * LENGTH) == p + 2 * LENGTH, "mmap: %m");
		peer_touch(p, 4 * PAGES);
		MUST(munmap(p, 4 * LENGTH));
	}
	ENSURE(vmstat("fpr_skip") > skips, "no dlclose() would be lazy");
	ENSURE(vmstat("fpr_va_flush") == claims,
	       "addresses were claimed that nobody has left");
}

int main(int argc, char **argv)
{
	static const struct ktap_case cases[] = {
		{ "anonymous", anonymous, 0 },
		{ "shared_file", shared_file, 0 },
		{ "private_file", private_file, 0 },
		{ "shared_memory", shared_memory, 0 },
		{ "large_folios", large_folios, 0 },
		{ "old_code", old_code, 0 },
		{ "system_v", system_v, 0 },
		{ "dirty", dirty, 0 },
		{ "chosen_address", chosen_address, 0 },
		{ "of_child", of_child, 0 },
		{ "huge", huge, 0 },
		{ "huge_of_child", huge_of_child, 0 },
		{ "huge_dirty", huge_dirty, 0 },
		{ "watched", watched, 0 },
		{ "never", never, 0 },
		{ "held", held, 0 },
		{ "held_at_once", held_at_once, 0 },
		{ "held_cold", held_cold, 0 },
		{ "switched_off", switched_off, 0 },
		{ "own_cpu", own_cpu, 0 },
		{ "device_at_last_address", device_at_last_address, 0 },
		{ "loaded", loaded, 0 },
	};

	setenv("CEASEFIRE_TEST_MECHANISM", "latr", 1);
	return ktap_main(argc, argv, cases, KTAP_COUNT(cases));
}
