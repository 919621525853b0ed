// SPDX-License-Identifier: GPL-2.0-only
/*
 * util.c - messages, time, CPUs, scratch files
 *
 * Who: all benchmark programs.
 */
#include "util.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const char *program = "bench";

void set_program_name(const char *name)
{
	program = name;
}

const char *program_name(void)
{
	return program;
}

void die(enum exit_code code, const char *format, ...)
{
	va_list args;

	fflush(stdout);
	fprintf(stderr, "%s: ", program);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	exit(code);
}

void die_errno(const char *format, ...)
{
	char text[300];
	int error = errno;
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	die(EXIT_FAILED, "%s: %s", text, strerror(error));
}

uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000ULL + (uint64_t)t.tv_nsec;
}

void sleep_ns(uint64_t ns)
{
	struct timespec t = {
		.tv_sec = (time_t)(ns / 1000000000ULL),
		.tv_nsec = (long)(ns % 1000000000ULL),
	};

	while (nanosleep(&t, &t) && errno == EINTR)
		;
}

/* The CPU with number @n of those this process may use, round and round. */
int nth_cpu(unsigned int n)
{
	cpu_set_t set;
	unsigned int left;

	if (sched_getaffinity(0, sizeof(set), &set))
		die_errno("sched_getaffinity");
	left = n % (unsigned int)CPU_COUNT(&set);
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (CPU_ISSET(cpu, &set) && !left--)
			return cpu;
	}
	return 0;
}

/* The calling thread stays there; -1: anywhere. */
void run_on_cpu(int cpu)
{
	cpu_set_t set;

	if (cpu < 0)
		return;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		die_errno("cannot run on CPU %d", cpu);
}

/* An empty file in @folder that goes with its last user. */
int make_scratch_file(const char *folder)
{
	char path[4096];
	int fd;

	if (snprintf(path, sizeof(path), "%s/%s-XXXXXX", folder, program) >=
	    (int)sizeof(path))
		die(EXIT_USAGE, "the path of --dir is too long");
	fd = mkostemp(path, O_CLOEXEC);
	if (fd < 0)
		die_errno("cannot make a file in %s", folder);
	unlink(path);
	return fd;
}
