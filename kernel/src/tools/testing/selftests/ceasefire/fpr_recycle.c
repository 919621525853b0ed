// SPDX-License-Identifier: GPL-2.0
/*
 * I2 for recycled frames: a parked frame may become page cache of the mapping
 * that the same process just faulted on with FPR, and nothing else: no
 * file-system metadata, no file of another process, no buffer of read(2).
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "checker.h"
#include "env.h"
#include "file.h"
#include "ktap.h"
#include "map.h"
#include "peer.h"
#include "stranger.h"

#define PAGES		64
#define OWN		0x5a
#define NEXT		0x42
#define POISON		0xaa

/* How an extent-tree block of ext4 begins. */
#define EXTENT_MAGIC	0xf30a
#define EXTENTS		1400
/* A block has room for 340 of them; this many are looked at in each. */
#define BLOCKS		4
#define STEP		64

/* One file to be parked and one, not in memory, to be read into its frames. */
static void start(struct tfile *f, struct tfile *g, size_t pages_of_g)
{
	file_make(f, ON_DISK, PAGES, OWN);
	file_make(g, ON_DISK, pages_of_g, NEXT);
	file_drop(g);
	peer_start(1);
	hold_debts();
}

/* A file of the same process: its pages come from the pool. */
static void same_process(void)
{
	static uint64_t words[PAGES];
	struct tfile f, g;
	long recycles;
	char *p, *q;
	size_t i;

	start(&f, &g, PAGES);
	p = park_stale(&f, PAGES, OWN);
	recycles = vmstat("fpr_recycle");
	q = fpr_map(&g, 0, PAGES, PROT_READ, MAP_SHARED);
	peer_touch(q, PAGES);
	recycles = vmstat("fpr_recycle") - recycles;
	ENSURE(recycles > 0, "no parked frame was used again");
	ktap_note("%ld frames recycled", recycles);
	ENSURE(peer_count(q, PAGES, WORD(NEXT)) == PAGES, "wrong data");
	peer_read(p, PAGES, words);
	for (i = 0; i < PAGES; i++)
		ENSURE(words[i] == WORD(OWN) || words[i] == WORD(NEXT) ||
		       words[i] == WORD(POISON) || !words[i] ||
		       words[i] == FAULTED,
		       "stale page %zu reads %016llx", i,
		       (unsigned long long)words[i]);
}

/* Frames go round for a long time without leaving the process. */
static void cycles(void)
{
	struct tfile f;
	long recycles = vmstat("fpr_recycle"), drains = vmstat_sum("fpr_drain_");
	int round;

	file_make(&f, ON_DISK, PAGES, OWN);
	peer_start(1);
	hold_debts();
	for (round = 0; round < 100; round++) {
		char *p = fpr_map(&f, 0, PAGES, PROT_READ, MAP_SHARED);

		ENSURE(peer_count(p, PAGES, WORD(OWN)) == PAGES, "wrong data");
		fpr_unmap(p, PAGES);
		file_drop(&f);
	}
	recycles = vmstat("fpr_recycle") - recycles;
	drains = vmstat_sum("fpr_drain_") - drains;
	ktap_note("%ld frames recycled, %ld drains", recycles, drains);
	ENSURE(recycles > 50L * PAGES, "%ld frames recycled in 100 rounds",
	       recycles);
	ENSURE(fpr_sysfs("parked") <= 4 * PAGES, "%ld frames parked",
	       fpr_sysfs("parked"));
}

/* read(2) in the same process is not a fault on a mapping with FPR. */
static void plain_read(void)
{
	static char buffer[PAGES * PAGE];
	struct tfile f, g;
	long recycles;
	char *p;

	start(&f, &g, PAGES);
	p = park_stale(&f, PAGES, OWN);
	recycles = vmstat("fpr_recycle");
	MUST(pread(g.fd, buffer, sizeof(buffer), 0));
	recycles = vmstat("fpr_recycle") - recycles;
	ENSURE(!recycles, "read(2) got %ld recycled frames", recycles);
	ENSURE(!peer_count(p, PAGES, WORD(NEXT)),
	       "what was read shows at stale addresses");
}

