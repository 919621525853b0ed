/* SPDX-License-Identifier: GPL-2.0-only */
/* check.h - what the database has to hold, and whether it does; see check.c. */
#ifndef YCSB_CHECK_H
#define YCSB_CHECK_H

#include "engine.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define LEDGER_RECORDS (UINT64_C(1) << 31)
#define LEDGER_LOCKS 1024

struct ledger {
	size_t value_size;
	bool exclusive;			/* one thread */
	_Atomic uint32_t *versions;	/* of each record; 0: not there */
	_Atomic uint64_t next;		/* the number of the next new record */
	/* All up to this one are there; UINT64_MAX: none. */
	_Atomic uint64_t last;
	_Atomic uint64_t wrong;
	pthread_mutex_t locks[LEDGER_LOCKS];
};

void ledger_init(struct ledger *l, size_t value_size, bool exclusive);
uint64_t ledger_claim(struct ledger *l, uint64_t count);
void ledger_inserted(struct ledger *l, uint64_t number);
uint64_t ledger_records(const struct ledger *l);
uint32_t ledger_lock(struct ledger *l, uint64_t number);
void ledger_unlock(struct ledger *l, uint64_t number, uint32_t version);
void ledger_wrong(struct ledger *l, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

void check_get(struct ledger *l, const struct engine_ops *engine, void *session,
	       uint64_t number, bool locked);
void check_scan(struct ledger *l, const struct engine_ops *engine,
		void *session, uint64_t number, unsigned int length);
uint64_t check_rows(struct ledger *l, const struct engine_ops *engine,
		    void *session, bool learn);

#endif /* YCSB_CHECK_H */
