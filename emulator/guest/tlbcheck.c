/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tlbcheck: asks the checker below this guest
 *
 * Exit status: 0; of the command with run, or 1 if that was 0 and there were
 * violations; 1 if the log takes no more marks; 2 for wrong use; 77 where no
 * checker runs.
 */
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <exec/tlb-check-guest.h>

#define WRONG_USE	2
#define NO_CHECKER	77
#define CANNOT_RUN	127

static const char *const names[] = TLB_CHECK_COUNTER_NAMES;

static int usage(void)
{
	fputs("usage: tlbcheck                  print all counters\n"
	      "       tlbcheck counter NAME     print one\n"
	      "       tlbcheck mark NUMBER      write a line to the log\n"
	      "       tlbcheck run -- CMD...    run CMD, print what was counted\n",
	      stderr);
	return WRONG_USE;
}

static void read_all(unsigned long long values[TLB_CHECK_COUNTERS])
{
	unsigned int i;

	for (i = 0; i < TLB_CHECK_COUNTERS; i++)
		values[i] = tlb_check_counter(i);
}

static int counter(const char *name)
{
	unsigned int i;

	for (i = 0; i < TLB_CHECK_COUNTERS; i++) {
		if (!strcmp(names[i], name)) {
			printf("%llu\n", tlb_check_counter(i));
			return 0;
		}
	}
	fprintf(stderr, "tlbcheck: no counter '%s': tlbcheck alone lists them\n",
		name);
	return WRONG_USE;
}

static int mark(const char *text)
{
	char *end;
	unsigned long long value = strtoull(text, &end, 0);

	if (!*text || *end) {
		fprintf(stderr, "tlbcheck: '%s' is not a number\n", text);
		return WRONG_USE;
	}
	if (tlb_check_call(TLB_CHECK_MARK, value, 0, 0, 0)) {
		fputs("tlbcheck: the log takes no more marks from programs\n",
		      stderr);
		return 1;
	}
	return 0;
}

static int run(char *command[])
{
	unsigned long long before[TLB_CHECK_COUNTERS];
	unsigned long long after[TLB_CHECK_COUNTERS];
	unsigned int i;
	int status;
	pid_t pid;

	read_all(before);
	pid = fork();
	if (!pid) {
		execvp(command[0], command);
		fprintf(stderr, "tlbcheck: %s: %s\n", command[0],
			strerror(errno));
		_exit(CANNOT_RUN);
	}
	/* Ctrl-C is for the command; the counters are printed all the same. */
	signal(SIGINT, SIG_IGN);
	signal(SIGQUIT, SIG_IGN);
	if (pid < 0 || waitpid(pid, &status, 0) < 0) {
		perror("tlbcheck");
		return CANNOT_RUN;
	}
	read_all(after);
	for (i = 0; i < TLB_CHECK_COUNTERS; i++)
		if (after[i] != before[i])
			fprintf(stderr, "tlbcheck: %s %llu\n", names[i],
				after[i] - before[i]);
	if (WIFSIGNALED(status))
		return 128 + WTERMSIG(status);
	if (WEXITSTATUS(status))
		return WEXITSTATUS(status);
	return after[TLB_CHECK_N_VIOLATIONS] != before[TLB_CHECK_N_VIOLATIONS];
}

int main(int argc, char **argv)
{
	bool all = argc == 1;
	bool one = argc == 3 && !strcmp(argv[1], "counter");
	bool line = argc == 3 && !strcmp(argv[1], "mark");
	bool with = argc > 3 && !strcmp(argv[1], "run") && !strcmp(argv[2], "--");
	unsigned int i;

	if (!all && !one && !line && !with)
		return usage();
	if (!tlb_check_present()) {
		fputs("tlbcheck: no checker runs below this system: boot it with"
		      " ceasefire vm --emulator checking\n", stderr);
		return NO_CHECKER;
	}
	if (one)
		return counter(argv[2]);
	if (line)
		return mark(argv[2]);
	if (with)
		return run(argv + 3);
	for (i = 0; i < TLB_CHECK_COUNTERS; i++)
		printf("%-12s %llu\n", names[i], tlb_check_counter(i));
	return 0;
}
