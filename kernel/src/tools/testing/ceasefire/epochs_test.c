// SPDX-License-Identifier: GPL-2.0
/*
 * Epochs of a morsel against a small machine: pages are given up one by one, epochs end and are
 * settled, flushes of the process come at any time. Every state that can be reached within so
 * many steps is visited. An offset whose mark is not owed any more must be one that the CPU
 * has flushed since it was cleared.
 */
#include <stdbool.h>
#include <string.h>

#include "ktap.h"
#include "lazy_state.h"

enum { OFFSETS = 2, STEPS = 10 };

struct machine {
	struct morsel_epochs e;
	u64 target;		/* plus 1 */
	u64 started, completed;
	u64 flush;		/* under way: its number, 0: none */
	u64 mark[OFFSETS];	/* 0: there is a page */
	bool holds[OFFSETS];
};

static bool broken;

static void look(struct machine *m)
{
	if (morsel_epochs_wait(&m->e) && m->target - 1 < m->completed)
		m->e.settled = m->e.closed;
}

static void check(const struct machine *m)
{
	int i;

	for (i = 0; i < OFFSETS; i++)
		if (m->mark[i] && !morsel_epoch_is_owed(m->mark[i], m->e.settled) &&
		    m->holds[i])
			broken = true;
}

/* What can happen next; false: not now. */
static bool step(struct machine *m, int what)
{
	int i = what % OFFSETS;

	switch (what / OFFSETS) {
	case 0:			/* used */
		if (m->mark[i])
			return false;
		m->holds[i] = true;
		return true;
	case 1:			/* given up */
		if (m->mark[i])
			return false;
		m->mark[i] = m->e.now;
		return true;
	case 2:
		if (i == 0) {	/* the epoch ends, for ticks */
			look(m);
			if (morsel_epochs_wait(&m->e))
				return false;
			m->e.closed = m->e.now++;
			m->target = m->started + 1;
			return true;
		}
		if (m->flush)	/* a flush passes the CPU, */
			return false;
		m->flush = ++m->started;
		memset(m->holds, 0, sizeof(m->holds));
		return true;
	case 3:
		if (i == 0) {	/* and is completed */
			if (!m->flush)
				return false;
			m->completed = m->flush;
			m->flush = 0;
			return true;
		}
		look(m);
		return true;
	default:		/* populated again, if it may be */
		if (!m->mark[i] || morsel_epoch_is_owed(m->mark[i], m->e.settled))
			return false;
		m->mark[i] = 0;
		m->holds[i] = false;
		return true;
	}
}

static unsigned long go_on(const struct machine *before, int steps)
{
	unsigned long ends = 0;
	int what;

	check(before);
	if (!steps)
		return 1;
	for (what = 0; what < 5 * OFFSETS; what++) {
		struct machine m = *before;

		if (step(&m, what))
			ends += go_on(&m, steps - 1);
	}
	return ends;
}

static void nothing_is_settled_early(void)
{
	struct machine m = { .started = 1, .completed = 1 };

	morsel_epochs_begin(&m.e);
	CHECK(go_on(&m, STEPS) > 100000);
	CHECK(!broken);
}

/* The wrong number to wait for is found out. */
static void target_of_the_flush_under_way(void)
{
	struct machine m = { .started = 1, .completed = 1 };

	morsel_epochs_begin(&m.e);
	/* It passes the CPU, which then uses the page. */
	CHECK(step(&m, 5) && step(&m, 0) && step(&m, 2) && step(&m, 4));
	CHECK(m.target == m.started + 1);
	m.target--;
	CHECK(step(&m, 6));
	look(&m);
	broken = false;
	check(&m);
	CHECK(broken);
}

static void a_new_one_owes_nothing(void)
{
	struct morsel_epochs e;

	morsel_epochs_begin(&e);
	CHECK(!morsel_epochs_wait(&e));
	CHECK(morsel_epoch_is_owed(e.now, e.settled));
	CHECK(!morsel_epoch_is_owed(0, e.settled));
}

int main(void)
{
	static const struct ktap_case cases[] = {
		{ "epochs.a_new_one_owes_nothing", a_new_one_owes_nothing },
		{ "epochs.nothing_is_settled_early", nothing_is_settled_early },
		{ "epochs.target_of_the_flush_under_way",
		  target_of_the_flush_under_way },
	};

	return KTAP_RUN(cases);
}
