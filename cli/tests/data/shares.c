// SPDX-License-Identifier: GPL-2.0-only
/*
 * Memory that a program shares with its children, as PostgreSQL does: `shares BYTES` prints what
 * /proc/self/maps calls it, and the kB of page tables of a child that has read all of it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static void must(int good, const char *what)
{
	if (good)
		return;
	perror(what);
	exit(1);
}

static void print_line(const char *path, const char *wanted)
{
	FILE *f = fopen(path, "r");
	char line[400];

	must(f != NULL, path);
	while (fgets(line, sizeof(line), f))
		if (strstr(line, wanted))
			fputs(line, stdout);
	fclose(f);
}

int main(int argc, char **argv)
{
	size_t length = argc > 1 ? strtoul(argv[1], NULL, 10) : 0, i, sum = 0;
	char range[40];
	int status;
	char *p;

	p = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	must(p != MAP_FAILED, "mmap");
	snprintf(range, sizeof(range), "%lx-", (unsigned long)p);
	print_line("/proc/self/maps", range);
	for (i = 0; i < length; i += 4096)
		p[i] = 1;
	fflush(stdout);
	if (!fork()) {
		for (i = 0; i < length; i += 4096)
			sum += (size_t)p[i];
		p[0] = 7;
		print_line("/proc/self/status", "VmPTE:");
		must(!munmap(p, length), "munmap in the child");
		fflush(stdout);
		_exit(sum != (length + 4095) / 4096);
	}
	must(wait(&status) > 0 && !status, "the child");
	must(p[0] == 7, "what the child has written");
	must(!mprotect(p, length, PROT_READ), "mprotect");
	must(p[length - 1] == (length % 4096 == 1), "the end");
	must(!munmap(p, length), "munmap");
	print_line("/proc/self/maps", range);
	return 0;
}
