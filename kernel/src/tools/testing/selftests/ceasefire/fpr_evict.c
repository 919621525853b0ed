// SPDX-License-Identifier: GPL-2.0
/*
 * Attacks on eviction without a flush (I3): reclaim takes pages away that the
 * program still uses. Whatever it skips, nobody may read what is in the frame
 * afterwards, and the program finds its file.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "context.h"
#include "env.h"
#include "file.h"
#include "group.h"
#include "ktap.h"
#include "map.h"
#include "peer.h"
#include "stranger.h"

#ifndef MADV_COLD
#define MADV_COLD	20
#endif

#define OWN	0x11
#define PAGES	64
#define LENGTH	(PAGES * PAGE)
#define TRIES	50
/* Enough to get at the frames that were freed last. */
#define FILL_MIB	64

/* See evict.c of the kernel. */
#define BATCH	2048

static struct tfile file;
static struct stranger other;
static uint64_t words[PAGES], frames[PAGES];

/* A file whose pages are clean and charged to the group, and a peer. */
static void start(size_t pages)
{
	/* Frames that were freed wait in lists of a CPU: the next owner is there. */
	pin_to_cpu(0);
	stranger_start(&other);
	group_start();
	file_make(&file, ON_DISK, pages, OWN);
	MUST(fdatasync(file.fd));
	peer_start(1);
	hold_debts();
	/* fork() has made them read-only: the first write would flush. */
	memset(words, 0, sizeof(words));
}

/* The peer has the pages in its TLB. Their frames are known from then on. */
static void peer_takes(const char *p)
{
	ENSURE(peer_count(p, PAGES, WORD(OWN)) == PAGES, "wrong data");
	frames_of(p, PAGES, frames);
}

/* Mapped, and in the TLB of the peer. Its frames have room for tags. */
static char *in_use(void)
{
	char *p;

	leave_stale(&file, 0, PAGES, PROT_READ, MAP_SHARED, OWN);
	full_flush();
	context_from_environment();
	p = fpr_map(&file, 0, PAGES, PROT_READ, MAP_SHARED);
	peer_takes(p);
	return p;
}

/* As reclaim does when it looks who uses a page; without a flush. */
static void clear_accessed(void)
{
	ENSURE(write_text("/proc/self/clear_refs", "1"), "clear_refs: %m");
}

static void evict(const struct tfile *f)
{
	size_t left = file_cached(f);
	int tries;

	/* Who asks for more than there is makes all CPUs work in the end. */
	for (tries = 0; tries < TRIES && left; tries++) {
		group_reclaim(left * PAGE);
		left = file_cached(f);
	}
	ENSURE(!left, "%zu of %zu pages were not evicted", left, f->pages);
}

/* What became of the flushes of evictions: since boot, or between two looks. */
struct evictions {
	long skipped, few, used, other;
};

static struct evictions evictions(void)
{
	return (struct evictions) {
		.skipped = vmstat("fpr_evict_skip"),
		.few = vmstat("fpr_evict_flush_stale"),
		.used = vmstat("fpr_evict_flush_young"),
		.other = vmstat("fpr_evict_flush_untracked") +
			 vmstat("fpr_evict_flush_pending") +
			 vmstat("fpr_evict_flush_notifier") +
			 vmstat("fpr_evict_flush_disabled"),
	};
}

static struct evictions evictions_since(struct evictions before)
{
	struct evictions now = evictions();

	return (struct evictions) {
		.skipped = now.skipped - before.skipped,
		.few = now.few - before.few,
		.used = now.used - before.used,
		.other = now.other - before.other,
	};
}

/*
 * While the peer's CPU runs something else there is nobody to interrupt, and an
 * eviction counts as nothing.
 */
#define MOST	(PAGES / 2)

/* The frames of the pages that were evicted. */
static size_t evicted_frames(uint64_t *gone)
{
	size_t i, count = 0;

	for (i = 0; i < PAGES; i++)
		if (!file_page_cached(&file, i))
			gone[count++] = frames[i];
	return count;
}

