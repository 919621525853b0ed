// SPDX-License-Identifier: GPL-2.0-only
/*
 * sandboxed.c - programs that put themselves behind a seccomp filter
 *
 * What: `sandboxed CASE FILE` maps the file (70001), sets up a real filter that
 *       kills the process at an mmap() flag it does not know, each case in
 *       another way, and maps the file again (70002). Exit status 0: alive.
 * Who:  test-sandbox.c, held.c.
 */
#include "held.h"
#include "tracer.h"

#include "../../lib/include/ceasefire.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define FIRST_LENGTH 70001UL
#define ODD_ERRNO 4711

static int file;
static char **arguments;

static void die(const char *what)
{
	dprintf(STDERR_FILENO, "sandboxed: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void map(unsigned long which)
{
	void *p = mmap(NULL, FIRST_LENGTH + which, PROT_READ, MAP_PRIVATE, file, 0);

	if (p == MAP_FAILED || memcmp(p, "data", 4) != 0)
		die("mmap");
}

#define LOAD_NUMBER \
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))
#define LOAD_FLAGS \
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[3]))
#define ALLOW BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
#define KILL BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)
#define ALLOW_CALL(name) \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##name, 0, 1), ALLOW

/* Everything but an mmap() with an unknown flag. */
static struct sock_filter flag_filter[] = {
	LOAD_NUMBER,
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mmap, 1, 0),
	ALLOW,
	LOAD_FLAGS,
	BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, MAP_FPR, 0, 1),
	KILL,
	ALLOW,
};

/* Only what this program does itself from here on. */
static struct sock_filter tight_filter[] = {
	LOAD_NUMBER,
	ALLOW_CALL(exit_group),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mmap, 1, 0),
	KILL,
	LOAD_FLAGS,
	BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, MAP_FPR, 0, 1),
	KILL,
	ALLOW,
};

/* Only what starts a program: execve, the dynamic linker, the C library. */
static struct sock_filter exec_filter[] = {
	LOAD_NUMBER,
	ALLOW_CALL(execve), ALLOW_CALL(brk), ALLOW_CALL(access),
	ALLOW_CALL(openat), ALLOW_CALL(read), ALLOW_CALL(pread64),
	ALLOW_CALL(newfstatat), ALLOW_CALL(close), ALLOW_CALL(munmap),
	ALLOW_CALL(mprotect), ALLOW_CALL(arch_prctl), ALLOW_CALL(getrandom),
	ALLOW_CALL(set_tid_address), ALLOW_CALL(set_robust_list),
	ALLOW_CALL(rseq), ALLOW_CALL(prlimit64), ALLOW_CALL(exit_group),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mmap, 1, 0),
	KILL,
	LOAD_FLAGS,
	BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, MAP_FPR, 0, 1),
	KILL,
	ALLOW,
};

#define PROGRAM(filter) \
	(&(struct sock_fprog){ sizeof(filter) / sizeof(filter[0]), filter })

static long raw(long nr, long a, long b, long c, long d, long e)
{
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	long ret;

	__asm__ volatile("syscall"
			 : "=a"(ret)
			 : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8)
			 : "rcx", "r11", "memory");
	return ret;
}

/* Past the library: only the call that a case is about is to be seen by it. */
static void no_new_privileges(void)
{
	if (raw(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		die("PR_SET_NO_NEW_PRIVS");
}

static void filter_by_prctl(struct sock_fprog *program)
{
	no_new_privileges();
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, program, 0, 0))
		die("prctl");
}

static void filter_by_seccomp(unsigned int flags)
{
	no_new_privileges();
	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags,
		    PROGRAM(flag_filter)))
		die("seccomp");
}

static void case_prctl(void)
{
	map(0);
	filter_by_prctl(PROGRAM(flag_filter));
	map(1);
}

static void case_seccomp(void)
{
	map(0);
	filter_by_seccomp(0);
	map(1);
}

static void case_prctl_by_syscall(void)
{
	map(0);
	no_new_privileges();
	if (syscall(SYS_prctl, PR_SET_SECCOMP, SECCOMP_MODE_FILTER,
		    PROGRAM(flag_filter), 0, 0))
		die("syscall(SYS_prctl)");
	map(1);
}

/* The upper half of a number and of an option is not looked at by the kernel. */
static void case_odd_numbers(void)
{
	map(0);
	no_new_privileges();
	if (syscall((5L << 32) | SYS_prctl, (7L << 32) | PR_SET_SECCOMP,
		    SECCOMP_MODE_FILTER, PROGRAM(flag_filter), 0, 0))
		die("syscall(SYS_prctl)");
	map(1);
}

/* The filter itself is not seen, but what has to come before it. */
static void case_announced(void)
{
	map(0);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		die("PR_SET_NO_NEW_PRIVS");
	if (raw(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0,
		(long)PROGRAM(flag_filter), 0, 0))
		die("seccomp");
	map(1);
}

/* Any call that the library makes for itself is the end. */
static void case_tight(void)
{
	map(0);
	filter_by_prctl(PROGRAM(tight_filter));
	map(1);
}

static void start_again(const char *which)
{
	char *const argv[] = { arguments[0], (char *)which, arguments[2], NULL };

	execve("/proc/self/exe", argv, environ);
	die("execve");
}

static void case_plain(void)
{
	map(1);
}

static void case_inherited(void)
{
	map(0);
	filter_by_prctl(PROGRAM(flag_filter));
	start_again("plain");
}

static void case_inherited_tight(void)
{
	map(0);
	filter_by_prctl(PROGRAM(exec_filter));
	start_again("plain");
}

