// SPDX-License-Identifier: GPL-2.0-only
/*
 * vector-bench.c - shootdowns of an eviction of many scattered pages
 *
 * What: a buffer manager takes PAGES scattered pages from memory that one or several
 *       processes have mapped, once or several times. On each other CPU a thread of one of
 *       the processes reads all pages through all mappings. Ways to take them:
 *         vector      one MORSEL_IOC_DEPOPULATE of a vector of ranges
 *         punch       holes in shared memory, a call each
 *         dontneed    MADV_DONTNEED of anonymous memory, a call each; one process, one mapping
 *       Counted are the shootdowns that CPUs receive: no time is printed.
 * Who:  `ceasefire bench morsel-shootdowns`, see ceasefire-bench(1) and
 *       cli/ceasefire/bench/measure/vectors.py.
 *
 * A round is: make the pages, wait until each thread has read them all, count, take,
 * count. Ends with 77 where the kernel has no morsels.
 */
#include "../../kernel/src/include/uapi/linux/morsel.h"
#include "../common/counters.h"
#include "../common/environment.h"
#include "../common/json.h"
#include "../common/options.h"
#include "../common/util.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE		4096UL
#define MIB		(1UL << 20)
#define MAX_CPUS	64
#define MAX_MAPPINGS	16
#define RECEIVED	"nr_tlb_remote_flush_received"

enum way { VECTOR, PUNCH, DONTNEED };

static const char *const ways[] = { "vector", "punch", "dontneed" };

struct options {
	unsigned int processes, mappings, pages, rounds;
	/* Bytes from one page to the next. */
	uint64_t stride;
};

/* What all processes see. */
static struct shared {
	/* Raised when pages are there; each reader notes the last one that it has read. */
	atomic_uint round;
	atomic_uint read[MAX_CPUS];
	atomic_bool over;
} *shared;

struct place {
	int fd;
	char *at[MAX_MAPPINGS];
};

static size_t size_of(const struct options *o)
{
	size_t size = (size_t)o->pages * o->stride;

	return (size + 2 * MIB - 1) & ~(2 * MIB - 1);
}

/* Looked up before anybody is bound to one of them. */
static int cpu_of[MAX_CPUS];

static void map_all(const struct options *o, enum way way, struct place *place)
{
	for (unsigned int i = 0; i < o->mappings; i++) {
		place->at[i] = mmap(NULL, size_of(o), PROT_READ | PROT_WRITE,
				    way == DONTNEED ? MAP_PRIVATE | MAP_ANONYMOUS :
				    MAP_SHARED, place->fd, 0);
		if (place->at[i] == MAP_FAILED)
			die_errno("mmap");
	}
}

/* Reads all pages of each round until it is over. */
static void read_rounds(const struct options *o, const struct place *place,
			unsigned int cpu)
{
	unsigned int round, sum = 0;

	while (!atomic_load(&shared->over)) {
		round = atomic_load(&shared->round);
		/* Between rounds, pages would come back that were taken. */
		if (round % 2 == 0) {
			atomic_store(&shared->read[cpu], round);
			continue;
		}
		if (atomic_load(&shared->read[cpu]) == round)
			continue;
		for (unsigned int i = 0; i < o->mappings; i++)
			for (unsigned int n = 0; n < o->pages; n++)
				sum += *(volatile char *)(place->at[i] + n * o->stride);
		atomic_store(&shared->read[cpu], round);
	}
	/* The reads are for something. */
	if (sum == 1)
		_exit(EXIT_FAILED);
}

struct reader {
	const struct options *options;
	const struct place *place;
	unsigned int cpu;
	pthread_t thread;
};

static void *reader_main(void *argument)
{
	const struct reader *reader = argument;

	run_on_cpu(cpu_of[reader->cpu]);
	read_rounds(reader->options, reader->place, reader->cpu);
	return NULL;
}

/* The threads of a process: on each CPU but the first that is its turn. */
static unsigned int start_readers(const struct options *o, const struct place *place,
				  unsigned int process, unsigned int cpus,
				  struct reader *readers)
{
	unsigned int count = 0;

	for (unsigned int cpu = 1; cpu < cpus; cpu++) {
		if (cpu % o->processes != process)
			continue;
		readers[count] = (struct reader){ o, place, cpu, 0 };
		if (pthread_create(&readers[count].thread, NULL, reader_main,
				   &readers[count]))
			die(EXIT_FAILED, "no thread");
		count++;
	}
	return count;
}

static void join(struct reader *readers, unsigned int count)
{
	for (unsigned int i = 0; i < count; i++)
		pthread_join(readers[i].thread, NULL);
}

static pid_t start_process(const struct options *o, enum way way, int fd,
			   unsigned int process, unsigned int cpus)
{
	static struct reader readers[MAX_CPUS];
	struct place place = { .fd = fd };
	pid_t pid = fork();

	if (pid < 0)
		die_errno("fork");
	if (pid)
		return pid;
	if (prctl(PR_SET_PDEATHSIG, SIGKILL))
		_exit(EXIT_FAILED);
	map_all(o, way, &place);
	join(readers, start_readers(o, &place, process, cpus, readers));
	_exit(EXIT_OK);
}

/* Until all readers have seen the round; they may be emulated one after the other. */
static void wait_for_readers(unsigned int round, unsigned int cpus)
{
	for (unsigned int cpu = 1; cpu < cpus; cpu++)
		while (atomic_load(&shared->read[cpu]) != round)
			sched_yield();
}

