// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * ranges.c - memory of a morsel comes and goes, by ranges
 *
 * What: morsel_populate(), morsel_depopulate() and the like of morsel.h. The kernel takes so many
 *       ranges at a time, and stops at a signal; both end here.
 * Who:  programs that link with libmorsel.
 */
#include "morsel.h"

#include <errno.h>
#include <sys/ioctl.h>

static int for_ranges(int fd, unsigned long request, unsigned int flags,
		      const struct morsel_range *ranges, size_t nr, size_t *done)
{
	size_t at = 0;
	int err = 0;

	while (at < nr) {
		size_t left = nr - at;
		struct morsel_vec vec = {
			.ranges = (uintptr_t)(ranges + at),
			.nr = (uint32_t)(left < MORSEL_RANGES_MAX ? left :
					 MORSEL_RANGES_MAX),
			.flags = flags,
		};

		err = ioctl(fd, request, &vec);
		/* Of all errors that the kernel looked at the ranges for. */
		if (!err || vec.done)
			at += vec.done < vec.nr ? vec.done : vec.nr;
		if (err && errno != EINTR)
			break;
		err = 0;
	}
	if (err && errno == ENOTTY)
		errno = EINVAL;
	if (done)
		*done = at;
	return err;
}

int morsel_populate(int fd, const struct morsel_range *ranges, size_t nr,
		    size_t *done)
{
	return for_ranges(fd, MORSEL_IOC_POPULATE, 0, ranges, nr, done);
}

int morsel_depopulate(int fd, const struct morsel_range *ranges, size_t nr,
		      size_t *done)
{
	return for_ranges(fd, MORSEL_IOC_DEPOPULATE, 0, ranges, nr, done);
}

int morsel_depopulate_async(int fd, const struct morsel_range *ranges,
			    size_t nr, size_t *done)
{
	return for_ranges(fd, MORSEL_IOC_DEPOPULATE, MORSEL_ASYNC, ranges, nr,
			  done);
}

int morsel_depopulate_lazy(int fd, const struct morsel_range *ranges,
			   size_t nr, size_t *done)
{
	return for_ranges(fd, MORSEL_IOC_DEPOPULATE, MORSEL_LAZY, ranges, nr,
			  done);
}
