/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * harness.h - what the tests of the preload library have in common; see harness.c
 */
#ifndef TESTS_HARNESS_H
#define TESTS_HARNESS_H

#include "tracer.h"

#include <stdbool.h>

/* Lengths of mappings say which ones they are: 70001, 70002, ... */
#define FIRST_LENGTH 70001UL

extern const char *subject;	/* the program that is run */
extern char preload[4200];	/* "LD_PRELOAD=..." */
extern char folder[300];	/* of the files, removed at the end */
extern struct trace trace;	/* the last run */
extern char *files[5];		/* data.a, data.b, other, with:colon, NULL */

/* "NAME=value", ...; a % in a value stands for the folder of the files */
#define SETTINGS(...) ((const char *const[]){ __VA_ARGS__, NULL })

void harness_start(const char *program, const char *library);
int harness_end(void);
void report(bool ok, const char *name);
void skip(const char *name, const char *why);
char *make_file(const char *name);
void run(const char *program, const char *which, char *const *paths,
	 const char *const *settings);
bool calls_are(unsigned long first, const char *expected);
void check_output(const char *name, const char *wanted);

#endif /* TESTS_HARNESS_H */
