// SPDX-License-Identifier: GPL-2.0-only
/*
 * private.c - own_*: each task changes eight pages that no other task ever touches
 *
 * What: what allocators, loaders and databases do all day, in a loop: unmap, give memory
 *       back, change rights, copy on write, write back, move to the other node. No other
 *       CPU has a translation of these pages, so that each shootdown is one that nobody
 *       needed. An operation is one turn of the loop.
 * Who:  sample.c, through tests.h.
 *
 * With --place apart the pages of a task lie in an area of their own of 4 MiB,
 * at addresses that the kernel gives to nobody. With --place near they are where
 * mmap() puts them: side by side with those of the other tasks.
 */
#include "tests.h"

#include <linux/mempolicy.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define OWN_PAGES 8U
#define OWN_SIZE (OWN_PAGES * PAGE)

static char *map_own(struct task *task, int flags)
{
	bool file = !(flags & MAP_ANONYMOUS);
	char *at = NULL, *p;

	if (task->options->apart) {
		at = own_area(task->index);
		flags |= MAP_FIXED_NOREPLACE;
	}
	p = mmap(at, OWN_SIZE, PROT_READ | PROT_WRITE, flags | task->flags,
		 file ? task->fd : -1, 0);
	if (p == MAP_FAILED)
		die_errno("mmap of %u pages", OWN_PAGES);
	if (at && p != at)
		die(EXIT_FAILED, "this kernel has no MAP_FIXED_NOREPLACE");
	/* A huge page would be no eight pages. Not all kernels have them. */
	if (!file)
		madvise(p, OWN_SIZE, MADV_NOHUGEPAGE);
	return p;
}

static void unmap_own(char *p)
{
	if (munmap(p, OWN_SIZE))
		die_errno("munmap");
}

static void advise(char *p, int advice)
{
	if (madvise(p, OWN_SIZE, advice))
		die_errno("madvise");
}

static volatile uint64_t *word_of(char *p, unsigned int page)
{
	return (volatile uint64_t *)(p + page * PAGE);
}

static void expect(struct task *task, bool right)
{
	if (!right)
		bump(&task->progress->wrong, 1);
}

/* What a task writes to its pages in a turn; zero is what the kernel gives. */
static uint64_t value_of(const struct task *task, uint64_t turn, unsigned int page)
{
	return page_word(MAX_TASKS + task->index, turn * OWN_PAGES + page);
}

/*
 * Two words of each page. The second one is looked at before it is written, and after the
 * first one was: a page that is read first is the kernel's page of zeros, and to replace
 * that one is a flush of its own. (No exchange: some emulators read first.)
 */
static void write_pages(struct task *task, char *p, uint64_t turn)
{
	for (unsigned int page = 0; page < OWN_PAGES; page++) {
		volatile uint64_t *word = word_of(p, page);
		uint64_t value = value_of(task, turn, page);

		word[0] = value;
		expect(task, !word[1]);
		word[1] = value;
	}
	spoil(task, word_of(p, 0));
}

static void read_pages(struct task *task, char *p, uint64_t turn)
{
	for (unsigned int page = 0; page < OWN_PAGES; page++)
		expect(task, *word_of(p, page) == value_of(task, turn, page));
}

static void run_munmap(struct task *task)
{
	task_ready(task);
	for (uint64_t turn = 0; !stopped(task); turn++) {
		char *p = map_own(task, MAP_PRIVATE | MAP_ANONYMOUS);

		write_pages(task, p, turn);
		read_pages(task, p, turn);
		unmap_own(p);
		bump(&task->progress->done, 1);
	}
}

static void run_file(struct task *task)
{
	task_ready(task);
	while (!stopped(task)) {
		char *p = map_own(task, MAP_SHARED);

		spoil(task, word_of(p, 0));
		for (unsigned int page = 0; page < OWN_PAGES; page++)
			expect(task, *word_of(p, page) == page_word(task->index, page));
		unmap_own(p);
		bump(&task->progress->done, 1);
	}
}

static void run_dontneed(struct task *task)
{
	char *p = map_own(task, MAP_PRIVATE | MAP_ANONYMOUS);

	task_ready(task);
	for (uint64_t turn = 0; !stopped(task); turn++) {
		write_pages(task, p, turn);
		read_pages(task, p, turn);
		advise(p, MADV_DONTNEED);
		bump(&task->progress->done, 1);
	}
	unmap_own(p);
}

/* The kernel takes the pages when it wants them: what was there, or zero. */
static void run_free(struct task *task)
{
	char *p = map_own(task, MAP_PRIVATE | MAP_ANONYMOUS);

	write_pages(task, p, 0);
	task_ready(task);
	for (uint64_t turn = 0; !stopped(task); turn++) {
		read_pages(task, p, turn);
		advise(p, MADV_FREE);
		for (unsigned int page = 0; page < OWN_PAGES; page++) {
			uint64_t before = value_of(task, turn, page), found;

			found = __atomic_exchange_n(word_of(p, page),
						    value_of(task, turn + 1, page),
						    __ATOMIC_RELAXED);
			expect(task, !found || found == before);
		}
		bump(&task->progress->done, 1);
	}
	unmap_own(p);
}

