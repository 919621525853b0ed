/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * use-after-munmap: a program with a bug that fast page recycling hides
 *
 *   use-after-munmap PATH    PATH: a file of at least one page
 *
 * One thread reads a mapping, another one unmaps it too early. Without MAP_FPR
 * the reader gets SIGSEGV; with it the reader may go on for a while, because
 * nobody has flushed its CPU. Prints how it ended.
 *
 * Exit status: 0, 1 if something failed, 2 for wrong use.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include <ceasefire.h>

#define PAGE		4096ul
#define ROUNDS		50
#define AFTER_US	10000

static const volatile char *page;
static atomic_ulong reads, late_reads, faults;
static atomic_bool gone, over;
static sigjmp_buf out;

static void on_fault(int number)
{
	(void)number;
	siglongjmp(out, 1);
}

static void pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

static void *reader(void *unused)
{
	(void)unused;
	pin(1);
	if (sigsetjmp(out, 1)) {
		atomic_fetch_add(&faults, 1);
		return NULL;
	}
	while (!atomic_load(&over)) {
		(void)*page;
		atomic_fetch_add(&reads, 1);
		if (atomic_load(&gone))
			atomic_fetch_add(&late_reads, 1);
	}
	return NULL;
}

static int round_of(int file)
{
	pthread_t thread;
	void *p = mmap(NULL, PAGE, PROT_READ, MAP_SHARED | MAP_FPR, file, 0);

	if (p == MAP_FAILED) {
		perror("mmap");
		return 1;
	}
	page = p;
	atomic_store(&gone, false);
	atomic_store(&over, false);
	atomic_store(&reads, 0);
	if (pthread_create(&thread, NULL, reader, NULL)) {
		fputs("use-after-munmap: no second thread\n", stderr);
		return 1;
	}
	while (!atomic_load(&reads))
		sched_yield();
	munmap(p, PAGE);
	atomic_store(&gone, true);
	usleep(AFTER_US);
	atomic_store(&over, true);
	pthread_join(thread, NULL);
	return 0;
}

int main(int argc, char **argv)
{
	struct sigaction action = { .sa_handler = on_fault };
	int file, i;

	if (argc != 2) {
		fputs("usage: use-after-munmap PATH\n", stderr);
		return 2;
	}
	file = open(argv[1], O_RDONLY | O_CLOEXEC);
	if (file < 0) {
		perror(argv[1]);
		return 1;
	}
	sigaction(SIGSEGV, &action, NULL);
	pin(0);
	/* The kernel flushes until it has made room to note who holds frames. */
	for (i = 0; i < ROUNDS && !atomic_load(&late_reads); i++)
		if (round_of(file))
			return 1;
	printf("page %p: %lu reads after the munmap, %lu rounds ended by SIGSEGV\n",
	       (void *)page, atomic_load(&late_reads), atomic_load(&faults));
	return 0;
}
