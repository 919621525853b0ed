// SPDX-License-Identifier: GPL-2.0
/*
 * Morsels under pressure (M11): pages of zeroes and tables without a page are taken, and
 * nothing that anybody has written.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "env.h"
#include "ktap.h"
#include "morsels.h"
#include "peer.h"
#include "stranger.h"
#include "worker.h"

#define BOTH	(PROT_READ | PROT_WRITE)
#define PAGES	64
#define OWN	0x5a5a5a5a5a5a5a5aULL
#define DELAY_MS	400

/* What the kernel does when memory is short, for all that it can do without. */
static void press(void *unused)
{
	(void)unused;
	ENSURE(write_text("/proc/sys/vm/drop_caches", "2"), "drop_caches: %m");
}

/* For so long, when it is over. */
static volatile double pressed;

static void press_for(void *unused)
{
	double begin = seconds();

	press(unused);
	pressed = seconds() - begin;
}

/* Debug builds: time between the look at pages and the flush; skips without. */
static void steal_delay(unsigned int ms)
{
	char text[30];

	snprintf(text, sizeof(text), "%u", ms * 1000);
	if (!write_text("/sys/kernel/debug/ceasefire/steal_delay_us", text))
		ktap_skip("no delays: boot the debug kernel");
}

/* Pages that are there, and were never written to. */
static char *zeroes(int fd, uint64_t size, size_t pages)
{
	char *p = morsel_map(fd, size, BOTH);

	ENSURE(!morsel_populate(fd, 0, pages * PAGE), "populate");
	ENSURE(morsel_stat(fd).pages == pages, "%llu pages",
	       (unsigned long long)morsel_stat(fd).pages);
	return p;
}

static void expect_pages(int fd, uint64_t pages)
{
	ENSURE(morsel_stat(fd).pages == pages, "%llu pages are left, not %llu",
	       (unsigned long long)morsel_stat(fd).pages,
	       (unsigned long long)pages);
}

/* Who has written something keeps it, and the others find zeroes again. */
static void taken(void)
{
	int fd = morsel_make_of(UNIT, UNIT);
	char *p = zeroes(fd, UNIT, 512);
	long stolen = vmstat("morsel_steal");
	uint64_t word = OWN, read = 0;

	morsel_fill(p, 1, OWN);
	p[100 * PAGE + PAGE - 1] = 1;
	ENSURE(pwrite(fd, &word, sizeof(word), 511 * PAGE) == sizeof(word),
	       "pwrite: %m");
	press(NULL);
	expect_pages(fd, 3);
	ENSURE(vmstat("morsel_steal") >= stolen + 509, "%ld were counted",
	       vmstat("morsel_steal") - stolen);
	ENSURE(morsel_count(p, 1, OWN) == 1 && p[100 * PAGE + PAGE - 1] == 1 &&
	       pread(fd, &read, sizeof(read), 511 * PAGE) == sizeof(read) &&
	       read == OWN, "what was written is lost");
	ENSURE(morsel_count(p + PAGE, 99, 0) == 99, "there are no zeroes");
	morsel_fill(p, 512, OWN);
	press(NULL);
	ENSURE(morsel_count(p, 512, OWN) == 512, "what was written is lost");
}

/* The peer has the pages cached, and writes to them when they have gone. */
static void written_later(void)
{
	int fd = morsel_make_of(UNIT, UNIT);
	char *p = zeroes(fd, UNIT, PAGES);

	need_cpus(2);
	peer_start(1);
	/* So that it writes without a walk. */
	ENSURE(peer_write(p, PAGES, OWN) == PAGES &&
	       peer_write(p, PAGES, 0) == PAGES, "the peer cannot write");
	press(NULL);
	expect_pages(fd, 0);
	ENSURE(peer_write(p, PAGES, OWN) == PAGES, "the peer cannot write");
	ENSURE(morsel_count(p, PAGES, OWN) == PAGES,
	       "%zu of %d pages have what the peer has written",
	       morsel_count(p, PAGES, OWN), PAGES);
}

/* The same between the look and the flush. */
static void written_meanwhile(void)
{
	int fd = morsel_make_of(UNIT, UNIT);
	char *p = zeroes(fd, UNIT, 32);
	struct worker other;
	bool in_time;

	need_cpus(3);
	worker_start(&other, 2, NULL);
	peer_start(1);
	ENSURE(peer_write(p, 32, OWN) == 32 && peer_write(p, 32, 0) == 32,
	       "the peer cannot write");
	steal_delay(DELAY_MS);
	worker_begin(&other, press_for, NULL);
	sleep_ms(DELAY_MS / 4);
	ENSURE(peer_write(p, 32, OWN) == 32, "the peer cannot write");
	in_time = !pressed;
	steal_delay(0);
	worker_end(&other);
	ENSURE(morsel_count(p, 32, OWN) == 32,
	       "%zu of 32 pages have what the peer has written",
	       morsel_count(p, 32, OWN));
	PREMISE(in_time, "the peer was too late");
	/* The kernel waits only if it has found zeroes; its clock may be a little fast. */
	PREMISE(pressed > DELAY_MS / 2000.0, "no zeroes were found in %.3f s",
		pressed);
}

/* A pipe has the page, and sees what is written to it later. */
static void pinned(void)
{
	int fd = morsel_make_of(UNIT, UNIT), ends[2];
	char *p = zeroes(fd, UNIT, PAGES);
	struct iovec v = { p + PAGE, PAGE };
	uint64_t words[PAGE / sizeof(uint64_t)];

	MUST(pipe(ends));
	ENSURE(vmsplice(ends[1], &v, 1, 0) == PAGE, "vmsplice: %m");
	press(NULL);
	expect_pages(fd, 1);
	morsel_fill(p + PAGE, 1, OWN);
	ENSURE(read(ends[0], words, PAGE) == PAGE && words[0] == OWN,
	       "the page of the pipe is another one");
}

