// SPDX-License-Identifier: GPL-2.0
/*
 * I6: whoever needs certain frames gets them although some of them are parked:
 * memory that is taken offline, contiguous allocations, frames that are to be
 * given up because their hardware is bad. And I5: nobody reaches those.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "checker.h"
#include "env.h"
#include "file.h"
#include "frames.h"
#include "host.h"
#include "ktap.h"
#include "map.h"
#include "peer.h"
#include "stranger.h"

#define PAGES		1024
#define OWN		0x5a
static uint64_t frames[PAGES];
/* The one that is bad: of those that a TLB still has, inside a large folio. */
static size_t bad;

/* A TLB does not hold everything: the last one that the peer still reads. */
static void choose_bad(const char *p)
{
	for (bad = PAGES - 13; bad > PAGES / 2; bad -= 16)
		if (!peer_count(p + bad * PAGE, 1, FAULTED))
			return;
	ktap_fail("the peer does not read the frames: nothing to attack");
}

/* The file is cached, and the peer still reads what was unmapped. */
static char *stale(struct tfile *f, enum place place)
{
	file_make(f, place, PAGES, OWN);
	peer_start(1);
	hold_debts();
	frames_of_file(f, frames);
	return leave_stale(f, 0, PAGES, PROT_READ, MAP_SHARED, OWN);
}

/* Frames of the file, parked, and known to the case. */
static char *park(struct tfile *f, enum place place)
{
	char *p = stale(f, place);
	long parks = vmstat("fpr_park");

	file_drop(f);
	parks = vmstat("fpr_park") - parks;
	ENSURE(parks >= PAGES * 9 / 10, "%ld of %d frames parked", parks,
	       PAGES);
	return p;
}

/* A block that holds some of the frames; a drain must be counted. */
static void take_offline(const char *counter)
{
	long drains, block = frames_block(frames, PAGES);
	size_t inside = frames_in_block(frames, PAGES, block);

	drains = vmstat(counter);
	/* Linux says so of each page that somebody holds for the moment, and tries again. */
	ktap_expect_log("page dumped because: migration failure");
	ENSURE(block_offline(block),
	       "block %ld, with %zu of the frames, does not go offline: %m",
	       block, inside);
	block_online(block);
	ENSURE(vmstat(counter) > drains, "%s does not rise", counter);
	ktap_note("block %ld with %zu of the frames went offline", block,
		  inside);
}

/* Frames that are parked before: as those of the per-cpu lists. */
static void memory_offline(void)
{
	struct tfile f;

	frames_steer(PAGES);
	park(&f, ON_TMPFS);
	take_offline("fpr_drain_pcp");
}

/* Pages that are migrated away: what they leave is parked then. */
static void offline_migrates(void)
{
	struct tfile f;

	frames_steer(PAGES);
	stale(&f, ON_TMPFS);
	take_offline("fpr_drain_isolate");
}

/* All of a contiguous area, in which frames are parked. */
static void contiguous_area(void)
{
	struct area area;
	struct tfile f;
	size_t inside;
	long drains;

	area_find(&area);
	park(&f, ON_TMPFS);
	inside = frames_in_area(frames, PAGES, &area);
	if (!inside)
		ktap_skip("no parked frame in the contiguous area");
	drains = vmstat("fpr_drain_pcp");
	ENSURE(area_alloc(&area),
	       "an area with %zu parked frames cannot be allocated: %m",
	       inside);
	area_free(&area);
	ENSURE(vmstat("fpr_drain_pcp") > drains, "no drain for the allocation");
	ktap_note("%zu parked frames were in the way", inside);
}

