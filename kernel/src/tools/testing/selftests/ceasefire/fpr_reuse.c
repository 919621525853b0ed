// SPDX-License-Identifier: GPL-2.0
/*
 * I3: an address at which the peer still holds a stale translation is not
 * given out again before that is settled, by no path. Each case puts something
 * new there in another way; the peer must see the new thing.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "checker.h"
#include "env.h"
#include "file.h"
#include "ktap.h"
#include "map.h"
#include "peer.h"

#define PAGES		16
#define LENGTH		(PAGES * PAGE)
#define OWN		0x5a
#define NEW		0x42

#define ELSEWHERE	1000

#define ARCH_MAP_VDSO_64	0x2003

/* Leave stale translations for @pages pages; returns where. */
static char *stale_at(size_t pages)
{
	static struct tfile f;

	file_make(&f, ON_TMPFS, pages, OWN);
	peer_start(1);
	hold_debts();
	return leave_stale(&f, 0, pages, PROT_READ, MAP_SHARED, OWN);
}

/* The peer must read @byte in the @pages pages that are mapped at @p now. */
static void expect(const char *p, size_t pages, unsigned char byte)
{
	size_t old, new;

	checker_forbid(p, pages);
	old = peer_count(p, pages, WORD(OWN));
	new = peer_count(p, pages, WORD(byte));
	checker_allow(p, pages);
	ENSURE(!old, "the peer reads the unmapped file in %zu of %zu pages",
	       old, pages);
	ENSURE(new == pages, "the peer reads the new memory in %zu of %zu pages",
	       new, pages);
}

static char *map_new(void *at, int flags)
{
	char *p = mmap(at, LENGTH, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);

	ENSURE(p != MAP_FAILED, "mmap: %m");
	return p;
}

static void over_hole(int flags)
{
	char *p = stale_at(PAGES);
	char *q = map_new(p, flags);

	ENSURE(q == p, "the hint was not taken");
	memset(q, NEW, LENGTH);
	expect(q, PAGES, NEW);
}

static void fixed(void)
{
	over_hole(MAP_FIXED);
}

static void fixed_noreplace(void)
{
	over_hole(MAP_FIXED_NOREPLACE);
}

static void hint(void)
{
	over_hole(0);
}

/* A file mapping with the flag, forced on the hole. */
static void fixed_fpr(void)
{
	char *p = stale_at(PAGES);
	struct tfile f;
	char *q;

	file_make(&f, ON_TMPFS, PAGES, NEW);
	q = mmap(p, LENGTH, PROT_READ, MAP_SHARED | MAP_FIXED | MAP_FPR, f.fd,
		 0);
	ENSURE(q == p, "mmap: %m");
	expect(q, PAGES, NEW);
}

/* Only the last page of the new mapping touches the first stale one. */
static void fixed_overlap(void)
{
	char *p = stale_at(PAGES);
	char *q = mmap(p - LENGTH + PAGE, LENGTH, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);

	ENSURE(q != MAP_FAILED, "mmap: %m");
	memset(q, NEW, LENGTH);
	expect(p, 1, NEW);
}

static void attach(int flags)
{
	char *p, *q;
	int id = (int)MUST(shmget(IPC_PRIVATE, LENGTH, IPC_CREAT | 0600));

	p = stale_at(PAGES);
	q = shmat(id, p, flags);
	shmctl(id, IPC_RMID, NULL);
	ENSURE(q == p, "shmat: %m");
	memset(q, NEW, LENGTH);
	expect(q, PAGES, NEW);
}

static void shmat_at(void)
{
	attach(0);
}

static void shmat_remap(void)
{
	attach(SHM_REMAP);
}

static void mremap_onto(void)
{
	char *from = map_new(NULL, 0);
	char *p, *q;

	memset(from, NEW, LENGTH);
	p = stale_at(PAGES);
	q = mremap(from, LENGTH, LENGTH, MREMAP_MAYMOVE | MREMAP_FIXED, p);
	ENSURE(q == p, "mremap: %m");
	expect(q, PAGES, NEW);
}

