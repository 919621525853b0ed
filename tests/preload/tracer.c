// SPDX-License-Identifier: GPL-2.0-only
/*
 * tracer.c - run a program and see which mmap() calls reach the kernel
 *
 * What: a small ptrace(2) loop. It records the mmap calls, answers the question
 *       for the kernel's sysfs folder, refuses the flag when told to, and
 *       counts user instructions between two marks.
 * Who:  test-preload.c.
 */
#include "tracer.h"

#include "../../lib/include/ceasefire.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#define KERNEL_MM "/sys/kernel/mm"
#define KERNEL_FPR KERNEL_MM "/ceasefire/fpr"
#define LIMIT_SECONDS 60

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static void read_string(pid_t pid, unsigned long from, char *to, size_t size)
{
	for (size_t i = 0; i < size; i += sizeof(long)) {
		long word;

		errno = 0;
		word = ptrace(PTRACE_PEEKDATA, pid, (void *)(from + i), NULL);
		if (errno) {
			to[i] = '\0';
			return;
		}
		memcpy(to + i, &word, sizeof(word));
		if (memchr(&word, 0, sizeof(word)))
			return;
	}
	to[size - 1] = '\0';
}

/* The answer to access(2), 1 when the kernel itself may answer. */
static long answer_access(const struct trace *trace, const char *path)
{
	bool fpr = strcmp(path, KERNEL_FPR) == 0;
	bool mm = strcmp(path, KERNEL_MM) == 0;

	if (!fpr && !mm)
		return 1;
	if (trace->answer == KERNEL_WITH_FPR)
		return 0;
	if (trace->answer == KERNEL_WITHOUT_FPR)
		return mm ? 0 : -ENOENT;
	return -ENOENT;
}

static void set_result(pid_t pid, struct user_regs_struct *regs, long result)
{
	regs->rax = (unsigned long long)result;
	if (ptrace(PTRACE_SETREGS, pid, NULL, regs))
		fail("PTRACE_SETREGS");
}

/* Make the call that is about to start do nothing. */
static void cancel_call(pid_t pid, struct user_regs_struct *regs)
{
	regs->orig_rax = (unsigned long long)-1;
	if (ptrace(PTRACE_SETREGS, pid, NULL, regs))
		fail("PTRACE_SETREGS");
}

/* What happens at the end of the call that is running. */
struct pending {
	bool inside;
	bool forced;
	long result;
	struct traced_call *call;
};

static void enter_call(struct trace *trace, pid_t pid, struct pending *now)
{
	struct user_regs_struct regs;
	char path[64];

	if (ptrace(PTRACE_GETREGS, pid, NULL, &regs))
		fail("PTRACE_GETREGS");
	*now = (struct pending){ .inside = true };
	if (regs.orig_rax == SYS_access) {
		read_string(pid, regs.rdi, path, sizeof(path));
		now->result = answer_access(trace, path);
		now->forced = now->result != 1;
	}
	if (regs.orig_rax == SYS_mmap && trace->count < MAX_CALLS) {
		now->call = &trace->calls[trace->count++];
		*now->call = (struct traced_call){
			.addr = regs.rdi,
			.length = regs.rsi,
			.flags = regs.r10,
			.fd = (int)regs.r8,
		};
		if (trace->refuse && (regs.r10 & MAP_FPR)) {
			now->forced = true;
			now->result = -trace->refuse;
		}
	}
	if (now->forced)
		cancel_call(pid, &regs);
}

static void leave_call(pid_t pid, struct pending *now)
{
	struct user_regs_struct regs;

	if (ptrace(PTRACE_GETREGS, pid, NULL, &regs))
		fail("PTRACE_GETREGS");
	if (now->forced)
		set_result(pid, &regs, now->result);
	if (now->call)
		now->call->result = now->forced ? now->result : (long)regs.rax;
	now->inside = false;
}

static unsigned long mark_of(pid_t pid)
{
	struct user_regs_struct regs;

	if (ptrace(PTRACE_GETREGS, pid, NULL, &regs))
		fail("PTRACE_GETREGS");
	return regs.orig_rax == MARK_SYSCALL ? regs.rdi : 0;
}