/* Compaction wants blocks of free memory: parked frames are to be part of it. */
static void compaction(void)
{
	static uint64_t words[PAGES];
	long drains = vmstat("fpr_drain_compact");
	struct tfile f;
	size_t i;
	char *p = park(&f, ON_TMPFS);

	ENSURE(write_text("/proc/sys/vm/compact_memory", "1"),
	       "compact_memory: %m");
	ENSURE(vmstat("fpr_drain_compact") > drains, "no drain for compaction");
	ENSURE(fpr_sysfs("parked") < PAGES / 10, "%ld frames are still parked",
	       fpr_sysfs("parked"));
	peer_read(p, PAGES, words);
	for (i = 0; i < PAGES; i++)
		ENSURE(words[i] == WORD(OWN) || words[i] == WORD(0xaa) ||
		       !words[i] || words[i] == FAULTED,
		       "stale page %zu reads %016llx", i,
		       (unsigned long long)words[i]);
}

/*
 * A frame is given up: at once, and counted, and nobody reads it from then on
 * or gets it, until it is good again and the kernel has it back.
 */
static void give_up(const char *how, const char *p)
{
	long count = frames_given_up();
	uint64_t flags;

	choose_bad(p);
	ENSURE(frame_give_up(how, frames[bad]), "it cannot be given up: %m");
	checker_forbid(p + bad * PAGE, 1);
	ENSURE(peer_count(p + bad * PAGE, 1, FAULTED) == 1,
	       "the peer still reads the bad frame");
	checker_allow(p + bad * PAGE, 1);
	flags = frame_flags(frames[bad]);
	ENSURE(flags & KPF_HWPOISON, "the frame is not marked as bad");
	ENSURE(!(flags & KPF_BUDDY), "a bad frame is free to be handed out");
	ENSURE(frames_given_up() == count + 1, "%ld bad frames, not %ld",
	       frames_given_up(), count + 1);
	ENSURE(frame_take_back(frames[bad]), "the frame is lost: %m");
	ENSURE(frames_given_up() == count, "%ld bad frames, not %ld",
	       frames_given_up(), count);
}

/* A page of the file that the peer still reads turns out to be bad. */
static void bad_in_use(const char *how)
{
	long flushes = vmstat("fpr_drain_poison");
	char byte = 0;
	struct tfile f;
	char *p = stale(&f, ON_DISK);

	give_up(how, p);
	ENSURE(vmstat("fpr_drain_poison") > flushes, "no flush is counted");
	ENSURE(pread(f.fd, &byte, 1, bad * PAGE) == 1 && byte == OWN,
	       "the page of the file is lost");
}

static void soft_in_use(void)
{
	bad_in_use("soft");
}

static void hard_in_use(void)
{
	bad_in_use("hard");
}

/* So long is a munmap between clearing entries and tagging frames. */
#define IN_FLIGHT_MS	3000

/* What the other process has done, in memory of both. */
static struct {
	uint64_t frame;
	bool begun;
	double marked;
} *in_flight;

/* Not where the munmap is: the kernel does not give that CPU away. */
static long pin_away(long cpu)
{
	pin_to_cpu((int)cpu);
	return 0;
}

/* Waits until the munmap is under way. */
static long give_up_in_flight(long unused)
{
	(void)unused;
	while (!__atomic_load_n(&in_flight->begun, __ATOMIC_ACQUIRE))
		;
	sleep_ms(IN_FLIGHT_MS / 4);
	/* "Failed": somebody else has a reference, the one who unmaps. */
	frame_give_up("hard", in_flight->frame);
	if (frame_flags(in_flight->frame) & KPF_HWPOISON)
		in_flight->marked = seconds();
	return 0;
}

/*
 * A page turns out to be bad when its entry has gone and its frame has no tag
 * yet: who gives it up finds nobody to flush for, so who unmaps it has to.
 */
