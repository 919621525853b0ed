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
void die(enum exit_code code, const char *format, ...)
	__attribute__((noreturn, format(printf, 2, 3)));
void die_errno(const char *format, ...)
	__attribute__((noreturn, format(printf, 1, 2)));

uint64_t now_ns(void);
void sleep_ns(uint64_t ns);
int nth_cpu(unsigned int n);
void run_on_cpu(int cpu);
unsigned long parse_number(const char *option, const char *text,
			   unsigned long low, unsigned long high);
double parse_seconds(const char *option, const char *text);

/* Without MAP_FPR, with it: a list of "off" and "on", as given to --mode. */
struct fpr_modes {
	unsigned int count;
	bool fpr[2];
};

/* Ends the program if a mode needs FPR and the kernel has none. */
void require_fpr_modes(const struct fpr_modes *modes);
void parse_fpr_modes(struct fpr_modes *modes, const char *text);
/* The mode that is number @i of a round; each round begins with another one. */
bool fpr_mode(const struct fpr_modes *modes, unsigned int round, unsigned int i);

void require_fpr(void);
int make_scratch_file(const char *folder);

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
