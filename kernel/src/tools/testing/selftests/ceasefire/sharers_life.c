// SPDX-License-Identifier: GPL-2.0
/*
 * Sharers while the process changes: threads that go from CPU to CPU, CPUs that come
 * and go, processes whose threads end at once, root who takes them from all and gives
 * them back. A reader never finds what was there before the last flush (I11).
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "context.h"
#include "env.h"
#include "ktap.h"
#include "peer.h"
#include "regions.h"

#define READERS		2
#define ROUNDS		600
/* Of all readers, beside the writer. */
#define READS		1000
/* The writer does not get as far. */
#define NO_NUMBER	(1UL << 32)
#define PROCESSES	200
#define AT_ONCE		20
#define SWITCHES	20
#define FAILS		10
#define PAGES		16
#define OWN		0x5a
#define CPU2		"/sys/devices/system/cpu/cpu2/online"

/*
 * The writer throws the page away, writes a number to the new one, and then says which.
 * A reader who was told a number finds that, a later one, or an empty page. It adds nothing
 * to it: who only reads would have the kernel's page of zeros, and never see an old one.
 */
static struct {
	atomic_ulong *page;
	atomic_ulong told;
	atomic_bool over;
	atomic_ulong wrong, reads;
	bool moves;
} shared;

static void *reader(void *number)
{
	unsigned long i, cpu = (unsigned long)(uintptr_t)number;
	uint64_t told, found;

	for (i = 0; !atomic_load(&shared.over); i++) {
		/* Or else it stays where its writer is, for good. */
		if (!i || (shared.moves && !(i % 64))) {
			cpu_set_t set;

			CPU_ZERO(&set);
			CPU_SET(cpu++ % 3, &set);
			sched_setaffinity(0, sizeof(set), &set);
		}
		told = atomic_load(&shared.told);
		found = atomic_fetch_add(shared.page, 0);
		if (found && (found < told || found > NO_NUMBER))
			atomic_fetch_add(&shared.wrong, 1);
		atomic_fetch_add(&shared.reads, 1);
	}
	return NULL;
}

/* The page gets another frame: that which was its own goes to the page beside it. */
static bool throw_away(char *page, char *beside)
{
	if (madvise(beside, PAGE, MADV_DONTNEED) ||
	    madvise(page, PAGE, MADV_DONTNEED))
		return false;
	*(volatile char *)beside = 1;
	return true;
}

/* Returns how many reads were wrong. */
static unsigned long write_and_read(unsigned long rounds, bool moves)
{
	char *page = regions(1), *beside = page + PAGE;
	pthread_t threads[READERS];
	unsigned long i;

	shared.page = (atomic_ulong *)page;
	shared.moves = moves;
	atomic_store(&shared.over, false);
	atomic_store(shared.page, 1);
	atomic_store(&shared.told, 1);
	atomic_store(&shared.reads, 0);
	for (i = 0; i < READERS; i++)
		if (pthread_create(&threads[i], NULL, reader,
				   (void *)(uintptr_t)(i + 1)))
			return 1;
	/* However long a busy machine takes to run the readers. */
	for (i = 2; i <= rounds || atomic_load(&shared.reads) < READS; i++) {
		if (!throw_away(page, beside))
			return 1;
		atomic_store(shared.page, i);
		atomic_store(&shared.told, i);
	}
	atomic_store(&shared.over, true);
	for (i = 0; i < READERS; i++)
		pthread_join(threads[i], NULL);
	return atomic_load(&shared.wrong);
}

static void readers(bool moves)
{
	unsigned long wrong;

	need_cpus(3);
	if (context_sharers(1))
		ktap_skip("prctl(PR_SHARERS): %m");
	wrong = write_and_read(ROUNDS, moves);
	ENSURE(!wrong, "%lu of %lu reads are wrong", wrong,
	       atomic_load(&shared.reads));
}

static void together(void)
{
	readers(false);
}

static void moving(void)
{
	readers(true);
}

static atomic_bool plugged_out;

static void *plug(void *unused)
{
	(void)unused;
	while (!atomic_load(&shared.over)) {
		if (write_text(CPU2, "0"))
			atomic_store(&plugged_out, true);
		sleep_ms(5);
		write_text(CPU2, "1");
		sleep_ms(5);
	}
	return NULL;
}