/* What statfs() says there is what the host's file system says. */
static bool root_is_9p(void)
{
	FILE *f = fopen("/proc/mounts", "r");
	char line[4096];
	bool found = false;

	ENSURE(f, "/proc/mounts: %m");
	while (!found && fgets(line, sizeof(line), f))
		found = strstr(line, " / 9p ");
	fclose(f);
	return found;
}

/* A program beside this one, by 9p; not in memory. */
static int file_beside(size_t pages)
{
	char path[4096], *name;
	struct stat root, file;
	ssize_t len = MUST(readlink("/proc/self/exe", path, sizeof(path) - 16));
	int fd;

	path[len] = '\0';
	name = strrchr(path, '/');
	ENSURE(name, "%s", path);
	snprintf(name, 16, "/fpr_moves");
	fd = MUST(open(path, O_RDONLY | O_CLOEXEC));
	MUST(fstat(fd, &file));
	MUST(stat("/", &root));
	if (!root_is_9p() || file.st_dev != root.st_dev)
		ktap_skip("the programs are not on 9p: run it by ceasefire vm");
	ENSURE(lseek(fd, 0, SEEK_END) >= (off_t)(pages * PAGE), "%s is short", path);
	ENSURE(!posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED), "fadvise");
	return fd;
}

/* Nobody knows what such a file system has in a page before that is up to date. */
static void unknown_file_system(void)
{
	struct tfile f, g;
	long recycles;
	size_t few = 4;
	int fd;
	char *q;

	start(&f, &g, PAGES);
	fd = file_beside(few);
	park_stale(&f, PAGES, OWN);
	recycles = vmstat("fpr_recycle");
	q = mmap(NULL, few * PAGE, PROT_READ, MAP_SHARED | MAP_FPR, fd, 0);
	ENSURE(q != MAP_FAILED, "mmap: %m");
	peer_touch(q, few);
	recycles = vmstat("fpr_recycle") - recycles;
	ENSURE(!recycles, "%ld frames were recycled for it", recycles);
	/* There were some to be had. */
	recycles = vmstat("fpr_recycle");
	q = fpr_map(&g, 0, PAGES, PROT_READ, MAP_SHARED);
	peer_touch(q, PAGES);
	PREMISE(vmstat("fpr_recycle") > recycles, "no parked frame was used again");
}

static void plain_mapping(void)
{
	struct tfile f, g;
	long recycles;
	char *p, *q;

	start(&f, &g, PAGES);
	p = park_stale(&f, PAGES, OWN);
	recycles = vmstat("fpr_recycle");
	q = mmap(NULL, PAGES * PAGE, PROT_READ, MAP_SHARED, g.fd, 0);
	ENSURE(q != MAP_FAILED, "mmap: %m");
	peer_touch(q, PAGES);
	recycles = vmstat("fpr_recycle") - recycles;
	ENSURE(!recycles, "a mapping without the flag got %ld recycled frames",
	       recycles);
	ENSURE(!peer_count(p, PAGES, WORD(NEXT)),
	       "its pages show at stale addresses");
}

static struct tfile foreign;

static long read_foreign(long unused)
{
	char *p = mmap(NULL, PAGES * PAGE, PROT_READ, MAP_SHARED | MAP_FPR,
		       foreign.fd, 0);
	long i, sum = 0;

	(void)unused;
	if (p == MAP_FAILED)
		return -1;
	for (i = 0; i < PAGES; i++)
		sum += (unsigned char)p[i * (long)PAGE] == SECRET;
	return sum;
}

/* Another process with FPR has its own pool. */
static void other_process(void)
{
	struct stranger stranger;
	struct tfile f;
	size_t secrets;
	char *p;

	file_make(&foreign, ON_DISK, PAGES, SECRET);
	file_drop(&foreign);
	stranger_start(&stranger);
	file_make(&f, ON_DISK, PAGES, OWN);
	peer_start(1);
	hold_debts();
	p = park_stale(&f, PAGES, OWN);
	ENSURE(stranger_call(&stranger, read_foreign, 0) == PAGES,
	       "the stranger reads wrong data");
	secrets = peer_count(p, PAGES, WORD(SECRET));
	ENSURE(!secrets, "%zu of %d pages of another process's file are readable",
	       secrets, PAGES);
	stranger_stop(&stranger);
}

static char *foreign_at;