/* Count instructions until the second mark is about to be made. */
static bool count_steps(struct trace *trace, pid_t pid, int *status)
{
	for (;;) {
		struct user_regs_struct regs;
		long word;

		if (ptrace(PTRACE_SINGLESTEP, pid, NULL, NULL))
			fail("PTRACE_SINGLESTEP");
		if (waitpid(pid, status, 0) != pid || !WIFSTOPPED(*status))
			return false;
		if (ptrace(PTRACE_GETREGS, pid, NULL, &regs))
			fail("PTRACE_GETREGS");
		word = ptrace(PTRACE_PEEKTEXT, pid, (void *)regs.rip, NULL);
		/* 0f 05: syscall */
		if ((word & 0xffff) == 0x050f && regs.rax == MARK_SYSCALL &&
		    regs.rdi == MARK_COUNT_OFF)
			return true;
		trace->steps++;
	}
}

static void follow(struct trace *trace, pid_t pid)
{
	struct pending now = { 0 };
	int status, signal = 0;

	for (;;) {
		if (ptrace(PTRACE_SYSCALL, pid, NULL, (void *)(long)signal))
			fail("PTRACE_SYSCALL");
		if (waitpid(pid, &status, 0) != pid)
			fail("waitpid");
		signal = 0;
		if (!WIFSTOPPED(status))
			break;
		if (WSTOPSIG(status) != (SIGTRAP | 0x80)) {
			signal = WSTOPSIG(status);
			if (signal == SIGTRAP)	/* execve */
				signal = 0;
			continue;
		}
		if (!now.inside) {
			enter_call(trace, pid, &now);
			continue;
		}
		leave_call(pid, &now);
		if (mark_of(pid) == MARK_COUNT_ON &&
		    !count_steps(trace, pid, &status))
			break;
		if (trace->only_start && mark_of(pid) == MARK_DETACH) {
			ptrace(PTRACE_DETACH, pid, NULL, NULL);
			if (waitpid(pid, &status, 0) != pid)
				fail("waitpid");
			break;
		}
	}
	trace->status = WIFEXITED(status) ? WEXITSTATUS(status) :
					    128 + WTERMSIG(status);
}

static void start_child(const struct trace *trace, int error_file)
{
	if (dup2(error_file, STDERR_FILENO) < 0)
		_exit(126);
	/* An alarm outlives execve: nothing here may hang. */
	alarm(LIMIT_SECONDS);
	if (ptrace(PTRACE_TRACEME, 0, NULL, NULL))
		_exit(125);
	raise(SIGSTOP);
	execve(trace->argv[0], trace->argv, trace->env);
	_exit(127);
}

void trace_run(struct trace *trace)
{
	int error_file = memfd_create("stderr", MFD_CLOEXEC);
	ssize_t length;
	int status;
	pid_t pid;

	if (error_file < 0)
		fail("memfd_create");
	trace->count = 0;
	trace->steps = 0;
	fflush(stdout);
	pid = fork();
	if (pid < 0)
		fail("fork");
	if (!pid)
		start_child(trace, error_file);
	if (waitpid(pid, &status, 0) != pid || !WIFSTOPPED(status)) {
		fprintf(stderr, "the child could not be traced, status %x\n",
			(unsigned int)status);
		exit(1);
	}
	if (ptrace(PTRACE_SETOPTIONS, pid, NULL,
		   (void *)(PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL)))
		fail("PTRACE_SETOPTIONS");
	follow(trace, pid);

	length = pread(error_file, trace->output, sizeof(trace->output) - 1, 0);
	trace->output[length > 0 ? length : 0] = '\0';
	close(error_file);
}

/*
 * Describe the calls with @length, one letter each: f with the flag, p plain,
 * a capital letter when the call failed.
 */
void trace_calls_of(const struct trace *trace, unsigned long length, char *text,
		    size_t size)
{
	size_t n = 0;

	for (size_t i = 0; i < trace->count && n + 1 < size; i++) {
		const struct traced_call *call = &trace->calls[i];
		bool failed = call->result < 0 && call->result > -4096;

		if (call->length != length)
			continue;
		text[n] = call->flags & MAP_FPR ? 'f' : 'p';
		if (failed)
			text[n] = (char)(text[n] - 'a' + 'A');
		n++;
	}
	text[n] = '\0';
}
