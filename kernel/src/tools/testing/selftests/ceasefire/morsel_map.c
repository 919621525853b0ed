// SPDX-License-Identifier: GPL-2.0
/*
 * Mappings of morsels: what a program may do with one, what it sees, and how few faults it
 * takes.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ktap.h"
#include "map.h"
#include "morsels.h"
#include "peer.h"
#include "stranger.h"

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ	22
#define MADV_POPULATE_WRITE	23
#endif

#define OWN	WORD(0x5a)
#define OTHER	WORD(0x33)
#define BOTH	(PROT_READ | PROT_WRITE)

static void refused(void *result, int error, const char *what)
{
	ENSURE(result == MAP_FAILED && errno == error, "%s: %m", what);
}

static void errors(void)
{
	int fd = morsel_make(2 * UNIT), reader = morsel_reader(fd);
	char *p = morsel_map(fd, 2 * UNIT, BOTH), *room;

	room = mmap(NULL, 8 * UNIT, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ENSURE(room != MAP_FAILED, "mmap: %m");
	room = (char *)(((uintptr_t)room + UNIT - 1) & ~(UNIT - 1));
	refused(mmap(NULL, UNIT, BOTH, MAP_PRIVATE, fd, 0), EINVAL, "private");
	refused(mmap(NULL, UNIT, BOTH, MAP_SHARED, fd, UNIT), EINVAL, "offset");
	refused(mmap(NULL, UNIT - PAGE, BOTH, MAP_SHARED, fd, 0), EINVAL,
		"a part of a unit");
	refused(mmap(NULL, 3 * UNIT, BOTH, MAP_SHARED, fd, 0), EINVAL,
		"more than there is");
	refused(mmap(p + PAGE, UNIT, BOTH, MAP_SHARED | MAP_FIXED, fd, 0),
		EINVAL, "between units");
	refused(mmap(NULL, UNIT, PROT_READ | PROT_EXEC, MAP_SHARED, fd, 0),
		EPERM, "executable");
	refused(mmap(NULL, UNIT, BOTH, MAP_SHARED, reader, 0), EACCES,
		"writable by a reader");
	refused(mmap(NULL, UNIT, BOTH, MAP_SHARED, morsel_make(0), 0), EINVAL,
		"of no size");
	/* A hint is one. */
	ENSURE(mmap(p + PAGE, UNIT, BOTH, MAP_SHARED, fd, 0) != MAP_FAILED,
	       "hint: %m");

	ENSURE(munmap(p, UNIT) && errno == EINVAL, "munmap of a part: %m");
	ENSURE(munmap(p + PAGE, PAGE) && errno == EINVAL, "of a page: %m");
	ENSURE(mprotect(p, UNIT, PROT_READ) && errno == EINVAL,
	       "mprotect of a part: %m");
	ENSURE(mprotect(p, 2 * UNIT, PROT_READ | PROT_EXEC) &&
	       (errno == EACCES || errno == EPERM), "executable: %m");
	refused(mremap(p, UNIT, UNIT, MREMAP_MAYMOVE | MREMAP_FIXED,
		       room), EINVAL, "mremap of a part");
	refused(mremap(p, 2 * UNIT, UNIT, 0), EINVAL, "to a part");
	refused(mremap(p, 2 * UNIT, 4 * UNIT, MREMAP_MAYMOVE), EFAULT,
		"to more");
	refused(mremap(p, 2 * UNIT, 2 * UNIT, MREMAP_MAYMOVE | MREMAP_FIXED,
		       room + PAGE), EINVAL, "between units");
	refused(mmap(p, PAGE, BOTH, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
		     0), EINVAL, "something over a part");
	ENSURE(syscall(SYS_pkey_mprotect, p, 2 * UNIT, BOTH, 1) == -1,
	       "it has a key");
	morsel_fill(p, 1024, OWN);
	/* Over the whole it may be. */
	ENSURE(mmap(p, 2 * UNIT, BOTH, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
		    -1, 0) == p, "over the whole: %m");
	ENSURE(!probe_read(p), "it is still there");
	refused(mmap(NULL, UNIT, PROT_READ, MAP_SHARED, reader, PAGE), EINVAL,
		"offset");
}

