// SPDX-License-Identifier: GPL-2.0-only
/*
 * options.c - the command line of ycsb-bench
 *
 * What: fills struct options or ends with one line that says what to do.
 * Who:  main.c.
 */
#include "options.h"
#include "node.h"
#include "values.h"

#include "../common/options.h"
#include "../common/util.h"

#include <string.h>
#include <unistd.h>

#define MIB (UINT64_C(1) << 20)

static void read_engine(void *to, char *text)
{
	static const struct engine_ops *const engines[] = {
		&engine_lmdb, &engine_leveldb, &engine_pool,
	};

	for (size_t i = 0; i < sizeof(engines) / sizeof(*engines); i++) {
		if (!strcmp(text, engines[i]->name)) {
			*(const struct engine_ops **)to = engines[i];
			return;
		}
	}
	die(EXIT_USAGE, "unknown engine '%s': use lmdb, leveldb or pool", text);
}

static void add_phase(struct options *options, const char *word)
{
	enum phase phase = 0;

	while (phase < PHASES && strcmp(word, workloads[phase].name) != 0)
		phase++;
	if (phase == PHASES)
		die(EXIT_USAGE, "unknown workload '%s': use load, a, b, c, d, e or f",
		    word);
	if (phase == LOAD && options->phase_count)
		die(EXIT_USAGE, "load can only be the first workload");
	if (options->phase_count == MAX_PHASES)
		die(EXIT_USAGE, "at most %d workloads", MAX_PHASES);
	options->phases[options->phase_count++] = phase;
}

static void read_phases(void *to, char *text)
{
	struct options *options = to;
	char *save = NULL;

	options->phase_count = 0;
	for (char *word = strtok_r(text, ",", &save); word;
	     word = strtok_r(NULL, ",", &save))
		add_phase(options, word);
	if (!options->phase_count)
		die(EXIT_USAGE, "--workload wants at least one workload");
}

static void read_distribution(void *to, char *text)
{
	for (enum distribution d = 0; d < DISTRIBUTIONS; d++) {
		if (!strcmp(text, distribution_names[d])) {
			*(enum distribution *)to = d;
			return;
		}
	}
	die(EXIT_USAGE, "unknown distribution '%s': use zipfian, latest or uniform",
	    text);
}

static void read_mmap(void *to, char *text)
{
	if (strcmp(text, "on") != 0 && strcmp(text, "off") != 0)
		die(EXIT_USAGE, "--mmap wants on or off, not '%s'", text);
	*(bool *)to = text[1] == 'n';
}

static void read_evict(void *to, char *text)
{
	for (enum pool_way way = 0; way < POOL_WAYS; way++) {
		if (!strcmp(text, pool_ways[way])) {
			*(enum pool_way *)to = way;
			return;
		}
	}
	die(EXIT_USAGE, "unknown way to evict '%s': use dontneed, remove, vector or lazy", text);
}

static void check(const struct options *o)
{
	bool lmdb = o->engine == &engine_lmdb, pool = o->engine == &engine_pool;

	if (o->print && o->phase_count != 1)
		die(EXIT_USAGE, "--print-operations wants one --workload");
	if (o->print)
		return;
	if (!o->folder)
		die(EXIT_USAGE, "--dir is missing: where is the database to be?");
	if (o->only_loaded && (o->phase_count != 1 || o->phases[0] != WORKLOAD_C))
		die(EXIT_USAGE, "--only-loaded is for the workload c alone");
	if (o->operations && o->seconds > 0)
		die(EXIT_USAGE, "give --operations or --seconds, not both");
	if (lmdb && !o->mapped)
		die(EXIT_USAGE, "LMDB always maps its database: --mmap off is for leveldb");
	if (lmdb && o->cache)
		die(EXIT_USAGE, "--cache is for leveldb and pool");
	if ((lmdb || pool) && (o->open_files || o->file_size))
		die(EXIT_USAGE, "--open-files and --file-size are for leveldb");
	if (!lmdb && o->no_read_ahead)
		die(EXIT_USAGE, "--no-read-ahead is for lmdb");
	if (!lmdb && !pool && o->map_size)
		die(EXIT_USAGE, "--map-size is for lmdb and pool");
	if (!pool && o->evict)
		die(EXIT_USAGE, "--evict is for pool");
	/* Each thread may have pages fixed while it waits for another one. */
	if (pool && o->cache && o->cache * MIB / POOL_PAGE < POOL_LEAST + 4ull * o->threads)
		die(EXIT_USAGE, "--cache %llu: give %u threads more memory",
		    (unsigned long long)o->cache, o->threads);
	if (pool && o->value_size > NODE_MOST_VALUE)
		die(EXIT_USAGE, "--value-size: at most %u with pool", NODE_MOST_VALUE);
}

