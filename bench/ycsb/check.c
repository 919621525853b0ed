// SPDX-License-Identifier: GPL-2.0-only
/*
 * check.c - what the database has to hold, and whether it does
 *
 * What: the ledger has the version of each record. A record is changed under
 *       its lock, and the ledger afterwards: whoever reads it must find at least
 *       the version that the ledger had before the read, and at most one more
 *       than the one that it has after it. So data that is too old is noticed,
 *       not only data that is wrong.
 * Who:  run.c at each operation, main.c between the phases.
 */
#include "check.h"
#include "values.h"

#include "../common/util.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>

void ledger_init(struct ledger *l, size_t value_size, bool exclusive)
{
	void *versions = mmap(NULL, LEDGER_RECORDS * sizeof(*l->versions),
			      PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (versions == MAP_FAILED)
		die_errno("no address space for the versions of the records");
	*l = (struct ledger){
		.value_size = value_size,
		.exclusive = exclusive,
		.versions = versions,
		.last = UINT64_MAX,
	};
	for (unsigned int i = 0; i < LEDGER_LOCKS; i++)
		pthread_mutex_init(&l->locks[i], NULL);
}

/* Numbers of @count new records; returns the first. */
uint64_t ledger_claim(struct ledger *l, uint64_t count)
{
	uint64_t first = atomic_fetch_add(&l->next, count);

	if (first + count >= LEDGER_RECORDS)
		die(EXIT_FAILED, "more than %" PRIu64 " records",
		    LEDGER_RECORDS);
	return first;
}

/* It can be read from now on. */
void ledger_inserted(struct ledger *l, uint64_t number)
{
	uint64_t last = atomic_load(&l->last);

	atomic_store(&l->versions[number], 1);
	/* Whoever comes last of two neighbours sees the other. */
	while (atomic_load(&l->versions[last + 1])) {
		if (atomic_compare_exchange_weak(&l->last, &last, last + 1))
			last++;
	}
}

uint64_t ledger_records(const struct ledger *l)
{
	return atomic_load(&l->last) + 1;
}

static pthread_mutex_t *lock_of(struct ledger *l, uint64_t number)
{
	return &l->locks[number % LEDGER_LOCKS];
}

/* Nobody else changes the record until ledger_unlock(). Returns its version. */
uint32_t ledger_lock(struct ledger *l, uint64_t number)
{
	pthread_mutex_lock(lock_of(l, number));
	return atomic_load(&l->versions[number]);
}

void ledger_unlock(struct ledger *l, uint64_t number, uint32_t version)
{
	atomic_store(&l->versions[number], version);
	pthread_mutex_unlock(lock_of(l, number));
}

/* Counts; the first one is told. */
void ledger_wrong(struct ledger *l, const char *format, ...)
{
	char text[200];
	va_list args;

	if (atomic_fetch_add(&l->wrong, 1))
		return;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	fprintf(stderr, "ycsb-bench: %s\n", text);
}

/* Is this a record that was written here, under its own key? */
static bool is_record(struct ledger *l, struct bytes key, struct bytes value,
		      uint64_t *number, uint32_t *version)
{
	char name[KEY_SIZE];

	if (!value_read(value.data, value.size, number, version)) {
		ledger_wrong(l, "%.*s: wrong contents", (int)key.size,
			     (const char *)key.data);
		return false;
	}
	if (key_name(name, *number) != key.size ||
	    memcmp(name, key.data, key.size) != 0) {
		ledger_wrong(l, "%.*s: the record of %s", (int)key.size,
			     (const char *)key.data, name);
		return false;
	}
	return true;
}

static void check_record(struct ledger *l, struct bytes key, struct bytes value,
			 uint32_t least, bool exact, uint64_t *number)
{
	uint32_t version, most;

	if (!is_record(l, key, value, number, &version))
		return;
	if (value.size != l->value_size || *number >= LEDGER_RECORDS) {
		ledger_wrong(l, "%.*s: %zu bytes", (int)key.size,
			     (const char *)key.data, value.size);
		return;
	}
	most = atomic_load(&l->versions[*number]);
	if (exact)
		least = most;
	else
		most++;
	if (version < least || version > most)
		ledger_wrong(l, "%.*s: version %" PRIu32 ", not from %" PRIu32
			     " to %" PRIu32, (int)key.size,
			     (const char *)key.data, version, least, most);
}

struct get {
	struct ledger *ledger;
	uint32_t least;
	bool exact;
};

static void visit_get(void *context, struct bytes key, struct bytes value)
{
	struct get *get = context;
	uint64_t number;

	check_record(get->ledger, key, value, get->least, get->exact, &number);
}

/* @locked: by the caller, so that the version is known. */
void check_get(struct ledger *l, const struct engine_ops *engine, void *session,
	       uint64_t number, bool locked)
{
	struct get get = {
		.ledger = l,
		.least = atomic_load(&l->versions[number]),
		.exact = locked || l->exclusive,
	};
	char name[KEY_SIZE];
	struct bytes key = { .data = name };

	key.size = key_name(name, number);
	if (!engine->get(session, key, visit_get, &get))
		ledger_wrong(l, "%s: not found", name);
}

struct scan {
	struct ledger *ledger;
	bool exact;
	bool learn;
	uint64_t rows;
	size_t previous_size;
	char previous[KEY_SIZE];
	const char *from;	/* the key of the first row, or NULL */
};

static void check_order(struct scan *scan, struct bytes key)
{
	size_t least = key.size < scan->previous_size ? key.size :
							scan->previous_size;
	int order = memcmp(scan->previous, key.data, least);

	if (key.size >= KEY_SIZE || order > 0 ||
	    (!order && scan->previous_size >= key.size)) {
		ledger_wrong(scan->ledger, "%.*s: out of order", (int)key.size,
			     (const char *)key.data);
		return;
	}
	memcpy(scan->previous, key.data, key.size);
	scan->previous_size = key.size;
}

static void learn_record(struct ledger *l, struct bytes key, struct bytes value)
{
	uint32_t version;
	uint64_t number;

	if (!is_record(l, key, value, &number, &version))
		return;
	if (value.size != l->value_size)
		die(EXIT_USAGE, "the records have %zu bytes: give --value-size %zu",
		    value.size, value.size);
	if (number >= LEDGER_RECORDS)
		die(EXIT_FAILED, "record %" PRIu64 " is beyond all limits", number);
	ledger_inserted(l, number);
	atomic_store(&l->versions[number], version);
}

static void visit_scan(void *context, struct bytes key, struct bytes value)
{
	struct scan *scan = context;
	uint64_t number;

	check_order(scan, key);
	if (!scan->rows++ && scan->from &&
	    (strlen(scan->from) != key.size ||
	     memcmp(scan->from, key.data, key.size) != 0))
		ledger_wrong(scan->ledger, "%s: not found by a scan", scan->from);
	if (scan->learn)
		learn_record(scan->ledger, key, value);
	else
		/* How old the view of a scan may be is known with one thread. */
		check_record(scan->ledger, key, value, 1, scan->exact, &number);
}

void check_scan(struct ledger *l, const struct engine_ops *engine,
		void *session, uint64_t number, unsigned int length)
{
	struct scan scan = { .ledger = l, .exact = l->exclusive };
	char name[KEY_SIZE];
	struct bytes from = { .data = name };

	from.size = key_name(name, number);
	scan.from = name;
	engine->scan(session, from, length, visit_scan, &scan);
	if (!scan.rows)
		ledger_wrong(l, "%s: not found by a scan", name);
}

/*
 * Reads all records, while nobody else uses the database, and returns how many
 * there are. @learn: the ledger is empty and takes what it finds.
 */
uint64_t check_rows(struct ledger *l, const struct engine_ops *engine,
		    void *session, bool learn)
{
	struct scan scan = { .ledger = l, .exact = true, .learn = learn };
	uint64_t records;

	engine->scan(session, (struct bytes){ .data = "" }, SIZE_MAX, visit_scan,
		     &scan);
	records = ledger_records(l);
	if (learn)
		atomic_store(&l->next, records);
	if (scan.rows != records)
		ledger_wrong(l, "%" PRIu64 " records found, %" PRIu64 " expected",
			     scan.rows, records);
	return scan.rows;
}
