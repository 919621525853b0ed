// SPDX-License-Identifier: GPL-2.0-only
/*
 * shared.c - shared_*: all tasks change pages that all tasks use
 *
 * What: the blocks of one board are divided among the threads. Each changes its own,
 *       and between two changes looks at all others', so that all CPUs have all
 *       translations and each shootdown is one that they need. What they see is
 *       compared with what was announced (board.c): the contents at once, the right to
 *       write, and that nothing is there. An operation is the change of one block.
 * Who:  sample.c, through tests.h. Threads only: processes share nothing.
 *
 * The pages are at an address that the program chooses, and no mapping asks for a
 * mechanism: what is unmapped has to be gone when munmap() returns, in all modes.
 */
#include "board.h"

#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

/* Pages that a task looks at between two changes. */
#define LOOKS 16U

static struct block blocks[FLUSH_BLOCKS];
static char *memory;
static unsigned int mapper;	/* the task whose file it is, if it is a file's */

/* What differs between the tests. */
struct sharing {
	int flags;		/* of the mapping */
	change_t change;
	uint64_t (*contents)(const struct board *board, unsigned int page,
			     unsigned int number);
	enum rights (*rights)(unsigned int number);
};

static char *map_at(char *at, size_t size, int flags, int fd)
{
	char *p = mmap(at, size, PROT_READ | PROT_WRITE,
		       flags | MAP_FIXED_NOREPLACE, fd, 0);

	if (p == MAP_FAILED)
		die_errno("mmap of %zu bytes", size);
	if (p != at)
		die(EXIT_FAILED, "this kernel has no MAP_FIXED_NOREPLACE");
	if (flags & MAP_ANONYMOUS)
		madvise(p, size, MADV_NOHUGEPAGE);
	return p;
}

/* The first one maps. No block is to be looked at before its owner has filled it. */
static void share(struct board *b, int flags)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

	pthread_mutex_lock(&lock);
	if (!memory) {
		memory = map_at(own_area(0), FLUSH_PAGES * PAGE, flags,
				flags & MAP_ANONYMOUS ? -1 : b->task->fd);
		mapper = b->task->index;
		board_place(b, memory);
		for (unsigned int block = 0; block < FLUSH_BLOCKS; block++)
			atomic_store(&blocks[block].number, 1);
	}
	pthread_mutex_unlock(&lock);
}

/* A fault comes back to the setjmp; what changes is in static memory. */
static void look_around(struct look *look)
{
	static _Thread_local unsigned int left;

	left = LOOKS;
	if (sigsetjmp(after_fault, 1))
		board_look_failed(look);
	survives = true;
	while (left) {
		left--;
		look->page = (look->page + 1) % FLUSH_PAGES;
		board_look(look);
	}
	survives = false;
}

static void run_shared(struct task *task, const struct sharing *sharing)
{
	static _Thread_local struct look look;
	unsigned int tasks = task->options->tasks;
	struct board board = {
		.task = task,
		.first_word = MAX_TASKS,
		.contents = sharing->contents,
		.rights = sharing->rights,
		.blocks = blocks,
	};

	board_survive_faults();
	share(&board, sharing->flags);
	for (unsigned int block = task->index; block < FLUSH_BLOCKS; block += tasks) {
		sharing->change(&board, block, 0);
		atomic_store(&blocks[block].number, 0);
	}
	look = (struct look){ .board = &board, .progress = task->progress };
	task_ready(task);
	for (unsigned int block = task->index; !stopped(task); block += tasks) {
		if (block >= FLUSH_BLOCKS)
			block = task->index;
		board_change(&board, block, sharing->change);
		look_around(&look);
	}
}

static size_t block_size(void)
{
	return BLOCK_PAGES * PAGE;
}

/* Mapped, unmapped, mapped and so on; mapped at first. */
static void change_munmap(struct board *b, unsigned int block, unsigned int number)
{
	char *base = b->blocks[block].base;

	if (number % 4) {
		if (munmap(base, block_size()))
			die_errno("munmap");
		return;
	}
	if (number)
		map_at(base, block_size(), MAP_PRIVATE | MAP_ANONYMOUS, -1);
	write_block(b, block, number);
}

static enum rights munmap_rights(unsigned int number)
{
	return number % 4 ? RIGHTS_NONE : RIGHTS_WRITE;
}

static void run_munmap(struct task *task)
{
	run_shared(task, &(struct sharing){ MAP_PRIVATE | MAP_ANONYMOUS, change_munmap,
					    own_word, munmap_rights });
}

static void change_dontneed(struct board *b, unsigned int block, unsigned int number)
{
	drop_block(b, block);
	write_block(b, block, number);
}

static void run_dontneed(struct task *task)
{
	run_shared(task, &(struct sharing){ MAP_PRIVATE | MAP_ANONYMOUS, change_dontneed,
					    own_word, NULL });
}

static void change_free(struct board *b, unsigned int block, unsigned int number)
{
	if (madvise(b->blocks[block].base, block_size(), MADV_FREE))
		die_errno("madvise");
	write_block(b, block, number);
}

static void run_free(struct task *task)
{
	run_shared(task, &(struct sharing){ MAP_PRIVATE | MAP_ANONYMOUS, change_free,
					    own_word, NULL });
}

/* To be written to, to be read only, and so on. The contents stay. */
static void change_protect(struct board *b, unsigned int block, unsigned int number)
{
	int rights = PROT_READ | (number % 4 ? 0 : PROT_WRITE);

	if (!number)
		write_block(b, block, 0);
	else if (mprotect(b->blocks[block].base, block_size(), rights))
		die_errno("mprotect");
}

static enum rights protect_rights(unsigned int number)
{
	return number % 4 ? RIGHTS_READ : RIGHTS_WRITE;
}

static uint64_t first_word(const struct board *b, unsigned int page, unsigned int number)
{
	(void)number;
	return own_word(b, page, 0);
}

static void run_protect(struct task *task)
{
	run_shared(task, &(struct sharing){ MAP_PRIVATE | MAP_ANONYMOUS, change_protect,
					    first_word, protect_rights });
}

/* The file's, written to, the file's again and so on. */
static uint64_t copied_word(const struct board *b, unsigned int page, unsigned int number)
{
	return number % 4 ? own_word(b, page, number) : page_word(mapper, page);
}

static void change_copy(struct board *b, unsigned int block, unsigned int number)
{
	if (number % 4)
		write_block(b, block, number);
	else
		drop_block(b, block);
}

static void run_copy(struct task *task)
{
	run_shared(task, &(struct sharing){ MAP_PRIVATE, change_copy, copied_word, NULL });
}

const struct test shared_munmap = {
	.name = "shared_munmap",
	.what = "unmap and map again pages that all threads use",
	.threads_only = true,
	.run = run_munmap,
};

const struct test shared_dontneed = {
	.name = "shared_dontneed",
	.what = "MADV_DONTNEED of pages that all threads read, write to new ones",
	.threads_only = true,
	.run = run_dontneed,
};

const struct test shared_free = {
	.name = "shared_free",
	.what = "MADV_FREE of pages that all threads read, write to them",
	.threads_only = true,
	.run = run_free,
};

const struct test shared_protect = {
	.name = "shared_protect",
	.what = "mprotect pages that all threads write to, and back again",
	.threads_only = true,
	.run = run_protect,
};

const struct test shared_copy = {
	.name = "shared_copy",
	.what = "copy private pages of a file that all threads read, drop them",
	.wants_file = true,
	.threads_only = true,
	.run = run_copy,
};
