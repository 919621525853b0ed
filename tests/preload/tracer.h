/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * tracer.h - run a program and see which mmap() calls reach the kernel
 *
 * Who: the tests of the preload library. They need no kernel with FPR: the
 * tracer answers for it where the answer matters.
 */
#ifndef TESTS_TRACER_H
#define TESTS_TRACER_H

#include <stdbool.h>
#include <stddef.h>

#define MAX_CALLS 4096
#define MAX_OUTPUT 16384

/* What the traced program believes about the kernel. */
enum kernel_answer {
	KERNEL_WITH_FPR,	/* the sysfs folder is there */
	KERNEL_WITHOUT_FPR,	/* /sys is there, the folder is not */
	KERNEL_WITHOUT_SYSFS,	/* nothing is there to ask */
};

struct traced_call {
	unsigned long addr;
	unsigned long length;
	unsigned long flags;
	long fd;
	long result;
};

struct trace {
	/* In: how to run it. */
	char *const *argv;
	char *const *env;
	enum kernel_answer answer;
	int refuse;		/* errno for each mmap() with MAP_FPR, 0: none */
	bool only_start;	/* stop tracing when the program asks for it */

	/* Out: what happened. */
	struct traced_call calls[MAX_CALLS];
	size_t count;
	unsigned long steps;	/* user instructions between the marks */
	int status;		/* exit status, 128 + signal */
	char output[MAX_OUTPUT]; /* standard error */
};

/* System calls by which the traced program talks to the tracer. */
#define MARK_SYSCALL SYS_getppid
#define MARK_COUNT_ON 0x7e57c001UL
#define MARK_COUNT_OFF 0x7e57c002UL
#define MARK_DETACH 0x7e57c003UL
#define MARK_HELD 0x7e57c004UL
#define MARK_MAPPING 0x7e57c005UL

void trace_run(struct trace *trace);
void trace_calls_of(const struct trace *trace, unsigned long length, char *text,
		    size_t size);

#endif /* TESTS_TRACER_H */
