// SPDX-License-Identifier: GPL-2.0
/*
 * Sharers: a CPU comes to a region for the first time in the kernel, on behalf of the
 * program, where a fault may not sleep, too. Nothing fails that does not fail without,
 * and nothing goes on for ever.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "context.h"
#include "env.h"
#include "file.h"
#include "ktap.h"
#include "regions.h"

#define PAGES		4
#define LENGTH		(PAGES * PAGE)
#define OWN		0x5a
/* What usually takes a moment; it may go on for ever. */
#define LIMIT_S		60

/* In a GiB of its own: the CPU that comes there has no tables for it. */
static char *untouched(void)
{
	char *p = whole_gib(MAP_PRIVATE | MAP_ANONYMOUS, -1);

	memset(p, OWN, LENGTH);
	return p;
}

static uint32_t *untouched_word(uint32_t value)
{
	uint32_t *word = (uint32_t *)untouched();

	*word = value;
	return word;
}

/* The memory is made on this CPU, and used on another one. */
static void on_other_cpu(void *(*use)(void *), void *argument)
{
	pthread_t thread;

	need_cpus(2);
	ENSURE(!pthread_create(&thread, NULL, use, argument), "no thread");
	pthread_join(thread, NULL);
}

static void start(void)
{
	if (context_sharers(1))
		ktap_skip("prctl(PR_SHARERS): %m");
	pin_to_cpu(0);
}

static long futex(uint32_t *word, int op, uint32_t value, uint64_t value2,
		  uint32_t *word2, uint32_t value3)
{
	return syscall(SYS_futex, word, op, value, value2, word2, value3);
}

static uint32_t own_word;

static void *wake_op(void *word)
{
	pin_to_cpu(1);
	ENSURE(futex(&own_word, FUTEX_WAKE_OP | FUTEX_PRIVATE_FLAG, 1, 1, word,
		     FUTEX_OP(FUTEX_OP_ADD, 3, FUTEX_OP_CMP_EQ, 7)) == 0,
	       "FUTEX_WAKE_OP: %m");
	return NULL;
}

static void futex_op(void)
{
	uint32_t *word;

	start();
	word = untouched_word(7);
	on_other_cpu(wake_op, word);
	ENSURE(*word == 10, "the word is %u", *word);
}

static void *lock_pi(void *word)
{
	uint32_t *lock = word;

	pin_to_cpu(1);
	ENSURE(!futex(lock, FUTEX_LOCK_PI | FUTEX_PRIVATE_FLAG, 0, 0, NULL, 0),
	       "FUTEX_LOCK_PI: %m");
	ENSURE((*lock & FUTEX_TID_MASK) == (uint32_t)syscall(SYS_gettid),
	       "the word is %x", *lock);
	ENSURE(!futex(lock, FUTEX_UNLOCK_PI | FUTEX_PRIVATE_FLAG, 0, 0, NULL,
		      0), "FUTEX_UNLOCK_PI: %m");
	return NULL;
}

static void futex_pi(void)
{
	uint32_t *word;

	start();
	word = untouched_word(0);
	on_other_cpu(lock_pi, word);
	ENSURE(!*word, "the word is %x", *word);
}

static void *compare(void *word)
{
	pin_to_cpu(1);
	ENSURE(futex(word, FUTEX_WAIT | FUTEX_PRIVATE_FLAG, 1, 0, NULL, 0) ==
	       -1 && errno == EAGAIN, "FUTEX_WAIT: %m");
	return NULL;
}

static void *requeue(void *word)
{
	pin_to_cpu(1);
	ENSURE(futex(word, FUTEX_CMP_REQUEUE | FUTEX_PRIVATE_FLAG, 1, 1,
		     &own_word, 7) == 0, "FUTEX_CMP_REQUEUE: %m");
	return NULL;
}

static void futex_values(void)
{
	start();
	on_other_cpu(compare, untouched_word(7));
	on_other_cpu(requeue, untouched_word(7));
}

static struct {
	struct iovec *vectors;
	int ends[2];
} pipes;

static void *write_vectors(void *unused)
{
	(void)unused;
	pin_to_cpu(1);
	ENSURE(writev(pipes.ends[1], pipes.vectors, 2) == 2 * PAGE,
	       "writev: %m");
	return NULL;
}

static void *read_vectors(void *unused)
{
	(void)unused;
	pin_to_cpu(1);
	ENSURE(readv(pipes.ends[0], pipes.vectors, 2) == 2 * PAGE,
	       "readv: %m");
	return NULL;
}