static void wait_for(pid_t pid)
{
	int status;

	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		die("fork");
	if (status) {
		errno = EINTR;
		die("a child died");
	}
}

/* A child inherits the filter; what the child does is not traced. */
static void case_fork_behind(void)
{
	pid_t pid;

	map(0);
	filter_by_prctl(PROGRAM(flag_filter));
	pid = fork();
	if (!pid) {
		map(1);
		_exit(0);
	}
	wait_for(pid);
	map(1);
}

/* Zygotes and servers: only the child is behind the filter. */
static void case_fork_before(void)
{
	pid_t pid = fork();

	if (!pid) {
		map(0);
		filter_by_seccomp(0);
		map(1);
		_exit(0);
	}
	wait_for(pid);
	map(0);
}

static pthread_barrier_t barrier;

static void *map_behind_barrier(void *unused)
{
	(void)unused;
	map(0);
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
	map(1);
	return NULL;
}

/* All threads at once; they exist already. */
static void case_threads(void)
{
	pthread_t threads[3];

	pthread_barrier_init(&barrier, NULL, 4);
	for (int i = 0; i < 3; i++)
		pthread_create(&threads[i], NULL, map_behind_barrier, NULL);
	map(0);
	pthread_barrier_wait(&barrier);
	filter_by_seccomp(SECCOMP_FILTER_FLAG_TSYNC);
	pthread_barrier_wait(&barrier);
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	map(1);
}

static void *filter_and_map(void *unused)
{
	(void)unused;
	filter_by_seccomp(0);
	map(1);
	return NULL;
}

/* One thread for itself, and what it starts. */
static void case_one_thread(void)
{
	pthread_t thread;

	map(0);
	pthread_create(&thread, NULL, filter_and_map, NULL);
	pthread_join(thread, NULL);
	map(1);
}

static void *map_held(void *unused)
{
	(void)unused;
	syscall(MARK_SYSCALL, MARK_MAPPING);
	mmap(NULL, FIRST_LENGTH + 1, PROT_READ, MAP_PRIVATE, file, 0);
	return NULL;
}

/* See held.c: the thread stands at the door of the kernel, flag in hand. */
static void case_held(void)
{
	pthread_t thread;

	map(0);
	pthread_create(&thread, NULL, map_held, NULL);
	while (syscall(MARK_SYSCALL, MARK_HELD) != HELD_YES)
		;
	filter_by_seccomp(SECCOMP_FILTER_FLAG_TSYNC);
	pthread_join(thread, NULL);
}

/* Questions turn nothing off. */
static void case_questions(void)
{
	map(0);
	if (prctl(PR_GET_SECCOMP, 0, 0, 0, 0) || prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0))
		die("PR_GET_SECCOMP");
	map(1);
}

static void expect(int ok, const char *what)
{
	if (!ok)
		die(what);
}

/* The two calls that the library stands before do what they always did. */
static void case_calls(void)
{
	char name[17] = "";
	pid_t pid;
	char *p;

	errno = ODD_ERRNO;
	expect(prctl(PR_SET_NAME, "a name", 0, 0, 0) == 0, "PR_SET_NAME");
	expect(prctl(PR_GET_NAME, name, 0, 0, 0) == 0 && !strcmp(name, "a name"),
	       "PR_GET_NAME");
	expect(syscall(SYS_getpid) == getpid(), "syscall(SYS_getpid)");
	expect(errno == ODD_ERRNO, "errno changed by a call that worked");
	expect(prctl(-1, 0, 0, 0, 0) == -1 && errno == EINVAL, "prctl(-1)");
	expect(prctl(PR_SET_DUMPABLE, 7, 0, 0, 0) == -1 && errno == EINVAL,
	       "PR_SET_DUMPABLE");
	expect(syscall(SYS_close, -1) == -1 && errno == EBADF, "a bad descriptor");
	expect(syscall(-1) == -1 && errno == ENOSYS, "no such call");
	/* Six arguments; the last one comes on the stack. */
	p = (char *)syscall(SYS_mmap, NULL, 4096, PROT_READ, MAP_PRIVATE, file, 4096);
	expect(p != MAP_FAILED && !p[0], "six arguments");
	pid = (pid_t)syscall(SYS_fork);
	if (!pid)
		_exit(0);
	wait_for(pid);
	map(0);
}

static const struct {
	const char *name;
	void (*run)(void);
} cases[] = {
	{ "prctl", case_prctl },
	{ "seccomp", case_seccomp },
	{ "prctl-by-syscall", case_prctl_by_syscall },
	{ "odd-numbers", case_odd_numbers },
	{ "announced", case_announced },
	{ "tight", case_tight },
	{ "plain", case_plain },
	{ "inherited", case_inherited },
	{ "inherited-tight", case_inherited_tight },
	{ "fork-behind", case_fork_behind },
	{ "fork-before", case_fork_before },
	{ "threads", case_threads },
	{ "one-thread", case_one_thread },
	{ "held", case_held },
	{ "questions", case_questions },
	{ "calls", case_calls },
};

int main(int argc, char **argv)
{
	arguments = argv;
	for (size_t i = 0; argc == 3 && i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (strcmp(argv[1], cases[i].name) == 0) {
			file = open(argv[2], O_RDONLY | O_CLOEXEC);
			if (file < 0)
				die(argv[2]);
			cases[i].run();
			return 0;
		}
	}
	fprintf(stderr, "usage: sandboxed CASE FILE\n");
	return 2;
}
