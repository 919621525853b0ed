// SPDX-License-Identifier: GPL-2.0
/*
 * Sharers: CPUs for which there is no copy, as where a process is on more of them than a
 * mask has bits. They go on with the tables of the process, and each flush is for them,
 * too (I11). Here there is one copy, that of the first CPU.
 */
#define _GNU_SOURCE
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "env.h"
#include "file.h"
#include "ktap.h"
#include "peer.h"
#include "regions.h"

#define PAGES		16
#define LENGTH		(PAGES * PAGE)
#define OWN		0x5a
#define NEW		0x42
#define ROUNDS		20
/* A tick asks for a copy, and the next one takes it. */
#define LIMIT_S		20

/*
 * CPU 1 must not be one that has this process loaded already: of those everybody knows
 * from the start that they have no copy.
 */
static void let_go_of(void)
{
	pid_t child;

	need_cpus(2);
	pin_to_cpu(0);
	child = (pid_t)MUST(fork());
	if (!child) {
		pin_to_cpu(1);
		_exit(0);
	}
	MUST(waitpid(child, NULL, 0));
}

/* Each CPU fills its own; the kernel counts that. */
static bool has_copy(const char *p)
{
	long fills = vmstat("sharers_fill");

	peer_finds(p, PAGES, WORD(OWN));
	return vmstat("sharers_fill") > fills;
}

/* Nobody but this CPU has used it. */
static char *own_region(void)
{
	char *p = regions(1);

	memset(p, OWN, LENGTH);
	return p;
}

static void start(void)
{
	let_go_of();
	sharers_slots(1);
	sharers_start();
	/* What else is used here for the first time fills, too. */
	has_copy(own_region());
}

/* What this CPU has written, and the peer has read. */
static char *used(void)
{
	char *p = own_region();

	ENSURE(!has_copy(p), "the peer has a copy");
	ENSURE(peer_write(p, PAGES, WORD(OWN)) == PAGES, "no write");
	return p;
}

static void dontneed(void)
{
	char *p;

	start();
	p = used();
	MUST(madvise(p, LENGTH, MADV_DONTNEED));
	peer_finds(p, PAGES, 0);
}

static void protected(void)
{
	char *p;

	start();
	p = used();
	MUST(mprotect(p, LENGTH, PROT_READ));
	peer_cannot_write(p, PAGES, WORD(NEW));
	peer_finds(p, PAGES, WORD(OWN));
}

/* With its table, and something else where it was. */
static void unmapped(void)
{
	char *p;
	int i;

	start();
	for (i = 0; i < ROUNDS; i++) {
		p = used();
		MUST(munmap(p, REGION));
		peer_finds(p, PAGES, FAULTED);
		ENSURE(mmap(p, LENGTH, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == p,
		       "mmap: %m");
		memset(p, NEW, LENGTH);
		peer_finds(p, PAGES, WORD(NEW));
	}
}

/* What reclaim puts off is for such a CPU, too. */
static void by_batch(void)
{
	struct tfile file;
	long deferred;
	char *p;
	int i;

	file_make(&file, ON_DISK, PAGES, OWN);
	start();
	p = mmap(regions(1), LENGTH, PROT_READ, MAP_SHARED | MAP_FIXED, file.fd,
		 0);
	ENSURE(p != MAP_FAILED, "mmap: %m");
	deferred = vmstat("sharers_defer");
	for (i = 0; i < 4; i++) {
		file_fill(&file, 0, PAGES, i % 2 ? NEW : OWN);
		peer_finds(p, PAGES, WORD(i % 2 ? NEW : OWN));
		/* Pages that the peer has read in wait in a list of its CPU. */
		ENSURE(write_text("/proc/sys/vm/drop_caches", "1"),
		       "drop_caches: %m");
		peer_finds(p, PAGES, WORD(i % 2 ? NEW : OWN));
		MUST(madvise(p, LENGTH, MADV_PAGEOUT));
		/* A frame that is free is poisoned; before anything else runs there. */
		peer_finds(p, PAGES, WORD(i % 2 ? NEW : OWN));
	}
	PREMISE(vmstat("sharers_defer") >= deferred + 2 * PAGES,
		"reclaim has not taken the pages");
}

/* A CPU in lazy mode has no number that says what it was asked for. */
static void asleep(void)
{
	long fills;
	char *p;
	int i;

	let_go_of();
	sharers_slots(1);
	sleeper_start();
	p = own_region();
	sleeper_finds(p, WORD(OWN));
	p = own_region();
	vmstat("sharers_fill");
	fills = vmstat("sharers_fill");
	sleeper_finds(p, WORD(OWN));
	ENSURE(vmstat("sharers_fill") == fills, "the sleeper has a copy");
	for (i = 0; i < ROUNDS; i++) {
		memset(p, OWN, PAGE);
		sleeper_finds(p, WORD(OWN));
		MUST(madvise(p, PAGE, MADV_DONTNEED));
		sleeper_finds(p, 0);
	}
}

/* There is a copy after all: it takes that, and is asked for what it uses only. */
static void gets_one(void)
{
	long received;
	double end;
	char *p, *own;
	int i;

	start();
	p = used();
	sharers_slots(2);
	end = seconds() + LIMIT_S;
	do {
		ENSURE(seconds() < end, "the peer has no copy after %d s", LIMIT_S);
		MUST(munmap(p, LENGTH));
		p = own_region();
	} while (!has_copy(p));
	MUST(madvise(p, LENGTH, MADV_DONTNEED));
	peer_finds(p, PAGES, 0);
	own = regions(1);
	received = vmstat("nr_tlb_remote_flush_received");
	for (i = 0; i < ROUNDS * 10; i++) {
		*(volatile char *)own = NEW;
		MUST(madvise(own, PAGE, MADV_DONTNEED));
	}
	received = vmstat("nr_tlb_remote_flush_received") - received;
	ENSURE(received < ROUNDS, "%ld shootdowns by %d calls", received,
	       ROUNDS * 10);
}

int main(int argc, char **argv)
{
	static const struct ktap_case cases[] = {
		{ "dontneed", dontneed, 0 },
		{ "protected", protected, 0 },
		{ "unmapped", unmapped, 0 },
		{ "by_batch", by_batch, 0 },
		{ "asleep", asleep, 0 },
		{ "gets_one", gets_one, 0 },
	};

	return ktap_main(argc, argv, cases, KTAP_COUNT(cases));
}
