// SPDX-License-Identifier: GPL-2.0
/*
 * Attacks with anonymous memory (I1, I2): its pages are dirty, so a stale
 * translation writes. What is written must meet nothing but anonymous memory of
 * the process: no file, no page that another process has, too, no free page that
 * the kernel believes to be empty.
 */
#define _GNU_SOURCE
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "checker.h"
#include "env.h"
#include "file.h"
#include "ktap.h"
#include "map.h"
#include "peer.h"
#include "stranger.h"

#define PAGES		64
#define LENGTH		(PAGES * PAGE)
#define FEW		16
#define OWN		0x5a
#define WRITTEN		0x33
#define EVIL		0x77
#define TRIES		50
#define FILL_MIB	64

static char *map_anon(void)
{
	return fpr_map(NULL, 0, PAGES, PROT_READ | PROT_WRITE, MAP_PRIVATE);
}

/*
 * Leave translations that write, where nothing is mapped: the peer has written
 * through them, and still reads what it wrote.
 */
static char *leave_writable(char *(*map)(void))
{
	size_t held = 0;
	int tries;

	for (tries = 0; tries < TRIES; tries++) {
		char *p = map();

		ENSURE(peer_write(p, PAGES, WORD(WRITTEN)) == PAGES,
		       "the peer cannot write to the mapping");
		if (!fpr_unmap(p, PAGES))
			continue;
		/* What is free is poisoned: anything but a fault will do. */
		held = PAGES - peer_count(p, PAGES, FAULTED);
		if (holds_enough(held, PAGES))
			return p;
	}
	ktap_retry("the peer holds %zu of %d stale translations: nothing to attack with",
		   held, PAGES);
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
	leave_writable(map_anon);
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
	leave_writable(map_anon);
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
	p = leave_writable(map_anon);
	checker_forbid(p, PAGES);
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
	p = leave_writable(map_private);
	checker_forbid(p, PAGES);
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
	p = leave_writable(map_anon);
	q = fpr_map(&file, 0, PAGES, PROT_READ, MAP_SHARED);
	for (i = 0; i < PAGES; i++)
		ENSURE(probe_read(q + i * PAGE) == WORD(OWN), "wrong data");
	checker_forbid(p, PAGES);
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
	char *p;

	pin_to_cpu(0);
	stranger_start(&other);
	peer_start(1);
	hold_debts();
	p = leave_writable(map_anon);
	PREMISE(peer_write(p, PAGES, WORD(EVIL)) >= PAGES / 2,
		"the peer cannot write to parked frames: nothing to attack with");
	fpr_set("pool_limit", 0);
	fpr_set("debt_age_ms", 100);
	/* One more, so that somebody looks at the limit. */
	memset(map_anon(), OWN, LENGTH);
	leave_writable(map_anon);
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
	p = leave_writable(map_anon);
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
	p = leave_writable(map_anon);
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
		{ "ksm_flushes", ksm_flushes, 0 },
	};

	return ktap_main(argc, argv, cases, KTAP_COUNT(cases));
}
