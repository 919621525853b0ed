/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Mappings that threads of a process with sharers make (mm/ceasefire/sharers/place.c), and
 * how they lie to each other.
 */
#ifndef CEASEFIRE_SELFTEST_GRANULE_H
#define CEASEFIRE_SELFTEST_GRANULE_H

#include <stdbool.h>
#include <stddef.h>

#include "env.h"
#include "worker.h"

#define REGION		(2 * MIB)
#define GRANULE		(8 * MIB)
/* Of one thread, and of all. */
#define GRANULES_EACH	16
#define GRANULES	509

/* A mapping that a thread is to make. */
struct wish {
	void *hint;
	size_t len;
	int prot, flags, fd;
	char *got;
	int error;
};

/* The process has sharers from its second thread on, and placement is on. */
void placement_start(void);

/* For worker_run(). */
void map_wish(void *wish);
/* Private anonymous memory that a thread maps; the second one fails if it cannot. */
char *map_with(struct worker *w, void *hint, size_t len, int prot, int flags);
char *map_in(struct worker *w, size_t len);

size_t distance(const char *p, const char *q);
/* In one granule; those of different ones have most of a granule between them. */
bool is_near(const char *p, const char *q);
/* Do two mappings of this length share a region? */
bool share_region(const char *p, const char *q, size_t len);

#endif
