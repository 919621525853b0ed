// SPDX-License-Identifier: GPL-2.0
/*
 * Attacks on what a morsel has given up to its copies (M12): who could read a page may go on
 * reading it by a reference, and must not see what another morsel writes from then on.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include "env.h"
#include "ktap.h"
#include "map.h"
#include "morsels.h"
#include "peer.h"

#define BOTH	(PROT_READ | PROT_WRITE)
#define OWN	WORD(0x5a)
#define OTHER	WORD(0x33)
#define PAGES	8

/* A copy with a unit, of which a page is in a pipe. */
struct left {
	int origin, copy;
	char *p, *q;
	int pipe[2];
};

static void begin(struct left *l, uint64_t unit)
{
	struct iovec page;

	l->origin = morsel_make_of(unit, unit);
	l->p = morsel_map(l->origin, unit, BOTH);
	morsel_fill(l->p, PAGES, OWN);
	l->copy = morsel_copy(l->origin);
	l->q = morsel_map(l->copy, unit, BOTH);
	MUST(pipe(l->pipe));
	page = (struct iovec){ .iov_base = l->q, .iov_len = PAGE };
	ENSURE(MUST(vmsplice(l->pipe[1], &page, 1, 0)) == (long)PAGE, "vmsplice");
}

/* The origin writes, and what is in the pipe stays as it was. */
static void check(struct left *l, uint64_t unit)
{
	uint64_t words[PAGE / sizeof(uint64_t)];

	morsel_fill(l->p, PAGES, OTHER);
	ENSURE(morsel_count(l->p, PAGES, OTHER) == PAGES,
	       "the origin has lost a write");
	ENSURE(MUST(read(l->pipe[0], words, sizeof(words))) == sizeof(words),
	       "the pipe has less");
	ENSURE(words[0] == OWN, "who had the copy reads what the origin wrote: %llx",
	       (unsigned long long)words[0]);
	close(l->pipe[0]);
	close(l->pipe[1]);
	MUST(munmap(l->p, unit));
	close(l->origin);
}

static void end_copy(struct left *l, uint64_t unit)
{
	MUST(munmap(l->q, unit));
	close(l->copy);
}

/* The copy is depopulated: tables are given up where units are large, else pages. */
static void depopulated(void)
{
	const uint64_t *units = morsel_units;
	struct left l;
	size_t i;

	for (i = 0; i < morsel_nr_units(); i++) {
		begin(&l, units[i]);
		ENSURE(!morsel_depopulate(l.copy, 0, UNIT), "depopulate");
		check(&l, units[i]);
		end_copy(&l, units[i]);
	}
}

/* It goes. */
static void gone(void)
{
	static const uint64_t units[] = { UNIT, GIB };
	struct left l;
	size_t i;

	for (i = 0; i < 2; i++) {
		begin(&l, units[i]);
		end_copy(&l, units[i]);
		check(&l, units[i]);
	}
}

/* It writes, and has a page of its own from then on. */
static void written(void)
{
	static const uint64_t units[] = { UNIT, GIB };
	struct left l;
	size_t i;

	for (i = 0; i < 2; i++) {
		begin(&l, units[i]);
		morsel_fill(l.q, PAGES, WORD(1));
		check(&l, units[i]);
		ENSURE(morsel_count(l.q, PAGES, WORD(1)) == PAGES,
		       "the copy has lost a write");
		end_copy(&l, units[i]);
	}
}

/* Nobody has a reference: the origin goes on with its pages, and copies none. */
static void not_held(void)
{
	static const uint64_t units[] = { UNIT, GIB };
	struct left l;
	size_t i;

	for (i = 0; i < 2; i++) {
		char byte[PAGE];
		long copies;

		begin(&l, units[i]);
		MUST(read(l.pipe[0], byte, sizeof(byte)));
		end_copy(&l, units[i]);
		copies = vmstat("morsel_copy_page");
		morsel_fill(l.p, PAGES, OTHER);
		copies = vmstat("morsel_copy_page") - copies;
		ENSURE(!copies, "%ld pages were copied that nobody else has", copies);
		MUST(munmap(l.p, units[i]));
		close(l.origin);
	}
}

int main(int argc, char **argv)
{
	static const struct ktap_case cases[] = {
		{ "depopulated", depopulated, 0 },
		{ "gone", gone, 0 },
		{ "written", written, 0 },
		{ "not_held", not_held, 0 },
	};

	return ktap_main(argc, argv, cases, KTAP_COUNT(cases));
}
