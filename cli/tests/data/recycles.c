// SPDX-License-Identifier: GPL-2.0-only
/*
 * Maps a file without MAP_FPR, and says what became of it: "recycles" if its
 * munmap may skip the flush, else "plain". Built statically by the tests of
 * `ceasefire run`, so that nothing but the kernel can have done it.
 *
 *	recycles FILE BYTES
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static void die(const char *what)
{
	perror(what);
	exit(1);
}

int main(int argc, char **argv)
{
	unsigned long start, end, at;
	char line[512];
	FILE *smaps;
	size_t size;
	int here = 0;
	int fd;

	if (argc != 3)
		return 2;
	size = strtoul(argv[2], NULL, 10);
	fd = open(argv[1], O_RDWR | O_CREAT, 0666);
	if (fd < 0 || ftruncate(fd, (off_t)size))
		die(argv[1]);
	at = (uintptr_t)mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
	if (at == (uintptr_t)MAP_FAILED)
		die("mmap");
	smaps = fopen("/proc/self/smaps", "r");
	if (!smaps)
		die("smaps");
	while (fgets(line, sizeof(line), smaps)) {
		if (sscanf(line, "%lx-%lx ", &start, &end) == 2)
			here = start <= at && at < end;
		else if (here && !strncmp(line, "VmFlags:", 8)) {
			puts(strstr(line, " fr") ? "recycles" : "plain");
			return 0;
		}
	}
	fprintf(stderr, "the mapping is not in smaps\n");
	return 1;
}
