// SPDX-License-Identifier: GPL-2.0-only
/*
 * shared-list.c - two processes share a list in a morsel, with pointers
 *
 *	cc shared-list.c $(pkg-config --cflags --libs morsel) && ./a.out
 *
 * The morsel says where it is mapped, so that pointers in it mean the same in each
 * process. The parent makes the memory and the list; the child maps it and follows the
 * list with one page fault, because the page tables are there already. Then the parent
 * takes every other block away: by one call, for both.
 */
#include <morsel.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define SIZE	(64UL << 20)
#define BLOCK	(64UL << 10)
#define BLOCKS	(SIZE / BLOCK)

struct node {
	struct node *next;
	unsigned long value;
};

static void must(enum morsel_call call, int result)
{
	if (result < 0) {
		fprintf(stderr, "shared-list: %s\n", morsel_strerror(call, errno));
		exit(errno == ENOSYS ? 77 : 1);
	}
}

static long faults(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return usage.ru_minflt;
}

static unsigned long sum_of(const struct node *node)
{
	unsigned long sum = 0;

	for (; node; node = node->next)
		sum += node->value;
	return sum;
}

static void child(int fd)
{
	struct morsel_mapping mapping;
	unsigned long sum;
	long before;

	must(MORSEL_CALL_MAP, morsel_map(fd, PROT_READ, &mapping));
	before = faults();
	sum = sum_of(mapping.at);
	printf("child: sum %lu, %ld page fault(s)\n", sum, faults() - before);
	exit(0);
}

int main(void)
{
	struct morsel_layout layout = { .address = 0x300000000000 };
	struct morsel_range all = { 0, SIZE }, every[BLOCKS / 2];
	struct morsel_mapping mapping;
	struct morsel_stat stat;
	int fd = morsel_create("list", SIZE, &layout), status;
	pid_t pid;

	must(MORSEL_CALL_CREATE, fd);
	must(MORSEL_CALL_POPULATE, morsel_populate(fd, &all, 1, NULL));
	must(MORSEL_CALL_MAP, morsel_map(fd, PROT_READ | PROT_WRITE, &mapping));
	/* A node in each block leads to the next. */
	for (unsigned long n = 0; n < BLOCKS; n++) {
		struct node *node = (void *)((char *)mapping.at + n * BLOCK);

		node->value = n;
		node->next = n + 1 < BLOCKS ? (void *)((char *)node + BLOCK) : NULL;
	}
	pid = fork();
	if (pid == 0) {
		must(MORSEL_CALL_UNMAP, morsel_unmap(&mapping));
		child(fd);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid || status)
		return 1;
	for (unsigned long n = 0; n < BLOCKS / 2; n++)
		every[n] = (struct morsel_range){ 2 * n * BLOCK, BLOCK };
	must(MORSEL_CALL_DEPOPULATE, morsel_depopulate(fd, every, BLOCKS / 2, NULL));
	must(MORSEL_CALL_STAT, morsel_stat(fd, &stat));
	printf("parent: %llu of %lu pages left\n", (unsigned long long)stat.pages, SIZE / 4096);
	return 0;
}
