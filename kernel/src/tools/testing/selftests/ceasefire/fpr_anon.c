// SPDX-License-Identifier: GPL-2.0
/*
 * Attacks with anonymous memory (I1, I2): its pages are dirty, so a stale
 * translation writes. What is written must meet nothing but anonymous memory of
 * the process: no file, no page that another process has, too, no free page that
 * the kernel believes to be empty.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/swap.h>
#include <unistd.h>

#include "checker.h"
#include "env.h"
#include "file.h"
#include "ktap.h"
#include "map.h"
#include "peer.h"
#include "stranger.h"
#include "userfault.h"

#define PAGES		64
#define LENGTH		(PAGES * PAGE)
#define FEW		16
#define OWN		0x5a
#define WRITTEN		0x33
#define EVIL		0x77
#define TRIES		50
#define FILL_MIB	24
#define SWAP_PAGES	256

static char *map_anon(void)
{
	return fpr_map(NULL, 0, PAGES, PROT_READ | PROT_WRITE, MAP_PRIVATE);
}

static void start(void)
{
	pin_to_cpu(0);
	peer_start(1);
	hold_debts();
}

/* Frames come back as what they were, and empty. */
static void comes_back(void)
{
	long before;
	char *p;
	int i;

	start();
	leave_writable(NULL, PAGES, WORD(WRITTEN));
	before = vmstat("fpr_recycle");
	p = map_anon();
	for (i = 0; i < PAGES; i++)
		ENSURE(probe_read(p + i * PAGE) == 0, "page %d is not empty", i);
	for (i = 0; i < PAGES; i++)
		p[i * PAGE] = OWN;
	/* Some wait in lists of the CPU that they were used on. */
	ENSURE(vmstat("fpr_recycle") >= before + PAGES / 4,
	       "%ld of %d frames were recycled", vmstat("fpr_recycle") - before,
	       PAGES);
}

/* A page that was only read is the page of zeroes. */
static void only_read(void)
{
	char *p;
	int i;

	start();
	leave_writable(NULL, PAGES, WORD(WRITTEN));
	p = map_anon();
	ENSURE(peer_count(p, PAGES, 0) == PAGES, "new memory is not empty");
	for (i = 0; i < TRIES && !fpr_unmap(p, PAGES); i++) {
		p = map_anon();
		ENSURE(peer_count(p, PAGES, 0) == PAGES, "memory is not empty");
	}
	ENSURE(i < TRIES, "no munmap skipped");
}

static void to_stranger(void)
{
	struct stranger other;
	size_t seen;
	char *p;

	pin_to_cpu(0);
	stranger_start(&other);
	peer_start(1);
	hold_debts();
	p = leave_writable(NULL, PAGES, WORD(WRITTEN));
	stranger_fill(&other, FILL_ANON, FILL_MIB);
	seen = peer_count(p, PAGES, WORD(SECRET));
	stranger_stop(&other);
	ENSURE(!seen, "%zu pages of another process are visible", seen);
}

static struct tfile file;

static char *map_private(void)
{
	return fpr_map(&file, 0, PAGES, PROT_READ | PROT_WRITE, MAP_PRIVATE);
}

static size_t file_count(unsigned char byte)
{
	size_t i, count = 0;
	uint64_t word;

	for (i = 0; i < file.pages; i++) {
		MUST(pread(file.fd, &word, sizeof(word), (off_t)(i * PAGE)));
		count += word == WORD(byte);
	}
	return count;
}

/* Copies of a file's pages; the file stays as it is. */
static void private_write(void)
{
	char *p;

	start();
	file_make(&file, ON_DISK, PAGES, OWN);
	p = leave_writable(&file, PAGES, WORD(WRITTEN));
	peer_write(p, PAGES, WORD(EVIL));
	ENSURE(file_count(OWN) == PAGES, "%zu pages of the file were written",
	       file_count(EVIL) + file_count(WRITTEN));
	p = map_private();
	ENSURE(peer_count(p, PAGES, WORD(OWN)) == PAGES,
	       "a new mapping does not show the file");
}

