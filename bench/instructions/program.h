/* SPDX-License-Identifier: GPL-2.0-only */
/* Runs of whole programs, for cases that are shell commands. */
#ifndef CEASEFIRE_BENCH_PROGRAM_H
#define CEASEFIRE_BENCH_PROGRAM_H

#include <stdint.h>

/*
 * Run a shell command so many times, with its output to a descriptor. Ends this
 * program when the command fails. Returns the CPU time of all runs in
 * nanoseconds, to a microsecond: that they wait for their files is not counted.
 */
uint64_t run_program(const char *name, const char *command, int out,
		     unsigned long count);

#endif
