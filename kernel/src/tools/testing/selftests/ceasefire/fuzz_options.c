// SPDX-License-Identifier: GPL-2.0
/* Options of the fuzzers, see fuzz_options.h. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

#include "fuzz_options.h"

void fuzz_wrong_use(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	fprintf(stderr, "%s: ", program_invocation_short_name);
	vfprintf(stderr, format, args);
	fprintf(stderr, "\n");
	va_end(args);
	exit(2);
}

uint64_t fuzz_number(const char *option, const char *text, uint64_t least,
		     uint64_t most)
{
	unsigned long long value;
	char *end;

	errno = 0;
	value = strtoull(text, &end, 0);
	if (*text < '0' || *text > '9' || *end || errno || value < least ||
	    value > most)
		fuzz_wrong_use("--%s is a number from %llu to %llu, not '%s'",
			       option, (unsigned long long)least,
			       (unsigned long long)most, text);
	return value;
}

unsigned int fuzz_count(const char *option, const char *text, unsigned int least,
			unsigned int most)
{
	return (unsigned int)fuzz_number(option, text, least, most);
}

uint64_t fuzz_any_seed(void)
{
	uint32_t seed;

	if (getrandom(&seed, sizeof(seed), 0) != sizeof(seed))
		fuzz_wrong_use("no random numbers: give --seed");
	return seed;
}