static long map_foreign(long unused)
{
	(void)unused;
	foreign_at = mmap(NULL, PAGES * PAGE, PROT_READ, MAP_SHARED | MAP_FPR,
			  foreign.fd, 0);
	return (long)foreign_at;
}

/*
 * A look into another process faults its pages in, with its rights: the frames
 * must not be those that we still reach.
 */
static void remote_fault(void)
{
	static char buffer[PAGES * PAGE];
	struct iovec to = { buffer, sizeof(buffer) }, from = to;
	struct stranger stranger;
	struct tfile f;
	long recycles;
	char *p;

	file_make(&foreign, ON_DISK, PAGES, SECRET);
	file_drop(&foreign);
	stranger_start(&stranger);
	file_make(&f, ON_DISK, PAGES, OWN);
	peer_start(1);
	hold_debts();
	from.iov_base = (void *)stranger_call(&stranger, map_foreign, 0);
	ENSURE(from.iov_base != MAP_FAILED, "mmap in the other process");
	p = park_stale(&f, PAGES, OWN);
	recycles = vmstat("fpr_recycle");
	ENSURE(process_vm_readv(stranger.pid, &to, 1, &from, 1, 0) ==
	       (ssize_t)sizeof(buffer), "process_vm_readv: %m");
	recycles = vmstat("fpr_recycle") - recycles;
	ENSURE(buffer[0] == (char)SECRET, "wrong data");
	ENSURE(!peer_count(p, PAGES, WORD(SECRET)),
	       "pages of another process's file are readable");
	ENSURE(!recycles, "another process's file got %ld of our frames",
	       recycles);
	stranger_stop(&stranger);
}

/* So few that mprotect() flushes their addresses one by one. */
#define FEW	16

/*
 * The same for the whole process, by a mapping without the flag: it has pages
 * that another one has read ahead.
 */
static void protected_beside(void)
{
	struct tfile f, g;
	size_t reached, i;
	char *p, *q, *v;

	start(&f, &g, 2 * FEW);
	p = park_stale(&f, PAGES, OWN);
	q = fpr_map(&g, 0, 1, PROT_READ, MAP_SHARED);
	v = mmap(NULL, FEW * PAGE, PROT_READ, MAP_SHARED, g.fd, FEW * PAGE);
	ENSURE(v != MAP_FAILED, "mmap: %m");
	ENSURE(probe_read(q) == WORD(NEXT), "wrong data");
	for (i = 0; i < FEW; i++)
		ENSURE(probe_read(v + i * PAGE) == WORD(NEXT), "wrong data");
	reached = peer_count(p, PAGES, WORD(NEXT));
	ENSURE(reached > 1, "%zu recycled frames are reached: nothing to attack",
	       reached);
	MUST(mprotect(v, FEW * PAGE, PROT_NONE));
	checker_forbid(p, PAGES);
	reached = peer_count(p, PAGES, WORD(NEXT));
	ENSURE(!reached, "%zu pages without access are readable", reached);
}

/* The process gives up a right to pages that stale translations reach. */
static void protected_later(void)
{
	struct tfile f, g;
	size_t reached;
	char *p, *q;

	start(&f, &g, FEW);
	p = park_stale(&f, PAGES, OWN);
	q = fpr_map(&g, 0, FEW, PROT_READ, MAP_SHARED);
	ENSURE(probe_read(q) == WORD(NEXT), "wrong data");
	reached = peer_count(p, PAGES, WORD(NEXT));
	ENSURE(reached, "no recycled frame is reached: nothing to attack");
	MUST(mprotect(q, FEW * PAGE, PROT_NONE));
	ktap_note("%zu of %d pages were reached", reached, FEW);
	checker_forbid(p, PAGES);
	reached = peer_count(p, PAGES, WORD(NEXT));
	ENSURE(!reached, "%zu pages without access are readable", reached);
}

#define MPOL_BIND	2

