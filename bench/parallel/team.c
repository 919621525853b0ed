// SPDX-License-Identifier: GPL-2.0-only
/*
 * team.c - threads that do the rounds of a program together
 *
 * What: starts the members, lets them do round after round until the time is
 *       over, times the rounds and not the checks between them, reads the
 *       kernel's counters at both ends, and prints a line.
 * Who:  wordcount.c, bfs.c, stencil.c.
 *
 * The programs know nothing of modes: mode-run gives them one, as to any program.
 */
#include "team.h"

#include "../common/counters.h"
#include "../common/environment.h"
#include "../common/util.h"

#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE 4096UL
#define SPINS 1000U

static const struct team_options *options;
static const struct work *work;
static int cpus[MAX_MEMBERS];
static pthread_barrier_t barrier;
/* With --spin: who is there, and how often all were. */
static atomic_uint arrived, meetings;

/* Written by the first member, between two meetings. */
static bool more;
static uint64_t rounds_done, ns;
static struct counters counters;

static atomic_ullong operations, items, wrong;

void team_defaults(struct team_options *o)
{
	*o = (struct team_options){
		.threads = (unsigned int)sysconf(_SC_NPROCESSORS_ONLN),
		.seconds = 2,
	};
	if (o->threads > MAX_MEMBERS)
		o->threads = MAX_MEMBERS;
}

void team_place(const struct team_options *o)
{
	/* All of them before the first one is taken: then there is only that one. */
	for (unsigned int i = 0; i < o->threads; i++)
		cpus[i] = o->pin ? nth_cpu(i) : -1;
	run_on_cpu(cpus[0]);
}

/* Another thread may need this CPU: now and then it gets it. */
static void spin_until_after(unsigned int meeting)
{
	for (unsigned int turns = 1; atomic_load(&meetings) == meeting; turns++) {
		if (turns % SPINS)
			__builtin_ia32_pause();
		else
			sched_yield();
	}
}

void team_meet(void)
{
	unsigned int meeting = atomic_load(&meetings);

	if (!options->spin) {
		pthread_barrier_wait(&barrier);
	} else if (atomic_fetch_add(&arrived, 1) + 1 == options->threads) {
		atomic_store(&arrived, 0);
		atomic_store(&meetings, meeting + 1);
	} else {
		spin_until_after(meeting);
	}
}

void team_did(uint64_t new_operations, uint64_t new_items)
{
	atomic_fetch_add_explicit(&operations, new_operations, memory_order_relaxed);
	atomic_fetch_add_explicit(&items, new_items, memory_order_relaxed);
}

void team_wrong(uint64_t times)
{
	atomic_fetch_add_explicit(&wrong, times, memory_order_relaxed);
}

/*
 * Each page is written to first. One that is read first is the kernel's page of
 * zeros, and to replace it later is a shootdown that munmap has nothing to do with.
 */
void *team_take(size_t bytes)
{
	volatile char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
				     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		die_errno("mmap of %zu bytes", bytes);
	for (size_t at = 0; at < bytes; at += PAGE)
		memory[at] = 0;
	return (void *)memory;
}

void team_give(void *memory, size_t bytes)
{
	if (munmap(memory, bytes))
		die_errno("munmap of %zu bytes", bytes);
}

uint64_t team_part(uint64_t count, unsigned int member, unsigned int threads, uint64_t *first)
{
	*first = count * member / threads;
	return count * (member + 1) / threads;
}

static bool time_is_left(uint64_t begin)
{
	if (options->rounds)
		return rounds_done < options->rounds;
	return (double)(now_ns() - begin) < options->seconds * 1e9;
}

static void *run_member(void *argument)
{
	unsigned int member = (unsigned int)(uintptr_t)argument;
	uint64_t begin = 0, start = 0;

	run_on_cpu(cpus[member]);
	team_meet();
	if (!member)
		begin = now_ns();
	for (unsigned int round = 0; more; round++) {
		if (!member)
			start = now_ns();
		work->round(member, round);
		team_meet();
		if (!member)
			ns += now_ns() - start;
		work->check(member, round);
		team_meet();
		if (!member) {
			rounds_done++;
			more = time_is_left(begin);
		}
		team_meet();
	}
	return NULL;
}

static void run_members(void)
{
	pthread_t threads[MAX_MEMBERS];
	struct counters before;

	pthread_barrier_init(&barrier, NULL, options->threads);
	more = true;
	counters_read(&before);
	for (unsigned int i = 0; i < options->threads; i++) {
		int error = pthread_create(&threads[i], NULL, run_member, (void *)(uintptr_t)i);

		if (error)
			die(EXIT_FAILED, "cannot start a thread: %s", strerror(error));
	}
	for (unsigned int i = 0; i < options->threads; i++)
		pthread_join(threads[i], NULL);
	counters_read(&counters);
	counters_subtract(&counters, &before);
	pthread_barrier_destroy(&barrier);
}

static void print_json(void)
{
	struct json json;

	print_environment_json(stdout);
	json_begin(&json, stdout, work->type);
	json_unsigned(&json, "threads", options->threads);
	json_bool(&json, "pinned", options->pin);
	work->describe(&json);
	json_unsigned(&json, "rounds", rounds_done);
	json_unsigned(&json, "operations", atomic_load(&operations));
	json_unsigned(&json, "items", atomic_load(&items));
	json_real(&json, "rate", per_second(atomic_load(&items), ns), 3);
	json_unsigned(&json, "wrong", atomic_load(&wrong));
	json_unsigned(&json, "ns", ns);
	counters_json(&json, &counters);
	json_end(&json);
}

static void print_text(void)
{
	int64_t received = counters_get(&counters, "nr_tlb_remote_flush_received");
	uint64_t did = atomic_load(&operations);

	printf("%" PRIu64 " rounds  %" PRIu64 " %s  %.0f %s/s", rounds_done, did,
	       work->operation, per_second(atomic_load(&items), ns), work->item);
	if (received >= 0 && did)
		printf("  %.4f shootdowns received for each of the %s",
		       (double)received / (double)did, work->operation);
	printf("\n");
	fflush(stdout);
}

int team_run(const struct team_options *o, const struct work *w)
{
	options = o;
	work = w;
	run_members();
	if (o->json)
		print_json();
	else
		print_text();
	if (atomic_load(&wrong))
		die(EXIT_FAILED, "%" PRIu64 " times a wrong result", (uint64_t)atomic_load(&wrong));
	return EXIT_OK;
}
