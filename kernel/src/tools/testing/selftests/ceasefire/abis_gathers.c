// SPDX-License-Identifier: GPL-2.0
/*
 * Attacks on gathers beside each other (I11): one that finds what another one has cleared,
 * and not flushed for, does not return before it is flushed. Those that do not meet
 * leave each other alone.
 */
#define _GNU_SOURCE
#include <sys/mman.h>

#include "abis.h"
#include "env.h"
#include "file.h"
#include "ktap.h"
#include "map.h"
#include "peer.h"
#include "regions.h"
#include "worker.h"

#define PAGES		16
#define LENGTH		(PAGES * PAGE)
#define OWN		0x5a
#define COPIED		0xc0
/* Of what the other thread does, and until it is in the middle of that. */
#define DELAY_MS	2000
#define BEGUN_MS	500

static struct worker other;
static volatile bool busy;

static void drops(void *p)
{
	busy = true;
	MUST(madvise(p, LENGTH, MADV_DONTNEED));
	busy = false;
}

static void frees(void *p)
{
	busy = true;
	MUST(madvise(p, LENGTH, MADV_FREE));
	busy = false;
}

static void other_begins(void (*job)(void *arg), void *arg)
{
	worker_begin(&other, job, arg);
	sleep_ms(BEGUN_MS);
	/* It has read that, and is late. */
	abis_flush_delay(0);
}

/* It was in the middle of its call for as long as this thread was in its own. */
static void other_ends(void)
{
	PREMISE(busy, "the other thread was too fast");
	worker_end(&other);
}

static void begin(void)
{
	need_cpus(3);
	abis_start();
	worker_start(&other, 2, NULL);
}

static void drop(char *p)
{
	MUST(madvise(p, LENGTH, MADV_DONTNEED));
}

/* Two threads take the same pages away; who comes second finds nothing. */
static void both_at_once(void)
{
	char *p;

	begin();
	p = abis_written(PAGES, WORD(OWN));
	abis_flush_delay(DELAY_MS);
	other_begins(drops, p);
	drop(p);
	peer_finds(p, PAGES, 0);
	other_ends();
}

/* The same with a part of what the second one takes. */
static void partly(void)
{
	char *p;

	begin();
	p = abis_written(2 * PAGES, WORD(OWN));
	abis_flush_delay(DELAY_MS);
	other_begins(drops, p + LENGTH);
	MUST(madvise(p, 2 * LENGTH, MADV_DONTNEED));
	peer_finds(p, 2 * PAGES, 0);
	other_ends();
}

/* MADV_FREE has cleared the bits of pages that somebody takes away then. */
static void freed_partly(void)
{
	struct abis_flushes got;
	char *p;

	begin();
	p = abis_written(2 * PAGES, WORD(OWN));
	abis_flush_delay(DELAY_MS);
	other_begins(frees, p + LENGTH);
	got = abis_flushes();
	MUST(madvise(p, 2 * LENGTH, MADV_DONTNEED));
	got = abis_flushes_since(got);
	peer_finds(p, 2 * PAGES, 0);
	other_ends();
	ENSURE(got.pending >= PAGES, "%ld entries had a flush coming", got.pending);
}

/*
 * A page of a file that another thread has dropped comes back beside one that is touched, in
 * an entry that no CPU has. The peer has the one before it, until the other thread has flushed,
 * and must see what is written to the copy.
 */
static void copied(void)
{
	uint64_t frames[PAGES];
	struct tfile file;
	char *p;

	file_make(&file, ON_DISK, PAGES, OWN);
	begin();
	p = mmap(regions(1), LENGTH, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_FIXED, file.fd, 0);
	ENSURE(p != MAP_FAILED, "mmap: %m");
	abis_flush_delay(DELAY_MS);
	ENSURE(peer_count(p, PAGES, WORD(OWN)) == PAGES, "wrong data");
	other_begins(drops, p);
	ENSURE(p[LENGTH - 1] == OWN, "wrong data");
	frames_of(p, PAGES, frames);
	ENSURE(frames[0], "the first page is not mapped: nothing to look at");
	*(uint64_t *)p = WORD(COPIED);
	peer_finds(p, 1, WORD(COPIED));
	other_ends();
	file_close(&file);
}

/* They do not meet: what no CPU has is not flushed for because somebody else is busy. */
static void apart(void (*what)(void *arg))
{
	struct abis_flushes got;
	char *p;

	begin();
	p = abis_written(3 * PAGES, WORD(OWN));
	abis_settle();
	ENSURE(peer_write(p + 2 * LENGTH, PAGES, WORD(OWN)) == PAGES, "no write");
	abis_flush_delay(DELAY_MS);
	other_begins(what, p + 2 * LENGTH);
	got = abis_flushes();
	drop(p);
	got = abis_flushes_since(got);
	other_ends();
	peer_finds(p, PAGES, 0);
	ENSURE_ONCE(!got.pending && !got.received && got.uncached >= PAGES,
		    "%ld entries had a flush coming, %ld shootdowns, %ld in no TLB",
		    got.pending, got.received, got.uncached);
}

static void apart_dropped(void)
{
	apart(drops);
}

static void apart_freed(void)
{
	apart(frees);
}

int main(int argc, char **argv)
{
	static const struct ktap_case cases[] = {
		{ "both_at_once", both_at_once, 0 },
		{ "partly", partly, 0 },
		{ "freed_partly", freed_partly, 0 },
		{ "copied", copied, 0 },
		{ "apart_dropped", apart_dropped, 0 },
		{ "apart_freed", apart_freed, 0 },
	};

	return ktap_main(argc, argv, cases, KTAP_COUNT(cases));
}
