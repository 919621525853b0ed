// SPDX-License-Identifier: GPL-2.0
/*
 * Hibernation: all memory becomes an image on disk, and the kernel goes on from
 * it as if nothing had been. What was parked has to be in the image, since it is
 * given out again as it is (I1), with the tags that say so; what was owed is
 * owed, and is paid in its time (I6); no CPU brings a translation along.
 *
 * This really hibernates the machine, so it has to be asked for: by the name of a
 * disk in CEASEFIRE_TEST_SWAP, of which nothing remains. The root file system must
 * need no device. The second case boots: the kernel needs the same disk in resume=.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/swap.h>
#include <unistd.h>

#include "env.h"
#include "file.h"
#include "ktap.h"
#include "map.h"
#include "peer.h"
#include "stranger.h"

#define POWER		"/sys/power/"
#define DISK		"CEASEFIRE_TEST_SWAP"
#define RESTORED	"Hibernation image restored successfully"

#define PAGES		1024
#define WRITTEN_PAGES	64
/* Fewer than were parked: some are left to be paid for. */
#define AGAIN_PAGES	512
#define TRIES		50
#define FILL_MIB	64

/* Of the file whose pages are freed, of those that stay, of what is written. */
#define FREED		0x5a
#define CACHED		0x6b
#define MAPPED		0x7c
#define WRITTEN		0x33
#define EVIL		0x77
#define FILLING		0x11

/* Part of the memory that is filled: what is read back needs as much elsewhere. */
#define FILLED_PART	4

/* Half of it is the time until ticks pay: ten times what goes before the image. */
#define DEBT_AGE_MS	40000
#define PAID_LIMIT_S	400

static struct {
	struct stranger other;
	struct tfile freed, cached, mapped;
	char *at_freed, *at_cached, *at_mapped, *at_written;
	uint64_t left;
	long parked;
} scene;

/* The image is written to swap, which stays on for the next case. */
static void use_swap(void)
{
	const char *disk = getenv(DISK);
	int fd;

	if (!disk)
		ktap_skip("this machine is not to hibernate: no " DISK);
	if (access(POWER "pm_debug_messages", W_OK))
		ktap_skip("no hibernation that says what it does");
	if (read_kb("/proc/meminfo", "SwapTotal"))
		return;
	fd = (int)MUST(open(disk, O_RDWR | O_CLOEXEC));
	swap_format(fd);
	close(fd);
	ENSURE(!swapon(disk, 0), "%s: %m", disk);
}

/* Translations that write, of frames that are parked and not empty any more. */
static char *leave_writes(void)
{
	int tries;

	for (tries = 0; tries < TRIES; tries++) {
		char *p = fpr_map(NULL, 0, WRITTEN_PAGES,
				  PROT_READ | PROT_WRITE, MAP_PRIVATE);

		ENSURE(peer_write(p, WRITTEN_PAGES, WORD(WRITTEN)) ==
		       WRITTEN_PAGES, "the peer cannot write to the mapping");
		if (fpr_unmap(p, WRITTEN_PAGES) &&
		    holds_enough(peer_write(p, WRITTEN_PAGES, WORD(EVIL)),
				 WRITTEN_PAGES))
			return p;
	}
	ktap_retry("the peer writes to no parked frame: nothing to attack with");
}

/* What the peer reads in frames that are parked: their poison, or what was. */
static uint64_t left_in_frames(void)
{
	static uint64_t words[PAGES];
	uint64_t left = FAULTED;
	size_t i;

	peer_read(scene.at_freed, PAGES, words);
	for (i = 0; i < PAGES; i++) {
		if (words[i] == FAULTED)
			continue;
		ENSURE(left == FAULTED || words[i] == left,
		       "parked frames differ: %016llx, %016llx",
		       (unsigned long long)left,
		       (unsigned long long)words[i]);
		left = words[i];
	}
	return left;
}

/*
 * A large image: the kernel that reads it back first puts its pages where nothing
 * of it belongs, and so on the frames that it lacks.
 */
