// SPDX-License-Identifier: GPL-2.0-only
/*
 * early.c - a library whose constructor maps a file
 *
 * What: stands for allocators and language run times that map before the
 *       preload library's own constructor has run.
 * Who:  subject.c links with it.
 */
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#define EARLY_LENGTH 60001UL

int early_errors(void);

static int errors = 1;

static __attribute__((constructor)) void map_early(void)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	void *p = mmap(NULL, EARLY_LENGTH, PROT_READ, MAP_PRIVATE, fd, 0);

	errors = p == MAP_FAILED;
	close(fd);
}

int early_errors(void)
{
	return errors;
}
