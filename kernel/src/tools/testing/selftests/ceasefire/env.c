// SPDX-License-Identifier: GPL-2.0
/* Counters, settings and facts about the process, see env.h. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "env.h"
#include "ktap.h"

#define SYSFS		"/sys/kernel/mm/ceasefire/fpr/"
#define LATR_SYSFS	"/sys/kernel/mm/ceasefire/latr/"
#define SHARERS_SYSFS	"/sys/kernel/mm/ceasefire/sharers/"
#define ABIS_SYSFS	"/sys/kernel/mm/ceasefire/abis/"
#define MORSEL_SYSFS	"/sys/kernel/mm/ceasefire/morsel/"
#define DEBUGFS		"/sys/kernel/debug/ceasefire/"

/* Returns the length read, -1 on error; the text is terminated. */
static ssize_t read_text(const char *path, char *text, size_t size)
{
	size_t done = 0;
	ssize_t n;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return -1;
	do {
		n = read(fd, text + done, size - 1 - done);
		if (n > 0)
			done += (size_t)n;
	} while (n > 0 && done < size - 1);
	close(fd);
	text[done] = '\0';
	return n < 0 ? -1 : (ssize_t)done;
}

void read_whole(const char *path)
{
	int fd = (int)MUST(open(path, O_RDONLY | O_CLOEXEC));
	char bytes[PAGE];

	while (MUST(read(fd, bytes, sizeof(bytes))))
		;
	close(fd);
}

bool write_text(const char *path, const char *text)
{
	ssize_t n, length = (ssize_t)strlen(text);
	int saved, fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return false;
	n = write(fd, text, (size_t)length);
	saved = errno;
	close(fd);
	errno = saved;
	return n == length;
}

long read_number(const char *path)
{
	char text[64];

	if (read_text(path, text, sizeof(text)) <= 0)
		return -1;
	return strtol(text, NULL, 0);
}

bool lazy(void)
{
	const char *mechanism = getenv("CEASEFIRE_TEST_MECHANISM");

	return mechanism && !strcmp(mechanism, "latr");
}

bool fpr_supported(void)
{
	return !access(SYSFS "enabled", R_OK);
}

long fpr_sysfs(const char *name)
{
	char path[128];

	snprintf(path, sizeof(path), SYSFS "%s", name);
	return read_number(path);
}

long latr_sysfs(const char *name)
{
	char path[128];

	snprintf(path, sizeof(path), LATR_SYSFS "%s", name);
	return read_number(path);
}

static bool try_set(const char *folder, const char *name, long value)
{
	char path[128], text[32];

	snprintf(path, sizeof(path), "%s%s", folder, name);
	snprintf(text, sizeof(text), "%ld", value);
	return write_text(path, text);
}

void fpr_set(const char *name, long value)
{
	ENSURE(try_set(SYSFS, name, value), "%s%s: cannot be set to %ld: %m",
	       SYSFS, name, value);
}

void latr_set(const char *name, long value)
{
	ENSURE(try_set(LATR_SYSFS, name, value), "%s%s: cannot be set to %ld: %m",
	       LATR_SYSFS, name, value);
}

#define HUGEPAGES	"/proc/sys/vm/nr_hugepages"

/* The word in brackets. */
static void read_chosen(const char *path, char *word, size_t size)
{
	char text[64] = "", *from, *to;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	word[0] = 0;
	if (fd < 0)
		return;
	if (read(fd, text, sizeof(text) - 1) < 0)
		text[0] = 0;
	close(fd);
	from = strchr(text, '[');
	to = from ? strchr(from, ']') : NULL;
	if (!to)
		return;
	*to = 0;
	snprintf(word, size, "%s", from + 1);
}

static bool latr_is_always(void)
{
	char text[64] = "";
	int fd = open(LATR_SYSFS "enabled", O_RDONLY | O_CLOEXEC);
	bool always = fd >= 0 && read(fd, text, sizeof(text) - 1) > 0 &&
		      strstr(text, "[always]");

	close(fd);
	return always;
}

