// SPDX-License-Identifier: GPL-2.0-only
/*
 * alloc-bench.c - what a process pays for memory while another holds a pool
 *
 * What: three processes. The holder unmaps a file and drops its pages again and
 *       again, so that with MAP_FPR its pool stays full. The reader fills the
 *       page cache, so that memory is short. The one that is measured touches
 *       new memory page by page, and notes how long each page took. Without
 *       MAP_FPR (off) and with it (on) alternate.
 * Who:  people, and `ceasefire bench run alloc`.
 */
#include "../common/counters.h"
#include "../common/environment.h"
#include "../common/json.h"
#include "../common/latency.h"
#include "../common/modes.h"
#include "../common/options.h"
#include "../common/util.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE 4096ul
#define MIB (1ul << 20)
#define READ_BYTES MIB

struct options {
	const char *cache;
	const char *dir;
	unsigned long pool_mib;
	unsigned long block_mib;
	unsigned long pause_ms;
	unsigned int rounds;
	double seconds;
	struct mode_list modes;
	bool json;
};

struct sample {
	struct latency latency;
	uint64_t most_parked;
	uint64_t ns;
	struct counters counters;
};

static void options_parse(struct options *o, int argc, char **argv)
{
	static const struct program program = {
		"alloc-bench [options]",
		"What a process pays for memory while another one holds a pool.", NULL
	};
	const struct program_option list[] = {
		TEXT("cache", "PATH", &o->cache,
		     "file or block device, many times larger than memory, that\n"
		     "is read all the time; without it memory is not short"),
		TEXT("dir", "DIR", &o->dir, "folder for the file of the holder (.)"),
		NUMBER("pool", "MIB", &o->pool_mib, 1, 65536,
		       "what the holder drops each time (12)"),
		NUMBER("pause", "MS", &o->pause_ms, 1, 60000, "how often it does so (200)"),
		NUMBER("block", "MIB", &o->block_mib, 1, 65536,
		       "memory that is taken and given back (16)"),
		DURATION("seconds", &o->seconds, "length of a sample (10)"),
		NUMBER("rounds", "N", &o->rounds, 1, 10000, "rounds of all modes (5)"),
		MODES(&o->modes),
		FLAG("json", &o->json, "JSON lines instead of text"),
		{ 0 }
	};

	*o = (struct options) { .dir = ".", .pool_mib = 12, .block_mib = 16,
				.pause_ms = 200, .rounds = 5, .seconds = 10 };
	parse_modes(&o->modes, "off,fpr");
	parse_options(&program, list, argc, argv);
}

/* A child that ends with its parent. */
static pid_t child(void)
{
	pid_t parent = getpid(), pid = fork();

	if (pid < 0)
		die_errno("fork");
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(EXIT_FAILED);
	}
	return pid;
}

static void end(pid_t pid, const char *who)
{
	int status;

	if (waitpid(pid, &status, WNOHANG))
		die(EXIT_FAILED, "the %s has died", who);
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
}

/* Nothing but another CPU that runs the holder: without one nobody is flushed. */
static void *spin(void *unused)
{
	(void)unused;
	run_on_cpu(1);
	for (;;)
		__builtin_ia32_pause();
	return NULL;
}

/* Process: unmaps and drops a file again and again. */
static void hold(const struct options *o, int fd, const struct mode *mode)
{
	size_t length = o->pool_mib * MIB;
	pthread_t spinner;

	run_on_cpu(0);
	enter_mode(mode);
	if (pthread_create(&spinner, NULL, spin, NULL))
		die(EXIT_FAILED, "cannot start a thread");
	for (;;) {
		char *p = mmap(NULL, length, PROT_READ,
			       MAP_SHARED | MAP_POPULATE | mode->map_flags,
			       fd, 0);

		if (p == MAP_FAILED)
			die_errno("mmap");
		if (munmap(p, length))
			die_errno("munmap");
		posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
		usleep((useconds_t)(o->pause_ms * 1000));
	}
}

