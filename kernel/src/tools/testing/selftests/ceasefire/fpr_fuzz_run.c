// SPDX-License-Identifier: GPL-2.0
/*
 * One run of a plan, in a process of its own and so in a fresh address space:
 * the threads go through their operations and leave a record of each in memory
 * that outlives the process. Two such runs are halves that are compared.
 *
 * Nothing in a run waits for another thread, nothing looks at what another one
 * does; so the records of a thread do not depend on the order in which threads
 * run. TLBs, frames, page tables and addresses do.
 *
 * Called by the process of the case, which has one thread.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "context.h"
#include "env.h"
#include "fpr_fuzz.h"
#include "ktap.h"

/* A half takes seconds; after that it hangs, and is killed. */
#define LIMIT_S		120

static struct fuzz_record *records;
static unsigned int most_threads, most_operations;

const char *fuzz_arm_name(enum fuzz_arm arm)
{
	static const char *const names[] = {
		"off", "fpr", "latr", "sharers", "abis", "all",
	};

	return names[arm];
}

/* Room for two halves. */
void fuzz_start(unsigned int threads, unsigned int operations)
{
	most_threads = threads;
	most_operations = operations;
	records = mmap(NULL, 2UL * threads * (operations + 1) * sizeof(*records),
		       PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		       0);
	ENSURE(records != MAP_FAILED, "mmap: %m");
}

struct fuzz_record *fuzz_recorded(unsigned int half, unsigned int thread,
				  unsigned int operation)
{
	return records + ((size_t)half * most_threads + thread) *
	       (most_operations + 1) + operation;
}

struct worker {
	pthread_t id;
	const struct fuzz_plan *plan;
	unsigned int half;
	struct fuzz_thread thread;
};

static void *work(void *argument)
{
	struct worker *w = argument;
	const struct fuzz_plan *plan = w->plan;
	struct fuzz_thread *t = &w->thread;
	struct fuzz_record *end = fuzz_recorded(w->half, t->number,
						plan->operations);

	t->cpu = t->number % t->cpus;
	pin_to_cpu((int)t->cpu);
	for (t->operation = plan->first; t->operation < plan->operations;
	     t->operation++)
		fuzz_operation(t, fuzz_recorded(w->half, t->number,
						t->operation));
	end->value = fuzz_sum_blocks(t, PAGE / sizeof(uint64_t));
	end->argument = fuzz_sum_files(t);
	end->op = UINT32_MAX;
	return NULL;
}

/*
 * Where root wants it, each process has a mechanism from its exec on; then those of the other
 * arms have to give it up. Where nobody may have it, the verdict says that it did nothing.
 */
static void choose_one(bool wanted, int has, int (*set)(unsigned long on),
		       const char *name)
{
	if (wanted)
		ENSURE(!set(1) || errno == EPERM, "%s: %m", name);
	else if (has == 1)
		MUST(set(0));
}

static void choose(enum fuzz_arm arm)
{
	if (fuzz_uses(arm, FUZZ_FPR))
		MUST(prctl(PR_FPR, PR_FPR_SET_AUTO, ~0UL, 0, 0));
	choose_one(fuzz_uses(arm, FUZZ_LATR), context_is_lazy(), context_lazy,
		   "PR_LATR");
	choose_one(fuzz_uses(arm, FUZZ_SHARERS), context_has_sharers(),
		   context_sharers, "PR_SHARERS");
	choose_one(fuzz_uses(arm, FUZZ_ABIS), context_has_abis(), context_abis,
		   "PR_ABIS");
}

__attribute__((noreturn))
static void run(const struct fuzz_plan *plan, unsigned int half,
		enum fuzz_arm arm)
{
	static struct worker workers[FUZZ_THREADS];
	unsigned int i;

	alarm(LIMIT_S);
	choose(arm);
	fuzz_catch_faults();
	fuzz_area();
	for (i = 0; i < plan->threads; i++) {
		struct fuzz_thread *t = &workers[i].thread;

		workers[i].plan = plan;
		workers[i].half = half;
		t->number = i;
		t->cpus = (unsigned int)online_cpus();
		t->arm = arm;
		t->seed = plan->seed;
		fuzz_own_files(t);
	}
	for (i = 0; i < plan->threads; i++)
		ENSURE(!pthread_create(&workers[i].id, NULL, work, &workers[i]),
		       "no thread");
	for (i = 0; i < plan->threads; i++)
		pthread_join(workers[i].id, NULL);
	_exit(0);
}

/* Returns its wait status; the records are there whatever that is. */
int fuzz_half(const struct fuzz_plan *plan, unsigned int half,
	      enum fuzz_arm arm)
{
	int status;
	pid_t pid;

	memset(fuzz_recorded(half, 0, 0), 0, (size_t)most_threads *
	       (most_operations + 1) * sizeof(*records));
	pid = (pid_t)MUST(fork());
	if (!pid)
		run(plan, half, arm);
	MUST(waitpid(pid, &status, 0));
	return status;
}

/* Which operation is the first whose records differ? */
void fuzz_compare(const struct fuzz_plan *plan, struct fuzz_difference *d)
{
	unsigned int thread, operation;

	d->found = d->status[0] || d->status[1];
	d->operation = plan->operations;
	d->thread = 0;
	for (operation = plan->first; operation <= plan->operations; operation++)
		for (thread = 0; thread < plan->threads; thread++)
			if (memcmp(fuzz_recorded(0, thread, operation),
				   fuzz_recorded(1, thread, operation),
				   sizeof(*records))) {
				d->found = true;
				d->operation = operation;
				d->thread = thread;
				return;
			}
}
