// SPDX-License-Identifier: GPL-2.0-only
/*
 * flush.c - tlb_flush1 to tlb_flush3: change what an address shows, and tell
 *
 * What: a task changes blocks of pages in turn, each by an operation after
 *       which no CPU may see the old contents. A peer thread on another CPU
 *       reads all blocks all the time, so that its TLB holds their
 *       translations, and compares what it reads with what the task has
 *       announced. An operation is the change of one block.
 * Who:  sample.c, through tests.h.
 *
 * The announcement is a sequence number for each block: odd while the
 * block changes, even when the change is complete. What the peer has read
 * between two looks at the same even number must be the contents of that number.
 * A block rests while all others are changed, so that nearly all reads count,
 * and a translation that should have been flushed has long to be noticed.
 *
 * tlb_flush2 announces the address, too. The peer may come to an address that
 * has just been unmapped; that is a fault which it survives, and wrong only if
 * the number says that the block is there.
 */
#include "tests.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>

struct block {
	_Alignas(64) atomic_uint number;
	char *_Atomic base;
};

struct board {
	struct task *task;
	/* What the first word of a page is after the change number @number. */
	uint64_t (*contents)(const struct board *board, unsigned int page,
			     unsigned int number);
	atomic_bool peer_ready;		/* it has looked at all pages once */
	atomic_bool over;		/* nothing will change any more */
	struct block blocks[FLUSH_BLOCKS];
};

static volatile uint64_t *word_of(const struct board *b, unsigned int page)
{
	const struct block *block = &b->blocks[page / BLOCK_PAGES];

	return (volatile uint64_t *)(atomic_load(&block->base) +
				     page % BLOCK_PAGES * PAGE);
}

/* Of a peer: where it goes on after a fault. Others do not. */
static _Thread_local sigjmp_buf after_fault;
static _Thread_local bool survives;

static void on_fault(int number)
{
	if (survives)
		siglongjmp(after_fault, 1);
	signal(number, SIG_DFL);
}

/* What a peer does at a time; in memory, because a fault comes back to it. */
struct look {
	struct board *board;
	unsigned int page;
	unsigned int number;
	unsigned int at_the_end;	/* pages since all is over */
};

static void judge(const struct look *look, bool wrong)
{
	struct progress *progress = look->board->task->progress;

	bump(&progress->peer_checks, 1);
	if (wrong)
		bump(&progress->peer_wrong, 1);
}

static bool still(const struct look *look)
{
	const struct block *block = &look->board->blocks[look->page / BLOCK_PAGES];

	atomic_thread_fence(memory_order_acquire);
	return atomic_load_explicit(&block->number, memory_order_relaxed) ==
	       look->number;
}

static void look_at_page(struct look *look)
{
	const struct board *b = look->board;
	uint64_t word;

	look->number = atomic_load_explicit(
		&b->blocks[look->page / BLOCK_PAGES].number,
		memory_order_acquire);
	if (look->number % 2)
		return;
	word = *word_of(b, look->page);
	if (still(look))
		judge(look, word != b->contents(b, look->page, look->number));
}

static void go_on(struct look *look)
{
	look->page = (look->page + 1) % FLUSH_PAGES;
	if (!look->page)
		atomic_store(&look->board->peer_ready, true);
}

/* Until it is over, and all pages once again then. */
static void *run_peer(void *argument)
{
	static _Thread_local struct look look;

	look.board = argument;
	run_on_cpu(look.board->task->peer_cpu);
	if (sigsetjmp(after_fault, 1)) {
		if (still(&look))
			judge(&look, true);
		go_on(&look);
	}
	survives = true;
	while (look.at_the_end < FLUSH_PAGES) {
		look.at_the_end += atomic_load(&look.board->over);
		look_at_page(&look);
		go_on(&look);
	}
	return NULL;
}

/* Changes a block so that it has the contents of a number. */
typedef void (*change_t)(struct board *board, unsigned int block,
			 unsigned int number);

