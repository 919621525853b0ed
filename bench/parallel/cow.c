// SPDX-License-Identifier: GPL-2.0-only
/*
 * cow.c - cow-bench, threads that write while a child has a snapshot of their memory
 *
 * What: in each round the first member forks, as servers do to save what they
 *       have; then all write to their part, and each page is copied. The child looks at
 *       all of it then: it has to find what was there when it was forked.
 *       The members find what they have written. An operation is a page.
 * Who:  people, and the suite `sharers` of `ceasefire bench run`.
 *
 * The child begins to look when all members have written: it waits for a byte in a pipe.
 */
#include "team.h"

#include "../common/util.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE 4096UL

static struct {
	struct team_options team;
	unsigned int pages;
} options;

static char *memory;
static pid_t child;
static int to_child = -1;

static volatile uint64_t *word_of(uint64_t page)
{
	return (volatile uint64_t *)(memory + page * PAGE);
}

/* What a page holds after a round; before the first one, after round 0. */
static uint64_t value_of(uint64_t page, unsigned int rounds)
{
	return page_word(rounds, page);
}

static uint64_t wrong_pages(uint64_t first, uint64_t end, unsigned int rounds)
{
	uint64_t wrong = 0;

	for (uint64_t page = first; page < end; page++)
		wrong += *word_of(page) != value_of(page, rounds);
	return wrong;
}

/* The exit status says whether the snapshot is one. */
static void __attribute__((noreturn)) be_child(int from_parent, unsigned int rounds)
{
	char byte;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (read(from_parent, &byte, 1) != 1)
		_exit(EXIT_FAILED);
	_exit(wrong_pages(0, options.pages, rounds) ? EXIT_USAGE : EXIT_OK);
}

static void fork_child(unsigned int rounds)
{
	int ends[2];

	if (pipe(ends))
		die_errno("pipe");
	child = fork();
	if (child < 0)
		die_errno("fork");
	if (!child) {
		close(ends[1]);
		be_child(ends[0], rounds);
	}
	close(ends[0]);
	to_child = ends[1];
}

static void end_child(void)
{
	int status;

	if (write(to_child, "", 1) != 1)
		die_errno("a child has gone");
	close(to_child);
	if (waitpid(child, &status, 0) != child)
		die_errno("waitpid");
	if (WIFEXITED(status) && WEXITSTATUS(status) == EXIT_USAGE)
		team_wrong(1);
	else if (status)
		die(EXIT_FAILED, "a child ended with status %d", status);
}

static void do_round(unsigned int member, unsigned int round)
{
	uint64_t first, end = team_part(options.pages, member, options.team.threads, &first);

	if (!member)
		fork_child(round);
	team_meet();
	for (uint64_t page = first; page < end; page++)
		*word_of(page) = value_of(page, round + 1);
	team_did(end - first, end - first);
}

static void check(unsigned int member, unsigned int round)
{
	uint64_t first, end = team_part(options.pages, member, options.team.threads, &first);

	if (!member) {
		if (options.team.spoil)
			*word_of(0) ^= 1;
		end_child();
	}
	team_wrong(wrong_pages(first, end, round + 1));
}

static void describe(struct json *json)
{
	json_unsigned(json, "pages", options.pages);
}

static const struct work work = {
	.type = "cow", .operation = "pages", .item = "pages",
	.round = do_round, .check = check, .describe = describe,
};

int main(int argc, char **argv)
{
	static const struct program program = {
		"cow-bench [options]",
		"Threads write to memory of which a child has a snapshot.", NULL
	};
	const struct program_option list[] = {
		NUMBER("pages", "N", &options.pages, MAX_MEMBERS, 1 << 20,
		       "of memory that is written to (4096)"),
		TEAM_OPTIONS(&options.team),
		{ 0 }
	};

	set_program_name("cow-bench");
	team_defaults(&options.team);
	options.pages = 4096;
	parse_options(&program, list, argc, argv);
	memory = mmap(NULL, options.pages * PAGE, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		die_errno("mmap of %u pages", options.pages);
	/* A huge page would be one copy. Not all kernels have them. */
	madvise(memory, options.pages * PAGE, MADV_NOHUGEPAGE);
	team_place(&options.team);
	for (uint64_t page = 0; page < options.pages; page++)
		*word_of(page) = value_of(page, 0);
	return team_run(&options.team, &work);
}
