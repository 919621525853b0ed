// SPDX-License-Identifier: GPL-2.0-only
/*
 * evict-bench.c - random reads of a mapped file that does not fit into memory
 *
 * What: each thread, on a CPU of its own, reads the first word of random pages,
 *       so that the kernel evicts pages of the mapping all the time. Prints each
 *       sample as text or as a JSON line. Without MAP_FPR (off) and with it (on)
 *       alternate; each sample has processes of its own. With several processes,
 *       as servers have workers, each of them maps the file.
 * Who:  people, and `ceasefire bench evict`.
 */
#include "../common/counters.h"
#include "../common/environment.h"
#include "../common/util.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
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
#ifndef MAP_FPR
#define MAP_FPR 0x800000
#endif

struct options {
	const char *path;
	unsigned int threads;
	unsigned int processes;
	unsigned int rounds;
	double seconds;
	unsigned long compute;
	unsigned long buffer;
	struct fpr_modes modes;
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

static const char usage_text[] =
	"usage: evict-bench --file PATH [option]...\n"
	"  --file PATH     file or block device, many times larger than memory\n"
	"  --fill          write the test pattern to it first\n"
	"  --threads N     readers, each on a CPU of its own (default: all CPUs)\n"
	"  --processes N   that the readers belong to, each maps the file (default: 1)\n"
	"  --seconds S     length of a sample (default: 5)\n"
	"  --rounds N      rounds of all modes (default: 3)\n"
	"  --mode LIST     without MAP_FPR, with it (default: off,on)\n"
	"  --compute N     operations on registers between two reads (default: 0)\n"
	"  --buffer N      pages of its own that a thread reads from meanwhile, one\n"
	"                  for 64 operations (default: 0)\n"
	"  --random        madvise(MADV_RANDOM)\n"
	"  --json          one line of JSON a sample\n";

static void options_parse(struct options *o, int argc, char **argv)
{
	static const struct option longs[] = {
		{ "file", required_argument, NULL, 'f' },
		{ "fill", no_argument, NULL, 'w' },
		{ "threads", required_argument, NULL, 't' },
		{ "processes", required_argument, NULL, 'p' },
		{ "seconds", required_argument, NULL, 's' },
		{ "rounds", required_argument, NULL, 'r' },
		{ "mode", required_argument, NULL, 'o' },
		{ "compute", required_argument, NULL, 'c' },
		{ "buffer", required_argument, NULL, 'b' },
		{ "random", no_argument, NULL, 'a' },
		{ "json", no_argument, NULL, 'j' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 }
	};
	cpu_set_t set;
	int c;

	sched_getaffinity(0, sizeof(set), &set);
	*o = (struct options) { .threads = (unsigned int)CPU_COUNT(&set),
				.processes = 1, .rounds = 3, .seconds = 5 };
	parse_fpr_modes(&o->modes, "off,on");
	while ((c = getopt_long(argc, argv, "", longs, NULL)) != -1) {
		switch (c) {
		case 'f': o->path = optarg; break;
		case 'w': o->fill = true; break;
		case 't': o->threads = (unsigned int)
				parse_number("--threads", optarg, 1, MAX_THREADS);
			break;
		case 'p': o->processes = (unsigned int)
				parse_number("--processes", optarg, 1, MAX_PROCESSES);
			break;
		case 's': o->seconds = parse_seconds("--seconds", optarg); break;
		case 'r': o->rounds = (unsigned int)
				parse_number("--rounds", optarg, 1, 10000);
			break;
		case 'o': parse_fpr_modes(&o->modes, optarg); break;
		case 'c':
			o->compute = parse_number("--compute", optarg, 0, 100000000);
			break;
		case 'b':
			o->buffer = parse_number("--buffer", optarg, 0, 65536);
			break;
		case 'a': o->random_advice = true; break;
		case 'j': o->json = true; break;
		case 'h': fputs(usage_text, stdout); exit(EXIT_OK);
		default: exit(EXIT_USAGE);
		}
	}
	if (optind != argc)
		die(EXIT_USAGE, "what is '%s'? See --help", argv[optind]);
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
			unsigned int process, int fd, uint64_t pages, bool fpr)
{
	unsigned int cpu = CPU_SETSIZE - 1;
	cpu_set_t set;
	char *base = mmap(NULL, pages * PAGE, PROT_READ,
			  MAP_SHARED | (fpr ? MAP_FPR : 0), fd, 0);

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
		 uint64_t pages, bool checked, bool fpr, unsigned int round)
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
			run_readers(o, readers, i, fd, pages, fpr);
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

static void print(const struct options *o, const struct sample *s, bool fpr,
		  unsigned int round, uint64_t pages, bool checked)
{
	int64_t received = counters_get(&s->counters,
					"nr_tlb_remote_flush_received");

	int64_t scanned = counters_get(&s->counters, "pgscan_file");
	int64_t stolen = counters_get(&s->counters, "pgsteal_file");

	if (!o->json) {
		printf("round %u  %-3s  %9.0f reads/s  %8" PRId64
		       " shootdowns received, %.5f a read; %.2f pages scanned for each evicted\n",
		       round, fpr ? "on" : "off",
		       (double)s->reads * 1e9 / (double)s->ns, received,
		       (double)received / (double)(s->reads ? s->reads : 1),
		       (double)scanned / (double)(stolen ? stolen : 1));
		fflush(stdout);
		return;
	}
	printf("{\"schema\":%d,\"type\":\"evict\",\"mode\":\"%s\",\"round\":%u",
	       JSON_SCHEMA, fpr ? "on" : "off", round);
	printf(",\"threads\":%u,\"processes\":%u,\"pages\":%" PRIu64 ",\"random\":%s,\"checked\":%s",
	       o->threads, o->processes, pages, o->random_advice ? "true" : "false",
	       checked ? "true" : "false");
	printf(",\"compute\":%lu,\"buffer\":%lu,\"rate\":%.1f", o->compute, o->buffer,
	       (double)s->reads * 1e9 / (double)s->ns);
	printf(",\"reads\":%" PRIu64 ",\"wrong\":%" PRIu64 ",\"ns\":%" PRIu64
	       ",\"counters\":", s->reads, s->wrong, s->ns);
	counters_print_json(&s->counters, stdout);
	printf("}\n");
	fflush(stdout);
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
	require_fpr_modes(&o.modes);
	fd = open(o.path, (o.fill ? O_RDWR : O_RDONLY) | O_CLOEXEC);
	if (fd < 0)
		die(EXIT_USAGE, "cannot open %s: %s", o.path, strerror(errno));
	pages = pages_of(fd, o.path);
	if (o.fill)
		fill(fd, o.path, pages);
	checked = has_pattern(fd, pages);
	if (o.json)
		print_environment_json("evict-bench", stdout);
	if (!checked)
		fprintf(stderr, "evict-bench: %s holds other data than the test pattern, so it is not checked (--fill writes it)\n",
			o.path);
	for (unsigned int round = 0; round < o.rounds; round++) {
		for (unsigned int i = 0; i < o.modes.count; i++) {
			bool fpr = fpr_mode(&o.modes, round, i);

			take(&o, &sample, fd, pages, checked, fpr, round);
			wrong += sample.wrong;
			print(&o, &sample, fpr, round, pages, checked);
		}
	}
	if (wrong)
		die(EXIT_FAILED, "%" PRIu64 " pages had wrong data", wrong);
	return EXIT_OK;
}