/* The frames get another owner; the peer reads where it has read before. */
static void nobody_sees(const char *p)
{
	uint64_t gone[PAGES];
	size_t count = evicted_frames(gone), taken, i, wrong = 0;

	taken = stranger_take(&other, gone, count, FILL_MIB);
	peer_read(p, PAGES, words);
	for (i = 0; i < PAGES; i++)
		wrong += words[i] != WORD(OWN);
	ENSURE(!wrong, "%zu of %d pages show memory of another owner", wrong,
	       PAGES);
	stranger_stop(&other);
	PREMISE(taken >= count / 2, "%zu of %zu frames have another owner",
		taken, count);
}

/* Reclaim has looked long ago, nobody has used the pages since. */
static void settled(void)
{
	struct evictions got;
	long drains;
	char *p;

	start(PAGES);
	p = in_use();
	clear_accessed();
	full_flush();
	got = evictions();
	drains = vmstat("fpr_drain_flush");
	evict(&file);
	got = evictions_since(got);
	ENSURE(got.skipped >= MOST && !got.few && !got.used && !got.other,
	       "%ld of %d pages were evicted without a flush, %ld when few waited, %ld used, %ld for other reasons",
	       got.skipped, PAGES, got.few, got.used, got.other);
	ENSURE(vmstat("fpr_drain_flush") == drains, "a drain has flushed");
	nobody_sees(p);
}

/* The debt is paid by ticks, nobody has to ask for a flush. */
static void settled_by_ticks(void)
{
	struct evictions got;
	long ticks;
	char *p;

	start(PAGES);
	/* A debt is looked at when the time is up that it began with. */
	fpr_set("debt_age_ms", 5000);
	if (lazy())
		latr_set("settle_ms", 5000);
	p = in_use();
	fpr_set("debt_age_ms", 100);
	if (lazy())
		latr_set("settle_ms", 100);
	clear_accessed();
	ticks = vmstat("fpr_drain_age");
	ENSURE(wait_vmstat_above("fpr_drain_age", ticks, 60), "nothing was owed");
	sleep_ms(1000);
	got = evictions();
	evict(&file);
	got = evictions_since(got);
	ENSURE(got.skipped >= MOST && !got.few && !got.used && !got.other,
	       "evicted by flushes");
	nobody_sees(p);
}

/* A processor that promises nothing about its accessed bits. */
static void unproven(void)
{
	long skips, flushes;
	char *p;

	start(PAGES);
	p = in_use();
	fpr_set("evict", 0);
	clear_accessed();
	full_flush();
	skips = vmstat("fpr_evict_skip");
	flushes = vmstat("fpr_evict_flush_vendor");
	evict(&file);
	skips = vmstat("fpr_evict_skip") - skips;
	flushes = vmstat("fpr_evict_flush_vendor") - flushes;
	ENSURE(!skips, "%ld pages were evicted without a flush", skips);
	PREMISE(flushes >= MOST, "nobody had to be flushed: nothing to look at");
	nobody_sees(p);
}

/* Reclaim looks and evicts at once: the peer still has the entries. */
static void at_once(void)
{
	long flushes;
	char *p;

	start(PAGES);
	p = in_use();
	clear_accessed();
	flushes = vmstat("fpr_drain_flush");
	evict(&file);
	flushes = vmstat("fpr_drain_flush") - flushes;
	nobody_sees(p);
	PREMISE(flushes, "nothing was owed: nothing to attack with");
}

