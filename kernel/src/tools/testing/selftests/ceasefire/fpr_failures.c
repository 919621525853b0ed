// SPDX-License-Identifier: GPL-2.0
/*
 * Each allocation of a call fails once: the first, the second, and so on until
 * the call needs no more (fault injection of the debug kernel). Whatever comes
 * of it, the process goes on, or ends, with what it had chosen before or has
 * been told of; and no context, no group and no frame stays behind (I6).
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "context.h"
#include "env.h"
#include "file.h"
#include "ktap.h"
#include "peer.h"

#define PAGES	4
#define LENGTH	(PAGES * PAGE)
#define BYTE	0x5a
#define FAIL_NTH	"/proc/thread-self/fail-nth"
#define DEBUGFS	"/sys/kernel/debug/"
/* More than any of the calls allocates. */
#define MOST	400
/* Of all tries of a case: ten times the usual length. */
#define LIMIT_S	400

/* How a try has ended. */
enum { FAILED_ONE = 10, FAILED_NONE, WRONG };

static struct tfile file;
/* A file in memory; each case makes one. */
static char program[64];

/* A call under attack; each try is a process of its own. */
struct scenario {
	void (*prepare)(void);
	/* 0, or a positive errno; -1: what no failure can be the reason of. */
	int (*call)(void);
	/* May the call end the process, or the program that it begins? */
	bool may_die;
	/* And afterwards, told what the call has returned: is all as it is to be? */
	bool (*right)(int error);
};

static int nth;

static void nothing(void)
{
}

static void choose_children(void)
{
	MUST(context_choose(CONTEXT_CHILDREN));
}

static char *map(void)
{
	return mmap(NULL, LENGTH, PROT_READ, MAP_SHARED | MAP_FPR, file.fd, 0);
}

/* Reads of a mapping may have failed for want of memory, but never lie. */
static bool reads_right(const char *p, bool all)
{
	size_t i;

	for (i = 0; i < PAGES; i++) {
		uint64_t word = probe_read(p + i * PAGE);

		if (word != WORD(BYTE) && (all || word != FAULTED))
			return false;
	}
	return true;
}

static void map_once(void)
{
	char *p = map();

	ENSURE(p != MAP_FAILED && reads_right(p, true), "no mapping: %m");
	MUST(munmap(p, LENGTH));
}

static void be_member(void)
{
	choose_children();
	map_once();
}

static void be_narrow(void)
{
	map_once();
	MUST(context_choose(CONTEXT_MAPPING));
}

static int call_choose(void)
{
	return context_choose(CONTEXT_CHILDREN) ? errno : 0;
}

static int call_map(void)
{
	char *p = map();
	int error = 0;

	if (p == MAP_FAILED)
		return errno;
	if (!reads_right(p, false))
		return -1;
	if (munmap(p, LENGTH))
		error = errno;
	file_drop(&file);
	return error;
}

static int call_fork(void)
{
	pid_t child = fork();

	if (child < 0)
		return errno;
	if (!child)
		_exit(0);
	return waitpid(child, NULL, 0) == child ? 0 : -1;
}

/* The file is no program: that is found out when there is an address space. */
static int call_execute_text(void)
{
	execl(program, program, NULL);
	return errno == ENOEXEC ? 0 : errno;
}

/* Comes back in main(), if it succeeds. */
static int call_execute(void)
{
	execl(program, "fpr_failures", "--ran", NULL);
	return errno;
}

static int call_set_groups(void)
{
	return setgroups(0, NULL) ? errno : 0;
}

static bool children_or_before(int error, int before)
{
	return context_chosen() == (error ? before : CONTEXT_CHILDREN);
}

static bool chosen_or_process(int error)
{
	return children_or_before(error, CONTEXT_PROCESS);
}

static bool chosen_or_narrow(int error)
{
	return children_or_before(error, CONTEXT_MAPPING);
}

static bool chosen(int error)
{
	(void)error;
	return context_chosen() == CONTEXT_CHILDREN;
}

/* A process that could not become a member knows. */
static bool chosen_or_not(int error)
{
	(void)error;
	return context_chosen() >= 0;
}

static bool left_or_chosen(int error)
{
	return context_chosen() == (error ? CONTEXT_CHILDREN : CONTEXT_PROCESS);
}

/* In a process of its own: how the try has ended. */
static int try_one(const struct scenario *s)
{
	bool reached;
	int error;
	char text[16];

	s->prepare();
	snprintf(text, sizeof(text), "%d", nth);
	MUST(write_text(FAIL_NTH, text) ? 0 : -1);
	error = s->call();
	reached = !read_number(FAIL_NTH);
	write_text(FAIL_NTH, "0");
	/* Not ENOMEM alone: an execve() without memory finds no file, too. */
	if (error < 0 || (error && !reached)) {
		ktap_note("failure %d: %s", nth,
			  error < 0 ? "wrong data" : strerror(error));
		return WRONG;
	}
	if (!s->right(error)) {
		ktap_note("failure %d, %s: context %d", nth, strerror(error),
			  context_chosen());
		return WRONG;
	}
	map_once();
	return reached ? FAILED_ONE : FAILED_NONE;
}

