// SPDX-License-Identifier: GPL-2.0-only
/*
 * early.c - a library whose constructor maps a file
 *
 * What: stands for allocators and language run times that map before the
 *       preload library's own constructor has run; and for those that open a
 *       file of their own there, when the program is to.
 * Who:  subject.c and awkward.c link with it.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define EARLY_LENGTH 60001UL

int early_errors(void);

static int errors = 1;

static __attribute__((constructor)) void map_early(int argc, char **argv)
{
	int fd;
	void *p;

	/* Stays open: with standard error closed it is descriptor 2. */
	if (argc > 2 && strcmp(argv[1], "early-data") == 0)
		open(argv[2], O_RDWR);
	fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	p = mmap(NULL, EARLY_LENGTH, PROT_READ, MAP_PRIVATE, fd, 0);
	errors = p == MAP_FAILED;
	close(fd);
}

int early_errors(void)
{
	return errors;
}
