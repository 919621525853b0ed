// SPDX-License-Identifier: GPL-2.0
/*
 * I4 and I6 for the page tables that an unmapped FPR range leaves behind: they
 * are bounded, go at exit, do not fall off when a neighbour goes, and do not
 * get in the way of what is mapped over them later.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/rseq.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "env.h"
#include "file.h"
#include "ktap.h"
#include "map.h"
#include "peer.h"

#define PAGES		16
#define LENGTH		(PAGES * PAGE)
#define OWN		0x5a
#define NEW		0x42

/* A table for 1 GiB of small mappings, and the ones above it; see struct cf_policy. */
#define TABLES_KB	(lazy() ? 10240 : 4096)
#define DEFAULT_CYCLES	10000

/* More of 2 MiB than leave tables for a drain, by far. */
#define SPARSE_CYCLES	5000
#define HOG		(16 * MIB)

static struct tfile file;

static void prepare(size_t pages)
{
	file_make(&file, ON_TMPFS, pages, OWN);
	peer_start(1);
	hold_debts();
}

static char *skipped(size_t pages)
{
	return leave_stale(&file, 0, pages, PROT_READ, MAP_SHARED, OWN);
}

/*
 * CEASEFIRE_TEST_CYCLES: how many; two million for the long run.
 */
static void bounded(void)
{
	const char *wanted = getenv("CEASEFIRE_TEST_CYCLES");
	long i, cycles = wanted ? atol(wanted) : DEFAULT_CYCLES;
	long start, most = 0, skips, drains;

	prepare(PAGES);
	skipped(PAGES);
	start = read_kb("/proc/self/status", "VmPTE");
	skips = vmstat("fpr_skip");
	drains = vmstat("fpr_drain_tables");
	for (i = 0; i < cycles; i++) {
		volatile char *p = mmap(NULL, PAGE, PROT_READ,
					MAP_SHARED | MAP_FPR, file.fd, 0);

		ENSURE(p != MAP_FAILED, "mmap, cycle %ld: %m", i);
		ENSURE(*p == OWN, "wrong data, cycle %ld", i);
		MUST(munmap((void *)p, PAGE));
		if (i % 1024)
			continue;
		start = start < 0 ? 0 : start;
		if (read_kb("/proc/self/status", "VmPTE") > most)
			most = read_kb("/proc/self/status", "VmPTE");
		ENSURE(most - start <= TABLES_KB,
		       "%ld kB of page tables after %ld cycles", most, i);
	}
	skips = vmstat("fpr_skip") - skips;
	drains = vmstat("fpr_drain_tables") - drains;
	ktap_note("%ld cycles: %ld skips, VmPTE at most %ld kB over %ld kB, %ld table drains",
		  cycles, skips, most - start, start, drains);
	ENSURE(skips > cycles * 9 / 10, "%ld skips in %ld cycles", skips,
	       cycles);
}

/* The same with mappings of their own 2 MiB: a page table each. */
static void bounded_sparse(void)
{
	long i, most = 0, start, drains;
	size_t pages = 2 * MIB / PAGE;

	prepare(pages);
	start = read_kb("/proc/self/status", "VmPTE");
	drains = vmstat("fpr_drain_tables");
	for (i = 0; i < SPARSE_CYCLES; i++) {
		volatile char *p = mmap(NULL, 2 * MIB, PROT_READ,
					MAP_SHARED | MAP_FPR, file.fd, 0);

		ENSURE(p != MAP_FAILED, "mmap, cycle %ld: %m", i);
		ENSURE(*p == OWN, "wrong data, cycle %ld", i);
		MUST(munmap((void *)p, 2 * MIB));
		if (i % 64)
			continue;
		if (read_kb("/proc/self/status", "VmPTE") > most)
			most = read_kb("/proc/self/status", "VmPTE");
		ENSURE(most - start <= TABLES_KB,
		       "%ld kB of page tables after %ld cycles", most, i);
	}
	drains = vmstat("fpr_drain_tables") - drains;
	ENSURE(drains > 0, "the tables were never drained");
	ktap_note("VmPTE at most %ld kB over %ld kB, %ld table drains",
		  most - start, start, drains);
}

