// SPDX-License-Identifier: GPL-2.0-only
/*
 * board.c - blocks of pages that change, and readers that know what they have to show
 *
 * What: the announcement is a sequence number for each block: odd while the
 *       block changes, even when the change is complete. What a reader has read
 *       between two looks at the same even number must be the contents of that
 *       number; what it was refused, or allowed, must be its rights. A block rests while
 *       others are changed, so that nearly all reads count, and a translation
 *       that should have been flushed has long to be noticed.
 * Who:  flush.c, with a reader for each task; shared.c, where all tasks are readers.
 *
 * The address is announced, too. A reader may come to one that has just been
 * unmapped; that is a fault which it survives, and wrong only if the number says
 * that the page is there.
 */
#include "board.h"

#include <signal.h>
#include <sys/mman.h>

_Thread_local sigjmp_buf after_fault;
_Thread_local bool survives;

static void on_fault(int number)
{
	if (survives)
		siglongjmp(after_fault, 1);
	signal(number, SIG_DFL);
}

void board_survive_faults(void)
{
	struct sigaction action = { .sa_handler = on_fault };

	sigaction(SIGSEGV, &action, NULL);
	sigaction(SIGBUS, &action, NULL);
}

static void judge(const struct look *look, bool wrong)
{
	bump(&look->progress->peer_checks, 1);
	if (wrong)
		bump(&look->progress->peer_wrong, 1);
}

/*
 * Is the number still what it was? A full fence: a write that the CPU has in hand
 * is translated before the number is read. With less, the number could be the
 * old one, and the translation that of the next change.
 */
static bool still(const struct look *look)
{
	const struct block *block = &look->board->blocks[look->page / BLOCK_PAGES];

	atomic_thread_fence(memory_order_seq_cst);
	return atomic_load_explicit(&block->number, memory_order_relaxed) ==
	       look->number;
}

/* A word of the page that nobody reads: each task has another one. */
static volatile uint64_t *scratch_of(const struct look *look)
{
	return word_of(look->board, look->page) + 1 +
	       look->board->task->index % (PAGE / sizeof(uint64_t) - 1);
}

/* The compiler keeps what a fault wants to know in front of what may fault. */
static void try_to_write(struct look *look)
{
	look->writes = true;
	atomic_signal_fence(memory_order_seq_cst);
	*scratch_of(look) = look->number;
	if (still(look))
		judge(look, look->board->rights(look->number) < RIGHTS_WRITE);
}

void board_look(struct look *look)
{
	const struct board *b = look->board;
	uint64_t word;

	look->writes = false;
	look->number = atomic_load_explicit(
		&b->blocks[look->page / BLOCK_PAGES].number,
		memory_order_acquire);
	if (look->number % 2)
		return;
	atomic_signal_fence(memory_order_seq_cst);
	word = *word_of(b, look->page);
	if (still(look))
		judge(look, word != b->contents(b, look->page, look->number) ||
			    (b->rights && !b->rights(look->number)));
	if (b->rights)
		try_to_write(look);
}

/* After a fault of the look at a page. */
void board_look_failed(struct look *look)
{
	const struct board *b = look->board;
	enum rights allowed;

	if (!still(look))
		return;
	allowed = b->rights ? b->rights(look->number) : RIGHTS_READ;
	judge(look, allowed >= (look->writes ? RIGHTS_WRITE : RIGHTS_READ));
}

void board_change(struct board *b, unsigned int block, change_t change)
{
	atomic_uint *number = &b->blocks[block].number;
	unsigned int value = atomic_load(number) & ~1U;

	atomic_store(number, value + 1);
	/* To spoil is to say that it is done, as if nobody had to know. */
	if (block || !b->task->spoil)
		change(b, block, value + 2);
	atomic_store(number, value + 2);
	bump(&b->task->progress->done, 1);
}

/* All blocks side by side: for those that stay where they are. */
void board_place(struct board *b, char *memory)
{
	for (unsigned int block = 0; block < FLUSH_BLOCKS; block++)
		b->blocks[block].base = memory + block * BLOCK_PAGES * PAGE;
}

/* What a task itself writes to a page: no other page or number has it. */
uint64_t own_word(const struct board *b, unsigned int page, unsigned int number)
{
	return page_word(b->first_word, ((uint64_t)number << 8) + page % FLUSH_PAGES);
}

/* In another order each time: frames that were given back change places. */
void write_block(const struct board *b, unsigned int block, unsigned int number)
{
	for (unsigned int i = 0; i < BLOCK_PAGES; i++) {
		unsigned int page = block * BLOCK_PAGES +
				    (i * 3 + number / 2) % BLOCK_PAGES;

		*word_of(b, page) = own_word(b, page, number);
	}
}

/* The pages of a block, mapped again so that the next change has what to flush. */
void read_block(const struct board *b, unsigned int block, unsigned int number)
{
	for (unsigned int i = 0; i < BLOCK_PAGES; i++) {
		unsigned int page = block * BLOCK_PAGES + i;

		if (*word_of(b, page) != b->contents(b, page, number))
			bump(&b->task->progress->wrong, 1);
	}
}

void drop_block(const struct board *b, unsigned int block)
{
	if (madvise(b->blocks[block].base, BLOCK_PAGES * PAGE, MADV_DONTNEED))
		die_errno("madvise");
}
