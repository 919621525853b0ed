// SPDX-License-Identifier: GPL-2.0-only
/*
 * node.c - entries of a page of the B+ tree, see node.h
 *
 * What: keys are found by halving; entries are made from the end of the page on. What a value
 *       of another size leaves is used again when there is no other room.
 * Who:  engine_pool.c, which has the page.
 */
#include "node.h"
#include "pool.h"

#include "../common/util.h"

#include <string.h>

struct entry {
	uint16_t key_size, value_size;
	char data[];
};

struct pair {
	struct bytes key, value;
};

#define MOST_PAIRS (POOL_PAGE / (sizeof(struct entry) + sizeof(uint16_t)))

static struct entry *entry(const struct node *node, unsigned int i)
{
	return (struct entry *)((char *)node + node->at[i]);
}

void node_init(struct node *node, bool inner, uint64_t link)
{
	memset(node, 0, POOL_PAGE);
	node->heap = POOL_PAGE;
	node->inner = inner;
	node->link = link;
}

struct bytes node_key(const struct node *node, unsigned int i)
{
	const struct entry *e = entry(node, i);

	return (struct bytes){ .data = e->data, .size = e->key_size };
}

struct bytes node_value(const struct node *node, unsigned int i)
{
	const struct entry *e = entry(node, i);

	return (struct bytes){ .data = e->data + e->key_size, .size = e->value_size };
}

static int compare(struct bytes a, struct bytes b)
{
	size_t size = a.size < b.size ? a.size : b.size;
	int order = size ? memcmp(a.data, b.data, size) : 0;

	return order ? order : (a.size > b.size) - (a.size < b.size);
}

unsigned int node_find(const struct node *node, struct bytes key, bool *same)
{
	unsigned int low = 0, high = node->count;

	*same = false;
	while (low < high) {
		unsigned int middle = (low + high) / 2;
		int order = compare(node_key(node, middle), key);

		*same |= !order;
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

uint64_t node_child(const struct node *node, struct bytes key)
{
	uint64_t child = node->link;
	bool same;
	unsigned int i = node_find(node, key, &same) + same;

	if (i)
		memcpy(&child, node_value(node, i - 1).data, sizeof(child));
	return child;
}

/*
 * Each key counts as the longest one, so that all entries of a database have one size, and those
 * of a node and one more fit into two. Aligned, as the sizes are read as such.
 */
static size_t size_of(const struct pair *pair)
{
	return (sizeof(struct entry) + KEY_SIZE + pair->value.size + 1) & ~(size_t)1;
}

static void append(struct node *node, unsigned int i, const struct pair *pair)
{
	struct entry *e;

	node->heap = (uint16_t)(node->heap - size_of(pair));
	memmove(node->at + i + 1, node->at + i, (node->count - i) * sizeof(*node->at));
	node->at[i] = node->heap;
	node->count++;
	e = entry(node, i);
	e->key_size = (uint16_t)pair->key.size;
	e->value_size = (uint16_t)pair->value.size;
	memcpy(e->data, pair->key.data, pair->key.size);
	memcpy(e->data + e->key_size, pair->value.data, pair->value.size);
}

static bool has_room(const struct node *node, const struct pair *pair)
{
	size_t end = sizeof(*node) + (node->count + 1u) * sizeof(*node->at);

	return end + size_of(pair) <= node->heap;
}

/* Make it anew of @nr pairs, which do not point into it. */
static void rebuild(struct node *node, const struct pair *pairs, unsigned int nr)
{
	bool inner = node->inner;
	uint64_t link = node->link;

	node_init(node, inner, link);
	for (unsigned int i = 0; i < nr; i++)
		append(node, i, &pairs[i]);
}

static unsigned int pairs_of(const struct node *node, struct pair *pairs)
{
	for (unsigned int i = 0; i < node->count; i++)
		pairs[i] = (struct pair){ node_key(node, i), node_value(node, i) };
	return node->count;
}

static void drop(struct node *node, unsigned int i)
{
	node->count--;
	memmove(node->at + i, node->at + i + 1, (node->count - i) * sizeof(*node->at));
}

static bool fits(const struct pair *pairs, unsigned int nr)
{
	size_t size = sizeof(struct node) + nr * sizeof(uint16_t);

	for (unsigned int i = 0; i < nr; i++)
		size += size_of(&pairs[i]);
	return size <= POOL_PAGE;
}

/* Is there room for one more if nothing is wasted? */
static bool has_room_anew(const struct node *node, const struct pair *pair)
{
	struct pair pairs[MOST_PAIRS + 1];
	unsigned int nr = pairs_of(node, pairs);

	pairs[nr] = *pair;
	return fits(pairs, nr + 1);
}

bool node_put(struct node *node, struct bytes key, struct bytes value)
{
	struct pair pairs[MOST_PAIRS], new = { key, value };
	union { char bytes[POOL_PAGE]; struct node node; } copy;
	bool same;
	unsigned int i = node_find(node, key, &same);

	if (same && node_value(node, i).size == value.size) {
		struct entry *e = entry(node, i);

		memcpy(e->data + e->key_size, value.data, value.size);
		return true;
	}
	if (same || !has_room(node, &new)) {
		memcpy(copy.bytes, node, POOL_PAGE);
		if (same)
			drop(&copy.node, i);
		if (!has_room_anew(&copy.node, &new))
			return false;
		rebuild(node, pairs, pairs_of(&copy.node, pairs));
	}
	append(node, i, &new);
	return true;
}

/* Where the first half of the bytes ends; both sides have something. */
static unsigned int middle_of(const struct pair *pairs, unsigned int nr)
{
	size_t all = 0, left = 0;
	unsigned int i;

	for (i = 0; i < nr; i++)
		all += size_of(&pairs[i]);
	for (i = 0; i < nr - 1 && (!i || left + size_of(&pairs[i]) / 2 < all / 2); i++)
		left += size_of(&pairs[i]);
	return i;
}

void node_split(struct node *node, struct node *right, struct bytes key, struct bytes value,
		struct separator *separator)
{
	union { char bytes[POOL_PAGE]; struct node node; } copy;
	struct pair pairs[MOST_PAIRS + 1];
	unsigned int i, nr, middle;
	bool same;

	memcpy(copy.bytes, node, POOL_PAGE);
	nr = pairs_of(&copy.node, pairs);
	i = node_find(&copy.node, key, &same);
	if (!same)
		memmove(pairs + i + 1, pairs + i, (nr++ - i) * sizeof(*pairs));
	pairs[i] = (struct pair){ key, value };
	middle = middle_of(pairs, nr);
	if (!fits(pairs, middle) || !fits(pairs + middle, nr - middle))
		die(EXIT_FAILED, "a record has no room in half a page");
	separator->size = pairs[middle].key.size;
	memcpy(separator->text, pairs[middle].key.data, separator->size);
	if (copy.node.inner) {
		node_init(right, true, 0);
		memcpy(&right->link, pairs[middle].value.data, sizeof(right->link));
		rebuild(right, pairs + middle + 1, nr - middle - 1);
	} else {
		node_init(right, false, copy.node.link);
		rebuild(right, pairs + middle, nr - middle);
		node->link = separator->right;
	}
	rebuild(node, pairs, middle);
}
