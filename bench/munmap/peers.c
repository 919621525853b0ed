// SPDX-License-Identifier: GPL-2.0-only
/*
 * peers.c - case 6: each mapping is read by all other threads before it goes
 *
 * What: the owner announces a mapping, each peer reads the first word of each
 *       of its pages, compares it, and says that it is done. Only then does the
 *       owner unmap, so that each CPU that runs a peer has the translations of
 *       all pages: as many as its TLB can hold.
 * Who:  worker.c. The board is the process's own: case 6 has one owner.
 *
 * Peers turn in user space while they wait: one that slept would leave its CPU
 * idle, and Linux does not interrupt an idle CPU for a flush. They end only when the
 * owner says so, never with a mapping that they have not read, for which it waits.
 */
#include "peers.h"

#include "../common/util.h"

#include <stdatomic.h>

#define PAGE 4096UL

/* What @number is at the end. Turns begin with 1 and do not come so far. */
#define OVER UINT64_MAX

static struct {
	_Alignas(128) atomic_ullong number;	/* of the turn */
	/* Of that turn; the number is written after them. */
	const char *base;
	unsigned int file;
	uint64_t first;
	_Alignas(128) atomic_uint done;		/* peers that have read it all */
} board;

void peers_show(const struct job *job, const char *base, unsigned int file, uint64_t first)
{
	unsigned int peers = job->options->threads - 1;

	board.base = base;
	board.file = file;
	board.first = first;
	atomic_store_explicit(&board.done, 0, memory_order_relaxed);
	atomic_fetch_add_explicit(&board.number, 1, memory_order_release);
	while (atomic_load_explicit(&board.done, memory_order_acquire) < peers)
		__builtin_ia32_pause();
}

void peers_end(void)
{
	atomic_store_explicit(&board.number, OVER, memory_order_release);
}

static unsigned int read_all(const struct job *job)
{
	bool zero = job->options->access == ACCESS_ANONYMOUS;
	unsigned int wrong = 0;

	for (unsigned int i = 0; i < job->options->pages; i++) {
		uint64_t word = *(const volatile uint64_t *)(board.base + i * PAGE);

		wrong += word != (zero ? 0 : page_word(board.file, board.first + i));
	}
	return job->data->checked ? wrong : 0;
}

void peers_read(const struct job *job)
{
	struct progress *progress = &job->control->progress[job->index];
	unsigned long long seen = 0, number;

	for (;;) {
		number = atomic_load_explicit(&board.number, memory_order_acquire);
		if (number == OVER)
			return;
		if (number == seen) {
			__builtin_ia32_pause();
			continue;
		}
		seen = number;
		bump(&progress->wrong, read_all(job));
		atomic_fetch_add_explicit(&board.done, 1, memory_order_release);
	}
}
