/* SPDX-License-Identifier: GPL-2.0 */
/* Pages that userfaultfd moves from one mapping to another, or protects. */
#ifndef CEASEFIRE_SELFTEST_USERFAULT_H
#define CEASEFIRE_SELFTEST_USERFAULT_H

#include <linux/userfaultfd.h>
#include <stddef.h>

/* Newer than the headers of some distributions. */
#ifndef UFFDIO_MOVE
struct uffdio_move {
	__u64 dst, src, len, mode;
	__s64 move;
};

#define UFFDIO_MOVE		_IOWR(UFFDIO, 0x05, struct uffdio_move)
#define UFFD_FEATURE_MOVE	(1 << 16)
#endif

#ifndef UFFD_FEATURE_WP_ASYNC
#define UFFD_FEATURE_WP_ASYNC	(1 << 15)
#endif

/*
 * Write protect pages without anybody who waits for what is written: the kernel lifts
 * it by itself at the first write. Skips where it cannot.
 */
void protect_async(void *addr, size_t length);

/*
 * Move pages, one by one, to anonymous memory of the same length where none are: more
 * at a time would end in a flush of everything. Skips where it cannot.
 */
void move_pages_to(char *to, char *from, size_t pages);

/*
 * Anonymous memory without the flag whose pages, filled with @byte, are in
 * frames that the peer can still write to through its @held translations at
 * @stale: they were recycled for a mapping with the flag, and moved from there.
 */
char *move_recycled(char *stale, size_t held, size_t pages, unsigned char byte);

#endif