static void take(const struct options *o, enum way way, const struct place *place)
{
	static struct morsel_range ranges[MORSEL_RANGES_MAX];
	struct morsel_vec vec = { .ranges = (uintptr_t)ranges, .nr = o->pages };
	int err = 0;

	for (unsigned int n = 0; n < o->pages && !err; n++) {
		ranges[n] = (struct morsel_range){ n * o->stride, PAGE };
		if (way == PUNCH)
			err = fallocate(place->fd,
					FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
					(off_t)(n * o->stride), PAGE);
		else if (way == DONTNEED)
			err = madvise(place->at[0] + n * o->stride, PAGE, MADV_DONTNEED);
	}
	if (way == VECTOR)
		err = ioctl(place->fd, MORSEL_IOC_DEPOPULATE, &vec);
	if (err)
		die_errno("%s", ways[way]);
}

static int64_t received(void)
{
	static struct counters counters;

	counters_read(&counters);
	return counters_get(&counters, RECEIVED);
}

static void print(const struct options *o, enum way way, unsigned int cpus,
		  int64_t count)
{
	struct json json;

	json_begin(&json, stdout, "vector");
	json_string(&json, "way", ways[way]);
	json_unsigned(&json, "cpus", cpus);
	json_unsigned(&json, "processes", o->processes);
	json_unsigned(&json, "mappings", o->mappings);
	json_unsigned(&json, "pages", o->pages);
	json_unsigned(&json, "rounds", o->rounds);
	json_signed(&json, "received", count);
	json_end(&json);
}

static void measure(const struct options *o, enum way way, unsigned int cpus)
{
	static struct reader readers[MAX_CPUS];
	struct place place = { .fd = -1 };
	pid_t pids[MAX_CPUS];
	unsigned int count;
	int64_t sum = 0;
	int status;

	memset(shared, 0, sizeof(*shared));
	if (way != DONTNEED) {
		place.fd = memfd_create("bench", way == VECTOR ? MFD_MORSEL : 0);
		if (place.fd < 0 || ftruncate(place.fd, (off_t)size_of(o)))
			die_errno("memfd");
	}
	map_all(o, way, &place);
	for (unsigned int i = 1; i < o->processes; i++)
		pids[i] = start_process(o, way, place.fd, i, cpus);
	count = start_readers(o, &place, 0, cpus, readers);
	for (unsigned int round = 1; round <= 2 * o->rounds; round += 2) {
		int64_t before;

		for (unsigned int n = 0; n < o->pages; n++)
			*(volatile char *)(place.at[0] + n * o->stride) = 0;
		atomic_store(&shared->round, round);
		wait_for_readers(round, cpus);
		before = received();
		take(o, way, &place);
		sum += received() - before;
		atomic_store(&shared->round, round + 1);
		wait_for_readers(round + 1, cpus);
	}
	atomic_store(&shared->over, true);
	join(readers, count);
	for (unsigned int i = 1; i < o->processes; i++)
		if (waitpid(pids[i], &status, 0) != pids[i] || status)
			die(EXIT_FAILED, "a process did not end well");
	for (unsigned int i = 0; i < o->mappings; i++)
		munmap(place.at[i], size_of(o));
	if (place.fd >= 0)
		close(place.fd);
	print(o, way, cpus, sum);
}

static void options_parse(struct options *o, int argc, char **argv)
{
	static const struct program program = {
		"vector-bench [options]",
		"Counts the shootdowns of taking scattered pages from shared memory.",
		"It needs a kernel with morsels, and two CPUs."
	};
	const struct program_option list[] = {
		NUMBER("processes", "N", &o->processes, 1, 16, "that have it mapped (1)"),
		NUMBER("mappings", "N", &o->mappings, 1, MAX_MAPPINGS, "of each of them (1)"),
		NUMBER("pages", "N", &o->pages, 1, MORSEL_RANGES_MAX, "that are taken (64)"),
		NUMBER("stride", "BYTES", &o->stride, PAGE, MIB << 10,
		       "from one page to the next (65536)"),
		NUMBER("rounds", "N", &o->rounds, 1, 100000, "of each way (20)"),
		{ 0 }
	};

	*o = (struct options){ 1, 1, 64, 20, 65536 };
	parse_options(&program, list, argc, argv);
}

int main(int argc, char **argv)
{
	struct options options;
	unsigned int cpus;
	cpu_set_t set;
	int fd;

	set_program_name("vector-bench");
	options_parse(&options, argc, argv);
	if (options.stride % PAGE)
		die(EXIT_USAGE, "--stride %llu: give a multiple of %lu",
		    (unsigned long long)options.stride, PAGE);
	if (sched_getaffinity(0, sizeof(set), &set))
		die_errno("sched_getaffinity");
	cpus = (unsigned int)CPU_COUNT(&set);
	if (cpus < 2 || cpus > MAX_CPUS)
		die(EXIT_USAGE, "%u CPUs: it needs 2 to %d", cpus, MAX_CPUS);
	fd = memfd_create("bench", MFD_MORSEL);
	if (fd < 0 && errno == EINVAL)
		die(EXIT_NO_KERNEL_SUPPORT, "this kernel has no morsels");
	close(fd);
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		die_errno("mmap");
	for (unsigned int cpu = 0; cpu < cpus; cpu++)
		cpu_of[cpu] = nth_cpu(cpu);
	run_on_cpu(cpu_of[0]);
	setvbuf(stdout, NULL, _IOLBF, 0);
	print_environment_json(stdout);
	measure(&options, VECTOR, cpus);
	measure(&options, PUNCH, cpus);
	/* Memory of one process: nobody else can have it. */
	if (options.processes == 1 && options.mappings == 1)
		measure(&options, DONTNEED, cpus);
	return EXIT_OK;
}
