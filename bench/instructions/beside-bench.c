// SPDX-License-Identifier: GPL-2.0-only
/*
 * beside-bench.c - what a program pays while another one maps and unmaps files
 *
 * What: loops of a program that has nothing to do with MAP_FPR: page faults,
 *       malloc(), a connection over TCP. Beside it, on two CPUs of its own, a
 *       process maps, reads and unmaps pages of a file, and drops them from the
 *       page cache now and then: its frames come and go. It does so without
 *       MAP_FPR first, and with it then. While a loop is counted it stands still:
 *       emulated CPUs take turns, and one that waits for the lock of another one
 *       would count its whole turn.
 *       Nothing is timed here: each loop lies between two marks, and
 *       steps-plugin.c counts the instructions of this CPU between them.
 * Who:  `ceasefire bench beside-cost`, in a guest with three CPUs; see
 *       cli/ceasefire/bench/cost/beside.py.
 *
 * The lines of output are in the order of the counts that the plugin writes.
 */
#include "../common/environment.h"
#include "../common/json.h"
#include "../common/modes.h"
#include "../common/options.h"
#include "../common/util.h"
#include "mark.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE		4096UL
#define FILE_PAGES	1024UL
#define MAP_PAGES	16UL
#define FAULT_PAGES	256UL
/* More than malloc() takes from its heap: it maps, and gives back. */
#define MALLOC_BYTES	(1UL << 20)
#define MALLOC_MAPS	(128 << 10)
#define MESSAGE		16384UL
/* So many cycles of each thread of the neighbour come before a loop. */
#define CYCLES		300UL

static int data_file;
static int sockets[2];

/* Of the neighbour, seen by both. */
static struct shared {
	atomic_ullong cycles[2];
} *shared;

struct cycler {
	unsigned int number;
	int flag;
};

/* Another mapping each time; a page of the file is read anew now and then. */
static void *cycle(void *argument)
{
	const struct cycler *c = argument;
	unsigned long n;

	run_on_cpu(nth_cpu(1 + c->number));
	for (n = 0;; n++) {
		off_t at = (off_t)((n * MAP_PAGES % FILE_PAGES) * PAGE);
		volatile char *p = mmap(NULL, MAP_PAGES * PAGE, PROT_READ,
					MAP_SHARED | c->flag, data_file, at);

		if (p == MAP_FAILED)
			die_errno("mmap");
		for (unsigned long i = 0; i < MAP_PAGES; i++)
			(void)p[i * PAGE];
		if (munmap((void *)p, MAP_PAGES * PAGE))
			die_errno("munmap");
		/* Its frames are freed, and taken again. */
		if (n % 4 == 0)
			posix_fadvise(data_file, at, MAP_PAGES * PAGE,
				      POSIX_FADV_DONTNEED);
		bump(&shared->cycles[c->number], 1);
	}
	return NULL;
}

static pid_t start_neighbour(const struct mode *mode)
{
	struct cycler cyclers[2] = { { 0, mode->map_flags }, { 1, mode->map_flags } };
	pthread_t thread;
	pid_t pid = fork();

	if (pid < 0)
		die_errno("fork");
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		enter_mode(mode);
		if (pthread_create(&thread, NULL, cycle, &cyclers[1]))
			die(EXIT_FAILED, "no thread");
		cycle(&cyclers[0]);
	}
	return pid;
}

/* Both threads have run, so that munmap() has somebody to interrupt. */
static void let_run(pid_t pid)
{
	unsigned long long end[2];
	int status;

	for (unsigned int i = 0; i < 2; i++)
		end[i] = atomic_load(&shared->cycles[i]) + CYCLES;
	if (kill(pid, SIGCONT))
		die_errno("kill");
	while (atomic_load(&shared->cycles[0]) < end[0] ||
	       atomic_load(&shared->cycles[1]) < end[1])
		sleep_ns(1000000);
	if (kill(pid, SIGSTOP) || waitpid(pid, &status, WUNTRACED) != pid)
		die_errno("the other process");
	if (!WIFSTOPPED(status))
		die(EXIT_FAILED, "the other process ended");
}

