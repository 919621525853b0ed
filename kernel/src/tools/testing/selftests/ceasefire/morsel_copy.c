// SPDX-License-Identifier: GPL-2.0
/*
 * Copies of morsels: both have what the origin had, and each keeps what is written to it, whoever
 * writes in whatever way (M12). Nothing is left when both have gone.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "env.h"
#include "file.h"
#include "ktap.h"
#include "morsels.h"
#include "peer.h"
#include "worker.h"

#define BOTH	(PROT_READ | PROT_WRITE)
#define OWN	WORD(0x5a)
#define OTHER	WORD(0x33)
#define PAGES	16

#define units	morsel_units
#define UNITS	morsel_nr_units()

/* An origin of a unit with some pages, and its mapping. */
static int make(uint64_t unit, char **p)
{
	int fd = morsel_make_of(unit, unit);

	*p = morsel_map(fd, unit, BOTH);
	morsel_fill(*p, PAGES, OWN);
	return fd;
}

static int copy_of(int fd, uint64_t unit, char **q)
{
	int copy = morsel_copy(fd);

	*q = morsel_map(copy, unit, BOTH);
	return copy;
}

static void expect(const char *p, size_t pages, uint64_t word, const char *what)
{
	size_t got = morsel_count(p, pages, word);

	ENSURE(got == pages, "%s: %zu of %zu pages", what, got, pages);
}

/* Who writes changes his own one only; so does who writes where nothing was. */
static void each_its_own(void)
{
	size_t i;

	for (i = 0; i < UNITS; i++) {
		char *p, *q;
		int fd = make(units[i], &p), copy = copy_of(fd, units[i], &q);

		expect(q, PAGES, OWN, "the copy");
		morsel_fill(p, 4, OTHER);
		morsel_fill(q + 4 * PAGE, 4, OTHER);
		morsel_fill(p + 100 * PAGE, 2, OTHER);
		morsel_fill(q + 200 * PAGE, 2, OTHER);
		expect(p, 4, OTHER, "the origin's own");
		expect(q, 4, OWN, "the copy of that");
		expect(q + 4 * PAGE, 4, OTHER, "the copy's own");
		expect(p + 4 * PAGE, 4, OWN, "the origin of that");
		expect(p + 8 * PAGE, PAGES - 8, OWN, "the rest");
		expect(q + 8 * PAGE, PAGES - 8, OWN, "the rest of the copy");
		expect(p + 100 * PAGE, 2, OTHER, "the origin's new pages");
		expect(q + 200 * PAGE, 2, OTHER, "the copy's new pages");
		expect(q + 100 * PAGE, 2, 0, "the copy has the origin's");
		expect(p + 200 * PAGE, 2, 0, "the origin has the copy's");
		close(fd);
		close(copy);
		MUST(munmap(p, units[i]));
		MUST(munmap(q, units[i]));
	}
}

/* By write(), and by a hole that ends in a page. */
static void by_calls(void)
{
	size_t i;

	for (i = 0; i < UNITS; i++) {
		char *p, *q;
		int fd = make(units[i], &p), copy = copy_of(fd, units[i], &q);
		uint64_t word = OTHER;

		ENSURE(pwrite(fd, &word, 8, 0) == 8 &&
		       pwrite(copy, &word, 8, PAGE) == 8, "pwrite: %m");
		expect(p, 1, OTHER, "the origin's own");
		expect(q, 1, OWN, "the copy of that");
		expect(q + PAGE, 1, OTHER, "the copy's own");
		expect(p + PAGE, 1, OWN, "the origin of that");
		/* From the middle of a page to the middle of another one. */
		ENSURE(!morsel_depopulate(fd, 4 * PAGE + 8, 2 * PAGE), "depopulate");
		ENSURE(!morsel_depopulate(copy, 8 * PAGE + 8, 2 * PAGE), "depopulate");
		expect(q + 4 * PAGE, 4, OWN, "what was taken from the origin");
		expect(p + 8 * PAGE, 4, OWN, "what was taken from the copy");
		expect(p + 4 * PAGE, 1, OWN, "what was left of the first page");
		expect(p + 5 * PAGE, 2, 0, "what was taken");
		expect(q + 8 * PAGE, 1, OWN, "what was left of the first page");
		expect(q + 9 * PAGE, 2, 0, "what was taken");
		close(fd);
		close(copy);
		MUST(munmap(p, units[i]));
		MUST(munmap(q, units[i]));
	}
}

