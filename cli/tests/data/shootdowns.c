// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sends shootdowns of known causes and numbers: a thread computes on a CPU of
 * its own, the other one maps and unmaps. It waits before each change until the
 * first one has just computed: to a CPU that runs something else nothing is sent.
 *
 *	shootdowns FILE NAME=COUNT...
 *
 * FILE has at least four pages. Frames are kept for those who walk them.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE 4096
#define SIZE (4 * PAGE)
/* What a page table maps. */
#define TABLE ((uintptr_t)2 << 20)

static atomic_int over;
static atomic_ulong turns;
static int file;

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static void pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		die("sched_setaffinity");
}

static void *compute(void *unused)
{
	(void)unused;
	pin(1);
	while (!over)
		turns++;
	return NULL;
}

static void wait_for_peer(void)
{
	/* The turn that is under way may have begun long ago. */
	unsigned long enough = turns + 2;

	while (turns < enough)
		;
}

static char *map(void *where, int rights, int flags, int fd)
{
	char *at = mmap(where, SIZE, rights, flags, fd, 0);

	if (at == MAP_FAILED)
		die("mmap");
	return at;
}

static void use(volatile char *at, int write)
{
	int i;

	for (i = 0; i < SIZE; i += PAGE) {
		if (write)
			at[i] = 1;
		else
			(void)at[i];
	}
}

__attribute__((noinline)) static void unmap(char *at)
{
	wait_for_peer();
	if (munmap(at, SIZE))
		die("munmap");
}

/* What FPR spares. */
static void unmap_file(void)
{
	char *at = map(NULL, PROT_READ, MAP_PRIVATE, file);

	use(at, 0);
	unmap(at);
}

static void unmap_dirty(void)
{
	char *at = map(NULL, PROT_READ | PROT_WRITE, MAP_SHARED, file);

	use(at, 1);
	unmap(at);
}

static void unmap_anonymous(void)
{
	char *at = map(NULL, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1);

	use(at, 1);
	unmap(at);
}

static void unmap_fixed(void)
{
	char *at = map((void *)0x200000000, PROT_READ, MAP_PRIVATE | MAP_FIXED,
		       file);

	use(at, 0);
	unmap(at);
}

static char *area(void)
{
	static char *at;

	if (!at)
		at = map(NULL, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1);
	return at;
}

static void dontneed(void)
{
	use(area(), 1);
	wait_for_peer();
	if (madvise(area(), SIZE, MADV_DONTNEED))
		die("madvise");
}

static void protect(void)
{
	use(area(), 1);
	wait_for_peer();
	if (mprotect(area(), SIZE, PROT_READ))
		die("mprotect");
	wait_for_peer();
	if (mprotect(area(), SIZE, PROT_READ | PROT_WRITE))
		die("mprotect");
}

static const struct {
	const char *name;
	void (*make)(void);
} kinds[] = {
	{ "file", unmap_file },		{ "dirty", unmap_dirty },
	{ "anonymous", unmap_anonymous }, { "fixed", unmap_fixed },
	{ "dontneed", dontneed },	{ "protect", protect },
};

__attribute__((noinline)) static void make(const char *text)
{
	const char *is = strchr(text, '=');
	size_t length = is ? (size_t)(is - text) : 0;
	unsigned int i;
	int n;

	for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (strlen(kinds[i].name) != length ||
		    strncmp(kinds[i].name, text, length) != 0)
			continue;
		for (n = atoi(is + 1); n > 0; n--)
			kinds[i].make();
		return;
	}
	fprintf(stderr, "%s: what is that?\n", text);
	exit(2);
}

/*
 * Linux flushes once for each page table in which dirty pages are unmapped, and
 * once more if that frees one. Shifts what is mapped from here on into the
 * middle of a page table, right below a page that stays in use.
 */
static void settle_addresses(void)
{
	char *at = map(NULL, PROT_READ, MAP_PRIVATE, file);
	size_t size = ((uintptr_t)at + SIZE - TABLE / 2) % TABLE + PAGE;
	char *above;

	if (munmap(at, SIZE))
		die("munmap");
	above = mmap(NULL, size, PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (above == MAP_FAILED)
		die("mmap");
	*(volatile char *)above = 1;
}

int main(int argc, char **argv)
{
	pthread_t peer;
	int i;

	if (argc < 3)
		return 2;
	file = open(argv[1], O_RDWR);
	if (file < 0)
		die(argv[1]);
	if (pthread_create(&peer, NULL, compute, NULL))
		die("pthread_create");
	pin(0);
	settle_addresses();
	for (i = 2; i < argc; i++)
		make(argv[i]);
	over = 1;
	pthread_join(peer, NULL);
	return 0;
}
