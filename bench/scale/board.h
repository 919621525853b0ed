/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * board.h - blocks of pages that change, and readers that know what they have to show; see board.c
 *
 * The contract: who changes a block calls board_change() for each change, and
 * nobody else changes it. A reader calls board_look() in a loop; it may read any block
 * at any time.
 */
#ifndef SCALE_BOARD_H
#define SCALE_BOARD_H

#include "tests.h"

#include <setjmp.h>

/* What a page allows after a change. */
enum rights { RIGHTS_NONE, RIGHTS_READ, RIGHTS_WRITE };

struct block {
	_Alignas(64) atomic_uint number;
	char *_Atomic base;
};

struct board {
	struct task *task;
	unsigned int first_word;	/* page_word()'s file of what own_word() is */
	/* What the first word of a page is after the change number @number. */
	uint64_t (*contents)(const struct board *board, unsigned int page,
			     unsigned int number);
	/* And what it allows. NULL: reading, and readers try nothing else. */
	enum rights (*rights)(unsigned int number);
	struct block *blocks;		/* FLUSH_BLOCKS of them */
};

/* What a reader does at a time; in memory, because a fault comes back to it. */
struct look {
	const struct board *board;
	struct progress *progress;	/* where it counts */
	unsigned int page;
	unsigned int number;
	bool writes;			/* it is writing, else reading */
};

/* Changes a block so that it has the contents of a number. */
typedef void (*change_t)(struct board *board, unsigned int block,
			 unsigned int number);

/* Before readers begin: a fault of theirs comes back to them. */
void board_survive_faults(void);
/* Of a reader: where it goes on after a fault. Others do not. */
extern _Thread_local sigjmp_buf after_fault;
extern _Thread_local bool survives;
void board_look(struct look *look);
void board_look_failed(struct look *look);

/* For those who change blocks. */
void board_change(struct board *board, unsigned int block, change_t change);
void board_place(struct board *board, char *memory);
uint64_t own_word(const struct board *board, unsigned int page, unsigned int number);
void write_block(const struct board *board, unsigned int block, unsigned int number);
void read_block(const struct board *board, unsigned int block, unsigned int number);
void drop_block(const struct board *board, unsigned int block);

static inline volatile uint64_t *word_of(const struct board *board, unsigned int page)
{
	const struct block *block = &board->blocks[page / BLOCK_PAGES];

	return (volatile uint64_t *)(atomic_load(&block->base) +
				     page % BLOCK_PAGES * PAGE);
}

#endif /* SCALE_BOARD_H */