/* The last page is no whole one: what is behind the end of it is the copy's, too. */
static void behind_the_end(void)
{
	size_t i;

	for (i = 0; i < UNITS; i++) {
		char *p, *q;
		int fd = make(units[i], &p), copy;

		MUST(ftruncate(fd, 3 * PAGE + 100));
		*(uint64_t *)(p + 3 * PAGE + 200) = OWN;
		copy = copy_of(fd, units[i], &q);
		/* Nothing, and no more than the end. */
		ENSURE(!morsel_depopulate(fd, 3 * PAGE + 100, 0), "depopulate");
		ENSURE(*(uint64_t *)(q + 3 * PAGE + 200) == OWN, "taken from the copy");
		ENSURE(!morsel_depopulate(fd, 3 * PAGE + 50, 50), "depopulate");
		expect(q, 4, OWN, "the copy");
		MUST(ftruncate(fd, 2 * PAGE + 100));
		expect(q, 4, OWN, "the copy of what got smaller");
		expect(p, 3, OWN, "what got smaller");
		close(fd);
		close(copy);
		MUST(munmap(p, units[i]));
		MUST(munmap(q, units[i]));
	}
}

/* What is taken from one in whole tables stays for the other, and a copy of a copy is one. */
static void whole_tables(void)
{
	struct morsel_range range = { 6 * UNIT + PAGE, 3 * UNIT };
	struct morsel_vec vec = { .nr = 1, .flags = MORSEL_ASYNC };
	int fd = morsel_make_of(GIB, GIB), copy, third;
	char *p = morsel_map(fd, GIB, BOTH), *q, *r;
	size_t i;

	for (i = 0; i < 100; i++)
		morsel_fill(p + i * UNIT, 2, OWN);
	copy = copy_of(fd, GIB, &q);
	third = copy_of(copy, GIB, &r);
	morsel_fill(q, 1, OTHER);
	/* More than are put at a time. */
	ENSURE(!morsel_depopulate(fd, 0, 90 * UNIT), "depopulate");
	ENSURE(!morsel_depopulate(copy, 10 * UNIT + PAGE, 90 * UNIT), "depopulate");
	for (i = 0; i < 90; i++)
		expect(p + i * UNIT, 2, 0, "what was taken from the origin");
	for (i = 0; i < 100; i++)
		expect(r + i * UNIT, 2, OWN, "the third");
	expect(q, 1, OTHER, "the copy's own");
	expect(q + 5 * UNIT, 2, OWN, "what was not taken from the copy");
	expect(q + 10 * UNIT, 1, OWN, "the page before");
	expect(q + 10 * UNIT + PAGE, 1, 0, "what was taken from the copy");
	expect(q + 50 * UNIT, 2, 0, "what was taken from the copy");
	/* By those who free later, and for good. */
	vec.ranges = (uintptr_t)&range;
	MUST(ioctl(third, MORSEL_IOC_DEPOPULATE, &vec));
	MUST(fsync(third));
	expect(r + 7 * UNIT, 2, 0, "what was taken from the third");
	expect(q + 7 * UNIT, 2, OWN, "the copy of that");
	MUST(ioctl(fd, MORSEL_IOC_DESTROY, &(uint32_t){ MORSEL_FORCE }));
	MUST(ftruncate(third, 5 * UNIT + 3 * PAGE));
	MUST(ftruncate(third, GIB));
	expect(r + 4 * UNIT, 2, OWN, "before the end");
	expect(r + 6 * UNIT, 2, 0, "behind the end");
	expect(q + 6 * UNIT, 2, OWN, "the copy, behind the end of the third");
	close(fd);
	close(copy);
	close(third);
}

static uint64_t used(void)
{
	return (uint64_t)morsel_sysfs("pages");
}

