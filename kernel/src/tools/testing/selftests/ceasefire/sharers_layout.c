// SPDX-License-Identifier: GPL-2.0
/*
 * What placement in processes with sharers (sharers_place.c) must leave as it is: the
 * layout of all other processes, how hard addresses are to guess, compat system calls,
 * what a child inherits, and that no address is used again before it is settled (I3).
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/wait.h>
#include <unistd.h>

#include "context.h"
#include "env.h"
#include "file.h"
#include "granule.h"
#include "ktap.h"
#include "map.h"
#include "peer.h"
#include "worker.h"

#define OLD	0x5a
#define SAMPLES	64
#define TEXT	2048

static void *map_pages(size_t pages)
{
	void *p = mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED) {
		perror("mmap");
		exit(3);
	}
	return p;
}

/* As a program of its own: where its mappings are, on standard output. */
static void print_mapped(void *arg)
{
	size_t pages;

	for (pages = 1; pages <= 4; pages++)
		printf("%s%p", (char *)arg, map_pages(pages));
	fflush(stdout);
}

static void print_one(void *arg)
{
	(void)arg;
	printf("%p", map_pages(1));
	fflush(stdout);
}

static int program(const char *mode)
{
	/* The workers look at them until the program is gone. */
	static struct worker w[2];
	int i;

	if (!strcmp(mode, "--alone")) {
		print_mapped((char *)"\n");
		print_mapped((char *)"\n");
		return 0;
	}
	for (i = 0; i < 2; i++)
		worker_start(&w[i], -1, NULL);
	if (!strcmp(mode, "--one")) {
		worker_run(&w[0], print_one, NULL);
		return 0;
	}
	for (i = 0; i < 4; i++)
		worker_run(&w[i % 2], print_mapped,
			   (char *)(i % 2 ? "\n2: " : "\n1: "));
	print_mapped((char *)"\nmain: ");
	return 0;
}

/* What such a program says. */
static void ask(const char *mode, unsigned long person, char text[TEXT])
{
	size_t size = 0;
	int ends[2], status;
	ssize_t got;
	pid_t child;

	MUST(pipe(ends));
	child = (pid_t)MUST(fork());
	if (!child) {
		close(ends[0]);
		dup2(ends[1], STDOUT_FILENO);
		if (personality(person) == -1)
			_exit(3);
		execl("/proc/self/exe", "sharers_layout", mode, NULL);
		_exit(127);
	}
	close(ends[1]);
	do {
		got = MUST(read(ends[0], text + size, TEXT - 1 - size));
		size += (size_t)got;
	} while (got);
	close(ends[0]);
	text[size] = 0;
	MUST(waitpid(child, &status, 0));
	ENSURE(!status && size, "%s: status %x", mode, status);
}

static char without[TEXT], with[TEXT];

/* Are the addresses of a program those that they are without sharers? */
static bool changes_layout(const char *mode, unsigned long person,
			   bool placement)
{
	sharers_placement(placement);
	MUST(context_sharers(0));
	ask(mode, person, without);
	MUST(context_sharers(1));
	ask(mode, person, with);
	return strcmp(with, without);
}

/* A program with threads and sharers is placed, no other one is. */
static void as_ever(void)
{
	static char off[TEXT], on[TEXT];

	placement_start();
	ENSURE(changes_layout("--threads", ADDR_NO_RANDOMIZE, true),
	       "with threads and sharers nothing changes: %s", with);
	snprintf(on, sizeof(on), "%s", without);
	ENSURE(!changes_layout("--threads", ADDR_NO_RANDOMIZE, false),
	       "switched off: %s\nwithout sharers: %s", with, without);
	snprintf(off, sizeof(off), "%s", without);
	ENSURE(!strcmp(on, off), "without sharers: %s\nand switched off: %s",
	       on, off);
}

static void single_thread(void)
{
	placement_start();
	ENSURE(!changes_layout("--alone", ADDR_NO_RANDOMIZE, true),
	       "with sharers: %s\nwithout: %s", with, without);
}

/* Mappings grow upwards. */
static void compat_layout(void)
{
	placement_start();
	ENSURE(!changes_layout("--threads",
			       ADDR_NO_RANDOMIZE | ADDR_COMPAT_LAYOUT, true),
	       "with sharers: %s\nwithout: %s", with, without);
}

/* Bits of an address that differ among many programs. */
static uint64_t random_bits(bool placement)
{
	uint64_t all = ~0UL, any = 0, addr;
	char text[TEXT];
	int i;

	sharers_placement(placement);
	for (i = 0; i < SAMPLES; i++) {
		ask("--one", PER_LINUX, text);
		addr = strtoull(text, NULL, 16);
		ENSURE(addr, "no address: %s", text);
		all &= addr;
		any |= addr;
	}
	return any & ~all;
}

static void entropy(void)
{
	uint64_t random, off, on;
	long bits;

	bits = read_number("/proc/sys/vm/mmap_rnd_bits");
	ENSURE(bits > 8 && bits < 40, "mmap_rnd_bits: %ld", bits);
	random = ((1UL << bits) - 1) * PAGE;
	placement_start();
	off = random_bits(false);
	on = random_bits(true);
	ktap_note("%d programs, %ld bits: %llx differ without placement, %llx with it",
		  SAMPLES, bits, (unsigned long long)off,
		  (unsigned long long)on);
	PREMISE((off & random) == random, "%llx differ without it",
		(unsigned long long)off);
	ENSURE((on & random) == random, "only %llx differ",
	       (unsigned long long)on);
}

