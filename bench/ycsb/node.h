/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * node.h - a page of the B+ tree of the engine pool
 *
 * A leaf has records in the order of their keys, and the number of the next leaf. An inner node
 * has keys, each with the number of the child whose keys are not less (8 bytes), and one
 * child for keys that are less than all of them.
 */
#ifndef YCSB_NODE_H
#define YCSB_NODE_H

#include "engine.h"
#include "values.h"

#include <stdbool.h>
#include <stdint.h>

struct node {
	uint16_t count;
	uint16_t heap;		/* where keys and values begin; they end with the page */
	bool inner;
	uint8_t unused[3];
	uint64_t link;		/* the next leaf, 0: none; or the first child */
	uint16_t at[];		/* where the entry of each key is */
};

/* One record has room in a leaf. */
#define NODE_MOST_VALUE 3900u

/* What is not less than the key is in another node from now on. */
struct separator {
	char text[KEY_SIZE];
	size_t size;
	uint64_t right;
};

void node_init(struct node *node, bool inner, uint64_t link);
struct bytes node_key(const struct node *node, unsigned int i);
struct bytes node_value(const struct node *node, unsigned int i);
/* The first key that is not less, the count if there is none; whether it is the same. */
unsigned int node_find(const struct node *node, struct bytes key, bool *same);
/* Of an inner node: where the key is. */
uint64_t node_child(const struct node *node, struct bytes key);
/* Also in the place of a value of the same key. False: there is no room. */
bool node_put(struct node *node, struct bytes key, struct bytes value);
/* The same where there is no room: the upper half goes to @right, which is separator->right. */
void node_split(struct node *node, struct node *right, struct bytes key, struct bytes value,
		struct separator *separator);

#endif /* YCSB_NODE_H */
