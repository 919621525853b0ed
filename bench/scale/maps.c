// SPDX-License-Identifier: GPL-2.0-only
/*
 * maps.c - mmap1, mmap2: map and unmap; write1: write to a file
 *
 * What: the mappings are of anonymous memory and of a file, and are not touched:
 *       what is counted is the work on the address space alone. write1 maps
 *       nothing. One in so many is looked at.
 * Who:  sample.c, through tests.h.
 */
#include "tests.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* One in so many operations is checked: few enough not to be what is measured. */
#define LOOK_EVERY 256

static void look_at_page(struct task *task, volatile uint64_t *word,
			 uint64_t expected)
{
	spoil(task, word);
	if (*word != expected)
		bump(&task->progress->wrong, 1);
}

static void map_and_unmap(struct task *task, int flags)
{
	bool file = !(flags & MAP_ANONYMOUS);
	unsigned int pages = task->options->pages;

	task_ready(task);
	for (uint64_t i = 0; !stopped(task); i++) {
		char *p = mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE,
			       flags | task->flags, file ? task->fd : -1, 0);

		if (p == MAP_FAILED)
			die_errno("mmap of %u pages", pages);
		if (i % LOOK_EVERY == 0) {
			uint64_t page = i / LOOK_EVERY % pages;

			look_at_page(task, (uint64_t *)(p + page * PAGE),
				     file ? page_word(task->index, page) : 0);
		}
		if (munmap(p, pages * PAGE))
			die_errno("munmap");
		bump(&task->progress->done, 1);
	}
}

static void run_mmap1(struct task *task)
{
	map_and_unmap(task, MAP_PRIVATE | MAP_ANONYMOUS);
}

static void run_mmap2(struct task *task)
{
	map_and_unmap(task, MAP_SHARED);
}

static void look_at_file(struct task *task, const uint64_t *written)
{
	uint64_t page[PAGE / sizeof(uint64_t)];

	if (pread(task->fd, page, PAGE, 0) != (ssize_t)PAGE)
		die_errno("cannot read a file");
	spoil(task, &page[2]);
	if (memcmp(page, written, PAGE) != 0)
		bump(&task->progress->wrong, 1);
}

static void run_write1(struct task *task)
{
	uint64_t page[PAGE / sizeof(uint64_t)] = { page_word(task->index, 0) };

	task_ready(task);
	for (uint64_t i = 0; !stopped(task); i++) {
		page[1] = i;
		if (pwrite(task->fd, page, PAGE, 0) != (ssize_t)PAGE)
			die_errno("cannot write to a file");
		if (i % LOOK_EVERY == 0)
			look_at_file(task, page);
		bump(&task->progress->done, 1);
	}
}

const struct test mmap1 = {
	.name = "mmap1",
	.what = "map and unmap anonymous memory",
	.run = run_mmap1,
};

const struct test mmap2 = {
	.name = "mmap2",
	.what = "map and unmap a file",
	.wants_file = true,
	.run = run_mmap2,
};

const struct test write1 = {
	.name = "write1",
	.what = "write a page to a file",
	.wants_file = true,
	.run = run_write1,
};