void fpr_save_settings(struct fpr_settings *s)
{
	s->enabled = fpr_sysfs("enabled");
	s->pool_limit = fpr_sysfs("pool_limit");
	s->parked_limit = fpr_sysfs("parked_limit");
	s->stale_limit = fpr_sysfs("stale_limit");
	s->debt_age_ms = fpr_sysfs("debt_age_ms");
	s->evict = fpr_sysfs("evict");
	s->skip_local = read_number(DEBUGFS "skip_local");
	s->flush_delay_us = read_number(DEBUGFS "flush_delay_us");
	s->tag_delay_us = read_number(DEBUGFS "tag_delay_us");
	s->skip_delay_us = read_number(DEBUGFS "skip_delay_us");
	s->start_delay_us = read_number(DEBUGFS "start_delay_us");
	s->rewrite_delay_us = read_number(DEBUGFS "rewrite_delay_us");
	s->abis_classes = read_number(DEBUGFS "abis_classes");
	s->abis_flush_delay_us = read_number(DEBUGFS "abis_flush_delay_us");
	s->first_generation = read_number(DEBUGFS "first_generation");
	s->arena_size = read_number(DEBUGFS "arena_size");
	s->id_max = read_number(DEBUGFS "id_max");
	s->tickless_cpu = read_number(DEBUGFS "tickless_cpu");
	s->fill_delay_us = read_number(DEBUGFS "fill_delay_us");
	s->send_delay_us = read_number(DEBUGFS "send_delay_us");
	s->slots = read_number(DEBUGFS "slots");
	s->clean_delay_us = read_number(DEBUGFS "clean_delay_us");
	s->mark_delay_us = read_number(DEBUGFS "mark_delay_us");
	s->steal_delay_us = read_number(DEBUGFS "steal_delay_us");
	s->copy_delay_us = read_number(DEBUGFS "copy_delay_us");
	s->morsel_limit = read_number(MORSEL_SYSFS "limit");
	s->lazy_limit = read_number(MORSEL_SYSFS "lazy_limit");
	s->settle_ms = latr_sysfs("settle_ms");
	s->late_ms = latr_sysfs("late_ms");
	s->held_limit = latr_sysfs("held_limit");
	s->always = latr_is_always();
	read_chosen(SHARERS_SYSFS "enabled", s->sharers, sizeof(s->sharers));
	s->placement = read_number(SHARERS_SYSFS "placement");
	read_chosen(ABIS_SYSFS "enabled", s->abis, sizeof(s->abis));
	s->hugepages = read_number(HUGEPAGES);
}

void fpr_restore_settings(const struct fpr_settings *s)
{
	try_set(SYSFS, "enabled", s->enabled);
	try_set(SYSFS, "pool_limit", s->pool_limit);
	try_set(SYSFS, "parked_limit", s->parked_limit);
	try_set(SYSFS, "stale_limit", s->stale_limit);
	try_set(SYSFS, "debt_age_ms", s->debt_age_ms);
	try_set(SYSFS, "evict", s->evict);
	if (s->hugepages >= 0)
		try_set("", HUGEPAGES, s->hugepages);
	if (s->skip_local >= 0) {
		try_set(DEBUGFS, "skip_local", s->skip_local);
		try_set(DEBUGFS, "flush_delay_us", s->flush_delay_us);
		try_set(DEBUGFS, "tag_delay_us", s->tag_delay_us);
		try_set(DEBUGFS, "skip_delay_us", s->skip_delay_us);
		try_set(DEBUGFS, "start_delay_us", s->start_delay_us);
		try_set(DEBUGFS, "rewrite_delay_us", s->rewrite_delay_us);
		if (s->abis_classes > 0) {
			try_set(DEBUGFS, "abis_classes", s->abis_classes);
			try_set(DEBUGFS, "abis_flush_delay_us",
				s->abis_flush_delay_us);
		}
		try_set(DEBUGFS, "first_generation", s->first_generation);
		try_set(DEBUGFS, "arena_size", s->arena_size);
		try_set(DEBUGFS, "id_max", s->id_max);
		try_set(DEBUGFS, "tickless_cpu", s->tickless_cpu);
		if (s->fill_delay_us >= 0) {
			try_set(DEBUGFS, "fill_delay_us", s->fill_delay_us);
			try_set(DEBUGFS, "send_delay_us", s->send_delay_us);
			try_set(DEBUGFS, "slots", s->slots);
		}
		try_set(DEBUGFS, "fork_fails", 0);
		if (s->clean_delay_us >= 0)
			try_set(DEBUGFS, "clean_delay_us", s->clean_delay_us);
		if (s->mark_delay_us >= 0)
			try_set(DEBUGFS, "mark_delay_us", s->mark_delay_us);
		if (s->steal_delay_us >= 0)
			try_set(DEBUGFS, "steal_delay_us", s->steal_delay_us);
		if (s->copy_delay_us >= 0)
			try_set(DEBUGFS, "copy_delay_us", s->copy_delay_us);
	}
	if (s->morsel_limit >= 0)
		try_set(MORSEL_SYSFS, "limit", s->morsel_limit);
	if (s->lazy_limit >= 0)
		try_set(MORSEL_SYSFS, "lazy_limit", s->lazy_limit);
	if (s->settle_ms >= 0) {
		try_set(LATR_SYSFS, "settle_ms", s->settle_ms);
		try_set(LATR_SYSFS, "late_ms", s->late_ms);
		try_set(LATR_SYSFS, "held_limit", s->held_limit);
		write_text(LATR_SYSFS "enabled", s->always ? "always" : "ask");
	}
	if (s->sharers[0])
		write_text(SHARERS_SYSFS "enabled", s->sharers);
	if (s->placement >= 0)
		try_set(SHARERS_SYSFS, "placement", s->placement);
	if (s->abis[0]) {
		write_text(ABIS_SYSFS "enabled", s->abis);
		write_text(ABIS_SYSFS "sources", "uncached");
	}
}

