/* SPDX-License-Identifier: GPL-2.0 */
/* A pin: memory that the kernel writes to by io_uring, without a look at page tables. */
#ifndef CEASEFIRE_SELFTEST_RING_H
#define CEASEFIRE_SELFTEST_RING_H

#include <stddef.h>

struct ring {
	int fd;
	void *queue;	/* of both directions */
	void *entries;
	/* Where these are in the queue. */
	unsigned int tail_at, mask_at, array_at, done_head_at, done_tail_at,
		     done_mask_at, done_at;
};

/* Pin memory for as long as the ring is open; skips without io_uring. */
void ring_pin(struct ring *r, void *addr, size_t length);
/* Read from a file to a part of it; fails the case if it does not get all. */
void ring_read(struct ring *r, int fd, void *addr, size_t length);
void ring_close(struct ring *r);

#endif
