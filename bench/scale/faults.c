// SPDX-License-Identifier: GPL-2.0-only
/*
 * faults.c - page_fault1 to page_fault3: map, write to each page, unmap
 *
 * What: anonymous memory, a private mapping of a file, a shared one. An
 *       operation is a page: its fault, and its share of the rest.
 * Who:  sample.c, through tests.h.
 *
 * A page is written to before it is looked at: if it were read first, there
 * would be two faults.
 */
#include "tests.h"

#include <sys/mman.h>
#include <unistd.h>

/* The second word of all pages is the version: how often they were written to. */
static uint64_t version_of(const struct task *task)
{
	uint64_t words[2];

	if (pread(task->fd, words, sizeof(words), 0) != sizeof(words))
		die_errno("cannot read a file");
	return words[1];
}

/*
 * What a page holds that was just written to. Only a shared mapping keeps what
 * was written before; in the others that word is the file's own, or zero.
 */
static void touch_page(struct task *task, volatile uint64_t *words,
		       uint64_t before, uint64_t expected)
{
	uint64_t found = __atomic_exchange_n(&words[1], before + 1,
					     __ATOMIC_RELAXED);

	spoil(task, words);
	if (found != before || words[0] != expected)
		bump(&task->progress->wrong, 1);
	bump(&task->progress->done, 1);
}

static void fault_pages(struct task *task, int flags)
{
	bool file = !(flags & MAP_ANONYMOUS);
	size_t length = task->options->pages * PAGE;
	uint64_t version = file ? version_of(task) : 0;

	task_ready(task);
	while (!stopped(task)) {
		char *p = mmap(NULL, length, PROT_READ | PROT_WRITE,
			       flags | task->flags, file ? task->fd : -1, 0);

		if (p == MAP_FAILED)
			die_errno("mmap of %u pages", task->options->pages);
		/* A huge page would be one fault. Not all kernels have them. */
		if (!file)
			madvise(p, length, MADV_NOHUGEPAGE);
		for (unsigned int i = 0; i < task->options->pages; i++)
			touch_page(task, (uint64_t *)(p + i * PAGE), version,
				   file ? page_word(task->index, i) : 0);
		if (munmap(p, length))
			die_errno("munmap");
		version += !!(flags & MAP_SHARED);
	}
}

static void run_anonymous(struct task *task)
{
	fault_pages(task, MAP_PRIVATE | MAP_ANONYMOUS);
}

static void run_private(struct task *task)
{
	fault_pages(task, MAP_PRIVATE);
}

static void run_shared(struct task *task)
{
	fault_pages(task, MAP_SHARED);
}

const struct test page_fault1 = {
	.name = "page_fault1",
	.what = "write to each page of anonymous memory",
	.run = run_anonymous,
};

const struct test page_fault2 = {
	.name = "page_fault2",
	.what = "write to each page of a private mapping of a file",
	.wants_file = true,
	.run = run_private,
};

const struct test page_fault3 = {
	.name = "page_fault3",
	.what = "write to each page of a shared mapping of a file",
	.wants_file = true,
	.run = run_shared,
};