/* The frames are wanted for a file that the process may only read. */
static void to_file(void)
{
	size_t evil;
	char *p, *q;
	int i;

	start();
	file_make(&file, ON_DISK, PAGES, OWN);
	file_drop(&file);
	p = leave_writable(NULL, PAGES, WORD(WRITTEN));
	q = fpr_map(&file, 0, PAGES, PROT_READ, MAP_SHARED);
	for (i = 0; i < PAGES; i++)
		ENSURE(probe_read(q + i * PAGE) == WORD(OWN), "wrong data");
	peer_write(p, PAGES, WORD(EVIL));
	evil = file_count(EVIL);
	ENSURE(!evil, "%zu pages of a file were written", evil);
}

/*
 * What is free is poisoned or empty, and the kernel relies on that. The runner
 * looks at the log.
 */
static void free_pages_stay_empty(void)
{
	struct stranger other;
	int tries;
	char *p;

	pin_to_cpu(0);
	stranger_start(&other);
	peer_start(1);
	hold_debts();
	p = leave_writable(NULL, PAGES, WORD(WRITTEN));
	PREMISE(peer_write(p, PAGES, WORD(EVIL)) >= PAGES / 2,
		"the peer cannot write to parked frames: nothing to attack with");
	fpr_set("pool_limit", 0);
	fpr_set("debt_age_ms", 100);
	/* One more, so that somebody looks at the limit, maybe at once. */
	memset(map_anon(), OWN, LENGTH);
	for (tries = 0; tries < TRIES; tries++) {
		p = map_anon();
		peer_write(p, PAGES, WORD(WRITTEN));
		if (fpr_unmap(p, PAGES))
			break;
	}
	ENSURE(fpr_wait_sysfs_at_most("parked", 0, 60), "pages stay parked");
	stranger_fill(&other, FILL_ANON, FILL_MIB);
	stranger_stop(&other);
}

/* Code is checked, then made executable: nobody may write to it any more. */
static void made_executable(void)
{
	char *p, *q;
	size_t writes;

	start();
	p = leave_writable(NULL, PAGES, WORD(WRITTEN));
	q = map_anon();
	memset(q, OWN, LENGTH);
	/* So few that Linux itself does not flush everything. */
	MUST(mprotect(q, FEW * PAGE, PROT_READ));
	checker_forbid(p, PAGES);
	writes = peer_write(p, PAGES, WORD(EVIL));
	ENSURE(peer_count(q, FEW, WORD(OWN)) == FEW,
	       "memory that is read-only was written");
	ENSURE(!writes, "%zu stale translations write after mprotect", writes);
}

/* The same with pages that were moved to a mapping without the flag. */
static void moved_then_protected(void)
{
	size_t writes;
	char *p, *r;

	start();
	p = leave_writable(NULL, PAGES, WORD(WRITTEN));
	r = move_recycled(p, PAGES, FEW, OWN);
	MUST(mprotect(r, FEW * PAGE, PROT_READ));
	checker_forbid(p, PAGES);
	writes = peer_write(p, PAGES, WORD(EVIL));
	ENSURE(peer_count(r, FEW, WORD(OWN)) == FEW,
	       "memory that is read-only was written");
	ENSURE(!writes, "%zu stale translations write after mprotect", writes);
}

