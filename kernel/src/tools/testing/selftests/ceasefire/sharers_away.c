// SPDX-License-Identifier: GPL-2.0
/*
 * Sharers: a CPU that does not run a process any more is not interrupted, but keeps what it
 * had (PCIDs). It finds out that it was asked to flush when it comes back (I11).
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "context.h"
#include "env.h"
#include "ktap.h"

#define REGION		(2 * MIB)
#define ROUNDS		10
#define OLD		0x5a5a5a5aUL
#define NEW		0x42424242UL

static int to_thread[2], from_thread[2];
static volatile uint64_t *page;

/* The only thread that uses the page; on CPU 1, which is idle in between. */
static void *user(void *unused)
{
	uint64_t word;
	char c;

	(void)unused;
	pin_to_cpu(1);
	while (read(to_thread[0], &c, 1) == 1) {
		if (c == 'w')
			*page = OLD;
		word = *page;
		MUST(write(from_thread[1], &word, sizeof(word)));
	}
	return NULL;
}

static uint64_t ask(char what)
{
	uint64_t word = 0;

	MUST(write(to_thread[1], &what, 1));
	MUST(read(from_thread[0], &word, sizeof(word)));
	return word;
}

/* A child on the CPU of the thread writes to the memory of its parent. */
static void write_from_there(pid_t parent)
{
	uint64_t word = NEW;
	struct iovec from = { .iov_base = &word, .iov_len = sizeof(word) };
	struct iovec to = { .iov_base = (void *)page, .iov_len = sizeof(word) };

	pin_to_cpu(1);
	_exit(process_vm_writev(parent, &from, 1, &to, 1, 0) != sizeof(word));
}

/*
 * The page belongs to a child, too, so it is copied when another process writes to it:
 * what the thread has in its TLB is the old one.
 */
static void copied_by_child(void)
{
	int go[2], status, i;
	pthread_t thread;
	uint64_t word;
	pid_t child;
	char *p, c;

	need_cpus(2);
	if (context_sharers(1))
		ktap_skip("prctl(PR_SHARERS): %m");
	pin_to_cpu(0);
	MUST(pipe(to_thread));
	MUST(pipe(from_thread));
	p = mmap(NULL, 3 * REGION, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	ENSURE(p != MAP_FAILED, "mmap: %m");
	MUST(madvise(p, 3 * REGION, MADV_NOHUGEPAGE));
	page = (void *)(((uintptr_t)p + 2 * REGION - 1) & ~(REGION - 1));
	ENSURE(!pthread_create(&thread, NULL, user, NULL), "no thread");
	for (i = 0; i < ROUNDS; i++) {
		ENSURE(ask('w') == OLD, "it does not find what it has written");
		MUST(pipe(go));
		child = MUST(fork());
		if (!child) {
			MUST(read(go[0], &c, 1));
			write_from_there(getppid());
		}
		/* After the fork, which flushes everything. */
		ENSURE(ask('r') == OLD, "it does not find what it has written");
		sleep_ms(20);
		MUST(write(go[1], "", 1));
		MUST(waitpid(child, &status, 0));
		ENSURE(!status, "the child ends with status %x", status);
		word = ask('r');
		ENSURE(word == NEW, "it finds %llx after another process has written",
		       (unsigned long long)word);
		close(go[0]);
		close(go[1]);
	}
}

int main(int argc, char **argv)
{
	static const struct ktap_case cases[] = {
		{ "copied_by_child", copied_by_child, 0 },
	};

	return ktap_main(argc, argv, cases, KTAP_COUNT(cases));
}