static void hard_in_flight(void)
{
	long flushes = vmstat("fpr_flush_poison");
	struct stranger other;
	struct tfile f;
	double begun, ended;
	char *p, *q;

	need_cpus(3);
	in_flight = mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ENSURE(in_flight != MAP_FAILED, "mmap: %m");
	pin_to_cpu(0);
	stranger_start(&other);
	stranger_call(&other, pin_away, 2);
	/* Tags have room, and the munmap is known to skip. */
	p = stale(&f, ON_DISK);
	choose_bad(p);
	in_flight->frame = frames[bad];
	full_flush();
	q = fpr_map(&f, bad, 1, PROT_READ, MAP_SHARED);
	peer_touch(q, 1);
	stranger_ask(&other, give_up_in_flight, 0);
	fpr_skip_delay(IN_FLIGHT_MS);
	begun = seconds();
	__atomic_store_n(&in_flight->begun, true, __ATOMIC_RELEASE);
	MUST(munmap(q, PAGE));
	ended = seconds();
	PREMISE(in_flight->marked && in_flight->marked < ended,
		"the frame was not marked in the %.1f s of the munmap",
		ended - begun);
	fpr_skip_delay(0);
	checker_forbid(q, 1);
	ENSURE(peer_count(q, 1, FAULTED) == 1,
	       "the peer still reads the bad frame");
	checker_allow(q, 1);
	ENSURE(vmstat("fpr_flush_poison") > flushes, "no flush is counted");
	stranger_answer(&other);
	stranger_stop(&other);
	file_drop(&f);
	ENSURE(frame_take_back(in_flight->frame), "the frame is lost: %m");
}

/* A frame that is parked is free memory, for who looks at it from outside. */
static void bad_parked(const char *how, enum place place)
{
	struct tfile f;
	char *p = park(&f, place);

	give_up(how, p);
	ENSURE(fpr_wait_sysfs_at_most("parked", 0, 20), "frames stay parked");
}

static void soft_parked(void)
{
	bad_parked("soft", ON_TMPFS);
}

static void hard_parked(void)
{
	bad_parked("hard", ON_TMPFS);
}

static void soft_parked_large(void)
{
	bad_parked("soft", ON_LARGE);
}

static void hard_parked_large(void)
{
	bad_parked("hard", ON_LARGE);
}

/* What is free is reported a few seconds later, and marked: page_reporting.h. */
#define KPF_REPORTED	(1ULL << 3)
#define AROUND		0x10000UL
#define REPORT_LIMIT_S	60
#define ORDER		"/sys/module/page_reporting/parameters/page_reporting_order"

/* How many of the free frames around those of the file are. */
static long reported_around(void)
{
	const uint64_t free = KPF_BUDDY | KPF_REPORTED;
	static uint64_t flags[AROUND];
	long count = 0;
	size_t i;

	frame_flags_read(frames[0] & ~(AROUND - 1), flags, AROUND);
	for (i = 0; i < AROUND; i++)
		count += (flags[i] & free) == free;
	return count;
}

/* The host of a virtual machine takes free memory: zeros come back. */
static void taken_by_host(void)
{
	static uint64_t words[PAGES];
	double until = seconds() + REPORT_LIMIT_S;
	struct tfile f;
	size_t i;
	char *p;

	if (read_number(ORDER))
		ktap_skip("single pages are not reported: " ORDER);
	p = park(&f, ON_TMPFS);
	while (!reported_around())
		ENSURE(seconds() < until, "no page is reported");
	/* Each round takes a part of what is free. */
	sleep_ms(REPORT_LIMIT_S / 4 * 1000);
	for (i = 0; i < PAGES; i++)
		ENSURE(!(frame_flags(frames[i]) & KPF_BUDDY),
		       "frame %zu is free", i);
	peer_read(p, PAGES, words);
	for (i = 0; i < PAGES; i++)
		ENSURE(words[i], "the host has taken frame %zu", i);
	ktap_note("%ld frames were reported", reported_around());
}

#define KPF_OFFLINE	(1ULL << 23)
/* What the balloon leaves at first: it takes nearly all that is free. */
#define LEFT_MIB	64
#define BALLOON_LIMIT_S	300

/* Whoever has lost a frame to the host reads zeros where the peer still reads. */
static void none_taken(const char *p)
{
	static uint64_t words[PAGES];
	size_t i;

	peer_read(p, PAGES, words);
	for (i = 0; i < PAGES; i++) {
		ENSURE(words[i] == FAULTED ||
		       !(frame_flags(frames[i]) & KPF_OFFLINE),
		       "the peer reads frame %zu, which is in the balloon", i);
		ENSURE(words[i], "the host has taken frame %zu", i);
	}
}

