// SPDX-License-Identifier: GPL-2.0
/*
 * MORSEL_ASYNC: memory that is taken away at once and given back later. Nobody sees it any
 * more, what waits is bounded, and who needs it gets it.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "checker.h"
#include "ktap.h"
#include "morsels.h"
#include "peer.h"

#define OWN	WORD(0x5a)
#define BOTH	(PROT_READ | PROT_WRITE)
#define PAGES	8
#define UNITS	16
#define DELAY_MS	1000
/* Of memory that comes back by itself. */
#define LIMIT_MS	20000

/* Nothing is left but so many tables, or fewer. */
static void has_only(const struct morsel_stat *stat, unsigned int tables,
		     const char *when)
{
	ENSURE(!stat->pages && !stat->waiting && stat->tables <= tables,
	       "%s: %llu pages, %llu tables, %llu wait", when,
	       (unsigned long long)stat->pages,
	       (unsigned long long)stat->tables,
	       (unsigned long long)stat->waiting);
}

static void is_empty(int fd, const char *when)
{
	struct morsel_stat stat = morsel_stat(fd);

	has_only(&stat, 1, when);
}

static void becomes_empty(int fd)
{
	int ms;

	for (ms = 0; ms < LIMIT_MS && morsel_stat(fd).pages; ms += 10)
		sleep_ms(10);
	/* Tables wait for a flush that lazy CPUs get, which fsync() sends. */
	MUST(fsync(fd));
	is_empty(fd, "later");
}

static void flags(void)
{
	struct morsel_range range = { 0, UNIT };
	struct morsel_vec vec = { .ranges = (uintptr_t)&range, .nr = 1 };
	int fd = morsel_make_of(GIB, GIB);

	vec.flags = MORSEL_ASYNC;
	REFUSED(ioctl(fd, MORSEL_IOC_POPULATE, &vec), EINVAL);
	vec.flags = 1;
	REFUSED(ioctl(fd, MORSEL_IOC_DEPOPULATE, &vec), EINVAL);
	vec.flags = MORSEL_ASYNC | 4;
	REFUSED(ioctl(fd, MORSEL_IOC_DEPOPULATE, &vec), EINVAL);
	vec.flags = MORSEL_ASYNC;
	REFUSED(ioctl(morsel_reader(fd), MORSEL_IOC_DEPOPULATE, &vec), EPERM);
	ENSURE(!ioctl(fd, MORSEL_IOC_DEPOPULATE, &vec) && vec.done == 1,
	       "nothing is there: %m");
	MUST(fsync(fd));
	is_empty(fd, "never filled");
}

/* Whole tables and single pages: zeroes at once, memory a little later. */
static void comes_back(void)
{
	int fd = morsel_make_of(GIB, GIB);
	char *p = morsel_map(fd, GIB, BOTH);

	ENSURE(!morsel_populate(fd, 0, (UNITS + 1) * UNIT), "populate");
	morsel_fill(p, (UNITS + 1) * 512, OWN);
	ENSURE(!morsel_leave(fd, PAGE, UNITS * UNIT), "depopulate");
	ENSURE(morsel_count(p, UNITS * 512 + 1, OWN) == 1, "not all has gone");
	ENSURE(morsel_count(p + UNITS * UNIT + PAGE, 511, OWN) == 511,
	       "too much has gone");
	ENSURE(!morsel_leave(fd, 0, GIB), "depopulate");
	becomes_empty(fd);
}

/* The peer holds translations of what cleaners keep for a while, and reaches none of it. */
static void unreachable_of(size_t unit, uint64_t length)
{
	int fd = morsel_make_of(unit, unit);
	char *p = morsel_map(fd, unit, BOTH);

	need_cpus(2);
	pin_to_cpu(0);
	peer_start(1);
	morsel_clean_delay(DELAY_MS);
	morsel_fill(p, PAGES, OWN);
	peer_touch(p, PAGES);
	ENSURE(peer_count(p, PAGES, OWN) == PAGES, "the peer does not read it");
	ENSURE(!morsel_leave(fd, 0, length), "depopulate");
	checker_forbid(p, PAGES);
	ENSURE(!peer_count(p, PAGES, OWN), "the peer still reads it");
	checker_allow(p, PAGES);
	ENSURE(peer_write(p, PAGES, OWN) == PAGES, "the peer cannot write");
	morsel_clean_delay(0);
	MUST(fsync(fd));
	ENSURE(peer_count(p, PAGES, OWN) == PAGES,
	       "the peer has lost what it has written since");
}

static void unreachable(void)
{
	unreachable_of(UNIT, PAGES * PAGE);
}