/* madvise(MADV_COLD) clears the bits, and nobody is flushed for that. */
static void cold(void)
{
	long flushes, noted;
	char *p;

	start(PAGES);
	p = in_use();
	noted = vmstat("fpr_cold_skip");
	MUST(madvise(p, LENGTH, MADV_COLD));
	ENSURE(vmstat("fpr_cold_skip") - noted == PAGES,
	       "%ld of %d bits were noted", vmstat("fpr_cold_skip") - noted,
	       PAGES);
	flushes = vmstat("fpr_drain_flush");
	evict(&file);
	flushes = vmstat("fpr_drain_flush") - flushes;
	nobody_sees(p);
	PREMISE(flushes, "nothing was owed: nothing to attack with");
}

/* A process whose references do not count for the group that is reclaimed. */
static void not_looked_at(void)
{
	long young;
	char *p;

	start(PAGES);
	group_leave();
	p = in_use();
	young = vmstat("fpr_evict_flush_young");
	evict(&file);
	young = vmstat("fpr_evict_flush_young") - young;
	nobody_sees(p);
	PREMISE(young >= MOST,
		"the accessed bits were not set: nothing to attack with");
}

/* Used again after reclaim has looked, and after the flush. */
static void used_again(void)
{
	long skips;
	char *p;

	start(PAGES);
	group_leave();
	p = in_use();
	clear_accessed();
	full_flush();
	peer_touch(p, PAGES);
	skips = vmstat("fpr_evict_skip");
	evict(&file);
	skips = vmstat("fpr_evict_skip") - skips;
	nobody_sees(p);
	ENSURE(!skips, "%ld pages were skipped although in use", skips);
}

/*
 * fork() gives a child mappings whose accessed bits are cleared while it has no
 * context that could be owed anything. Then it gets one.
 */
static void inherited(void)
{
	struct tfile more;
	int status;
	char *p;
	pid_t pid;

	pin_to_cpu(0);
	stranger_start(&other);
	group_start();
	file_make(&file, ON_DISK, PAGES, OWN);
	MUST(fdatasync(file.fd));
	hold_debts();
	p = fpr_map(&file, 0, PAGES, PROT_READ, MAP_SHARED);
	/* Room for tags, for whoever skips. */
	fpr_unmap(fpr_map(&file, 0, PAGES, PROT_READ, MAP_SHARED), PAGES);
	pid = (pid_t)MUST(fork());
	if (!pid) {
		peer_start(1);
		peer_takes(p);
		clear_accessed();
		file_make(&more, ON_TMPFS, 1, OWN);
		fpr_map(&more, 0, 1, PROT_READ, MAP_SHARED);
		evict(&file);
		nobody_sees(p);
		_exit(0);
	}
	MUST(waitpid(pid, &status, 0));
	ENSURE(WIFEXITED(status) && !WEXITSTATUS(status), "the child has failed");
}

/* The process becomes lazy when the bits of an ordinary mapping were cleared. */
static void switched_on(void)
{
	struct evictions got;
	long drains;
	char *p;

	if (lazy() || context_is_lazy() < 0)
		ktap_skip("the process is lazy, or cannot be");
	start(PAGES);
	leave_stale(&file, 0, PAGES, PROT_READ, MAP_SHARED, OWN);
	full_flush();
	p = mmap(NULL, LENGTH, PROT_READ, MAP_SHARED, file.fd, 0);
	ENSURE(p != MAP_FAILED, "mmap: %m");
	peer_takes(p);
	clear_accessed();
	MUST(context_lazy(1));
	got = evictions();
	drains = vmstat("fpr_drain_flush");
	evict(&file);
	drains = vmstat("fpr_drain_flush") - drains;
	got = evictions_since(got);
	nobody_sees(p);
	/* Then nothing is owed any more. */
	PREMISE(!drains, "a drain has flushed: nothing to attack with");
	ENSURE(!got.skipped, "%ld pages were evicted without a flush",
	       got.skipped);
	PREMISE(got.other >= MOST, "%ld pages took a flush: nothing to attack with",
		got.other);
}

