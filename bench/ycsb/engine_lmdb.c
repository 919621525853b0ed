// SPDX-License-Identifier: GPL-2.0-only
/*
 * engine_lmdb.c - LMDB: one mapping of the whole database, read-only
 *
 * What: reads go through the mapping, writes through pwrite() to new pages. A
 *       session keeps its read transaction and cursor and renews them.
 * Who:  run.c through engine.h.
 */
#include "engine.h"
#include "options.h"

#include "../common/util.h"

#include <lmdb.h>
#include <stdlib.h>

struct database {
	MDB_env *env;
	MDB_dbi dbi;
};

struct session {
	struct database *database;
	MDB_txn *reader;	/* reset between uses */
	MDB_cursor *cursor;
	MDB_txn *writer;	/* between begin() and commit() */
};

static void check(int error, const char *what)
{
	if (error == MDB_MAP_FULL)
		die(EXIT_FAILED, "the map is full: give a larger --map-size");
	if (error)
		die(EXIT_FAILED, "LMDB: %s: %s", what, mdb_strerror(error));
}

/* 0: as large as it was when the database was made. */
static size_t map_size(const struct options *o)
{
	/* A page that is half full, and as much again for copies of pages. */
	uint64_t size = 4 * o->records * (o->value_size + 64) + (1u << 30);

	if (o->map_size)
		return o->map_size;
	return o->phases[0] == LOAD ? size : 0;
}

static void *lmdb_open(const struct options *o)
{
	/* Threads do not own readers: a session does. */
	unsigned int flags = MDB_NOTLS | (o->sync ? 0 : MDB_NOSYNC) |
			     (o->no_read_ahead ? MDB_NORDAHEAD : 0);
	struct database *d = calloc(1, sizeof(*d));
	MDB_txn *txn;

	if (!d)
		die(EXIT_FAILED, "out of memory");
	check(mdb_env_create(&d->env), "create");
	if (map_size(o))
		check(mdb_env_set_mapsize(d->env, map_size(o)), "map size");
	check(mdb_env_set_maxreaders(d->env, o->threads + 1), "readers");
	check(mdb_env_open(d->env, o->folder, flags, 0666), "open");
	check(mdb_txn_begin(d->env, NULL, 0, &txn), "begin");
	check(mdb_dbi_open(txn, NULL, 0, &d->dbi), "open database");
	check(mdb_txn_commit(txn), "commit");
	return d;
}

static void lmdb_close(void *database)
{
	struct database *d = database;

	mdb_env_close(d->env);
	free(d);
}

static void *lmdb_attach(void *database)
{
	struct session *s = calloc(1, sizeof(*s));

	if (!s)
		die(EXIT_FAILED, "out of memory");
	s->database = database;
	check(mdb_txn_begin(s->database->env, NULL, MDB_RDONLY, &s->reader),
	      "begin a read");
	check(mdb_cursor_open(s->reader, s->database->dbi, &s->cursor),
	      "open a cursor");
	mdb_txn_reset(s->reader);
	return s;
}

static void lmdb_detach(void *session)
{
	struct session *s = session;

	mdb_cursor_close(s->cursor);
	mdb_txn_abort(s->reader);
	free(s);
}

static MDB_val to_val(struct bytes b)
{
	return (MDB_val){ .mv_size = b.size, .mv_data = (void *)b.data };
}

static struct bytes to_bytes(MDB_val v)
{
	return (struct bytes){ .data = v.mv_data, .size = v.mv_size };
}

static bool lmdb_get(void *session, struct bytes key, visit_fn *visit,
		     void *context)
{
	struct session *s = session;
	MDB_val k = to_val(key), v;
	int error;

	check(mdb_txn_renew(s->reader), "renew");
	error = mdb_get(s->reader, s->database->dbi, &k, &v);
	if (error != MDB_NOTFOUND) {
		check(error, "get");
		visit(context, key, to_bytes(v));
	}
	mdb_txn_reset(s->reader);
	return !error;
}

static void lmdb_scan(void *session, struct bytes from, size_t limit,
		      visit_fn *visit, void *context)
{
	struct session *s = session;
	MDB_cursor_op op = from.size ? MDB_SET_RANGE : MDB_FIRST;
	MDB_val k = to_val(from), v;

	check(mdb_txn_renew(s->reader), "renew");
	check(mdb_cursor_renew(s->reader, s->cursor), "renew a cursor");
	for (; limit; limit--) {
		int error = mdb_cursor_get(s->cursor, &k, &v, op);

		if (error == MDB_NOTFOUND)
			break;
		check(error, "scan");
		visit(context, to_bytes(k), to_bytes(v));
		op = MDB_NEXT;
	}
	mdb_txn_reset(s->reader);
}

static void lmdb_begin(void *session)
{
	struct session *s = session;

	check(mdb_txn_begin(s->database->env, NULL, 0, &s->writer), "begin");
}

static void lmdb_put(void *session, struct bytes key, struct bytes value)
{
	struct session *s = session;
	MDB_val k = to_val(key), v = to_val(value);

	check(mdb_put(s->writer, s->database->dbi, &k, &v, 0), "put");
}

static void lmdb_commit(void *session)
{
	struct session *s = session;

	check(mdb_txn_commit(s->writer), "commit");
	s->writer = NULL;
}

const struct engine_ops engine_lmdb = {
	.name = "lmdb",
	.open = lmdb_open,
	.close = lmdb_close,
	.attach = lmdb_attach,
	.detach = lmdb_detach,
	.get = lmdb_get,
	.scan = lmdb_scan,
	.begin = lmdb_begin,
	.put = lmdb_put,
	.commit = lmdb_commit,
};
