// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * names.c - morsels that have a name in a file system
 *
 * What: morsel_create_at() and morsel_open() of morsel.h.
 * Who:  programs that link with libmorsel.
 */
#include "morsel.h"
#include "internal.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

/* -1 with EINVAL, and the descriptor is closed, if it is something else. */
static int checked(int fd)
{
	struct morsel_stat stat;
	int err;

	if (!morsel_stat(fd, &stat))
		return fd;
	err = errno;
	close(fd);
	errno = err;
	return -1;
}

int morsel_create_at(const char *path, mode_t mode, uint64_t size,
		     const struct morsel_layout *layout)
{
	int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, mode), err;

	if (fd < 0)
		return -1;
	fd = checked(fd);
	if (fd >= 0 && !morsel_lay_out(fd, size, layout))
		return fd;
	/* Nobody else has made it, so nobody misses it. */
	err = errno;
	unlink(path);
	if (fd >= 0)
		close(fd);
	errno = err;
	return -1;
}

int morsel_open(const char *path, int flags)
{
	int fd;

	if ((flags & O_ACCMODE) == O_WRONLY || flags & ~(O_ACCMODE | O_NOFOLLOW)) {
		errno = EINVAL;
		return -1;
	}
	/* What is no morsel may be a pipe that nobody writes to. */
	fd = open(path, flags | O_CLOEXEC | O_NONBLOCK);
	return fd < 0 ? -1 : checked(fd);
}
