// SPDX-License-Identifier: GPL-2.0
/*
 * I2 with protection keys: the threads of a process differ in their rights, and
 * stale translations have the key of a mapping that is gone, or none. Without
 * keys (a processor, or a guest, that has none) all cases skip.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "checker.h"
#include "env.h"
#include "file.h"
#include "ktap.h"
#include "map.h"
#include "peer.h"
#include "userfault.h"

#define PAGES		64
#define OWN		0x5a
#define NEXT		0x42
#define EVIL		0x77

/* So few that mprotect() flushes their addresses one by one. */
#define FEW	16

/* One file to be parked and one, not in memory, to be read into its frames. */
static void start(struct tfile *f, struct tfile *g, size_t pages_of_g)
{
	file_make(f, ON_DISK, PAGES, OWN);
	file_make(g, ON_DISK, pages_of_g, NEXT);
	file_drop(g);
	peer_start(1);
	hold_debts();
}

/* A protection key that this thread holds and the peer does not. */
static int new_key(void)
{
	int key = pkey_alloc(0, 0);

	if (key < 0)
		ktap_skip("no protection keys: %s", strerror(errno));
	return key;
}

/*
 * The pages of a mapping with a protection key are for threads that hold it.
 * The peer does not, but its stale translations have no key. A mapping keeps a
 * key that is freed.
 */
static void with_key(bool freed)
{
	struct tfile f, g;
	long recycles;
	char *p, *q;
	int key;

	start(&f, &g, FEW);
	key = new_key();
	q = fpr_map(&g, 0, FEW, PROT_READ, MAP_SHARED);
	MUST(pkey_mprotect(q, FEW * PAGE, PROT_READ, key));
	if (freed)
		MUST(pkey_free(key));
	p = park_stale(&f, PAGES, OWN);
	recycles = vmstat("fpr_recycle");
	ENSURE(probe_read(q) == WORD(NEXT), "wrong data");
	recycles = vmstat("fpr_recycle") - recycles;
	ENSURE(!peer_count(p, PAGES, WORD(NEXT)),
	       "pages with a key are readable without it");
	ENSURE(peer_count(q, FEW, FAULTED) == FEW, "the peer holds the key");
	ENSURE(!recycles, "a mapping with a key got %ld recycled frames",
	       recycles);
}

static void protection_key(void)
{
	with_key(false);
}

static void freed_key(void)
{
	with_key(true);
}

/*
 * Reading ahead does not stop at the end of the mapping, and behind it pages
 * may have a key: also those of a mapping that has nothing to do with FPR.
 */
static void key_beside(void)
{
	struct tfile f, g;
	long recycles;
	char *p, *q, *v;
	int key;

	start(&f, &g, 2 * FEW);
	key = new_key();
	v = mmap(NULL, FEW * PAGE, PROT_READ, MAP_SHARED, g.fd, FEW * PAGE);
	ENSURE(v != MAP_FAILED, "mmap: %m");
	/* Before the process uses FPR. */
	MUST(pkey_mprotect(v, FEW * PAGE, PROT_READ, key));
	q = fpr_map(&g, 0, FEW, PROT_READ, MAP_SHARED);
	p = park_stale(&f, PAGES, OWN);
	recycles = vmstat("fpr_recycle");
	ENSURE(probe_read(q) == WORD(NEXT), "wrong data");
	ENSURE(probe_read(v) == WORD(NEXT), "wrong data");
	recycles = vmstat("fpr_recycle") - recycles;
	ENSURE(!peer_count(p, PAGES, WORD(NEXT)),
	       "pages with a key are readable without it");
	ENSURE(!recycles, "a process with a key recycled %ld frames", recycles);
}

/* Execute-only memory, which gets its key from mmap(). */
static char *map_to_execute(const struct tfile *f, size_t first)
{
	char *v = mmap(NULL, FEW * PAGE, PROT_EXEC, MAP_SHARED, f->fd,
		       (off_t)(first * PAGE));

	ENSURE(v != MAP_FAILED, "mmap: %m");
	if (probe_read(v) != FAULTED)
		ktap_skip("no protection keys: what can be executed can be read");
	return v;
}

/* Its pages are read ahead into frames that the peer reads. */
static void executed_key_beside(void)
{
	struct tfile f, g;
	long recycles;
	char *p, *q;

	start(&f, &g, 2 * FEW);
	p = park_stale(&f, PAGES, OWN);
	map_to_execute(&g, FEW);
	/* What was parked before is clean now. */
	p = park_stale(&f, PAGES, OWN);
	recycles = vmstat("fpr_recycle");
	q = fpr_map(&g, 0, FEW, PROT_READ, MAP_SHARED);
	ENSURE(probe_read(q) == WORD(NEXT), "wrong data");
	recycles = vmstat("fpr_recycle") - recycles;
	ENSURE(!peer_count(p, PAGES, WORD(NEXT)),
	       "pages that are only to be executed are readable");
	ENSURE(!recycles, "a process with a key recycled %ld frames", recycles);
}

/* Its pages are in such frames already. */
static void executed_key_later(void)
{
	struct tfile f, g;
	size_t reached;
	char *p, *q;

	start(&f, &g, FEW);
	p = park_stale(&f, PAGES, OWN);
	q = fpr_map(&g, 0, FEW, PROT_READ, MAP_SHARED);
	ENSURE(probe_read(q) == WORD(NEXT), "wrong data");
	reached = peer_count(p, PAGES, WORD(NEXT));
	ENSURE(reached, "no recycled frame is reached: nothing to attack");
	map_to_execute(&g, 0);
	checker_forbid(p, PAGES);
	reached = peer_count(p, PAGES, WORD(NEXT));
	ENSURE(!reached, "%zu pages that are only to be executed are readable",
	       reached);
}

/* A key can be given out anew before the flush. */
static void key_flushes(void)
{
	struct tfile f;
	char *p;
	int key;

	file_make(&f, ON_DISK, FEW, OWN);
	peer_start(1);
	key = new_key();
	p = fpr_map(&f, 0, FEW, PROT_READ, MAP_SHARED);
	MUST(pkey_mprotect(p, FEW * PAGE, PROT_READ, key));
	ENSURE(probe_read(p) == WORD(OWN), "wrong data");
	fpr_unmap_flushes(p, FEW);
}

/* Pages that were moved to plain memory, which then gets a key. */
static void moved_key(void)
{
	size_t writes;
	char *p, *r;
	int key;

	pin_to_cpu(0);
	peer_start(1);
	hold_debts();
	key = new_key();
	p = leave_writable(NULL, PAGES, WORD(NEXT));
	r = move_recycled(p, PAGES, FEW, OWN);
	MUST(pkey_mprotect(r, FEW * PAGE, PROT_READ | PROT_WRITE, key));
	checker_forbid(p, PAGES);
	writes = peer_write(p, PAGES, WORD(EVIL));
	for (key = 0; key < FEW; key++)
		ENSURE(probe_read(r + key * PAGE) == WORD(OWN),
		       "a page with a key was written without it");
	ENSURE(!writes, "%zu stale translations write after pkey_mprotect",
	       writes);
}

int main(int argc, char **argv)
{
	static const struct ktap_case cases[] = {
		{ "protection_key", protection_key, 0 },
		{ "freed_key", freed_key, 0 },
		{ "key_beside", key_beside, 0 },
		{ "executed_key_beside", executed_key_beside, 0 },
		{ "executed_key_later", executed_key_later, 0 },
		{ "key_flushes", key_flushes, 0 },
		{ "moved_key", moved_key, 0 },
	};

	return ktap_main(argc, argv, cases, KTAP_COUNT(cases));
}
