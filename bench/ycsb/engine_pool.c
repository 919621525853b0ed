// SPDX-License-Identifier: GPL-2.0-only
/*
 * engine_pool.c - a B+ tree in a buffer pool that evicts all the time
 *
 * What: reads and writes of records in pages of a file that pool.c keeps in memory, as far as
 *       there is room (--cache). How memory leaves the pool is --evict. A node that is full is
 *       split by one thread alone; for all else threads hold only the pages that they use.
 *       Nothing is logged: a program that is killed leaves no database, or a damaged one.
 * Who:  run.c through engine.h.
 *
 * Locks: @shape, for writing by who splits; then pages, from the root down and to the right.
 */
#include "engine.h"
#include "node.h"
#include "options.h"
#include "pool.h"

#include "../common/util.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MIB	(1ull << 20)
#define MAGIC	UINT64_C(0x6c6f6f7066726963)
#define CACHE	(64 * MIB)
/* Nodes from the root to a leaf. */
#define DEEPEST	16

/* The first page of the file. */
struct meta {
	uint64_t magic;
	uint64_t pages;		/* most of them */
	uint64_t root, height;	/* 0: the root is a leaf */
	uint64_t next;		/* first page that was never used */
};

struct database {
	const struct options *options;
	struct pool *pool;
	int file;
	pthread_rwlock_t shape;
	struct meta meta;	/* changes under @shape */
};

static uint64_t most_pages(const struct options *o)
{
	/* A page that is half full. */
	uint64_t size = 4 * o->records * (o->value_size + 64) + 64 * MIB;

	return (o->map_size ? o->map_size : size) / POOL_PAGE;
}

static void write_meta(struct database *d)
{
	_Alignas(POOL_PAGE) char block[POOL_PAGE] = { 0 };

	memcpy(block, &d->meta, sizeof(d->meta));
	if (pwrite(d->file, block, sizeof(block), 0) != sizeof(block))
		die_errno("cannot write to the database");
}

/* False: there is none yet. */
static bool read_meta(struct database *d)
{
	ssize_t n = pread(d->file, &d->meta, sizeof(d->meta), 0);

	if (n < 0)
		die_errno("cannot read the database");
	if (n && (n != sizeof(d->meta) || d->meta.magic != MAGIC))
		die(EXIT_USAGE, "pool.db in %s is no database of the engine pool",
		    d->options->folder);
	return n;
}

static uint64_t room(const struct options *o)
{
	return (o->cache ? o->cache : CACHE) / POOL_PAGE;
}

static void make_root(struct database *d)
{
	d->meta = (struct meta){
		.magic = MAGIC, .pages = most_pages(d->options), .root = 1, .next = 2,
	};
}