/* Where memory comes from is for the policy of the process to say. */
static void by_policy(void)
{
	unsigned long node = 1UL << 1;
	void *pages[PAGES];
	int nodes[PAGES];
	struct tfile f, g;
	size_t i;
	char *q;

	if (syscall(SYS_set_mempolicy, MPOL_BIND, &node, 64) ||
	    syscall(SYS_set_mempolicy, 0, NULL, 0))
		ktap_skip("no second memory node");
	start(&f, &g, PAGES);
	park_stale(&f, PAGES, OWN);
	MUST(syscall(SYS_set_mempolicy, MPOL_BIND, &node, 64));
	q = fpr_map(&g, 0, PAGES, PROT_READ, MAP_SHARED);
	for (i = 0; i < PAGES; i++) {
		pages[i] = q + i * PAGE;
		ENSURE(probe_read(pages[i]) == WORD(NEXT), "wrong data");
	}
	MUST(syscall(SYS_move_pages, 0, (unsigned long)PAGES, pages, NULL,
		     nodes, 0));
	for (i = 0; i < PAGES; i++)
		ENSURE(nodes[i] == 1, "page %zu is on node %d, not 1", i,
		       nodes[i]);
}

/* A file of so many extents that their tree needs blocks of its own. */
static void make_fragmented(struct tfile *f)
{
	size_t i;

	file_make(f, ON_DISK, 0, 0);
	for (i = 0; i < EXTENTS; i++) {
		uint64_t word = WORD(NEXT);

		MUST(pwrite(f->fd, &word, sizeof(word),
			    (off_t)(2 * i * PAGE)));
	}
	f->pages = 2 * EXTENTS;
	MUST(fsync(f->fd));
	/* Out of the journal, so that the blocks need not stay in memory. */
	if (!ioctl(f->fd, FIFREEZE, 0))
		MUST(ioctl(f->fd, FITHAW, 0));
}

/* What of block devices is in memory, in KiB: metadata of their file systems. */
static long buffers(void)
{
	return read_kb("/proc/meminfo", "Buffers");
}

/*
 * The blocks of the extent tree are read while the file is faulted in; they
 * must not land in frames that the peer still sees. A fault takes one page of
 * the file, so that there are frames in the pool for each of the blocks.
 */
static void extent_blocks(void)
{
	static uint64_t words[PAGES];
	long recycles, blocks;
	struct tfile f, g;
	size_t i;
	char *p, *q;

	file_make(&f, ON_DISK, PAGES, OWN);
	make_fragmented(&g);
	peer_start(1);
	hold_debts();
	ENSURE(write_text("/proc/sys/vm/drop_caches", "3"), "drop_caches: %m");
	p = park_stale(&f, PAGES, OWN);
	recycles = vmstat("fpr_recycle");
	blocks = buffers();
	q = fpr_map(&g, 0, g.pages, PROT_READ, MAP_SHARED);
	MUST(madvise(q, g.pages * PAGE, MADV_RANDOM));
	for (i = 0; i < EXTENTS; i += STEP)
		ENSURE(probe_read(q + 2 * i * PAGE) == WORD(NEXT),
		       "wrong data in page %zu", 2 * i);
	recycles = vmstat("fpr_recycle") - recycles;
	blocks = buffers() - blocks;
	ENSURE(recycles > 0, "no parked frame was used: nothing to attack");
	PREMISE(blocks >= BLOCKS * (long)PAGE / 1024,
		"%ld KiB of metadata were read: nothing to attack with",
		blocks);
	peer_read(p, PAGES, words);
	for (i = 0; i < PAGES; i++)
		ENSURE((words[i] & 0xffff) != EXTENT_MAGIC ||
		       words[i] == FAULTED,
		       "a block of the file system's extent tree shows at stale page %zu: %016llx",
		       i, (unsigned long long)words[i]);
	ktap_note("%ld frames recycled, %ld KiB of metadata read", recycles,
		  blocks);
}

int main(int argc, char **argv)
{
	static const struct ktap_case cases[] = {
		{ "same_process", same_process, 0 },
		{ "cycles", cycles, 0 },
		{ "plain_read", plain_read, 0 },
		{ "unknown_file_system", unknown_file_system, 0 },
		{ "plain_mapping", plain_mapping, 0 },
		{ "other_process", other_process, 0 },
		{ "remote_fault", remote_fault, 0 },
		{ "protected_later", protected_later, 0 },
		{ "protected_beside", protected_beside, 0 },
		{ "by_policy", by_policy, 0 },
		{ "metadata", extent_blocks, 0 },
	};

	return ktap_main(argc, argv, cases, KTAP_COUNT(cases));
}