static void make_vectors(char *one, char *two)
{
	pipes.vectors = (struct iovec *)untouched();
	pipes.vectors[0] = (struct iovec) { one, PAGE };
	pipes.vectors[1] = (struct iovec) { two, PAGE };
}

/* The array, and what it is about. */
static void vectors(void)
{
	char *to = NULL;

	start();
	MUST(pipe(pipes.ends));
	make_vectors(untouched(), untouched());
	on_other_cpu(write_vectors, NULL);
	to = untouched();
	memset(to, 0, LENGTH);
	make_vectors(to, to + PAGE);
	on_other_cpu(read_vectors, NULL);
	ENSURE(to[0] == OWN && to[2 * PAGE - 1] == OWN && !to[2 * PAGE],
	       "wrong data");
}

static struct tfile file;

static void *write_file(void *p)
{
	pin_to_cpu(1);
	ENSURE(pwrite(file.fd, p, LENGTH, 0) == (ssize_t)LENGTH, "pwrite: %m");
	return NULL;
}

/* Page cache is filled with faults disabled. */
static void buffered(void)
{
	static char found[LENGTH];

	file_make(&file, ON_DISK, PAGES, 0);
	start();
	on_other_cpu(write_file, untouched());
	MUST(pread(file.fd, found, LENGTH, 0));
	ENSURE(found[0] == OWN && found[LENGTH - 1] == OWN, "wrong data");
}

static void *read_direct(void *p)
{
	int flags = fcntl(file.fd, F_GETFL);

	pin_to_cpu(1);
	ENSURE(!fcntl(file.fd, F_SETFL, flags | O_DIRECT), "O_DIRECT: %m");
	ENSURE(pread(file.fd, p, LENGTH, 0) == (ssize_t)LENGTH, "pread: %m");
	ENSURE(*(volatile char *)p == 0x33, "wrong data");
	return NULL;
}

/* The device writes to the pages; no CPU has been there. */
static void direct(void)
{
	char *p;

	file_make(&file, ON_DISK, PAGES, 0x33);
	MUST(fdatasync(file.fd));
	start();
	p = untouched();
	on_other_cpu(read_direct, p);
	ENSURE(p[LENGTH - 1] == 0x33, "wrong data");
}

static volatile sig_atomic_t handled;

static void handler(int number)
{
	handled = number;
}

static void *take_signal(void *stack)
{
	stack_t alternative = { .ss_sp = stack, .ss_size = 64 * PAGE };

	pin_to_cpu(1);
	MUST(sigaltstack(&alternative, NULL));
	MUST(raise(SIGUSR1));
	return NULL;
}

static void signal_stack(void)
{
	struct sigaction action = {
		.sa_handler = handler, .sa_flags = SA_ONSTACK,
	};

	start();
	MUST(sigaction(SIGUSR1, &action, NULL));
	on_other_cpu(take_signal, untouched());
	ENSURE(handled == SIGUSR1, "no signal");
}

/* A call chain, as the frame pointer says: it is followed within an interrupt. */
#define RETURN_ADDRESS	0x123456789000UL

static struct {
	uint64_t *frame;
	size_t samples, with_return;
} chain;

static void use_frame(uint64_t *frame, unsigned long count)
{
	asm volatile("push %%rbp\n\t"
		     "mov %0, %%rbp\n"
		     "1:\tdec %1\n\t"
		     "jnz 1b\n\t"
		     "pop %%rbp"
		     : "+r" (frame), "+r" (count) : : "cc", "memory");
}

static void look_at_samples(struct perf_event_mmap_page *page)
{
	const char *ring = (const char *)page + PAGE;
	size_t size = 16 * PAGE, i;
	uint64_t at;

	for (at = page->data_tail; at < page->data_head;) {
		struct perf_event_header header;
		uint64_t words[256];

		for (i = 0; i < sizeof(header); i++)
			((char *)&header)[i] = ring[(at + i) % size];
		for (i = 0; i < header.size && i < sizeof(words); i++)
			((char *)words)[i] = ring[(at + i) % size];
		at += header.size;
		if (header.type != PERF_RECORD_SAMPLE)
			continue;
		chain.samples++;
		for (i = 1; i < header.size / 8 && i < 256; i++)
			if (words[i] == RETURN_ADDRESS) {
				chain.with_return++;
				break;
			}
	}
}