bool fpr_wait_sysfs_at_most(const char *name, long value, unsigned int limit)
{
	double end = seconds() + limit;

	while (fpr_sysfs(name) > value) {
		if (seconds() > end)
			return false;
		sleep_ms(10);
	}
	return true;
}

static void debug_set(const char *name, long value)
{
	char path[128];

	snprintf(path, sizeof(path), DEBUGFS "%s", name);
	if (access(path, W_OK))
		ktap_skip("no %s: boot the debug kernel, mount debugfs", path);
	ENSURE(try_set(DEBUGFS, name, value), "%s: %m", path);
}

void fpr_skip_local(void)
{
	debug_set("skip_local", 1);
}

void fpr_arena_size(unsigned long bytes)
{
	debug_set("arena_size", (long)bytes);
}

void fpr_flush_delay(unsigned int ms)
{
	debug_set("flush_delay_us", 1000L * ms);
}

void fpr_tag_delay(unsigned int ms)
{
	debug_set("tag_delay_us", 1000L * ms);
}

void fpr_skip_delay(unsigned int ms)
{
	debug_set("skip_delay_us", 1000L * ms);
}

void abis_flush_delay(unsigned int ms)
{
	debug_set("abis_flush_delay_us", 1000L * ms);
}

void abis_classes(unsigned int number)
{
	debug_set("abis_classes", number);
}

void fpr_rewrite_delay(unsigned int ms)
{
	debug_set("rewrite_delay_us", 1000L * ms);
}

void fpr_start_delay(unsigned int ms)
{
	debug_set("start_delay_us", 1000L * ms);
}

void fpr_id_max(unsigned long id)
{
	debug_set("id_max", (long)id);
}

void sharers_fill_delay(unsigned int ms)
{
	debug_set("fill_delay_us", 1000L * ms);
}

void sharers_send_delay(unsigned int ms)
{
	debug_set("send_delay_us", 1000L * ms);
}

void sharers_slots(unsigned int count)
{
	debug_set("slots", count);
}

void next_fork_fails(void)
{
	debug_set("fork_fails", getpid());
}

void sharers_enable(const char *whom)
{
	if (!write_text(SHARERS_SYSFS "enabled", whom))
		ktap_skip("no sharers: %m");
}

void sharers_placement(bool on)
{
	if (!try_set(SHARERS_SYSFS, "placement", on))
		ktap_skip("no placement: %m");
}

void latr_tickless_cpu(int cpu)
{
	debug_set("tickless_cpu", cpu);
}

void fpr_first_generation(unsigned long generation)
{
	debug_set("first_generation", (long)generation);
}

static char *vmstat_text(void)
{
	static char text[32768];

	if (read_text("/proc/vmstat", text, sizeof(text)) <= 0)
		ktap_fail("no counters: %m");
	return text;
}

/* Is it the counter that is asked for by its name of fast page recycling? */
static bool is_counter(const char *counter, const char *name)
{
	static const char *const of_munmap[] = { "fpr_skip", "fpr_flush_" };
	size_t i;

	for (i = 0; lazy() && i < KTAP_COUNT(of_munmap); i++)
		if (!strncmp(name, of_munmap[i], strlen(of_munmap[i])))
			return !strncmp(counter, "latr_", 5) &&
			       !strcmp(counter + 5, name + 4);
	return !strcmp(counter, name);
}

void vmstat_read(const char *const names[], long values[], size_t count)
{
	char *line, *rest = vmstat_text();
	size_t i;

	for (i = 0; i < count; i++)
		values[i] = -1;
	while ((line = strsep(&rest, "\n"))) {
		char *space = strchr(line, ' ');

		if (!space)
			continue;
		*space = '\0';
		for (i = 0; i < count; i++)
			if (is_counter(line, names[i]))
				values[i] = strtol(space + 1, NULL, 10);
	}
	for (i = 0; i < count; i++)
		ENSURE(values[i] >= 0, "the kernel does not count %s",
		       names[i]);
}

