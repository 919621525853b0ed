/* SPDX-License-Identifier: GPL-2.0-only */
/* util.h - small things that all benchmark programs need; see util.c. */
#ifndef BENCH_UTIL_H
#define BENCH_UTIL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum exit_code {
	EXIT_OK = 0,
	EXIT_FAILED = 1,
	EXIT_USAGE = 2,
	EXIT_NO_KERNEL_SUPPORT = 77,
};

void set_program_name(const char *name);
const char *program_name(void);
void die(enum exit_code code, const char *format, ...)
	__attribute__((noreturn, format(printf, 2, 3)));
void die_errno(const char *format, ...)
	__attribute__((noreturn, format(printf, 1, 2)));

uint64_t now_ns(void);
void sleep_ns(uint64_t ns);
int nth_cpu(unsigned int n);
void run_on_cpu(int cpu);

int make_scratch_file(const char *folder);

static inline double per_second(uint64_t operations, uint64_t ns)
{
	return (double)operations * 1e9 / (double)ns;
}

/* Of a counter that one thread writes and others read. */
static inline void bump(atomic_ullong *counter, unsigned long long by)
{
	atomic_store_explicit(counter,
			      atomic_load_explicit(counter,
						   memory_order_relaxed) + by,
			      memory_order_relaxed);
}

/* What the page number @page of file number @file begins with. */
static inline uint64_t page_word(unsigned int file, uint64_t page)
{
	uint64_t x = page + ((uint64_t)file << 40) + 0x9e3779b97f4a7c15ULL;

	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
	return x ^ (x >> 31);
}

#endif /* BENCH_UTIL_H */