static long faults(void)
{
	struct rusage usage;

	MUST(getrusage(RUSAGE_SELF, &usage));
	return usage.ru_minflt + usage.ru_majflt;
}

/* One fault, whatever is populated, and no table of one's own. */
static void one_fault(void)
{
	const uint64_t *units = morsel_units;
	static char page[PAGE];
	size_t i;

	morsel_count(page, 1, 0);
	for (i = 0; i < morsel_nr_units(); i++) {
		size_t size = i ? GIB : 40 * UNIT;
		int fd = morsel_make_of(size, units[i]);
		size_t len = units[i] > size ? units[i] : size;
		long tables, before, after;
		char *p;

		ENSURE(!morsel_populate(fd, 0, 32 * MIB), "populate");
		p = morsel_map(fd, len, BOTH);
		tables = read_kb("/proc/self/status", "VmPTE");
		faults();
		before = faults();
		morsel_count(p, 8192, 0);
		after = faults();
		/* Units of 2 MiB may be on both sides of a GiB. */
		ENSURE(after - before == 1 || (!i && after - before == 2),
		       "%ld faults", after - before);
		tables = read_kb("/proc/self/status", "VmPTE") - tables;
		ENSURE(tables <= 12, "%ld KiB of tables", tables);
		MUST(munmap(p, len));
		close(fd);
	}
}

static int shared_fd;
static size_t shared_size;

/* In a process of its own, by a mapping of its own. */
static long in_stranger(long word)
{
	char *p = mmap(NULL, shared_size, BOTH, MAP_SHARED, shared_fd, 0);
	long found;

	if (p == MAP_FAILED)
		return -errno;
	found = (long)morsel_count(p, 512, OWN);
	morsel_fill(p, 512, WORD(word));
	if (munmap(p, shared_size))
		return -errno;
	return found;
}

static void shared(void)
{
	const uint64_t *units = morsel_units;
	size_t i;

	for (i = 0; i < morsel_nr_units(); i++) {
		struct stranger other;
		char *p, *q;

		shared_size = units[i];
		shared_fd = morsel_make_of(units[i], units[i]);
		stranger_start(&other);
		p = morsel_map(shared_fd, shared_size, BOTH);
		q = morsel_map(shared_fd, shared_size, PROT_READ);
		morsel_fill(p, 512, OWN);
		ENSURE(morsel_count(q, 512, OWN) == 512, "mapped twice");
		ENSURE(stranger_call(&other, in_stranger, 0x33) == 512,
		       "another process finds something else");
		ENSURE(morsel_count(p, 512, OTHER) == 512 &&
		       morsel_count(q, 512, OTHER) == 512,
		       "what it has written is not there");
		stranger_stop(&other);
		close(shared_fd);
		MUST(munmap(p, shared_size));
		ENSURE(morsel_count(q, 512, OTHER) == 512, "the other is gone");
		MUST(munmap(q, shared_size));
	}
}

/* A child has what its parent has, by a fault of its own. */
static void forked(void)
{
	uint64_t units[] = { UNIT, GIB };
	size_t i;

	for (i = 0; i < 2; i++) {
		int fd = morsel_make_of(units[i], units[i]), status;
		char *p = morsel_map(fd, units[i], BOTH);
		pid_t pid;

		morsel_fill(p, 512, OWN);
		pid = fork();
		MUST(pid);
		if (!pid) {
			bool right = morsel_count(p, 512, OWN) == 512;

			morsel_fill(p, 512, OTHER);
			_exit(right ? 0 : 1);
		}
		MUST(waitpid(pid, &status, 0));
		ENSURE(!status, "the child finds something else");
		ENSURE(morsel_count(p, 512, OTHER) == 512,
		       "the parent has not what the child has written");
		ENSURE(morsel_stat(fd).mappings == 1, "the child is gone");
		close(fd);
	}
}

