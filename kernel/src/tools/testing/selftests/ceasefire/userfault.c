// SPDX-License-Identifier: GPL-2.0
/* Pages that change their mapping, see userfault.h. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "env.h"
#include "ktap.h"
#include "map.h"
#include "peer.h"
#include "userfault.h"

/* What the peer writes to find out which frames it reaches. */
#define PROBED	0x66

static int open_userfault(__u64 features)
{
	struct uffdio_api api = { .api = UFFD_API, .features = features };
	int uffd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);

	if (uffd < 0 || ioctl(uffd, UFFDIO_API, &api))
		ktap_skip("no userfaultfd with features %llx: %m",
			  (unsigned long long)features);
	return uffd;
}

void protect_async(void *addr, size_t length)
{
	struct uffdio_register area = {
		.range = { .start = (unsigned long)addr, .len = length },
		.mode = UFFDIO_REGISTER_MODE_WP,
	};
	struct uffdio_writeprotect order = {
		.range = area.range, .mode = UFFDIO_WRITEPROTECT_MODE_WP,
	};
	int uffd = open_userfault(UFFD_FEATURE_WP_ASYNC);

	ENSURE(!ioctl(uffd, UFFDIO_REGISTER, &area), "UFFDIO_REGISTER: %m");
	ENSURE(!ioctl(uffd, UFFDIO_WRITEPROTECT, &order),
	       "UFFDIO_WRITEPROTECT: %m");
}

void move_pages_to(char *to, char *from, size_t pages)
{
	struct uffdio_register area = {
		.range = { .start = (unsigned long)to, .len = pages * PAGE },
		.mode = UFFDIO_REGISTER_MODE_MISSING,
	};
	int uffd = open_userfault(UFFD_FEATURE_MOVE);
	size_t i;

	ENSURE(!ioctl(uffd, UFFDIO_REGISTER, &area), "UFFDIO_REGISTER: %m");
	for (i = 0; i < pages; i++) {
		struct uffdio_move order = {
			.dst = (unsigned long)(to + i * PAGE),
			.src = (unsigned long)(from + i * PAGE),
			.len = PAGE,
		};

		ENSURE(!ioctl(uffd, UFFDIO_MOVE, &order), "UFFDIO_MOVE: %m");
	}
	/* What is used there from now on is made by the kernel as ever. */
	close(uffd);
}

char *move_recycled(char *stale, size_t held, size_t pages, unsigned char byte)
{
	size_t length = pages * PAGE, reached = 0, i;
	char *q, *r;

	q = fpr_map(NULL, 0, pages, PROT_READ | PROT_WRITE, MAP_PRIVATE);
	memset(q, byte, length);
	peer_write(stale, held, WORD(PROBED));
	for (i = 0; i < pages; i++)
		reached += probe_read(q + i * PAGE) == WORD(PROBED);
	PREMISE(reached, "no recycled frame is reached: nothing to attack with");
	memset(q, byte, length);

	r = mmap(NULL, length, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ENSURE(r != MAP_FAILED, "mmap: %m");
	move_pages_to(r, q, pages);
	ktap_note("%zu of %zu pages were reached", reached, pages);
	return r;
}
