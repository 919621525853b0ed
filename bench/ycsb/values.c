// SPDX-License-Identifier: GPL-2.0-only
/*
 * values.c - the names of keys and the values of records
 *
 * What: a value begins with the number of its key and its version; all its
 *       other bytes follow from these two and their place, so that whoever reads
 *       it sees whether each byte is right, and of which version it is. It
 *       cannot be compressed.
 * Who:  check.c, run.c, main.c.
 */
#include "values.h"

#include "distributions.h"

#include <stdio.h>
#include <string.h>

struct head {
	uint64_t number;
	uint64_t version;
};

/* Returns the length without the NUL. */
size_t key_name(char name[KEY_SIZE], uint64_t number)
{
	char digits[20];
	size_t count = 0;

	number = fnv_hash(number);
	do
		digits[count++] = (char)('0' + number % 10);
	while ((number /= 10) && count < KEY_SIZE - 5);
	memcpy(name, "user", 4);
	for (size_t i = 0; i < count; i++)
		name[4 + i] = digits[count - 1 - i];
	name[4 + count] = '\0';
	return 4 + count;
}

static void body_init(struct random *r, const struct head *head)
{
	random_init(r, head->number, head->version);
}

/* @size is LEAST_VALUE_SIZE or more. */
void value_fill(void *value, size_t size, uint64_t number, uint32_t version)
{
	struct head head = { .number = number, .version = version };
	char *at = value, *end = at + size;
	struct random r;

	memcpy(at, &head, sizeof(head));
	body_init(&r, &head);
	for (at += sizeof(head); at < end; at += sizeof(uint64_t)) {
		uint64_t word = random_next(&r);
		size_t left = (size_t)(end - at);

		memcpy(at, &word, left < sizeof(word) ? left : sizeof(word));
	}
}

/* Returns whether all bytes are as value_fill() wrote them. */
bool value_read(const void *value, size_t size, uint64_t *number,
		uint32_t *version)
{
	const char *at = value, *end = at + size;
	uint64_t wrong = 0;
	struct random r;
	struct head head;

	if (size < LEAST_VALUE_SIZE)
		return false;
	memcpy(&head, at, sizeof(head));
	*number = head.number;
	*version = (uint32_t)head.version;
	body_init(&r, &head);
	for (at += sizeof(head); at + sizeof(uint64_t) <= end;
	     at += sizeof(uint64_t)) {
		uint64_t word;

		memcpy(&word, at, sizeof(word));
		wrong |= word ^ random_next(&r);
	}
	if (at < end) {
		uint64_t word = random_next(&r);

		wrong |= (uint64_t)!!memcmp(at, &word, (size_t)(end - at));
	}
	return !wrong && head.version <= UINT32_MAX;
}
