// SPDX-License-Identifier: GPL-2.0-only
/*
 * main.c - ycsb-bench: LMDB, LevelDB and a buffer pool under the core workloads of YCSB
 *
 * What: runs the phases on one database and prints each as text or as a JSON
 *       line. After each phase all records are read and counted.
 * Who:  people. It knows nothing of FPR: `ceasefire run` or prctl() gives the
 *       mappings of the stores MAP_FPR, as for any program.
 */
#include "check.h"
#include "options.h"
#include "run.h"
#include "values.h"

#include "../common/environment.h"
#include "../common/json.h"
#include "../common/util.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct ledger ledger;
static struct result result;

/* How many mappings of files of the database are there? */
static unsigned int count_mappings(const char *folder)
{
	char path[PATH_MAX], line[PATH_MAX + 200];
	unsigned int count = 0;
	FILE *maps;
	size_t length;

	if (!realpath(folder, path))
		die_errno("%s", folder);
	length = strlen(path);
	maps = fopen("/proc/self/maps", "re");
	if (!maps)
		die_errno("/proc/self/maps");
	while (fgets(line, sizeof(line), maps)) {
		const char *at = strchr(line, '/');

		count += at && !strncmp(at, path, length) && at[length] == '/';
	}
	fclose(maps);
	return count;
}

static void add_latency(struct json *json, const char *name, const struct latency *l)
{
	json_open_object(json, name);
	json_unsigned(json, "count", l->count);
	latency_json_quantiles(json, l);
	json_close_object(json);
}

static void print_pool(struct json *json, const struct options *o)
{
	json_string(json, "evict", pool_ways[o->evict]);
	/* In the phase, and when all was read after it. */
	json_unsigned(json, "evicted", pool_evicted());
}

static void print_json(const struct options *o, enum phase phase,
		       unsigned int position, uint64_t rows, uint64_t wrong)
{
	enum distribution distribution = o->distribution == DISTRIBUTIONS ?
		workloads[phase].distribution : o->distribution;
	struct json json;

	json_begin(&json, stdout, "ycsb");
	json_string(&json, "engine", o->engine->name);
	json_string(&json, "workload", workloads[phase].name);
	json_unsigned(&json, "position", position);
	json_unsigned(&json, "threads", o->threads);
	json_unsigned(&json, "value_size", o->value_size);
	json_unsigned(&json, "seed", o->seed);
	json_bool(&json, "mmap", o->mapped);
	json_bool(&json, "sync", o->sync);
	if (o->engine == &engine_pool)
		print_pool(&json, o);
	if (phase == LOAD)
		json_unsigned(&json, "batch", o->batch);
	else
		json_string(&json, "distribution", distribution_names[distribution]);
	json_unsigned(&json, "records", rows);
	json_unsigned(&json, "mappings", count_mappings(o->folder));
	json_unsigned(&json, "wrong", wrong);
	json_unsigned(&json, "ops", result.operations);
	json_unsigned(&json, "ns", result.ns);
	json_real(&json, "rate", per_second(result.operations, result.ns), 3);
	json_open_object(&json, "latency");
	add_latency(&json, "all", &result.all);
	for (unsigned int op = 0; op < OPERATIONS; op++) {
		if (result.latency[op].count)
			add_latency(&json, operation_names[op], &result.latency[op]);
	}
	json_close_object(&json);
	latency_json(&json, &result.all);
	counters_json(&json, &result.counters);
	json_end(&json);
}

static void print_text(const struct options *o, enum phase phase, uint64_t rows)
{
	int64_t received = counters_get(&result.counters,
					"nr_tlb_remote_flush_received");
	const struct latency *l = &result.all;

	printf("%s %-4s  %9.0f %s/s  p50 %.1f  p99 %.1f  p99.9 %.1f us  %"
	       PRIu64 " records", o->engine->name, workloads[phase].name,
	       per_second(result.operations, result.ns), phase == LOAD ? "records" : "operations",
	       (double)latency_quantile(l, 0.5) / 1e3,
	       (double)latency_quantile(l, 0.99) / 1e3,
	       (double)latency_quantile(l, 0.999) / 1e3, rows);
	if (received >= 0)
		printf("  %.4f shootdowns received per operation",
		       (double)received / (double)result.operations);
	printf("\n");
	fflush(stdout);
}

