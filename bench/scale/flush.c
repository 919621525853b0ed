// SPDX-License-Identifier: GPL-2.0-only
/*
 * flush.c - tlb_flush1 to tlb_flush3: change what an address shows, and tell
 *
 * What: a task changes blocks of pages in turn, each by an operation after
 *       which no CPU may see the old contents. A peer thread on another CPU
 *       reads all blocks all the time, so that its TLB holds their
 *       translations, and compares what it reads with what the task has
 *       announced (board.c). An operation is the change of one block.
 * Who:  sample.c, through tests.h.
 */
#include "board.h"

#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

/* A task's board, and what its peer and it say to each other. */
struct pair {
	struct board board;
	struct block blocks[FLUSH_BLOCKS];
	atomic_bool peer_ready;		/* it has looked at all pages once */
	atomic_bool over;		/* nothing will change any more */
};

static void go_on(struct pair *pair, struct look *look)
{
	look->page = (look->page + 1) % FLUSH_PAGES;
	if (!look->page)
		atomic_store(&pair->peer_ready, true);
}

/* Until it is over, and all pages once again then. */
static void *run_peer(void *argument)
{
	static _Thread_local struct pair *pair;
	static _Thread_local struct look look;
	static _Thread_local unsigned int at_the_end;	/* pages since all is over */

	pair = argument;
	look.board = &pair->board;
	look.progress = pair->board.task->progress;
	run_on_cpu(pair->board.task->peer_cpu);
	if (sigsetjmp(after_fault, 1)) {
		board_look_failed(&look);
		go_on(pair, &look);
	}
	survives = true;
	while (at_the_end < FLUSH_PAGES) {
		at_the_end += atomic_load(&pair->over);
		board_look(&look);
		go_on(pair, &look);
	}
	return NULL;
}

static void run_board(struct task *task, struct pair *pair, change_t change)
{
	struct board *b = &pair->board;
	pthread_t peer;
	int error;

	board_survive_faults();
	for (unsigned int block = 0; block < FLUSH_BLOCKS; block++)
		change(b, block, 0);
	error = pthread_create(&peer, NULL, run_peer, pair);
	if (error)
		die(EXIT_FAILED, "cannot start a thread: %s", strerror(error));
	while (!atomic_load(&pair->peer_ready))
		sleep_ns(100000);
	task_ready(task);
	for (unsigned int i = 0; !stopped(task); i++)
		board_change(b, i % FLUSH_BLOCKS, change);
	atomic_store(&pair->over, true);
	pthread_join(peer, NULL);
}

static void begin(struct pair *pair, struct task *task,
		  uint64_t (*contents)(const struct board *board, unsigned int page,
				       unsigned int number))
{
	pair->board = (struct board){
		.task = task,
		.first_word = MAX_TASKS + task->index,
		.contents = contents,
		.blocks = pair->blocks,
	};
}

static void run_in_place(struct task *task, int flags, struct pair *pair, change_t change)
{
	bool file = !(flags & MAP_ANONYMOUS);
	char *p = mmap(NULL, FLUSH_PAGES * PAGE, PROT_READ | PROT_WRITE,
		       flags | task->flags, file ? task->fd : -1, 0);

	if (p == MAP_FAILED)
		die_errno("mmap of %u pages", FLUSH_PAGES);
	if (!file)
		madvise(p, FLUSH_PAGES * PAGE, MADV_NOHUGEPAGE);
	board_place(&pair->board, p);
	run_board(task, pair, change);
	munmap(p, FLUSH_PAGES * PAGE);
}

/* tlb_flush1: give the frames back, get others. */
static void change_anonymous(struct board *b, unsigned int block,
			     unsigned int number)
{
	drop_block(b, block);
	write_block(b, block, number);
}

static void run_anonymous(struct task *task)
{
	struct pair pair = { 0 };

	begin(&pair, task, own_word);
	run_in_place(task, MAP_PRIVATE | MAP_ANONYMOUS, &pair, change_anonymous);
}

/*
 * tlb_flush2: unmap the block, map another part of the file. Linux likes to give
 * out the same address again; a recycled frame may be at another one.
 */
static unsigned int file_page(const struct board *b, unsigned int page,
			      unsigned int number)
{
	unsigned int blocks = b->task->options->pages / BLOCK_PAGES;
	unsigned int block = (page / BLOCK_PAGES + number / 2 * 7) % blocks;

	return block * BLOCK_PAGES + page % BLOCK_PAGES;
}

static uint64_t file_word(const struct board *b, unsigned int page,
			  unsigned int number)
{
	return page_word(b->task->index, file_page(b, page, number));
}

static void change_mapping(struct board *b, unsigned int block,
			   unsigned int number)
{
	unsigned int first = file_page(b, block * BLOCK_PAGES, number);
	char *p = b->blocks[block].base;

	if (p && munmap(p, BLOCK_PAGES * PAGE))
		die_errno("munmap");
	p = mmap(NULL, BLOCK_PAGES * PAGE, PROT_READ,
		 MAP_SHARED | b->task->flags, b->task->fd,
		 (off_t)(first * PAGE));
	if (p == MAP_FAILED)
		die_errno("mmap of %u pages", BLOCK_PAGES);
	atomic_store(&b->blocks[block].base, p);
	read_block(b, block, number);
}

static void run_mapping(struct task *task)
{
	struct pair pair = { 0 };

	begin(&pair, task, file_word);
	run_board(task, &pair, change_mapping);
	for (unsigned int block = 0; block < FLUSH_BLOCKS; block++)
		munmap(pair.blocks[block].base, BLOCK_PAGES * PAGE);
}

/* tlb_flush3: copy the file's pages by writing to them, drop the copies again. */
static uint64_t copied_word(const struct board *b, unsigned int page,
			    unsigned int number)
{
	return number % 4 ? own_word(b, page, number) :
			    page_word(b->task->index, page);
}

static void change_copy(struct board *b, unsigned int block, unsigned int number)
{
	if (number % 4) {
		write_block(b, block, number);
		return;
	}
	drop_block(b, block);
	read_block(b, block, number);
}

static void run_copy(struct task *task)
{
	struct pair pair = { 0 };

	begin(&pair, task, copied_word);
	run_in_place(task, MAP_PRIVATE, &pair, change_copy);
}

const struct test tlb_flush1 = {
	.name = "tlb_flush1",
	.what = "drop pages of anonymous memory, write to new ones; a peer reads",
	.run = run_anonymous,
};

const struct test tlb_flush2 = {
	.name = "tlb_flush2",
	.what = "unmap part of a file, map another part; a peer reads",
	.wants_file = true,
	.run = run_mapping,
};

const struct test tlb_flush3 = {
	.name = "tlb_flush3",
	.what = "copy pages of a private mapping on write, drop them; a peer reads",
	.wants_file = true,
	.run = run_copy,
};
