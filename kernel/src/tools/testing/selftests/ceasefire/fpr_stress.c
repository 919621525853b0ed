// SPDX-License-Identifier: GPL-2.0
/*
 * A correct program under FPR: threads map, read and unmap the same files at
 * random, put other things where mappings were, fork, and drop page cache.
 * Each page says where in which file it belongs, and nobody writes to the
 * files, so every read has one right answer (I3).
 *
 * CEASEFIRE_TEST_SECONDS: for how long. CEASEFIRE_TEST_SEED: with which seed.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "env.h"
#include "file.h"
#include "ktap.h"
#include "map.h"

#define FILES		4
#define FILE_PAGES	1024
#define MOST_PAGES	64
#define MOST_THREADS	16
#define DEFAULT_SECONDS	15

static struct tfile files[FILES];
static double end_at;
static unsigned int seed;

struct worker {
	pthread_t thread;
	unsigned int random;
	long cycles;
	int number;
};

static uint64_t tagged(size_t which, size_t page)
{
	return 0xcea5ef1e00000000ULL | which << 24 | page;
}

static unsigned int pick(struct worker *w, unsigned int below)
{
	return (unsigned int)rand_r(&w->random) % below;
}

static void check(const char *p, size_t which, size_t first, size_t pages,
		  const char *after)
{
	size_t i;

	for (i = 0; i < pages; i++) {
		uint64_t seen = *(const volatile uint64_t *)(p + i * PAGE);

		ENSURE(seen == tagged(which, first + i),
		       "after %s: page %zu of file %zu reads %016llx", after,
		       first + i, which, (unsigned long long)seen);
	}
}

static void check_anon(char *p, size_t pages)
{
	size_t i;

	for (i = 0; i < pages; i++) {
		volatile uint64_t *word = (volatile uint64_t *)(p + i * PAGE);

		ENSURE(!*word, "new memory reads %016llx",
		       (unsigned long long)*word);
		*word = i + 1;
		ENSURE(*word == i + 1, "written memory reads %016llx",
		       (unsigned long long)*word);
	}
}

/* Something else at the address of a mapping that was just unmapped. */
static void reuse(struct worker *w, char *hole, size_t pages)
{
	char *p;

	p = mmap(hole, pages * PAGE, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS |
		 (pick(w, 2) ? MAP_FIXED_NOREPLACE : 0), -1, 0);
	if (p == MAP_FAILED)
		return;		/* another thread was first */
	check_anon(p, pages);
	MUST(munmap(p, pages * PAGE));
}

static void in_child(struct worker *w, const char *p, size_t which,
		     size_t first, size_t pages)
{
	int status;
	pid_t pid = fork();

	(void)w;
	if (pid < 0)
		return;
	if (!pid) {
		check(p, which, first, pages, "a fork");
		munmap((void *)p, pages * PAGE);
		_exit(0);
	}
	MUST(waitpid(pid, &status, 0));
	ENSURE(!status, "a child ended with status %x", (unsigned int)status);
}