static void fill_memory(void)
{
	size_t length = (size_t)read_kb("/proc/meminfo", "MemTotal") * 1024 /
			FILLED_PART;
	char *p = mmap(NULL, length, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	ENSURE(p != MAP_FAILED, "mmap: %m");
	memset(p, FILLING, length);
}

/*
 * A file that is mapped; one whose pages the peer still reads although they are
 * unmapped; parked frames that it still reads, and some that it still writes to.
 */
static void make_scene(void)
{
	use_swap();
	pin_to_cpu(0);
	stranger_start(&scene.other);
	fill_memory();
	file_make(&scene.freed, ON_TMPFS, PAGES, FREED);
	file_make(&scene.cached, ON_TMPFS, PAGES, CACHED);
	file_make(&scene.mapped, ON_TMPFS, PAGES, MAPPED);
	peer_start(1);
	hold_debts();
	fpr_set("debt_age_ms", DEBT_AGE_MS);
	scene.at_mapped = fpr_map(&scene.mapped, 0, PAGES, PROT_READ,
				  MAP_SHARED);
	scene.at_cached = leave_stale(&scene.cached, 0, PAGES, PROT_READ,
				      MAP_SHARED, CACHED);
	scene.at_written = leave_writes();
	scene.at_freed = leave_stale(&scene.freed, 0, PAGES, PROT_READ,
				     MAP_SHARED, FREED);
	file_drop(&scene.freed);
	scene.left = left_in_frames();
	scene.parked = fpr_sysfs("parked");
	ENSURE(scene.parked >= (PAGES + WRITTEN_PAGES) * 9 / 10,
	       "%ld of %d frames are parked", scene.parked,
	       PAGES + WRITTEN_PAGES);
}

/* Whether the kernel has logged a text since @fd was at the end. */
static bool logged(int fd, const char *text)
{
	char record[4096];
	ssize_t n;

	for (;;) {
		n = read(fd, record, sizeof(record) - 1);
		if (n < 0 && errno == EPIPE)
			continue;
		if (n <= 0)
			return false;
		record[n] = '\0';
		if (strstr(record, text))
			return true;
	}
}

/* The peer tries what it has, until it is frozen and from when it is thawed. */
static void hibernate(const char *how)
{
	int log = (int)MUST(open("/dev/kmsg", O_RDONLY | O_NONBLOCK |
				 O_CLOEXEC));
	double begin = seconds();

	MUST(lseek(log, 0, SEEK_END));
	/* As large as it may get: nobody has to reclaim for it. */
	ENSURE(write_text(POWER "image_size", "1000000000000") &&
	       write_text(POWER "pm_debug_messages", "1"), POWER ": %m");
	ENSURE(write_text(POWER "disk", how), POWER "disk: %m");
	peer_begin_watch(scene.at_freed, PAGES, scene.left);
	ENSURE(write_text(POWER "state", "disk"),
	       "no hibernation, for want of swap or of a device: %m");
	ENSURE(peer_end_watch() == scene.left,
	       "the peer has read %016llx of another owner",
	       (unsigned long long)peer_end_watch());
	ENSURE(logged(log, RESTORED), "the kernel has resumed from no image");
	ktap_note("%.1f s of this boot", seconds() - begin);
	close(log);
}

/* All CPUs have been off, or are those of another boot. */
static void nothing_is_reached(const char *p, size_t pages, const char *what)
{
	size_t reached = pages - peer_count(p, pages, FAULTED);

	ENSURE(!reached, "the peer still reads %zu of %zu %s", reached, pages,
	       what);
}

static void holds(const struct tfile *f, unsigned char byte, const char *what)
{
	static unsigned char page[PAGE], want[PAGE];
	size_t i;

	memset(want, byte, sizeof(want));
	for (i = 0; i < f->pages; i++) {
		MUST(pread(f->fd, page, PAGE, (off_t)(i * PAGE)));
		ENSURE(!memcmp(page, want, PAGE), "page %zu of the %s is wrong",
		       i, what);
	}
}

/* The image has everything: contents, mappings, the frames that were parked. */
static void look_around(void)
{
	long parked = fpr_sysfs("parked");

	nothing_is_reached(scene.at_freed, PAGES, "parked frames");
	nothing_is_reached(scene.at_written, WRITTEN_PAGES, "written frames");
	nothing_is_reached(scene.at_cached, PAGES, "pages of a file");
	holds(&scene.mapped, MAPPED, "file that is mapped");
	holds(&scene.cached, CACHED, "file that was unmapped");
	ENSURE(peer_count(scene.at_mapped, PAGES, WORD(MAPPED)) == PAGES,
	       "the mapping does not show the file");
	ENSURE(parked >= scene.parked * 9 / 10,
	       "%ld frames are parked, before the image %ld", parked,
	       scene.parked);
}

/* Parked frames come back empty. A kernel that poisons looks at each. */
static void recycle(void)
{
	static const char empty[PAGE];
	long before = vmstat("fpr_recycle");
	char *p = fpr_map(NULL, 0, AGAIN_PAGES, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE);
	size_t i;

	for (i = 0; i < AGAIN_PAGES; i++) {
		p[i * PAGE] = 0;
		ENSURE(!memcmp(p + i * PAGE, empty, PAGE),
		       "page %zu of new memory is not empty", i);
	}
	ENSURE(vmstat("fpr_recycle") >= before + AGAIN_PAGES / 2,
	       "%ld of %d frames were recycled", vmstat("fpr_recycle") - before,
	       AGAIN_PAGES);
}

/* New debts are as good as those before: another process gets none of it. */
static void attack_again(void)
{
	long parks = vmstat("fpr_park");
	char *p = leave_stale(&scene.cached, 0, PAGES, PROT_READ, MAP_SHARED,
			      CACHED);
	size_t seen;

	file_drop(&scene.cached);
	parks = vmstat("fpr_park") - parks;
	ENSURE(parks >= PAGES * 9 / 10, "%ld of %d frames parked", parks,
	       PAGES);
	stranger_fill(&scene.other, FILL_ANON, FILL_MIB);
	seen = peer_count(p, PAGES, WORD(SECRET));
	ENSURE(!seen, "%zu pages of another process are visible", seen);
}

/* What was written to when it was free is for others now: the log shows it. */
static void hand_out(void)
{
	ENSURE(fpr_wait_sysfs_at_most("parked", PAGES / 10, PAID_LIMIT_S),
	       "%ld frames are still parked after %d s", fpr_sysfs("parked"),
	       PAID_LIMIT_S);
	stranger_fill(&scene.other, FILL_ANON, FILL_MIB);
	stranger_stop(&scene.other);
}

/* In the same boot: written, read back, and gone on from. */
static void test_resume(void)
{
	long drains;

	make_scene();
	drains = vmstat("fpr_drain_age");
	hibernate("test_resume");
	ENSURE(vmstat("fpr_drain_age") == drains, "too slow: paid before");
	look_around();
	recycle();
	attack_again();
	/* The work that was queued before the image. */
	ENSURE(wait_vmstat_above("fpr_drain_age", drains, PAID_LIMIT_S),
	       "what was owed is not paid in %d s", PAID_LIMIT_S);
	hand_out();
}

/* The machine boots, and the kernel that has booted gives way to the image. */
static void boot_between(void)
{
	make_scene();
	hibernate("reboot");
	look_around();
	recycle();
	attack_again();
	/* Whoever wants what is parked is not told that it is clean. */
	ENSURE(write_text("/proc/sys/vm/compact_memory", "1"),
	       "compact_memory: %m");
	hand_out();
}

int main(int argc, char **argv)
{
	static const struct ktap_case cases[] = {
		{ "test_resume", test_resume, 1200 },
		{ "boot_between", boot_between, 1200 },
	};

	return ktap_main(argc, argv, cases, KTAP_COUNT(cases));
}
