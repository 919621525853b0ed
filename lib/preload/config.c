// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * config.c - read CEASEFIRE_* once, safely, however early
 *
 * What: turns the environment into a read-only struct config.
 * Who:  mmap.c, from its constructor or from the first mmap() before that.
 *
 * The reader may be two threads at once, a signal handler inside another
 * reader, or a child forked off in the middle. So there is no lock and no
 * "being initialised" state: each reader builds a whole copy in fresh memory
 * and publishes it with one compare-and-exchange; who comes second throws his
 * own away. The copy holds its own strings: programs that set their process
 * title write over the environment.
 */
#include "config.h"
#include "glob.h"
#include "rawsys.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

#define KERNEL_MM "/sys/kernel/mm"
#define KERNEL_FPR KERNEL_MM "/ceasefire/fpr"
#define PREFIX "CEASEFIRE_"

extern char **environ;

static const struct config idle;
_Atomic(const struct config *) config_published;

/* Variables of this library, and those of the tools, which are not ours. */
static const char *const known[] = {
	"PATHS", "EXCLUDE", "EXE", "VERBOSE", "STATS", "DISABLE", "SHARED_TABLES",
	"BUILD", "JOBS", "SOURCE",
};

/* The settings as they stand in the environment. */
struct settings {
	const char *paths;
	const char *exclude;
	const char *exe;
	const char *verbose;
	const char *stats;
	const char *disable;
	const char *shared;
};

/* Of @env, NULL when it is empty: the C library may not have started yet. */
static const char *get(char **env, const char *name)
{
	size_t length = strlen(name);

	for (; *env; env++) {
		if (strncmp(*env, name, length) == 0 && (*env)[length] == '=')
			return (*env)[length + 1] ? *env + length + 1 : NULL;
	}
	return NULL;
}

static bool is_one(const char *value)
{
	return value && value[0] == '1' && !value[1];
}

static bool is_switch(const char *value)
{
	return !value || ((value[0] == '0' || value[0] == '1') && !value[1]);
}

/* Bytes, in decimal digits; 0: no such number. */
static size_t bytes_of(const char *value)
{
	size_t bytes = 0;

	for (; value && *value >= '0' && *value <= '9'; value++) {
		if (bytes > SIZE_MAX / 10 - 9)
			return 0;
		bytes = bytes * 10 + (size_t)(*value - '0');
	}
	return value && !*value ? bytes : 0;
}

bool list_matches(const char *list, const char *string)
{
	for (; *list; list += strlen(list) + 1) {
		if (glob_matches(list, string))
			return true;
	}
	return false;
}

/*
 * CEASEFIRE_EXE: a pattern with a `/` is about the whole path, another one
 * about the last component.
 */
static bool list_matches_exe(const char *list, const char *path)
{
	const char *name = strrchr(path, '/');

	name = name ? name + 1 : path;
	for (; *list; list += strlen(list) + 1) {
		if (glob_matches(list, strchr(list, '/') ? path : name))
			return true;
	}
	return false;
}

/*
 * Copy "a:b\:c" to @to as "a" "b\:c" "": the matcher knows the backslash.
 * Needs at most strlen(value) + 2 bytes. Returns the end.
 */
static char *split(char *to, const char *value)
{
	const char *start = to;

	for (; value && *value; value++) {
		if (*value == ':') {
			if (to != start)
				*to++ = '\0';
			start = to;
			continue;
		}
		if (*value == '\\' && value[1])
			*to++ = *value++;
		*to++ = *value;
	}
	if (to != start)
		*to++ = '\0';
	*to++ = '\0';
	return to;
}

static void warn(const struct config *config, const char *what,
		 const char *value, size_t length)
{
	struct line line;

	if (config->verbose < VERBOSE_WARN)
		return;
	line_start(&line);
	line_text(&line, what);
	line_name(&line, value, length);
	line_send(&line, &config->output);
}

