// SPDX-License-Identifier: GPL-2.0-only
/*
 * options.c - the command line of ycsb-bench
 *
 * What: fills struct options or ends with one line that says what to do.
 * Who:  main.c.
 */
#include "options.h"
#include "values.h"

#include "../common/util.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MIB (UINT64_C(1) << 20)

static const char help[] =
"usage: ycsb-bench --dir DIR [options]\n"
"Runs the core workloads of YCSB on a key-value store and checks all it reads.\n"
"\n"
"  --engine NAME      lmdb (default) or leveldb\n"
"  --workload LIST    phases in this order: load, which makes the database, and\n"
"                     a to f (load,a,b,c,f,d,e)\n"
"  --dir DIR          of the database; it stays there\n"
"  --records N        to load (100000)\n"
"  --operations N     of a phase, all threads together (100000)\n"
"  --seconds S        or: length of each phase but load\n"
"  --threads N        (one for each CPU)\n"
"  --value-size N     bytes (1000)\n"
"  --batch N          records of a write while loading (1)\n"
"  --only-loaded      trust that the database is as load left it: do not read\n"
"                     all of it before and after (workload c alone)\n"
"  --sync             each write waits for the disk\n"
"  --distribution D   zipfian, latest or uniform for all phases (as YCSB has it)\n"
"  --seed N           of all choices (1)\n"
"  --mmap on|off      off, leveldb only: read with pread (on)\n"
"  --map-size N       lmdb: MiB, the most that the database can become\n"
"  --no-read-ahead    lmdb: for databases larger than memory\n"
"  --cache N          leveldb: MiB of blocks that are not mapped (8)\n"
"  --open-files N     leveldb: table files open at a time (1000)\n"
"  --file-size N      leveldb: MiB of a table file (2)\n"
"  --print-operations N  only print what one thread would do: operation, number\n"
"                     and name of the key, length of a scan\n"
"  --json             JSON lines instead of text\n"
"\n"
"Exit status: 0, 1 wrong data or an error, 2 wrong use.\n";

enum { ENGINE = 256, WORKLOAD, DIR, RECORDS, OPERATIONS_, SECONDS, THREADS,
       VALUE_SIZE, BATCH, ONLY_LOADED, SYNC, DISTRIBUTION, SEED, MMAP, MAP_SIZE,
       NO_READ_AHEAD, CACHE, OPEN_FILES, FILE_SIZE, PRINT, JSON, HELP };

static const struct option long_options[] = {
	{ "engine", required_argument, NULL, ENGINE },
	{ "workload", required_argument, NULL, WORKLOAD },
	{ "dir", required_argument, NULL, DIR },
	{ "records", required_argument, NULL, RECORDS },
	{ "operations", required_argument, NULL, OPERATIONS_ },
	{ "seconds", required_argument, NULL, SECONDS },
	{ "threads", required_argument, NULL, THREADS },
	{ "value-size", required_argument, NULL, VALUE_SIZE },
	{ "batch", required_argument, NULL, BATCH },
	{ "only-loaded", no_argument, NULL, ONLY_LOADED },
	{ "sync", no_argument, NULL, SYNC },
	{ "distribution", required_argument, NULL, DISTRIBUTION },
	{ "seed", required_argument, NULL, SEED },
	{ "mmap", required_argument, NULL, MMAP },
	{ "map-size", required_argument, NULL, MAP_SIZE },
	{ "no-read-ahead", no_argument, NULL, NO_READ_AHEAD },
	{ "cache", required_argument, NULL, CACHE },
	{ "open-files", required_argument, NULL, OPEN_FILES },
	{ "file-size", required_argument, NULL, FILE_SIZE },
	{ "print-operations", required_argument, NULL, PRINT },
	{ "json", no_argument, NULL, JSON },
	{ "help", no_argument, NULL, HELP },
	{ NULL, 0, NULL, 0 },
};

