// SPDX-License-Identifier: GPL-2.0
/* Frames by their number, see frames.h. */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "env.h"
#include "frames.h"
#include "ktap.h"
#include "map.h"

#define MEMORY		"/sys/devices/system/memory/"
#define CMA		"/sys/kernel/debug/cma/"
#define CMA_TRIES	25
#define LIMIT_S		30
#define STEER_STEP	(16 * MIB)
#define STEER_MOST	(512 * MIB)
#define STEER_PAGES	16
#define STEER_BLOCKS	64

void frames_of_file(const struct tfile *f, uint64_t *frames)
{
	char *p = mmap(NULL, f->pages * PAGE, PROT_READ,
		       MAP_SHARED | MAP_POPULATE, f->fd, 0);
	size_t i;

	ENSURE(p != MAP_FAILED, "mmap: %m");
	frames_of(p, f->pages, frames);
	for (i = 0; i < f->pages; i++)
		ENSURE(frames[i], "page %zu has no frame", i);
	munmap(p, f->pages * PAGE);
}

static void on_alarm(int unused)
{
	(void)unused;
}

bool write_for(const char *path, const char *text, unsigned int limit)
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

/* Is all of a block memory? One with a hole never goes offline. */
static bool is_whole(long block)
{
	unsigned long size = block_size(), start, end, first, last;
	FILE *f = fopen("/proc/iomem", "re");
	char line[256];
	bool whole = false;

	first = (unsigned long)block * size;
	last = first + size - 1;
	ENSURE(f, "/proc/iomem: %m");
	while (!whole && fgets(line, sizeof(line), f))
		whole = sscanf(line, "%lx-%lx", &start, &end) == 2 &&
			strstr(line, "System RAM") && start <= first &&
			end >= last;
	fclose(f);
	return whole;
}

/* Can it go offline with all that is in it? @last saves asking for each frame. */
static bool is_removable(long block, long *last, bool *removable)
{
	if (block != *last) {
		*last = block;
		*removable = is_movable(block) && is_whole(block);
	}
	return *removable;
}

/* Is there any memory that can go offline? */
static bool any_removable(void)
{
	bool removable = false;
	long block, last = -1;

	for (block = 0; block < STEER_BLOCKS && !removable; block++)
		is_removable(block, &last, &removable);
	return removable;
}

/* Memory that is taken and kept until its frames can go offline; that is given back. */
void frames_steer(size_t count)
{
	unsigned long size = block_size(), taken, i;
	bool removable = false;
	long last = -1;
	size_t right;
	char *p;

	if (!any_removable())
		ktap_skip("no frame in ZONE_MOVABLE: boot with movablecore=");
	for (taken = 0; taken < STEER_MOST; taken += STEER_STEP) {
		p = mmap(NULL, STEER_STEP, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
		ENSURE(p != MAP_FAILED, "mmap: %m");
		/* One page of many will do. */
		for (i = right = 0; i < STEER_STEP; i += STEER_PAGES * PAGE)
			if (is_removable((long)(frame_of(p + i) * PAGE / size),
					 &last, &removable))
				right += STEER_PAGES;
		if (right < 2 * count)
			continue;
		munmap(p, STEER_STEP);
		return;
	}
	ktap_retry("no frame is where memory can go offline");
}

long frames_block(const uint64_t *frames, size_t count)
{
	unsigned long size = block_size();
	long best = -1, tried = -1;
	size_t i, inside, most = 0;

	for (i = 0; i < count; i++) {
		long block = (long)(frames[i] * PAGE / size);

		if (block == tried || block == best)
			continue;
		tried = block;
		inside = frames_in_block(frames, count, block);
		if (inside > most && is_movable(block) && is_whole(block)) {
			best = block;
			most = inside;
		}
	}
	if (best < 0)
		ktap_retry("no frame is where memory can go offline");
	return best;
}

size_t frames_in_block(const uint64_t *frames, size_t count, long block)
{
	unsigned long size = block_size();
	size_t i, inside = 0;

	for (i = 0; i < count; i++)
		inside += (long)(frames[i] * PAGE / size) == block;
	return inside;
}

static bool block_state(long block, const char *state)
{
	char path[128];

	snprintf(path, sizeof(path), MEMORY "memory%ld/state", block);
	return write_for(path, state, LIMIT_S);
}

bool block_offline(long block)
{
	return block_state(block, "offline");
}

void block_online(long block)
{
	ENSURE(block_state(block, "online_movable"), "block %ld: %m", block);
}

static long area_number(const struct area *a, const char *name)
{
	char path[400];

	snprintf(path, sizeof(path), CMA "%s/%s", a->name, name);
	return read_number(path);
}

void area_find(struct area *a)
{
	struct dirent *entry;
	DIR *dir = opendir(CMA);

	if (!dir)
		ktap_skip("no " CMA);
	a->name[0] = '\0';
	while ((entry = readdir(dir)))
		if (entry->d_name[0] != '.')
			snprintf(a->name, sizeof(a->name), "%s", entry->d_name);
	closedir(dir);
	a->base = a->name[0] ? area_number(a, "base_pfn") : 0;
	a->pages = a->name[0] ? area_number(a, "count") : 0;
	if (a->pages <= 0)
		ktap_skip("no contiguous area: boot with cma=");
}

size_t frames_in_area(const uint64_t *frames, size_t count,
		      const struct area *a)
{
	size_t i, inside = 0;

	for (i = 0; i < count; i++)
		inside += (long)frames[i] >= a->base &&
			  (long)frames[i] < a->base + a->pages;
	return inside;
}

static bool area_write(const struct area *a, const char *name)
{
	char path[400], text[32];

	snprintf(text, sizeof(text), "%ld", a->pages - a->pages % 1024);
	snprintf(path, sizeof(path), CMA "%s/%s", a->name, name);
	return write_for(path, text, LIMIT_S);
}

bool area_alloc(const struct area *a)
{
	int tries;

	/* A page in there that somebody uses just now makes it fail as a whole. */
	for (tries = 0; tries < CMA_TRIES; tries++) {
		if (tries)
			sleep_ms(200);
		if (area_write(a, "alloc"))
			return true;
	}
	return false;
}

void area_free(const struct area *a)
{
	ENSURE(area_write(a, "free"), "the area cannot be freed: %m");
}

bool frame_give_up(const char *how, uint64_t frame)
{
	char path[128], text[32];

	snprintf(path, sizeof(path), MEMORY "%s_offline_page", how);
	if (access(path, W_OK))
		ktap_skip("no %s", path);
	snprintf(text, sizeof(text), "0x%llx",
		 (unsigned long long)(frame * PAGE));
	return write_for(path, text, LIMIT_S);
}

bool frame_take_back(uint64_t frame)
{
	char text[32];

	snprintf(text, sizeof(text), "0x%llx", (unsigned long long)frame);
	return write_text("/sys/kernel/debug/hwpoison/unpoison-pfn", text);
}

void frame_flags_read(uint64_t first, uint64_t *flags, size_t count)
{
	int fd = (int)MUST(open("/proc/kpageflags", O_RDONLY | O_CLOEXEC));

	memset(flags, 0, count * sizeof(*flags));
	MUST(pread(fd, flags, count * sizeof(*flags),
		   (off_t)(first * sizeof(*flags))));
	close(fd);
}

long frames_given_up(void)
{
	return read_kb("/proc/meminfo", "HardwareCorrupted") / 4;
}