/* The target of the move is itself a mapping whose removal skips. */
static void mremap_replaces(void)
{
	char *from = map_new(NULL, 0);
	struct tfile f;
	char *p, *q;

	memset(from, NEW, LENGTH);
	file_make(&f, ON_TMPFS, PAGES, OWN);
	peer_start(1);
	hold_debts();
	p = fpr_map(&f, 0, PAGES, PROT_READ, MAP_SHARED);
	peer_touch(p, PAGES);
	q = mremap(from, LENGTH, LENGTH, MREMAP_MAYMOVE | MREMAP_FIXED, p);
	ENSURE(q == p, "mremap: %m");
	expect(q, PAGES, NEW);
}

/* What is left behind by a move is no longer mapped there. */
static void mremap_old(void)
{
	size_t seen;
	struct tfile f;
	char *p, *to, *q;

	file_make(&f, ON_TMPFS, PAGES, OWN);
	to = map_new(NULL, 0);
	peer_start(1);
	hold_debts();
	p = fpr_map(&f, 0, PAGES, PROT_READ, MAP_SHARED);
	peer_touch(p, PAGES);
	q = mremap(p, LENGTH, LENGTH, MREMAP_MAYMOVE | MREMAP_FIXED, to);
	ENSURE(q == to, "mremap: %m");
	q = map_new(p, MAP_FIXED);
	memset(q, NEW, LENGTH);
	checker_forbid(q, PAGES);
	seen = peer_count(q, PAGES, WORD(NEW));
	ENSURE(seen == PAGES, "the peer reads the new memory in %zu of %d pages",
	       seen, PAGES);
}

/* Two neighbours in the arena, of which the upper one is gone but stale. */
static char *stale_neighbour(char **low_at)
{
	struct tfile low, high;
	char *p = NULL, *q = NULL;
	size_t held = 0;
	int tries;

	file_make(&low, ON_TMPFS, 2 * PAGES, NEW);
	file_make(&high, ON_TMPFS, PAGES, OWN);
	peer_start(1);
	hold_debts();
	for (tries = 0; tries < 20 && !holds_enough(held, PAGES); tries++) {
		q = fpr_map(&high, 0, PAGES, PROT_READ, MAP_SHARED);
		peer_touch(q, PAGES);
		p = fpr_map(&low, 0, PAGES, PROT_READ, MAP_SHARED);
		ENSURE(q == p + LENGTH, "the mappings are not neighbours");
		peer_touch(p, PAGES);
		if (!fpr_unmap(q, PAGES))
			continue;
		held = peer_count(q, PAGES, WORD(OWN));
	}
	PREMISE(holds_enough(held, PAGES),
		"the peer holds %zu of %d stale translations",
		held, PAGES);
	*low_at = p;
	return q;
}

/* The lower one grows over what the upper one was. */
static void grow_in_place(void)
{
	char *p, *q = stale_neighbour(&p), *r;

	r = mremap(p, LENGTH, 2 * LENGTH, 0);
	ENSURE(r == p, "mremap: %m");
	expect(q, PAGES, NEW);
}

/* The live neighbour keeps the page table: nothing goes, but a flush is due. */
static void fixed_beside(void)
{
	char *p, *q = stale_neighbour(&p), *r = map_new(q, MAP_FIXED);

	memset(r, NEW, LENGTH);
	expect(q, PAGES, NEW);
}