static void warn_about_unknown(const struct config *config, char **env)
{
	for (char **entry = env; *entry; entry++) {
		const char *name = *entry + strlen(PREFIX);
		size_t length, i;

		if (strncmp(*entry, PREFIX, strlen(PREFIX)) != 0)
			continue;
		length = strcspn(name, "=");
		for (i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
			if (strlen(known[i]) == length &&
			    strncmp(name, known[i], length) == 0)
				break;
		}
		/* What the tests of the project use among themselves. */
		if (i < sizeof(known) / sizeof(known[0]) ||
		    strncmp(name, "TEST_", strlen("TEST_")) == 0)
			continue;
		warn(config, "unknown setting, see libceasefire-preload(7): ",
		     *entry, strlen(PREFIX) + length);
		return;
	}
}

static void warn_about_values(const struct config *config,
			      const struct settings *env)
{
	const char *list;

	if (env->verbose && (env->verbose[0] < '0' || env->verbose[0] > '3' ||
			     env->verbose[1]))
		warn(config, "CEASEFIRE_VERBOSE is 0, 1, 2 or 3, not ",
		     env->verbose, strlen(env->verbose));
	if (!is_switch(env->stats))
		warn(config, "CEASEFIRE_STATS is 0 or 1, not ", env->stats,
		     strlen(env->stats));
	if (!is_switch(env->disable))
		warn(config, "CEASEFIRE_DISABLE is 0 or 1, not ", env->disable,
		     strlen(env->disable));
	if (env->shared && !config->shared)
		warn(config, "CEASEFIRE_SHARED_TABLES is a number of bytes, not ",
		     env->shared, strlen(env->shared));
	for (list = config->paths; *list; list += strlen(list) + 1) {
		if (!strchr("/*?[\\", list[0]))
			warn(config,
			     "matches no file, paths begin with /: CEASEFIRE_PATHS=",
			     list, strlen(list));
	}
}

/* Nobody there to ask (no /sys): the flag is a hint, giving it is harmless. */
static bool kernel_may_have_fpr(void)
{
	return raw_access(KERNEL_FPR, F_OK) == 0 ||
	       raw_access(KERNEL_MM, F_OK) != 0;
}

static bool exe_wanted(const struct settings *env, char *scratch, size_t size)
{
	char *list = scratch;
	char *path;
	long length;

	if (!env->exe)
		return true;
	path = split(list, env->exe);
	size -= (size_t)(path - list);
	length = raw_readlink("/proc/self/exe", path, size - 1);
	if (length < 0)
		return false;
	path[length] = '\0';
	return list_matches_exe(list, path);
}

static void say_start(const struct config *config, const struct settings *env)
{
	struct line line;

	if (config->verbose < VERBOSE_START)
		return;
	line_start(&line);
	if (config->active) {
		line_text(&line, "MAP_FPR for files that match ");
		line_name(&line, env->paths, strlen(env->paths));
	} else if (config->windows) {
		line_text(&line, "shared memory is morsels, where the kernel has them");
	} else if (!env->paths) {
		line_text(&line, "does nothing: ");
		line_text(&line, is_one(env->disable) ? "CEASEFIRE_DISABLE=1" :
			  config->shared ? "CEASEFIRE_EXE does not match" :
			  "CEASEFIRE_SHARED_TABLES is no number");
	} else {
		line_text(&line, "does nothing: ");
		line_text(&line, is_one(env->disable) ? "CEASEFIRE_DISABLE=1" :
			  kernel_may_have_fpr() ?
			  "CEASEFIRE_EXE does not match" :
			  "this kernel has no FPR");
	}
	line_send(&line, &config->output);
}

/*
 * Memory that fork() hands to the child as zeros: each process reports its own
 * mappings, and the other threads of the parent are not in the child.
 */
