// SPDX-License-Identifier: GPL-2.0-only
/*
 * held.c - a thread with the flag in hand while another sets up a filter
 *
 * What: runs `sandboxed held` and stops its second thread right before the
 *       instruction that makes an mmap() with MAP_FPR. The first thread may then
 *       go on. The second one is let go when the first has its filter, which
 *       kills it, or after many calls that show that the first one waits.
 * Who:  test-sandbox.c.
 */
#include "held.h"
#include "tracer.h"

#include "../../lib/include/ceasefire.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

/* So many calls of the first thread are a wait. */
#define PATIENCE 20

static struct held result;
static pid_t first, held_thread;
/* Whether the first thread has seen that the other one is held. */
static bool told;

static void go_on(pid_t pid, int signal)
{
	if (ptrace(PTRACE_SYSCALL, pid, NULL, (void *)(long)signal))
		perror("PTRACE_SYSCALL");
}

static void let_go(void)
{
	if (held_thread)
		go_on(held_thread, 0);
	held_thread = 0;
}

/* Answers the library's question for FPR, and the program's for its thread. */
static void change_result(pid_t pid, struct user_regs_struct *regs, long value)
{
	regs->rax = (unsigned long long)value;
	ptrace(PTRACE_SETREGS, pid, NULL, regs);
}

/* Step to the next system call. True: it is an mmap() with the flag. */
static bool step_to_mapping(pid_t pid)
{
	struct user_regs_struct regs;
	int status;
	long word;

	do {
		if (ptrace(PTRACE_SINGLESTEP, pid, NULL, NULL) ||
		    waitpid(pid, &status, __WALL) != pid || !WIFSTOPPED(status))
			return false;
		ptrace(PTRACE_GETREGS, pid, NULL, &regs);
		word = ptrace(PTRACE_PEEKTEXT, pid, (void *)regs.rip, NULL);
		/* 0f 05: syscall */
	} while ((word & 0xffff) != 0x050f);
	return regs.rax == SYS_mmap && (regs.r10 & MAP_FPR);
}

/* A system call begins or ends in @pid. False: it must not go on. */
static bool at_call(pid_t pid)
{
	struct __ptrace_syscall_info info;
	struct user_regs_struct regs;

	ptrace(PTRACE_GETREGS, pid, NULL, &regs);
	if (ptrace(PTRACE_GET_SYSCALL_INFO, pid, sizeof(info), &info) <= 0)
		return true;
	if (info.op == PTRACE_SYSCALL_INFO_ENTRY) {
		if (pid == first && told && held_thread &&
		    regs.orig_rax != SYS_seccomp && ++result.waited == PATIENCE)
			let_go();
		return true;
	}
	/* The kernel of this machine need not have FPR. */
	if (regs.orig_rax == SYS_access)
		change_result(pid, &regs, 0);
	if (regs.orig_rax == MARK_SYSCALL && regs.rdi == MARK_HELD &&
	    result.was_held) {
		change_result(pid, &regs, HELD_YES);
		told = true;
	}
	if (regs.orig_rax == MARK_SYSCALL && regs.rdi == MARK_MAPPING &&
	    step_to_mapping(pid)) {
		result.was_held = 1;
		held_thread = pid;
		return false;
	}
	/* Nobody waited for it: into the filter. */
	if (pid == first && regs.orig_rax == SYS_seccomp)
		let_go();
	return true;
}

static void start(char *const *argv, char *const *env)
{
	alarm(60);
	if (ptrace(PTRACE_TRACEME, 0, NULL, NULL))
		_exit(125);
	raise(SIGSTOP);
	execve(argv[0], argv, env);
	_exit(127);
}

struct held held_run(char *const *argv, char *const *env)
{
	int status;
	pid_t pid;

	result = (struct held){ .status = -1 };
	fflush(stdout);
	first = fork();
	if (!first)
		start(argv, env);
	if (first < 0 || waitpid(first, &status, 0) != first) {
		perror("fork");
		exit(1);
	}
	if (ptrace(PTRACE_SETOPTIONS, first, NULL,
		   (void *)(PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL |
			    PTRACE_O_TRACECLONE))) {
		perror("PTRACE_SETOPTIONS");
		exit(1);
	}
	go_on(first, 0);
	while ((pid = waitpid(-1, &status, __WALL)) > 0) {
		int signal;

		if (!WIFSTOPPED(status)) {
			if (pid == first)
				result.status = WIFEXITED(status) ?
						WEXITSTATUS(status) :
						128 + WTERMSIG(status);
			continue;
		}
		signal = WSTOPSIG(status);
		if (signal == (SIGTRAP | 0x80)) {
			if (at_call(pid))
				go_on(pid, 0);
		} else {
			/* execve, clone, the first stop of a thread */
			go_on(pid, signal == SIGTRAP || signal == SIGSTOP ?
				   0 : signal);
		}
	}
	return result;
}
