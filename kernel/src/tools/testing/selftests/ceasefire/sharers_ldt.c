// SPDX-License-Identifier: GPL-2.0
/*
 * Sharers where user space has page tables of its own (PTI): there the entry for an LDT
 * is in the kernel's half of a process, so each root of the process has to have it, and
 * an LDT that was replaced has to be gone from all CPUs (I11).
 *
 * A segment register says which LDT a CPU sees: the base of the descriptor leads to a
 * word that is different for each LDT.
 */
#define _GNU_SOURCE
#include <asm/ldt.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "context.h"
#include "env.h"
#include "ktap.h"

#define LDTS		64
/* Entry 0 of the LDT, for user mode. */
#define SELECTOR	7
#define BASE_WORD	0x1d700000U

/* Where descriptors lead to: below 4 GiB. */
static uint32_t *words;

static struct {
	unsigned int turn, done;
	/* Sleep with the segment loaded. */
	bool sleep;
	uint32_t word;
} ask;

/* As the kernel has it, whatever the processor needs. */
static bool has_pti(void)
{
	FILE *f = fopen("/proc/cpuinfo", "re");
	char line[8192];
	bool found = false;

	ENSURE(f, "/proc/cpuinfo: %m");
	while (!found && fgets(line, sizeof(line), f))
		found = !strncmp(line, "flags", 5) && strstr(line, " pti ");
	fclose(f);
	return found;
}

/* The LDT has one entry, which leads to a word. */
static void set_ldt(unsigned int number)
{
	struct user_desc desc = {
		.base_addr = (unsigned int)(uintptr_t)&words[number],
		.limit = 0xfffff, .limit_in_pages = 1, .seg_32bit = 1,
	};

	MUST(syscall(SYS_modify_ldt, 1, &desc, sizeof(desc)));
}

/* The next LDT has to be in another page than those that were freed. */
static void eat_pages(void)
{
	static char page[2 * PAGE];
	static int eater[2];

	if (!eater[1]) {
		MUST(pipe(eater));
		MUST(fcntl(eater[1], F_SETPIPE_SZ, (int)MIB));
	}
	MUST(write(eater[1], page, sizeof(page)));
}

static uint32_t word_of_segment(bool sleep)
{
	uint32_t word;

	asm volatile("mov %w0, %%gs" : : "r" (SELECTOR));
	/* The kernel loads the register again when it comes back to this thread. */
	if (sleep)
		sleep_ms(20);
	asm volatile("movl %%gs:0, %0" : "=r" (word) : : "memory");
	asm volatile("mov %w0, %%gs" : : "r" (0));
	return word;
}

static void *reader(void *unused)
{
	unsigned int turn, seen = 0;

	(void)unused;
	pin_to_cpu(1);
	for (;;) {
		turn = __atomic_load_n(&ask.turn, __ATOMIC_ACQUIRE);
		if (turn == seen)
			continue;
		seen = turn;
		ask.word = word_of_segment(ask.sleep);
		__atomic_store_n(&ask.done, turn, __ATOMIC_RELEASE);
	}
	return NULL;
}

/* What the other CPU finds where the LDT leads. */
static uint32_t other_finds(bool sleep)
{
	unsigned int turn = ask.turn + 1;

	ask.sleep = sleep;
	__atomic_store_n(&ask.turn, turn, __ATOMIC_RELEASE);
	while (__atomic_load_n(&ask.done, __ATOMIC_ACQUIRE) != turn)
		sleep_ms(1);
	return ask.word;
}

static void expect(unsigned int number, bool sleep)
{
	uint32_t word = other_finds(sleep);

	ENSURE(word == BASE_WORD + number, "it finds %x with LDT %u", word,
	       number);
}

static void prepare(void)
{
	unsigned int i;

	if (!has_pti())
		ktap_skip("user space has no page tables of its own: boot with pti=on");
	need_cpus(2);
	if (context_sharers(1))
		ktap_skip("prctl(PR_SHARERS): %m");
	pin_to_cpu(0);
	words = mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
	ENSURE(words != MAP_FAILED, "mmap: %m");
	for (i = 0; i < LDTS; i++)
		words[i] = BASE_WORD + i;
}

/* The reader runs on a root of its own. */
static void start_reader(void)
{
	long fills = vmstat("sharers_fill");
	pthread_t thread;

	ENSURE(!pthread_create(&thread, NULL, reader, NULL), "no thread");
	sleep_ms(50);
	ENSURE(vmstat("sharers_fill") > fills, "nobody has a copy");
}

/* The process gets its LDT when it has copies already. */
static void first(void)
{
	prepare();
	start_reader();
	set_ldt(0);
	expect(0, false);
	expect(0, true);
}

/* And before it has them. */
static void before(void)
{
	prepare();
	set_ldt(0);
	start_reader();
	expect(0, false);
	expect(0, true);
}

/* An LDT is mapped where the last but one was. */
static void replaced(void)
{
	unsigned int i;

	prepare();
	start_reader();
	for (i = 0; i < LDTS; i++) {
		set_ldt(i);
		expect(i, false);
		eat_pages();
	}
}

/* A child has an LDT of its own, and copies of its own. */
static void of_child(void)
{
	int status;
	pid_t pid;

	prepare();
	set_ldt(0);
	pid = MUST(fork());
	if (!pid) {
		start_reader();
		expect(0, true);
		set_ldt(1);
		expect(1, true);
		_exit(0);
	}
	set_ldt(2);
	start_reader();
	expect(2, true);
	MUST(waitpid(pid, &status, 0));
	ENSURE(!status, "the child ends with status %x", status);
}

int main(int argc, char **argv)
{
	static const struct ktap_case cases[] = {
		{ "first", first, 0 },
		{ "before", before, 0 },
		{ "replaced", replaced, 0 },
		{ "of_child", of_child, 0 },
	};

	return ktap_main(argc, argv, cases, KTAP_COUNT(cases));
}