static void moved(void)
{
	const uint64_t *units = morsel_units;
	size_t i;

	for (i = 0; i < morsel_nr_units(); i++) {
		int fd = morsel_make_of(units[i], units[i]);
		char *p = morsel_map(fd, units[i], BOTH), *q;
		char *room = morsel_room(units[i], units[i]);

		morsel_fill(p, 512, OWN);
		q = mremap(p, units[i], units[i], MREMAP_MAYMOVE | MREMAP_FIXED,
			   room);
		ENSURE(q == room, "mremap: %m");
		ENSURE(morsel_count(q, 512, OWN) == 512, "other data");
		ENSURE(probe_read(p) == FAULTED, "it is still there");
		MUST(munmap(q, units[i]));
		ENSURE(probe_read(q) == FAULTED, "it is still there");
		close(fd);
	}
}

/* What takes pages from other memory takes none from what belongs to all. */
static void advised(void)
{
	int fd = morsel_make_of(GIB, GIB);
	char *p = morsel_map(fd, GIB, BOTH);

	morsel_fill(p, 512, OWN);
	MUST(madvise(p, GIB, MADV_DONTNEED));
	ENSURE(morsel_count(p, 512, OWN) == 512, "MADV_DONTNEED");
	ENSURE(madvise(p, GIB, MADV_FREE), "MADV_FREE");
	MUST(madvise(p, UNIT, MADV_COLD));
	MUST(madvise(p, UNIT, MADV_PAGEOUT));
	madvise(p, UNIT, MADV_MERGEABLE);
	madvise(p, UNIT, MADV_HUGEPAGE);
	ENSURE(madvise(p, UNIT, 25 /* MADV_COLLAPSE */), "MADV_COLLAPSE");
	mlock(p, UNIT);
	munlock(p, UNIT);
	ENSURE(morsel_count(p, 512, OWN) == 512, "other data");
	MUST(madvise(p + PAGE, PAGE, MADV_REMOVE));
	ENSURE(!probe_read(p + PAGE) && probe_read(p) == OWN, "MADV_REMOVE");
	ENSURE(morsel_stat(fd).pages == 512, "one page more, one less");
	MUST(madvise(p, GIB, MADV_REMOVE));
	ENSURE(!morsel_stat(fd).pages, "MADV_REMOVE leaves pages");
	MUST(madvise(p, UNIT, MADV_POPULATE_WRITE));
	ENSURE(morsel_stat(fd).pages == 512, "MADV_POPULATE_WRITE");
	MUST(madvise(p + UNIT, UNIT, MADV_POPULATE_READ));
	ENSURE(morsel_stat(fd).pages == 1024, "MADV_POPULATE_READ");
	ENSURE(mmap(NULL, GIB, PROT_READ, MAP_SHARED, morsel_reader(fd), 0) !=
	       MAP_FAILED, "mmap: %m");
}

/* Without any right nothing is linked, also for a debugger. */
static void no_rights(void)
{
	int fd = morsel_make_of(GIB, GIB), mem;
	char *p = morsel_map(fd, GIB, BOTH);
	uint64_t word = 0;

	morsel_fill(p, 1, OWN);
	MUST(mprotect(p, GIB, PROT_NONE));
	ENSURE(probe_read(p) == FAULTED, "it can be read");
	mem = (int)MUST(open("/proc/self/mem", O_RDWR));
	ENSURE(pread(mem, &word, sizeof(word), (off_t)(uintptr_t)p) !=
	       sizeof(word) || word == OWN, "other data");
	ENSURE(probe_read(p) == FAULTED, "it can be read after a look at it");
	MUST(mprotect(p, GIB, PROT_READ));
	ENSURE(probe_read(p) == OWN && !probe_write(p, OTHER), "read-only");
	word = OTHER;
	ENSURE(pwrite(mem, &word, sizeof(word), (off_t)(uintptr_t)p) == -1,
	       "a debugger writes to what is shared and read-only");
	MUST(mprotect(p, GIB, BOTH));
	ENSURE(probe_write(p, OTHER), "it cannot be written to");
}

