// SPDX-License-Identifier: GPL-2.0
/*
 * prctl(PR_ABIS): who has ABIS, who inherits it, who must not, and what root may
 * choose.
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
	ENSURE(!context_has_abis(), "it is not off by default");
	MUST(context_abis(1));
	ENSURE(context_has_abis() == 1, "it is not on");
	MUST(context_abis(1));
	MUST(context_abis(0));
	ENSURE(!context_has_abis(), "it cannot be switched off");
	MUST(context_abis(0));
}

/* Exit status of a program that says whether it has it. */
static int run_asker(const char *path, uid_t uid)
{
	int status;
	pid_t child = (pid_t)MUST(fork());

	if (!child) {
		if (setresgid(uid, uid, uid) || setresuid(uid, uid, uid))
			_exit(3);
		execl(path, "abis_prctl", "--ask", NULL);
		_exit(127);
	}
	MUST(waitpid(child, &status, 0));
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void inherited(void)
{
	int got;

	MUST(context_abis(1));
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
	MUST(context_abis(1));
	got = run_asker(path, NOBODY);
	if (got == 1 && !chmod(path, 04755))
		privileged = run_asker(path, NOBODY);
	unlink(path);
	ENSURE(got == 1, "a program without privileges says %d", got);
	ENSURE(!privileged, "a set-user-ID program says %d", privileged);
}

/* It goes with whatever else a process has chosen. */
static void with_others(void)
{
	MUST(context_choose(CONTEXT_CHILDREN));
	MUST(context_abis(1));
	MUST(context_choose(CONTEXT_PROCESS));
	MUST(context_lazy(1));
	ENSURE(context_has_abis() == 1 && context_is_lazy() == 1,
	       "one choice has ended the other");
	MUST(context_abis(0));
	ENSURE(context_is_lazy() == 1, "one choice has ended the other");
}

static void never(void)
{
	ENSURE(write_text("/sys/kernel/mm/ceasefire/abis/enabled", "never"),
	       "it cannot be switched off: %m");
	ENSURE(context_abis(1) == -1 && errno == EPERM,
	       "a process has it that must not");
	ENSURE(!write_text("/sys/kernel/mm/ceasefire/abis/enabled", "sometimes") &&
	       errno == EINVAL, "a word is accepted that says nothing");
}

static void by_source(void)
{
	static const char path[] = "/sys/kernel/mm/ceasefire/abis/sources";
	char text[32] = "";
	int fd;

	abis_sources("none");
	fd = (int)MUST(open(path, O_RDONLY | O_CLOEXEC));
	MUST(read(fd, text, sizeof(text) - 1));
	close(fd);
	ENSURE(!strcmp(text, "none\n"), "it says %s", text);
	abis_sources("uncached");
	ENSURE(!write_text(path, "guessed") && errno == EINVAL,
	       "a source is accepted that there is not");
}

/* What root wants is for programs that are executed later. */
static void always(void)
{
	int got;

	ENSURE(write_text("/sys/kernel/mm/ceasefire/abis/enabled", "always"),
	       "it cannot be for all: %m");
	ENSURE(!context_has_abis(), "a process has it that was there before");
	got = run_asker("/proc/self/exe", 0);
	ENSURE(got == 1, "the program that was executed says %d", got);
	got = run_asker("/proc/self/exe", NOBODY);
	ENSURE(got == 1, "a program of another user says %d", got);
	ENSURE(write_text("/sys/kernel/mm/ceasefire/abis/enabled", "ask"),
	       "it cannot be for those that ask: %m");
	got = run_asker("/proc/self/exe", 0);
	ENSURE(!got, "a program that has not asked says %d", got);
}

/* So it is from the boot on: nobody has asked. */
static void for_all(void)
{
	int got;

	if (context_has_abis() != 1)
		ktap_skip("boot with ceasefire=abis");
	ENSURE(vmstat("abis_born") > 0, "nobody had it since the boot");
	got = run_asker("/proc/self/exe", NOBODY);
	ENSURE(got == 1, "a program of another user says %d", got);
	MUST(context_abis(0));
	ENSURE(!context_has_abis(), "a program cannot do without");
}

static void wrong_use(void)
{
	ENSURE(prctl(PR_ABIS, 99, 0, 0, 0) == -1 && errno == EINVAL,
	       "an unknown operation is accepted");
	ENSURE(context_abis(2) == -1 && errno == EINVAL,
	       "an unknown value is accepted");
	ENSURE(prctl(PR_ABIS, PR_ABIS_SET, 0, 1, 0) == -1 && errno == EINVAL &&
	       prctl(PR_ABIS, PR_ABIS_SET, 0, 0, 1) == -1 && errno == EINVAL,
	       "an unused argument is accepted");
	ENSURE(prctl(PR_ABIS, PR_ABIS_GET, 8, 0, 0) == -1 && errno == EFAULT,
	       "a bad pointer is accepted");
}

int main(int argc, char **argv)
{
	static const struct ktap_case cases[] = {
		{ "on_and_off", on_and_off, 0 },
		{ "inherited", inherited, 0 },
		{ "privileged", privileged, 0 },
		{ "with_others", with_others, 0 },
		{ "by_source", by_source, 0 },
		{ "never", never, 0 },
		{ "always", always, 0 },
		{ "for_all", for_all, 0 },
		{ "wrong_use", wrong_use, 0 },
	};

	if (argc == 2 && !strcmp(argv[1], "--ask"))
		return context_has_abis() != 0;
	/* Here the cases choose. */
	unsetenv("CEASEFIRE_TEST_MECHANISM");
	return ktap_main(argc, argv, cases, KTAP_COUNT(cases));
}
