// SPDX-License-Identifier: GPL-2.0-only
/*
 * settings.c - what the kernel promises, what waits in it, and a CPU without a tick
 *
 * What: files of /sys/kernel/mm/ceasefire, the length of a tick, and the one
 *       thing that is changed: with the debug kernel, the CPU whose ticks pay no
 *       debts. It is as before when the program ends, by a signal, too.
 * Who:  main.c, rounds.c, memory.c.
 */
#include "bound.h"

#include "../common/util.h"

#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define SYSFS "/sys/kernel/mm/ceasefire/"
#define TICKLESS "/sys/kernel/debug/ceasefire/tickless_cpu"
#define NOHZ_FULL "/sys/devices/system/cpu/nohz_full"
#define ISOLATED "/sys/devices/system/cpu/isolated"

/* Of TICKLESS: open for writing while it is changed, and what it said before. */
static int tickless = -1;
static char tickless_before[24];

static uint64_t read_number(const char *path)
{
	FILE *f = fopen(path, "re");
	uint64_t value;

	if (!f || fscanf(f, "%" SCNu64, &value) != 1)
		die_errno("cannot read %s", path);
	fclose(f);
	return value;
}

void settings_read(struct settings *s)
{
	struct timespec t;

	s->settle_ms = (unsigned int)read_number(SYSFS "latr/settle_ms");
	s->late_ms = (unsigned int)read_number(SYSFS "latr/late_ms");
	s->held_limit = read_number(SYSFS "latr/held_limit");
	/* The clock that moves with the ticks says how far apart they are. */
	if (clock_getres(CLOCK_MONOTONIC_COARSE, &t))
		die_errno("clock_getres");
	s->tick_ns = (uint64_t)t.tv_sec * 1000 * MS + (uint64_t)t.tv_nsec;
}

/* The invariant I9 of Documentation/mm/ceasefire/design.rst. */
uint64_t settings_bound_ns(const struct settings *s, enum kind kind)
{
	if (kind == KIND_ISOLATED)
		return s->late_ms * MS;
	return s->settle_ms * MS + 2 * s->tick_ns;
}

/* Of all processes, in base pages. */
uint64_t parked_pages(void)
{
	static _Thread_local int fd = -1;
	char text[24];
	ssize_t n;

	if (fd < 0)
		fd = open(SYSFS "fpr/parked", O_RDONLY | O_CLOEXEC);
	n = pread(fd, text, sizeof(text) - 1, 0);
	if (n <= 0)
		die_errno("cannot read how much waits, in %s", SYSFS "fpr/parked");
	text[n] = '\0';
	return strtoull(text, NULL, 10);
}

/* Is @cpu in a list such as "1,4-7"? A kernel that has none says "(null)". */
static bool is_in_list(const char *path, int cpu)
{
	char text[512] = "", *at = text, *end;
	FILE *f = fopen(path, "re");

	if (!f)
		return false;
	if (!fgets(text, sizeof(text), f))
		text[0] = '\0';
	fclose(f);
	for (;; at = end + 1) {
		long first = strtol(at, &end, 10), last = first;

		if (end == at)
			return false;
		if (*end == '-')
			last = strtol(end + 1, &end, 10);
		if (first <= cpu && cpu <= last)
			return true;
		if (*end != ',')
			return false;
	}
}

/* The first CPU that nothing runs on that does not ask for it; @otherwise: there is none. */
int isolated_cpu(int otherwise)
{
	FILE *f = fopen(ISOLATED, "re");
	int cpu;

	if (!f || fscanf(f, "%d", &cpu) != 1)
		cpu = otherwise;
	if (f)
		fclose(f);
	return cpu;
}

void give_tick_back(void)
{
	if (tickless < 0)
		return;
	if (write(tickless, tickless_before, strlen(tickless_before)) < 0)
		fprintf(stderr, "%s: cannot restore " TICKLESS "\n", program_name());
	close(tickless);
	tickless = -1;
}

static void on_signal(int number)
{
	if (tickless >= 0 && write(tickless, tickless_before, strlen(tickless_before)) < 0)
		_exit(EXIT_FAILED);
	_exit(128 + number);
}

/* Returns how: this CPU has none while it has one thread to run, or its ticks are ignored. */
const char *take_tick(int cpu)
{
	char text[16];
	FILE *f;

	if (is_in_list(NOHZ_FULL, cpu))
		return "nohz_full";
	f = fopen(TICKLESS, "re");
	if (!f)
		die(EXIT_NO_KERNEL_SUPPORT,
		    "CPU %d has ticks: boot with nohz_full=%d if the kernel has NO_HZ_FULL, or the debug kernel",
		    cpu, cpu);
	if (!fgets(tickless_before, sizeof(tickless_before), f))
		die_errno("cannot read " TICKLESS);
	fclose(f);
	tickless = open(TICKLESS, O_WRONLY | O_CLOEXEC);
	if (tickless < 0)
		die_errno("cannot open " TICKLESS);
	signal(SIGINT, on_signal);
	signal(SIGTERM, on_signal);
	atexit(give_tick_back);
	snprintf(text, sizeof(text), "%d", cpu);
	if (write(tickless, text, strlen(text)) < 0)
		die_errno("cannot write " TICKLESS);
	return "tickless_cpu";
}
