/* SPDX-License-Identifier: GPL-2.0-only */
/* values.h - the names of keys and what is stored under them; see values.c. */
#ifndef YCSB_VALUES_H
#define YCSB_VALUES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* "user", 19 digits, and a NUL. */
#define KEY_SIZE 24
#define LEAST_VALUE_SIZE 24
#define MOST_VALUE_SIZE 65536

size_t key_name(char name[KEY_SIZE], uint64_t number);
void value_fill(void *value, size_t size, uint64_t number, uint32_t version);
bool value_read(const void *value, size_t size, uint64_t *number,
		uint32_t *version);

#endif /* YCSB_VALUES_H */
