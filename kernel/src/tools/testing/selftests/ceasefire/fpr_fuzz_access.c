// SPDX-License-Identifier: GPL-2.0
/*
 * Accesses of the fuzzer: a fault is a result. Only accesses to memory that is
 * mapped come here, with rights that may be missing, or behind the end of its
 * file; any other fault kills the process.
 *
 * Called by all threads, and by what they fork.
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>

#include "env.h"
#include "fpr_fuzz.h"
#include "ktap.h"

static __thread sigjmp_buf escape;
static __thread volatile sig_atomic_t accessing;
static __thread struct fuzz_fault caught;

static void on_fault(int number, siginfo_t *info, void *unused)
{
	(void)unused;
	if (!accessing) {
		signal(number, SIG_DFL);
		return;
	}
	caught.signal = number;
	caught.code = info->si_code;
	caught.at = (uintptr_t)info->si_addr;
	siglongjmp(escape, 1);
}

void fuzz_catch_faults(void)
{
	/* No mask to restore: an access makes no system call. */
	struct sigaction action = {
		.sa_sigaction = on_fault, .sa_flags = SA_NODEFER | SA_SIGINFO,
	};

	MUST(sigaction(SIGSEGV, &action, NULL));
	MUST(sigaction(SIGBUS, &action, NULL));
}

/* The first fault of an operation is kept; sums tell of the others. */
static uint64_t note(const void *addr, struct fuzz_fault *fault)
{
	accessing = 0;
	caught.at -= (uintptr_t)addr;
	if (!fault->signal)
		*fault = caught;
	return fuzz_mix((uint64_t)caught.signal << 32 | (uint32_t)caught.code,
			caught.at);
}

static uint64_t sum(const volatile uint64_t *word, size_t words)
{
	uint64_t result = 0;
	size_t i;

	for (i = 0; i < words; i++)
		result = fuzz_mix(result, word[i]);
	return result;
}

/* A sum of what is there, or one that says how it faults. */
uint64_t fuzz_sum(const void *addr, size_t words, struct fuzz_fault *fault)
{
	uint64_t result;

	if (sigsetjmp(escape, 0))
		return note(addr, fault);
	accessing = 1;
	result = sum(addr, words);
	accessing = 0;
	return result;
}

bool fuzz_store(void *addr, uint64_t word, struct fuzz_fault *fault)
{
	if (sigsetjmp(escape, 0)) {
		note(addr, fault);
		return false;
	}
	accessing = 1;
	*(volatile uint64_t *)addr = word;
	accessing = 0;
	return true;
}