/* It begins in a mapping that is there, and ends where one was. */
static void fixed_across(void)
{
	char *p, *q = stale_neighbour(&p), *r;

	r = mmap(p, 2 * LENGTH, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	ENSURE(r == p, "mmap: %m");
	memset(r, NEW, 2 * LENGTH);
	expect(q, PAGES, NEW);
}

/* Where the next mapping with the flag would go, there is another one now. */
static void next_is_taken(void)
{
	char *p = stale_at(PAGES), *q, *r;
	struct tfile f;
	size_t i;

	file_make(&f, ON_TMPFS, PAGES, NEW);
	q = map_new(p - LENGTH, MAP_FIXED_NOREPLACE);
	memset(q, OWN, LENGTH);
	r = fpr_map(&f, 0, PAGES, PROT_READ, MAP_SHARED);
	ENSURE(r >= q + LENGTH || r + LENGTH <= q,
	       "a new mapping replaces one that is in use");
	for (i = 0; i < LENGTH; i++)
		ENSURE(q[i] == OWN, "byte %zu of other memory changed", i);
}

static long raw_brk(void *at)
{
	return syscall(SYS_brk, at);
}

static void brk_over(void)
{
	char *p = stale_at(PAGES);
	unsigned long at = (unsigned long)p;

	/* The end first: the start must not be behind it. */
	if (prctl(PR_SET_MM, PR_SET_MM_BRK, at, 0, 0) ||
	    prctl(PR_SET_MM, PR_SET_MM_START_BRK, at, 0, 0))
		ktap_skip("the brk cannot be moved: %s", strerror(errno));
	ENSURE(raw_brk(p + LENGTH) == (long)(at + LENGTH), "brk failed");
	memset(p, NEW, LENGTH);
	expect(p, PAGES, NEW);
}

/* The gap that the kernel keeps below a stack, and some more. */
#define STACK_GAP	(4 * MIB)
#define STACK_TRIES	20

static void stack_grows(void)
{
	size_t gap_pages = STACK_GAP / PAGE, held = 0;
	struct tfile f;
	char *p = NULL, *top, *low = NULL;
	int tries;

	file_make(&f, ON_TMPFS, gap_pages + STACK_TRIES * PAGES, OWN);
	peer_start(1);
	hold_debts();
	/*
	 * A translation that the peer has lost makes the stack grow when it looks,
	 * and then all are lost. Which ones it loses is a matter of the address,
	 * and the offset in the file moves that.
	 */
	for (tries = 0; tries < STACK_TRIES && !holds_enough(held, PAGES); tries++) {
		p = fpr_map(&f, (size_t)tries * PAGES, gap_pages, PROT_READ,
			    MAP_SHARED);
		top = p + STACK_GAP;
		low = mmap(top, LENGTH, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_GROWSDOWN |
			   MAP_FIXED_NOREPLACE, -1, 0);
		ENSURE(low == top, "mmap of a stack: %m");
		*top = NEW;
		low = top - LENGTH;
		peer_touch(low, PAGES);
		if (!fpr_unmap(p, gap_pages))
			continue;
		held = peer_count(low, PAGES, WORD(OWN));
	}
	PREMISE(holds_enough(held, PAGES),
		"the peer holds %zu of %d stale translations",
		held, PAGES);
	memset(low, NEW, LENGTH);
	expect(low, PAGES, NEW);
}

/* The vdso, which a process may map at a place of its choice once. */
static void special_mapping(void)
{
	unsigned long vdso, vdso_end, vvar, vvar_end;
	uint64_t first, seen;
	size_t i, old;
	char *p;

	if (!find_mapping("[vdso]", &vdso, &vdso_end) ||
	    !find_mapping("[vvar]", &vvar, &vvar_end))
		ktap_skip("no vdso");
	first = probe_read((void *)vdso);
	p = stale_at(PAGES);
	/* Nothing uses the vdso from here on. */
	MUST(munmap((void *)vvar, vvar_end - vvar));
	MUST(munmap((void *)vdso, vdso_end - vdso));
	if (syscall(SYS_arch_prctl, ARCH_MAP_VDSO_64, p) < 0)
		ktap_skip("the vdso cannot be mapped: %s", strerror(errno));
	/* It is somewhere in there, vvar first. */
	checker_forbid(p, 4);
	old = peer_count(p, 4, WORD(OWN));
	ENSURE(!old, "the peer reads the unmapped file in %zu of 4 pages", old);
	for (i = 0; i < PAGES; i++) {
		seen = probe_read(p + i * PAGE);
		if (seen == first)
			return;
	}
	ktap_fail("the vdso is not at the place under attack");
}

#define WRAPS	8

/*
 * The arena comes round: the same address, another file. It is small, so that
 * the peer still holds its translations by then, and comes round more than once.
 */
static void wrap(void)
{
	struct tfile a, b;
	char *p, *q;
	int i, round;

	fpr_arena_size(4 * MIB);
	file_make(&a, ON_TMPFS, PAGES, OWN);
	file_make(&b, ON_TMPFS, PAGES, NEW);
	peer_start(1);
	hold_debts();
	for (round = 0; round < WRAPS; round++) {
		p = leave_stale(&a, 0, PAGES, PROT_READ, MAP_SHARED, OWN);
		for (i = 0; i < 1000; i++) {
			q = mmap(NULL, LENGTH, PROT_READ, MAP_SHARED | MAP_FPR,
				 b.fd, 0);
			if (q < p + LENGTH && p < q + LENGTH)
				break;
			MUST(munmap(q, LENGTH));
		}
		ENSURE(q < p + LENGTH && p < q + LENGTH,
		       "the arena did not come round after %d mappings", i);
		expect(q, PAGES, NEW);
		MUST(munmap(q, LENGTH));
	}
}

/* Below 4 GiB there is no arena, so no skip either. */
static void low_address(void)
{
	struct tfile f;
	size_t seen;
	char *p;

	file_make(&f, ON_TMPFS, PAGES, OWN);
	peer_start(1);
	p = mmap(NULL, LENGTH, PROT_READ, MAP_SHARED | MAP_32BIT | MAP_FPR,
		 f.fd, 0);
	ENSURE(p != MAP_FAILED, "mmap: %m");
	peer_touch(p, PAGES);
	fpr_unmap_flushes(p, PAGES);
	checker_forbid(p, PAGES);
	seen = peer_count(p, PAGES, WORD(OWN));
	ENSURE(!seen, "the peer reads %zu pages of the unmapped file", seen);
}

/* New mappings with the flag do not come back to a hole in the meantime. */
static void next_is_elsewhere(void)
{
	char *p = stale_at(PAGES);
	long before = vmstat("fpr_map");
	struct tfile f;
	int i;

	file_make(&f, ON_TMPFS, PAGES, NEW);
	for (i = 0; i < ELSEWHERE; i++) {
		char *q = mmap(NULL, LENGTH, PROT_READ, MAP_SHARED | MAP_FPR,
			       f.fd, 0);

		ENSURE(q != MAP_FAILED, "mmap: %m");
		ENSURE(q >= p + LENGTH || q + LENGTH <= p,
		       "mapping %d is where stale translations are", i);
		MUST(munmap(q, LENGTH));
	}
	ENSURE(vmstat("fpr_map") - before >= ELSEWHERE,
	       "the mappings are not counted");
}

int main(int argc, char **argv)
{
	static const struct ktap_case cases[] = {
		{ "fixed", fixed, 0 },
		{ "fixed_noreplace", fixed_noreplace, 0 },
		{ "hint", hint, 0 },
		{ "fixed_fpr", fixed_fpr, 0 },
		{ "fixed_overlap", fixed_overlap, 0 },
		{ "shmat_at", shmat_at, 0 },
		{ "shmat_remap", shmat_remap, 0 },
		{ "mremap_onto", mremap_onto, 0 },
		{ "mremap_replaces", mremap_replaces, 0 },
		{ "mremap_old", mremap_old, 0 },
		{ "grow_in_place", grow_in_place, 0 },
		{ "fixed_beside", fixed_beside, 0 },
		{ "fixed_across", fixed_across, 0 },
		{ "next_is_taken", next_is_taken, 0 },
		{ "brk_over", brk_over, 0 },
		{ "stack_grows", stack_grows, 0 },
		{ "special_mapping", special_mapping, 0 },
		{ "wrap", wrap, 0 },
		{ "low_address", low_address, 0 },
		{ "next_is_elsewhere", next_is_elsewhere, 0 },
	};

	return ktap_main(argc, argv, cases, KTAP_COUNT(cases));
}
