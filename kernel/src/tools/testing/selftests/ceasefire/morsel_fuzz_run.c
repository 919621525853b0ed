// SPDX-License-Identifier: GPL-2.0
/*
 * One run of a plan: processes that share one object go through their operations, and
 * leave a record of each in memory that outlives them.
 *
 * A page is of one process only, so what a record says does not depend on the order in
 * which processes run. But they share page tables: who owns what changes after a few
 * pages or after some hundred. From time to time all wait for the first one, which takes
 * everything away while the others read it.
 *
 * Called by the process of the case, which has one thread.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "env.h"
#include "ktap.h"
#include "morsel_fuzz.h"
#include "morsels.h"

/* A run takes seconds; after that it hangs, and its processes are killed. */
#define LIMIT_S		120
/* With so many operations. */
#define USUAL		400
/* Operations between two times that all is taken away. */
#define TOGETHER	50
/* What is used of an object of large units, at places far from each other. */
#define ISLANDS		4
#define ISLAND_PAGES	1024UL
/* Of the file on disk. */
#define DISK_PAGES	16

static struct mfuzz_record *records;
static unsigned int most_processes, most_operations;

static struct {
	pthread_barrier_t all;
	atomic_int clearing;
} *shared;

const char *mfuzz_arm_name(enum mfuzz_arm arm)
{
	static const char *const names[] = {
		"memfd", "morsel", "lazy morsel", "morsel of huge pages",
	};

	return names[arm];
}