static void run_board(struct board *b, change_t change)
{
	struct sigaction action = { .sa_handler = on_fault };
	pthread_t peer;
	int error;

	sigaction(SIGSEGV, &action, NULL);
	sigaction(SIGBUS, &action, NULL);
	for (unsigned int block = 0; block < FLUSH_BLOCKS; block++)
		change(b, block, 0);
	error = pthread_create(&peer, NULL, run_peer, b);
	if (error)
		die(EXIT_FAILED, "cannot start a thread: %s", strerror(error));
	while (!atomic_load(&b->peer_ready))
		sleep_ns(100000);
	task_ready(b->task);
	for (unsigned int i = 0; !stopped(b->task); i++) {
		unsigned int block = i % FLUSH_BLOCKS;
		atomic_uint *number = &b->blocks[block].number;
		unsigned int value = atomic_load(number);

		atomic_store(number, value + 1);
		/* To spoil is to say that it is done, as if nobody had to know. */
		if (block || !b->task->spoil)
			change(b, block, value + 2);
		atomic_store(number, value + 2);
		bump(&b->task->progress->done, 1);
	}
	atomic_store(&b->over, true);
	pthread_join(peer, NULL);
}

/* The pages of a block, mapped again so that the next change has what to flush. */
static void read_block(const struct board *b, unsigned int block,
		       unsigned int number)
{
	for (unsigned int i = 0; i < BLOCK_PAGES; i++) {
		unsigned int page = block * BLOCK_PAGES + i;

		if (*word_of(b, page) != b->contents(b, page, number))
			bump(&b->task->progress->wrong, 1);
	}
}

/* What a task itself writes to a page: no other page or number has it. */
static uint64_t own_word(const struct board *b, unsigned int page,
			 unsigned int number)
{
	return page_word(MAX_TASKS + b->task->index,
			 ((uint64_t)number << 8) + page % FLUSH_PAGES);
}

/* In another order each time: frames that were given back change places. */
static void write_block(const struct board *b, unsigned int block,
			unsigned int number)
{
	for (unsigned int i = 0; i < BLOCK_PAGES; i++) {
		unsigned int page = block * BLOCK_PAGES +
				    (i * 3 + number / 2) % BLOCK_PAGES;

		*word_of(b, page) = own_word(b, page, number);
	}
}

/* All blocks side by side: for those that stay where they are. */
static void run_in_place(struct board *b, int flags, change_t change)
{
	bool file = !(flags & MAP_ANONYMOUS);
	char *p = mmap(NULL, FLUSH_PAGES * PAGE, PROT_READ | PROT_WRITE,
		       flags | b->task->flags, file ? b->task->fd : -1, 0);

	if (p == MAP_FAILED)
		die_errno("mmap of %u pages", FLUSH_PAGES);
	if (!file)
		madvise(p, FLUSH_PAGES * PAGE, MADV_NOHUGEPAGE);
	for (unsigned int block = 0; block < FLUSH_BLOCKS; block++)
		b->blocks[block].base = p + block * BLOCK_PAGES * PAGE;
	run_board(b, change);
	munmap(p, FLUSH_PAGES * PAGE);
}

static void drop_block(const struct board *b, unsigned int block)
{
	if (madvise(b->blocks[block].base, BLOCK_PAGES * PAGE, MADV_DONTNEED))
		die_errno("madvise");
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
	struct board board = { .task = task, .contents = own_word };

	run_in_place(&board, MAP_PRIVATE | MAP_ANONYMOUS, change_anonymous);
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
	struct board board = { .task = task, .contents = file_word };

	run_board(&board, change_mapping);
	for (unsigned int block = 0; block < FLUSH_BLOCKS; block++)
		munmap(board.blocks[block].base, BLOCK_PAGES * PAGE);
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
	struct board board = { .task = task, .contents = copied_word };

	run_in_place(&board, MAP_PRIVATE, change_copy);
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
