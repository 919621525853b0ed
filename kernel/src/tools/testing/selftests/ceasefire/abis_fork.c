// SPDX-License-Identifier: GPL-2.0
/*
 * Attacks on what fork() leaves (I11): it flushes everything, so no CPU has any entry of the
 * parent, and what is copied afterwards needs no flush. Unless a CPU has used the
 * page since; and as long as that flush is to come, CPUs have all of them.
 */
#define _GNU_SOURCE
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "abis.h"
#include "env.h"
#include "file.h"
#include "ktap.h"
#include "map.h"
#include "peer.h"
#include "regions.h"
#include "stranger.h"

#define PAGES		16
#define LENGTH		(PAGES * PAGE)
#define OWN		0x5a
#define NEW		0x6b
#define ALIEN		0x7c
/* More than a CPU keeps for itself before they are on a list. */
#define COPIES		64
#define WATCHED		2
/* What the stranger takes: more than what was freed on its CPU just before. */
#define TAKEN		(16UL << 20)
/* For how long a fork() is late, and until it is in the middle of that. */
#define DELAY_MS	2000
#define BEGUN_MS	500

static int to_child[2];
static volatile bool *taken;

/* The child has copies until the end of the case, or is told to look at them. */
static void child_waits(const char *p, uint64_t word)
{
	size_t page;
	char byte;

	close(to_child[1]);
	if (read(to_child[0], &byte, 1) == 1)
		for (page = 0; page < PAGES; page++)
			if (probe_read(p + page * PAGE) != word)
				_exit(1);
	_exit(0);
}

static pid_t begin_child(const char *p)
{
	pid_t pid;

	MUST(pipe(to_child));
	pid = (pid_t)MUST(fork());
	if (!pid)
		child_waits(p, WORD(OWN));
	close(to_child[0]);
	return pid;
}

/* It still has what was there when it was made. */
static void end_child(pid_t pid)
{
	int status;

	ENSURE(write(to_child[1], "", 1) == 1, "the child has gone: %m");
	close(to_child[1]);
	MUST(waitpid(pid, &status, 0));
	ENSURE(!status, "the child's pages have changed");
}

static void write_pages(char *p, int byte)
{
	size_t page;

	for (page = 0; page < PAGES; page++)
		*(volatile uint64_t *)(p + page * PAGE) = WORD(byte);
}

/* Pages are copied after a fork(); all see the copies, and the child what was there. */
static struct abis_flushes copy_pages(bool used)
{
	struct abis_flushes got;
	pid_t child;
	char *p;

	abis_start();
	p = abis_written(PAGES, WORD(OWN));
	child = begin_child(p);
	if (used)
		peer_finds(p, PAGES, WORD(OWN));
	got = abis_flushes();
	write_pages(p, NEW);
	got = abis_flushes_since(got);
	peer_finds(p, PAGES, WORD(NEW));
	end_child(child);
	return got;
}

/* What nobody has used since needs no flush. */
static void copied(void)
{
	struct abis_flushes got = copy_pages(false);

	ENSURE_ONCE(got.uncached >= PAGES && !got.received,
		    "%ld entries in no TLB, %ld shootdowns", got.uncached,
		    got.received);
}

/* What the peer has used since does. */
static void copied_used(void)
{
	struct abis_flushes got = copy_pages(true);

	ENSURE(got.young >= PAGES, "%ld entries may be in a TLB", got.young);
}

/*
 * In the stranger: when the fork() is in the middle of its delay, take the file away, and the
 * frames of its private copies.
 */
static long truncate_and_take(long fd)
{
	char *p;

	sleep_ms(BEGUN_MS);
	/* It has read that, and is late. */
	abis_flush_delay(0);
	MUST(ftruncate((int)fd, 0));
	p = mmap(NULL, TAKEN, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	ENSURE(p != MAP_FAILED, "mmap: %m");
	memset(p, ALIEN, TAKEN);
	*taken = true;
	return 0;
}

/*
 * A file is truncated while fork() is about to flush. With it go private copies, and
 * nobody waits for mmap_lock: their frames are free when ftruncate() returns. All threads of
 * the process that fault wait, so the stranger does that, and the peer goes on reading.
 */
static void truncated(void)
{
	struct stranger stranger;
	struct tfile file;
	uint64_t seen;
	pid_t child;
	bool in_time;
	char *p;

	need_cpus(3);
	file_make(&file, ON_DISK, COPIES, OWN);
	taken = mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ENSURE(taken != MAP_FAILED, "mmap: %m");
	pin_to_cpu(2);
	stranger_start(&stranger);
	abis_start();
	p = mmap(regions(1), COPIES * PAGE, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_FIXED, file.fd, 0);
	ENSURE(p != MAP_FAILED, "mmap: %m");
	ENSURE(peer_write(p, COPIES, WORD(NEW)) == COPIES, "no write");
	/* Few pages: what its TLB loses it loads again without the right to write. */
	peer_begin_watch(p, WATCHED, WORD(NEW));
	abis_flush_delay(DELAY_MS);
	stranger_ask(&stranger, truncate_and_take, file.fd);
	child = (pid_t)MUST(fork());
	if (!child)
		_exit(0);
	in_time = *taken;
	seen = peer_end_watch();
	stranger_answer(&stranger);
	stranger_stop(&stranger);
	MUST(waitpid(child, NULL, 0));
	file_close(&file);
	ENSURE(seen == WORD(NEW) || seen == FAULTED,
	       "the peer sees %016llx in a page that was freed",
	       (unsigned long long)seen);
	PREMISE(in_time, "fork() was too fast");
}

int main(int argc, char **argv)
{
	static const struct ktap_case cases[] = {
		{ "copied", copied, 0 },
		{ "copied_used", copied_used, 0 },
		{ "truncated", truncated, 0 },
	};

	return ktap_main(argc, argv, cases, KTAP_COUNT(cases));
}
