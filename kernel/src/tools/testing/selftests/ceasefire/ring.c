// SPDX-License-Identifier: GPL-2.0
/* A pin by io_uring, see ring.h. */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/io_uring.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "env.h"
#include "ktap.h"
#include "ring.h"

#define ENTRIES	4

void ring_pin(struct ring *r, void *addr, size_t length)
{
	struct io_uring_params params = { 0 };
	struct iovec v = { addr, length };

	r->fd = (int)syscall(SYS_io_uring_setup, ENTRIES, &params);
	if (r->fd < 0 && (errno == ENOSYS || errno == EPERM))
		ktap_skip("no io_uring: %s", strerror(errno));
	ENSURE(r->fd >= 0, "io_uring_setup: %m");
	ENSURE(params.features & IORING_FEAT_SINGLE_MMAP, "an old io_uring");
	r->queue = mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
			MAP_SHARED | MAP_POPULATE, r->fd, IORING_OFF_SQ_RING);
	r->entries = mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
			  MAP_SHARED | MAP_POPULATE, r->fd, IORING_OFF_SQES);
	ENSURE(r->queue != MAP_FAILED && r->entries != MAP_FAILED, "mmap: %m");
	r->tail_at = params.sq_off.tail;
	r->mask_at = params.sq_off.ring_mask;
	r->array_at = params.sq_off.array;
	r->done_head_at = params.cq_off.head;
	r->done_tail_at = params.cq_off.tail;
	r->done_at = params.cq_off.cqes;
	r->done_mask_at = params.cq_off.ring_mask;
	MUST(syscall(SYS_io_uring_register, r->fd, IORING_REGISTER_BUFFERS, &v,
		     1));
}

static uint32_t *word_at(struct ring *r, unsigned int at)
{
	return (uint32_t *)((char *)r->queue + at);
}

void ring_read(struct ring *r, int fd, void *addr, size_t length)
{
	uint32_t *tail = word_at(r, r->tail_at);
	uint32_t slot = *tail & *word_at(r, r->mask_at);
	struct io_uring_sqe *entry = (struct io_uring_sqe *)r->entries + slot;
	struct io_uring_cqe *done;
	uint32_t *head;

	memset(entry, 0, sizeof(*entry));
	entry->opcode = IORING_OP_READ_FIXED;
	entry->fd = fd;
	entry->addr = (uintptr_t)addr;
	entry->len = (uint32_t)length;
	word_at(r, r->array_at)[slot] = slot;
	__atomic_store_n(tail, *tail + 1, __ATOMIC_RELEASE);
	ENSURE(syscall(SYS_io_uring_enter, r->fd, 1, 1, IORING_ENTER_GETEVENTS,
		       NULL, 0) == 1, "io_uring_enter: %m");
	head = word_at(r, r->done_head_at);
	ENSURE(*head != __atomic_load_n(word_at(r, r->done_tail_at),
					__ATOMIC_ACQUIRE), "nothing is done");
	done = (struct io_uring_cqe *)word_at(r, r->done_at) +
	       (*head & *word_at(r, r->done_mask_at));
	ENSURE(done->res == (int)length, "%d instead of %zu", done->res, length);
	__atomic_store_n(head, *head + 1, __ATOMIC_RELEASE);
}

void ring_close(struct ring *r)
{
	MUST(munmap(r->queue, PAGE));
	MUST(munmap(r->entries, PAGE));
	close(r->fd);
}
