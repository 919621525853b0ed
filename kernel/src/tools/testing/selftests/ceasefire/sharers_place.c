// SPDX-License-Identifier: GPL-2.0
/*
 * Placement in processes with sharers: threads that have nothing to do with each other
 * share no region, so their flushes interrupt nobody, and what has an address of its own
 * keeps it. sharers_room.c has how much room that takes, sharers_layout.c what must stay
 * as it is.
 */
#define _GNU_SOURCE
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include "env.h"
#include "file.h"
#include "granule.h"
#include "ktap.h"
#include "worker.h"

#define PAGES		8
#define ROUNDS		200
#define PIECES		6
#define CREW		8

/* Threads on CPUs of their own map in turn what each of them uses alone. */
static struct crew {
	int count;
	struct worker worker[CREW];
	char *own[CREW][PIECES];
	int arrived;
} crew;

static void crew_start(void)
{
	int i, t;

	need_cpus(3);
	crew.count = online_cpus() - 1 < CREW ? online_cpus() - 1 : CREW;
	for (t = 0; t < crew.count; t++)
		worker_start(&crew.worker[t], t + 1, NULL);
	for (i = 0; i < PIECES; i++)
		for (t = 0; t < crew.count; t++)
			crew.own[t][i] = map_in(&crew.worker[t], PAGES * PAGE);
}

/* Pairs of mappings of two threads that share a region. */
static int crew_sharing(void)
{
	int t, other, i, j, count = 0;

	for (t = 1; t < crew.count; t++)
		for (other = 0; other < t; other++)
			for (i = 0; i < PIECES; i++)
				for (j = 0; j < PIECES; j++)
					count += share_region(crew.own[t][i],
							      crew.own[other][j],
							      PAGES * PAGE);
	return count;
}

/* Without sleep: a CPU without work is not interrupted. */
static void crew_meet(int round)
{
	__atomic_add_fetch(&crew.arrived, 1, __ATOMIC_ACQ_REL);
	while (__atomic_load_n(&crew.arrived, __ATOMIC_ACQUIRE) <
	       crew.count * round)
		;
}

static void use_own(void *arg)
{
	char **own = arg;
	int i, round;

	for (round = 1; round <= ROUNDS; round++) {
		for (i = 0; i < PIECES; i++)
			memset(own[i], round, PAGES * PAGE);
		crew_meet(2 * round - 1);
		for (i = 0; i < PIECES; i++)
			MUST(madvise(own[i], PAGES * PAGE, MADV_DONTNEED));
		crew_meet(2 * round);
	}
}

/* Shootdowns for each 1000 calls, while all use what is theirs and give it back. */
static long crew_shootdowns(void)
{
	long calls = (long)crew.count * ROUNDS * PIECES, received;
	int t;

	received = vmstat("nr_tlb_remote_flush_received");
	for (t = 0; t < crew.count; t++)
		worker_begin(&crew.worker[t], use_own, crew.own[t]);
	for (t = 0; t < crew.count; t++)
		worker_end(&crew.worker[t]);
	received = vmstat("nr_tlb_remote_flush_received") - received;
	ktap_note("%d threads: %ld shootdowns by %ld calls", crew.count,
		  received, calls);
	return received * 1000 / calls;
}

static void apart(void)
{
	long received, placed = vmstat("sharers_place");
	int i, t;

	placement_start();
	crew_start();
	placed = vmstat("sharers_place") - placed;
	received = crew_shootdowns();
	ENSURE(received < 20, "%ld shootdowns by 1000 calls", received);
	ENSURE(!crew_sharing(), "%d pairs of mappings share a region",
	       crew_sharing());
	for (t = 0; t < crew.count; t++)
		for (i = 1; i < PIECES; i++)
			ENSURE(is_near(crew.own[t][0], crew.own[t][i]),
			       "those of one thread: a distance of %zu bytes",
			       distance(crew.own[t][0], crew.own[t][i]));
	ENSURE(placed >= crew.count * PIECES, "%ld were placed", placed);
}

/* Where mmap() puts them otherwise they do share regions, and the CPUs hear of it. */
static void switched_off(void)
{
	long received, placed = vmstat("sharers_place");

	placement_start();
	sharers_placement(false);
	crew_start();
	ENSURE(vmstat("sharers_place") == placed, "something was placed");
	PREMISE(crew_sharing(), "no mappings share a region");
	received = crew_shootdowns();
	PREMISE(received > 100, "%ld shootdowns by 1000 calls", received);
}

/* On again: what comes then is apart, what is there stays. */
static void switched_on(void)
{
	char *before, *after;
	struct worker w;

	placement_start();
	sharers_placement(false);
	worker_start(&w, -1, NULL);
	before = map_in(&w, PAGE);
	*before = 1;
	sharers_placement(true);
	after = map_in(&w, PAGE);
	ENSURE(distance(before, after) > GIB, "%p is near %p", after, before);
	ENSURE(*before == 1, "a mapping has changed");
}