/* A CPU that is noted goes away, and comes back with an empty TLB. */
static void plugged(void)
{
	unsigned long wrong;
	pthread_t thread;
	int i;

	need_cpus(3);
	if (access(CPU2, W_OK))
		ktap_skip("CPUs stay");
	if (context_sharers(1))
		ktap_skip("prctl(PR_SHARERS): %m");
	ENSURE(!pthread_create(&thread, NULL, plug, NULL), "no thread");
	for (i = 0; i < 20 || !atomic_load(&plugged_out); i++) {
		wrong = write_and_read(ROUNDS / 10, false);
		ENSURE(!wrong, "%lu reads are wrong", wrong);
	}
	atomic_store(&shared.over, true);
	pthread_join(thread, NULL);
	write_text(CPU2, "1");
}

/* Of a child: 0 if all was right. */
static int child_main(unsigned long rounds)
{
	/* Root may have said never. */
	if (context_sharers(1) && errno != EPERM)
		return 2;
	return !!write_and_read(rounds, true);
}

static void children(int count, int at_once, unsigned long rounds)
{
	int i, status, running = 0, bad = 0;

	for (i = 0; i < count || running; ) {
		if (i < count && running < at_once) {
			pid_t child = (pid_t)MUST(fork());

			if (!child)
				_exit(child_main(rounds));
			running++;
			i++;
			continue;
		}
		MUST(wait(&status));
		running--;
		bad += !WIFEXITED(status) || WEXITSTATUS(status);
	}
	ENSURE(!bad, "%d of %d processes have read what is wrong", bad, count);
}

/* Their tables come and go. */
static void many(void)
{
	long tables = vmstat("nr_page_table_pages"), more;
	int tries;

	need_cpus(3);
	children(PROCESSES, AT_ONCE, 20);
	/* The last of them go by RCU. */
	for (tries = 0; tries < 100; tries++) {
		more = vmstat("nr_page_table_pages") - tables;
		if (more < PROCESSES)
			break;
		sleep_ms(100);
	}
	ENSURE(more < PROCESSES, "%ld page tables are left", more);
}

static atomic_bool switching_over;

static void *switch_by_root(void *unused)
{
	int i;

	(void)unused;
	for (i = 0; !atomic_load(&switching_over); i++) {
		sharers_enable(i % 2 ? "always" : "never");
		sleep_ms(3);
	}
	return NULL;
}

/* Roots change under those who run. */
static void switched(void)
{
	pthread_t thread;

	need_cpus(3);
	sharers_enable("always");
	ENSURE(!pthread_create(&thread, NULL, switch_by_root, NULL), "no thread");
	children(SWITCHES, 2, ROUNDS / 10);
	atomic_store(&switching_over, true);
	pthread_join(thread, NULL);
}

/* A thread says so while others are made. */
static void *choose(void *unused)
{
	int i;

	(void)unused;
	for (i = 0; !atomic_load(&shared.over); i++)
		context_sharers(i % 2);
	return NULL;
}

static void chosen(void)
{
	unsigned long wrong;
	pthread_t thread;
	int i;

	need_cpus(3);
	if (context_sharers(1))
		ktap_skip("prctl(PR_SHARERS): %m");
	for (i = 0; i < 10; i++) {
		atomic_store(&shared.over, false);
		ENSURE(!pthread_create(&thread, NULL, choose, NULL),
		       "no thread");
		wrong = write_and_read(ROUNDS / 10, false);
		pthread_join(thread, NULL);
		ENSURE(!wrong, "%lu reads are wrong", wrong);
	}
}

/*
 * fork() gives up while the new address space is still a copy of this one: what it leaves
 * is not its own.
 */
static void fork_fails(void)
{
	char *p, *small;
	int i;

	sharers_start();
	p = regions(1);
	for (i = 0; i < FAILS; i++) {
		ENSURE(peer_write(p, PAGES, WORD(OWN)) == PAGES, "no write");
		next_fork_fails();
		ENSURE(fork() == -1 && errno == ENOMEM, "fork: %m");
		MUST(madvise(p, PAGES * PAGE, MADV_DONTNEED));
		peer_finds(p, PAGES, 0);
		/* Where a thread has its granules. */
		small = mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		ENSURE(small != MAP_FAILED, "mmap: %m");
		memset(small, OWN, PAGE);
		peer_finds(small, 1, WORD(OWN));
	}
}

int main(int argc, char **argv)
{
	static const struct ktap_case cases[] = {
		{ "together", together, 0 },
		{ "moving", moving, 0 },
		{ "plugged", plugged, 0 },
		{ "many", many, 300 },
		{ "switched", switched, 300 },
		{ "chosen", chosen, 0 },
		{ "fork_fails", fork_fails, 0 },
	};

	return ktap_main(argc, argv, cases, KTAP_COUNT(cases));
}
