// SPDX-License-Identifier: GPL-2.0
/*
 * Attacks on contexts of several processes by members whose rights change (I2).
 * Who recycles together sees what the others map, so all members must be allowed
 * the same: whoever is allowed something else, more or less, has left before
 * that takes effect, and nothing that was left between members is visible then.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/landlock.h>
#include <linux/securebits.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "checker.h"
#include "context.h"
#include "ktap.h"
#include "map.h"
#include "members.h"
#include "peer.h"

#define NOBODY		65534
#define SOME_GROUP	4242
#define DELAY_MS	300
#define LIMIT_S		8
/* Exit status of a child that cannot do its part; more than it can count. */
#define FAILED		125

static long chosen(long unused)
{
	(void)unused;
	return context_chosen();
}

/* In the other process: ways to be allowed something else. */
static long become_nobody(long unused)
{
	(void)unused;
	return seteuid(NOBODY);
}

static long change_groups(long unused)
{
	const gid_t groups[] = { SOME_GROUP };

	(void)unused;
	return setgroups(KTAP_COUNT(groups), groups);
}

static long drop_capability(long unused)
{
	struct __user_cap_header_struct header = {
		.version = _LINUX_CAPABILITY_VERSION_3,
	};
	struct __user_cap_data_struct data[2];

	(void)unused;
	if (syscall(SYS_capget, &header, data))
		return -1;
	data[0].effective &= ~(1U << CAP_DAC_OVERRIDE);
	return syscall(SYS_capset, &header, data);
}

static long enter_namespace(long unused)
{
	(void)unused;
	return unshare(CLONE_NEWUSER);
}

