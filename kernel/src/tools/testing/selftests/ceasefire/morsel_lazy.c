// SPDX-License-Identifier: GPL-2.0
/*
 * M7: what was given up without a flush stays in the morsel, and its offset without a page, until
 * each process that maps it has flushed.
 *
 * The peer holds translations. Its CPU's tick pays no debts where a case says so, so that
 * nothing is settled by itself meanwhile.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "checker.h"
#include "ktap.h"
#include "mirror.h"
#include "morsels.h"
#include "peer.h"
#include "stranger.h"
#include "worker.h"

#define OWN	WORD(0x5a)
#define OTHER	WORD(0x33)
#define ALIEN	WORD(0x77)
#define BOTH	(PROT_READ | PROT_WRITE)
#define PAGES	8
#define LENGTH	(PAGES * PAGE)
/* In another table than the first pages, and in another entry of a direct-mapped TLB. */
#define ELSEWHERE	(3 * UNIT + 32 * PAGE)

static void start(void)
{
	need_cpus(2);
	pin_to_cpu(0);
	peer_start(1);
}

/* Nothing is settled but by a flush. */
static void start_slow(void)
{
	fpr_set("debt_age_ms", 60000);
	latr_tickless_cpu(1);
	start();
}

static void peer_holds(char *p, size_t pages, uint64_t word)
{
	morsel_fill(p, pages, word);
	peer_touch(p, pages);
	ENSURE(peer_count(p, pages, word) == pages, "the peer does not read it");
}

/* Past the own translations, which may be old ones. */
static void put(int fd, uint64_t offset, size_t pages, uint64_t word)
{
	size_t i;

	for (i = 0; i < pages; i++)
		ENSURE(pwrite(fd, &word, sizeof(word),
			      (off_t)(offset + i * PAGE)) == sizeof(word),
		       "pwrite: %m");
}

static size_t got(int fd, uint64_t offset, size_t pages, uint64_t word)
{
	size_t i, right = 0;
	uint64_t found;

	for (i = 0; i < pages; i++) {
		ENSURE(pread(fd, &found, sizeof(found),
			     (off_t)(offset + i * PAGE)) == sizeof(found),
		       "pread: %m");
		right += found == word;
	}
	return right;
}

/* The first pages wait. Used elsewhere is what may be reached where many wait: one is many now. */
static void let_go_round(int fd)
{
	morsel_set("lazy_limit", 64);
	ENSURE(!morsel_give_up(fd, 0, LENGTH), "give up");
	morsel_set("lazy_limit", 1);
}

/* They are. */
static void go_elsewhere(int fd)
{
	uint64_t before = morsel_stat(fd).pool;

	put(fd, ELSEWHERE, PAGES, ALIEN);
	ENSURE(morsel_stat(fd).pool == before - PAGES, "other pages were taken");
}

/* Nobody is interrupted. */
static void quiet(void)
{
	int fd = morsel_make_lazy(GIB, GIB), i;
	char *p = morsel_map(fd, GIB, BOTH);
	long received, pages;

	start();
	received = vmstat("nr_tlb_remote_flush_received");
	pages = vmstat("morsel_lazy_pages");
	for (i = 0; i < 64; i++) {
		peer_holds(p + i * LENGTH, PAGES, OWN);
		ENSURE(!morsel_give_up(fd, i * LENGTH, LENGTH), "give up");
	}
	received = vmstat("nr_tlb_remote_flush_received") - received;
	pages = vmstat("morsel_lazy_pages") - pages;
	ENSURE(pages == 64 * PAGES, "%ld pages", pages);
	ENSURE(received <= 6, "%ld interrupts", received);
	ENSURE(!morsel_stat(fd).flushes, "%llu flushes",
	       (unsigned long long)morsel_stat(fd).flushes);
}

