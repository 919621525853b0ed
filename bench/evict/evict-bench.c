// SPDX-License-Identifier: GPL-2.0-only
/*
 * evict-bench.c - random reads of a mapped file that does not fit into memory
 *
 * What: each thread, on a CPU of its own, reads the first word of random pages,
 *       so that the kernel evicts pages of the mapping all the time. Prints each
 *       sample as text or as a JSON line. Without MAP_FPR (off) and with it (on)
 *       alternate; each sample has processes of its own. With several processes,
 *       as servers have workers, each of them maps the file.
 * Who:  people, and `ceasefire bench run evict`.
 */
#include "../common/counters.h"
#include "../common/environment.h"
#include "../common/json.h"
#include "../common/modes.h"
#include "../common/options.h"
#include "../common/util.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <linux/fs.h>

#define PAGE 4096ul
#define MAX_THREADS 512
#define MAX_PROCESSES 64

struct options {
	const char *path;
	unsigned int threads;
	unsigned int processes;
	unsigned int rounds;
	double seconds;
	unsigned long compute;
	unsigned long buffer;
	struct mode_list modes;
	bool random_advice;
	bool fill;
	bool json;
};

/* Of one thread, on cache lines of its own. */
struct reader {
	_Alignas(128) _Atomic uint64_t reads;
	_Atomic uint64_t wrong;
	const char *base;
	uint64_t pages;
	uint64_t seed;
	unsigned long compute;
	unsigned long buffer;
	bool checked;
	unsigned int cpu;
};

struct sample {
	uint64_t reads;
	uint64_t wrong;
	uint64_t ns;
	struct counters counters;
};

static void options_parse(struct options *o, int argc, char **argv)
{
	static const struct program program = {
		"evict-bench --file PATH [options]",
		"Threads read random pages of a mapped file that does not fit into memory.",
		NULL
	};
	const struct program_option list[] = {
		TEXT("file", "PATH", &o->path,
		     "file or block device, many times larger than memory"),
		FLAG("fill", &o->fill, "write the test pattern to it first"),
		NUMBER("threads", "N", &o->threads, 1, MAX_THREADS,
		       "readers, each on a CPU of its own (all CPUs)"),
		NUMBER("processes", "N", &o->processes, 1, MAX_PROCESSES,
		       "that the readers belong to, each maps the file (1)"),
		DURATION("seconds", &o->seconds, "length of a sample (5)"),
		NUMBER("rounds", "N", &o->rounds, 1, 10000, "rounds of all modes (3)"),
		MODES(&o->modes),
		NUMBER("compute", "N", &o->compute, 0, 100000000,
		       "operations on registers between two reads (0)"),
		NUMBER("buffer", "N", &o->buffer, 0, 65536,
		       "pages of its own that a thread reads from meanwhile, one\n"
		       "for 64 operations (0)"),
		FLAG("random", &o->random_advice, "madvise(MADV_RANDOM)"),
		FLAG("json", &o->json, "JSON lines instead of text"),
		{ 0 }
	};
	cpu_set_t set;

	sched_getaffinity(0, sizeof(set), &set);
	*o = (struct options) { .threads = (unsigned int)CPU_COUNT(&set),
				.processes = 1, .rounds = 3, .seconds = 5 };
	parse_modes(&o->modes, "off,fpr");
	parse_options(&program, list, argc, argv);
	if (!o->path)
		die(EXIT_USAGE, "--file is missing: a file or block device, many times larger than memory");
	if (o->processes > o->threads)
		die(EXIT_USAGE, "--processes %u: there are only %u readers (--threads)",
		    o->processes, o->threads);
}

static uint64_t pages_of(int fd, const char *path)
{
	struct stat st;
	uint64_t size;

	if (fstat(fd, &st))
		die_errno("%s", path);
	size = (uint64_t)st.st_size;
	if (S_ISBLK(st.st_mode) && ioctl(fd, BLKGETSIZE64, &size))
		die_errno("%s", path);
	if (size < PAGE)
		die(EXIT_USAGE, "%s is smaller than a page", path);
	return size / PAGE;
}

static void fill(int fd, const char *path, uint64_t pages)
{
	char page[PAGE] = { 0 };

	for (uint64_t i = 0; i < pages; i++) {
		uint64_t word = page_word(0, i);

		memcpy(page, &word, sizeof(word));
		if (pwrite(fd, page, PAGE, (off_t)(i * PAGE)) != (ssize_t)PAGE)
			die_errno("cannot write to %s", path);
	}
	if (fsync(fd))
		die_errno("cannot sync %s", path);
}