/* In any order they go, nothing is left, and nothing is taken from those who stay. */
/*
 * What a copy shares is not freed with what it gives up: nobody waits for that, and no worker looks
 * for it for ever.
 */
static void left_to_others(void)
{
	static const size_t sizes[][2] = { { 2 * UNIT, UNIT }, { GIB, GIB } };
	char *p, *q;
	size_t i, n;
	int fd, copy;

	for (i = 0; i < KTAP_COUNT(sizes); i++) {
		fd = morsel_make_of(sizes[i][0], sizes[i][1]);
		p = morsel_map(fd, sizes[i][0], BOTH);
		morsel_fill(p, 2 * UNIT / PAGE, OWN);
		copy = copy_of(fd, sizes[i][0], &q);
		/* One of its own goes as well. */
		morsel_fill(q + UNIT, 1, OTHER);
		ENSURE(!morsel_leave(copy, 0, 2 * UNIT), "depopulate");
		for (n = 0; morsel_stat(copy).waiting && n < 100; n++)
			sleep_ms(100);
		ENSURE(!morsel_stat(copy).waiting, "%llu wait",
		       (unsigned long long)morsel_stat(copy).waiting);
		expect(q, 2 * UNIT / PAGE, 0, "the copy");
		expect(p, 2 * UNIT / PAGE, OWN, "the origin");
		close(fd);
		close(copy);
	}
}

static void outlives(void)
{
	uint64_t before;
	size_t i, order;

	close(morsel_make(UNIT));
	for (order = 0; order < 4; order++) {
		before = used();
		for (i = 0; i < UNITS; i++) {
			char *p, *q, *r;
			int fd = make(units[i], &p), copy, third;

			copy = copy_of(fd, units[i], &q);
			third = copy_of(order & 1 ? copy : fd, units[i], &r);
			morsel_fill(q, 2, OTHER);
			MUST(munmap(p, units[i]));
			close(fd);
			if (order & 2)
				ENSURE(!morsel_depopulate(copy, PAGE, 3 * PAGE),
				       "depopulate");
			expect(q + 4 * PAGE, PAGES - 4, OWN, "the copy");
			MUST(munmap(q, units[i]));
			close(copy);
			expect(r, PAGES, OWN, "the third");
			morsel_fill(r, PAGES, OTHER);
			expect(r, PAGES, OTHER, "the third's own");
			MUST(munmap(r, units[i]));
			close(third);
		}
		/* Its page tables go by RCU, and are counted at once. */
		ENSURE(used() == before, "%lld pages are left",
		       (long long)(used() - before));
	}
}

/* A device writes by the kernel's mapping of a page. */
static void direct_io(void)
{
	struct tfile file;
	size_t i;

	file_make(&file, ON_DISK, PAGES, 0x33);
	MUST(fsync(file.fd));
	ENSURE(!fcntl(file.fd, F_SETFL, fcntl(file.fd, F_GETFL) | O_DIRECT),
	       "O_DIRECT: %m");
	for (i = 0; i < UNITS; i++) {
		char *p, *q;
		int fd = make(units[i], &p), copy = copy_of(fd, units[i], &q);

		/* Linked and readable, so that no fault makes it its own. */
		expect(q, PAGES, OWN, "the copy");
		expect(p, PAGES, OWN, "the origin");
		ENSURE(pread(file.fd, p, 4 * PAGE, 0) == 4 * PAGE, "pread: %m");
		expect(q, PAGES, OWN, "the copy of what was read to");
		expect(p, 4, OTHER, "what was read");
		ENSURE(pread(file.fd, q + 4 * PAGE, 4 * PAGE, 0) == 4 * PAGE,
		       "pread: %m");
		expect(p + 4 * PAGE, 4, OWN, "the origin of what was read to");
		close(fd);
		close(copy);
		MUST(munmap(p, units[i]));
		MUST(munmap(q, units[i]));
	}
}

static long futex(void *word, int op, uint32_t value, const struct timespec *limit)
{
	return syscall(SYS_futex, word, op, value, limit, NULL, 0);
}

