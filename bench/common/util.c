// SPDX-License-Identifier: GPL-2.0-only
/*
 * util.c - messages, time, CPUs, numbers of options, scratch files, the question for FPR
 *
 * Who: all benchmark programs.
 */
#include "util.h"

#include "../../lib/include/ceasefire.h"

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

unsigned long parse_number(const char *option, const char *text,
			   unsigned long low, unsigned long high)
{
	unsigned long value;
	char *end;

	errno = 0;
	value = strtoul(text, &end, 10);
	if (errno || end == text || *end || text[0] == '-' || value < low ||
	    value > high)
		die(EXIT_USAGE, "%s wants a number from %lu to %lu, not '%s'",
		    option, low, high, text);
	return value;
}

double parse_seconds(const char *option, const char *text)
{
	double value;
	char *end;

	value = strtod(text, &end);
	if (end == text || *end || !(value >= 0.01 && value <= 86400))
		die(EXIT_USAGE, "%s wants seconds from 0.01 to 86400, not '%s'",
		    option, text);
	return value;
}

void parse_fpr_modes(struct fpr_modes *modes, const char *text)
{
	modes->count = 0;
	for (;;) {
		size_t length = strcspn(text, ",");
		bool on = length == 2 && strncmp(text, "on", 2) == 0;

		if (!on && (length != 3 || strncmp(text, "off", 3) != 0))
			die(EXIT_USAGE, "--mode wants off, on or both, not '%s'", text);
		if (modes->count == 2 || (modes->count && modes->fpr[0] == on))
			die(EXIT_USAGE, "--mode has a mode twice");
		modes->fpr[modes->count++] = on;
		if (!text[length])
			return;
		text += length + 1;
	}
}

bool fpr_mode(const struct fpr_modes *modes, unsigned int round, unsigned int i)
{
	return modes->fpr[(round + i) % modes->count];
}

/* Ends the program where MAP_FPR would do nothing. */
void require_fpr(void)
{
	switch (ceasefire_fpr_state()) {
	case 1:
		return;
	case 0:
		die(EXIT_NO_KERNEL_SUPPORT,
		    "FPR is switched off: echo 1 > " CEASEFIRE_FPR_ENABLED);
	default:
		die(EXIT_NO_KERNEL_SUPPORT,
		    "this kernel has no FPR (no " CEASEFIRE_FPR_ENABLED
		    "); boot a ceasefire kernel or leave the modes out that use it");
	}
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

void require_fpr_modes(const struct fpr_modes *modes)
{
	for (unsigned int i = 0; i < modes->count; i++)
		if (modes->fpr[i])
			require_fpr();
}
