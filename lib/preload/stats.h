/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* stats.h - what happened to the mappings of files, for CEASEFIRE_STATS; see stats.c. */
#ifndef CEASEFIRE_STATS_H
#define CEASEFIRE_STATS_H

#include "output.h"

#include <stdatomic.h>

struct stats {
	atomic_ulong added;	/* the kernel was given the flag */
	atomic_ulong other_path; /* not in CEASEFIRE_PATHS, or excluded */
	atomic_ulong unsuitable; /* fixed address, huge pages, own flag, ... */
	atomic_ulong failed;	/* the mapping failed, with or without it */
};

void stats_say(struct stats *stats, const struct output_target *target);

#endif /* CEASEFIRE_STATS_H */
