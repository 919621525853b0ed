// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * object.c - morsels are made, mapped, and asked what they have
 *
 * What: morsel_supported(), _create(), _copy(), _map(), _unmap(), _destroy(), _stat() of
 *       morsel.h.
 * Who:  programs that link with libmorsel.
 */
#include "morsel.h"
#include "internal.h"

#include <errno.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* As memfd_create() of the kernel has it, without its own prefix. */
static int make(const char *name)
{
	int fd = memfd_create(name, MFD_MORSEL | MFD_CLOEXEC);

	if (fd >= 0 || errno != EINVAL)
		return fd;
	/* EINVAL is also what it says of a name that is too long. */
	fd = memfd_create(name, MFD_CLOEXEC);
	if (fd < 0)
		return -1;
	close(fd);
	errno = ENOSYS;
	return -1;
}

bool morsel_supported(void)
{
	int saved = errno, fd = make("");
	bool found = fd >= 0 || errno != ENOSYS;

	if (fd >= 0)
		close(fd);
	errno = saved;
	return found;
}

/* What the kernel takes when it is asked for nothing. */
static uint64_t unit_for(uint64_t size, uint64_t page)
{
	uint64_t unit = (page ? page : 4096) << 9;

	while (unit < 256ULL << 40 && (size + unit - 1) / unit > 511)
		unit <<= 9;
	return unit;
}

int morsel_lay_out(int fd, uint64_t size, const struct morsel_layout *layout)
{
	if (layout && layout->page > 512ULL << 30) {
		errno = EINVAL;
		return -1;
	}
	if (layout && (layout->unit || layout->address || layout->lazy || layout->page)) {
		struct morsel_geometry geometry = {
			.unit = layout->unit ? layout->unit : unit_for(size, layout->page),
			.base = (uint32_t)layout->page,
			.flags = layout->lazy ? MORSEL_ALLOW_LAZY : 0,
			.address = layout->address,
		};

		if (ioctl(fd, MORSEL_IOC_GEOMETRY, &geometry))
			return -1;
	}
	if (size > INT64_MAX) {
		errno = EFBIG;
		return -1;
	}
	return ftruncate(fd, (off_t)size);
}

int morsel_create(const char *name, uint64_t size,
		  const struct morsel_layout *layout)
{
	int fd = make(name), err;

	if (fd < 0 || !morsel_lay_out(fd, size, layout))
		return fd;
	err = errno;
	close(fd);
	errno = err;
	return -1;
}

int morsel_become_copy(int fd, int origin)
{
	int err;

	if (!ioctl(fd, FICLONE, origin))
		return fd;
	err = errno;
	close(fd);
	errno = err;
	return -1;
}

int morsel_copy(int fd, const char *name)
{
	int copy = make(name);

	return copy < 0 ? copy : morsel_become_copy(copy, fd);
}

int morsel_map(int fd, int prot, struct morsel_mapping *mapping)
{
	struct morsel_stat of_morsel;
	struct stat of_file;
	uint64_t length;
	void *at;

	if (morsel_stat(fd, &of_morsel) || fstat(fd, &of_file))
		return -1;
	if (!of_morsel.unit || !of_file.st_size) {
		struct morsel_vec none = { 0 };

		/* One that was destroyed has no size, either, and says so to this. */
		if (!ioctl(fd, MORSEL_IOC_POPULATE, &none) || errno != ENODEV)
			errno = EINVAL;
		return -1;
	}
	length = ((uint64_t)of_file.st_size + of_morsel.unit - 1) &
		 ~(of_morsel.unit - 1);
	at = mmap(NULL, length, prot, MAP_SHARED, fd, 0);
	if (at == MAP_FAILED)
		return -1;
	*mapping = (struct morsel_mapping){ at, length };
	return 0;
}

int morsel_unmap(const struct morsel_mapping *mapping)
{
	return munmap(mapping->at, mapping->length);
}

int morsel_destroy(int fd, unsigned int flags)
{
	uint32_t chosen = flags;

	if (!ioctl(fd, MORSEL_IOC_DESTROY, &chosen))
		return 0;
	if (errno == ENOTTY)
		errno = EINVAL;
	return -1;
}

int morsel_stat(int fd, struct morsel_stat *stat)
{
	if (!ioctl(fd, MORSEL_IOC_STAT, stat))
		return 0;
	/* Of files that know no such request. */
	if (errno == ENOTTY)
		errno = EINVAL;
	return -1;
}
