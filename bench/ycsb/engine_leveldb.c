// SPDX-License-Identifier: GPL-2.0-only
/*
 * engine_leveldb.c - LevelDB: a mapping of each table file, up to 1000 of them
 *
 * What: LevelDB maps a table when it opens it and unmaps it when the table is
 *       compacted away or leaves the cache of open files. How many may be mapped
 *       at a time is not part of its API; its own tests set that number by
 *       a function that the static library has, and so does --mmap off.
 * Who:  run.c through engine.h.
 */
#include "engine.h"
#include "options.h"

#include "../common/util.h"

#include <leveldb/c.h>
#include <stdlib.h>

/* leveldb::EnvPosixTestHelper::SetReadOnlyMMapLimit(int), before the first open. */
extern void set_mmap_limit(int limit)
	__asm__("_ZN7leveldb18EnvPosixTestHelper20SetReadOnlyMMapLimitEi");

struct database {
	leveldb_t *db;
	leveldb_options_t *options;
	leveldb_cache_t *cache;
	bool sync;
};

struct session {
	leveldb_t *db;
	leveldb_readoptions_t *read;
	leveldb_writeoptions_t *write;
	leveldb_writebatch_t *batch;
};

static void check(const char *error, const char *what)
{
	if (error)
		die(EXIT_FAILED, "LevelDB: %s: %s", what, error);
}

static void *level_open(const struct options *o)
{
	struct database *d = calloc(1, sizeof(*d));
	char *error = NULL;

	if (!d)
		die(EXIT_FAILED, "out of memory");
	if (!o->mapped)
		set_mmap_limit(0);
	d->sync = o->sync;
	d->options = leveldb_options_create();
	leveldb_options_set_create_if_missing(d->options, 1);
	/* Values cannot be compressed; trying costs time. */
	leveldb_options_set_compression(d->options, leveldb_no_compression);
	if (o->cache) {
		d->cache = leveldb_cache_create_lru(o->cache);
		leveldb_options_set_cache(d->options, d->cache);
	}
	if (o->open_files)
		leveldb_options_set_max_open_files(d->options,
						   (int)o->open_files);
	if (o->file_size)
		leveldb_options_set_max_file_size(d->options, o->file_size);
	d->db = leveldb_open(d->options, o->folder, &error);
	check(error, "open");
	return d;
}

static void level_close(void *database)
{
	struct database *d = database;

	leveldb_close(d->db);
	leveldb_options_destroy(d->options);
	if (d->cache)
		leveldb_cache_destroy(d->cache);
	free(d);
}

static void *level_attach(void *database)
{
	struct database *d = database;
	struct session *s = calloc(1, sizeof(*s));

	if (!s)
		die(EXIT_FAILED, "out of memory");
	s->db = d->db;
	s->read = leveldb_readoptions_create();
	s->write = leveldb_writeoptions_create();
	leveldb_writeoptions_set_sync(s->write, d->sync);
	s->batch = leveldb_writebatch_create();
	return s;
}

static void level_detach(void *session)
{
	struct session *s = session;

	leveldb_readoptions_destroy(s->read);
	leveldb_writeoptions_destroy(s->write);
	leveldb_writebatch_destroy(s->batch);
	free(s);
}

static bool level_get(void *session, struct bytes key, visit_fn *visit,
		      void *context)
{
	struct session *s = session;
	char *error = NULL, *value;
	size_t size;

	value = leveldb_get(s->db, s->read, key.data, key.size, &size, &error);
	check(error, "get");
	if (!value)
		return false;
	visit(context, key, (struct bytes){ .data = value, .size = size });
	leveldb_free(value);
	return true;
}

static void level_scan(void *session, struct bytes from, size_t limit,
		       visit_fn *visit, void *context)
{
	struct session *s = session;
	leveldb_iterator_t *i = leveldb_create_iterator(s->db, s->read);
	char *error = NULL;

	if (from.size)
		leveldb_iter_seek(i, from.data, from.size);
	else
		leveldb_iter_seek_to_first(i);
	for (; limit && leveldb_iter_valid(i); limit--) {
		struct bytes key, value;

		key.data = leveldb_iter_key(i, &key.size);
		value.data = leveldb_iter_value(i, &value.size);
		visit(context, key, value);
		leveldb_iter_next(i);
	}
	leveldb_iter_get_error(i, &error);
	check(error, "scan");
	leveldb_iter_destroy(i);
}

static void level_begin(void *session)
{
	struct session *s = session;

	leveldb_writebatch_clear(s->batch);
}

static void level_put(void *session, struct bytes key, struct bytes value)
{
	struct session *s = session;

	leveldb_writebatch_put(s->batch, key.data, key.size, value.data,
			       value.size);
}

static void level_commit(void *session)
{
	struct session *s = session;
	char *error = NULL;

	leveldb_write(s->db, s->write, s->batch, &error);
	check(error, "write");
}

const struct engine_ops engine_leveldb = {
	.name = "leveldb",
	.open = level_open,
	.close = level_close,
	.attach = level_attach,
	.detach = level_detach,
	.get = level_get,
	.scan = level_scan,
	.begin = level_begin,
	.put = level_put,
	.commit = level_commit,
};