static void unreachable_gib(void)
{
	unreachable_of(GIB, UNIT);
}

/*
 * Cleaners have it for a while. All units but the first one are tables, of that one page by
 * page: a cleaner that has the tables finds that there is more.
 */
static int waits(unsigned int units)
{
	int fd = morsel_make_of(GIB, GIB);

	morsel_clean_delay(DELAY_MS);
	ENSURE(!morsel_populate(fd, PAGE, units * UNIT - PAGE), "populate");
	ENSURE(!morsel_leave(fd, PAGE, units * UNIT - PAGE), "depopulate");
	PREMISE(morsel_stat(fd).waiting, "it is free by now");
	return fd;
}

static void *sync_once(void *fd)
{
	return fsync(*(int *)fd) ? fd : NULL;
}

/* There is no room for it, but in what waits. */
static void *populate_once(void *fd)
{
	return morsel_populate(*(int *)fd, GIB / 2, 300 * PAGE) ? fd : NULL;
}

/* Cleaners have the tables, another thread has taken the pages, for a while longer. */
static int waits_for_others(pthread_t *other, void *(*takes)(void *))
{
	static int fd;

	fd = waits(UNITS);
	sleep_ms(DELAY_MS * 3 / 2);
	/* Tables for half of it are not there yet. */
	morsel_set("limit", morsel_sysfs("pages") + 2);
	ENSURE(!pthread_create(other, NULL, takes, &fd), "no thread");
	sleep_ms(DELAY_MS / 10);
	return fd;
}

static void synced_of(void *(*takes)(void *), unsigned int pages)
{
	long limit = morsel_sysfs("limit");
	struct morsel_stat stat;
	pthread_t other;
	void *failed;
	int fd = waits_for_others(&other, takes);

	MUST(fsync(fd));
	stat = morsel_stat(fd);
	morsel_clean_delay(0);
	morsel_set("limit", limit);
	pthread_join(other, &failed);
	ENSURE(!failed, "the other thread has failed");
	/* The root, and the table of the first unit; and what the other one has made. */
	stat.pages -= stat.pages < pages ? stat.pages : pages;
	has_only(&stat, pages ? 3 : 2, "after fsync()");
}

static void synced(void)
{
	synced_of(sync_once, 0);
}

/* The other one has taken a piece because it needs the memory. */
static void synced_at_limit(void)
{
	synced_of(populate_once, 300);
}

/* A work item has taken the tables of before. */
static void settled(void)
{
	int fd = morsel_make_of(GIB, GIB);
	struct morsel_stat stat;

	ENSURE(!morsel_populate(fd, 0, UNITS * UNIT), "populate");
	morsel_clean_delay(DELAY_MS);
	ENSURE(!morsel_depopulate(fd, 0, UNITS * UNIT), "depopulate");
	/* It comes after a second. */
	sleep_ms(1000 + DELAY_MS / 2);
	PREMISE(morsel_stat(fd).tables == UNITS + 1, "they are free by now");
	MUST(fsync(fd));
	stat = morsel_stat(fd);
	morsel_clean_delay(0);
	has_only(&stat, 1, "after fsync()");
}

static void destroyed(void)
{
	struct morsel_stat stat;
	uint32_t none = 0;
	pthread_t other;
	void *failed;
	int fd = waits_for_others(&other, sync_once), err;

	err = ioctl(fd, MORSEL_IOC_DESTROY, &none);
	stat = morsel_stat(fd);
	morsel_clean_delay(0);
	pthread_join(other, &failed);
	ENSURE(!failed, "fsync has failed");
	ENSURE(!err, "destroy: error %d", err);
	has_only(&stat, 1, "destroyed");
}

/* The object goes while cleaners have pieces of it. */
static void closed(void)
{
	long before = morsel_sysfs("pages");
	int i;

	for (i = 0; i < 4; i++) {
		int fd = waits(UNITS);

		sleep_ms(i * DELAY_MS / 2);
		close(fd);
	}
	morsel_clean_delay(0);
	ENSURE(morsel_sysfs("pages") <= before, "%ld pages are left",
	       morsel_sysfs("pages") - before);
}

/*
 * The same when two cleaners have all of it: the first one has seen that there is more, and
 * queues itself again while it is waited for. The kernel's log says if it is there too long.
 */