/* Memory that is reserved and then used, as by malloc(): nothing is taken away. */
static void rights_grow(void)
{
	long flushes;
	char *q, *r;

	start();
	leave_writable(NULL, PAGES, WORD(WRITTEN));
	q = fpr_map(NULL, 0, PAGES, PROT_NONE, MAP_PRIVATE);
	r = mmap(NULL, LENGTH, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ENSURE(r != MAP_FAILED, "mmap: %m");
	flushes = vmstat("fpr_drain_flush");
	MUST(mprotect(q, LENGTH, PROT_READ));
	MUST(mprotect(q, LENGTH, PROT_READ | PROT_WRITE));
	MUST(mprotect(r, LENGTH, PROT_READ | PROT_WRITE));
	ENSURE(vmstat("fpr_drain_flush") == flushes,
	       "%ld flushes for rights that grow",
	       vmstat("fpr_drain_flush") - flushes);
	/* Something was owed, and this one has to pay. */
	MUST(mprotect(q, FEW * PAGE, PROT_READ));
	ENSURE(vmstat("fpr_drain_flush") > flushes, "no flush is counted");
}

/*
 * QEMU shrinks the TLB of a CPU that was idle, and doubles it at a flush that
 * finds it full.
 */
static void widen_tlb(void)
{
	size_t length = 8 * LENGTH;
	int i;

	for (i = 0; i < 3; i++) {
		char *p = mmap(NULL, length, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		ENSURE(p != MAP_FAILED, "mmap: %m");
		memset(p, WRITTEN, length);
		MUST(munmap(p, length));
	}
}

/*
 * The only thread is its own peer. Until it has written to all that it shares
 * with its parent, faults flush what it holds.
 */
static char *leave_to_itself(void)
{
	size_t held = 0, i;
	int tries;

	for (tries = 0; tries < TRIES; tries++) {
		long skips = vmstat("fpr_skip");
		char *p;

		/* Another one with each try: the runner may be on it. */
		pin_to_cpu(tries % online_cpus());
		p = map_anon();
		memset(p, WRITTEN, LENGTH);
		/* Whoever runs here in between makes this CPU flush: look at once. */
		MUST(munmap(p, LENGTH));
		for (held = i = 0; i < PAGES; i++)
			held += probe_read(p + i * PAGE) != FAULTED;
		if (vmstat("fpr_skip") > skips && holds_enough(held, PAGES))
			return p;
		widen_tlb();
	}
	ktap_retry("%zu of %d stale translations: nothing to attack with", held,
		   PAGES);
}

/*
 * Where nobody else runs the process, reclaim flushes the addresses of what it
 * takes; through another one the frame could be written to while the kernel
 * reads it.
 */
static void swapped_out(void)
{
	size_t reached = 0, written = 0, i;
	long flushes, swapped;
	char *p, *q, path[256];

	fpr_skip_local();
	hold_debts();
	swap_on(path, sizeof(path), SWAP_PAGES);
	p = leave_to_itself();
	q = fpr_map(NULL, 0, FEW, PROT_READ | PROT_WRITE, MAP_PRIVATE);
	memset(q, OWN, FEW * PAGE);
	for (i = 0; i < PAGES; i++)
		probe_write(p + i * PAGE, WORD(EVIL));
	for (i = 0; i < FEW; i++)
		reached += probe_read(q + i * PAGE) == WORD(EVIL);
	flushes = vmstat("fpr_drain_flush");
	MUST(madvise(q, FEW * PAGE, MADV_PAGEOUT));
	flushes = vmstat("fpr_drain_flush") - flushes;
	for (i = 0; i < PAGES; i++)
		written += probe_write(p + i * PAGE, WORD(EVIL));
	swapped = read_kb("/proc/self/status", "VmSwap") / (long)(PAGE / 1024);
	swap_off(path);
	ENSURE(swapped == FEW, "%ld of %d pages are in swap", swapped, FEW);
	PREMISE(reached, "no recycled frame is reached: nothing to attack with");
	ENSURE(!written, "%zu frames are written to after they went to swap",
	       written);
	ENSURE(flushes > 0, "no flush is counted");
}

#define SWAPOFFS	10

static struct {
	bool over;
	char path[256];
} *swaps;

static long swap_off_and_on(long unused)
{
	int i;

	(void)unused;
	pin_to_cpu(0);
	for (i = 0; i < SWAPOFFS; i++) {
		if (swapoff(swaps->path) || swapon(swaps->path, 0))
			break;
		sleep_ms(20);
	}
	__atomic_store_n(&swaps->over, true, __ATOMIC_RELEASE);
	return i;
}

/*
 * Swapoff puts entries back without the accessed bit while reclaim takes the
 * same pages out, with a flush that is still to come. A debug kernel complains
 * when a page is evicted by two at once.
 */
static void swapped_back(void)
{
	long out = vmstat("pswpout"), rounds;
	struct stranger other;
	char *q;
	int i;

	swaps = mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ENSURE(swaps != MAP_FAILED, "mmap: %m");
	swap_on(swaps->path, sizeof(swaps->path), SWAP_PAGES);
	stranger_start(&other);
	start();
	q = map_anon();
	for (i = 0; i < PAGES; i++)
		*(uint64_t *)(q + i * PAGE) = WORD(OWN);
	stranger_ask(&other, swap_off_and_on, 0);
	while (!__atomic_load_n(&swaps->over, __ATOMIC_ACQUIRE)) {
		MUST(write_text("/proc/self/clear_refs", "1") ? 0 : -1);
		MUST(madvise(q, LENGTH, MADV_PAGEOUT));
		ENSURE(peer_count(q, PAGES, WORD(OWN)) == PAGES, "wrong data");
	}
	rounds = stranger_answer(&other);
	stranger_stop(&other);
	swap_off(swaps->path);
	ENSURE(rounds == SWAPOFFS, "swap was off %ld times", rounds);
	out = vmstat("pswpout") - out;
	ENSURE(out > PAGES, "%ld pages were swapped out", out);
	ktap_note("%ld pages were swapped out", out);
	for (i = 0; i < PAGES; i++)
		ENSURE(*(uint64_t *)(q + i * PAGE) == WORD(OWN), "wrong data");
}

#define KSM	"/sys/kernel/mm/ksm/"

static void ksm_scans(long scans)
{
	double end = seconds() + 60;

	scans += read_number(KSM "full_scans");
	while (read_number(KSM "full_scans") < scans && seconds() < end)
		sleep_ms(20);
}

static size_t merged(char *p, char *q)
{
	size_t i, count = 0;

	for (i = 0; i < PAGES; i++) {
		uint64_t frame = frame_of(p + i * PAGE);

		count += frame && frame == frame_of(q + i * PAGE);
	}
	return count;
}

/* A merged page is one that many processes may have: what is owed is flushed. */
static void ksm_flushes(void)
{
	size_t count, evil, missed;
	char *p, *q, *r;

	if (access(KSM "run", W_OK))
		ktap_skip("no KSM");
	start();
	p = leave_writable(NULL, PAGES, WORD(WRITTEN));
	q = map_anon();
	r = mmap(NULL, LENGTH, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ENSURE(r != MAP_FAILED, "mmap: %m");
	memset(q, OWN, LENGTH);
	memset(r, OWN, LENGTH);
	MUST(madvise(q, LENGTH, MADV_MERGEABLE));
	MUST(madvise(r, LENGTH, MADV_MERGEABLE));
	ENSURE(write_text(KSM "sleep_millisecs", "1") &&
	       write_text(KSM "pages_to_scan", "10000") &&
	       write_text(KSM "smart_scan", "0") &&
	       write_text(KSM "run", "1"), "ksm cannot be started: %m");
	ksm_scans(4);
	count = merged(q, r);
	checker_forbid(p, PAGES);
	missed = PAGES - peer_write(p, PAGES, WORD(EVIL));
	evil = PAGES - peer_count(r, PAGES, WORD(OWN));
	write_text(KSM "run", "2");
	write_text(KSM "run", "0");
	ktap_note("%zu pages merged, %zu writes failed", count, missed);
	ENSURE(!evil, "%zu pages were written through a merged page", evil);
	ENSURE(count == PAGES, "KSM has merged %zu of %d pages", count, PAGES);
}

int main(int argc, char **argv)
{
	static const struct ktap_case cases[] = {
		{ "recycled", comes_back, 0 },
		{ "only_read", only_read, 0 },
		{ "to_stranger", to_stranger, 0 },
		{ "private_write", private_write, 0 },
		{ "to_file", to_file, 0 },
		{ "free_pages_stay_empty", free_pages_stay_empty, 0 },
		{ "made_executable", made_executable, 0 },
		{ "moved_then_protected", moved_then_protected, 0 },
		{ "rights_grow", rights_grow, 0 },
		{ "swapped_out", swapped_out, 0 },
		{ "swapped_back", swapped_back, 0 },
		{ "ksm_flushes", ksm_flushes, 0 },
	};

	return ktap_main(argc, argv, cases, KTAP_COUNT(cases));
}
