/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * contend: threads that use pages while another one takes them away
 *
 *   contend SECONDS PATH    PATH: a file to be made
 *
 * Users read and write a few pages of anonymous memory and of a file all the
 * time, and survive the faults. The first thread protects, unmaps, moves and
 * throws away these pages, forks, and puts them back. After each call that
 * promises that nobody reaches the pages any more it tells the checker so, which
 * then reports each use of what a CPU still has. Prints what was done.
 *
 * Exit status: 0, 1 if something failed or nothing was contended, 2 for wrong use.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <exec/tlb-check-guest.h>

#include "../guest/must.h"

#define PAGE		4096ul
#define PAGES		16
#define BYTES		(PAGES * PAGE)
#define USERS		3
/* Long enough for many uses, short against the run. */
#define FORBIDDEN_US	300

enum change { PROTECT, READ_ONLY, UNMAP, MOVE, THROW_AWAY, FORK, CHANGES };

static const char *const names[CHANGES] = {
	"protected", "made read-only", "unmapped", "moved", "thrown away", "forked",
};

static char *regions[2];	/* anonymous, file */
static char *aside;		/* where MOVE puts them */
static int file;
static atomic_ulong faults, uses;
static atomic_bool over;
static __thread sigjmp_buf out;

static void on_fault(int number)
{
	(void)number;
	siglongjmp(out, 1);
}

static void *use(void *argument)
{
	unsigned int seed = (unsigned int)(unsigned long)argument;

	while (!atomic_load(&over)) {
		volatile char *p = regions[rand_r(&seed) % 2] +
				   (unsigned int)rand_r(&seed) % PAGES * PAGE;

		if (sigsetjmp(out, 0)) {
			atomic_fetch_add(&faults, 1);
			continue;
		}
		if (rand_r(&seed) % 4)
			(void)*p;
		else
			*p = 1;
		atomic_fetch_add(&uses, 1);
	}
	return NULL;
}

static void put_back(int which)
{
	void *at = regions[which];

	if (which)
		MUST(mmap(at, BYTES, PROT_READ | PROT_WRITE,
			  MAP_SHARED | MAP_FIXED, file, 0));
	else
		MUST(mmap(at, BYTES, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0));
}

/* The call has returned: who uses the pages now uses a stale translation. */
static void forbid_for_a_while(void *at)
{
	if (tlb_check_arm(at, BYTES)) {
		fputs("contend: the checker takes no more ranges\n", stderr);
		exit(1);
	}
	usleep(FORBIDDEN_US);
	tlb_check_disarm(at, BYTES);
}

static void change(enum change what, int which)
{
	void *at = regions[which];
	pid_t pid;

	switch (what) {
	case PROTECT:
		MUST(mprotect(at, BYTES, PROT_NONE));
		forbid_for_a_while(at);
		MUST(mprotect(at, BYTES, PROT_READ | PROT_WRITE));
		break;
	case READ_ONLY:
		/* Of a private page the entry may change while it is read-only. */
		MUST(mprotect(at, BYTES, PROT_READ));
		if (which)
			forbid_for_a_while(at);
		MUST(mprotect(at, BYTES, PROT_READ | PROT_WRITE));
		break;
	case UNMAP:
		MUST(munmap(at, BYTES));
		forbid_for_a_while(at);
		put_back(which);
		break;
	case MOVE:
		MUST(mremap(at, BYTES, BYTES, MREMAP_MAYMOVE | MREMAP_FIXED, aside));
		forbid_for_a_while(at);
		MUST(mremap(aside, BYTES, BYTES, MREMAP_MAYMOVE | MREMAP_FIXED, at));
		break;
	case THROW_AWAY:
		/* The users fetch new pages at once: nothing to forbid. */
		MUST(madvise(at, BYTES, MADV_DONTNEED));
		break;
	default:
		/* And copy on write after this. */
		pid = fork();
		MUST(pid);
		if (!pid)
			_exit(0);
		MUST(waitpid(pid, NULL, 0));
	}
}

int main(int argc, char **argv)
{
	struct sigaction action = { .sa_handler = on_fault, .sa_flags = SA_NODEFER };
	unsigned long counts[CHANGES] = { 0 };
	int seconds = argc == 3 ? atoi(argv[1]) : 0, i;
	unsigned int seed = 1;
	pthread_t users[USERS];
	time_t end;

	if (seconds <= 0) {
		fputs("usage: contend SECONDS PATH\n", stderr);
		return 2;
	}
	if (!tlb_check_present()) {
		fputs("contend: no checker runs below this system\n", stderr);
		return 1;
	}
	file = open(argv[2], O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	MUST(file);
	MUST(ftruncate(file, BYTES));
	/* One range, so that nothing else is mapped into its holes. */
	aside = mmap(NULL, 3 * BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	MUST(aside);
	for (i = 0; i < 2; i++) {
		regions[i] = aside + (i + 1) * BYTES;
		put_back(i);
	}
	sigaction(SIGSEGV, &action, NULL);
	for (i = 0; i < USERS; i++)
		if (pthread_create(&users[i], NULL, use, (void *)(long)(i + 1)))
			return 1;
	for (end = time(NULL) + seconds; time(NULL) < end;) {
		enum change what = (unsigned int)rand_r(&seed) % CHANGES;

		change(what, rand_r(&seed) % 2);
		counts[what]++;
	}
	atomic_store(&over, true);
	for (i = 0; i < USERS; i++)
		pthread_join(users[i], NULL);
	for (i = 0; i < CHANGES; i++)
		printf("%s %lu times\n", names[i], counts[i]);
	printf("%lu uses, %lu faults\n", atomic_load(&uses), atomic_load(&faults));
	return !atomic_load(&faults);
}