static void page_fault(unsigned long count)
{
	while (count) {
		unsigned long pages = count < FAULT_PAGES ? count : FAULT_PAGES;
		char *p = mmap(NULL, FAULT_PAGES * PAGE, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (p == MAP_FAILED)
			die_errno("mmap");
		for (unsigned long i = 0; i < pages; i++)
			*(volatile char *)(p + i * PAGE) = 1;
		munmap(p, FAULT_PAGES * PAGE);
		count -= pages;
	}
}

static void allocate(unsigned long count)
{
	for (; count; count--) {
		volatile char *p = malloc(MALLOC_BYTES);

		if (!p)
			die_errno("malloc");
		/* A program uses some of what it asks for. */
		for (unsigned long i = 0; i < 8; i++)
			p[i * PAGE] = 1;
		free((void *)p);
	}
}

static void network(unsigned long count)
{
	static char buffer[MESSAGE];

	for (; count; count--) {
		size_t got = 0;

		if (write(sockets[0], buffer, MESSAGE) != (ssize_t)MESSAGE)
			die_errno("write to a socket");
		while (got < MESSAGE) {
			ssize_t n = read(sockets[1], buffer, MESSAGE - got);

			if (n <= 0)
				die_errno("read from a socket");
			got += (size_t)n;
		}
	}
}

static const struct loop {
	const char *name;
	void (*run)(unsigned long count);
	unsigned long count;
} loops[] = {
	{ "page-fault", page_fault, 4096 },
	{ "malloc", allocate, 400 },
	{ "network", network, 1500 },
};

static void connect_to_self(void)
{
	struct sockaddr_in address = {
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	socklen_t length = sizeof(address);
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (listener < 0 ||
	    bind(listener, (struct sockaddr *)&address, length) ||
	    listen(listener, 1) ||
	    getsockname(listener, (struct sockaddr *)&address, &length))
		die_errno("cannot listen on the loopback address");
	sockets[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (sockets[0] < 0 ||
	    connect(sockets[0], (struct sockaddr *)&address, length))
		die_errno("cannot connect to the loopback address");
	sockets[1] = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	if (sockets[1] < 0)
		die_errno("accept");
	close(listener);
}

static void measure(const struct mode *mode, unsigned int repeats)
{
	pid_t pid = start_neighbour(mode);

	for (unsigned int repeat = 0; repeat < repeats; repeat++) {
		for (size_t i = 0; i < sizeof(loops) / sizeof(*loops); i++) {
			const struct loop *l = &loops[i];
			struct json json;

			let_run(pid);
			l->run(l->count / 4);
			MARK();
			l->run(l->count);
			MARK();
			json_begin(&json, stdout, "beside");
			json_string(&json, "case", l->name);
			json_string(&json, "mode", mode->name);
			json_unsigned(&json, "repeat", repeat);
			json_unsigned(&json, "ops", l->count);
			json_end(&json);
		}
	}
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

struct options {
	struct mode_list modes;
	unsigned int repeats;
	const char *folder;
};

static void options_parse(struct options *o, int argc, char **argv)
{
	static const struct program program = {
		"beside-bench [options]",
		"Runs loops of a program beside another one that maps and unmaps a file, for\n"
		"`ceasefire bench beside-cost`, which counts the instructions of the loops.",
		NULL
	};
	const struct program_option list[] = {
		MODES(&o->modes),
		NUMBER("repeats", "N", &o->repeats, 1, 1000, "repeats of each loop (5)"),
		TEXT("dir", "DIR", &o->folder, "make the test file here ($TMPDIR, /tmp)"),
		{ 0 }
	};

	*o = (struct options){ .repeats = 5, .folder = getenv("TMPDIR") };
	parse_modes(&o->modes, "off,fpr");
	parse_options(&program, list, argc, argv);
	if (!o->folder || !*o->folder)
		o->folder = "/tmp";
}

int main(int argc, char **argv)
{
	struct options options;
	cpu_set_t allowed;

	set_program_name("beside-bench");
	options_parse(&options, argc, argv);
	if (sched_getaffinity(0, sizeof(allowed), &allowed))
		die_errno("sched_getaffinity");
	if (CPU_COUNT(&allowed) < 3)
		die(EXIT_USAGE, "give it three CPUs: one for itself, two for the other process");
	require_modes(&options.modes);
	setvbuf(stdout, NULL, _IOLBF, 0);

	data_file = make_scratch_file(options.folder);
	if (ftruncate(data_file, (off_t)(FILE_PAGES * PAGE)) ||
	    fsync(data_file))
		die_errno("cannot make a file in %s", options.folder);
	shared = mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		die_errno("mmap");
	connect_to_self();
	/* Else a free() raises what counts as large. */
	mallopt(M_MMAP_THRESHOLD, MALLOC_MAPS);
	run_on_cpu(nth_cpu(0));
	print_environment_json(stdout);
	for (unsigned int i = 0; i < options.modes.count; i++)
		measure(options.modes.modes[i], options.repeats);
	return EXIT_OK;
}
