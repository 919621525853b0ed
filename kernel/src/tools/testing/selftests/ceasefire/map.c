// SPDX-License-Identifier: GPL-2.0
/* Mappings under attack, see map.h. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "context.h"
#include "env.h"
#include "ktap.h"
#include "map.h"
#include "peer.h"

#define STALE_TRIES	20

/* An emulated TLB holds some hundred entries, those of other pages, too. */
#define ENOUGH		48

void hold_debts(void)
{
	fpr_set("debt_age_ms", 60000);
	fpr_set("pool_limit", 1 << 20);
	fpr_set("parked_limit", 1 << 20);
	fpr_set("stale_limit", 1 << 20);
	if (!lazy())
		return;
	latr_set("settle_ms", 60000);
	latr_set("late_ms", 60000);
	latr_set("held_limit", 1 << 20);
}

void *fpr_map(const struct tfile *f, size_t first, size_t pages, int prot,
	      int flags)
{
	long before = vmstat("fpr_map");
	void *p = mmap(NULL, pages * PAGE, prot,
		       flags | (lazy() ? 0 : MAP_FPR) | (f ? 0 : MAP_ANONYMOUS),
		       f ? f->fd : -1, (off_t)(first * PAGE));

	ENSURE(p != MAP_FAILED, "mmap: %m");
	ENSURE(lazy() || vmstat("fpr_map") > before,
	       "the mapping is not counted");
	return p;
}

/* What a munmap may count: a skip, or why it flushed. */
static const char *const unmap_counters[] = {
	"fpr_skip",
	"fpr_flush_local", "fpr_flush_tags", "fpr_flush_nested",
	"fpr_flush_dirty", "fpr_flush_anon", "fpr_flush_special",
	"fpr_flush_notifier", "fpr_flush_outside", "fpr_flush_mixed",
	"fpr_flush_tables", "fpr_flush_disabled",
};

#define COUNTERS	KTAP_COUNT(unmap_counters)
/* The first that says that the mapping itself is in the way. */
#define FORBIDDEN	4

bool fpr_unmap(void *addr, size_t pages)
{
	long before[COUNTERS], after[COUNTERS];
	size_t i;

	vmstat_read(unmap_counters, before, COUNTERS);
	MUST(munmap(addr, pages * PAGE));
	vmstat_read(unmap_counters, after, COUNTERS);
	if (after[0] > before[0])
		return true;
	/*
	 * Local, for tags, or because the kernel changes entries of another thread
	 * at the same time, as for NUMA hints. Callers try again.
	 */
	for (i = FORBIDDEN; i < COUNTERS; i++)
		ENSURE(after[i] == before[i], "the munmap flushed: %s",
		       unmap_counters[i]);
	/* Time for the kernel to make room for the tags. */
	sleep_ms(5);
	return false;
}

void fpr_unmap_skips(void *addr, size_t pages)
{
	ENSURE(fpr_unmap(addr, pages), "the munmap did not skip");
}

void fpr_unmap_flushes(void *addr, size_t pages)
{
	long skips = vmstat("fpr_skip");

	MUST(munmap(addr, pages * PAGE));
	ENSURE(vmstat("fpr_skip") == skips, "the munmap skipped its flush");
}

bool holds_enough(size_t held, size_t pages)
{
	return held >= (pages < ENOUGH ? pages * 7 / 8 : ENOUGH);
}

void *leave_stale(const struct tfile *f, size_t first, size_t pages, int prot,
		  int flags, unsigned char byte)
{
	size_t held = 0;
	int tries;

	for (tries = 0; tries < STALE_TRIES; tries++) {
		void *p = fpr_map(f, first, pages, prot, flags);

		ENSURE(peer_count(p, pages, WORD(byte)) == pages,
		       "the peer does not read 0x%02x in the mapping", byte);
		if (!fpr_unmap(p, pages))
			continue;
		held = peer_count(p, pages, WORD(byte));
		if (holds_enough(held, pages))
			return p;
	}
	ktap_retry("the peer holds %zu of %zu stale translations: nothing to attack with",
		   held, pages);
}

