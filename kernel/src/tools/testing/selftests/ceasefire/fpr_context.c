// SPDX-License-Identifier: GPL-2.0
/*
 * Attacks on contexts of several processes (I1, I2): what one member has left
 * another one may use again, and nobody else; who leaves sees nothing of it any
 * more, and nobody sees what is the leaver's alone. fpr_creds.c has those whose
 * rights change.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "checker.h"
#include "context.h"
#include "env.h"
#include "file.h"
#include "ktap.h"
#include "map.h"
#include "members.h"
#include "peer.h"
#include "stranger.h"

/* More than the kernel keeps back until it puts them on a list. */
#define ANON_PAGES	64

/* In the other process. */
static long choose(long kind)
{
	return context_choose((unsigned long)kind);
}

static long map_secrets(long unused)
{
	char *p = mmap(NULL, ANON_PAGES * PAGE, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FPR, -1, 0);

	(void)unused;
	if (p == MAP_FAILED)
		return -1;
	memset(p, SECRET, ANON_PAGES * PAGE);
	return 0;
}

static void children(void)
{
	long flushes, recycled;

	members_start(CONTEXT_CHILDREN);
	members_take_part();
	members_leave_parked();
	flushes = vmstat("fpr_drain_flush");
	recycled = members_other_recycles();
	ENSURE(recycled >= PAGES / 2, "%ld of %d frames were recycled",
	       recycled, PAGES);
	ENSURE(vmstat("fpr_drain_flush") == flushes, "somebody flushed");
}

/* Without a choice each process recycles for itself. */
static void no_choice(void)
{
	char *p;

	members_start(CONTEXT_PROCESS);
	p = members_leave_parked();
	ENSURE(!members_other_recycles(), "another process takes frames");
	ENSURE(!peer_count(p, PAGES, WORD(OTHERS)),
	       "pages of another process are visible");
}

static void mapping(void)
{
	long flushes;
	char *p;

	members_start(CONTEXT_PROCESS);
	/* Room for the tags of the frames. */
	leave_stale(&own, 0, PAGES, PROT_READ, MAP_SHARED, OWN);
	MUST(context_choose(CONTEXT_MAPPING));
	p = fpr_map(&own, 0, PAGES, PROT_READ, MAP_SHARED);
	ENSURE(peer_count(p, PAGES, WORD(OWN)) == PAGES, "wrong data");
	flushes = vmstat("fpr_flush_context");
	fpr_unmap_flushes(p, PAGES);
	ENSURE(peer_count(p, PAGES, FAULTED) == PAGES,
	       "the peer reads what is not mapped any more");
	ENSURE(vmstat("fpr_flush_context") > flushes, "no reason was counted");
}

static void other_leaves(void)
{
	char *p;

	members_start(CONTEXT_CHILDREN);
	members_take_part();
	p = members_leave_parked();
	checker_forbid(p, PAGES);
	ENSURE(!stranger_call(&other, choose, CONTEXT_PROCESS), "prctl fails");
	ENSURE(!members_other_recycles(), "who has left takes frames");
	members_gone(p, "another process");
}

static void leaves(void)
{
	char *p;

	members_start(CONTEXT_CHILDREN);
	members_take_part();
	p = members_leave_parked();
	checker_forbid(p, PAGES);
	MUST(context_choose(CONTEXT_PROCESS));
	members_other_recycles();
	members_gone(p, "the process");
}

/* A member that ends has nothing to flush; the frames stay with the others. */
static void other_exits(void)
{
	char *p;

	members_start(CONTEXT_CHILDREN);
	members_take_part();
	p = members_leave_parked();
	stranger_stop(&other);
	/* What is free is poisoned: anything but a fault will do. */
	ENSURE(peer_count(p, PAGES, FAULTED) <= PAGES / 2,
	       "the end of a member has flushed the others");
	ENSURE(fpr_sysfs("parked") >= PAGES / 2,
	       "frames that a member can reach are not parked");
}

static long leave_own(long unused)
{
	int tries;

	(void)unused;
	for (tries = 0; tries < MEMBER_TRIES; tries++) {
		char *p = mmap(NULL, LENGTH, PROT_READ, MAP_SHARED | MAP_FPR,
			       own.fd, 0);
		size_t i;

		for (i = 0; i < PAGES; i++)
			probe_read(p + i * PAGE);
		munmap(p, LENGTH);
		file_drop(&own);
		if (fpr_sysfs("parked") >= PAGES / 2)
			return 0;
		sleep_ms(5);
	}
	return -1;
}

/* With the last member goes the context, and its frames go back unflushed. */
static void last_exits(void)
{
	long flushes;

	fpr_skip_local();
	members_start(CONTEXT_PROCESS);
	ENSURE(!stranger_call(&other, choose, CONTEXT_CHILDREN), "prctl fails");
	ENSURE(!stranger_call(&other, leave_own, 0), "no frames were parked");
	flushes = vmstat("fpr_leave_flush");
	stranger_stop(&other);
	ENSURE(fpr_wait_sysfs_at_most("parked", 0, 60), "frames stay parked");
	ENSURE(vmstat("fpr_leave_flush") == flushes, "the end has flushed");
}

