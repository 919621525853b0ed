/* SPDX-License-Identifier: GPL-2.0 */
/* Options of the fuzzers: what is wrong with them is one line, and exit status 2. */
#ifndef CEASEFIRE_SELFTEST_FUZZ_OPTIONS_H
#define CEASEFIRE_SELFTEST_FUZZ_OPTIONS_H

#include <stdint.h>

__attribute__((noreturn, format(printf, 1, 2)))
void fuzz_wrong_use(const char *format, ...);
/* The value of an option, a number in a range. */
uint64_t fuzz_number(const char *option, const char *text, uint64_t least,
		     uint64_t most);
/* The same for one that is small. */
unsigned int fuzz_count(const char *option, const char *text, unsigned int least,
			unsigned int most);
/* A seed to begin with. */
uint64_t fuzz_any_seed(void);

#endif