/* The same offset gets its page again: what all have cached is right, and nobody flushes. */
static void again(void)
{
	int fd = morsel_make_lazy(GIB, GIB), i;
	char *p = morsel_map(fd, GIB, BOTH);
	long flushes = vmstat("morsel_lazy_flush_again");

	start_slow();
	for (i = 0; i < 10; i++) {
		peer_holds(p, PAGES, OWN);
		ENSURE(!morsel_give_up(fd, 0, LENGTH), "give up");
		ENSURE(!morsel_populate(fd, 0, LENGTH), "populate");
		ENSURE(peer_count(p, PAGES, 0) == PAGES, "no zeroes");
		put(fd, 0, PAGES, OTHER);
		ENSURE(peer_count(p, PAGES, OTHER) == PAGES,
		       "the peer reads something else");
		ENSURE(morsel_count(p, PAGES, OTHER) == PAGES,
		       "this thread reads something else");
	}
	flushes = vmstat("morsel_lazy_flush_again") - flushes;
	ENSURE(!flushes, "%ld flushes", flushes);
}

/* Its page is elsewhere by now, and it gets another one: all have to see that one. */
static void another(void)
{
	int fd = morsel_make_lazy(GIB, GIB), i;
	char *p = morsel_map(fd, GIB, BOTH);
	long flushes;

	start_slow();
	for (i = 0; i < 5; i++) {
		peer_holds(p, PAGES, OWN);
		let_go_round(fd);
		go_elsewhere(fd);
		flushes = vmstat("morsel_lazy_flush_again");
		put(fd, 0, PAGES, OTHER);
		flushes = vmstat("morsel_lazy_flush_again") - flushes;
		checker_forbid(p, PAGES);
		ENSURE(peer_count(p, PAGES, OTHER) == PAGES,
		       "the peer reads something else");
		checker_allow(p, PAGES);
		ENSURE(morsel_count(p, PAGES, OTHER) == PAGES,
		       "this thread reads something else");
		/* One is enough for all of them, unless something else has flushed. */
		ENSURE(flushes <= 1, "%ld flushes", flushes);
		MUST(fsync(fd));
		ENSURE(!morsel_depopulate(fd, ELSEWHERE, LENGTH), "depopulate");
	}
}

/* By an access, and by a call that makes memory. */
static void another_by(void)
{
	int fd = morsel_make_lazy(GIB, GIB);
	char *p = morsel_map(fd, GIB, BOTH), *q = morsel_map(fd, GIB, BOTH);

	start_slow();
	peer_holds(p, PAGES, OWN);
	let_go_round(fd);
	go_elsewhere(fd);
	/* Nothing is cached of the other mapping. */
	morsel_fill(q, PAGES, OTHER);
	ENSURE(peer_count(p, PAGES, OTHER) == PAGES, "after a fault");
	MUST(fsync(fd));
	ENSURE(!morsel_depopulate(fd, ELSEWHERE, LENGTH), "depopulate");
	peer_holds(p, PAGES, OWN);
	let_go_round(fd);
	go_elsewhere(fd);
	MUST(madvise(q, UNIT, MADV_POPULATE_WRITE));
	ENSURE(peer_count(p, PAGES, 0) == PAGES, "after madvise()");
}

/* Where ticks pay, nobody has to be interrupted for that; sooner or later. */
static void settled_by_ticks(void)
{
	int fd = morsel_make_lazy(GIB, GIB), i;
	char *p = morsel_map(fd, GIB, BOTH);
	long flushes = 1;

	start();
	for (i = 0; i < 6 && flushes; i++) {
		peer_holds(p, PAGES, OWN);
		let_go_round(fd);
		go_elsewhere(fd);
		flushes = vmstat("morsel_lazy_flush_again");
		sleep_ms(50U << i);
		put(fd, 0, PAGES, OTHER);
		ENSURE(peer_count(p, PAGES, OTHER) == PAGES, "something else");
		flushes = vmstat("morsel_lazy_flush_again") - flushes;
		MUST(fsync(fd));
		ENSURE(!morsel_depopulate(fd, ELSEWHERE, LENGTH), "depopulate");
	}
	ENSURE(!flushes, "a flush each time");
	/* Nor do pages wait for ever. */
	ENSURE(!morsel_give_up(fd, 0, LENGTH), "give up");
	for (i = 0; i < 300 && morsel_stat(fd).pages; i++)
		sleep_ms(100);
	ENSURE(!morsel_stat(fd).pool && !morsel_stat(fd).pages,
	       "%llu pages wait", (unsigned long long)morsel_stat(fd).pages);
}