static void closed_again(void)
{
	const unsigned int units = 40;
	int fd = morsel_make_of(GIB, GIB);

	morsel_clean_delay(DELAY_MS);
	morsel_set("limit", morsel_sysfs("pages") + 16 * units * 512);
	ENSURE(!morsel_populate(fd, 0, units * UNIT), "populate");
	ENSURE(!morsel_leave(fd, 0, units * UNIT), "depopulate");
	PREMISE(morsel_stat(fd).waiting, "it is free by now");
	sleep_ms(DELAY_MS * 5 / 4);
	close(fd);
	/* With the delay: it would wait until here. */
	sleep_ms(DELAY_MS / 2);
	morsel_clean_delay(0);
}

/* However many calls: an eighth of what morsels may have. */
static void bounded(void)
{
	long limit = morsel_sysfs("limit");
	int fd = morsel_make_of(GIB, GIB), i;
	uint64_t most = 0;

	morsel_clean_delay(DELAY_MS);
	morsel_set("limit", morsel_sysfs("pages") + 16 * 1024);
	for (i = 0; i < 6; i++) {
		ENSURE(!morsel_populate(fd, 0, 3 * UNIT), "populate");
		ENSURE(!morsel_leave(fd, 0, 3 * UNIT), "depopulate");
		if (morsel_stat(fd).waiting > most)
			most = morsel_stat(fd).waiting;
	}
	morsel_clean_delay(0);
	morsel_set("limit", limit);
	PREMISE(most, "it is free by now");
	ENSURE((long)most <= 2048 + morsel_sysfs("pages") / 8, "%llu pages wait",
	       (unsigned long long)most);
	MUST(fsync(fd));
	is_empty(fd, "in the end");
}

/* What waits is no reason to have no memory. */
static void makes_room(void)
{
	long limit = morsel_sysfs("limit");
	int fd = waits(3), err;

	morsel_set("limit", morsel_sysfs("pages") + 100);
	err = morsel_populate(fd, 0, 2 * UNIT);
	morsel_set("limit", limit);
	morsel_clean_delay(0);
	ENSURE(!err, "populate: error %d", err);
}

static atomic_bool over;

struct user {
	int fd;
	unsigned int number;
	const char *wrong;
};

/* A part of the object is its own: filled, taken away, and empty then. */
static void *use(void *arg)
{
	struct user *user = arg;
	uint64_t at = user->number * 4 * UNIT;
	char *p = mmap(NULL, GIB, BOTH, MAP_SHARED, user->fd, 0);
	unsigned int round;

	if (p == MAP_FAILED) {
		user->wrong = "mmap";
		return NULL;
	}
	for (round = 0; !over; round++) {
		uint64_t word = WORD(user->number + 1);

		if (morsel_populate(user->fd, at, 2 * UNIT))
			user->wrong = "populate";
		morsel_fill(p + at, 600, word);
		if (morsel_count(p + at, 600, word) != 600)
			user->wrong = "it reads something else";
		if (morsel_leave(user->fd, at + round % 2 * PAGE, 2 * UNIT))
			user->wrong = "depopulate";
		if (morsel_count(p + at, 600, 0) < 599)
			user->wrong = "it has not gone";
		if (round % 8 == 7 && fsync(user->fd))
			user->wrong = "fsync";
		if (user->wrong)
			break;
	}
	munmap(p, GIB);
	return NULL;
}

#define USERS	3

static void storm(void)
{
	struct user users[USERS] = { };
	int fd = morsel_make_of(GIB, GIB);
	pthread_t threads[USERS];
	unsigned int i;

	for (i = 0; i < USERS; i++) {
		users[i] = (struct user){ .fd = fd, .number = i };
		ENSURE(!pthread_create(&threads[i], NULL, use, &users[i]),
		       "no thread");
	}
	sleep_ms(3000);
	over = true;
	for (i = 0; i < USERS; i++)
		pthread_join(threads[i], NULL);
	for (i = 0; i < USERS; i++)
		ENSURE(!users[i].wrong, "thread %u: %s", i, users[i].wrong);
	ENSURE(!morsel_leave(fd, 0, GIB), "depopulate");
	becomes_empty(fd);
}

int main(int argc, char **argv)
{
	static const struct ktap_case cases[] = {
		{ "flags", flags, 0 },
		{ "comes_back", comes_back, 0 },
		{ "unreachable", unreachable, 0 },
		{ "unreachable_gib", unreachable_gib, 0 },
		{ "synced", synced, 0 },
		{ "synced_at_limit", synced_at_limit, 0 },
		{ "settled", settled, 0 },
		{ "destroyed", destroyed, 0 },
		{ "closed", closed, 0 },
		{ "closed_again", closed_again, 0 },
		{ "bounded", bounded, 0 },
		{ "makes_room", makes_room, 0 },
		{ "storm", storm, 300 },
	};

	return ktap_main(argc, argv, cases, KTAP_COUNT(cases));
}