/* mmap2() of a program of 32 bits. */
static void map_compat(void *arg)
{
	long got;

	asm volatile("push %%rbp\n\txor %%ebp, %%ebp\n\tint $0x80\n\tpop %%rbp"
		     : "=a" (got)
		     : "a" (192L), "b" (0L), "c" (PAGE),
		       "d" ((long)PROT_READ),
		       "S" ((long)(MAP_PRIVATE | MAP_ANONYMOUS)), "D" (-1L)
		     : "memory", "r8", "r9", "r10", "r11");
	*(long *)arg = got;
}

static void compat(void)
{
	struct worker w;
	long got;

	placement_start();
	worker_start(&w, -1, NULL);
	worker_run(&w, map_compat, &got);
	if ((int)got == -ENOSYS)
		ktap_skip("no system calls of 32 bits");
	ENSURE(got > 0 && got < 4L << 30 && !(got % (long)PAGE),
	       "mmap2: %lx", got);
}

static void map_one(void *arg)
{
	*(char **)arg = map_pages(1);
}

/* A child has the mappings and no granules: its first threads begin with new ones. */
static void forked(void)
{
	char *own, *alone, *threads;
	struct worker w;
	int status;
	pid_t child;

	placement_start();
	worker_start(&w, -1, NULL);
	worker_run(&w, map_one, &own);
	snprintf(own, PAGE, "%s", "parent");
	child = (pid_t)MUST(fork());
	if (!child) {
		alone = map_pages(1);
		if (alone < own + GIB)
			_exit(1);
		worker_start(&w, -1, NULL);
		worker_run(&w, map_one, &threads);
		/* What is there is not in the way: others may use its room. */
		if (threads == own || strcmp(own, "parent"))
			_exit(2);
		snprintf(own, PAGE, "%s", "child");
		snprintf(threads, PAGE, "%s", "child");
		worker_stop(&w);
		_exit(0);
	}
	MUST(waitpid(child, &status, 0));
	ENSURE(!status, "the child ends with status %x", status);
	ENSURE(!strcmp(own, "parent"), "the parent has %s", own);
}

/* Leave no room between these addresses but what is mapped already. */
static void fill(uintptr_t from, uintptr_t to)
{
	static struct { uintptr_t start, end; } used[200];
	size_t count = 0, i;
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[300];

	ENSURE(maps, "/proc/self/maps: %m");
	while (count < KTAP_COUNT(used) && fgets(line, sizeof(line), maps) &&
	       sscanf(line, "%lx-%lx", &used[count].start,
		      &used[count].end) == 2)
		count++;
	ENSURE(feof(maps), "too many mappings");
	fclose(maps);
	for (i = 0; i <= count && from < to; i++) {
		uintptr_t end = i < count && used[i].start < to ?
				used[i].start : to;

		if (end > from)
			ENSURE(mmap((void *)from, end - from, PROT_NONE,
				    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE |
				    MAP_FIXED_NOREPLACE, -1, 0) == (void *)from,
			       "%lx-%lx: %m", from, end);
		if (i < count && used[i].end > from)
			from = used[i].end;
	}
}

/*
 * The only room for a granule is where a mapping was that another CPU can read still:
 * that is settled before anything is mapped there (I3).
 */
static void settled(void)
{
	const size_t pages = 1024, piece = 256;
	uintptr_t top, first, old;
	size_t checked = 0;
	struct tfile f;
	long settles;
	char *p;

	placement_start();
	fpr_arena_size(16 * GIB);
	hold_debts();
	file_make(&f, ON_TMPFS, pages, OLD);
	top = (uintptr_t)map_pages(1);
	peer_start(1);
	/* The first one, above which the arena ends within 2 MiB. */
	p = fpr_map(&f, 0, pages, PROT_READ, MAP_SHARED);
	first = (uintptr_t)p;
	fpr_unmap(p, pages);
	old = (uintptr_t)leave_stale(&f, 0, pages, PROT_READ, MAP_SHARED, OLD);
	fill(first + pages * PAGE + REGION, top - 16 * GIB);
	fill(4 * GIB, old - 2 * GRANULE);
	settles = vmstat("fpr_va_flush");
	for (;;) {
		p = map_pages(piece);
		PREMISE((uintptr_t)p < first + pages * PAGE + REGION,
			"placed at %p, not near %lx", p, old);
		if ((uintptr_t)p < old)
			break;
		if ((uintptr_t)p + piece * PAGE > old + pages * PAGE)
			continue;
		checked++;
		ENSURE(peer_count(p, piece, 0) == piece,
		       "the peer reads old data at %p", p);
	}
	PREMISE(checked, "nothing was placed there");
	ENSURE(vmstat("fpr_va_flush") > settles, "nothing was settled");
}

/* The switch takes 0 and 1. */
static void wrong_use(void)
{
	static const char path[] = "/sys/kernel/mm/ceasefire/sharers/placement";

	placement_start();
	ENSURE(read_number(path) == 1, "it is not on");
	ENSURE(!write_text(path, "2") && errno == EINVAL, "2: %m");
	ENSURE(!write_text(path, "") || read_number(path) == 1, "nothing: %m");
	ENSURE(read_number(path) == 1, "it has changed");
	ENSURE(write_text(path, "0") && !read_number(path), "0: %m");
}

int main(int argc, char **argv)
{
	static const struct ktap_case cases[] = {
		{ "as_ever", as_ever, 0 },
		{ "single_thread", single_thread, 0 },
		{ "compat_layout", compat_layout, 0 },
		{ "entropy", entropy, 600 },
		{ "compat", compat, 0 },
		{ "forked", forked, 0 },
		{ "settled", settled, 0 },
		{ "wrong_use", wrong_use, 0 },
	};

	if (argc == 2 && !strncmp(argv[1], "--", 2))
		return program(argv[1]);
	return ktap_main(argc, argv, cases, KTAP_COUNT(cases));
}