/* The choice is for the program that is started, too. */
static void executed(void)
{
	int status;
	pid_t child;

	MUST(context_choose(CONTEXT_CHILDREN));
	child = MUST(fork());
	if (!child) {
		execl("/proc/self/exe", "fpr_context", "--chosen", NULL);
		_exit(127);
	}
	MUST(waitpid(child, &status, 0));
	ENSURE(WIFEXITED(status) && WEXITSTATUS(status) == CONTEXT_CHILDREN,
	       "execve() has changed the context");
}

#define OVERCOMMIT	"/proc/sys/vm/overcommit_"

static void set_number(const char *path, long value)
{
	char text[24];

	snprintf(text, sizeof(text), "%ld", value);
	ENSURE(write_text(path, text), "%s: %m", path);
}

/*
 * Memory is accounted for, and all of it is taken: there is an address space, but
 * no stack for it. Its group goes, too; identifiers are limited, and of all users.
 */
static void exec_fails(void)
{
	long mode = read_number(OVERCOMMIT "memory");
	long ratio = read_number(OVERCOMMIT "ratio");
	long groups = fpr_sysfs("groups");
	int status;
	pid_t child = MUST(fork());

	if (!child) {
		MUST(context_choose(CONTEXT_CHILDREN));
		set_number(OVERCOMMIT "kbytes", 1);
		set_number(OVERCOMMIT "memory", 2);
		execl("/proc/self/exe", "fpr_context", "--chosen", NULL);
		_exit(errno);
	}
	MUST(waitpid(child, &status, 0));
	set_number(OVERCOMMIT "memory", mode);
	set_number(OVERCOMMIT "ratio", ratio);
	ENSURE(WIFEXITED(status) && WEXITSTATUS(status) == ENOMEM,
	       "execve() ends with status %#x", status);
	ENSURE(fpr_wait_sysfs_at_most("groups", groups, LEFT_LIMIT_S),
	       "a group stays behind");
}

/* What is anonymous stays with its process. */
static void anonymous(void)
{
	long recycled;
	size_t seen;
	int tries;
	char *p;

	members_start(CONTEXT_CHILDREN);
	members_take_part();
	for (tries = 0; tries < MEMBER_TRIES; tries++) {
		p = fpr_map(NULL, 0, ANON_PAGES, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE);
		ENSURE(peer_write(p, ANON_PAGES, WORD(OWN)) == ANON_PAGES, "no write");
		if (fpr_unmap(p, ANON_PAGES) &&
		    peer_count(p, ANON_PAGES, FAULTED) <= ANON_PAGES / 2)
			break;
	}
	PREMISE(tries < MEMBER_TRIES, "nothing is stale: nothing to attack with");
	recycled = vmstat("fpr_recycle");
	ENSURE(!stranger_call(&other, map_secrets, 0), "mmap fails");
	ktap_note("%ld frames recycled by the other process",
		  vmstat("fpr_recycle") - recycled);
	seen = peer_count(p, ANON_PAGES, WORD(SECRET));
	ENSURE(!seen, "%zu private pages of another member are visible", seen);
}

/* Processes of a user differ in groups, containers, and so in what they may read. */
static void users(void)
{
	ENSURE(prctl(PR_FPR, PR_FPR_SET_CONTEXT, 3, 0, 0) == -1 &&
	       errno == EINVAL, "all processes of a user can recycle together");
	ENSURE(context_chosen() == CONTEXT_PROCESS, "it has another context");
}

static void wrong_use(void)
{
	ENSURE(prctl(PR_FPR, PR_FPR_SET_CONTEXT, 4, 0, 0) == -1 &&
	       errno == EINVAL, "an unknown context is accepted");
	ENSURE(prctl(PR_FPR, PR_FPR_SET_CONTEXT, 0, 1, 0) == -1 &&
	       errno == EINVAL, "an unused argument is accepted");
	ENSURE(prctl(PR_FPR, PR_FPR_GET_CONTEXT, 8, 0, 0) == -1 &&
	       errno == EFAULT, "a bad pointer is accepted");
	ENSURE(context_chosen() == CONTEXT_PROCESS, "the default is another");
}

int main(int argc, char **argv)
{
	static const struct ktap_case cases[] = {
		{ "process", no_choice, 0 },
		{ "mapping", mapping, 0 },
		{ "children", children, 0 },
		{ "users", users, 0 },
		{ "leaves", leaves, 0 },
		{ "other_leaves", other_leaves, 0 },
		{ "other_exits", other_exits, 0 },
		{ "last_exits", last_exits, 0 },
		{ "executed", executed, 0 },
		{ "exec_fails", exec_fails, 0 },
		{ "anonymous", anonymous, 0 },
		{ "wrong_use", wrong_use, 0 },
	};

	if (argc == 2 && !strcmp(argv[1], "--chosen"))
		return context_chosen();
	return ktap_main(argc, argv, cases, KTAP_COUNT(cases));
}