static void *new_counters(size_t size)
{
	long page = raw_mmap(NULL, size, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (RAW_IS_ERROR(page))
		return NULL;
	raw_madvise((void *)page, size, MADV_WIPEONFORK);
	return (void *)page;
}

static const struct config *build(const struct settings *env, size_t *size)
{
	size_t strings = (env->paths ? strlen(env->paths) : 0) + 2;
	bool wanted = !is_one(env->disable);
	struct config *config;
	char *end;
	long block;

	/* Room for a path behind the lists, to look up the executable. */
	strings += (env->exclude ? strlen(env->exclude) : 0) + 2;
	strings += (env->exe ? strlen(env->exe) : 0) + 2;
	*size = sizeof(*config) + strings + 4096;
	block = raw_mmap(NULL, *size, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (RAW_IS_ERROR(block))
		return NULL;

	config = (struct config *)block;
	output_remember(&config->output);
	config->verbose = VERBOSE_WARN;
	if (env->verbose && env->verbose[0] >= '0' && env->verbose[0] <= '3')
		config->verbose = (enum verbosity)(env->verbose[0] - '0');

	config->paths = (char *)(config + 1);
	config->exclude = split((char *)(config + 1), env->paths);
	end = split((char *)(uintptr_t)config->exclude, env->exclude);
	config->shared = bytes_of(env->shared);
	wanted = wanted && exe_wanted(env, end, *size - (size_t)(end - (char *)config));
	config->active = wanted && env->paths && kernel_may_have_fpr();
	if (!*config->exclude) {
		for (const char *p = config->paths; *p; p += strlen(p) + 1)
			config->every_path |= glob_matches_everything(p);
	}
	if (config->active || (wanted && config->shared))
		config->windows = new_counters(WINDOWS_SIZE);
	config->active = config->active && config->windows;
	if (config->active && is_one(env->stats))
		config->stats = new_counters(sizeof(struct stats));
	config->watched = config->active &&
			  (config->stats || config->verbose >= VERBOSE_MAPPINGS);
	return config;
}

static const struct config *read_from(char **env)
{
	const struct config *config = NULL, *winner = NULL;
	struct settings set = {
		.paths = get(env, "CEASEFIRE_PATHS"),
		.exclude = get(env, "CEASEFIRE_EXCLUDE"),
		.exe = get(env, "CEASEFIRE_EXE"),
		.verbose = get(env, "CEASEFIRE_VERBOSE"),
		.stats = get(env, "CEASEFIRE_STATS"),
		.disable = get(env, "CEASEFIRE_DISABLE"),
		.shared = get(env, "CEASEFIRE_SHARED_TABLES"),
	};
	size_t size;

	if ((set.paths || set.shared) && !getauxval(AT_SECURE) && !sandbox_ahead() &&
	    !sandbox_inherited())
		config = build(&set, &size);

	/* Release: pairs with the acquire in config_get(). */
	if (!atomic_compare_exchange_strong_explicit(&config_published, &winner,
						     config ? config : &idle,
						     memory_order_acq_rel,
						     memory_order_acquire)) {
		if (config && config->stats)
			raw_munmap(config->stats, sizeof(struct stats));
		if (config && config->windows)
			raw_munmap(config->windows, WINDOWS_SIZE);
		if (config)
			raw_munmap((void *)(uintptr_t)config, size);
		return winner;
	}
	if (!config)
		return &idle;
	if (!is_one(set.disable)) {
		warn_about_unknown(config, env);
		warn_about_values(config, &set);
	}
	say_start(config, &set);
	raw_mprotect((void *)(uintptr_t)config, size, PROT_READ);
	return config;
}

/* The slow path of config_get(). Before the C library has started: decide later. */
const struct config *config_read(void)
{
	return environ ? read_from(environ) : &idle;
}

/* At the start of the program, with the environment that it was given. */
void config_start(char **env)
{
	if (!atomic_load_explicit(&config_published, memory_order_acquire))
		read_from(env);
}