static atomic_long woken;

static void wait_there(void *word)
{
	struct timespec limit = { .tv_sec = 60 };

	woken = futex(word, FUTEX_WAIT, (uint32_t)OWN, &limit) ? -errno : 1;
}

/* Who waits at a page that another one has left behind is woken by his own morsel only. */
static void waits_apart(void)
{
	struct worker other;
	size_t i;

	for (i = 0; i < UNITS; i++) {
		char *p, *q;
		int fd = make(units[i], &p), copy = copy_of(fd, units[i], &q), n;

		ENSURE(!morsel_depopulate(fd, 0, units[i]), "depopulate");
		morsel_fill(p, 1, OWN);
		woken = 0;
		worker_start(&other, -1, NULL);
		worker_begin(&other, wait_there, q);
		sleep_ms(300);
		ENSURE(!woken, "it does not wait: %ld", woken);
		ENSURE(!futex(p, FUTEX_WAKE, 1, NULL),
		       "unit %zu: somebody else's waiter was woken", i);
		for (n = 0; n < 600 && !woken; n++) {
			futex(q, FUTEX_WAKE, 1, NULL);
			sleep_ms(100);
		}
		ENSURE(woken == 1, "not woken: %ld", woken);
		worker_end(&other);
		worker_stop(&other);
		close(fd);
		close(copy);
		MUST(munmap(p, units[i]));
		MUST(munmap(q, units[i]));
	}
}

/* Memory that is short takes nothing that others lead to. */
static void under_pressure(void)
{
	size_t i;

	need_cpus(2);
	peer_start(1);
	for (i = 0; i < 2; i++) {
		int fd = morsel_make_of(units[i], units[i]), copy;
		char *q;

		ENSURE(!morsel_populate(fd, 0, PAGES * PAGE), "populate");
		copy = copy_of(fd, units[i], &q);
		peer_touch(q, PAGES);
		ENSURE(write_text("/proc/sys/vm/drop_caches", "2"),
		       "drop_caches: %m");
		ENSURE(morsel_stat(fd).pages == PAGES, "%llu pages of the origin",
		       (unsigned long long)morsel_stat(fd).pages);
		/* What was freed is poisoned. */
		ENSURE(peer_count(q, PAGES, 0) == PAGES, "the copy has no zeroes");
		close(copy);
		close(fd);
		MUST(munmap(q, units[i]));
	}
}

static int refused(int from, int to)
{
	return ioctl(to, FICLONE, from) ? errno : 0;
}

static void bad_input(void)
{
	int fd = morsel_make_of(GIB, GIB), lazy = morsel_make_lazy(UNIT, UNIT);
	int to = morsel_make_of(0, 0), used_once = morsel_make_of(GIB, GIB);
	int other = morsel_make_of(0, UNIT), reader, named, gone;
	int sized = morsel_make_of(GIB, GIB);
	struct file_clone_range part = { .src_fd = fd, .src_length = UNIT };
	char *p = morsel_map(used_once, GIB, BOTH);

	morsel_fill(p, 1, OWN);
	MUST(munmap(p, GIB));
	ENSURE(refused(fd, used_once) == EINVAL, "one that has a size");
	MUST(ftruncate(used_once, 0));
	ENSURE(refused(fd, used_once) == EINVAL, "one that was used");
	MUST(ftruncate(sized, 0));
	ENSURE(refused(fd, sized) == EINVAL, "one that had a size");
	ENSURE(refused(fd, other) == EINVAL, "another layout");
	ENSURE(refused(fd, fd) == EINVAL, "itself");
	ENSURE(refused(lazy, to) == EOPNOTSUPP, "one that is lazy");
	ENSURE(refused(to, other) == EINVAL, "one without a layout");
	ENSURE(ioctl(to, FICLONERANGE, &part) && errno == EINVAL, "a part: %m");
	reader = morsel_reader(to);
	ENSURE(refused(fd, reader) == EBADF, "one that only reads");
	gone = morsel_make_of(GIB, GIB);
	MUST(ioctl(gone, MORSEL_IOC_DESTROY, &(uint32_t){ 0 }));
	ENSURE(refused(gone, to) == ENODEV, "one that was destroyed");
	MUST(unshare(CLONE_NEWNS));
	MUST(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL));
	MUST(mount("ceasefire", "/mnt", "morsel", 0, NULL));
	named = (int)MUST(open("/mnt/a", O_RDWR | O_CREAT | O_CLOEXEC, 0600));
	ENSURE(refused(fd, named) == EXDEV, "another file system");
	close(named);
	MUST(umount("/mnt"));
	/* None of that has used it. */
	ENSURE(!refused(fd, to), "%m");
	ENSURE(morsel_stat(to).unit == GIB, "another unit");
}

