// SPDX-License-Identifier: GPL-2.0
/*
 * I1 where a frame gets a new owner without being freed: FUSE takes whole
 * pages from a pipe into the page cache of another file, KSM makes one page of
 * many.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "env.h"
#include "file.h"
#include "fuse_server.h"
#include "ktap.h"
#include "map.h"
#include "peer.h"
#include "stranger.h"

#define PAGES		16
#define LENGTH		(PAGES * PAGE)
#define OWN		0x5a
#define WRITTEN		0x33

static int fuse_file;
static uint64_t *frames;	/* shared with the stranger */

/* In the stranger: read the file, see in which frames its pages are. */
static long read_fuse_file(long pages)
{
	static char buffer[LENGTH];
	char *p;
	long i;

	fuse_file = open(FUSE_SERVER_FILE, O_RDWR | O_CLOEXEC);
	if (fuse_file < 0 ||
	    pread(fuse_file, buffer, sizeof(buffer), 0) != sizeof(buffer))
		return -1;
	p = mmap(NULL, LENGTH, PROT_READ, MAP_SHARED | MAP_POPULATE, fuse_file,
		 0);
	if (p == MAP_FAILED)
		return -1;
	for (i = 0; i < pages; i++)
		frames[i] = frame_of(p + (size_t)i * PAGE);
	munmap(p, LENGTH);
	return buffer[0];
}

static long write_fuse_file(long byte)
{
	static char buffer[LENGTH];

	memset(buffer, (int)byte, sizeof(buffer));
	return pwrite(fuse_file, buffer, sizeof(buffer), 0) == sizeof(buffer) ?
	       0 : -1;
}

/* Returns how many pages the file system took over; @stale: from under us. */
static size_t give_away(bool stale)
{
	uint64_t before[PAGES];
	struct stranger stranger;
	struct tfile f;
	size_t i, taken = 0, secrets;
	pid_t server;
	char *p;

	frames = mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ENSURE(frames != MAP_FAILED, "mmap: %m");
	file_make(&f, ON_DISK, PAGES, OWN);
	server = fuse_server_start(f.fd, PAGES);
	stranger_start(&stranger);
	peer_start(1);
	hold_debts();
	p = mmap(NULL, LENGTH, PROT_READ, MAP_SHARED | MAP_POPULATE, f.fd, 0);
	ENSURE(p != MAP_FAILED, "mmap: %m");
	for (i = 0; i < PAGES; i++)
		before[i] = frame_of(p + i * PAGE);
	MUST(munmap(p, LENGTH));
	if (stale)
		p = leave_stale(&f, 0, PAGES, PROT_READ, MAP_SHARED, OWN);
	ENSURE(stranger_call(&stranger, read_fuse_file, PAGES) == OWN,
	       "the stranger cannot read the file of the server");
	PREMISE(file_cached(&f) < PAGES,
		"no page was taken out of the source file: nothing to attack with");
	ENSURE(!stranger_call(&stranger, write_fuse_file, SECRET),
	       "the stranger cannot write the file of the server");
	for (i = 0; i < PAGES; i++)
		taken += before[i] && before[i] == frames[i];
	secrets = stale ? peer_count(p, PAGES, WORD(SECRET)) : 0;
	ENSURE(!secrets, "%zu of %d pages of another process's file are readable",
	       secrets, PAGES);
	stranger_stop(&stranger);
	kill(server, SIGKILL);
	waitpid(server, NULL, 0);
	return taken;
}

static void fuse_takes(void)
{
	size_t taken = give_away(false);

	ENSURE(taken > 0, "the file system took no page over");
}

static void fuse_refuses_stale(void)
{
	size_t taken = give_away(true);

	ENSURE(!taken, "the file system took %zu stale pages over", taken);
}

int main(int argc, char **argv)
{
	static const struct ktap_case cases[] = {
		{ "fuse_takes", fuse_takes, 0 },
		{ "fuse_refuses_stale", fuse_refuses_stale, 0 },
	};

	return ktap_main(argc, argv, cases, KTAP_COUNT(cases));
}
