// SPDX-License-Identifier: GPL-2.0-only
/*
 * pool.c - the buffer pool of the engine pool, see pool.h
 *
 * What: memory is addressed by the number of the page, so a page that is there is found
 *       without a table. Its state says whether it is, and who uses it; a second chance
 *       (clock) chooses what goes. Reads and writes of the file and the system calls
 *       that evict are made without a lock.
 * Who:  engine_pool.c.
 *
 * The state of a page: OUT; BUSY: read, evicted, or fixed alone; else one more than there are
 * readers. Who sets BUSY has the page, and says whether it is dirty.
 *
 * What a lazy pool has given up is undefined until it is populated by a call: an access might
 * find what a CPU still has cached.
 */
#include "pool.h"

#include "../../kernel/src/include/uapi/linux/morsel.h"
#include "../common/util.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#define GROUP	POOL_LEAST
#define GIB	(1ul << 30)
#define NOBODY	UINT64_MAX

#define OUT	0u
#define IDLE	1u
#define BUSY	UINT_MAX

const char *const pool_ways[POOL_WAYS] = { "dontneed", "remove", "vector", "lazy" };

static atomic_ullong evicted;

struct page {
	atomic_uint state;
	atomic_bool used;	/* since the clock has come by */
	bool dirty;
};

struct pool {
	enum pool_way way;
	int file, memory;
	char *at;
	size_t length;
	struct page *page;
	uint64_t pages;

	/* Places in memory: which page each has, and those that have none. */
	pthread_mutex_t lock;
	uint64_t *place;
	uint64_t *empty;
	uint64_t room, nr_empty, hand;
};

/* A place, and the page in it. */
struct victim {
	uint64_t place, page;
};

static char *address(const struct pool *pool, uint64_t page)
{
	return pool->at + page * POOL_PAGE;
}

static bool seize(struct page *page, unsigned int state)
{
	return atomic_compare_exchange_strong(&page->state, &state, BUSY);
}

static void write_page(struct pool *pool, uint64_t page)
{
	const char *from = address(pool, page);

	for (size_t done = 0; done < POOL_PAGE;) {
		ssize_t n = pwrite(pool->file, from + done, POOL_PAGE - done,
				   (off_t)(page * POOL_PAGE + done));

		if (n <= 0)
			die_errno("cannot write page %llu", (unsigned long long)page);
		done += (size_t)n;
	}
	pool->page[page].dirty = false;
}

static void populate(const struct pool *pool, uint64_t page)
{
	struct morsel_range range = { page * POOL_PAGE, POOL_PAGE };
	struct morsel_vec vec = { .ranges = (uintptr_t)&range, .nr = 1 };

	if (pool->way == POOL_LAZY && ioctl(pool->memory, MORSEL_IOC_POPULATE, &vec))
		die_errno("populate");
}

static void read_page(const struct pool *pool, uint64_t page)
{
	char *to = address(pool, page);

	populate(pool, page);
	for (size_t done = 0; done < POOL_PAGE;) {
		ssize_t n = pread(pool->file, to + done, POOL_PAGE - done,
				  (off_t)(page * POOL_PAGE + done));

		if (n < 0)
			die_errno("cannot read page %llu", (unsigned long long)page);
		if (!n)
			die(EXIT_FAILED, "the database ends before page %llu",
			    (unsigned long long)page);
		done += (size_t)n;
	}
}

static void give_up(const struct pool *pool, const struct victim *victims, unsigned int nr)
{
	struct morsel_range ranges[GROUP];
	struct morsel_vec vec = {
		.ranges = (uintptr_t)ranges, .nr = nr,
		.flags = pool->way == POOL_LAZY ? MORSEL_LAZY : 0,
	};
	int advice = pool->way == POOL_REMOVE ? MADV_REMOVE : MADV_DONTNEED;
	int error = 0;

	for (unsigned int i = 0; i < nr && !error; i++) {
		ranges[i] = (struct morsel_range){ victims[i].page * POOL_PAGE, POOL_PAGE };
		if (pool->way < POOL_VECTOR)
			error = madvise(address(pool, victims[i].page), POOL_PAGE, advice);
	}
	if (pool->way >= POOL_VECTOR)
		error = ioctl(pool->memory, MORSEL_IOC_DEPOPULATE, &vec);
	if (error)
		die_errno("evict by %s", pool_ways[pool->way]);
}

/* Pages that nobody uses, and nobody has used for a turn of the hand; they are busy then. */
static unsigned int choose(struct pool *pool, struct victim *victims)
{
	unsigned int nr = 0;

	for (uint64_t left = 2 * pool->room; left && nr < GROUP; left--) {
		uint64_t place = pool->hand++ % pool->room, page = pool->place[place];

		if (page == NOBODY || atomic_exchange(&pool->page[page].used, false) ||
		    !seize(&pool->page[page], IDLE))
			continue;
		victims[nr++] = (struct victim){ place, page };
		pool->place[place] = NOBODY;
	}
	return nr;
}

/* Called with the lock, which is free while memory is evicted. */
static void make_room(struct pool *pool)
{
	struct victim victims[GROUP];
	unsigned int nr = choose(pool, victims);

	pthread_mutex_unlock(&pool->lock);
	if (!nr)
		sched_yield();
	for (unsigned int i = 0; i < nr; i++)
		if (pool->page[victims[i].page].dirty)
			write_page(pool, victims[i].page);
	if (nr)
		give_up(pool, victims, nr);
	atomic_fetch_add(&evicted, nr);
	for (unsigned int i = 0; i < nr; i++)
		atomic_store(&pool->page[victims[i].page].state, OUT);
	pthread_mutex_lock(&pool->lock);
	for (unsigned int i = 0; i < nr; i++)
		pool->empty[pool->nr_empty++] = victims[i].place;
}