static void parse_engine(struct options *options, const char *text)
{
	static const struct engine_ops *const engines[] = {
		&engine_lmdb, &engine_leveldb,
	};

	for (size_t i = 0; i < sizeof(engines) / sizeof(*engines); i++) {
		if (!strcmp(text, engines[i]->name)) {
			options->engine = engines[i];
			return;
		}
	}
	die(EXIT_USAGE, "unknown engine '%s': use lmdb or leveldb", text);
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

static void parse_phases(struct options *options, char *text)
{
	char *save = NULL;

	options->phase_count = 0;
	for (char *word = strtok_r(text, ",", &save); word;
	     word = strtok_r(NULL, ",", &save))
		add_phase(options, word);
	if (!options->phase_count)
		die(EXIT_USAGE, "--workload wants at least one workload");
}

static enum distribution parse_distribution(const char *text)
{
	for (enum distribution d = 0; d < DISTRIBUTIONS; d++) {
		if (!strcmp(text, distribution_names[d]))
			return d;
	}
	die(EXIT_USAGE, "unknown distribution '%s': use zipfian, latest or uniform",
	    text);
}

static bool parse_switch(const char *option, const char *text)
{
	if (strcmp(text, "on") != 0 && strcmp(text, "off") != 0)
		die(EXIT_USAGE, "%s wants on or off, not '%s'", option, text);
	return text[1] == 'n';
}

static void check(const struct options *o, bool count_given)
{
	bool lmdb = o->engine == &engine_lmdb;

	if (o->print && o->phase_count != 1)
		die(EXIT_USAGE, "--print-operations wants one --workload");
	if (o->print)
		return;
	if (!o->folder)
		die(EXIT_USAGE, "--dir is missing: where is the database to be?");
	if (o->only_loaded && (o->phase_count != 1 || o->phases[0] != WORKLOAD_C))
		die(EXIT_USAGE, "--only-loaded is for the workload c alone");
	if (count_given && o->seconds > 0)
		die(EXIT_USAGE, "give --operations or --seconds, not both");
	if (lmdb && !o->mapped)
		die(EXIT_USAGE, "LMDB always maps its database: --mmap off is for leveldb");
	if (lmdb && (o->cache || o->open_files || o->file_size))
		die(EXIT_USAGE, "--cache, --open-files and --file-size are for leveldb");
	if (!lmdb && (o->map_size || o->no_read_ahead))
		die(EXIT_USAGE, "--map-size and --no-read-ahead are for lmdb");
}

static void apply(struct options *o, int option)
{
	switch (option) {
	case ENGINE:
		parse_engine(o, optarg);
		break;
	case WORKLOAD:
		parse_phases(o, optarg);
		break;
	case DIR:
		o->folder = optarg;
		break;
	case RECORDS:
		o->records = parse_number("--records", optarg, 2, 1000000000);
		break;
	case SECONDS:
		o->seconds = parse_seconds("--seconds", optarg);
		break;
	case THREADS:
		o->threads = (unsigned int)
			parse_number("--threads", optarg, 1, MAX_THREADS);
		break;
	case VALUE_SIZE:
		o->value_size = parse_number("--value-size", optarg,
					     LEAST_VALUE_SIZE, MOST_VALUE_SIZE);
		break;
	case BATCH:
		o->batch = (unsigned int)
			parse_number("--batch", optarg, 1, 100000);
		break;
	case ONLY_LOADED:
		o->only_loaded = true;
		break;
	case SYNC:
		o->sync = true;
		break;
	case DISTRIBUTION:
		o->distribution = parse_distribution(optarg);
		break;
	case SEED:
		o->seed = parse_number("--seed", optarg, 0, UINT64_MAX);
		break;
	case MMAP:
		o->mapped = parse_switch("--mmap", optarg);
		break;
	case MAP_SIZE:
		o->map_size = parse_number("--map-size", optarg, 1, 1 << 24) * MIB;
		break;
	case NO_READ_AHEAD:
		o->no_read_ahead = true;
		break;
	case CACHE:
		o->cache = parse_number("--cache", optarg, 1, 1 << 20) * MIB;
		break;
	case OPEN_FILES:
		/* LevelDB makes more of fewer. */
		o->open_files = (unsigned int)
			parse_number("--open-files", optarg, 74, 50000);
		break;
	case FILE_SIZE:
		o->file_size = parse_number("--file-size", optarg, 1, 1024) * MIB;
		break;
	case PRINT:
		o->print = parse_number("--print-operations", optarg, 1,
					1000000000);
		break;
	case JSON:
		o->json = true;
		break;
	case HELP:
		fputs(help, stdout);
		exit(EXIT_OK);
	}
}

void options_parse(struct options *options, int argc, char **argv)
{
	static char default_phases[] = "load,a,b,c,f,d,e";
	bool count_given = false;
	int option;

	*options = (struct options){
		.engine = &engine_lmdb,
		.records = 100000,
		.operations = 100000,
		.threads = (unsigned int)sysconf(_SC_NPROCESSORS_ONLN),
		.batch = 1,
		.value_size = 1000,
		.seed = 1,
		.distribution = DISTRIBUTIONS,
		.mapped = true,
	};
	parse_phases(options, default_phases);
	opterr = 0;
	while ((option = getopt_long(argc, argv, "", long_options, NULL)) != -1) {
		if (option == '?')
			die(EXIT_USAGE, "cannot use '%s'; ycsb-bench --help lists the options",
			    argv[optind - 1]);
		if (option == OPERATIONS_) {
			options->operations = parse_number("--operations", optarg,
							   1, 1000000000000);
			count_given = true;
		} else {
			apply(options, option);
		}
	}
	if (optind < argc)
		die(EXIT_USAGE, "'%s' is not an option; the folder is given with --dir",
		    argv[optind]);
	check(options, count_given);
}
