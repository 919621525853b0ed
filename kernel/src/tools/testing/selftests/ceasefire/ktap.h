/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Runner of the attack tests: a program is a table of cases, each case runs in
 * a process (and so in a recycling context) of its own and reports in KTAP.
 *
 * A case returns when it passed; ktap_fail() and ktap_skip() end it. Where it has
 * nothing to attack with, ktap_retry() has it done again, a few times. After each
 * case the runner puts the settings under /sys/kernel/mm/ceasefire back, waits
 * until the context of the case is gone, and looks at the kernel log: a warning
 * or a bug that appeared meanwhile fails the case.
 *
 * Exit status of a program: 0 all passed, 1 one failed, 2 wrong use, 4 nothing
 * but skips, 5 all that failed had nothing to attack with.
 */
#ifndef CEASEFIRE_SELFTEST_KTAP_H
#define CEASEFIRE_SELFTEST_KTAP_H

#include <stdbool.h>
#include <stddef.h>

struct ktap_case {
	const char *name;
	void (*run)(void);
	/* Limit in seconds, ten times the usual length; 0: KTAP_TIMEOUT. */
	unsigned int timeout;
};

#define KTAP_TIMEOUT	120

#define KTAP_COUNT(cases)	(sizeof(cases) / sizeof((cases)[0]))

/* Run the cases named in @argv, or all; returns the exit status. */
int ktap_main(int argc, char **argv, const struct ktap_case *cases,
	      size_t count);

__attribute__((noreturn, format(printf, 1, 2)))
void ktap_fail(const char *format, ...);
__attribute__((noreturn, format(printf, 1, 2)))
void ktap_skip(const char *format, ...);
/*
 * The case has lost what it attacks with: a CPU that held translations ran
 * something else meanwhile, or had not run at all. Fails after the last try.
 */
__attribute__((noreturn, format(printf, 1, 2)))
void ktap_retry(const char *format, ...);
/*
 * What the case finds is wrong, and a machine that is busy for a moment can be
 * the reason, too. It is tried again, and fails when it was so twice and never right.
 */
__attribute__((noreturn, format(printf, 1, 2)))
void ktap_doubt(const char *format, ...);
/* A "# " line below the case; never a verdict. */
__attribute__((format(printf, 1, 2)))
void ktap_note(const char *format, ...);

/* Have the kernel log lines that the case itself provokes ignored. */
void ktap_expect_log(const char *part);

/* A condition of the verdict; the text says what is wrong when it fails. */
#define ENSURE(cond, ...)				\
	do {						\
		if (!(cond))				\
			ktap_fail(__VA_ARGS__);		\
	} while (0)

/* The same where a busy machine can break it once. */
#define ENSURE_ONCE(cond, ...)				\
	do {						\
		if (!(cond))				\
			ktap_doubt(__VA_ARGS__);	\
	} while (0)

/* A condition of the attack, which says nothing about the kernel. */
#define PREMISE(cond, ...)				\
	do {						\
		if (!(cond))				\
			ktap_retry(__VA_ARGS__);	\
	} while (0)

/* For calls that only fail when the machine is short of something. */
#define MUST(call)							\
	({								\
		long must_result = (long)(call);			\
									\
		if (must_result == -1)					\
			ktap_fail("%s:%d: %s: %m", __func__, __LINE__,	\
				  #call);				\
		must_result;						\
	})

#endif