/* What is freed is poisoned: the peer comes by once more, and finds zeroes. */
static void peer_finds_zeroes(const char *p)
{
	checker_forbid(p, PAGES);
	ENSURE(peer_count(p, PAGES, 0) == PAGES, "the peer reads what was freed");
	checker_allow(p, PAGES);
}

/* A page that was given up goes round in the morsel, and leaves it elsewhere. */
static void taken_elsewhere(void)
{
	int fd = morsel_make_lazy(GIB, GIB), i;
	char *p = morsel_map(fd, GIB, BOTH);

	start();
	for (i = 0; i < 5; i++) {
		morsel_epoch_waits(fd, 5 * UNIT);
		peer_holds(p, PAGES, OWN);
		let_go_round(fd);
		go_elsewhere(fd);
		ENSURE(!morsel_depopulate(fd, ELSEWHERE, LENGTH), "depopulate");
		peer_finds_zeroes(p);
		MUST(fsync(fd));
	}
}

/* At the limit there is one flush, and what is freed is nobody's any more. */
static void at_limit(void)
{
	int fd = morsel_make_lazy(GIB, GIB), i;
	char *p = morsel_map(fd, GIB, BOTH);

	start_slow();
	morsel_set("lazy_limit", 0);
	for (i = 0; i < 5; i++) {
		peer_holds(p, PAGES, OWN);
		ENSURE(!morsel_give_up(fd, 0, LENGTH), "give up");
		peer_finds_zeroes(p);
	}
}

static void bounded(void)
{
	int fd = morsel_make_lazy(GIB, GIB), i;
	long flushes = vmstat("morsel_lazy_flush_limit");
	uint64_t most = 0;

	start_slow();
	morsel_set("lazy_limit", 64);
	morsel_map(fd, GIB, BOTH);
	ENSURE(!morsel_populate(fd, 0, 32 * LENGTH), "populate");
	for (i = 0; i < 32; i++) {
		ENSURE(!morsel_give_up(fd, i * LENGTH, LENGTH), "give up");
		if (morsel_stat(fd).pool > most)
			most = morsel_stat(fd).pool;
	}
	ENSURE(most <= 64, "%llu pages wait", (unsigned long long)most);
	flushes = vmstat("morsel_lazy_flush_limit") - flushes;
	ENSURE(flushes && flushes <= 4, "%ld flushes", flushes);
}

/* At a limit what was given up makes room, also for page tables. */
static void makes_room(void)
{
	int fd = morsel_make_lazy(GIB, GIB);
	uint64_t word = OTHER;

	start_slow();
	morsel_map(fd, GIB, BOTH);
	ENSURE(!morsel_populate(fd, 0, 64 * PAGE), "populate");
	ENSURE(!morsel_give_up(fd, 0, 64 * PAGE), "give up");
	morsel_set("limit", morsel_sysfs("pages"));
	ENSURE(pwrite(fd, &word, sizeof(word), ELSEWHERE) == sizeof(word),
	       "pwrite: %m");
}

/* All of it is free when it is destroyed. */
static void destroyed(void)
{
	int fd = morsel_make_lazy(GIB, GIB);
	uint32_t force = MORSEL_FORCE;
	char *p;

	start_slow();
	p = morsel_map(fd, GIB, BOTH);
	peer_holds(p, PAGES, OWN);
	ENSURE(!morsel_give_up(fd, 0, LENGTH), "give up");
	MUST(ioctl(fd, MORSEL_IOC_DESTROY, &force));
	ENSURE(!morsel_stat(fd).pages && !morsel_stat(fd).pool, "%llu pages",
	       (unsigned long long)morsel_stat(fd).pages);
	ENSURE(peer_count(p, PAGES, FAULTED) == PAGES, "something is there");
}