/* By the kernel, for the program itself or for another one. */
static void by_kernel(void)
{
	int fd = morsel_make_of(GIB, GIB), mem;
	char *p = morsel_map(fd, GIB, BOTH), buffer[PAGE];
	struct iovec local = { buffer, PAGE }, remote = { p + 7 * PAGE, PAGE };
	uint64_t word = OTHER;
	unsigned char resident[2];

	memset(buffer, 0x5a, PAGE);
	ENSURE(process_vm_writev(getpid(), &local, 1, &remote, 1, 0) == PAGE,
	       "process_vm_writev: %m");
	ENSURE(probe_read(p + 7 * PAGE) == OWN, "other data");
	memset(buffer, 0, PAGE);
	ENSURE(process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == PAGE &&
	       buffer[100] == 0x5a, "process_vm_readv: %m");
	mem = (int)MUST(open("/proc/self/mem", O_RDWR));
	ENSURE(pwrite(mem, &word, 8, (off_t)(uintptr_t)p) == 8 &&
	       probe_read(p) == OTHER, "/proc/self/mem: %m");
	MUST(mincore(p + 7 * PAGE, 2 * PAGE, resident));
	ENSURE(resident[0] & 1 && !(resident[1] & 1), "mincore");
	MUST(pwrite(fd, p + 7 * PAGE, PAGE, (off_t)(9 * PAGE)));
	ENSURE(probe_read(p + 9 * PAGE) == OWN, "from itself to itself");
}

static uint32_t *words;

static long wait_there(long unused)
{
	uint32_t *mine = mmap(NULL, GIB, BOTH, MAP_SHARED, shared_fd, 0);

	(void)unused;
	if (mine == MAP_FAILED)
		return -errno;
	mine[1] = 1;
	while (!mine[0])
		if (syscall(SYS_futex, mine, FUTEX_WAIT, 0, NULL, NULL, 0) &&
		    errno != EAGAIN && errno != EINTR)
			return -errno;
	return 0;
}