/* A page that is busy gets a place. */
static void settle(struct pool *pool, uint64_t page)
{
	pthread_mutex_lock(&pool->lock);
	while (!pool->nr_empty)
		make_room(pool);
	pool->place[pool->empty[--pool->nr_empty]] = page;
	pthread_mutex_unlock(&pool->lock);
	atomic_store(&pool->page[page].used, true);
}

void *pool_fix(struct pool *pool, uint64_t number, bool alone)
{
	struct page *page;

	if (number >= pool->pages)
		die(EXIT_FAILED, "the database is damaged: there is no page %llu",
		    (unsigned long long)number);
	page = &pool->page[number];
	for (;;) {
		unsigned int state = atomic_load(&page->state);

		if (state == OUT && seize(page, OUT)) {
			settle(pool, number);
			read_page(pool, number);
			if (!alone)
				atomic_store(&page->state, IDLE + 1);
			return address(pool, number);
		}
		if (state != OUT && state != BUSY &&
		    (alone ? seize(page, IDLE) :
		     atomic_compare_exchange_strong(&page->state, &state, state + 1))) {
			if (!atomic_load_explicit(&page->used, memory_order_relaxed))
				atomic_store_explicit(&page->used, true, memory_order_relaxed);
			return address(pool, number);
		}
		/* Who has it may need this CPU. */
		sched_yield();
	}
}

void *pool_make(struct pool *pool, uint64_t number)
{
	if (!seize(&pool->page[number], OUT))
		die(EXIT_FAILED, "page %llu is there already", (unsigned long long)number);
	settle(pool, number);
	populate(pool, number);
	memset(address(pool, number), 0, POOL_PAGE);
	return address(pool, number);
}

void pool_unfix(struct pool *pool, uint64_t number)
{
	struct page *page = &pool->page[number];

	if (atomic_load(&page->state) == BUSY)
		atomic_store(&page->state, IDLE);
	else
		atomic_fetch_sub(&page->state, 1);
}

void pool_unfix_dirty(struct pool *pool, uint64_t number)
{
	pool->page[number].dirty = true;
	atomic_store(&pool->page[number].state, IDLE);
}

static int make_memory(const struct pool *pool)
{
	struct morsel_geometry geometry = {
		.unit = GIB, .base = POOL_PAGE,
		.flags = pool->way == POOL_LAZY ? MORSEL_ALLOW_LAZY : 0,
	};
	bool morsel = pool->way >= POOL_VECTOR;
	int fd;

	if (pool->way == POOL_DONTNEED)
		return -1;
	fd = memfd_create("pool", MFD_CLOEXEC | (morsel ? MFD_MORSEL : 0));
	if ((fd < 0 && morsel && errno == EINVAL) ||
	    (fd >= 0 && morsel && ioctl(fd, MORSEL_IOC_GEOMETRY, &geometry)))
		die(EXIT_NO_KERNEL_SUPPORT, "this kernel has no morsels: --evict dontneed or remove");
	if (fd < 0 || ftruncate(fd, (off_t)pool->length))
		die_errno("memory for the pool");
	return fd;
}

struct pool *pool_open(int file, enum pool_way way, uint64_t pages, uint64_t room)
{
	struct pool *pool = calloc(1, sizeof(*pool));

	if (!pool)
		die(EXIT_FAILED, "out of memory");
	pool->way = way;
	pool->file = file;
	pool->pages = pages;
	pool->room = room;
	/* A mapping of a morsel has whole units. */
	pool->length = (pages * POOL_PAGE + GIB - 1) & ~(GIB - 1);
	pool->memory = make_memory(pool);
	pool->at = mmap(NULL, pool->length, PROT_READ | PROT_WRITE,
			way == POOL_DONTNEED ? MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE :
			MAP_SHARED, pool->memory, 0);
	pool->page = calloc(pages, sizeof(*pool->page));
	pool->place = calloc(room, sizeof(*pool->place));
	pool->empty = calloc(room, sizeof(*pool->empty));
	if (pool->at == MAP_FAILED || !pool->page || !pool->place || !pool->empty)
		die(EXIT_FAILED, "out of memory");
	if (way < POOL_VECTOR)
		madvise(pool->at, pool->length, MADV_NOHUGEPAGE);
	pthread_mutex_init(&pool->lock, NULL);
	/* What is read first is the kernel's page of zeros; to replace that one is a flush. */
	for (uint64_t i = 0; i < pages; i++)
		atomic_store(&pool->page[i].state, OUT);
	for (uint64_t i = 0; i < room; i++) {
		pool->place[i] = NOBODY;
		pool->empty[pool->nr_empty++] = i;
	}
	return pool;
}

uint64_t pool_evicted(void)
{
	return atomic_exchange(&evicted, 0);
}

/* False: it is not in memory. */
static bool seize_idle(struct page *page)
{
	while (atomic_load(&page->state) != OUT) {
		if (seize(page, IDLE))
			return true;
		sched_yield();
	}
	return false;
}

void pool_write(struct pool *pool)
{
	for (uint64_t i = 0; i < pool->pages; i++) {
		struct page *page = &pool->page[i];

		if (!seize_idle(page))
			continue;
		if (page->dirty)
			write_page(pool, i);
		atomic_store(&page->state, IDLE);
	}
}

void pool_close(struct pool *pool)
{
	pool_write(pool);
	munmap(pool->at, pool->length);
	if (pool->memory >= 0)
		close(pool->memory);
	free(pool->page);
	free(pool->place);
	free(pool->empty);
	pthread_mutex_destroy(&pool->lock);
	free(pool);
}
