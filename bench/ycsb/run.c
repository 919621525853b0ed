// SPDX-License-Identifier: GPL-2.0-only
/*
 * run.c - the threads of one phase
 *
 * What: starts the threads, reads the kernel's counters when all are ready and
 *       when all are done, and sums up how long operations took.
 * Who:  main.c.
 *
 * A phase ends when its operations are done or its time is over. Threads that
 * are done wait for nobody: with --operations the last one decides how long a
 * phase took.
 */
#include "run.h"
#include "values.h"

#include "../common/util.h"

#include <stdlib.h>
#include <string.h>

struct run {
	const struct options *options;
	const struct workload *workload;
	struct ledger *ledger;
	void *database;
	pthread_barrier_t ready;	/* all threads and phase_run() */
	pthread_barrier_t go;
	uint64_t end_ns;		/* 0: until all operations are done */
	uint64_t expected;		/* operations, for the choice of keys */
};

struct worker {
	struct run *run;
	unsigned int index;
	pthread_t thread;
	void *session;
	char *value;
	uint64_t operations;
	struct latency latency[OPERATIONS];
};

static struct bytes value_of(struct worker *w, uint64_t number,
			     uint32_t version)
{
	size_t size = w->run->options->value_size;

	value_fill(w->value, size, number, version);
	return (struct bytes){ .data = w->value, .size = size };
}

static void put(struct worker *w, uint64_t number, uint32_t version)
{
	char name[KEY_SIZE];
	struct bytes key = { .data = name };

	key.size = key_name(name, number);
	w->run->options->engine->put(w->session, key,
				     value_of(w, number, version));
}

static void insert(struct worker *w, uint64_t first, uint64_t count)
{
	const struct engine_ops *engine = w->run->options->engine;

	engine->begin(w->session);
	for (uint64_t i = 0; i < count; i++)
		put(w, first + i, 1);
	engine->commit(w->session);
	for (uint64_t i = 0; i < count; i++)
		ledger_inserted(w->run->ledger, first + i);
}

static void update(struct worker *w, uint64_t number, bool read)
{
	const struct engine_ops *engine = w->run->options->engine;
	struct ledger *ledger = w->run->ledger;
	uint32_t version = ledger_lock(ledger, number) + 1;

	if (read)
		check_get(ledger, engine, w->session, number, true);
	engine->begin(w->session);
	put(w, number, version);
	engine->commit(w->session);
	ledger_unlock(ledger, number, version);
}

static void operate(struct worker *w, const struct request *request)
{
	const struct engine_ops *engine = w->run->options->engine;
	struct ledger *ledger = w->run->ledger;

	switch (request->operation) {
	case OP_READ:
		check_get(ledger, engine, w->session, request->key, false);
		break;
	case OP_UPDATE:
		update(w, request->key, false);
		break;
	case OP_READ_MODIFY_WRITE:
		update(w, request->key, true);
		break;
	case OP_SCAN:
		check_scan(ledger, engine, w->session, request->key,
			   request->length);
		break;
	default:
		insert(w, ledger_claim(ledger, 1), 1);
	}
}

static void load(struct worker *w)
{
	const struct options *o = w->run->options;
	uint64_t batch = o->batch, first;

	while ((first = ledger_claim(w->run->ledger, batch)) < o->records) {
		uint64_t left = o->records - first;
		uint64_t count = left < batch ? left : batch;
		uint64_t start = now_ns();

		insert(w, first, count);
		latency_add(&w->latency[OP_INSERT], now_ns() - start);
		w->operations += count;
	}
}

/* What of all operations is to be done by this thread. */
static uint64_t share(const struct options *o, unsigned int thread)
{
	return o->operations / o->threads +
	       (thread < o->operations % o->threads);
}

static void choose_and_operate(struct worker *w)
{
	const struct options *o = w->run->options;
	uint64_t limit = w->run->end_ns ? UINT64_MAX : share(o, w->index);
	const struct chooser_setup setup = {
		.workload = w->run->workload,
		.distribution = o->distribution == DISTRIBUTIONS ?
				w->run->workload->distribution : o->distribution,
		.last = &w->run->ledger->last,
		.operations = w->run->expected,
		.seed = o->seed,
		.stream = chooser_stream(w->run->workload, w->index),
	};
	struct chooser chooser;
	uint64_t start = now_ns();

	chooser_init(&chooser, &setup);
	while (w->operations < limit) {
		struct request request;
		uint64_t end;

		chooser_next(&chooser, &request);
		start = now_ns();
		operate(w, &request);
		end = now_ns();
		latency_add(&w->latency[request.operation], end - start);
		w->operations++;
		if (w->run->end_ns && end >= w->run->end_ns)
			break;
	}
}

static void *work(void *argument)
{
	struct worker *w = argument;
	const struct options *o = w->run->options;

	w->value = malloc(o->value_size);
	if (!w->value)
		die(EXIT_FAILED, "out of memory");
	w->session = o->engine->attach(w->run->database);
	pthread_barrier_wait(&w->run->ready);
	pthread_barrier_wait(&w->run->go);
	if (w->run->workload == &workloads[LOAD])
		load(w);
	else
		choose_and_operate(w);
	o->engine->detach(w->session);
	free(w->value);
	return NULL;
}

static void sum_up(struct result *result, struct worker *workers,
		   unsigned int threads)
{
	result->operations = 0;
	memset(result->latency, 0, sizeof(result->latency));
	memset(&result->all, 0, sizeof(result->all));
	for (unsigned int i = 0; i < threads; i++) {
		result->operations += workers[i].operations;
		for (unsigned int op = 0; op < OPERATIONS; op++) {
			latency_merge(&result->latency[op],
				      &workers[i].latency[op]);
			latency_merge(&result->all, &workers[i].latency[op]);
		}
	}
}

void phase_run(struct result *result, const struct options *options,
	       enum phase phase, void *database, struct ledger *ledger)
{
	struct worker *workers = calloc(options->threads, sizeof(*workers));
	static struct counters before;
	struct run run = {
		.options = options,
		.workload = &workloads[phase],
		.ledger = ledger,
		.database = database,
	};
	uint64_t start;

	if (!workers)
		die(EXIT_FAILED, "out of memory");
	pthread_barrier_init(&run.ready, NULL, options->threads + 1);
	pthread_barrier_init(&run.go, NULL, options->threads + 1);
	for (unsigned int i = 0; i < options->threads; i++) {
		int error;

		workers[i].run = &run;
		workers[i].index = i;
		error = pthread_create(&workers[i].thread, NULL, work,
				       &workers[i]);
		if (error)
			die(EXIT_FAILED, "cannot start a thread: %s",
			    strerror(error));
	}
	pthread_barrier_wait(&run.ready);
	counters_read(&before);
	start = now_ns();
	run.expected = options->operations;
	if (options->seconds > 0 && phase != LOAD) {
		run.end_ns = start + (uint64_t)(options->seconds * 1e9);
		/* Nobody knows; once for each record is a guess. */
		run.expected = ledger_records(ledger);
	}
	pthread_barrier_wait(&run.go);
	for (unsigned int i = 0; i < options->threads; i++)
		pthread_join(workers[i].thread, NULL);
	result->ns = now_ns() - start;
	counters_read(&result->counters);
	counters_subtract(&result->counters, &before);
	/* Threads that load claim records that they find to be too many. */
	atomic_store(&ledger->next, ledger_records(ledger));
	sum_up(result, workers, options->threads);
	pthread_barrier_destroy(&run.ready);
	pthread_barrier_destroy(&run.go);
	free(workers);
}