/* Two processes, each by an address of its own. */
static void futexes(void)
{
	struct stranger other;
	long woken = 0;
	int tries;

	shared_fd = morsel_make_of(GIB, GIB);
	stranger_start(&other);
	words = (uint32_t *)morsel_map(shared_fd, GIB, BOTH);
	stranger_ask(&other, wait_there, 0);
	while (!*(volatile uint32_t *)(words + 1))
		sleep_ms(1);
	for (tries = 0; !woken && tries < 1000; tries++) {
		sleep_ms(5);
		woken = syscall(SYS_futex, words, FUTEX_WAKE, INT_MAX, NULL,
				NULL, 0);
	}
	ENSURE(woken == 1, "nobody waits");
	*(volatile uint32_t *)words = 1;
	syscall(SYS_futex, words, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
	ENSURE(!stranger_answer(&other), "FUTEX_WAIT fails there");
	stranger_stop(&other);
}

/* What is left of a mapping when the object is smaller, and the other way round. */
static void other_sizes(void)
{
	int fd = morsel_make_of(UNIT, UNIT);
	char *p = morsel_map(fd, UNIT, BOTH), *q;

	morsel_fill(p, 1, OWN);
	MUST(ftruncate(fd, 3 * UNIT));
	q = morsel_map(fd, 3 * UNIT, BOTH);
	morsel_fill(q + 2 * UNIT, 1, OTHER);
	ENSURE(probe_read(q) == OWN && probe_read(q + 2 * UNIT) == OTHER,
	       "other data");
	/* A part of the object, from its start. */
	ENSURE(mmap(NULL, 2 * UNIT, BOTH, MAP_SHARED, fd, 0) != MAP_FAILED,
	       "mmap: %m");
	MUST(ftruncate(fd, UNIT));
	ENSURE(probe_read(q + 2 * UNIT) == FAULTED && probe_read(q) == OWN,
	       "behind the end");
	MUST(munmap(q, 3 * UNIT));
}

/* Whether 2 MiB are one block of memory: they are, if they come at once. */
static bool is_block(const char *p)
{
	uint64_t first = frame_of(p);
	size_t i;

	for (i = 1; i < 512; i++)
		if (frame_of(p + i * PAGE) != first + i)
			return false;
	return first && !(first % 512);
}

static size_t blocks(const char *p, size_t units)
{
	size_t i, count = 0;

	for (i = 0; i < units; i++)
		count += is_block(p + i * UNIT);
	return count;
}

/* MADV_POPULATE_* makes blocks, as MORSEL_IOC_POPULATE does, and takes no fault for each page. */
static void blocks_of(int advice)
{
	int fd = morsel_make_of(GIB, GIB);
	char *p = morsel_map(fd, GIB, BOTH);
	long before;

	ENSURE(!morsel_populate(fd, 64 * UNIT, 8 * UNIT), "populate");
	morsel_count(p + 64 * UNIT, 8 * 512, 0);
	PREMISE(blocks(p + 64 * UNIT, 8) == 8, "there is no memory in blocks");
	before = faults();
	MUST(madvise(p, 8 * UNIT, advice));
	before = faults() - before;
	ENSURE(morsel_stat(fd).pages == 16 * 512, "%llu pages",
	       (unsigned long long)morsel_stat(fd).pages);
	ENSURE(before < 64, "%ld faults", before);
	/* Another one may take some of what was free. */
	ENSURE(blocks(p, 8) >= 6, "%zu of 8 blocks", blocks(p, 8));
	before = faults();
	ENSURE(morsel_count(p, 8 * 512, 0) == 8 * 512, "no zeroes");
	ENSURE(faults() - before < 64, "they are not linked");
	/* Only what is missing, from within a block and into another one. */
	morsel_fill(p, 8 * 512, OWN);
	ENSURE(!morsel_depopulate(fd, 100 * PAGE, 2 * UNIT), "depopulate");
	MUST(madvise(p + 200 * PAGE, UNIT, advice));
	ENSURE(morsel_stat(fd).pages == 15 * 512, "%llu pages",
	       (unsigned long long)morsel_stat(fd).pages);
	ENSURE(morsel_count(p, 100, OWN) == 100 &&
	       morsel_count(p + 2 * UNIT + 100 * PAGE, 412, OWN) == 412,
	       "what was there is not");
	close(fd);
	MUST(munmap(p, GIB));
}

static void populated(void)
{
	blocks_of(MADV_POPULATE_READ);
	blocks_of(MADV_POPULATE_WRITE);
}

/* The same by the flag, up to the end of the object, which lies within a unit. */
static void populated_by_flag(void)
{
	int fd = morsel_make_of(15 * MIB, UNIT);
	long before = faults();
	char *p;

	p = mmap(NULL, 8 * UNIT, BOTH, MAP_SHARED | MAP_POPULATE, fd, 0);
	ENSURE(p != MAP_FAILED, "mmap: %m");
	before = faults() - before;
	ENSURE(morsel_stat(fd).pages == 15 * MIB / PAGE, "%llu pages",
	       (unsigned long long)morsel_stat(fd).pages);
	ENSURE(before < 64, "%ld faults", before);
	ENSURE(blocks(p, 7) >= 5, "%zu of 7 blocks", blocks(p, 7));
	before = faults();
	ENSURE(morsel_count(p, 15 * MIB / PAGE, 0) == 15 * MIB / PAGE,
	       "no zeroes");
	ENSURE(faults() - before < 64, "they are not linked");
	/* Without a right that reads there is no short way, and no error. */
	MUST(munmap(p, 8 * UNIT));
	p = mmap(NULL, 8 * UNIT, PROT_NONE, MAP_SHARED | MAP_POPULATE, fd, 0);
	ENSURE(p != MAP_FAILED, "mmap: %m");
}

/* The error of @advice for a mapping of a file of 3 MiB with these rights; 0: none. */
static int populate_error(int fd, int prot, size_t len, int advice)
{
	char *p = morsel_map(fd, 2 * UNIT, prot);
	int err = madvise(p, len, advice) ? errno : 0;

	MUST(munmap(p, 2 * UNIT));
	return err;
}

/* Errors are those of any file. */
static void not_populated(void)
{
	int rights[] = { PROT_NONE, PROT_READ, PROT_WRITE, BOTH };
	int advice[] = { MADV_POPULATE_READ, MADV_POPULATE_WRITE };
	size_t lengths[] = { 3 * MIB, 4 * MIB }, r, a, l;
	int fd = morsel_make_of(3 * MIB, UNIT), file, err, other;

	file = (int)MUST(memfd_create("other", 0));
	MUST(ftruncate(file, 3 * MIB));
	for (r = 0; r < 4; r++)
		for (a = 0; a < 2; a++)
			for (l = 0; l < 2; l++) {
				err = populate_error(fd, rights[r], lengths[l],
						     advice[a]);
				other = populate_error(file, rights[r],
						       lengths[l], advice[a]);
				ENSURE(err == other, "%d instead of %d: %zu %zu %zu",
				       err, other, r, a, l);
			}
	ENSURE(morsel_stat(fd).pages == 768, "%llu pages",
	       (unsigned long long)morsel_stat(fd).pages);
}

#define MANY		16
#define MANY_BYTES	(64 * MIB)

/* What the mapping of a reader took: kB of page tables, and page faults. */
struct taken {
	long tables, faults;
};

static void read_all(int fd, struct taken *taken)
{
	size_t page, pages = MANY_BYTES / PAGE;
	char *p;

	taken->tables = read_kb("/proc/self/status", "VmPTE");
	p = mmap(NULL, MANY_BYTES, PROT_READ, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED)
		_exit(1);
	taken->faults = faults();
	for (page = 0; page < pages; page++)
		if (*(volatile uint64_t *)(p + page * PAGE) != OWN)
			_exit(2);
	taken->faults = faults() - taken->faults;
	taken->tables = read_kb("/proc/self/status", "VmPTE") - taken->tables;
	_exit(0);
}

/* Processes that map and read the same memory, which is filled, one after the other. */
static struct taken of_readers(int fd)
{
	struct taken *each, sum = { 0, 0 };
	int i, status;
	pid_t pid;
	char *p;

	p = mmap(NULL, MANY_BYTES, BOTH, MAP_SHARED, fd, 0);
	ENSURE(p != MAP_FAILED, "mmap: %m");
	morsel_fill(p, MANY_BYTES / PAGE, OWN);
	MUST(munmap(p, MANY_BYTES));
	each = mmap(NULL, PAGE, BOTH, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ENSURE(each != MAP_FAILED, "mmap: %m");
	for (i = 0; i < MANY; i++) {
		pid = (pid_t)MUST(fork());
		if (!pid)
			read_all(fd, &each[i]);
		MUST(waitpid(pid, &status, 0));
		ENSURE(!status, "a reader ends with %#x", status);
		sum.tables += each[i].tables;
		sum.faults += each[i].faults;
	}
	munmap(each, PAGE);
	return sum;
}

/* A tenth of the page tables of other shared memory, for all together, and a fault each. */
static void many_readers(void)
{
	struct taken morsel, other;
	long tables;
	int fd;

	fd = morsel_make_of(MANY_BYTES, UNIT);
	morsel = of_readers(fd);
	tables = (long)morsel_stat(fd).tables * 4;
	close(fd);
	fd = (int)MUST(memfd_create("other", 0));
	MUST(ftruncate(fd, MANY_BYTES));
	other = of_readers(fd);
	ktap_note("%d readers: %ld + %ld kB of page tables and %ld faults, %ld kB and %ld without",
		  MANY, morsel.tables, tables, morsel.faults, other.tables,
		  other.faults);
	ENSURE((morsel.tables + tables) * 10 <= other.tables,
	       "page tables are more than a tenth");
	/* Reading the status takes some, too. */
	ENSURE(morsel.faults <= 2 * MANY, "%ld faults", morsel.faults);
}

int main(int argc, char **argv)
{
	static const struct ktap_case cases[] = {
		{ "errors", errors, 0 },
		{ "one_fault", one_fault, 0 },
		{ "shared", shared, 0 },
		{ "forked", forked, 0 },
		{ "moved", moved, 0 },
		{ "advised", advised, 0 },
		{ "no_rights", no_rights, 0 },
		{ "by_kernel", by_kernel, 0 },
		{ "futexes", futexes, 0 },
		{ "other_sizes", other_sizes, 0 },
		{ "populated", populated, 0 },
		{ "populated_by_flag", populated_by_flag, 0 },
		{ "not_populated", not_populated, 0 },
		{ "many_readers", many_readers, 300 },
	};

	return ktap_main(argc, argv, cases, KTAP_COUNT(cases));
}