static void *be_sampled(void *unused)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE, .size = sizeof(attr),
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = 1000000,
		.sample_type = PERF_SAMPLE_CALLCHAIN,
		.exclude_callchain_kernel = 1,
	};
	struct perf_event_mmap_page *page;
	double end = seconds() + LIMIT_S;
	int fd;

	(void)unused;
	pin_to_cpu(1);
	fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);
	if (fd < 0)
		ktap_skip("perf_event_open: %m");
	page = mmap(NULL, 17 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	ENSURE(page != MAP_FAILED, "mmap: %m");
	do {
		use_frame(chain.frame, 1000000);
		chain.samples = 0;
		chain.with_return = 0;
		look_at_samples(page);
	} while (chain.samples < 20 && seconds() < end);
	return NULL;
}

static void callchain(void)
{
	start();
	chain.frame = (uint64_t *)untouched();
	chain.frame[0] = 0;
	chain.frame[1] = RETURN_ADDRESS;
	on_other_cpu(be_sampled, NULL);
	PREMISE(chain.samples >= 20, "%zu samples", chain.samples);
	ENSURE(chain.with_return >= chain.samples / 2,
	       "%zu of %zu samples have the frame", chain.with_return,
	       chain.samples);
}

/*
 * A CPU that could make no tables for its copy goes on with those of the process until
 * its next tick, and is noted nowhere.
 */
#define UNCONFINED_TRIES	50

static struct {
	char *p;
	char found;
	atomic_int turn;
} unnoted;

enum { UNNOTED_USE = 1, UNNOTED_USED, UNNOTED_LOOK, UNNOTED_LOOKED, UNNOTED_END };

/* Whose turn it is changes within a tick, as a rule: nobody may sleep. */
static int wait_turn(int one, int other)
{
	int turn;

	do
		turn = unnoted.turn;
	while (turn != one && turn != other);
	return turn;
}

static void *use_unnoted(void *unused)
{
	(void)unused;
	pin_to_cpu(1);
	while (wait_turn(UNNOTED_USE, UNNOTED_END) == UNNOTED_USE) {
		wake_op(unnoted.p);
		unnoted.found = *(volatile char *)(unnoted.p + PAGE);
		unnoted.turn = UNNOTED_USED;
		wait_turn(UNNOTED_LOOK, UNNOTED_LOOK);
		unnoted.found = *(volatile char *)(unnoted.p + PAGE);
		unnoted.turn = UNNOTED_LOOKED;
	}
	return NULL;
}

static void unconfined(void)
{
	long before = vmstat("sharers_unconfine");
	pthread_t thread;
	int tries;

	start();
	need_cpus(2);
	ENSURE(!pthread_create(&thread, NULL, use_unnoted, NULL), "no thread");
	for (tries = 0; tries < UNCONFINED_TRIES; tries++) {
		unnoted.p = (char *)untouched_word(7);
		unnoted.turn = UNNOTED_USE;
		wait_turn(UNNOTED_USED, UNNOTED_USED);
		ENSURE(unnoted.found == OWN, "read %#x", unnoted.found);
		MUST(madvise(unnoted.p + PAGE, PAGE, MADV_DONTNEED));
		unnoted.turn = UNNOTED_LOOK;
		wait_turn(UNNOTED_LOOKED, UNNOTED_LOOKED);
		ENSURE(!unnoted.found, "read %#x after MADV_DONTNEED",
		       unnoted.found);
		MUST(munmap(unnoted.p, 1UL << 30));
	}
	unnoted.turn = UNNOTED_END;
	pthread_join(thread, NULL);
	PREMISE(vmstat("sharers_unconfine") > before,
		"each time the CPU had tables of its own");
}

int main(int argc, char **argv)
{
	static const struct ktap_case cases[] = {
		{ "futex_op", futex_op, LIMIT_S },
		{ "futex_pi", futex_pi, LIMIT_S },
		{ "futex_values", futex_values, LIMIT_S },
		{ "vectors", vectors, LIMIT_S },
		{ "buffered", buffered, LIMIT_S },
		{ "direct", direct, LIMIT_S },
		{ "signal_stack", signal_stack, LIMIT_S },
		{ "callchain", callchain, 2 * LIMIT_S },
		{ "unconfined", unconfined, LIMIT_S },
	};

	return ktap_main(argc, argv, cases, KTAP_COUNT(cases));
}
