/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* config.h - what the environment asks of the preload library; see config.c. */
#ifndef CEASEFIRE_CONFIG_H
#define CEASEFIRE_CONFIG_H

#include "output.h"
#include "sandbox.h"
#include "stats.h"

#include <stdatomic.h>
#include <stdbool.h>

/* CEASEFIRE_VERBOSE */
enum verbosity {
	VERBOSE_QUIET = 0,
	VERBOSE_WARN = 1,	/* wrong settings, one line each */
	VERBOSE_START = 2,	/* one line at the start of each process */
	VERBOSE_MAPPINGS = 3,	/* one line for each mapping of a file */
};

/*
 * Written once, then read-only. Lists of patterns are strings one behind the
 * other with an empty one at the end.
 */
struct config {
	bool active;		/* files may be mapped with the flag */
	bool every_path;	/* no file need be looked up */
	bool watched;		/* mappings are counted or reported */
	size_t shared;		/* bytes from which shared memory is morsels; 0: never */
	enum verbosity verbose;
	const char *paths;
	const char *exclude;
	struct stats *stats;	/* NULL: not asked for */
	struct window *windows;	/* NULL: every mmap() goes through untouched */
	struct output_target output;
};

extern _Atomic(const struct config *) config_published
	__attribute__((visibility("hidden")));

const struct config *config_read(void);
void config_start(char **env);

/* The one configuration of this process, never NULL. */
static inline const struct config *config_get(void)
{
	/* Acquire: pairs with the release in config_read(). */
	const struct config *config =
		atomic_load_explicit(&config_published, memory_order_acquire);

	return __builtin_expect(config != NULL, 1) ? config : config_read();
}

bool list_matches(const char *list, const char *string);

#endif /* CEASEFIRE_CONFIG_H */