/* What waits for a second at least is looked at before. */
static double began;

static void soon(void)
{
	PREMISE(seconds() - began < 0.8, "it has taken too long");
}

/* What somebody has pinned is not used again. */
static void pinned(void)
{
	int fd = morsel_make_lazy(GIB, GIB), ends[2];
	char *p = morsel_map(fd, GIB, BOTH), byte[PAGE];
	struct iovec v = { p, PAGE };

	began = seconds();
	morsel_fill(p, 1, OWN);
	MUST(pipe(ends));
	ENSURE(vmsplice(ends[1], &v, 1, 0) == PAGE, "vmsplice: %m");
	/* What may be reached is used elsewhere if there is one. */
	morsel_set("lazy_limit", 1);
	ENSURE(!morsel_give_up(fd, 0, PAGE), "give up");
	put(fd, ELSEWHERE, 4, OTHER);
	ENSURE(read(ends[0], byte, PAGE) == PAGE && byte[0] == 0x5a,
	       "the pipe has something else");
	soon();
	ENSURE(morsel_stat(fd).pool == 1, "%llu pages wait",
	       (unsigned long long)morsel_stat(fd).pool);
}

static char *inherited;

static long read_there(long unused)
{
	(void)unused;
	pin_to_cpu(1);
	return (long)*(volatile uint64_t *)inherited;
}

/* A child has the mapping, and nobody waits for its ticks. */
static void child(void)
{
	int fd = morsel_make_lazy(GIB, GIB), i;
	struct stranger other;
	long flushes, found;

	need_cpus(2);
	pin_to_cpu(0);
	inherited = morsel_map(fd, GIB, BOTH);
	morsel_fill(inherited, 1, OWN);
	stranger_start(&other);
	flushes = vmstat("morsel_lazy_flush_context");
	for (i = 0; i < 5; i++) {
		put(fd, 0, 1, OWN);
		found = stranger_call(&other, read_there, 0);
		ENSURE((uint64_t)found == OWN, "it does not read it");
		ENSURE(!morsel_give_up(fd, 0, PAGE), "give up");
		sleep_ms(100);
		/* Settled, if nobody asks the child: it gets around. */
		put(fd, ELSEWHERE + (uint64_t)i * PAGE, 1, ALIEN);
		put(fd, 0, 1, OTHER);
		found = stranger_call(&other, read_there, 0);
		ENSURE((uint64_t)found == OTHER, "it reads something else");
	}
	ENSURE(vmstat("morsel_lazy_flush_context") == flushes + 5,
	       "it was not seen");
	stranger_stop(&other);
	/* Without it there is no flush. */
	flushes += 5;
	ENSURE(!morsel_give_up(fd, 0, PAGE), "give up");
	ENSURE(vmstat("morsel_lazy_flush_context") == flushes, "a flush");
}

static int shared_fd;
static atomic_int begun;

static void give_up_first(void *unused)
{
	(void)unused;
	begun = 1;
	ENSURE(!morsel_give_up(shared_fd, 0, LENGTH), "give up");
}

/* Debug builds: time between a mark and the clear, where the mark comes first. */
static void mark_delay(unsigned int ms)
{
	char text[30];

	snprintf(text, sizeof(text), "%u", ms * 1000);
	if (!write_text("/sys/kernel/debug/ceasefire/mark_delay_us", text))
		ktap_skip("no delays: boot the debug kernel");
}

