// SPDX-License-Identifier: GPL-2.0-only
/*
 * table.c - how often each word came, in memory that is mapped for it
 *
 * What: open addressing with the hash of a word as its name. A table begins small
 *       and is copied to one of twice the size when it is half full; the smaller
 *       one is unmapped, as an allocator does it that gives large blocks back.
 * Who:  wordcount.c: a table for each map task, and one for each part of reduce.
 */
#include "table.h"
#include "team.h"

#define FIRST_CAPACITY 256

static size_t bytes_of(size_t capacity)
{
	return capacity * sizeof(struct entry);
}

void table_make(struct table *table)
{
	*table = (struct table){
		.entries = team_take(bytes_of(FIRST_CAPACITY)),
		.capacity = FIRST_CAPACITY,
	};
}

void table_end(struct table *table)
{
	team_give(table->entries, bytes_of(table->capacity));
	table->entries = NULL;
}

static struct entry *find(const struct table *table, uint64_t word)
{
	size_t at = mix(word) & (table->capacity - 1);

	while (table->entries[at].word && table->entries[at].word != word)
		at = (at + 1) & (table->capacity - 1);
	return &table->entries[at];
}

static void grow(struct table *table)
{
	struct table larger = {
		.entries = team_take(bytes_of(2 * table->capacity)),
		.capacity = 2 * table->capacity,
		.used = table->used,
	};

	for (size_t i = 0; i < table->capacity; i++) {
		if (table->entries[i].word)
			*find(&larger, table->entries[i].word) = table->entries[i];
	}
	table_end(table);
	*table = larger;
}

void table_add(struct table *table, uint64_t word, uint64_t count)
{
	struct entry *entry = find(table, word);

	entry->count += count;
	if (entry->word)
		return;
	entry->word = word;
	if (++table->used > table->capacity / 2)
		grow(table);
}

/* The order of the words does not matter; a count that is off by one does. */
struct result table_result(const struct table *table)
{
	struct result result = { .different = table->used };

	for (size_t i = 0; i < table->capacity; i++) {
		const struct entry *entry = &table->entries[i];

		if (!entry->word)
			continue;
		result.words += entry->count;
		result.checksum += mix(entry->word + mix(entry->count));
	}
	return result;
}

static int is_letter(char c)
{
	return c >= 'a' && c <= 'z';
}

void table_add_text(struct table *table, const char *text, size_t at, size_t end, size_t size)
{
	if (at && is_letter(text[at - 1])) {
		while (at < end && is_letter(text[at]))
			at++;
	}
	while (at < end) {
		uint64_t word = 0;

		if (!is_letter(text[at])) {
			at++;
			continue;
		}
		/* It may end in the next split. */
		for (; at < size && is_letter(text[at]); at++)
			word = (word + (uint64_t)text[at]) * 0x9e3779b97f4a7c15ULL;
		table_add(table, word | 1, 1);
	}
}