/* Must not make block devices from now on: any rule makes a domain. */
static long enter_domain(long unused)
{
	struct landlock_ruleset_attr attr = {
		.handled_access_fs = LANDLOCK_ACCESS_FS_MAKE_BLOCK,
	};
	int ruleset = (int)syscall(SYS_landlock_create_ruleset, &attr,
				   sizeof(attr), 0);
	long result;

	(void)unused;
	if (ruleset < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return -1;
	result = syscall(SYS_landlock_restrict_self, ruleset, 0);
	close(ruleset);
	return result;
}

/* A thread alone: the C library would do it for all of them. */
static void *change_groups_here(void *result)
{
	const gid_t groups[] = { SOME_GROUP };

	*(long *)result = syscall(SYS_setgroups, KTAP_COUNT(groups), groups);
	return NULL;
}

static long change_groups_of_thread(long unused)
{
	pthread_t thread;
	long result = -1;

	(void)unused;
	if (pthread_create(&thread, NULL, change_groups_here, &result))
		return -1;
	pthread_join(thread, NULL);
	return result;
}

/* A member that shares frames with the case is allowed something else. */
static void changes(long (*call)(long), const char *who)
{
	char *p;

	members_start(CONTEXT_CHILDREN);
	members_take_part();
	p = members_leave_parked();
	checker_forbid(p, PAGES);
	ENSURE(!stranger_call(&other, call, 0), "it cannot be changed");
	members_gone(p, who);
	ENSURE(stranger_call(&other, chosen, 0) == CONTEXT_PROCESS,
	       "%s has kept its context", who);
	members_leave_parked();
	ENSURE(!members_other_recycles(), "%s takes frames", who);
}

static void other_uid(void)
{
	changes(become_nobody, "a process with another uid");
}

static void other_groups(void)
{
	changes(change_groups, "a process with other groups");
}

static void groups_of_thread(void)
{
	changes(change_groups_of_thread, "a process with a thread of other groups");
}

static void other_capability(void)
{
	changes(drop_capability, "a process with fewer capabilities");
}

static void other_namespace(void)
{
	changes(enter_namespace, "a process in another user namespace");
}

static void need_landlock(void)
{
	if (syscall(SYS_landlock_create_ruleset, NULL, 0,
		    LANDLOCK_CREATE_RULESET_VERSION) < 0)
		ktap_skip("no Landlock");
}

static void other_domain(void)
{
	need_landlock();
	changes(enter_domain, "a process in another Landlock domain");
}

/* It has made the choice, but maps something for the first time after that. */
static void changes_first(long (*call)(long), const char *who)
{
	char *p;

	members_start(CONTEXT_CHILDREN);
	ENSURE(!stranger_call(&other, call, 0), "it cannot be changed");
	p = members_leave_parked();
	ENSURE(!members_other_recycles(), "%s takes frames", who);
	ENSURE(!peer_count(p, PAGES, WORD(OTHERS)), "pages of %s are visible",
	       who);
}

static void before_first(void)
{
	changes_first(change_groups, "a process with other groups");
}

static void domain_before_first(void)
{
	need_landlock();
	changes_first(enter_domain, "a process in another Landlock domain");
}

/* What a child of the other process takes from a pool; it has exited. */
static long child_takes(pid_t child)
{
	int status;

	if (child < 0 || waitpid(child, &status, 0) != child ||
	    !WIFEXITED(status) || WEXITSTATUS(status) == FAILED)
		return -1;
	return WEXITSTATUS(status);
}

/* In the child. */
static int take(int fd)
{
	long before = vmstat("fpr_recycle");

	if (members_map(fd, PROT_READ) != PAGES)
		return FAILED;
	return (int)(vmstat("fpr_recycle") - before);
}

static long clone_taker(long flags)
{
	pid_t child = (pid_t)syscall(SYS_clone, flags | SIGCHLD, 0, 0, 0, 0);

	if (!child)
		_exit(take(others.fd));
	return child_takes(child);
}

static long execute_taker(long unused)
{
	pid_t child = fork();
	char fd[16];

	(void)unused;
	if (!child) {
		snprintf(fd, sizeof(fd), "%d", dup(others.fd));
		execl("/proc/self/exe", "fpr_creds", "--take", fd, NULL);
		_exit(FAILED);
	}
	return child_takes(child);
}

static void taken(long (*call)(long), long argument, bool may, const char *who)
{
	char *p;
	long n;

	members_start(CONTEXT_CHILDREN);
	members_take_part();
	p = members_leave_parked();
	n = stranger_call(&other, call, argument);
	ENSURE(n >= 0, "%s cannot be made", who);
	if (may) {
		ENSURE(n >= PAGES / 2, "%s takes %ld of %d frames", who, n,
		       PAGES);
		return;
	}
	ENSURE(!n, "%s takes %ld frames", who, n);
	ENSURE(!peer_count(p, PAGES, WORD(OTHERS)), "pages of %s are visible",
	       who);
}

/* Nothing has changed: what the next ones do without. */
static void same_cloned(void)
{
	taken(clone_taker, 0, true, "a child");
}

static void same_executed(void)
{
	taken(execute_taker, 0, true, "a program");
}

static void cloned_into_namespace(void)
{
	taken(clone_taker, CLONE_NEWUSER, false,
	      "a child in another user namespace");
}

/* root as any other user: execve() takes the capabilities away, and no more. */
static void executed_with_less(void)
{
	MUST(prctl(PR_SET_SECUREBITS, SECBIT_NOROOT, 0, 0, 0));
	taken(execute_taker, 0, false, "a program with fewer capabilities");
}

static void *choose_process(void *result)
{
	*(long *)result = context_choose(CONTEXT_PROCESS);
	return NULL;
}

/* A second thread changes its groups while the first one is still leaving. */
static long change_while_leaving(long unused)
{
	double end = seconds() + LIMIT_S;
	pthread_t thread;
	long left = -1;

	(void)unused;
	if (pthread_create(&thread, NULL, choose_process, &left))
		return -1;
	while (context_chosen() != CONTEXT_PROCESS)
		if (seconds() > end)
			return -1;
	if (syscall(SYS_setgroups, 0, NULL))
		return -1;
	pthread_detach(thread);
	return 0;
}

static void while_leaving(void)
{
	char *p;

	members_start(CONTEXT_CHILDREN);
	members_take_part();
	p = members_leave_parked();
	checker_forbid(p, PAGES);
	fpr_flush_delay(DELAY_MS);
	ENSURE(!stranger_call(&other, change_while_leaving, 0),
	       "it cannot be changed");
	members_gone(p, "a process of two threads");
}

#define BESIDE_S	5

static double beside_end;

/* A thread of its own each, until the time is over. */
static void *choosing(void *done)
{
	static const int kinds[] = {
		CONTEXT_CHILDREN, CONTEXT_MAPPING, CONTEXT_CHILDREN,
		CONTEXT_PROCESS,
	};

	while (seconds() < beside_end)
		MUST(context_choose((unsigned long)kinds[(*(long *)done)++ %
							 KTAP_COUNT(kinds)]));
	return NULL;
}

static void *changing(void *done)
{
	for (; seconds() < beside_end; (*(long *)done)++) {
		MUST(syscall(SYS_setgroups, 0, NULL));
		sleep_ms(1);
	}
	return NULL;
}

static void *map_beside(void *done)
{
	for (; seconds() < beside_end; (*(long *)done)++)
		ENSURE(members_map(others.fd, PROT_READ) == PAGES,
		       "a mapping has wrong data");
	return NULL;
}

static void *forking(void *done)
{
	for (; seconds() < beside_end; (*(long *)done)++) {
		pid_t child = (pid_t)MUST(fork());

		if (!child)
			_exit(members_map(others.fd, PROT_READ) != PAGES);
		MUST(child_takes(child));
	}
	return NULL;
}

/* All that changes a membership at once; what is left shows after the case. */
static void all_beside(void)
{
	static void *(*const threads[])(void *) = {
		choosing, changing, map_beside, forking,
	};
	pthread_t thread[KTAP_COUNT(threads)];
	long done[KTAP_COUNT(threads)] = { };
	size_t i;

	file_make(&others, ON_DISK, PAGES, OTHERS);
	beside_end = seconds() + BESIDE_S;
	for (i = 0; i < KTAP_COUNT(threads); i++)
		ENSURE(!pthread_create(&thread[i], NULL, threads[i], &done[i]),
		       "no thread");
	for (i = 0; i < KTAP_COUNT(threads); i++) {
		pthread_join(thread[i], NULL);
		ENSURE(done[i], "thread %zu has done nothing", i);
	}
	ktap_note("%ld choices, %ld changes, %ld mappings, %ld forks", done[0],
		  done[1], done[2], done[3]);
}

int main(int argc, char **argv)
{
	static const struct ktap_case cases[] = {
		{ "other_uid", other_uid, 0 },
		{ "other_groups", other_groups, 0 },
		{ "groups_of_thread", groups_of_thread, 0 },
		{ "other_capability", other_capability, 0 },
		{ "other_namespace", other_namespace, 0 },
		{ "other_domain", other_domain, 0 },
		{ "before_first", before_first, 0 },
		{ "domain_before_first", domain_before_first, 0 },
		{ "same_cloned", same_cloned, 0 },
		{ "same_executed", same_executed, 0 },
		{ "cloned_into_namespace", cloned_into_namespace, 0 },
		{ "executed_with_less", executed_with_less, 0 },
		{ "while_leaving", while_leaving, 0 },
		{ "all_beside", all_beside, 0 },
	};

	if (argc == 3 && !strcmp(argv[1], "--take"))
		return take(atoi(argv[2]));
	return ktap_main(argc, argv, cases, KTAP_COUNT(cases));
}
