/* SPDX-License-Identifier: GPL-2.0-only */
/* environment.h - what a result was measured on; see environment.c. */
#ifndef BENCH_ENVIRONMENT_H
#define BENCH_ENVIRONMENT_H

#include <stdio.h>

/* Of all JSON lines of the benchmark programs; raised when a field changes. */
#define JSON_SCHEMA 1

void print_json_string(const char *text, FILE *file);
void print_environment_json(const char *tool, FILE *file);

#endif /* BENCH_ENVIRONMENT_H */
