// SPDX-License-Identifier: GPL-2.0
/*
 * The algebra of tags, against a machine that is small enough to be tried
 * completely: every sequence of skips, flush requests, flushes carried out by
 * single CPUs, and completions, up to a length. What the tag says is compared
 * with what the TLBs of the machine really hold.
 */
#include <string.h>

#include "ktap.h"
#include "tag_state.h"

static void fields(void)
{
	u64 tag = cf_tag_make(5, 7);

	CHECK(cf_tag_id(tag) == 5);
	CHECK(cf_tag_gen(tag) == 7);
	CHECK(cf_tag_id(cf_tag_make(CF_ID_SHARED, 1)) == CF_ID_SHARED);
	CHECK(cf_tag_gen(cf_tag_make(1, CF_TAG_GEN_MASK)) ==
	      CF_TAG_GEN_MASK);
	CHECK(cf_tag_id(cf_tag_make(1, ~0ULL)) == 1);
	CHECK(CF_ID_MAX < CF_ID_SHARED);
	CHECK(cf_tag_make(1, 0) != 0);
	/* What does not fit would come back small. */
	CHECK(cf_gen_fits(CF_TAG_GEN_MASK));
	CHECK(!cf_gen_fits(CF_TAG_GEN_MASK + 1));
}

/* All of them; the build with narrow fields. */
static void every_tag(void)
{
	unsigned long tried = 0;
	u64 gen;
	u32 id;

	if (CF_TAG_GEN_BITS > 8) {
		/* Their ends, and what is beside them. */
		CHECK(cf_tag_gen(cf_tag_make(CF_ID_MAX, CF_TAG_GEN_MASK)) ==
		      CF_TAG_GEN_MASK);
		CHECK(cf_tag_id(cf_tag_make(CF_ID_MAX, ~0ULL)) == CF_ID_MAX);
		return;
	}
	for (id = 1; id <= CF_ID_SHARED; id++) {
		for (gen = 0; gen <= 4 * CF_TAG_GEN_MASK; gen++) {
			u64 tag = cf_tag_make(id, gen), completed;

			tried++;
			CHECK(tag && cf_tag_id(tag) == id);
			CHECK(!(tag & CF_TAG_WRITABLE));
			CHECK(cf_gen_fits(gen) == (cf_tag_gen(tag) == gen));
			/* What fits is judged as it would be with any width. */
			for (completed = 0; completed <= 5 * CF_TAG_GEN_MASK;
			     completed++)
				CHECK(!cf_gen_fits(gen) ||
				      cf_gen_stale(cf_tag_gen(tag), completed) ==
				      (gen >= completed));
		}
	}
	printf("# %lu tags\n", tried);
}

static void combine(void)
{
	u64 a5 = cf_tag_make(1, 5), a6 = cf_tag_make(1, 6);
	u64 b3 = cf_tag_make(2, 3);
	u64 s8 = cf_tag_make(CF_ID_SHARED, 8);
	u64 s9 = cf_tag_make(CF_ID_SHARED, 9);
	u64 w = CF_TAG_WRITABLE;

	CHECK(cf_tag_combine(0, false, a5, s8) == a5);
	/* One context: the newest debt counts. */
	CHECK(cf_tag_combine(a5, true, a6, s8) == a6);
	CHECK(cf_tag_combine(a6, true, a5, s8) == a6);
	CHECK(cf_tag_combine(a6, false, a5, s8) == a6);
	/* Two contexts: shared if the first still owes. */
	CHECK(cf_tag_combine(a5, false, b3, s8) == b3);
	CHECK(cf_tag_combine(a5, true, b3, s8) == s8);
	/* Shared stays shared, with the newest generation. */
	CHECK(cf_tag_combine(s8, true, b3, s9) == s9);
	CHECK(cf_tag_combine(s9, true, b3, s9) == s9);
	CHECK(cf_tag_combine(s8, false, b3, s9) == b3);
	/* What may be written to stays so as long as it is owed. */
	CHECK(cf_tag_combine(a6 | w, true, a5, s8) == (a6 | w));
	CHECK(cf_tag_combine(a5, true, a6 | w, s8) == (a6 | w));
	CHECK(cf_tag_combine(a5 | w, true, b3, s8) == (s8 | w));
	CHECK(cf_tag_combine(s9, true, b3 | w, s9) == (s9 | w));
	CHECK(cf_tag_combine(a5 | w, false, b3, s8) == b3);
	CHECK(cf_tag_id(a5 | w) == 1 && cf_tag_gen(a5 | w) == 5);
}