/* Process: fills the page cache. */
static void fill_cache(const struct options *o)
{
	char *buffer = malloc(READ_BYTES);
	int fd = open(o->cache, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		die_errno("%s", o->cache);
	if (!buffer)
		die(EXIT_FAILED, "no memory");
	run_on_cpu(0);
	for (;;) {
		ssize_t n = read(fd, buffer, READ_BYTES);

		if (n < 0)
			die_errno("%s", o->cache);
		if (!n && lseek(fd, 0, SEEK_SET))
			die_errno("%s", o->cache);
	}
}

static uint64_t parked(void)
{
	FILE *f = fopen("/sys/kernel/mm/ceasefire/fpr/parked", "re");
	uint64_t pages = 0;

	/* A kernel without FPR parks nothing. */
	if (!f)
		return 0;
	if (fscanf(f, "%" SCNu64, &pages) != 1)
		die_errno("cannot read how much is parked");
	fclose(f);
	return pages;
}

/* What is measured: new memory, touched page by page. */
static void allocate(const struct options *o, struct sample *s)
{
	uint64_t start = now_ns(), stop = start + (uint64_t)(o->seconds * 1e9);
	size_t length = o->block_mib * MIB;
	uint64_t before;

	s->most_parked = 0;
	do {
		char *p = mmap(NULL, length, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		uint64_t now;

		if (p == MAP_FAILED)
			die_errno("mmap");
		/* Pages, not huge ones: each is an allocation. */
		madvise(p, length, MADV_NOHUGEPAGE);
		before = now_ns();
		for (size_t at = 0; at < length; at += PAGE) {
			*(volatile char *)(p + at) = 1;
			now = now_ns();
			latency_add(&s->latency, now - before);
			before = now;
		}
		munmap(p, length);
		now = parked();
		if (now > s->most_parked)
			s->most_parked = now;
	} while (before < stop);
	s->ns = now_ns() - start;
}

static void take(const struct options *o, struct sample *s, int fd,
		 const struct mode *mode)
{
	struct counters before;
	pid_t holder, reader = 0;

	memset(s, 0, sizeof(*s));
	holder = child();
	if (!holder)
		hold(o, fd, mode);
	if (o->cache) {
		reader = child();
		if (!reader)
			fill_cache(o);
	}
	/* Until memory is full and the pool is. */
	usleep((useconds_t)(o->seconds * 5e5));
	counters_read(&before);
	allocate(o, s);
	counters_read(&s->counters);
	counters_subtract(&s->counters, &before);
	end(holder, "holder");
	if (o->cache)
		end(reader, "reader");
}

static void print(const struct options *o, const struct sample *s,
		  const struct mode *mode, unsigned int round)
{
	const struct latency *l = &s->latency;
	int64_t stalls = counters_get(&s->counters, "allocstall_movable");
	struct json json;

	if (!o->json) {
		printf("round %u  %-3s  p50 %6.1f  p99 %7.1f  p99.9 %8.1f us  %7"
		       PRIu64 " pages, %" PRId64 " stalls, %" PRIu64
		       " parked at most\n", round, mode->name,
		       (double)latency_quantile(l, 0.5) / 1e3,
		       (double)latency_quantile(l, 0.99) / 1e3,
		       (double)latency_quantile(l, 0.999) / 1e3, l->count,
		       stalls, s->most_parked);
		fflush(stdout);
		return;
	}
	json_begin(&json, stdout, "alloc");
	json_string(&json, "mode", mode->name);
	json_unsigned(&json, "round", round);
	json_unsigned(&json, "pages", l->count);
	json_real(&json, "rate", per_second(l->count, s->ns), 1);
	json_unsigned(&json, "most_parked", s->most_parked);
	latency_json(&json, l);
	counters_json(&json, &s->counters);
	json_end(&json);
}

int main(int argc, char **argv)
{
	static struct sample sample;
	struct options o;
	int fd;

	set_program_name("alloc-bench");
	options_parse(&o, argc, argv);
	require_modes(&o.modes);
	if (o.cache && access(o.cache, R_OK))
		die(EXIT_USAGE, "cannot read %s: %s", o.cache, strerror(errno));
	if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
		die(EXIT_USAGE, "this takes two CPUs");
	fd = make_scratch_file(o.dir);
	if (ftruncate(fd, (off_t)(o.pool_mib * MIB)) ||
	    posix_fallocate(fd, 0, (off_t)(o.pool_mib * MIB)) || fsync(fd))
		die_errno("cannot make a file of %lu MiB in %s", o.pool_mib,
			  o.dir);
	run_on_cpu(0);
	if (o.json)
		print_environment_json(stdout);
	for (unsigned int round = 0; round < o.rounds; round++) {
		for (unsigned int i = 0; i < o.modes.count; i++) {
			const struct mode *mode =
				mode_in_turn(&o.modes, round, i);

			take(&o, &sample, fd, mode);
			print(&o, &sample, mode, round);
		}
	}
	return EXIT_OK;
}