long vmstat(const char *name)
{
	long value;

	vmstat_read(&name, &value, 1);
	return value;
}

long vmstat_sum(const char *prefix)
{
	char *line, *rest = vmstat_text();
	bool found = false;
	long sum = 0;

	while ((line = strsep(&rest, "\n"))) {
		char *space = strchr(line, ' ');

		if (!space || strncmp(line, prefix, strlen(prefix)))
			continue;
		found = true;
		sum += strtol(space, NULL, 10);
	}
	ENSURE(found, "the kernel does not count %s*", prefix);
	return sum;
}

bool wait_vmstat_above(const char *name, long value, unsigned int limit)
{
	double end = seconds() + limit;

	while (vmstat(name) <= value) {
		if (seconds() > end)
			return false;
		sleep_ms(10);
	}
	return true;
}

long read_kb(const char *path, const char *name)
{
	static char text[16384];
	char *line, *rest = text;
	size_t length = strlen(name);

	if (read_text(path, text, sizeof(text)) <= 0)
		return -1;
	while ((line = strsep(&rest, "\n")))
		if (!strncmp(line, name, length) && line[length] == ':')
			return strtol(line + length + 1, NULL, 10);
	return -1;
}

bool has_word(const char *path, const char *wanted)
{
	char line[8192], *word, *rest = line;
	bool found = false;
	FILE *f = fopen(path, "r");

	ENSURE(f, "%s: %m", path);
	while (!found && fgets(line, sizeof(line), f)) {
		for (rest = line; !found && (word = strsep(&rest, "\n "));)
			found = !strcmp(word, wanted);
	}
	fclose(f);
	return found;
}

bool smaps_has_flag(const void *addr, const char *code)
{
	char line[512], want[24], flag[8];
	bool inside = false, found = false;
	FILE *f = fopen("/proc/self/smaps", "re");

	ENSURE(f, "/proc/self/smaps: %m");
	snprintf(want, sizeof(want), "%lx-", (unsigned long)addr);
	snprintf(flag, sizeof(flag), " %s", code);
	while (fgets(line, sizeof(line), f)) {
		if (!strncmp(line, want, strlen(want)))
			inside = true;
		if (inside && !strncmp(line, "VmFlags:", 8)) {
			found = strstr(line, flag);
			break;
		}
	}
	fclose(f);
	return found;
}

bool find_mapping(const char *name, unsigned long *start, unsigned long *end)
{
	char line[512];
	bool found = false;
	FILE *f = fopen("/proc/self/maps", "re");

	ENSURE(f, "/proc/self/maps: %m");
	while (!found && fgets(line, sizeof(line), f))
		found = strstr(line, name) &&
			sscanf(line, "%lx-%lx", start, end) == 2;
	fclose(f);
	return found;
}

void leave_free(long mib)
{
	long spare = read_kb("/proc/meminfo", "MemFree") / 1024 - mib;
	long pages = read_number(HUGEPAGES) + spare / 2;
	char text[24];

	snprintf(text, sizeof(text), "%ld", pages > 0 ? pages : 0);
	ENSURE(write_text(HUGEPAGES, text), "%s: %m", HUGEPAGES);
}

void pin_to_cpu(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET((size_t)cpu, &set);
	MUST(sched_setaffinity(0, sizeof(set), &set));
}

int online_cpus(void)
{
	return (int)sysconf(_SC_NPROCESSORS_ONLN);
}

void need_cpus(int count)
{
	if (online_cpus() < count)
		ktap_skip("needs %d CPUs", count);
}

double seconds(void)
{
	struct timespec t;

	/* Not through the vdso: a case takes that away. */
	syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

double seconds_until_end(double usual)
{
	const char *text = getenv("CEASEFIRE_TEST_SECONDS");

	return seconds() + (text ? atof(text) : usual);
}

void sleep_ms(unsigned int ms)
{
	struct timespec t = {
		.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000,
	};

	while (nanosleep(&t, &t) && errno == EINTR)
		;
}

void abis_enable(const char *whom)
{
	if (access(ABIS_SYSFS "enabled", W_OK))
		ktap_skip("no " ABIS_SYSFS "enabled");
	ENSURE(write_text(ABIS_SYSFS "enabled", whom), "abis/enabled: %m");
}

void abis_sources(const char *sources)
{
	if (access(ABIS_SYSFS "sources", W_OK))
		ktap_skip("no " ABIS_SYSFS "sources");
	ENSURE(write_text(ABIS_SYSFS "sources", sources), "abis/sources: %m");
}