/* --- the small machine --- */

enum { CPUS = 2, FLUSHES = 3, STEPS = 8 };

/* One context, one frame, CPUs that may hold its translation. */
struct machine {
	bool mapped, holds[CPUS];
	u64 tag, started, completed;
	struct {
		bool full, live, done[CPUS];
		u64 gen;
	} flush[FLUSHES];
	int flushes;
};

typedef bool (*stale_fn)(const struct machine *m);

static bool by_completed(const struct machine *m)
{
	return cf_gen_stale(cf_tag_gen(m->tag), m->completed);
}

/* The wrong ways, to show that the machine finds them. */
static bool by_started(const struct machine *m)
{
	return cf_tag_gen(m->tag) >= m->started;
}

static bool count_partial;

enum action { TOUCH0, TOUCH1, SKIP, FULL, PARTIAL, CPU0, CPU1, DONE, ACTIONS };

/* Does one step; false if it is not possible in this state. */
static bool step(struct machine *m, enum action what)
{
	int i, cpu;

	switch (what) {
	case TOUCH0:
	case TOUCH1:
		if (!m->mapped || m->holds[what - TOUCH0])
			return false;
		m->holds[what - TOUCH0] = true;
		return true;
	case SKIP:
		if (!m->mapped)
			return false;
		m->mapped = false;
		m->tag = cf_tag_make(1, m->started);
		return true;
	case FULL:
	case PARTIAL:
		if (m->flushes == FLUSHES)
			return false;
		i = m->flushes++;
		m->flush[i].full = what == FULL;
		m->flush[i].live = true;
		m->flush[i].gen = ++m->started;
		return true;
	case CPU0:
	case CPU1:
		cpu = what - CPU0;
		for (i = 0; i < m->flushes; i++) {
			if (!m->flush[i].live || m->flush[i].done[cpu])
				continue;
			m->flush[i].done[cpu] = true;
			/* A partial flush is about another address. */
			if (m->flush[i].full)
				m->holds[cpu] = false;
			return true;
		}
		return false;
	case DONE:
		for (i = 0; i < m->flushes; i++) {
			if (!m->flush[i].live || !m->flush[i].done[0] ||
			    !m->flush[i].done[1])
				continue;
			m->flush[i].live = false;
			if ((m->flush[i].full || count_partial) &&
			    m->completed < m->flush[i].gen)
				m->completed = m->flush[i].gen;
			return true;
		}
		return false;
	default:
		return false;
	}
}

static unsigned long tried, wrong, clean;

static void explore(const struct machine *m, int steps, stale_fn stale)
{
	enum action what;

	tried++;
	if (!m->mapped && !stale(m)) {
		clean++;
		if (m->holds[0] || m->holds[1])
			wrong++;
	}
	if (!steps)
		return;
	for (what = 0; what < ACTIONS; what++) {
		struct machine next = *m;

		if (step(&next, what))
			explore(&next, steps - 1, stale);
	}
}

static void explore_from_start(stale_fn stale, bool partial)
{
	struct machine m = { .mapped = true, .started = 1, .completed = 1 };

	tried = 0;
	wrong = 0;
	clean = 0;
	count_partial = partial;
	explore(&m, STEPS, stale);
	printf("# %lu states, %lu judged clean, %lu of them wrongly\n", tried,
	       clean, wrong);
}

static void clean_means_unreachable(void)
{
	explore_from_start(by_completed, false);
	CHECK(!wrong);
	/* And it is not clean by never saying so. */
	CHECK(clean);
}

static void started_is_not_enough(void)
{
	explore_from_start(by_started, false);
	CHECK(wrong);
}

static void partial_flushes_prove_nothing(void)
{
	explore_from_start(by_completed, true);
	CHECK(wrong);
}

int main(void)
{
	static const struct ktap_case cases[] = {
		{ "tag.fields", fields },
		{ "tag.every_tag", every_tag },
		{ "tag.combine", combine },
		{ "tag.clean_means_unreachable", clean_means_unreachable },
		{ "tag.started_is_not_enough", started_is_not_enough },
		{ "tag.partial_flushes_prove_nothing",
		  partial_flushes_prove_nothing },
	};

	return KTAP_RUN(cases);
}