/* A device mirrors the page tables, and sets no accessed bit. */
static void secondary_mmu(void)
{
	long skips;
	char *p;
	int fd;

	start(PAGES);
	p = in_use();
	fd = open("/dev/hmm_dmirror0", O_RDWR | O_CLOEXEC);
	if (fd < 0)
		ktap_skip("no /dev/hmm_dmirror0: boot the debug kernel");
	clear_accessed();
	full_flush();
	skips = vmstat("fpr_evict_skip");
	evict(&file);
	ENSURE(vmstat("fpr_evict_skip") == skips,
	       "skipped behind a device's back");
	nobody_sees(p);
	close(fd);
}

/* Reclaim does not look at mappings that are read at random, but at ours. */
static void random_advice(void)
{
	struct evictions got;
	char *p;

	start(PAGES);
	p = in_use();
	MUST(madvise(p, LENGTH, MADV_RANDOM));
	got = evictions();
	evict(&file);
	got = evictions_since(got);
	ENSURE(got.skipped + got.few >= MOST && !got.used && !got.other,
	       "%ld of %d pages without a flush, %ld when few waited, %ld used, %ld for other reasons",
	       got.skipped, PAGES, got.few, got.used, got.other);
	nobody_sees(p);
}

/* While there is something else, pages that would take a flush stay. */
static void others_first(void)
{
	struct evictions got;
	struct tfile plain;
	size_t left;
	long later;
	char *p;
	int tries;

	start(PAGES);
	p = in_use();
	file_make(&plain, ON_DISK, 64 * PAGES, OWN);
	MUST(fdatasync(plain.fd));
	clear_accessed();
	later = vmstat("fpr_evict_later");
	got = evictions();
	for (tries = 0; tries < TRIES && vmstat("fpr_evict_later") == later;
	     tries++)
		group_reclaim(32 * PAGE);
	ENSURE(vmstat("fpr_evict_later") > later, "reclaim did not come by");
	/* One whose bit was clear before takes no flush, and need not stay. */
	got = evictions_since(got);
	left = file_cached(&file);
	ENSURE(left >= MOST && !got.few && !got.used && !got.other,
	       "%zu of %d pages are left; of the others %ld took no flush, %ld did",
	       left, PAGES, got.skipped, got.few + got.used + got.other);
	nobody_sees(p);
}

/* As few as reclaim takes at a time. */
#define BITE	32

static bool lru_has_generations(void)
{
	char text[16] = "";
	int fd = open("/sys/kernel/mm/lru_gen/enabled", O_RDONLY | O_CLOEXEC);

	/* A mask; its lowest bit is the switch. */
	if (fd < 0 || read(fd, text, sizeof(text) - 1) < 0)
		return false;
	close(fd);
	return strtoul(text, NULL, 0) & 1;
}

/* Small bites until so many pages were left alone; how many were. */
static long bite_until_left_alone(long wanted)
{
	long before = vmstat("fpr_evict_later"), later = 0;
	int tries;

	for (tries = 0; tries < TRIES && later < wanted; tries++) {
		group_reclaim(BITE * PAGE);
		later = vmstat("fpr_evict_later") - before;
	}
	return later;
}

/*
 * A mapping that says that a use does not count: its pages are as old as those
 * of a larger file that is read after it.
 */
static char *old(void)
{
	struct tfile others;
	char *p;

	if (!lru_has_generations())
		ktap_skip("needs multi-generational LRU");
	start(PAGES);
	p = in_use();
	MUST(madvise(p, LENGTH, MADV_RANDOM));
	file_make(&others, ON_DISK, 64 * PAGES, OWN);
	MUST(fdatasync(others.fd));
	return p;
}

/* They get no younger. On two lists it depends on what came before. */
static void use_does_not_count(void)
{
	char *p = old();
	long later = bite_until_left_alone(PAGES / 2);

	ENSURE(later >= PAGES / 2,
	       "reclaim came by %ld of %d pages, as if they were used", later,
	       PAGES);
	nobody_sees(p);
}