/* An epoch ends while a page of it is being given up. */
static void epoch_ends(void)
{
	struct worker other;
	char *p;

	need_cpus(3);
	start_slow();
	worker_start(&other, 2, NULL);
	mark_delay(2000);
	shared_fd = morsel_make_lazy(GIB, GIB);
	p = morsel_map(shared_fd, GIB, BOTH);
	morsel_fill(p, 1, OWN);
	put(shared_fd, ELSEWHERE, 1, OWN);
	begun = 0;
	worker_begin(&other, give_up_first, NULL);
	while (!begun)
		sleep_ms(10);
	sleep_ms(250);
	mark_delay(0);
	/* All flush for what is given up elsewhere, and is to be free. */
	ENSURE(!morsel_give_up(shared_fd, ELSEWHERE, PAGE), "give up");
	MUST(fsync(shared_fd));
	peer_touch(p, 1);
	worker_end(&other);
	/* Its page is free to go elsewhere. */
	put(shared_fd, ELSEWHERE + PAGE, 1, ALIEN);
	put(shared_fd, 0, 1, OTHER);
	checker_forbid(p, 1);
	ENSURE(peer_count(p, 1, OTHER) == 1, "the peer reads something else");
	checker_allow(p, 1);
}

/* A device that mirrors the mapping hears of it. */
static void mirrored(void)
{
	int device = mirror_open();
	int fd = morsel_make_lazy(GIB, GIB);
	static uint64_t words[PAGE / 8];
	char *p = morsel_map(fd, GIB, BOTH);
	struct hmm_dmirror_cmd m = { (uintptr_t)p, (uintptr_t)words, 1, 0, 0 };

	morsel_fill(p, 1, OWN);
	MUST(ioctl(device, HMM_DMIRROR_READ, &m));
	ENSURE(words[0] == OWN, "it reads something else");
	morsel_set("lazy_limit", 1);
	ENSURE(!morsel_give_up(fd, 0, PAGE), "give up");
	put(fd, ELSEWHERE, 1, ALIEN);
	put(fd, 0, 1, OTHER);
	MUST(ioctl(device, HMM_DMIRROR_READ, &m));
	ENSURE(words[0] == OTHER, "it reads %llx", (unsigned long long)words[0]);
	close(device);
}

/* Where there is no page there is a hole, byte by byte at the ends. */
static void contents(void)
{
	int fd = morsel_make_lazy(GIB, GIB);
	char *p = morsel_map(fd, GIB, BOTH);

	began = seconds();
	morsel_fill(p, 16, OWN);
	ENSURE(!morsel_give_up(fd, PAGE / 2, 4 * PAGE), "give up");
	ENSURE(got(fd, PAGE, 3, 0) == 3, "no zeroes");
	ENSURE(got(fd, 0, 1, OWN) == 1 && got(fd, 4 * PAGE, 1, 0) == 1,
	       "a part of a page");
	ENSURE(lseek(fd, PAGE, SEEK_DATA) == 4 * PAGE, "SEEK_DATA");
	ENSURE(lseek(fd, 0, SEEK_HOLE) == PAGE, "SEEK_HOLE");
	soon();
	ENSURE(morsel_stat(fd).pool == 3, "%llu pages wait",
	       (unsigned long long)morsel_stat(fd).pool);
	/* Twice, and where nothing is. */
	ENSURE(!morsel_give_up(fd, 0, 4 * PAGE), "give up");
	ENSURE(!morsel_give_up(fd, 100 * UNIT, UNIT), "give up");
	soon();
	ENSURE(morsel_stat(fd).pool == 4, "%llu pages wait",
	       (unsigned long long)morsel_stat(fd).pool);
	put(fd, 0, 4, OTHER);
	ENSURE(got(fd, 0, 4, OTHER) == 4 && got(fd, 5 * PAGE, 11, OWN) == 11,
	       "other data");
	ENSURE(!morsel_give_up(fd, 0, 16 * PAGE), "give up");
	MUST(fsync(fd));
	ENSURE(!morsel_stat(fd).pages, "%llu pages are left",
	       (unsigned long long)morsel_stat(fd).pages);
	/* All ways in which an object ends or shrinks, with marks in its tables. */
	put(fd, 0, 16, OWN);
	ENSURE(!morsel_give_up(fd, 0, 8 * PAGE), "give up");
	MUST(ftruncate(fd, 4 * PAGE));
	MUST(ftruncate(fd, GIB));
	ENSURE(got(fd, 0, 16, 0) == 16, "no zeroes");
	put(fd, 0, 16, OWN);
	ENSURE(!morsel_give_up(fd, 0, 8 * PAGE), "give up");
	ENSURE(!morsel_depopulate(fd, 0, UNIT), "depopulate");
	ENSURE(morsel_count(p, 16, 0) == 16, "no zeroes");
	ENSURE(!morsel_give_up(fd, 0, 8 * PAGE), "give up");
}