void options_parse(struct options *o, int argc, char **argv)
{
	static char default_phases[] = "load,a,b,c,f,d,e";
	static const struct program program = {
		"ycsb-bench --dir DIR [options]",
		"Runs the core workloads of YCSB on a key-value store and checks all it reads.",
		NULL
	};
	const struct program_option list[] = {
		CALL("engine", "NAME", &o->engine, read_engine, "lmdb (default), leveldb, or pool, a B+ tree in a buffer\n"
		     "pool of its own"),
		CALL("workload", "LIST", o, read_phases,
		     "phases in this order: load, which makes the database, and\n"
		     "a to f (load,a,b,c,f,d,e)"),
		TEXT("dir", "DIR", &o->folder, "of the database; it stays there"),
		NUMBER("records", "N", &o->records, 2, 1000000000, "to load (100000)"),
		NUMBER("operations", "N", &o->operations, 1, 1000000000000,
		       "of a phase, all threads together (100000)"),
		DURATION("seconds", &o->seconds, "or: length of each phase but load"),
		NUMBER("threads", "N", &o->threads, 1, MAX_THREADS, "(one for each CPU)"),
		NUMBER("value-size", "N", &o->value_size, LEAST_VALUE_SIZE, MOST_VALUE_SIZE,
		       "bytes (1000)"),
		NUMBER("batch", "N", &o->batch, 1, 100000,
		       "records of a write while loading (1)"),
		FLAG("only-loaded", &o->only_loaded,
		     "trust that the database is as load left it: do not read\n"
		     "all of it before and after (workload c alone)"),
		FLAG("sync", &o->sync, "each write waits for the disk"),
		CALL("distribution", "D", &o->distribution, read_distribution,
		     "zipfian, latest or uniform for all phases (as YCSB has it)"),
		NUMBER("seed", "N", &o->seed, 0, UINT64_MAX, "of all choices (1)"),
		CALL("mmap", "on|off", &o->mapped, read_mmap,
		     "off, leveldb only: read with pread (on)"),
		NUMBER("map-size", "N", &o->map_size, 1, 1 << 24,
		       "lmdb, pool: MiB, the most that the database can become"),
		FLAG("no-read-ahead", &o->no_read_ahead,
		     "lmdb: for databases larger than memory"),
		NUMBER("cache", "N", &o->cache, 1, 1 << 20,
		       "leveldb: MiB of blocks that are not mapped (8);\n"
		       "pool: MiB of pages in memory (64)"),
		CALL("evict", "WAY", &o->evict, read_evict,
		     "pool: how pages leave memory: dontneed (default), remove,\n"
		     "or, from a morsel, vector or lazy"),
		/* LevelDB makes more of fewer. */
		NUMBER("open-files", "N", &o->open_files, 74, 50000,
		       "leveldb: table files open at a time (1000)"),
		NUMBER("file-size", "N", &o->file_size, 1, 1024,
		       "leveldb: MiB of a table file (2)"),
		NUMBER("print-operations", "N", &o->print, 1, 1000000000,
		       "only print what one thread would do: operation, number and\n"
		       "name of the key, length of a scan"),
		FLAG("json", &o->json, "JSON lines instead of text"),
		{ 0 }
	};

	*o = (struct options){
		.engine = &engine_lmdb,
		.records = 100000,
		.threads = (unsigned int)sysconf(_SC_NPROCESSORS_ONLN),
		.batch = 1,
		.value_size = 1000,
		.seed = 1,
		.distribution = DISTRIBUTIONS,
		.mapped = true,
	};
	read_phases(o, default_phases);
	parse_options(&program, list, argc, argv);
	check(o);
	if (!o->operations)
		o->operations = 100000;
	if (o->engine == &engine_pool)
		o->mapped = false;
	o->map_size *= MIB;
	o->cache *= MIB;
	o->file_size *= MIB;
}