/* As cp does it: with names, and by a call that copies ranges. */
static void with_names(void)
{
	uint64_t word = OWN, got = 0;
	int from, to;

	close(morsel_make(UNIT));
	MUST(unshare(CLONE_NEWNS));
	MUST(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL));
	MUST(mount("ceasefire", "/mnt", "morsel", 0, NULL));
	from = (int)MUST(open("/mnt/a", O_RDWR | O_CREAT | O_CLOEXEC, 0600));
	MUST(ftruncate(from, 3 * UNIT));
	ENSURE(pwrite(from, &word, 8, 2 * UNIT) == 8, "pwrite: %m");
	to = (int)MUST(open("/mnt/b", O_RDWR | O_CREAT | O_CLOEXEC, 0600));
	ENSURE(copy_file_range(from, NULL, to, NULL, 1 << 30, 0) == 3 * UNIT,
	       "copy_file_range: %m");
	close(from);
	MUST(unlink("/mnt/a"));
	ENSURE(pread(to, &got, 8, 2 * UNIT) == 8 && got == OWN, "other data");
	ENSURE(lseek(to, 0, SEEK_DATA) == 2 * UNIT, "SEEK_DATA: %m");
	close(to);
	MUST(umount("/mnt"));
}

/* The limit is reached: the call fails, and it was as if nothing had been tried. */
static void at_limit(void)
{
	long limit = morsel_sysfs("limit");
	int fd = morsel_make_of(512 * GIB, 512 * GIB), to;
	char *p = morsel_map(fd, 512 * GIB, BOTH);
	uint64_t before;
	size_t i;

	for (i = 0; i < 8; i++)
		morsel_fill(p + i * GIB, 1, OWN);
	to = morsel_make_of(0, 0);
	before = used();
	morsel_set("limit", (long)before + 4);
	ENSURE(refused(fd, to) == ENOMEM, "above the limit: %m");
	ENSURE(used() == before && !morsel_stat(to).tables, "%llu tables are left",
	       (unsigned long long)morsel_stat(to).tables);
	morsel_fill(p, 1, OTHER);
	morsel_set("limit", limit);
	ENSURE(!refused(fd, to), "below the limit: %m");
	p = morsel_map(to, 512 * GIB, BOTH);
	expect(p, 1, OTHER, "the first page");
	expect(p + 7 * GIB, 1, OWN, "the last page");
	/* A page of its own, too, is paid for. */
	morsel_set("limit", (long)used());
	ENSURE(!probe_write(p, OWN), "a page above the limit");
	morsel_set("limit", limit);
	ENSURE(probe_write(p, OWN), "the same below it");
}

int main(int argc, char **argv)
{
	static const struct ktap_case cases[] = {
		{ "each_its_own", each_its_own, 0 },
		{ "by_calls", by_calls, 0 },
		{ "behind_the_end", behind_the_end, 0 },
		{ "whole_tables", whole_tables, 0 },
		{ "left_to_others", left_to_others, 0 },
		{ "outlives", outlives, 0 },
		{ "direct_io", direct_io, 0 },
		{ "waits_apart", waits_apart, 300 },
		{ "under_pressure", under_pressure, 0 },
		{ "bad_input", bad_input, 0 },
		{ "with_names", with_names, 0 },
		{ "at_limit", at_limit, 0 },
	};

	return ktap_main(argc, argv, cases, KTAP_COUNT(cases));
}