/* Those that wait for a flush are looked at next, and not taken for used. */
static void stays_old(void)
{
	long later, young;
	char *p = old();

	young = group_youngest();
	later = bite_until_left_alone(PAGES / 2);
	ENSURE(later >= PAGES / 2, "reclaim came by %ld of %d pages", later,
	       PAGES);
	young = group_youngest() - young;
	ENSURE(young < later / 2,
	       "%ld pages of %ld that wait for a flush are the youngest", young,
	       later);
	nobody_sees(p);
}

#define MANY	(4 * BATCH)

static long map_many(long unused)
{
	char *p = mmap(NULL, MANY * PAGE, PROT_READ,
		       MAP_SHARED | MAP_POPULATE | MAP_FPR, file.fd, 0);

	(void)unused;
	return p == MAP_FAILED ||
	       !write_text("/proc/self/clear_refs", "1") ? -1 : 0;
}

/*
 * Evict many pages, which are made clean together. Entries of a process that
 * runs on this CPU alone count as nothing.
 */
static void evict_many(void)
{
	long evicted, flushes, ages, scanned, stolen;

	evicted = vmstat("fpr_evict_skip");
	flushes = vmstat("fpr_drain_flush");
	ages = vmstat("fpr_drain_age");
	scanned = vmstat("pgscan_file");
	stolen = vmstat("pgsteal_file");
	evict(&file);
	evicted = vmstat("fpr_evict_skip") - evicted;
	flushes = vmstat("fpr_drain_flush") - flushes;
	ages = vmstat("fpr_drain_age") - ages;
	scanned = vmstat("pgscan_file") - scanned;
	stolen = vmstat("pgsteal_file") - stolen;
	ktap_note("%ld entries cleared without a flush of their own", evicted);
	ktap_note("%ld flushes, %ld debts paid by ticks", flushes, ages);
	ktap_note("%ld pages scanned for %ld evicted", scanned, stolen);
	/* Others settle, too, once the first of them were evicted by flushes. */
	ENSURE(evicted > MANY - MANY / 8, "%ld of %d entries", evicted, MANY);
	ENSURE(flushes + ages > 0 && flushes <= MANY / BATCH + 1,
	       "%ld flushes for %d pages", flushes, MANY);
}

static void one_flush_for_many(void)
{
	start(MANY);
	in_use();
	ENSURE(!map_many(0), "mmap: %m");
	evict_many();
	stranger_stop(&other);
}

/* Workers of a server: what one of them settles says nothing of the others. */
static void of_two_processes(void)
{
	struct stranger second;
	long shared = vmstat("fpr_shared");

	start(MANY);
	in_use();
	stranger_start(&second);
	ENSURE(!map_many(0), "mmap: %m");
	ENSURE(!stranger_call(&second, map_many, 0), "mmap: %m");
	ENSURE(vmstat("fpr_shared") - shared > MANY / 2,
	       "the frames are not of both");
	evict_many();
	stranger_stop(&second);
	stranger_stop(&other);
}

int main(int argc, char **argv)
{
	static const struct ktap_case cases[] = {
		{ "settled", settled, 0 },
		{ "settled_by_ticks", settled_by_ticks, 0 },
		{ "unproven", unproven, 0 },
		{ "at_once", at_once, 0 },
		{ "cold", cold, 0 },
		{ "not_looked_at", not_looked_at, 0 },
		{ "used_again", used_again, 0 },
		{ "inherited", inherited, 0 },
		{ "switched_on", switched_on, 0 },
		{ "secondary_mmu", secondary_mmu, 0 },
		{ "random_advice", random_advice, 0 },
		{ "others_first", others_first, 0 },
		{ "use_does_not_count", use_does_not_count, 0 },
		{ "stays_old", stays_old, 0 },
		{ "one_flush_for_many", one_flush_for_many, 0 },
		{ "of_two_processes", of_two_processes, 0 },
	};

	return ktap_main(argc, argv, cases, KTAP_COUNT(cases));
}
