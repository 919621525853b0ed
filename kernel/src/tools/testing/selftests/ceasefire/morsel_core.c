// SPDX-License-Identifier: GPL-2.0
/*
 * Core dumps of processes that map large morsels with little in them: what is populated is
 * in the file, what is not is a hole, and stays unpopulated.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/elf.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ktap.h"
#include "morsels.h"
#include "peer.h"

#define OWN	WORD(0x5a)
#define OTHER	WORD(0x33)
#define BOTH	(PROT_READ | PROT_WRITE)
#define SIZE	(2 * GIB)
#define POPULATED	5
#define PATTERN	"/proc/sys/kernel/core_pattern"

static const char directory[] = "/tmp/ceasefire-core";

/* Touches four pages that are far from each other, beside what was there; and crashes. */
static void crash(int fd)
{
	struct rlimit all = { RLIM_INFINITY, RLIM_INFINITY };
	char *p = mmap(NULL, SIZE, BOTH, MAP_SHARED, fd, 0);

	if (p == MAP_FAILED || chdir(directory) ||
	    setrlimit(RLIMIT_CORE, &all) || prctl(PR_SET_DUMPABLE, 1))
		_exit(1);
	morsel_fill(p + 100 * PAGE, 2, OWN);
	morsel_fill(p + SIZE - PAGE, 1, OWN);
	morsel_fill(p + GIB + 5 * PAGE, 1, OWN);
	abort();
}

/* The word at an offset of the mapping, by the headers of the file. */
static uint64_t word_in(int core, uint64_t offset)
{
	struct elf64_hdr head;
	struct elf64_phdr part;
	uint64_t word = 0;
	unsigned int i;

	ENSURE(pread(core, &head, sizeof(head), 0) == sizeof(head) &&
	       !memcmp(head.e_ident, ELFMAG, SELFMAG), "no core file");
	for (i = 0; i < head.e_phnum; i++) {
		ENSURE(pread(core, &part, sizeof(part),
			     (off_t)(head.e_phoff + i * sizeof(part))) ==
		       sizeof(part), "no header");
		if (part.p_type != PT_LOAD || part.p_memsz != SIZE)
			continue;
		ENSURE(part.p_filesz == SIZE, "%llu bytes are in the file",
		       (unsigned long long)part.p_filesz);
		ENSURE(pread(core, &word, 8, (off_t)(part.p_offset + offset)) ==
		       8, "it is cut off");
		return word;
	}
	ktap_fail("the mapping is not in the file");
}

static void forget(void)
{
	unlink("/tmp/ceasefire-core/core");
	rmdir(directory);
}

/* Of a morsel whose rest nobody has populated, or of which it was given up again. */
static void crash_and_look(int fd)
{
	int status, core, pattern, uses_pid;
	uint64_t populated[POPULATED] = {
		7 * UNIT, 100 * PAGE, 101 * PAGE, GIB + 5 * PAGE, SIZE - PAGE,
	};
	char *p = morsel_map(fd, SIZE, BOTH), before[200] = "";
	struct stat st;
	size_t i;
	pid_t pid;

	/* Populated by another process than the one that crashes, which does not touch it. */
	morsel_fill(p + 7 * UNIT, 1, OTHER);
	forget();
	MUST(mkdir(directory, 0700));
	pattern = (int)MUST(open(PATTERN, O_RDONLY));
	MUST(read(pattern, before, sizeof(before) - 1));
	close(pattern);
	uses_pid = (int)read_number("/proc/sys/kernel/core_uses_pid");
	ENSURE(write_text(PATTERN, "core") &&
	       write_text("/proc/sys/kernel/core_uses_pid", "0"), "pattern: %m");
	pid = fork();
	if (!pid)
		crash(fd);
	waitpid(pid, &status, 0);
	write_text(PATTERN, before);
	write_text("/proc/sys/kernel/core_uses_pid", uses_pid ? "1" : "0");
	core = open("/tmp/ceasefire-core/core", O_RDONLY);
	forget();
	ENSURE(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT,
	       "it ends with %#x", status);
	if (core < 0)
		ktap_skip("no core file: %m");
	MUST(fstat(core, &st));
	ENSURE(word_in(core, populated[0]) == OTHER, "not what others populated");
	for (i = 1; i < POPULATED; i++)
		ENSURE(word_in(core, populated[i]) == OWN, "page %zu", i);
	ENSURE(!word_in(core, 50 * PAGE) && !word_in(core, GIB), "no zeroes");
	ENSURE(morsel_stat(fd).pages == 5, "%llu pages: the dump makes some",
	       (unsigned long long)morsel_stat(fd).pages);
	ENSURE(st.st_blocks * 512UL < 64 * MIB, "%ld blocks: not sparse",
	       (long)st.st_blocks);
	close(core);
}

static void dumped(void)
{
	crash_and_look(morsel_make_of(SIZE, GIB));
}

static void given_up(void)
{
	int fd = morsel_make_lazy(SIZE, GIB);

	ENSURE(!morsel_populate(fd, 0, 8 * UNIT), "populate");
	ENSURE(!morsel_give_up(fd, 0, 8 * UNIT), "give up");
	/* What is left is that there was something. */
	MUST(fsync(fd));
	ENSURE(!morsel_stat(fd).pages, "%llu pages are left",
	       (unsigned long long)morsel_stat(fd).pages);
	crash_and_look(fd);
}

/* A dump looks for each page: of a unit of 256 TiB it would take hours. */
static void left_out(void)
{
	char *p;

	morsel_need_256_tib();
	p = morsel_map(morsel_make_of(UNIT, 256 * TIB), 256 * TIB, BOTH);
	ENSURE(smaps_has_flag(p, "dd"), "it would be dumped");
	p = morsel_map(morsel_make_of(UNIT, 512 * GIB), 512 * GIB, BOTH);
	ENSURE(!smaps_has_flag(p, "dd"), "it would not be dumped");
}

int main(int argc, char **argv)
{
	static const struct ktap_case cases[] = {
		{ "dumped", dumped, 300 },
		{ "given_up", given_up, 300 },
		{ "left_out", left_out, 0 },
	};

	return ktap_main(argc, argv, cases, KTAP_COUNT(cases));
}
