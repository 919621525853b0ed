// SPDX-License-Identifier: GPL-2.0
/*
 * The shared tag against a small machine: two processes that unmap the same
 * frame, step by step as cf_tag_frame() and cf_tag_cover() in tags.c do it,
 * beside flushes of all CPUs and flushes of each process. Every state that can
 * be reached is visited once. Where nobody uses the frame any more, a tag that
 * says "clean" must mean that no CPU holds a translation.
 */
#include <stdlib.h>
#include <string.h>

#include "ktap.h"
#include "tag_state.h"

enum { X, Y, PROCESSES };

/* How often each process maps the frame, and all CPUs are flushed. */
enum { CYCLES = 2, FLUSHES = 3 };

/* Where a process is; each is one step that others see as a whole. */
enum at { IDLE, MAPPED, CLEARED, JUDGE, COMBINE, STORE, REREAD, COVER };

struct process {
	enum at at;
	int cycles, own_flushes;
	bool holds;		/* a CPU holds its translation */
	bool stale;		/* locals of cf_tag_frame() */
	u64 started, completed, new, old, next;
};

struct machine {
	struct process p[PROCESSES];
	u64 slot, started, completed;
	u64 flush;		/* number of the flush under way, 0: none */
	int flushes;
	bool flushed;
};

static bool cover;		/* cf_tag_cover(); without it to show why */

static bool is_stale(const struct machine *m, u64 tag)
{
	u32 id = cf_tag_id(tag);

	if (id == CF_ID_NONE)
		return false;
	return cf_gen_stale(cf_tag_gen(tag), id == CF_ID_SHARED ?
			    m->completed : m->p[id - 1].completed);
}

static u64 shared_now(const struct machine *m)
{
	return cf_tag_make(CF_ID_SHARED, m->started);
}

/* One step of a process; false if it has none. */
static bool run(struct machine *m, int who)
{
	struct process *p = &m->p[who];

	switch (p->at) {
	case IDLE:
		if (p->cycles == CYCLES)
			return false;
		p->cycles++;
		p->holds = true;
		p->at = MAPPED;
		return true;
	case MAPPED:
		p->at = CLEARED;
		return true;
	case CLEARED:
		p->new = cf_tag_make((u32)who + 1, p->started);
		p->at = JUDGE;
		p->old = m->slot;
		if (p->old == p->new)
			p->at = IDLE;
		return true;
	case JUDGE:
		p->stale = p->old && cf_tag_id(p->old) != cf_tag_id(p->new) &&
			   is_stale(m, p->old);
		p->at = COMBINE;
		return true;
	case COMBINE:
		p->next = cf_tag_combine(p->old, p->stale, p->new,
					 p->stale ? shared_now(m) : 0);
		p->at = p->next == p->old ? IDLE : STORE;
		return true;
	case STORE:
		if (m->slot != p->old) {
			p->old = m->slot;
			p->at = JUDGE;
			return true;
		}
		m->slot = p->next;
		p->at = cf_tag_id(p->next) == CF_ID_SHARED && cover ?
			REREAD : IDLE;
		return true;
	case REREAD:
		p->at = shared_now(m) == p->next ? IDLE : COVER;
		p->next = shared_now(m);
		return true;
	case COVER:
		m->slot = p->next;
		p->at = REREAD;
		return true;
	}
	return false;
}

/* One step of a flush of all CPUs. */
static bool flush_all(struct machine *m)
{
	if (!m->flush) {
		if (m->flushes == FLUSHES)
			return false;
		m->flushes++;
		m->flush = ++m->started;
		m->flushed = false;
	} else if (!m->flushed) {
		int i;

		/* Of what is mapped now the CPU may fetch it again at once. */
		for (i = 0; i < PROCESSES; i++)
			m->p[i].holds = m->p[i].at == MAPPED;
		m->flushed = true;
	} else {
		if (m->completed < m->flush)
			m->completed = m->flush;
		m->flush = 0;
	}
	return true;
}

/* A full flush of one process; its steps are what tag_test.c is about. */
static bool flush_own(struct machine *m, int who)
{
	struct process *p = &m->p[who];

	if (p->own_flushes)
		return false;
	p->own_flushes++;
	p->completed = ++p->started;
	p->holds = p->at == MAPPED;
	return true;
}

enum { TABLE = 1 << 22 };

static struct machine *seen;
static unsigned long states, clean, wrong;

static bool is_new(const struct machine *m)
{
	const unsigned char *bytes = (const unsigned char *)m;
	static const struct machine empty;
	unsigned long hash = 1469598103934665603UL;
	size_t i;

	for (i = 0; i < sizeof(*m); i++)
		hash = (hash ^ bytes[i]) * 1099511628211UL;
	for (hash %= TABLE; memcmp(&seen[hash], &empty, sizeof(empty));
	     hash = (hash + 1) % TABLE)
		if (!memcmp(&seen[hash], m, sizeof(*m)))
			return false;
	if (states == TABLE / 2) {
		printf("Bail out! more than %lu states\n", states);
		exit(1);
	}
	memcpy(&seen[hash], m, sizeof(*m));
	return true;
}

static void explore(const struct machine *m)
{
	int what;

	if (!is_new(m))
		return;
	states++;
	if (m->p[X].at == IDLE && m->p[Y].at == IDLE && m->slot &&
	    !is_stale(m, m->slot)) {
		clean++;
		wrong += m->p[X].holds || m->p[Y].holds;
	}
	for (what = 0; what < 5; what++) {
		struct machine next;
		bool did;

		memcpy(&next, m, sizeof(next));
		did = what < 2 ? run(&next, what) :
		      what < 4 ? flush_own(&next, what - 2) : flush_all(&next);
		if (did)
			explore(&next);
	}
}

static void explore_from_start(bool with_cover)
{
	struct machine m;
	int i;

	memset(&m, 0, sizeof(m));
	m.started = 1;
	m.completed = 1;
	for (i = 0; i < PROCESSES; i++) {
		m.p[i].started = 1;
		m.p[i].completed = 1;
	}
	cover = with_cover;
	states = 0;
	clean = 0;
	wrong = 0;
	seen = calloc(TABLE, sizeof(*seen));
	if (!seen) {
		puts("Bail out! no memory");
		exit(1);
	}
	explore(&m);
	free(seen);
	printf("# %lu states, %lu judged clean, %lu of them wrongly\n", states,
	       clean, wrong);
}

static void clean_means_unreachable(void)
{
	explore_from_start(true);
	CHECK(!wrong);
	CHECK(clean);
}

static void the_generation_before_the_store_is_not_enough(void)
{
	explore_from_start(false);
	CHECK(wrong);
}

int main(void)
{
	static const struct ktap_case cases[] = {
		{ "shared.clean_means_unreachable", clean_means_unreachable },
		{ "shared.the_generation_before_the_store_is_not_enough",
		  the_generation_before_the_store_is_not_enough },
	};

	return KTAP_RUN(cases);
}