/*
 * A balloon takes memory from the allocator and gives it to the host at once:
 * what the peer still reaches is not for it. When memory becomes short for its
 * sake, what is parked is no exception.
 */
static void taken_by_balloon(void)
{
	struct tfile f;
	char *p = park(&f, ON_TMPFS);
	long most = read_kb("/proc/meminfo", "MemFree") / 1024;

	host_leave(host_memory() - most + LEFT_MIB);
	host_wait_inflated(most - LEFT_MIB, BALLOON_LIMIT_S);
	none_taken(p);
	ktap_note("%ld of %ld MiB are in the balloon, %ld frames parked",
		  host_balloon(), host_memory(), fpr_sysfs("parked"));
	host_leave(host_memory() - most);
	ENSURE(fpr_wait_sysfs_at_most("parked", PAGES / 10, BALLOON_LIMIT_S),
	       "%ld frames are still parked while memory is short",
	       fpr_sysfs("parked"));
	none_taken(p);
	/* A machine that ends before it is empty complains. */
	host_leave(host_memory());
	host_wait_deflated(0, BALLOON_LIMIT_S);
}

#define IMAGE_TRIES	10
#define POWER		"/sys/power/"

/*
 * Hibernation freezes all tasks and takes memory for its image: here until the
 * devices would be suspended. What was parked is no obstacle, and who is thawed
 * reads nothing that is not his.
 */
static void memory_for_image(void)
{
	static uint64_t words[PAGES];
	struct tfile f;
	size_t i;
	char *p;
	int tries;

	if (access(POWER "pm_test", F_OK))
		ktap_skip("no hibernation that ends before the devices");
	p = park(&f, ON_TMPFS);
	ENSURE(write_text(POWER "image_size", "0") &&
	       write_text(POWER "disk", "shutdown") &&
	       write_text(POWER "pm_test", "freezer"), POWER ": %m");
	/* On a busy machine kswapd may not be through in the time that it has. */
	for (tries = 0; ; tries++) {
		/* What nobody uses would only be shrunk away, page by page. */
		ENSURE(write_text("/proc/sys/vm/drop_caches", "1"),
		       "drop_caches: %m");
		if (write_text(POWER "state", "disk"))
			break;
		ENSURE(errno == EBUSY && tries < IMAGE_TRIES, "hibernation: %m");
	}
	ENSURE(fpr_wait_sysfs_at_most("parked", PAGES / 10, 20),
	       "%ld frames are still parked", fpr_sysfs("parked"));
	peer_read(p, PAGES, words);
	for (i = 0; i < PAGES; i++)
		ENSURE(words[i] == WORD(OWN) || words[i] == WORD(0xaa) ||
		       words[i] == FAULTED,
		       "stale page %zu reads %016llx of another owner", i,
		       (unsigned long long)words[i]);
}

int main(int argc, char **argv)
{
	static const struct ktap_case cases[] = {
		{ "memory_offline", memory_offline, 0 },
		{ "offline_migrates", offline_migrates, 0 },
		{ "contiguous_area", contiguous_area, 0 },
		{ "compaction", compaction, 0 },
		{ "soft_in_use", soft_in_use, 0 },
		{ "hard_in_use", hard_in_use, 0 },
		{ "hard_in_flight", hard_in_flight, 0 },
		{ "soft_parked", soft_parked, 0 },
		{ "hard_parked", hard_parked, 0 },
		{ "soft_parked_large", soft_parked_large, 0 },
		{ "hard_parked_large", hard_parked_large, 0 },
		{ "taken_by_host", taken_by_host, 0 },
		{ "taken_by_balloon", taken_by_balloon, 600 },
		{ "memory_for_image", memory_for_image, 600 },
	};

	return ktap_main(argc, argv, cases, KTAP_COUNT(cases));
}
