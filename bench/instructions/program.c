// SPDX-License-Identifier: GPL-2.0-only
/* Runs of whole programs, see program.h. */
#include "../common/util.h"
#include "program.h"

#include <errno.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

uint64_t run_program(const char *name, const char *command, int out,
		     unsigned long count)
{
	uint64_t us = 0;
	const char *const words[] = { "sh", "-c", command, NULL };
	posix_spawn_file_actions_t actions;

	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
	for (unsigned long n = 0; n < count; n++) {
		struct rusage usage;
		int status;
		pid_t pid;

		errno = posix_spawn(&pid, "/bin/sh", &actions, NULL,
				    (char *const *)words, environ);
		if (errno || wait4(pid, &status, 0, &usage) != pid)
			die_errno("%s", name);
		if (!WIFEXITED(status) || WEXITSTATUS(status))
			die(EXIT_FAILED, "%s ended with status %d: %s", name,
			    WIFEXITED(status) ? WEXITSTATUS(status) :
						128 + WTERMSIG(status),
			    command);
		us += 1000000ULL * (uint64_t)(usage.ru_utime.tv_sec +
					      usage.ru_stime.tv_sec) +
		      (uint64_t)(usage.ru_utime.tv_usec +
				 usage.ru_stime.tv_usec);
	}
	posix_spawn_file_actions_destroy(&actions);
	return 1000 * us;
}
