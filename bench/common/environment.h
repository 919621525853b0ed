/* SPDX-License-Identifier: GPL-2.0-only */
/* environment.h - what a result was measured on; see environment.c. */
#ifndef BENCH_ENVIRONMENT_H
#define BENCH_ENVIRONMENT_H

#include <stdio.h>

void print_environment_json(FILE *file);

#endif /* BENCH_ENVIRONMENT_H */
