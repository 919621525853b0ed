// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * sandbox.c - no flag, and no call of our own, behind a seccomp filter
 *
 * What: tells whether a filter was inherited, and stands before prctl() and
 *       syscall() to see the program set one up. From then on the library does
 *       nothing in this process, for good.
 * Who:  config.c asks at the start, mmap.c at each mapping; any program calls
 *       prctl() and syscall().
 *
 * A filter may take MAP_FPR, or any call that the program does not make itself,
 * for an attack and kill the program. Asking the kernel (PR_GET_SECCOMP) is such
 * a call, so it is never asked once a filter may be there:
 * - an inherited filter is read from /proc with the calls by which the dynamic
 *   linker has just opened the libraries, so they are allowed;
 * - a filter of the program's own is seen coming. no_new_privs, which nearly
 *   every filter needs first, counts as one: the filter itself may then be made
 *   without the C library.
 * What is not seen: a program that does both without the C library.
 *
 * No lock. A filter for all threads (TSYNC) waits until no other thread is
 * between its decision and its call, see window_open().
 */
#include "sandbox.h"

#include "config.h"
#include "rawsys.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <stdarg.h>
#include <sys/prctl.h>
#include <time.h>

#ifndef PR_SET_SYSCALL_USER_DISPATCH
#define PR_SET_SYSCALL_USER_DISPATCH 59
#endif

#define EXPORT __attribute__((visibility("default")))

/* How long a filter for all threads waits: a mapping takes microseconds. */
#define WAIT_YIELDS 100
#define WAIT_MILLISECONDS 1000

/* Called by syscall() below. */
void sandbox_look(unsigned int number, unsigned int first, unsigned int second)
	__attribute__((visibility("hidden"), used));
long sandbox_error(long result) __attribute__((visibility("hidden"), used));

atomic_bool sandbox_entered;

/*
 * Whether the kernel looks at the calls of this thread, or may do so: without
 * /proc nobody can tell. Calls nothing that the dynamic linker has not called
 * with the same arguments.
 */