/* Left-over tables with a mapping between them that has a table of its own. */
static void leave_tables(void)
{
	size_t pages = 4 * MIB / PAGE;
	char *p;

	prepare(pages);
	skipped(pages);
	p = fpr_map(&file, 0, pages, PROT_READ, MAP_SHARED);
	peer_touch(p, PAGES);
	skipped(pages);
}

/* The runner sees a leak in the kernel log. */
static void exit_with_mappings(void)
{
	leave_tables();
}

/* The same for a process that another one ends. */
static void exit_by_kill(void)
{
	int status;
	pid_t pid = (pid_t)MUST(fork());

	if (!pid) {
		leave_tables();
		kill(getpid(), SIGKILL);
	}
	MUST(waitpid(pid, &status, 0));
	ENSURE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL,
	       "the process failed (status %x)", (unsigned int)status);
}

/*
 * The end of an address space: munmap of what is below the quarantine (already
 * in the registers), of what is above it, and of this code, which lies in it.
 * The fault of the next instruction kills the process with no mapping left.
 */
extern const char last_steps[], last_steps_end[];

asm("	.pushsection .rodata\n"
"	.global last_steps, last_steps_end\n"
"last_steps:\n"
"	syscall\n"
"	mov	$11, %eax\n"
"	mov	%r12, %rdi\n"
"	mov	%r13, %rsi\n"
"	syscall\n"
"	mov	$11, %eax\n"
"	mov	%r14, %rdi\n"
"	mov	%r15, %rsi\n"
"	syscall\n"
"	ud2\n"
"last_steps_end:\n"
"	.popsection\n");

#define ADDRESS_SPACE_END	((1UL << 47) - PAGE)

static void unmap_everything(void)
{
	struct tfile code;
	char *p, *steps;

	fpr_skip_local();
	hold_debts();
	file_make(&file, ON_TMPFS, PAGES, OWN);
	file_make(&code, ON_TMPFS, 1, 0);
	MUST(pwrite(code.fd, last_steps, (size_t)(last_steps_end - last_steps),
		    0));
	steps = fpr_map(&code, 0, 1, PROT_READ, MAP_SHARED);
	MUST(mprotect(steps, PAGE, PROT_READ | PROT_EXEC));
	leave_skipped(&file, 0, PAGES);
	p = fpr_map(&file, 0, PAGES, PROT_READ, MAP_SHARED);
	ENSURE(probe_read(p) == WORD(OWN), "wrong data");
	fpr_unmap(p, PAGES);
	ENSURE(steps > p, "the arena does not go downwards");
	signal(SIGSEGV, SIG_DFL);
	/* Or the kernel misses its restartable-sequence area before the end. */
	syscall(SYS_rseq, (char *)__builtin_thread_pointer() + __rseq_offset,
		32, 1, 0x53053053);
	asm volatile("mov	%[above], %%r12\n"
		     "mov	%[above_size], %%r13\n"
		     "mov	%[self], %%r14\n"
		     "mov	$4096, %%r15\n"
		     "jmp	*%[self]\n"
		     : : "a" (SYS_munmap), "D" (0UL), "S" (p),
		     [above] "r" (steps + PAGE),
		     [above_size] "r" (ADDRESS_SPACE_END -
				       (unsigned long)(steps + PAGE)),
		     [self] "r" (steps)
		     : "memory", "rcx", "r11", "r12", "r13", "r14", "r15");
	__builtin_unreachable();
}

static void exit_with_nothing(void)
{
	int status;
	pid_t pid = (pid_t)MUST(fork());

	if (!pid) {
		struct rlimit none = { 0, 0 };

		setrlimit(RLIMIT_CORE, &none);
		unmap_everything();
	}
	MUST(waitpid(pid, &status, 0));
	if (WIFEXITED(status) && WEXITSTATUS(status) == 4)
		_exit(4);
	/* Its own translation of the last page may be a stale one. */
	ENSURE(WIFSIGNALED(status) && (WTERMSIG(status) == SIGSEGV ||
				       WTERMSIG(status) == SIGILL),
	       "the process did not end by losing its code (status %x)",
	       (unsigned int)status);
}