static void inject(void)
{
	static const char *const off[] = {
		"failslab/verbose", "failslab/ignore-gfp-wait",
		"fail_page_alloc/verbose", "fail_page_alloc/ignore-gfp-wait",
		"fail_page_alloc/ignore-gfp-highmem", "fail_page_alloc/min-order",
	};
	char path[128];
	size_t i;

	if (access(FAIL_NTH, W_OK))
		ktap_skip("no fault injection: boot the debug kernel");
	for (i = 0; i < KTAP_COUNT(off); i++) {
		snprintf(path, sizeof(path), DEBUGFS "%s", off[i]);
		ENSURE(write_text(path, "0"), "%s: %m", path);
	}
}

static void walk(const struct scenario *s)
{
	long groups, contexts;
	double end = seconds() + LIMIT_S;
	int status = 0, died = 0;

	inject();
	file_make(&file, ON_DISK, PAGES, BYTE);
	MUST(fdatasync(file.fd));
	groups = fpr_sysfs("groups");
	contexts = fpr_sysfs("contexts");
	for (nth = 1; nth < MOST; nth++) {
		pid_t child = (pid_t)MUST(fork());

		if (!child)
			_exit(try_one(s));
		MUST(waitpid(child, &status, 0));
		ENSURE(fpr_wait_sysfs_at_most("groups", groups, LEFT_LIMIT_S),
		       "failure %d leaves a group behind", nth);
		ENSURE(fpr_wait_sysfs_at_most("contexts", contexts, LEFT_LIMIT_S),
		       "failure %d leaves a context behind", nth);
		if (WIFEXITED(status) && WEXITSTATUS(status) == FAILED_NONE)
			break;
		/* 127: what the C library does first has failed. */
		if (s->may_die && (WIFSIGNALED(status) ||
				   WEXITSTATUS(status) == 127))
			died++;
		else
			ENSURE(WIFEXITED(status) &&
			       WEXITSTATUS(status) == FAILED_ONE,
			       "failure %d ends with status %#x", nth, status);
		ENSURE(seconds() < end, "not done after %d s", LIMIT_S);
	}
	ENSURE(nth > 1, "nothing has failed");
	ENSURE(nth < MOST, "no end after %d failures", MOST);
	ktap_note("%d failures, %d ended the process", nth - 1, died);
}

static void choice(void)
{
	static const struct scenario s = {
		.prepare = nothing, .call = call_choose,
		.right = chosen_or_process,
	};

	walk(&s);
}

static void choice_later(void)
{
	static const struct scenario s = {
		.prepare = be_narrow, .call = call_choose,
		.right = chosen_or_narrow,
	};

	walk(&s);
}

static void first_mapping(void)
{
	static const struct scenario s = {
		.prepare = choose_children, .call = call_map,
		.right = chosen_or_not,
	};

	walk(&s);
}

static void mapping(void)
{
	static const struct scenario s = {
		.prepare = be_member, .call = call_map, .right = chosen,
	};

	walk(&s);
}

static void child(void)
{
	static const struct scenario s = {
		.prepare = be_member, .call = call_fork, .right = chosen,
	};

	walk(&s);
}

static int make_program(void)
{
	snprintf(program, sizeof(program), "/run/ceasefire-fails-XXXXXX");
	return (int)MUST(mkostemp(program, O_CLOEXEC));
}

static void text_executed(void)
{
	static const struct scenario s = {
		.prepare = be_member, .call = call_execute_text,
		.right = chosen,
	};
	int fd = make_program();

	MUST(write(fd, "no program\n", 11));
	MUST(fchmod(fd, 0755));
	close(fd);
	walk(&s);
	unlink(program);
}

/*
 * This program itself, in memory: with the files of the host a failed allocation
 * may end in any error, and later, too. It is linked statically for the same reason.
 */
static void copy_self(void)
{
	int from = (int)MUST(open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
	int to = make_program();

	while (MUST(sendfile(to, from, NULL, 1 << 20)) > 0)
		;
	MUST(fchmod(to, 0755));
	close(from);
	close(to);
}

static void executed(void)
{
	static const struct scenario s = {
		.prepare = be_member, .call = call_execute, .may_die = true,
		.right = chosen,
	};

	copy_self();
	walk(&s);
	unlink(program);
}

static void groups_changed(void)
{
	static const struct scenario s = {
		.prepare = be_member, .call = call_set_groups,
		.right = left_or_chosen,
	};

	walk(&s);
}

int main(int argc, char **argv)
{
	static const struct ktap_case cases[] = {
		{ "choice", choice, LIMIT_S },
		{ "choice_later", choice_later, LIMIT_S },
		{ "first_mapping", first_mapping, LIMIT_S },
		{ "mapping", mapping, LIMIT_S },
		{ "child", child, LIMIT_S },
		{ "text_executed", text_executed, LIMIT_S },
		{ "executed", executed, LIMIT_S },
		{ "groups_changed", groups_changed, LIMIT_S },
	};

	if (argc == 2 && !strcmp(argv[1], "--ran"))
		return read_number(FAIL_NTH) ? FAILED_NONE : FAILED_ONE;
	return ktap_main(argc, argv, cases, KTAP_COUNT(cases));
}
