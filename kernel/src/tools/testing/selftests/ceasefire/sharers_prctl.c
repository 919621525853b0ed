// SPDX-License-Identifier: GPL-2.0
/*
 * prctl(PR_SHARERS): who may have sharers, who inherits it, who must not, and when it
 * is too late to ask.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
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
#define GIBS	200L

static void on_and_off(void)
{
	ENSURE(!context_has_sharers(), "it is not off by default");
	MUST(context_sharers(1));
	ENSURE(context_has_sharers() == 1, "it is not on");
	MUST(context_sharers(1));
	MUST(context_sharers(0));
	ENSURE(!context_has_sharers(), "it cannot be switched off");
	MUST(context_sharers(0));
}

static void wrong_use(void)
{
	unsigned int on;

	ENSURE(context_sharers(2) == -1 && errno == EINVAL, "2: %m");
	ENSURE(prctl(PR_SHARERS, PR_SHARERS_SET, 1UL, 1UL, 0UL) == -1 &&
	       errno == EINVAL, "argument 4: %m");
	ENSURE(prctl(PR_SHARERS, PR_SHARERS_SET, 1UL, 0UL, 1UL) == -1 &&
	       errno == EINVAL, "argument 5: %m");
	ENSURE(prctl(PR_SHARERS, 3UL, &on, 0UL, 0UL) == -1 &&
	       errno == EINVAL, "operation 3: %m");
	ENSURE(prctl(PR_SHARERS, PR_SHARERS_GET, 8UL, 0UL, 0UL) == -1 &&
	       errno == EFAULT, "a bad pointer: %m");
	ENSURE(!context_has_sharers(), "it was switched on");
}

static void *wait_here(void *barrier)
{
	pthread_barrier_wait(barrier);
	pthread_barrier_wait(barrier);
	return NULL;
}

/* Exit status of a program that says whether it is to have sharers. */
static int run_asker(const char *path, uid_t uid)
{
	int status;
	pid_t child = (pid_t)MUST(fork());

	if (!child) {
		if (setresgid(uid, uid, uid) || setresuid(uid, uid, uid))
			_exit(3);
		execl(path, "sharers_prctl", "--ask", NULL);
		_exit(127);
	}
	MUST(waitpid(child, &status, 0));
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* One more thread, which ends. */
static void make_thread(void)
{
	pthread_barrier_t barrier;
	pthread_t thread;

	pthread_barrier_init(&barrier, NULL, 2);
	ENSURE(!pthread_create(&thread, NULL, wait_here, &barrier), "no thread");
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
	pthread_join(thread, NULL);
}

/* It begins with the next program, and not with the next thread. */
static void too_late(void)
{
	pthread_barrier_t barrier;
	int result, error, got;
	pthread_t thread;
	long fills;

	pthread_barrier_init(&barrier, NULL, 2);
	ENSURE(!pthread_create(&thread, NULL, wait_here, &barrier), "no thread");
	pthread_barrier_wait(&barrier);
	result = context_sharers(1);
	error = errno;
	fills = vmstat("sharers_fill");
	make_thread();
	pthread_barrier_wait(&barrier);
	pthread_join(thread, NULL);
	ENSURE(result == -1 && error == EBUSY, "%d, %s", result,
	       strerror(error));
	ENSURE(vmstat("sharers_fill") == fills, "it has begun");
	got = run_asker("/proc/self/exe", 0);
	ENSURE(got == 1, "the program that was executed says %d", got);
}

/* Copies that were given up do not come back. */
static void again(void)
{
	long fills;
	int got;

	MUST(context_sharers(1));
	make_thread();
	MUST(context_sharers(0));
	ENSURE(context_sharers(1) == -1 && errno == EBUSY, "a second time: %m");
	fills = vmstat("sharers_fill");
	make_thread();
	ENSURE(vmstat("sharers_fill") == fills, "they are there again");
	got = run_asker("/proc/self/exe", 0);
	ENSURE(got == 1, "the program that was executed says %d", got);
}

static void inherited(void)
{
	int got;

	MUST(context_sharers(1));
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
	MUST(context_sharers(1));
	got = run_asker(path, NOBODY);
	if (got == 1 && !chmod(path, 04755))
		privileged = run_asker(path, NOBODY);
	unlink(path);
	ENSURE(got == 1, "a program without privileges says %d", got);
	ENSURE(!privileged, "a set-user-ID program says %d", privileged);
}

static void by_root(void)
{
	int got;

	sharers_enable("always");
	got = run_asker("/proc/self/exe", 0);
	ENSURE(got == 1, "always: the program that was executed says %d", got);
	ENSURE(!context_has_sharers(), "and so does its parent");
	MUST(context_sharers(1));
	sharers_enable("never");
	ENSURE(context_sharers(1) == -1 && errno == EPERM, "never: %m");
	got = run_asker("/proc/self/exe", 0);
	ENSURE(!got, "never: the program that was executed says %d", got);
	ENSURE(!write_text("/sys/kernel/mm/ceasefire/sharers/enabled", "some") &&
	       errno == EINVAL, "some: %m");
}

/* What they are for is not worth a new fault where faults are unwelcome. */
static void uses_sharers(bool expected, const char *what)
{
	long fills = vmstat("sharers_fill");

	MUST(context_sharers(1));
	make_thread();
	ENSURE((vmstat("sharers_fill") > fills) == expected, "%s %s sharers",
	       what, expected ? "has no" : "has");
}

static void with_threads(void)
{
	uses_sharers(true, "a process with two threads");
}

static void memory_is_locked(void)
{
	MUST(mlockall(MCL_CURRENT | MCL_FUTURE));
	uses_sharers(false, "a process with locked memory");
}

static void real_time(void)
{
	struct sched_param parameter = { .sched_priority = 1 };

	if (sched_setscheduler(0, SCHED_FIFO, &parameter))
		ktap_skip("no real-time priority: %m");
	uses_sharers(false, "a real-time process");
}

/* Tables of CPUs count as those of the process, and go with it. */
static void counted(void)
{
	long before, with;

	before = read_kb("/proc/self/status", "VmPTE");
	uses_sharers(true, "a process with two threads");
	with = read_kb("/proc/self/status", "VmPTE");
	ENSURE(with > before, "VmPTE is %ld kB before and %ld kB with them",
	       before, with);
}

/* A process whose CPUs have many tables, a page in each of many GiB; it never ends. */
static void use_tables(int ready)
{
	pthread_barrier_t barrier;
	pthread_t thread;
	char *p;
	long i;

	MUST(context_sharers(1));
	pthread_barrier_init(&barrier, NULL, 2);
	ENSURE(!pthread_create(&thread, NULL, wait_here, &barrier), "no thread");
	p = mmap(NULL, GIBS * GIB, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	ENSURE(p != MAP_FAILED, "mmap: %m");
	for (i = 0; i < GIBS; i++)
		p[i * GIB] = 1;
	MUST(write(ready, "", 1));
	for (;;)
		pause();
}

/* Somebody holds on to what is left of a process: its tables go all the same. */
static void held_on_to(void)
{
	long before, with, after;
	int ready[2], fd;
	char path[64], c;
	double end;
	pid_t child;

	MUST(pipe(ready));
	before = read_kb("/proc/meminfo", "PageTables");
	child = MUST(fork());
	if (!child)
		use_tables(ready[1]);
	MUST(read(ready[0], &c, 1));
	with = read_kb("/proc/meminfo", "PageTables");
	ENSURE(with - before > GIBS * 10, "%ld kB of tables for %ld GiB",
	       with - before, GIBS);
	snprintf(path, sizeof(path), "/proc/%d/mem", child);
	fd = (int)MUST(open(path, O_RDONLY | O_CLOEXEC));
	MUST(kill(child, SIGKILL));
	MUST(waitpid(child, NULL, 0));
	/* After a grace period: a CPU may be about to load another root. */
	end = seconds() + LEFT_LIMIT_S;
	do {
		sleep_ms(10);
		after = read_kb("/proc/meminfo", "PageTables");
	} while (after - before >= GIBS * 2 && seconds() < end);
	close(fd);
	/* Others come and go meanwhile. */
	ENSURE(after - before < GIBS * 2, "%ld kB of %ld are left", after - before,
	       with - before);
}

int main(int argc, char **argv)
{
	static const struct ktap_case cases[] = {
		{ "on_and_off", on_and_off, 0 },
		{ "wrong_use", wrong_use, 0 },
		{ "too_late", too_late, 0 },
		{ "again", again, 0 },
		{ "inherited", inherited, 0 },
		{ "privileged", privileged, 0 },
		{ "by_root", by_root, 0 },
		{ "with_threads", with_threads, 0 },
		{ "memory_is_locked", memory_is_locked, 0 },
		{ "real_time", real_time, 0 },
		{ "counted", counted, 0 },
		{ "held_on_to", held_on_to, 0 },
	};

	if (argc == 2 && !strcmp(argv[1], "--ask"))
		return context_has_sharers();
	return ktap_main(argc, argv, cases, KTAP_COUNT(cases));
}
