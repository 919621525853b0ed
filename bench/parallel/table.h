/* SPDX-License-Identifier: GPL-2.0-only */
/* table.h - how often each word came; see table.c. */
#ifndef PARALLEL_TABLE_H
#define PARALLEL_TABLE_H

#include <stddef.h>
#include <stdint.h>

struct entry {
	uint64_t word;		/* its hash; 0: the place is free */
	uint64_t count;
};

struct table {
	struct entry *entries;
	size_t capacity;	/* a power of two */
	size_t used;
};

/* What a table comes to, and several whose words differ: the sums. */
struct result {
	uint64_t checksum;
	uint64_t words;		/* all, and different ones */
	uint64_t different;
};

void table_make(struct table *table);
void table_end(struct table *table);
void table_add(struct table *table, uint64_t word, uint64_t count);
struct result table_result(const struct table *table);

/* Adds the words that begin from @at up to @end; those that @at is inside of do not. */
void table_add_text(struct table *table, const char *text, size_t at, size_t end, size_t size);

#endif /* PARALLEL_TABLE_H */