/* Stacks of threads, and what these map: one region has those of one thread. */
static void small_stacks(size_t guard)
{
	struct worker w[4];
	char *own[4];
	pthread_attr_t attr;
	int i, j;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 128 << 10);
	pthread_attr_setguardsize(&attr, guard);
	for (i = 0; i < 4; i++)
		worker_start(&w[i], -1, &attr);
	for (i = 0; i < 4; i++)
		own[i] = map_in(&w[i], PAGES * PAGE);
	for (i = 0; i < 4; i++) {
		/* Without a guard the first one looks like anything else. */
		ENSURE(is_near(w[i].stack, own[i]) || (!guard && !i),
		       "thread %d: stack %p, mapping %p", i, w[i].stack,
		       own[i]);
		for (j = 0; j < i; j++)
			ENSURE(!share_region(own[i], own[j], PAGES * PAGE) &&
			       !is_near(w[i].stack, w[j].stack) &&
			       !is_near(w[i].stack, own[j]),
			       "threads %d and %d: stacks %p and %p, mappings %p and %p",
			       i, j, w[i].stack, w[j].stack, own[i], own[j]);
	}
	for (i = 0; i < 4; i++)
		worker_stop(&w[i]);
	/* Stacks of threads that are gone are used again, with what is there. */
	for (i = 0; i < 4; i++)
		worker_start(&w[i], -1, &attr);
	for (i = 0; i < 4; i++) {
		own[i] = map_in(&w[i], PAGES * PAGE);
		ENSURE(is_near(w[i].stack, own[i]) || !guard,
		       "later thread %d: stack %p, mapping %p", i, w[i].stack,
		       own[i]);
	}
}

static void stacks(void)
{
	placement_start();
	small_stacks(PAGE);
}

static void stacks_without_guard(void)
{
	placement_start();
	small_stacks(0);
}

/* Who migrates keeps what is its own. */
static void change_cpu(void *arg)
{
	pin_to_cpu(*(int *)arg);
}

static void migrates(void)
{
	struct worker w, there;
	char *before, *after, *other;
	int cpu = 2;

	need_cpus(3);
	placement_start();
	worker_start(&w, 1, NULL);
	worker_start(&there, cpu, NULL);
	before = map_in(&w, PAGE);
	other = map_in(&there, PAGE);
	worker_run(&w, change_cpu, &cpu);
	after = map_in(&w, PAGE);
	ENSURE(is_near(before, after), "%p and %p", before, after);
	ENSURE(!is_near(after, other), "%p is near that of another thread, %p",
	       after, other);
}

/* An address that is asked for, or anything that is not small and plain. */
static void chosen(void)
{
	const int rw = PROT_READ | PROT_WRITE;
	char *small, *p, *at;
	struct worker w;

	placement_start();
	worker_start(&w, -1, NULL);
	small = map_in(&w, PAGES * PAGE);
	at = small - 4 * GIB;
	p = map_with(&w, at, PAGE, rw, 0);
	ENSURE(p == at, "hint %p, %p", at, p);
	p = map_with(&w, at, PAGE, rw, MAP_FIXED_NOREPLACE);
	ENSURE(p == MAP_FAILED, "MAP_FIXED_NOREPLACE replaces");
	p = map_with(&w, at - PAGE, PAGE, rw, MAP_FIXED_NOREPLACE);
	ENSURE(p == at - PAGE, "MAP_FIXED_NOREPLACE: %p", p);
	p = map_with(&w, small, PAGE, rw, MAP_FIXED);
	ENSURE(p == small, "MAP_FIXED: %p", p);
	/* In the room of its own granule, too. */
	p = map_with(&w, small - MIB, PAGE, rw, 0);
	ENSURE(p == small - MIB, "hint in the granule: %p", p);
	/* A hint that is taken: as ever. */
	p = map_with(&w, at, PAGE, rw, 0);
	ENSURE(p != at && !is_near(p, small), "hint that is taken: %p", p);
	p = map_with(&w, NULL, PAGE, rw, MAP_32BIT);
	ENSURE((uintptr_t)p < 2 * GIB, "MAP_32BIT: %p", p);
	p = map_with(&w, NULL, PAGE, rw, MAP_GROWSDOWN);
	ENSURE(!is_near(p, small), "MAP_GROWSDOWN: %p", p);
	p = map_with(&w, NULL, PAGE, PROT_READ | PROT_EXEC, 0);
	ENSURE(!is_near(p, small), "code: %p", p);
	p = map_with(&w, NULL, REGION, rw, 0);
	ENSURE(!is_near(p, small) && !((uintptr_t)p % REGION), "2 MiB: %p", p);
	p = map_with(&w, NULL, REGION + PAGE, rw, 0);
	ENSURE(!is_near(p, small), "more than 2 MiB: %p", p);
	p = map_with(&w, NULL, REGION - PAGE, rw, 0);
	ENSURE(is_near(p, small), "less than 2 MiB: %p", p);
	p = map_with(&w, (void *)(1UL << 50), PAGE, rw, 0);
	ENSURE(p != MAP_FAILED && !is_near(p, small), "hint above 47 bits: %p",
	       p);
	ktap_note("a hint above 47 bits gives %p", p);
}