/* As if they had just been loaded. */
static void assume_loaded(const struct options *o)
{
	for (uint64_t i = 0; i < o->records; i++)
		ledger_inserted(&ledger, ledger_claim(&ledger, 1));
}

static void print_operations(const struct options *o)
{
	const struct workload *workload = &workloads[o->phases[0]];
	bool loads = o->phases[0] == LOAD;
	const struct chooser_setup setup = {
		.workload = workload,
		.distribution = o->distribution == DISTRIBUTIONS ?
				workload->distribution : o->distribution,
		.last = &ledger.last,
		.operations = o->print,
		.seed = o->seed,
		.stream = chooser_stream(workload, 0),
	};
	struct chooser chooser;

	if (!loads)
		assume_loaded(o);
	chooser_init(&chooser, &setup);
	for (uint64_t i = 0; i < o->print; i++) {
		struct request request;
		char name[KEY_SIZE];

		chooser_next(&chooser, &request);
		if (request.operation == OP_INSERT) {
			request.key = ledger_claim(&ledger, 1);
			ledger_inserted(&ledger, request.key);
		}
		key_name(name, request.key);
		printf("%s %" PRIu64 " %s", operation_names[request.operation],
		       request.key, name);
		if (request.operation == OP_SCAN)
			printf(" %u", request.length);
		putchar('\n');
	}
	if (fflush(stdout) || ferror(stdout))
		die_errno("cannot write");
}

static void *open_database(const struct options *o)
{
	bool loads = o->phases[0] == LOAD;
	uint64_t rows;
	void *database, *session;

	if (loads && mkdir(o->folder, 0777) && errno != EEXIST)
		die(EXIT_USAGE, "cannot make %s: %s", o->folder, strerror(errno));
	if (!loads && access(o->folder, W_OK))
		die(EXIT_USAGE, "cannot use %s: %s", o->folder, strerror(errno));
	database = o->engine->open(o);
	if (o->only_loaded) {
		assume_loaded(o);
		return database;
	}
	session = o->engine->attach(database);
	rows = check_rows(&ledger, o->engine, session, true);
	o->engine->detach(session);
	if (loads && rows)
		die(EXIT_USAGE, "%s has records already: remove it, or leave the workload load out",
		    o->folder);
	if (!loads && rows < 2)
		die(EXIT_USAGE, "%s has no records: begin with the workload load",
		    o->folder);
	return database;
}

static uint64_t count_rows(const struct options *o, void *database)
{
	void *session;
	uint64_t rows;

	if (o->only_loaded)
		return ledger_records(&ledger);
	session = o->engine->attach(database);
	rows = check_rows(&ledger, o->engine, session, false);
	o->engine->detach(session);
	return rows;
}

static void end_if_wrong(void)
{
	uint64_t wrong = atomic_load(&ledger.wrong);

	if (wrong)
		die(EXIT_FAILED, "%" PRIu64 " times wrong data", wrong);
}

int main(int argc, char **argv)
{
	struct options o;
	void *database;

	set_program_name("ycsb-bench");
	options_parse(&o, argc, argv);
	ledger_init(&ledger, o.value_size, o.threads == 1);
	if (o.print) {
		print_operations(&o);
		return EXIT_OK;
	}
	database = open_database(&o);
	end_if_wrong();
	if (o.json)
		print_environment_json(stdout);
	for (unsigned int i = 0; i < o.phase_count; i++) {
		uint64_t wrong = atomic_load(&ledger.wrong), rows;

		phase_run(&result, &o, o.phases[i], database, &ledger);
		rows = count_rows(&o, database);
		wrong = atomic_load(&ledger.wrong) - wrong;
		if (o.json)
			print_json(&o, o.phases[i], i, rows, wrong);
		else
			print_text(&o, o.phases[i], rows);
	}
	o.engine->close(database);
	end_if_wrong();
	return EXIT_OK;
}
