// SPDX-License-Identifier: GPL-2.0
/* Regions that are used for the first time, see regions.h. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include "checker.h"
#include "context.h"
#include "ktap.h"
#include "peer.h"
#include "regions.h"

void sharers_start(void)
{
	if (context_sharers(1))
		ktap_skip("prctl(PR_SHARERS): %m");
	pin_to_cpu(0);
	peer_start(1);
}

char *regions(size_t count)
{
	char *p = mmap(NULL, (count + 2) * REGION, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	ENSURE(p != MAP_FAILED, "mmap: %m");
	MUST(madvise(p, (count + 2) * REGION, MADV_NOHUGEPAGE));
	return (char *)(((uintptr_t)p + REGION - 1) & ~(REGION - 1));
}

char *whole_gib(int flags, int fd)
{
	char *room = mmap(NULL, 2 * GIB, PROT_NONE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	char *p;

	ENSURE(room != MAP_FAILED, "mmap: %m");
	room = (char *)(((uintptr_t)room + GIB - 1) & ~(GIB - 1));
	p = mmap(room, GIB, PROT_READ | PROT_WRITE,
		 flags | MAP_NORESERVE | MAP_FIXED, fd, 0);
	if (p == MAP_FAILED)
		ktap_skip("mmap: %m");
	if (fd < 0 && !(flags & MAP_HUGETLB))
		MUST(madvise(p, GIB, MADV_NOHUGEPAGE));
	return p;
}

char *huge_region(size_t pages, uint64_t word)
{
	char *p = regions(1);

	if (madvise(p, REGION, MADV_HUGEPAGE))
		ktap_skip("no transparent huge pages");
	ENSURE(peer_write(p, pages, word) == pages, "no write");
	if (read_kb("/proc/self/smaps_rollup", "AnonHugePages") != 2048)
		ktap_retry("not mapped by one entry");
	return p;
}

void peer_finds(const char *p, size_t pages, uint64_t word)
{
	size_t right;

	checker_forbid(p, pages);
	right = peer_count(p, pages, word);
	checker_allow(p, pages);
	ENSURE(right == pages, "the peer finds %zu of %zu pages as they are",
	       right, pages);
}

void peer_cannot_write(char *p, size_t pages, uint64_t word)
{
	size_t writes;

	checker_forbid(p, pages);
	writes = peer_write(p, pages, word);
	checker_allow(p, pages);
	ENSURE(!writes, "%zu writes went through", writes);
}

static int to_sleeper[2], from_sleeper[2];

static void *sleeper(void *unused)
{
	const volatile uint64_t *at;
	uint64_t word;

	(void)unused;
	pin_to_cpu(1);
	while (read(to_sleeper[0], &at, sizeof(at)) == sizeof(at)) {
		word = *at;
		MUST(write(from_sleeper[1], &word, sizeof(word)));
	}
	return NULL;
}

void sleeper_start(void)
{
	pthread_t thread;

	need_cpus(2);
	if (context_sharers(1))
		ktap_skip("prctl(PR_SHARERS): %m");
	pin_to_cpu(0);
	MUST(pipe(to_sleeper));
	MUST(pipe(from_sleeper));
	ENSURE(!pthread_create(&thread, NULL, sleeper, NULL), "no thread");
}

void sleeper_finds(const char *p, uint64_t word)
{
	uint64_t found = 0;

	MUST(write(to_sleeper[1], &p, sizeof(p)));
	MUST(read(from_sleeper[0], &found, sizeof(found)));
	ENSURE(found == word, "it reads %llx", (unsigned long long)found);
	/* Until its CPU has nothing to do any more. */
	sleep_ms(20);
}
