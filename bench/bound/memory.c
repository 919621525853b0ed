// SPDX-License-Identifier: GPL-2.0-only
/*
 * memory.c - how much memory waits while all CPUs unmap, and that it comes back
 *
 * What: a thread on each CPU maps memory, writes to each page and unmaps it, and
 *       reads after each munmap how much waits: the count rises nowhere else, so
 *       that no rise is missed. 100 ms after the last munmap it is read once more.
 * Who:  main.c.
 */
#include "bound.h"

#include "../common/util.h"

#include <pthread.h>
#include <sys/mman.h>

struct worker {
	_Alignas(128) pthread_t thread;
	int cpu;
	unsigned int pages;
	uint64_t operations;
	uint64_t peak;
	uint64_t ended;
};

static atomic_bool go, stop;

static void unmap_new(struct worker *w)
{
	size_t length = w->pages * PAGE;
	char *p = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		       -1, 0);
	uint64_t now;

	if (p == MAP_FAILED)
		die_errno("mmap");
	for (size_t at = 0; at < length; at += PAGE)
		*(volatile char *)(p + at) = 1;
	if (munmap(p, length))
		die_errno("munmap");
	now = parked_pages();
	if (now > w->peak)
		w->peak = now;
	w->operations++;
}

static void *work(void *argument)
{
	struct worker *w = argument;

	run_on_cpu(w->cpu);
	while (!atomic_load(&go))
		sleep_ns(MS);
	while (!atomic_load_explicit(&stop, memory_order_relaxed))
		unmap_new(w);
	w->ended = now_ns();
	return NULL;
}

/* Of those that have stopped: the last time that one of them has unmapped. */
static uint64_t join(struct waiting *m, struct worker *workers)
{
	uint64_t ended = 0;

	for (unsigned int i = 0; i < m->threads; i++) {
		struct worker *w = &workers[i];

		pthread_join(w->thread, NULL);
		m->operations += w->operations;
		if (w->peak > m->peak)
			m->peak = w->peak;
		if (w->ended > ended)
			ended = w->ended;
	}
	return ended;
}

void measure_memory(struct waiting *m, const struct options *o)
{
	static struct worker workers[MAX_CPUS];
	struct counters before;
	uint64_t start, now;

	*m = (struct waiting){ .threads = o->cpu_count };
	for (unsigned int i = 0; i < m->threads; i++) {
		workers[i] = (struct worker){ .cpu = o->cpus[i], .pages = o->pages };
		if (pthread_create(&workers[i].thread, NULL, work, &workers[i]))
			die(EXIT_FAILED, "cannot start thread %u", i);
	}
	counters_read(&before);
	start = now_ns();
	atomic_store(&go, true);
	sleep_ns((uint64_t)(o->seconds * 1e9));
	atomic_store(&stop, true);
	m->ns = join(m, workers);
	now = now_ns();
	if (now < m->ns + LEFT_MS * MS)
		sleep_ns(m->ns + LEFT_MS * MS - now);
	m->left = parked_pages();
	m->ns -= start;
	counters_read(&m->counters);
	counters_subtract(&m->counters, &before);
}
