// SPDX-License-Identifier: GPL-2.0
/*
 * prctl(PR_LATR): who is lazy, who inherits it, who must not, and what it does
 * not go together with.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "context.h"
#include "env.h"
#include "ktap.h"

#define NOBODY	65534

static void on_and_off(void)
{
	ENSURE(!context_is_lazy(), "it is not off by default");
	MUST(context_lazy(1));
	ENSURE(context_is_lazy() == 1, "it is not on");
	MUST(context_lazy(1));
	MUST(context_lazy(0));
	ENSURE(!context_is_lazy(), "it cannot be switched off");
	MUST(context_lazy(0));
}

/* Exit status of a program that says whether it is lazy. */
static int run_asker(const char *path, uid_t uid)
{
	int status;
	pid_t child = (pid_t)MUST(fork());

	if (!child) {
		if (setresgid(uid, uid, uid) || setresuid(uid, uid, uid))
			_exit(3);
		execl(path, "latr_prctl", "--ask", NULL);
		_exit(127);
	}
	MUST(waitpid(child, &status, 0));
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void inherited(void)
{
	int got;

	MUST(context_lazy(1));
	got = run_asker("/proc/self/exe", 0);
	ENSURE(got == 1, "the program that was executed says %d", got);
}

/* Who starts a set-user-ID program must not decide that for it. */
static void privileged(void)
{
	char path[] = "/run/ceasefire-ask-XXXXXX";
	struct stat own;
	int from, to, got, privileged = -1;

	from = (int)MUST(open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
	MUST(fstat(from, &own));
	to = (int)MUST(mkostemp(path, O_CLOEXEC));
	ENSURE(sendfile(to, from, NULL, (size_t)own.st_size) == own.st_size,
	       "no copy of the program: %m");
	MUST(fchmod(to, 0755));
	close(to);
	MUST(context_lazy(1));
	got = run_asker(path, NOBODY);
	if (got == 1 && !chmod(path, 04755))
		privileged = run_asker(path, NOBODY);
	unlink(path);
	ENSURE(got == 1, "a program without privileges says %d", got);
	ENSURE(!privileged, "a set-user-ID program says %d", privileged);
}

/* Frames that several processes use again are not for the lazy. */
static void no_groups(void)
{
	unsigned long kind;

	for (kind = CONTEXT_MAPPING; kind <= CONTEXT_CHILDREN; kind++) {
		MUST(context_choose(kind));
		ENSURE(context_lazy(1) == -1 && errno == EINVAL,
		       "a process with context %lu is lazy", kind);
		MUST(context_choose(CONTEXT_PROCESS));
		MUST(context_lazy(1));
		ENSURE(context_choose(kind) == -1 && errno == EINVAL,
		       "a lazy process has context %lu", kind);
		ENSURE(context_chosen() == CONTEXT_PROCESS,
		       "the context has changed");
		MUST(context_lazy(0));
	}
}

static void never(void)
{
	ENSURE(write_text("/sys/kernel/mm/ceasefire/latr/enabled", "never"),
	       "it cannot be switched off: %m");
	ENSURE(context_lazy(1) == -1 && errno == EPERM,
	       "a process is lazy that must not be");
	ENSURE(!write_text("/sys/kernel/mm/ceasefire/latr/enabled", "sometimes") &&
	       errno == EINVAL, "a word is accepted that says nothing");
}

/* What root wants is for programs that are executed later. */
static void always(void)
{
	int got;

	ENSURE(write_text("/sys/kernel/mm/ceasefire/latr/enabled", "always"),
	       "it cannot be for all: %m");
	ENSURE(!context_is_lazy(), "a process is lazy that was there before");
	got = run_asker("/proc/self/exe", 0);
	ENSURE(got == 1, "the program that was executed says %d", got);
	got = run_asker("/proc/self/exe", NOBODY);
	ENSURE(got == 1, "a program of another user says %d", got);
	ENSURE(write_text("/sys/kernel/mm/ceasefire/latr/enabled", "ask"),
	       "it cannot be for those that ask: %m");
	got = run_asker("/proc/self/exe", 0);
	ENSURE(!got, "a program that has not asked says %d", got);
	/* Those that share frames with others stay as they are. */
	MUST(context_choose(CONTEXT_CHILDREN));
	ENSURE(write_text("/sys/kernel/mm/ceasefire/latr/enabled", "always"),
	       "it cannot be for all: %m");
	got = run_asker("/proc/self/exe", 0);
	ENSURE(!got, "a program with a context of several processes says %d",
	       got);
}

/* So it is from the boot on: nobody has asked. */
static void for_all(void)
{
	int got;

	if (context_is_lazy() != 1)
		ktap_skip("boot with ceasefire=latr");
	ENSURE(vmstat("latr_skip") + vmstat("latr_flush_local") > 0,
	       "no munmap was looked at since the boot");
	got = run_asker("/proc/self/exe", NOBODY);
	ENSURE(got == 1, "a program of another user says %d", got);
	MUST(context_lazy(0));
	ENSURE(!context_is_lazy(), "a program cannot do without");
}

static void wrong_use(void)
{
	ENSURE(prctl(PR_LATR, 99, 0, 0, 0) == -1 && errno == EINVAL,
	       "an unknown operation is accepted");
	ENSURE(context_lazy(2) == -1 && errno == EINVAL,
	       "an unknown value is accepted");
	ENSURE(prctl(PR_LATR, PR_LATR_SET, 0, 1, 0) == -1 && errno == EINVAL &&
	       prctl(PR_LATR, PR_LATR_SET, 0, 0, 1) == -1 && errno == EINVAL,
	       "an unused argument is accepted");
	ENSURE(prctl(PR_LATR, PR_LATR_GET, 8, 0, 0) == -1 && errno == EFAULT,
	       "a bad pointer is accepted");
}

int main(int argc, char **argv)
{
	static const struct ktap_case cases[] = {
		{ "on_and_off", on_and_off, 0 },
		{ "inherited", inherited, 0 },
		{ "privileged", privileged, 0 },
		{ "no_groups", no_groups, 0 },
		{ "never", never, 0 },
		{ "always", always, 0 },
		{ "for_all", for_all, 0 },
		{ "wrong_use", wrong_use, 0 },
	};

	if (argc == 2 && !strcmp(argv[1], "--ask"))
		return context_is_lazy() != 0;
	/* Here the cases choose. */
	unsetenv("CEASEFIRE_TEST_MECHANISM");
	return ktap_main(argc, argv, cases, KTAP_COUNT(cases));
}