/* Tables without a page go, others stay. */
static void unused_tables(void)
{
	int fd = morsel_make_of(2 * GIB, GIB);
	char *p = morsel_map(fd, 2 * GIB, BOTH);
	long counted = vmstat("morsel_steal_table");
	uint64_t before;
	int i;

	/* Two tables of pages, and a third in the other unit. */
	morsel_fill(p, 1, OWN);
	ENSURE(!morsel_populate(fd, UNIT, PAGE) &&
	       !morsel_populate(fd, GIB, UNIT), "populate");
	before = morsel_stat(fd).tables;
	press(NULL);
	MUST(fsync(fd));
	expect_pages(fd, 1);
	ENSURE(morsel_stat(fd).tables == before - 2, "%llu of %llu tables are left",
	       (unsigned long long)morsel_stat(fd).tables,
	       (unsigned long long)before);
	ENSURE(vmstat("morsel_steal_table") >= counted + 2, "%ld were counted",
	       vmstat("morsel_steal_table") - counted);
	ENSURE(morsel_count(p, 1, OWN) == 1, "what was written is lost");
	/* Also where there is nothing but a table. */
	before = morsel_stat(fd).tables;
	ENSURE(!morsel_depopulate(fd, 0, PAGE), "depopulate");
	/* The less there is, the less is looked at in each turn: most entries are empty. */
	for (i = 0; i < 1000 && morsel_stat(fd).tables == before; i++) {
		press(NULL);
		MUST(fsync(fd));
	}
	ENSURE(morsel_stat(fd).tables == before - 1, "%llu tables of %llu are left after %d turns",
	       (unsigned long long)morsel_stat(fd).tables,
	       (unsigned long long)before, i);
	ktap_note("gone after %d turns", i);
	morsel_fill(p + UNIT, 1, OWN);
	morsel_fill(p + GIB, 512, OWN);
	ENSURE(morsel_count(p + UNIT, 1, OWN) == 1 &&
	       morsel_count(p + GIB, 512, OWN) == 512,
	       "what was written is lost");
}

/* One that may give up memory by itself keeps what it has. */
static void lazy_stays(void)
{
	int fd = morsel_make_lazy(UNIT, UNIT);

	zeroes(fd, UNIT, PAGES);
	press(NULL);
	expect_pages(fd, PAGES);
}

/* Most of memory is a morsel of zeroes, and somebody else needs it: nobody is killed. */
static void needed(void)
{
	long total = read_kb("/proc/meminfo", "MemAvailable") / 1024;
	uint64_t size = (uint64_t)total / 2 * MIB / UNIT * UNIT;
	long kills = vmstat("oom_kill"), left;
	struct stranger other;
	int fd;

	stranger_start(&other);
	morsel_set("limit", (long)(size / PAGE + 1024));
	fd = morsel_make_of(size, UNIT);
	zeroes(fd, size, size / PAGE);
	for (left = total * 7 / 10; left > 0; left -= 16)
		ENSURE_ONCE(stranger_fill_or_die(&other, FILL_ANON, 16),
			    "the other one was killed for memory");
	ktap_note("%llu of %llu pages are left",
		  (unsigned long long)morsel_stat(fd).pages,
		  (unsigned long long)(size / PAGE));
	ENSURE_ONCE(vmstat("oom_kill") == kills,
		    "somebody was killed for memory");
	stranger_stop(&other);
}

/* Is this part of the kernel log from here on? */
static bool logged(int log, const char *what)
{
	char record[4096];
	bool found = false;
	ssize_t n;

	for (;;) {
		n = read(log, record, sizeof(record) - 1);
		/* Some were overwritten. */
		if (n < 0 && errno == EPIPE)
			continue;
		if (n <= 0)
			return found;
		record[n] = '\0';
		found |= !!strstr(record, what);
	}
}

/* It belongs to no process that could be killed: the OOM killer says who has the memory. */
static void named(void)
{
	long total = read_kb("/proc/meminfo", "MemTotal") / 1024;
	int log = (int)MUST(open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC));
	uint64_t size = (uint64_t)total / 16 * MIB / UNIT * UNIT;
	struct stranger victim;
	int fd, i, status = 0;
	pid_t gone = 0;

	stranger_start(&victim);
	fd = morsel_make_of(size, UNIT);
	morsel_fill(morsel_map(fd, size, BOTH), size / PAGE, OWN);
	lseek(log, 0, SEEK_END);
	ENSURE(write_text("/proc/sysrq-trigger", "f"), "sysrq: %m");
	/* A work item does it, and kills the victim last. */
	for (i = 0; i < 300 && !gone; i++) {
		sleep_ms(100);
		gone = waitpid(victim.pid, &status, WNOHANG);
	}
	ENSURE(gone == victim.pid && WIFSIGNALED(status),
	       "the OOM killer has not taken its victim");
	ENSURE(logged(log, "morsel memfd:case"), "the log has no name");
	expect_pages(fd, size / PAGE);
	stranger_stop(&victim);
}

int main(int argc, char **argv)
{
	static const struct ktap_case cases[] = {
		{ "taken", taken, 0 },
		{ "written_later", written_later, 0 },
		{ "written_meanwhile", written_meanwhile, 0 },
		{ "pinned", pinned, 0 },
		{ "tables", unused_tables, 0 },
		{ "lazy_stays", lazy_stays, 0 },
		{ "needed", needed, 300 },
		{ "named", named, 0 },
	};

	return ktap_main(argc, argv, cases, KTAP_COUNT(cases));
}
