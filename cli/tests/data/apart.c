// SPDX-License-Identifier: GPL-2.0-only
/*
 * Two threads on two CPUs, each with memory of its own, 2 MiB apart: one gives
 * its pages back again and again, the other one only uses its own. A flush of the
 * first one's memory is for nobody else, but Linux interrupts the other CPU. For the
 * tests of the mode `sharers`.
 *
 *	apart TIMES
 *
 * Before each flush the other thread has just run: to a CPU that runs something else
 * nothing is sent.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { PAGE = 4096, PAGES = 8, REGION = 1 << 21, APART = 2 * REGION };

static atomic_int over;
static char *areas;

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static void pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		die("sched_setaffinity");
}

static void use(volatile char *area)
{
	int i;

	for (i = 0; i < PAGES; i++)
		area[i * PAGE]++;
}

/* Counts its turns in its own memory, where the first thread reads them. */
static void *peer(void *unused)
{
	atomic_ulong *turns = (void *)(areas + APART);

	pin(1);
	while (!over) {
		use(areas + APART + PAGE);
		(*turns)++;
	}
	return unused;
}

static void wait_for_peer(void)
{
	atomic_ulong *turns = (void *)(areas + APART);
	unsigned long enough = *turns + 2;

	while (*turns < enough)
		;
}

int main(int argc, char **argv)
{
	char *mapped;
	pthread_t thread;
	int i, times;

	times = argc == 2 ? atoi(argv[1]) : 0;
	mapped = mmap(NULL, 3 * APART, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (times < 1 || mapped == MAP_FAILED)
		die("apart TIMES");
	areas = (char *)(((unsigned long)mapped + REGION - 1) & ~(REGION - 1UL));
	/* Pages, not huge ones. */
	madvise(mapped, 3 * APART, MADV_NOHUGEPAGE);
	if (pthread_create(&thread, NULL, peer, NULL))
		die("thread");
	pin(0);
	for (i = 0; i < times; i++) {
		use(areas);
		wait_for_peer();
		if (areas[0] != 1 || madvise(areas, PAGES * PAGE, MADV_DONTNEED) || areas[0])
			die("what was given back is not new");
	}
	over = 1;
	pthread_join(thread, NULL);
	printf("%d times\n", times);
	return 0;
}