bool sandbox_inherited(void)
{
	static const char wanted[] = "\nSeccomp:\t";
	char text[512];
	size_t matched = 0;
	long n, fd;

	fd = raw_openat(AT_FDCWD, "/proc/thread-self/status",
			O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return true;
	while ((n = raw_read((int)fd, text, sizeof(text))) > 0) {
		for (long i = 0; i < n; i++) {
			if (!wanted[matched]) {
				raw_close((int)fd);
				return text[i] != '0';
			}
			if (text[i] == wanted[matched])
				matched++;
			else
				matched = text[i] == wanted[0];
		}
	}
	raw_close((int)fd);
	/* No such line: this kernel has no filters. */
	return n < 0;
}

/* A thread that is killed or jumps out of a signal handler never leaves. */
static void wait_for_windows(struct window *windows)
{
	const struct timespec millisecond = { 0, 1000000 };
	unsigned int turns = 0;

	for (size_t i = 0; i < WINDOWS; i++) {
		while (atomic_load(&windows[i].inside) > 0) {
			if (turns++ < WAIT_YIELDS)
				raw4(SYS_sched_yield, 0, 0, 0, 0);
			else if (turns < WAIT_YIELDS + WAIT_MILLISECONDS)
				raw4(SYS_nanosleep, (long)&millisecond, 0, 0, 0);
			else
				return;
		}
	}
}

/* The program is about to set up a filter, or has announced one. */
static void enter(bool all_threads)
{
	const struct config *config = atomic_load(&config_published);
	bool before = atomic_exchange(&sandbox_entered, true);
	struct line line;

	/* Who has not read the settings yet will see the mark. */
	if (!config || !config->windows)
		return;
	if (all_threads)
		wait_for_windows(config->windows);
	if (before)
		return;
	/* The last words: at exit there may be a filter. */
	if (config->stats)
		stats_say(config->stats, &config->output);
	if (config->verbose < VERBOSE_START)
		return;
	line_start(&line);
	line_text(&line, "does nothing from here on: the program enters a sandbox");
	line_send(&line, &config->output);
}

static void look_at_prctl(int option)
{
	if (option == PR_SET_SECCOMP || option == PR_SET_NO_NEW_PRIVS ||
	    option == PR_SET_SYSCALL_USER_DISPATCH)
		enter(false);
}

/* For the two numbers only; the kernel looks at the lower halves. */
void sandbox_look(unsigned int number, unsigned int first, unsigned int second)
{
	if (number == SYS_prctl)
		look_at_prctl((int)first);
	else if (first != SECCOMP_GET_ACTION_AVAIL &&
		 first != SECCOMP_GET_NOTIF_SIZES)
		enter(first == SECCOMP_SET_MODE_FILTER &&
		      (second & SECCOMP_FILTER_FLAG_TSYNC));
}

EXPORT int prctl(int option, ...)
{
	long result, a, b, c, d;
	va_list list;

	va_start(list, option);
	a = va_arg(list, long);
	b = va_arg(list, long);
	c = va_arg(list, long);
	d = va_arg(list, long);
	va_end(list);
	look_at_prctl(option);
	result = raw6(SYS_prctl, option, a, b, c, d, 0);
	if (RAW_IS_ERROR(result)) {
		errno = (int)-result;
		return -1;
	}
	return (int)result;
}

long sandbox_error(long result)
{
	errno = (int)-result;
	return -1;
}

/*
 * long syscall(long number, ...), without a frame: a program may make calls with
 * it that return twice or on another stack (vfork, clone). The kernel looks at
 * the lower half of a number, and takes the bit of x32 from it.
 */
__asm__(".pushsection .text\n"
	".globl syscall\n"
	".type syscall, @function\n"
	".p2align 4\n"
	"syscall:\n"
	"	.cfi_startproc\n"
	"	endbr64\n"
	"	mov %edi, %eax\n"
	"	and $0xbfffffff, %eax\n"
	"	cmp $157, %eax\n"	/* SYS_prctl */
	"	je 2f\n"
	"	cmp $317, %eax\n"	/* SYS_seccomp */
	"	je 2f\n"
	"1:	mov %rdi, %rax\n"
	"	mov %rsi, %rdi\n"
	"	mov %rdx, %rsi\n"
	"	mov %rcx, %rdx\n"
	"	mov %r8, %r10\n"
	"	mov %r9, %r8\n"
	"	mov 8(%rsp), %r9\n"
	"	syscall\n"
	"	cmp $-4095, %rax\n"
	"	jae 3f\n"
	"	ret\n"
	"2:	push %rdi\n"
	"	.cfi_adjust_cfa_offset 8\n"
	"	push %rsi\n"
	"	.cfi_adjust_cfa_offset 8\n"
	"	push %rdx\n"
	"	.cfi_adjust_cfa_offset 8\n"
	"	push %rcx\n"
	"	.cfi_adjust_cfa_offset 8\n"
	"	push %r8\n"
	"	.cfi_adjust_cfa_offset 8\n"
	"	push %r9\n"
	"	.cfi_adjust_cfa_offset 8\n"
	"	sub $8, %rsp\n"
	"	.cfi_adjust_cfa_offset 8\n"
	"	mov %eax, %edi\n"
	"	call sandbox_look\n"
	"	add $8, %rsp\n"
	"	.cfi_adjust_cfa_offset -8\n"
	"	pop %r9\n"
	"	.cfi_adjust_cfa_offset -8\n"
	"	pop %r8\n"
	"	.cfi_adjust_cfa_offset -8\n"
	"	pop %rcx\n"
	"	.cfi_adjust_cfa_offset -8\n"
	"	pop %rdx\n"
	"	.cfi_adjust_cfa_offset -8\n"
	"	pop %rsi\n"
	"	.cfi_adjust_cfa_offset -8\n"
	"	pop %rdi\n"
	"	.cfi_adjust_cfa_offset -8\n"
	"	jmp 1b\n"
	"3:	mov %rax, %rdi\n"
	"	jmp sandbox_error\n"
	"	.cfi_endproc\n"
	".size syscall, .-syscall\n"
	".popsection\n");

_Static_assert(SYS_prctl == 157 && SYS_seccomp == 317, "the numbers above");