/* What is moved because it grows lies where it would be mapped. */
static void grow(void *arg)
{
	struct wish *m = arg;

	m->got = mremap(m->got, m->len, 4 * m->len, MREMAP_MAYMOVE);
}

static void moved(void)
{
	struct wish m = { .len = PAGES * PAGE };
	char *first, *second;
	struct worker w;

	placement_start();
	worker_start(&w, -1, NULL);
	first = map_in(&w, m.len);
	second = map_in(&w, m.len);
	ENSURE(second < first, "%p is above %p", second, first);
	m.got = second;
	memset(second, 7, m.len);
	worker_run(&w, grow, &m);
	ENSURE(m.got != MAP_FAILED && m.got != second, "mremap: %p", m.got);
	ENSURE(is_near(m.got, first) && m.got < first, "from %p to %p",
	       second, m.got);
	ENSURE(m.got[0] == 7 && m.got[m.len - 1] == 7, "other data");
}

static void map_file(enum place where)
{
	struct wish m = { .len = PAGES * PAGE, .prot = PROT_READ };
	struct tfile f;
	struct worker w;
	char *own;
	int i;

	placement_start();
	file_make(&f, where, PAGES, 0x5a);
	worker_start(&w, -1, NULL);
	own = map_in(&w, PAGE);
	for (i = 0; i < 2; i++) {
		m.fd = f.fd;
		m.flags = i ? MAP_SHARED : MAP_PRIVATE;
		worker_run(&w, map_wish, &m);
		ENSURE(m.got != MAP_FAILED, "mmap: %s", strerror(m.error));
		ENSURE(is_near(m.got + GRANULE / 2, own),
		       "a file at %p, not in the granule of %p", m.got, own);
		ENSURE(m.got[PAGE] == 0x5a, "other data");
	}
	/* Libraries, as the dynamic linker maps them. */
	m.flags = MAP_PRIVATE | MAP_DENYWRITE;
	worker_run(&w, map_wish, &m);
	ENSURE(!is_near(m.got, own), "a library at %p", m.got);
	m = (struct wish){ .len = PAGES * PAGE, .prot = PROT_READ, .fd = -1,
			   .flags = MAP_SHARED | MAP_ANONYMOUS };
	worker_run(&w, map_wish, &m);
	ENSURE(is_near(m.got, own), "shared memory at %p", m.got);
	file_close(&f);
}

static void files(void)
{
	map_file(ON_TMPFS);
}

static void files_on_disk(void)
{
	map_file(ON_DISK);
}

/* What a thread allocates others use, too; what it maps of a file they do not. */
static void halves(void)
{
	struct wish m = { .len = PAGES * PAGE, .prot = PROT_READ, .flags = MAP_SHARED };
	struct tfile f;
	struct worker w;
	int i;

	placement_start();
	file_make(&f, ON_TMPFS, PAGES, 0x5a);
	worker_start(&w, -1, NULL);
	for (i = 0; i < 2; i++) {
		char *memory = map_in(&w, PAGES * PAGE);

		m.fd = f.fd;
		worker_run(&w, map_wish, &m);
		ENSURE(m.got != MAP_FAILED, "mmap: %s", strerror(m.error));
		ENSURE((uintptr_t)memory / REGION != (uintptr_t)m.got / REGION,
		       "%p and %p, of a file, are in the same region", memory,
		       m.got);
	}
	file_close(&f);
}

int main(int argc, char **argv)
{
	static const struct ktap_case cases[] = {
		{ "apart", apart, 0 },
		{ "switched_off", switched_off, 0 },
		{ "switched_on", switched_on, 0 },
		{ "stacks", stacks, 0 },
		{ "stacks_without_guard", stacks_without_guard, 0 },
		{ "migrates", migrates, 0 },
		{ "chosen", chosen, 0 },
		{ "moved", moved, 0 },
		{ "files", files, 0 },
		{ "files_on_disk", files_on_disk, 0 },
		{ "halves", halves, 0 },
	};

	return ktap_main(argc, argv, cases, KTAP_COUNT(cases));
}
