// SPDX-License-Identifier: GPL-2.0
/* See granule.h. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdint.h>
#include <sys/mman.h>

#include "context.h"
#include "granule.h"
#include "ktap.h"

void placement_start(void)
{
	if (context_sharers(1))
		ktap_skip("prctl(PR_SHARERS): %m");
	sharers_placement(true);
	pin_to_cpu(0);
}

void map_wish(void *arg)
{
	struct wish *m = arg;

	m->got = mmap(m->hint, m->len, m->prot, m->flags, m->fd, 0);
	m->error = errno;
}

char *map_with(struct worker *w, void *hint, size_t len, int prot, int flags)
{
	struct wish m = {
		.hint = hint, .len = len, .prot = prot, .fd = -1,
		.flags = MAP_PRIVATE | MAP_ANONYMOUS | flags,
	};

	worker_run(w, map_wish, &m);
	errno = m.error;
	return m.got;
}

char *map_in(struct worker *w, size_t len)
{
	char *p = map_with(w, NULL, len, PROT_READ | PROT_WRITE, 0);

	ENSURE(p != MAP_FAILED, "mmap: %m");
	return p;
}

static uint64_t region_of(const void *p)
{
	return (uintptr_t)p / REGION;
}

bool share_region(const char *p, const char *q, size_t len)
{
	return region_of(p) <= region_of(q + len - 1) &&
	       region_of(q) <= region_of(p + len - 1);
}

size_t distance(const char *p, const char *q)
{
	return p > q ? (size_t)(p - q) : (size_t)(q - p);
}

bool is_near(const char *p, const char *q)
{
	return distance(p, q) < GRANULE / 2;
}
