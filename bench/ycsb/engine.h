/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * engine.h - what the benchmark needs of a key-value store
 *
 * An error of the store ends the program with its message. Keys are strings,
 * but their length is given, too.
 */
#ifndef YCSB_ENGINE_H
#define YCSB_ENGINE_H

#include <stdbool.h>
#include <stddef.h>

struct options;

struct bytes {
	const void *data;
	size_t size;
};

/* Sees a record; what it points to is gone when it returns. */
typedef void visit_fn(void *context, struct bytes key, struct bytes value);

struct engine_ops {
	const char *name;
	/* Opens the database in the folder of the options. */
	void *(*open)(const struct options *options);
	void (*close)(void *database);

	/* A session belongs to one thread. */
	void *(*attach)(void *database);
	void (*detach)(void *session);

	/* Returns false where there is no such key. */
	bool (*get)(void *session, struct bytes key, visit_fn *visit,
		    void *context);
	/* At most @limit records from @from on, in order; all if it is empty. */
	void (*scan)(void *session, struct bytes from, size_t limit,
		     visit_fn *visit, void *context);

	/* Any number of put() between the others is one write. */
	void (*begin)(void *session);
	void (*put)(void *session, struct bytes key, struct bytes value);
	void (*commit)(void *session);
};

extern const struct engine_ops engine_lmdb, engine_leveldb, engine_pool;

#endif /* YCSB_ENGINE_H */
