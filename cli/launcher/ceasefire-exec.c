// SPDX-License-Identifier: GPL-2.0-only
/*
 * ceasefire-exec.c - ask for mechanisms, then become another program
 *
 * What: ceasefire-exec [--fpr=BYTES] [--fpr-context=N] [--latr] [--sharers] [--abis]
 *       [--argv0 NAME] -- PROGRAM [ARGUMENT...]. What is asked for is inherited
 *       over execve(), so the program needs no change and no preloaded library.
 *       --fpr-context is a PR_FPR_CONTEXT_* of linux/ceasefire.h.
 * Who:  systemd, in the drop-ins that `ceasefire enable` writes.
 *
 * It starts services, and so it does as little as it can. It has no C library: it makes
 * the calls prctl(), execve(), and on an error write() and exit_group(), which
 * system call filters of services let pass, and needs no other file where a
 * service has a file system of its own. A kernel that does not have a mechanism,
 * say an older one that was booted again, is no reason for a service not to
 * start: a line on standard error says so, and the program runs without.
 */
#include "../../kernel/src/include/uapi/linux/ceasefire.h"
#include "../../lib/preload/rawsys.h"

#include <errno.h>
#include <stdbool.h>

#define STDERR 2
#define NAME "ceasefire-exec: "

/* As systemd has it for a program that it cannot execute. */
enum { EXIT_USAGE = 2, EXIT_EXEC = 203 };

/* Called by _start below. */
void start(long *stack) __attribute__((noreturn, used));

struct line {
	char text[512];
	size_t length;
};

/* What is too long for a line is cut off; the last byte is for its end. */
static void add(struct line *line, const char *text)
{
	while (*text && line->length < sizeof(line->text) - 1)
		line->text[line->length++] = *text++;
}

static void add_number(struct line *line, unsigned long number)
{
	char digits[21];
	size_t at = sizeof(digits) - 1;

	digits[at] = '\0';
	do {
		digits[--at] = (char)('0' + number % 10);
		number /= 10;
	} while (number);
	add(line, digits + at);
}

static void say(struct line *line)
{
	line->text[line->length++] = '\n';
	raw_write(STDERR, line->text, line->length);
}

static void __attribute__((noreturn)) end(int status)
{
	for (;;)
		raw4(SYS_exit_group, status, 0, 0, 0);
}

static void __attribute__((noreturn)) wrong(const char *what, const char *word)
{
	struct line line = { .length = 0 };

	add(&line, NAME);
	add(&line, what);
	add(&line, word);
	say(&line);
	end(EXIT_USAGE);
}

static void ask(const char *title, long option, long operation,
		unsigned long argument)
{
	long result = raw6(SYS_prctl, option, operation, (long)argument, 0, 0, 0);
	struct line line = { .length = 0 };

	if (!RAW_IS_ERROR(result))
		return;
	add(&line, NAME "the program runs without ");
	add(&line, title);
	if (result == -EINVAL) {
		add(&line, ": this kernel does not have it");
	} else if (result == -EPERM) {
		add(&line, ": it is switched off, or a filter forbids prctl()");
	} else {
		add(&line, ": prctl() failed with error ");
		add_number(&line, (unsigned long)-result);
	}
	say(&line);
}

static bool equal(const char *a, const char *b)
{
	while (*a && *a == *b) {
		a++;
		b++;
	}
	return *a == *b;
}

/* Returns what is behind @prefix, NULL if @word does not begin with it. */
static const char *behind(const char *word, const char *prefix)
{
	while (*prefix) {
		if (*word++ != *prefix++)
			return NULL;
	}
	return word;
}

/* Decimal or, behind 0x, hexadecimal. */
static unsigned long number_of(const char *text, const char *word)
{
	const char *hex = behind(text, "0x");
	const unsigned long base = hex ? 16 : 10;
	unsigned long number = 0, digit;

	text = hex ? hex : text;
	do {
		if (*text >= '0' && *text <= '9')
			digit = (unsigned long)(*text - '0');
		else if (hex && *text >= 'a' && *text <= 'f')
			digit = (unsigned long)(*text - 'a' + 10);
		else
			wrong("not a number: ", word);
		if (__builtin_mul_overflow(number, base, &number) ||
		    __builtin_add_overflow(number, digit, &number))
			wrong("too large a number: ", word);
	} while (*++text);
	return number;
}

static void apply(const char *word)
{
	const char *bytes = behind(word, "--fpr=");
	const char *which = behind(word, "--fpr-context=");

	if (bytes)
		ask("FPR", PR_FPR, PR_FPR_SET_AUTO, number_of(bytes, word));
	else if (which)
		ask("this context of FPR", PR_FPR, PR_FPR_SET_CONTEXT,
		    number_of(which, word));
	else if (equal(word, "--latr"))
		ask("LATR", PR_LATR, PR_LATR_SET, 1);
	else if (equal(word, "--sharers"))
		ask("Sharers", PR_SHARERS, PR_SHARERS_SET, 1);
	else if (equal(word, "--abis"))
		ask("ABIS", PR_ABIS, PR_ABIS_SET, 1);
	else
		wrong("unknown option ", word);
}

static void __attribute__((noreturn)) become(char **argv, char **envp,
					     char *argv0)
{
	const char *program = argv[0];
	struct line line = { .length = 0 };
	long result;

	if (argv0)
		argv[0] = argv0;
	result = raw4(SYS_execve, (long)program, (long)argv, (long)envp, 0);
	add(&line, NAME);
	add(&line, program);
	if (result == -ENOENT) {
		add(&line, ": there is no such program, or its interpreter is missing");
	} else if (result == -EACCES) {
		add(&line, ": it may not be executed");
	} else {
		add(&line, ": execve() failed with error ");
		add_number(&line, (unsigned long)-result);
	}
	say(&line);
	end(EXIT_EXEC);
}

/* @stack: as the kernel has left it, the number of arguments, these, and the environment. */
void start(long *stack)
{
	char **argv = (char **)(stack + 1);
	char **envp = argv + stack[0] + 1;
	char *argv0 = NULL;

	/* A caller may have given not even a name. */
	if (*argv)
		argv++;
	for (; *argv && !equal(*argv, "--"); argv++) {
		if (!equal(*argv, "--argv0")) {
			apply(*argv);
			continue;
		}
		argv0 = *++argv;
		if (!argv0)
			wrong("--argv0 needs a name", "");
	}
	if (!*argv || !*++argv)
		wrong("say which program: ceasefire-exec [OPTION...] -- PROGRAM [ARGUMENT...]",
		      "");
	become(argv, envp, argv0);
}

/* The outermost frame has no caller, and the stack is as any function expects it. */
__asm__(".pushsection .text\n"
	".globl _start\n"
	".type _start, @function\n"
	"_start:\n"
	"	xor	%ebp, %ebp\n"
	"	mov	%rsp, %rdi\n"
	"	and	$-16, %rsp\n"
	"	call	start\n"
	"	hlt\n"
	".size _start, . - _start\n"
	".popsection\n");