/* Has the file the pattern? Some pages tell. */
static bool has_pattern(int fd, uint64_t pages)
{
	for (uint64_t i = 0; i < 16; i++) {
		uint64_t at = pages * i / 16, word;

		if (pread(fd, &word, sizeof(word), (off_t)(at * PAGE)) !=
		    (ssize_t)sizeof(word) || word != page_word(0, at))
			return false;
	}
	return true;
}

#define OPERATIONS_PER_PAGE 64

/* Turns registers over, and looks at pages of the thread's own if it has some. */
static uint64_t compute(const struct reader *r, const char *buffer, uint64_t x)
{
	for (unsigned long i = 0; i < r->compute; i++) {
		x = x * 6364136223846793005u + 1442695040888963407u;
		if (buffer && i % OPERATIONS_PER_PAGE == 0)
			x ^= *(const volatile uint64_t *)
				(buffer + (x >> 32) % r->buffer * PAGE);
	}
	return x;
}

static void *read_pages(void *argument)
{
	struct reader *r = argument;
	char *buffer = NULL;
	uint64_t x = r->seed;
	volatile uint64_t result;
	cpu_set_t set;

	if (r->buffer) {
		buffer = mmap(NULL, r->buffer * PAGE, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
		if (buffer == MAP_FAILED)
			die_errno("mmap");
	}

	CPU_ZERO(&set);
	CPU_SET(r->cpu, &set);
	pthread_setaffinity_np(pthread_self(), sizeof(set), &set);
	for (;;) {
		uint64_t page, word;

		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		page = x % r->pages;
		word = *(const volatile uint64_t *)(r->base + page * PAGE);
		if (r->checked && word != page_word(0, page))
			atomic_fetch_add_explicit(&r->wrong, 1,
						  memory_order_relaxed);
		result = compute(r, buffer, word);
		(void)result;
		atomic_fetch_add_explicit(&r->reads, 1, memory_order_relaxed);
	}
	return NULL;
}

static void sum(const struct reader *readers, unsigned int n, uint64_t *reads,
		uint64_t *wrong)
{
	*reads = *wrong = 0;
	for (unsigned int i = 0; i < n; i++) {
		*reads += atomic_load(&readers[i].reads);
		*wrong += atomic_load(&readers[i].wrong);
	}
}

/* A process under test, with its share of the readers; ends when it is killed. */
static void run_readers(const struct options *o, struct reader *readers,
			unsigned int process, int fd, uint64_t pages,
			const struct mode *mode)
{
	unsigned int cpu = CPU_SETSIZE - 1;
	cpu_set_t set;
	char *base;

	enter_mode(mode);
	base = mmap(NULL, pages * PAGE, PROT_READ, MAP_SHARED | mode->map_flags, fd, 0);
	if (base == MAP_FAILED)
		die_errno("mmap");
	if (madvise(base, pages * PAGE,
		    o->random_advice ? MADV_RANDOM : MADV_NORMAL))
		die_errno("madvise");
	sched_getaffinity(0, sizeof(set), &set);
	for (unsigned int i = 0; i < o->threads; i++) {
		pthread_t thread;

		do
			cpu = (cpu + 1) % CPU_SETSIZE;
		while (!CPU_ISSET(cpu, &set));
		if (i % o->processes != process)
			continue;
		readers[i].base = base;
		readers[i].cpu = cpu;
		if (pthread_create(&thread, NULL, read_pages, &readers[i]))
			die(EXIT_FAILED, "cannot start thread %u", i);
	}
	for (;;)
		pause();
}

static void pass_seconds(double seconds)
{
	usleep((useconds_t)(seconds * 1e6));
}

static void take(const struct options *o, struct sample *s, int fd,
		 uint64_t pages, bool checked, const struct mode *mode,
		 unsigned int round)
{
	size_t bytes = o->threads * sizeof(struct reader);
	struct reader *readers = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
				      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t pids[MAX_PROCESSES];
	struct counters before;
	uint64_t reads, wrong;
	int status;

	if (readers == MAP_FAILED)
		die_errno("mmap");
	for (unsigned int i = 0; i < o->threads; i++) {
		readers[i].pages = pages;
		readers[i].checked = checked;
		readers[i].compute = o->compute;
		readers[i].buffer = o->buffer;
		/* Both modes of a round read the same pages. */
		readers[i].seed = page_word(round + 1, i) | 1;
	}
	for (unsigned int i = 0; i < o->processes; i++) {
		pids[i] = fork();
		if (pids[i] < 0)
			die_errno("fork");
		if (!pids[i] && prctl(PR_SET_PDEATHSIG, SIGKILL))
			die_errno("prctl");
		if (!pids[i])
			run_readers(o, readers, i, fd, pages, mode);
	}
	/* Until memory is full and reclaim has found its pace. */
	pass_seconds(o->seconds);
	counters_read(&before);
	sum(readers, o->threads, &reads, &wrong);
	s->ns = now_ns();
	pass_seconds(o->seconds);
	s->ns = now_ns() - s->ns;
	sum(readers, o->threads, &s->reads, &s->wrong);
	s->reads -= reads;
	counters_read(&s->counters);
	counters_subtract(&s->counters, &before);
	/* If one has died by itself, something was wrong. */
	if (waitpid(-1, &status, WNOHANG))
		die(EXIT_FAILED, "the readers have died");
	for (unsigned int i = 0; i < o->processes; i++) {
		kill(pids[i], SIGKILL);
		waitpid(pids[i], &status, 0);
	}
	munmap(readers, bytes);
}

static void print(const struct options *o, const struct sample *s,
		  const struct mode *mode, unsigned int round, uint64_t pages, bool checked)
{
	int64_t received = counters_get(&s->counters,
					"nr_tlb_remote_flush_received");
	int64_t scanned = counters_get(&s->counters, "pgscan_file");
	int64_t stolen = counters_get(&s->counters, "pgsteal_file");
	struct json json;

	if (!o->json) {
		printf("round %u  %-3s  %9.0f reads/s  %8" PRId64
		       " shootdowns received, %.5f a read; %.2f pages scanned for each evicted\n",
		       round, mode->name, per_second(s->reads, s->ns), received,
		       (double)received / (double)(s->reads ? s->reads : 1),
		       (double)scanned / (double)(stolen ? stolen : 1));
		fflush(stdout);
		return;
	}
	json_begin(&json, stdout, "evict");
	json_string(&json, "mode", mode->name);
	json_unsigned(&json, "round", round);
	json_unsigned(&json, "threads", o->threads);
	json_unsigned(&json, "processes", o->processes);
	json_unsigned(&json, "pages", pages);
	json_bool(&json, "random", o->random_advice);
	json_bool(&json, "checked", checked);
	json_unsigned(&json, "compute", o->compute);
	json_unsigned(&json, "buffer", o->buffer);
	json_real(&json, "rate", per_second(s->reads, s->ns), 1);
	json_unsigned(&json, "reads", s->reads);
	json_unsigned(&json, "wrong", s->wrong);
	json_unsigned(&json, "ns", s->ns);
	counters_json(&json, &s->counters);
	json_end(&json);
}

int main(int argc, char **argv)
{
	static struct sample sample;
	uint64_t pages, wrong = 0;
	struct options o;
	bool checked;
	int fd;

	set_program_name("evict-bench");
	options_parse(&o, argc, argv);
	require_modes(&o.modes);
	fd = open(o.path, (o.fill ? O_RDWR : O_RDONLY) | O_CLOEXEC);
	if (fd < 0)
		die(EXIT_USAGE, "cannot open %s: %s", o.path, strerror(errno));
	pages = pages_of(fd, o.path);
	if (o.fill)
		fill(fd, o.path, pages);
	checked = has_pattern(fd, pages);
	if (o.json)
		print_environment_json(stdout);
	if (!checked)
		fprintf(stderr, "evict-bench: %s holds other data than the test pattern, so it is not checked (--fill writes it)\n",
			o.path);
	for (unsigned int round = 0; round < o.rounds; round++) {
		for (unsigned int i = 0; i < o.modes.count; i++) {
			const struct mode *mode =
				mode_in_turn(&o.modes, round, i);

			take(&o, &sample, fd, pages, checked, mode, round);
			wrong += sample.wrong;
			print(&o, &sample, mode, round, pages, checked);
		}
	}
	if (wrong)
		die(EXIT_FAILED, "%" PRIu64 " pages had wrong data", wrong);
	return EXIT_OK;
}
