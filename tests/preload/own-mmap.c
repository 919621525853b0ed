// SPDX-License-Identifier: GPL-2.0-only
/*
 * own-mmap.c - a program that defines mmap() itself
 *
 * What: stands for tracers and allocators that do. Its mapping, and that of a
 *       library of it, come here. Exit status 0: they did.
 * Who:  test-preload.c.
 */
/* So that mmap and mmap64 are two names here. */
#undef _FILE_OFFSET_BITS

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FIRST_LENGTH 70001UL

extern int early_errors(void);

static int calls;

void *mmap(void *addr, size_t length, int prot, int flags, int fd, off_t offset)
{
	calls++;
	return (void *)syscall(SYS_mmap, addr, length, prot, flags, fd, offset);
}

/* What libraries with 64-bit offsets call. */
void *mmap64(void *addr, size_t length, int prot, int flags, int fd, off_t offset)
	__attribute__((alias("mmap")));

int main(int argc, char **argv)
{
	int fd = argc > 2 ? open(argv[2], O_RDONLY | O_CLOEXEC) : -1;

	if (early_errors() || calls != 1)
		return 1;
	return mmap(NULL, FIRST_LENGTH, PROT_READ, MAP_PRIVATE, fd, 0) ==
	       MAP_FAILED;
}
