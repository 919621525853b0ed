// SPDX-License-Identifier: GPL-2.0
/*
 * I1, I6: numbers that come to their end. Identifiers of contexts are given out
 * again, or are all in use; generations of a process do not fit into a tag any
 * more. The debug kernel can be told to have few identifiers, as if their
 * field had four bits, and to start with a late generation.
 */
#define _GNU_SOURCE
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "env.h"
#include "file.h"
#include "ktap.h"
#include "map.h"
#include "peer.h"
#include "stranger.h"

#define PAGES		64
#define OWN		0x5a
#define FILL_MIB	32
/* As in four bits; the last value is for frames that several can reach. */
#define IDS		14
#define TAG_GEN_BITS	41
/* Of the first process, so that its tags are later than any of the second. */
#define LATE		100000
/* Ten times what a drain takes here. */
#define LIMIT_S		20
/* A munmap that flushes, until a process is at the end. */
#define ROUNDS		64

/* Uses FPR once, so that the next process gets the next identifier. */
static void use_identifier(void)
{
	pid_t pid = (pid_t)MUST(fork());
	int status;

	if (!pid) {
		struct tfile f;

		file_make(&f, ON_TMPFS, 1, OWN);
		fpr_map(&f, 0, 1, PROT_READ, MAP_SHARED);
		_exit(0);
	}
	MUST(waitpid(pid, &status, 0));
	ENSURE(!status, "a process that maps has failed (%x)",
	       (unsigned int)status);
}

static struct tfile common;

/* Leaves the pages of a file that goes on, tagged with a late generation. */
static void leave_and_end(void)
{
	pid_t pid = (pid_t)MUST(fork());
	int status;

	if (!pid) {
		fpr_first_generation(LATE);
		peer_start(1);
		leave_skipped(&common, 0, PAGES);
		_exit(0);
	}
	MUST(waitpid(pid, &status, 0));
	fpr_first_generation(0);
	ENSURE(!status, "the process that leaves pages has failed (%x)",
	       (unsigned int)status);
}

/*
 * Frames that carry the tag of a process that is gone. A new one has its
 * identifier, and generations that never reach those of the tags. It parks such
 * a frame, for it cannot know, but only until the next drain.
 */
static void reused(void)
{
	long parks, i;

	file_make(&common, ON_TMPFS, PAGES, OWN);
	hold_debts();
	fpr_id_max(IDS);
	leave_and_end();
	for (i = 1; i < IDS; i++)
		use_identifier();
	peer_start(1);
	/* Ours, with the identifier of the first: a mapping of something else. */
	fpr_map(NULL, 0, 1, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS);
	parks = vmstat("fpr_park");
	file_drop(&common);
	parks = vmstat("fpr_park") - parks;
	ENSURE(parks >= PAGES * 9 / 10,
	       "%ld frames were parked: nobody has the identifier", parks);
	fpr_set("pool_limit", 0);
	/* The next one to be parked asks for the drain. */
	file_make(&common, ON_TMPFS, PAGES, OWN);
	leave_skipped(&common, 0, PAGES);
	file_drop(&common);
	ENSURE(fpr_wait_sysfs_at_most("parked", 0, LIMIT_S),
	       "%ld frames stay parked", fpr_sysfs("parked"));
}

static long use_and_stay(long unused)
{
	struct tfile f;
	char *p;

	(void)unused;
	file_make(&f, ON_TMPFS, 1, OWN);
	p = mmap(NULL, PAGE, PROT_READ, MAP_SHARED | MAP_FPR, f.fd, 0);
	if (p == MAP_FAILED || probe_read(p) != WORD(OWN))
		return -1;
	return smaps_has_flag(p, "fr");
}

/* More processes than identifiers: those that get none map as ever. */
static void used_up(void)
{
	static struct stranger users[IDS + 4];
	long refused = vmstat("fpr_map_ineligible_arena");
	long with = 0, i;

	fpr_id_max(IDS);
	for (i = 0; i < IDS + 4; i++)
		stranger_start(&users[i]);
	for (i = 0; i < IDS + 4; i++) {
		long has = stranger_call(&users[i], use_and_stay, 0);

		ENSURE(has >= 0, "process %ld could not map and read", i);
		with += has;
	}
	refused = vmstat("fpr_map_ineligible_arena") - refused;
	ENSURE(with == IDS, "%ld processes have one of %d identifiers", with,
	       IDS);
	ENSURE(refused == 4, "%ld refusals were counted", refused);
	for (i = 0; i < IDS + 4; i++)
		stranger_stop(&users[i]);
	ENSURE(fpr_wait_sysfs_at_most("contexts", 0, LIMIT_S),
	       "%ld contexts stay", fpr_sysfs("contexts"));
	use_identifier();
}

/* From the last generations that fit into a tag to the first that do not. */
static void end_of_generations(void)
{
	long skips = vmstat("fpr_skip"), flushes = vmstat("fpr_flush_tags");
	struct stranger stranger;
	struct tfile f;
	int round;

	stranger_start(&stranger);
	file_make(&f, ON_TMPFS, PAGES, OWN);
	peer_start(1);
	hold_debts();
	fpr_first_generation((1UL << TAG_GEN_BITS) - ROUNDS / 2);
	/* Room for tags, and the hooks in place: they flush, too. */
	leave_skipped(&f, 0, PAGES);
	skips = vmstat("fpr_skip");
	flushes = vmstat("fpr_flush_tags");
	for (round = 0; round < ROUNDS; round++) {
		char *p = fpr_map(&f, 0, PAGES, PROT_READ, MAP_SHARED);
		size_t leaked;

		peer_touch(p, PAGES);
		MUST(munmap(p, PAGES * PAGE));
		file_drop(&f);
		stranger_fill(&stranger, FILL_ANON, 1);
		leaked = peer_count(p, PAGES, WORD(SECRET));
		ENSURE(!leaked, "round %d: %zu of %d pages of another process are readable",
		       round, leaked, PAGES);
		file_fill(&f, 0, PAGES, OWN);
		full_flush();
	}
	skips = vmstat("fpr_skip") - skips;
	flushes = vmstat("fpr_flush_tags") - flushes;
	ktap_note("%ld munmaps skipped, then %ld flushed", skips, flushes);
	ENSURE(skips > 1, "%ld munmaps skipped", skips);
	ENSURE(flushes > 1, "%ld munmaps flushed for their tags", flushes);
	stranger_stop(&stranger);
}

int main(int argc, char **argv)
{
	static const struct ktap_case cases[] = {
		{ "reused", reused, 0 },
		{ "used_up", used_up, 0 },
		{ "end_of_generations", end_of_generations, 0 },
	};

	return ktap_main(argc, argv, cases, KTAP_COUNT(cases));
}