static void *pool_engine_open(const struct options *o)
{
	struct database *d = calloc(1, sizeof(*d));
	pthread_rwlockattr_t attr;
	char path[PATH_MAX];
	bool made;

	if (!d || snprintf(path, sizeof(path), "%s/pool.db", o->folder) >= (int)sizeof(path))
		die(EXIT_FAILED, "out of memory, or the path is too long");
	d->options = o;
	d->file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
	if (d->file < 0)
		die_errno("%s", path);
	made = !read_meta(d);
	if (made)
		make_root(d);
	else if (o->map_size / POOL_PAGE > d->meta.pages)
		d->meta.pages = o->map_size / POOL_PAGE;
	/* The pool is what is in memory. Not every file system can do without a copy. */
	fcntl(d->file, F_SETFL, O_DIRECT);
	/* Nobody takes it twice, and readers would never let a writer in. */
	pthread_rwlockattr_init(&attr);
	pthread_rwlockattr_setkind_np(&attr, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
	pthread_rwlock_init(&d->shape, &attr);
	pthread_rwlockattr_destroy(&attr);
	d->pool = pool_open(d->file, o->evict, d->meta.pages, room(o));
	if (made) {
		node_init(pool_make(d->pool, d->meta.root), false, 0);
		pool_unfix_dirty(d->pool, d->meta.root);
	}
	return d;
}

static void write_all(struct database *d)
{
	pool_write(d->pool);
	write_meta(d);
}

static void pool_engine_close(void *database)
{
	struct database *d = database;

	write_all(d);
	pool_close(d->pool);
	close(d->file);
	pthread_rwlock_destroy(&d->shape);
	free(d);
}

/* Nothing belongs to one thread. */
static void *pool_engine_attach(void *database)
{
	return database;
}

static void pool_engine_detach(void *session)
{
	(void)session;
}

/* The leaf of a key, which is fixed; @shape is held. */
static uint64_t find_leaf(struct database *d, struct bytes key, bool alone, struct node **leaf)
{
	uint64_t number = d->meta.root, child;

	for (uint64_t level = d->meta.height; level; level--) {
		const struct node *node = pool_fix(d->pool, number, false);

		child = node_child(node, key);
		pool_unfix(d->pool, number);
		number = child;
	}
	*leaf = pool_fix(d->pool, number, alone);
	return number;
}

static bool pool_engine_get(void *session, struct bytes key, visit_fn *visit, void *context)
{
	struct database *d = session;
	struct node *leaf;
	uint64_t number;
	unsigned int i;
	bool found;

	pthread_rwlock_rdlock(&d->shape);
	number = find_leaf(d, key, false, &leaf);
	i = node_find(leaf, key, &found);
	if (found)
		visit(context, key, node_value(leaf, i));
	pool_unfix(d->pool, number);
	pthread_rwlock_unlock(&d->shape);
	return found;
}

static void pool_engine_scan(void *session, struct bytes from, size_t limit, visit_fn *visit,
			     void *context)
{
	struct database *d = session;
	struct node *leaf;
	uint64_t number, next;
	unsigned int i;
	bool same;

	pthread_rwlock_rdlock(&d->shape);
	number = find_leaf(d, from, false, &leaf);
	i = node_find(leaf, from, &same);
	while (limit) {
		for (; i < leaf->count && limit; i++, limit--)
			visit(context, node_key(leaf, i), node_value(leaf, i));
		next = leaf->link;
		if (!next || !limit)
			break;
		leaf = pool_fix(d->pool, next, false);
		pool_unfix(d->pool, number);
		number = next;
		i = 0;
	}
	pool_unfix(d->pool, number);
	pthread_rwlock_unlock(&d->shape);
}

/* A node that was split, and what its parent has to know. */
static void split(struct database *d, struct node *node, struct bytes key, struct bytes value,
		  struct separator *separator)
{
	if (d->meta.next == d->meta.pages)
		die(EXIT_FAILED, "the database is full: give a larger --map-size");
	separator->right = d->meta.next++;
	node_split(node, pool_make(d->pool, separator->right), key, value, separator);
	pool_unfix_dirty(d->pool, separator->right);
}

static void grow(struct database *d, const struct separator *separator)
{
	struct bytes key = { separator->text, separator->size };
	struct bytes child = { &separator->right, sizeof(separator->right) };
	struct node *root;

	if (d->meta.next == d->meta.pages)
		die(EXIT_FAILED, "the database is full: give a larger --map-size");
	root = pool_make(d->pool, d->meta.next);
	node_init(root, true, d->meta.root);
	node_put(root, key, child);
	pool_unfix_dirty(d->pool, d->meta.next);
	d->meta.root = d->meta.next++;
	d->meta.height++;
}

/* With nobody else in the tree: from the leaf up, as long as nodes are full. */
static void put_and_split(struct database *d, struct bytes key, struct bytes value)
{
	uint64_t path[DEEPEST];
	struct separator separator, below;
	uint64_t level = 0;
	bool done;

	path[0] = d->meta.root;
	for (; level < d->meta.height; level++) {
		path[level + 1] = node_child(pool_fix(d->pool, path[level], false), key);
		pool_unfix(d->pool, path[level]);
	}
	for (;; level--) {
		struct node *node = pool_fix(d->pool, path[level], true);

		done = node_put(node, key, value);
		if (!done)
			split(d, node, key, value, &separator);
		pool_unfix_dirty(d->pool, path[level]);
		if (done)
			return;
		if (!level)
			break;
		below = separator;
		key = (struct bytes){ below.text, below.size };
		value = (struct bytes){ &below.right, sizeof(below.right) };
	}
	grow(d, &separator);
}

static void pool_engine_put(void *session, struct bytes key, struct bytes value)
{
	struct database *d = session;
	struct node *leaf;
	uint64_t number;
	bool done;

	pthread_rwlock_rdlock(&d->shape);
	number = find_leaf(d, key, true, &leaf);
	done = node_put(leaf, key, value);
	pool_unfix_dirty(d->pool, number);
	pthread_rwlock_unlock(&d->shape);
	if (done)
		return;
	pthread_rwlock_wrlock(&d->shape);
	put_and_split(d, key, value);
	pthread_rwlock_unlock(&d->shape);
}

static void pool_engine_begin(void *session)
{
	(void)session;
}

static void pool_engine_commit(void *session)
{
	struct database *d = session;

	if (!d->options->sync)
		return;
	pthread_rwlock_wrlock(&d->shape);
	write_all(d);
	if (fdatasync(d->file))
		die_errno("cannot write to the database");
	pthread_rwlock_unlock(&d->shape);
}

const struct engine_ops engine_pool = {
	.name = "pool",
	.open = pool_engine_open,
	.close = pool_engine_close,
	.attach = pool_engine_attach,
	.detach = pool_engine_detach,
	.get = pool_engine_get,
	.scan = pool_engine_scan,
	.begin = pool_engine_begin,
	.put = pool_engine_put,
	.commit = pool_engine_commit,
};
