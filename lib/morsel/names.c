// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * names.c - morsels that have a name in a file system
 *
 * What: morsel_create_at(), morsel_copy_at() and morsel_open() of morsel.h.
 * Who:  programs that link with libmorsel.
 *
 * A morsel gets its name when it is ready: nobody finds one without a size, and of one that
 * cannot be made nothing is left.
 */
#include "morsel.h"
#include "internal.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int failed(int fd, int err)
{
	if (fd >= 0)
		close(fd);
	errno = err;
	return -1;
}

/* One without a name in the folder that is to have it; -1 with errno set. */
static int make_in(const char *path, mode_t mode)
{
	const char *slash = strrchr(path, '/');
	size_t length = slash ? (size_t)(slash - path) + 1 : 0;
	char folder[PATH_MAX] = ".";
	struct morsel_stat stat;
	int fd;

	if (length >= sizeof(folder))
		return failed(-1, ENAMETOOLONG);
	if (length) {
		memcpy(folder, path, length);
		folder[length] = 0;
	}
	fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, mode);
	/* Of file systems that cannot do that, and have other files anyway. */
	if (fd < 0 && (errno == EOPNOTSUPP || errno == EISDIR))
		errno = EINVAL;
	if (fd >= 0 && morsel_stat(fd, &stat))
		return failed(fd, EINVAL);
	return fd;
}

/* The same, unless there is something with the name that it is to have. */
static int make_for(const char *path, mode_t mode)
{
	if (!faccessat(AT_FDCWD, path, F_OK, AT_SYMLINK_NOFOLLOW))
		return failed(-1, EEXIST);
	return make_in(path, mode);
}

static int name_it(int fd, const char *path)
{
	char link[40];

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	if (linkat(AT_FDCWD, link, AT_FDCWD, path, AT_SYMLINK_FOLLOW))
		return failed(fd, errno);
	return fd;
}

int morsel_create_at(const char *path, mode_t mode, uint64_t size,
		     const struct morsel_layout *layout)
{
	int fd = make_for(path, mode);

	if (fd < 0)
		return -1;
	if (morsel_lay_out(fd, size, layout))
		return failed(fd, errno);
	return name_it(fd, path);
}

int morsel_copy_at(int fd, const char *path, mode_t mode)
{
	int copy = make_for(path, mode);

	if (copy >= 0)
		copy = morsel_become_copy(copy, fd);
	return copy < 0 ? -1 : name_it(copy, path);
}

int morsel_open(const char *path, int flags)
{
	int mode = flags & ~O_NOFOLLOW;
	struct morsel_stat stat;
	int fd;

	if (mode != O_RDONLY && mode != O_RDWR)
		return failed(-1, EINVAL);
	/* What is no morsel may be a pipe that nobody writes to, or a terminal. */
	fd = open(path, flags | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd >= 0 && morsel_stat(fd, &stat))
		return failed(fd, errno);
	return fd;
}