char *park_stale(const struct tfile *f, size_t pages, unsigned char byte)
{
	long parks = vmstat("fpr_park");
	char *p = leave_stale(f, 0, pages, PROT_READ, MAP_SHARED, byte);

	file_drop(f);
	parks = vmstat("fpr_park") - parks;
	ENSURE(parks >= (long)pages, "%ld frames parked, %zu are stale", parks,
	       pages);
	return p;
}

char *leave_writable(const struct tfile *f, size_t pages, uint64_t word)
{
	size_t held = 0;
	int tries;

	for (tries = 0; tries < STALE_TRIES; tries++) {
		char *p = fpr_map(f, 0, pages, PROT_READ | PROT_WRITE,
				  MAP_PRIVATE);

		ENSURE(peer_write(p, pages, word) == pages,
		       "the peer cannot write to the mapping");
		if (!fpr_unmap(p, pages))
			continue;
		/* What is free is poisoned: anything but a fault will do. */
		held = pages - peer_count(p, pages, FAULTED);
		if (holds_enough(held, pages))
			return p;
	}
	ktap_retry("the peer holds %zu of %zu stale translations: nothing to attack with",
		   held, pages);
}

void *leave_skipped(const struct tfile *f, size_t first, size_t pages)
{
	int tries;

	for (tries = 0; tries < STALE_TRIES; tries++) {
		void *p = fpr_map(f, first, pages, PROT_READ,
				  MAP_SHARED | MAP_POPULATE);

		if (fpr_unmap(p, pages))
			return p;
	}
	ktap_fail("no munmap skipped in %d tries", STALE_TRIES);
}

/* Changing the rights of more pages than single invalidations are used for. */
void full_flush(void)
{
	size_t length = 256 * PAGE;
	char *p;

	/* A range is flushed by those who have used it, so one without a range. */
	if (context_has_sharers() == 1) {
		ENSURE(write_text("/proc/self/clear_refs", "4"),
		       "clear_refs: %m");
		return;
	}
	p = mmap(NULL, length, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	ENSURE(p != MAP_FAILED, "mmap: %m");
	MUST(mprotect(p, length, PROT_READ));
	MUST(munmap(p, length));
}

void partial_flush(void)
{
	char *p = mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	ENSURE(p != MAP_FAILED, "mmap: %m");
	/*
	 * Not unmapped: that would free a page table and flush for it. Nor
	 * protected: that pays for all that is owed.
	 */
	MUST(madvise(p, PAGE, MADV_DONTNEED));
}

static bool read_entries(const char *path, uint64_t first, uint64_t *entries,
			 size_t count)
{
	size_t size = count * sizeof(*entries), done = 0;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	while (fd >= 0 && done < size) {
		ssize_t n = pread(fd, (char *)entries + done, size - done,
				  (off_t)(first * sizeof(*entries) + done));

		if (n <= 0)
			break;
		done += (size_t)n;
	}
	if (fd >= 0)
		close(fd);
	return done == size;
}

void frames_of(const void *addr, size_t pages, uint64_t *frames)
{
	bool read = read_entries("/proc/self/pagemap", (uintptr_t)addr / PAGE,
				 frames, pages);
	size_t i;

	for (i = 0; i < pages; i++)
		frames[i] = read && frames[i] >> 63 ?
			    frames[i] & ((1ULL << 55) - 1) : 0;
}

uint64_t frame_of(const void *addr)
{
	uint64_t frame;

	frames_of(addr, 1, &frame);
	return frame;
}

uint64_t frame_flags(uint64_t frame)
{
	uint64_t flags;

	return read_entries("/proc/kpageflags", frame, &flags, 1) ? flags : 0;
}