void mfuzz_start(unsigned int processes, unsigned int operations)
{
	most_processes = processes;
	most_operations = operations;
	records = mmap(NULL, MFUZZ_ARMS * processes * (operations + 1) *
		       sizeof(*records), PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ENSURE(records != MAP_FAILED && shared != MAP_FAILED, "mmap: %m");
}

struct mfuzz_record *mfuzz_recorded(enum mfuzz_arm arm, unsigned int process,
				    unsigned int operation)
{
	return records + ((size_t)arm * most_processes + process) *
	       (most_operations + 1) + operation;
}

/* Runs of pages from @first to @end, of random lengths and owners. */
static void add_runs(struct mfuzz_layout *l, uint64_t *random, uint64_t first,
		     uint64_t end, unsigned int processes, unsigned int most)
{
	static const unsigned int lengths[] = { 1, 2, 7, 64, 300, 512, 513, 1000 };

	while (first < end && most--) {
		uint64_t pages;

		*random = fuzz_mix(*random, 2);
		pages = lengths[*random % KTAP_COUNT(lengths)];
		if (!most || pages > end - first)
			pages = end - first;
		l->run[l->nr++] = (struct mfuzz_run){
			.first = first, .pages = pages,
			.owner = (unsigned int)(*random >> 32) % processes,
		};
		first += pages;
	}
}

/* The same for each arm: it depends on the seed alone. */
static void lay_out(const struct mfuzz_plan *plan, struct mfuzz_layout *l)
{
	uint64_t random = fuzz_mix(plan->seed, 1), units;
	unsigned int i;

	memset(l, 0, sizeof(*l));
	l->unit = random % 3 ? UNIT : random >> 16 & 1 ? GIB :
		  random >> 18 & 1 ? 512 * GIB : morsel_units[morsel_nr_units() - 1];
	/* What shares nothing with a copy is cut by whole GiB. */
	l->copies = l->unit <= GIB || random >> 17 & 1;
	units = 2 + (random >> 8) % 3;
	l->size = units * l->unit;
	/* Each has something. */
	for (i = 0; i < plan->processes; i++)
		l->run[l->nr++] = (struct mfuzz_run){
			.first = i, .pages = 1, .owner = i,
		};
	if (l->unit == UNIT)
		add_runs(l, &random, i, l->size / PAGE, plan->processes,
			 MFUZZ_RUNS / 2);
	for (i = 0; l->unit != UNIT && i < ISLANDS; i++) {
		/* Most of them lie on both sides of an end of a table, or of a unit. */
		uint64_t part = l->unit == GIB ? GIB / (ISLANDS - 1) : l->unit / 512;
		uint64_t first = (i == ISLANDS - 1 ? l->unit : i * part) / PAGE;

		add_runs(l, &random, i ? first - ISLAND_PAGES / 2 : plan->processes,
			 first + ISLAND_PAGES / 2, plan->processes,
			 MFUZZ_RUNS / 2 / ISLANDS);
	}
}

static int object(const struct mfuzz_layout *l, enum mfuzz_arm arm)
{
	int fd;

	if (arm == MFUZZ_MORSEL)
		return morsel_make_of(l->size, l->unit);
	if (arm == MFUZZ_LAZY)
		return morsel_make_lazy(l->size, l->unit);
	if (arm == MFUZZ_HUGE)
		return morsel_make_huge(l->size, l->unit);
	fd = (int)MUST(memfd_create("fuzz", MFD_CLOEXEC));
	MUST(ftruncate(fd, (off_t)l->size));
	return fd;
}

bool mfuzz_has(const struct mfuzz_plan *plan, enum mfuzz_arm arm)
{
	struct mfuzz_layout layout;

	lay_out(plan, &layout);
	return arm != MFUZZ_HUGE || layout.unit > UNIT;
}

static int file_on_disk(void)
{
	static char block[DISK_PAGES * PAGE] __attribute__((aligned(4096)));
	const char *folder = getenv("CEASEFIRE_TEST_DIR");
	int fd;

	fd = (int)MUST(open(folder ? folder : "/var/tmp",
			    O_TMPFILE | O_RDWR | O_DIRECT | O_CLOEXEC, 0600));
	memset(block, 0x42, sizeof(block));
	ENSURE(write(fd, block, sizeof(block)) == sizeof(block), "write: %m");
	return fd;
}

/* All wait here, and go on together. */
static void meet(void)
{
	pthread_barrier_wait(&shared->all);
}

static void clear_together(struct mfuzz_process *p)
{
	meet();
	if (!p->number) {
		mfuzz_clear(p);
		atomic_store(&shared->clearing, 0);
	} else {
		while (atomic_load(&shared->clearing))
			mfuzz_noise(p);
	}
	meet();
	atomic_store(&shared->clearing, 1);
}

__attribute__((noreturn))
static void run(const struct mfuzz_plan *plan, struct mfuzz_process *p)
{
	unsigned int i;

	alarm(LIMIT_S * (1 + plan->operations / USUAL));
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	pin_to_cpu((int)p->number % online_cpus());
	fuzz_catch_faults();
	p->random = fuzz_mix(plan->seed, p->number + 100);
	p->prot = PROT_READ | PROT_WRITE;
	p->disk = file_on_disk();
	MUST(pipe2(p->ends, O_CLOEXEC));
	mfuzz_map(p);
	for (i = 0; i < plan->operations; i++) {
		p->record = mfuzz_recorded(p->arm, p->number, i);
		if (i % TOGETHER == TOGETHER - 1) {
			uint64_t random = p->random;

			/* How often the others read is by chance. */
			clear_together(p);
			if (p->number)
				p->random = fuzz_mix(random, i);
		} else {
			mfuzz_operation(p);
		}
	}
	meet();
	p->record = mfuzz_recorded(p->arm, p->number, i);
	MUST(mprotect(p->map, p->layout->size, PROT_READ));
	p->record->value = mfuzz_sum_all(p);
	p->record->op = UINT32_MAX;
	_exit(0);
}

bool mfuzz_go(const struct mfuzz_plan *plan, enum mfuzz_arm arm, uint64_t *cuts)
{
	struct mfuzz_process p = { .arm = arm };
	pid_t pids[MFUZZ_PROCESSES];
	struct mfuzz_layout layout;
	pthread_barrierattr_t attr;
	bool well = true;
	unsigned int i;
	int status;

	lay_out(plan, &layout);
	memset(mfuzz_recorded(arm, 0, 0), 0, (size_t)most_processes *
	       (most_operations + 1) * sizeof(*records));
	pthread_barrierattr_init(&attr);
	pthread_barrierattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	pthread_barrier_init(&shared->all, &attr, plan->processes);
	atomic_store(&shared->clearing, 1);
	p.layout = &layout;
	p.fd = object(&layout, arm);
	for (i = 0; i < plan->processes; i++) {
		p.number = i;
		pids[i] = (pid_t)MUST(fork());
		if (!pids[i])
			run(plan, &p);
	}
	for (i = 0; i < plan->processes; i++) {
		pid_t pid = (pid_t)MUST(waitpid(-1, &status, 0));
		unsigned int k;

		if (!status || !well)
			continue;
		well = false;
		for (k = 0; k < plan->processes; k++) {
			/* The others would wait for it. */
			kill(pids[k], SIGKILL);
			if (pids[k] != pid)
				continue;
			ktap_note("%s, seed %llu: process %u has %s (status %#x)",
				  mfuzz_arm_name(arm),
				  (unsigned long long)plan->seed, k,
				  WTERMSIG(status) == SIGALRM ? "no end" : "failed",
				  status);
		}
	}
	*cuts = arm == MFUZZ_MEMFD ? 0 : morsel_stat(p.fd).cuts;
	close(p.fd);
	return well;
}