/* Killed while memory is short: the OOM killer's own unmapping comes first. */
static void exit_by_oom(void)
{
	int status, ready[2];
	char byte;
	pid_t pid;

	MUST(pipe(ready));
	pid = (pid_t)MUST(fork());
	if (!pid) {
		char *hog;

		write_text("/proc/self/oom_score_adj", "1000");
		leave_tables();
		/* Something for the reaper, which takes it from a living process. */
		hog = mmap(NULL, HOG, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (hog == MAP_FAILED)
			_exit(2);
		memset(hog, 1, HOG);
		if (write(ready[1], "", 1) != 1)
			_exit(3);
		for (;;)
			pause();
	}
	close(ready[1]);
	ENSURE(read(ready[0], &byte, 1) == 1, "the process ended early");
	close(ready[0]);
	/* What the killer does when memory is out, without taking all of it. */
	ENSURE(write_text("/proc/sysrq-trigger", "f"), "sysrq: %m");
	MUST(waitpid(pid, &status, 0));
	ENSURE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL,
	       "the process was not killed (status %x)", (unsigned int)status);
}

/*
 * Neighbours of the arena: what lies beyond its ends shares upper tables with
 * it, which must not go while left-over tables hang off them.
 */
static void neighbour(bool above, bool replaced)
{
	char *p, *at, *q;

	prepare(PAGES);
	p = skipped(PAGES);
	/* Another 2 MiB, nearly always the same 1 GiB as what is left over. */
	at = above ? (char *)((uintptr_t)p & ~(2 * MIB - 1)) + 4 * MIB :
		     (char *)((uintptr_t)p & ~(2 * MIB - 1)) - 64 * MIB;
	q = mmap(at, LENGTH, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	ENSURE(q == at, "mmap: %m");
	memset(q, NEW, LENGTH);
	if (replaced)
		skipped(PAGES);
	MUST(munmap(q, LENGTH));
	skipped(PAGES);
	/* The runner sees a leak or a double use in the kernel log. */
}

static void neighbour_above(void)
{
	neighbour(true, false);
}

static void neighbour_below(void)
{
	neighbour(false, false);
}

static void neighbour_above_late(void)
{
	neighbour(true, true);
}

/*
 * The last mapping besides the quarantine in its top-level entry goes: nothing
 * else keeps the upper tables.
 */
static void only_neighbour(void)
{
	char *p, *q;

	prepare(PAGES);
	/* A mapping above the first one of the arena, in the same 1 GiB. */
	p = skipped(PAGES);
	q = mmap(p + MIB, LENGTH, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	if (q == MAP_FAILED)
		ktap_skip("no room above the arena");
	memset(q, NEW, LENGTH);
	skipped(PAGES);
	MUST(munmap(q, LENGTH));
}

/*
 * munmap of a range that begins in the quarantine and ends with a mapping
 * behind it, or the other way round. Both have tables of their own.
 */
static void partial_munmap(bool behind)
{
	size_t pages = 4 * MIB / PAGE;
	char *first, *q, *at;

	prepare(pages);
	/* The highest addresses that there are. */
	first = fpr_map(&file, 0, 1, PROT_READ, MAP_SHARED);
	skipped(pages);
	q = fpr_map(&file, 0, pages, PROT_READ, MAP_SHARED);
	peer_touch(q, PAGES);
	at = behind ? first + 16 * MIB : q - 16 * MIB;
	at = mmap(at, LENGTH, PROT_READ | PROT_WRITE,
		  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	ENSURE(at != MAP_FAILED, "mmap: %m");
	memset(at, NEW, LENGTH);
	if (behind)
		MUST(munmap(q, (size_t)(at - q) + LENGTH));
	else
		MUST(munmap(at, (size_t)(q - at) + 4 * MIB));
	ENSURE(probe_read(q) == FAULTED && probe_read(at) == FAULTED,
	       "still mapped");
	skipped(pages);
	/* The runner sees a leak in the kernel log. */
}

static void partial_munmap_behind(void)
{
	partial_munmap(true);
}

static void partial_munmap_before(void)
{
	partial_munmap(false);
}

/* The whole arena and more, with mappings in it that are still alive. */
static void munmap_around(void)
{
	char *low, *q;

	prepare(PAGES);
	skipped(PAGES);
	q = fpr_map(&file, 0, PAGES, PROT_READ, MAP_SHARED);
	low = skipped(PAGES);
	MUST(munmap((void *)((uintptr_t)low & ~(GIB - 1)), 2 * GIB));
	ENSURE(probe_read(q) == FAULTED, "still mapped");
	skipped(PAGES);
}

/* Moving 2 MiB at a time expects that nothing is in the way at the target. */
static void mremap_over_tables(void)
{
	size_t pages = 4 * MIB / PAGE;
	char *p, *from, *q;

	prepare(pages);
	from = mmap(NULL, 6 * MIB, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ENSURE(from != MAP_FAILED, "mmap: %m");
	madvise(from, 6 * MIB, MADV_NOHUGEPAGE);
	from = (char *)(((uintptr_t)from + 2 * MIB - 1) & ~(2 * MIB - 1));
	memset(from, NEW, 4 * MIB);
	p = skipped(pages);
	ENSURE(!((uintptr_t)p % (2 * MIB)), "%p is not aligned to 2 MiB", p);
	q = mremap(from, 4 * MIB, 4 * MIB, MREMAP_MAYMOVE | MREMAP_FIXED, p);
	ENSURE(q == p, "mremap: %m");
	ENSURE(peer_count(q, pages, WORD(NEW)) == pages,
	       "the peer does not see what was moved there");
}

/* A huge page wants the place of a whole table. */
static void hugetlb_over_tables(void)
{
	size_t pages = 2 * MIB / PAGE;
	char *p, *q;

	if (!write_text("/proc/sys/vm/nr_hugepages", "2") ||
	    read_number("/proc/sys/vm/nr_hugepages") < 1)
		ktap_skip("no huge pages");
	prepare(pages);
	p = skipped(pages);
	q = mmap(p, 2 * MIB, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB |
		 MAP_FIXED_NOREPLACE, -1, 0);
	ENSURE(q == p, "mmap of a huge page at %p: %m", p);
	memset(q, NEW, 2 * MIB);
	ENSURE(peer_count(q, pages, WORD(NEW)) == pages,
	       "the peer does not see the huge page");
	munmap(q, 2 * MIB);
	write_text("/proc/sys/vm/nr_hugepages", "0");
}

static void thp_over_tables(void)
{
	size_t pages = 2 * MIB / PAGE;
	char *p, *q;
	long huge;

	prepare(pages);
	p = skipped(pages);
	q = mmap(p, 2 * MIB, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	ENSURE(q == p, "mmap: %m");
	if (madvise(q, 2 * MIB, MADV_HUGEPAGE))
		ktap_skip("no transparent huge pages");
	huge = vmstat("thp_fault_alloc");
	memset(q, NEW, 2 * MIB);
	huge = vmstat("thp_fault_alloc") - huge;
	ENSURE(peer_count(q, pages, WORD(NEW)) == pages,
	       "the peer does not see the new memory");
	ENSURE(huge > 0, "left-over tables stand in the way of a huge page");
}

int main(int argc, char **argv)
{
	static const struct ktap_case cases[] = {
		{ "bounded", bounded, 3000 },
		{ "bounded_sparse", bounded_sparse, 600 },
		{ "exit_with_mappings", exit_with_mappings, 0 },
		{ "exit_by_kill", exit_by_kill, 0 },
		{ "exit_with_nothing", exit_with_nothing, 0 },
		{ "exit_by_oom", exit_by_oom, 0 },
		{ "neighbour_above", neighbour_above, 0 },
		{ "neighbour_below", neighbour_below, 0 },
		{ "neighbour_above_late", neighbour_above_late, 0 },
		{ "only_neighbour", only_neighbour, 0 },
		{ "partial_munmap_behind", partial_munmap_behind, 0 },
		{ "partial_munmap_before", partial_munmap_before, 0 },
		{ "munmap_around", munmap_around, 0 },
		{ "mremap_over_tables", mremap_over_tables, 0 },
		{ "hugetlb_over_tables", hugetlb_over_tables, 0 },
		{ "thp_over_tables", thp_over_tables, 0 },
	};

	return ktap_main(argc, argv, cases, KTAP_COUNT(cases));
}