static void protect(char *p, int rights)
{
	if (mprotect(p, OWN_SIZE, rights))
		die_errno("mprotect");
}

static void run_protect(struct task *task)
{
	char *p = map_own(task, MAP_PRIVATE | MAP_ANONYMOUS);

	write_pages(task, p, 0);
	task_ready(task);
	for (uint64_t turn = 0; !stopped(task); turn++) {
		protect(p, PROT_READ);
		read_pages(task, p, turn);
		protect(p, PROT_READ | PROT_WRITE);
		for (unsigned int page = 0; page < OWN_PAGES; page++)
			*word_of(p, page) = value_of(task, turn + 1, page);
		bump(&task->progress->done, 1);
	}
	unmap_own(p);
}

/* The page of the file is read first, so that a translation has to go. */
static void run_copy(struct task *task)
{
	char *p = map_own(task, MAP_PRIVATE);

	task_ready(task);
	for (uint64_t turn = 0; !stopped(task); turn++) {
		for (unsigned int page = 0; page < OWN_PAGES; page++) {
			volatile uint64_t *word = word_of(p, page);

			expect(task, *word == page_word(task->index, page));
			*word = value_of(task, turn, page);
		}
		spoil(task, word_of(p, 0));
		read_pages(task, p, turn);
		advise(p, MADV_DONTNEED);
		bump(&task->progress->done, 1);
	}
	unmap_own(p);
}

/* Written back, they are write protected, so that the kernel sees the next write. */
static void run_sync(struct task *task)
{
	char *p = map_own(task, MAP_SHARED);

	task_ready(task);
	for (uint64_t turn = 0; !stopped(task); turn++) {
		for (unsigned int page = 0; page < OWN_PAGES; page++)
			*word_of(p, page) = value_of(task, turn, page);
		spoil(task, word_of(p, 0));
		read_pages(task, p, turn);
		if (msync(p, OWN_SIZE, MS_SYNC))
			die_errno("msync");
		bump(&task->progress->done, 1);
	}
	unmap_own(p);
}

/* To node 0 or 1; how many of them are there then. */
static unsigned int move_own(char *p, int node)
{
	void *pages[OWN_PAGES];
	int nodes[OWN_PAGES], status[OWN_PAGES];
	unsigned int moved = 0;

	for (unsigned int page = 0; page < OWN_PAGES; page++) {
		pages[page] = p + page * PAGE;
		nodes[page] = node;
	}
	if (syscall(SYS_move_pages, 0, (unsigned long)OWN_PAGES, pages, nodes, status,
		    MPOL_MF_MOVE) < 0)
		die_errno("move_pages to node %d", node);
	for (unsigned int page = 0; page < OWN_PAGES; page++)
		moved += status[page] == node;
	return moved;
}

/* Nobody uses them meanwhile, as of a program that is moved as a whole; now and then it looks. */
#define MOVES_BEFORE_LOOK 64U

static void run_move(struct task *task)
{
	char *p = map_own(task, MAP_PRIVATE | MAP_ANONYMOUS);

	write_pages(task, p, 0);
	task_ready(task);
	for (uint64_t turn = 0; !stopped(task); turn++) {
		/* One that somebody else has in hand stays where it is: once more. */
		while (move_own(p, (turn + 1) % 2) != OWN_PAGES && !stopped(task))
			;
		if (turn % MOVES_BEFORE_LOOK == 0)
			read_pages(task, p, 0);
		bump(&task->progress->done, 1);
	}
	unmap_own(p);
}

const struct test own_munmap = {
	.name = "own_munmap",
	.what = "map, write to and unmap eight pages of one's own",
	.run = run_munmap,
};

const struct test own_file = {
	.name = "own_file",
	.what = "map, read and unmap eight pages of a file of one's own",
	.wants_file = true,
	.run = run_file,
};

const struct test own_dontneed = {
	.name = "own_dontneed",
	.what = "write to eight pages of one's own, MADV_DONTNEED",
	.run = run_dontneed,
};

const struct test own_free = {
	.name = "own_free",
	.what = "write to eight pages of one's own, MADV_FREE",
	.run = run_free,
};

const struct test own_protect = {
	.name = "own_protect",
	.what = "mprotect eight pages of one's own, and back again",
	.run = run_protect,
};

const struct test own_copy = {
	.name = "own_copy",
	.what = "copy eight private pages of a file on write, drop them",
	.wants_file = true,
	.run = run_copy,
};

const struct test own_sync = {
	.name = "own_sync",
	.what = "write to eight pages of a file of one's own, msync",
	.wants_file = true,
	.run = run_sync,
};

const struct test own_move = {
	.name = "own_move",
	.what = "move eight pages of one's own to the other node",
	.two_nodes = true,
	.run = run_move,
};