/* Several give up, populate and read what they have written. */
static char *all;
static int rounds;

static void go_round(void *arg)
{
	size_t own = *(size_t *)arg;
	uint64_t word = WORD(0x10 + own);
	int i;

	for (i = 0; i < rounds; i++) {
		/* Each has offsets of its own; pages are everybody's. */
		uint64_t at = ((uint64_t)i * 3 + own) % 48 * UNIT + own * LENGTH;

		ENSURE(!morsel_populate(shared_fd, at, LENGTH), "populate");
		morsel_fill(all + at, PAGES, word);
		ENSURE(morsel_count(all + at, PAGES, word) == PAGES,
		       "thread %zu, round %d: not what it has written", own, i);
		ENSURE(!morsel_give_up(shared_fd, at, LENGTH), "give up");
	}
}

static void many(void)
{
	static size_t numbers[] = { 0, 1, 2 };
	struct worker others[2];
	int i;

	need_cpus(3);
	rounds = 1500;
	shared_fd = morsel_make_lazy(GIB, GIB);
	all = morsel_map(shared_fd, GIB, BOTH);
	for (i = 0; i < 2; i++) {
		worker_start(&others[i], i + 1, NULL);
		worker_begin(&others[i], go_round, &numbers[i + 1]);
	}
	pin_to_cpu(0);
	go_round(&numbers[0]);
	for (i = 0; i < 2; i++)
		worker_end(&others[i]);
	/* A page at a time for each, or a few more. */
	ENSURE(morsel_stat(shared_fd).pages <= 4096, "%llu pages",
	       (unsigned long long)morsel_stat(shared_fd).pages);
}

static void refused(void)
{
	struct morsel_geometry g = { .unit = GIB, .base = PAGE, .flags = 2 };
	int fd = memfd_create("case", MFD_MORSEL | MFD_CLOEXEC);
	int plain = morsel_make_of(GIB, GIB);
	struct morsel_range range = { 0, PAGE };
	struct morsel_vec vec = {
		.ranges = (uintptr_t)&range, .nr = 1, .flags = MORSEL_LAZY,
	};

	ENSURE(fd >= 0, "memfd_create: %m");
	REFUSED(ioctl(fd, MORSEL_IOC_GEOMETRY, &g), EINVAL);
	REFUSED(ioctl(plain, MORSEL_IOC_DEPOPULATE, &vec), EINVAL);
	fd = morsel_make_lazy(GIB, GIB);
	REFUSED(ioctl(fd, MORSEL_IOC_POPULATE, &vec), EINVAL);
	REFUSED(ioctl(morsel_reader(fd), MORSEL_IOC_DEPOPULATE, &vec), EPERM);
	range.offset = GIB;
	REFUSED(ioctl(fd, MORSEL_IOC_DEPOPULATE, &vec), EINVAL);
}

int main(int argc, char **argv)
{
	static const struct ktap_case cases[] = {
		{ "quiet", quiet, 0 },
		{ "again", again, 0 },
		{ "another", another, 0 },
		{ "another_by", another_by, 0 },
		{ "settled_by_ticks", settled_by_ticks, 0 },
		{ "taken_elsewhere", taken_elsewhere, 0 },
		{ "at_limit", at_limit, 0 },
		{ "bounded", bounded, 0 },
		{ "makes_room", makes_room, 0 },
		{ "destroyed", destroyed, 0 },
		{ "pinned", pinned, 0 },
		{ "child", child, 0 },
		{ "epoch_ends", epoch_ends, 0 },
		{ "mirrored", mirrored, 0 },
		{ "contents", contents, 0 },
		{ "many", many, 0 },
		{ "refused", refused, 0 },
	};

	return ktap_main(argc, argv, cases, KTAP_COUNT(cases));
}
