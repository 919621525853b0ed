// SPDX-License-Identifier: GPL-2.0
/*
 * I6: whoever needs certain frames gets them although some of them are parked:
 * memory that is taken offline, contiguous allocations, frames that are to be
 * given up because their hardware is bad.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "env.h"
#include "file.h"
#include "ktap.h"
#include "map.h"
#include "peer.h"

#define PAGES		256
#define OWN		0x5a
#define MEMORY		"/sys/devices/system/memory/"

static uint64_t frames[PAGES];

static void note_frames(const struct tfile *f)
{
	char *p = mmap(NULL, PAGES * PAGE, PROT_READ,
		       MAP_SHARED | MAP_POPULATE, f->fd, 0);
	size_t i;

	ENSURE(p != MAP_FAILED, "mmap: %m");
	for (i = 0; i < PAGES; i++) {
		frames[i] = frame_of(p + i * PAGE);
		ENSURE(frames[i], "page %zu has no frame", i);
	}
	munmap(p, PAGES * PAGE);
}

/* Frames of the file, parked, and known to the case; owed for @age_ms. */
static char *park(struct tfile *f, long age_ms)
{
	long parks;
	char *p;

	file_make(f, ON_TMPFS, PAGES, OWN);
	peer_start(1);
	hold_debts();
	fpr_set("debt_age_ms", age_ms);
	note_frames(f);
	p = leave_stale(f, 0, PAGES, PROT_READ, MAP_SHARED, OWN);
	parks = vmstat("fpr_park");
	file_drop(f);
	parks = vmstat("fpr_park") - parks;
	ENSURE(parks >= PAGES * 9 / 10, "%ld of %d frames parked", parks,
	       PAGES);
	return p;
}

static void on_alarm(int unused)
{
	(void)unused;
}

/* Offline goes on for ever when it cannot; a signal ends it. */
static bool write_for(const char *path, const char *text, unsigned int limit)
{
	struct sigaction action = { .sa_handler = on_alarm };
	bool done;

	sigaction(SIGALRM, &action, NULL);
	alarm(limit);
	done = write_text(path, text);
	alarm(0);
	return done;
}

static bool is_movable(long block)
{
	char path[128], zones[64] = "";
	FILE *f;

	snprintf(path, sizeof(path), MEMORY "memory%ld/valid_zones", block);
	f = fopen(path, "re");
	if (!f)
		return false;
	if (!fgets(zones, sizeof(zones), f))
		zones[0] = '\0';
	fclose(f);
	return !strncmp(zones, "Movable", 7);
}

static unsigned long block_size(void)
{
	char text[32] = "";
	FILE *f = fopen(MEMORY "block_size_bytes", "re");

	if (!f)
		ktap_skip("no memory hotplug");
	if (!fgets(text, sizeof(text), f))
		text[0] = '\0';
	fclose(f);
	return strtoul(text, NULL, 16);
}

/* A block that holds some of the frames; a drain must be counted. */
static void take_offline(const char *counter)
{
	long drains, block = -1;
	size_t i, inside = 0;
	char path[128];
	bool done;

	for (i = 0; i < PAGES && block < 0; i++) {
		block = (long)(frames[i] * PAGE / block_size());
		if (!is_movable(block))
			block = -1;
	}
	if (block < 0)
		ktap_skip("no frame in ZONE_MOVABLE: boot with movablecore=");
	for (i = 0; i < PAGES; i++)
		inside += (long)(frames[i] * PAGE / block_size()) == block;
	drains = vmstat(counter);
	snprintf(path, sizeof(path), MEMORY "memory%ld/state", block);
	done = write_for(path, "offline", 30);
	if (done)
		write_text(path, "online_movable");
	ENSURE(done, "block %ld, with %zu of the frames, does not go offline: %m",
	       block, inside);
	ENSURE(vmstat(counter) > drains, "%s does not rise", counter);
	ktap_note("block %ld with %zu of the frames went offline", block,
		  inside);
}

/* Frames that are parked before: as those of the per-cpu lists. */
static void memory_offline(void)
{
	struct tfile f;

	block_size();
	park(&f, 60000);
	take_offline("fpr_drain_pcp");
}

/* Pages that are migrated away: what they leave is parked then. */
static void offline_migrates(void)
{
	struct tfile f;

	block_size();
	file_make(&f, ON_TMPFS, PAGES, OWN);
	peer_start(1);
	hold_debts();
	note_frames(&f);
	leave_stale(&f, 0, PAGES, PROT_READ, MAP_SHARED, OWN);
	take_offline("fpr_drain_isolate");
}

#define CMA		"/sys/kernel/debug/cma/"
#define CMA_TRIES	25

static long cma_number(const char *area, const char *name)
{
	char path[400];

	snprintf(path, sizeof(path), CMA "%s/%s", area, name);
	return read_number(path);
}