static void cycle(struct worker *w)
{
	size_t which = pick(w, FILES);
	size_t pages = 1 + pick(w, MOST_PAGES);
	size_t first = pick(w, (unsigned int)(FILE_PAGES - pages));
	size_t half = pages / 2;
	char *q, *p = mmap(NULL, pages * PAGE, PROT_READ,
			   (pick(w, 2) ? MAP_SHARED : MAP_PRIVATE) |
			   (pick(w, 8) ? MAP_FPR : 0) |
			   (pick(w, 4) ? 0 : MAP_POPULATE),
			   files[which].fd, (off_t)(first * PAGE));

	ENSURE(p != MAP_FAILED, "mmap: %m");
	check(p, which, first, pages, "mmap");
	switch (pick(w, 40)) {
	case 0:
		in_child(w, p, which, first, pages);
		break;
	case 1:
		MUST(madvise(p, pages * PAGE, MADV_DONTNEED));
		check(p, which, first, pages, "MADV_DONTNEED");
		break;
	case 2:
		MUST(mprotect(p, pages * PAGE, PROT_NONE));
		MUST(mprotect(p, pages * PAGE, PROT_READ));
		check(p, which, first, pages, "mprotect");
		break;
	case 3:
		posix_fadvise(files[which].fd, 0, 0, POSIX_FADV_DONTNEED);
		check(p, which, first, pages, "a drop of the cache");
		break;
	case 4:
		q = mremap(p, pages * PAGE, 2 * pages * PAGE, MREMAP_MAYMOVE);
		ENSURE(q != MAP_FAILED, "mremap: %m");
		check(q, which, first, pages, "mremap");
		MUST(munmap(q + pages * PAGE, pages * PAGE));
		p = q;
		break;
	case 5:
		if (!half)
			break;
		MUST(munmap(p, half * PAGE));
		check(p + half * PAGE, which, first + half, pages - half,
		      "munmap of a part");
		reuse(w, p, half);
		p += half * PAGE;
		pages -= half;
		break;
	case 6:
		madvise(p, pages * PAGE, MADV_PAGEOUT);
		check(p, which, first, pages, "MADV_PAGEOUT");
		break;
	case 7:
		q = mmap(p, pages * PAGE, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
		ENSURE(q == p, "mmap: %m");
		check_anon(q, pages);
		break;
	default:
		break;
	}
	MUST(munmap(p, pages * PAGE));
	if (!pick(w, 16))
		reuse(w, p, pages);
	w->cycles++;
}

static void *work(void *argument)
{
	struct worker *w = argument;

	pin_to_cpu(w->number % online_cpus());
	while (seconds() < end_at)
		cycle(w);
	return NULL;
}

static void random_operations(void)
{
	const char *wanted = getenv("CEASEFIRE_TEST_SECONDS");
	const char *seeded = getenv("CEASEFIRE_TEST_SEED");
	static struct worker workers[MOST_THREADS];
	long cycles = 0, skips, recycles, shared;
	int i, count = online_cpus() + 1;
	size_t which, page;

	seed = seeded ? (unsigned int)atol(seeded) : (unsigned int)getpid();
	ktap_note("CEASEFIRE_TEST_SEED=%u", seed);
	for (which = 0; which < FILES; which++) {
		file_make(&files[which], which & 1 ? ON_DISK : ON_TMPFS,
			  FILE_PAGES, 0);
		for (page = 0; page < FILE_PAGES; page++) {
			uint64_t word = tagged(which, page);

			MUST(pwrite(files[which].fd, &word, sizeof(word),
				    (off_t)(page * PAGE)));
		}
		MUST(fsync(files[which].fd));
	}
	if (count > MOST_THREADS)
		count = MOST_THREADS;
	fpr_set("pool_limit", 512);
	fpr_set("debt_age_ms", 200);
	skips = vmstat("fpr_skip");
	recycles = vmstat("fpr_recycle");
	shared = vmstat("fpr_shared");
	end_at = seconds() + (wanted ? atof(wanted) : DEFAULT_SECONDS);
	for (i = 0; i < count; i++) {
		workers[i].number = i;
		workers[i].random = seed + (unsigned int)i;
		ENSURE(!pthread_create(&workers[i].thread, NULL, work,
				       &workers[i]), "no thread");
	}
	for (i = 0; i < count; i++) {
		pthread_join(workers[i].thread, NULL);
		cycles += workers[i].cycles;
	}
	skips = vmstat("fpr_skip") - skips;
	ktap_note("%ld cycles in %d threads: %ld skips, %ld frames recycled, %ld shared",
		  cycles, count, skips, vmstat("fpr_recycle") - recycles,
		  vmstat("fpr_shared") - shared);
	ENSURE(skips > cycles / 10, "%ld skips in %ld cycles", skips, cycles);
}

int main(int argc, char **argv)
{
	static const struct ktap_case cases[] = {
		{ "random_operations", random_operations, 3000 },
	};

	return ktap_main(argc, argv, cases, KTAP_COUNT(cases));
}