/* All of a contiguous area, in which frames are parked. */
static void contiguous_area(void)
{
	char area[256] = "", path[400], text[32];
	struct dirent *entry;
	long base = 0, count = 0, drains, half;
	DIR *dir = opendir(CMA);
	size_t i, inside = 0;
	struct tfile f;
	int tries;
	bool done;

	if (!dir)
		ktap_skip("no " CMA);
	while ((entry = readdir(dir)))
		if (entry->d_name[0] != '.')
			snprintf(area, sizeof(area), "%s", entry->d_name);
	closedir(dir);
	if (area[0]) {
		base = cma_number(area, "base_pfn");
		count = cma_number(area, "count");
	}
	if (count <= 0)
		ktap_skip("no contiguous area: boot with cma=");
	park(&f, 60000);
	for (i = 0; i < PAGES; i++)
		inside += (long)frames[i] >= base &&
			  (long)frames[i] < base + count;
	if (!inside)
		ktap_skip("no parked frame in the contiguous area");
	drains = vmstat("fpr_drain_pcp");
	half = count - count % 1024;
	snprintf(text, sizeof(text), "%ld", half);
	snprintf(path, sizeof(path), CMA "%s/alloc", area);
	/* A page in there that somebody uses just now makes it fail as a whole. */
	for (tries = 0, done = false; tries < CMA_TRIES && !done; tries++) {
		if (tries)
			sleep_ms(200);
		done = write_for(path, text, 30);
	}
	if (done) {
		snprintf(path, sizeof(path), CMA "%s/free", area);
		write_text(path, text);
	}
	ENSURE(done, "%ld pages with %zu parked frames cannot be allocated: %m",
	       half, inside);
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
	char *p = park(&f, 60000);

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

static bool give_up(const char *how, uint64_t frame)
{
	char path[128], text[32];

	snprintf(path, sizeof(path), MEMORY "%s_offline_page", how);
	if (access(path, W_OK))
		ktap_skip("no %s", path);
	snprintf(text, sizeof(text), "0x%llx",
		 (unsigned long long)(frame * PAGE));
	return write_for(path, text, 30);
}

static void take_back(uint64_t frame)
{
	char text[32];

	snprintf(text, sizeof(text), "0x%llx", (unsigned long long)frame);
	write_text("/sys/kernel/debug/hwpoison/unpoison-pfn", text);
}

/* A page of the file that the peer still reads turns out to be bad. */
static void bad_in_use(const char *how)
{
	struct tfile f;
	double begin;
	char *p;

	file_make(&f, ON_DISK, PAGES, OWN);
	peer_start(1);
	note_frames(&f);
	p = leave_stale(&f, 0, PAGES, PROT_READ, MAP_SHARED, OWN);
	ENSURE(give_up(how, frames[3]), "the frame cannot be given up: %m");
	begin = seconds();
	while (peer_count(p + 3 * PAGE, 1, FAULTED) != 1) {
		ENSURE(seconds() < begin + 20,
		       "the peer still reads the bad frame after 20 s");
		sleep_ms(20);
	}
	take_back(frames[3]);
	ktap_note("unreachable after %.2f s", seconds() - begin);
}

static void soft_in_use(void)
{
	bad_in_use("soft");
}

static void hard_in_use(void)
{
	bad_in_use("hard");
}

/* A parked frame turns out to be bad: now or soon it can be given up. */
static void soft_parked(void)
{
	struct tfile f;
	double begin;
	bool done;

	park(&f, 2000);
	begin = seconds();
	do {
		done = give_up("soft", frames[3]);
		if (!done)
			sleep_ms(100);
	} while (!done && seconds() < begin + 20);
	ENSURE(done, "a parked frame cannot be given up in 20 s: %m");
	take_back(frames[3]);
	ktap_note("given up after %.2f s", seconds() - begin);
}

#define KPF_BUDDY	(1ULL << 10)
#define KPF_HWPOISON	(1ULL << 19)

/* A bad frame that is parked must not go back to those that are handed out. */
static void hard_parked(void)
{
	struct tfile f;
	uint64_t flags;

	park(&f, 2000);
	if (!give_up("hard", frames[3]))
		ktap_note("not given up at once: %s", strerror(errno));
	flags = frame_flags(frames[3]);
	ENSURE(fpr_wait_sysfs_at_most("parked", 0, 20), "frames stay parked");
	if (!(flags & KPF_HWPOISON))
		ktap_skip("a parked frame is not marked as bad");
	flags = frame_flags(frames[3]);
	take_back(frames[3]);
	ENSURE(!(flags & KPF_BUDDY), "a bad frame is free to be handed out");
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
		{ "soft_parked", soft_parked, 0 },
		{ "hard_parked", hard_parked, 0 },
	};

	return ktap_main(argc, argv, cases, KTAP_COUNT(cases));
}
