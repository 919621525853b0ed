// SPDX-License-Identifier: GPL-2.0-only
/*
 * main.c - for how long what a lazy process unmaps can be used, and what waits
 *
 * What: bound-bench is lazy (LATR). For each kind of CPU it unmaps a page many
 *       times while a thread on that CPU goes on reading it, and reports for how
 *       long that was possible, beside what the kernel promises (I9). Kind memory
 *       unmaps on all CPUs and reports how much memory waits. Text, or a JSON line
 *       for each kind.
 * Who:  people, and `ceasefire bench bound`.
 *
 * There is no kind for a CPU with interrupts off: it runs no user code until they
 * are on again, and then it takes the interrupt that was sent meanwhile first.
 */
#include "bound.h"

#include "../common/environment.h"
#include "../common/json.h"
#include "../common/modes.h"
#include "../common/options.h"
#include "../common/util.h"

#include <inttypes.h>
#include <sched.h>
#include <string.h>

#define MEMORY "memory"

const char *const kind_names[KINDS] = { "busy", "idle", "isolated" };

static void read_kinds(void *to, char *text)
{
	struct options *o = to;
	char *word, *rest = text;

	o->kinds = 0;
	o->memory = false;
	while ((word = strsep(&rest, ","))) {
		unsigned int i = 0;

		if (!strcmp(word, MEMORY)) {
			o->memory = true;
			continue;
		}
		while (i < KINDS && strcmp(word, kind_names[i]))
			i++;
		if (i == KINDS)
			die(EXIT_USAGE,
			    "--kind wants a list of busy, idle, isolated and memory, not '%s'", word);
		o->kinds |= 1u << i;
	}
}

static void options_parse(struct options *o, int argc, char **argv)
{
	static const struct program program = {
		"bound-bench [options]",
		"For how long what a lazy process unmaps can be used, and how much memory waits.",
		NULL
	};
	const struct program_option list[] = {
		CALL("kind", "LIST", o, read_kinds,
		     "kinds of CPU: busy, idle, isolated (has no tick); memory\n"
		     "(busy,idle,memory)"),
		NUMBER("rounds", "N", &o->rounds, 1, 1000000,
		       "munmaps for each kind of CPU (1000)"),
		DURATION("seconds", &o->seconds, "length of kind memory (5)"),
		NUMBER("pages", "N", &o->pages, 1, 1048576,
		       "pages of an munmap of kind memory (512)"),
		FLAG("json", &o->json, "JSON lines instead of text"),
		{ 0 }
	};
	cpu_set_t set;

	*o = (struct options){ .kinds = 1u << KIND_BUSY | 1u << KIND_IDLE, .memory = true,
			       .rounds = 1000, .seconds = 5, .pages = 512 };
	parse_options(&program, list, argc, argv);
	if (sched_getaffinity(0, sizeof(set), &set))
		die_errno("sched_getaffinity");
	for (int cpu = 0; cpu < CPU_SETSIZE && o->cpu_count < MAX_CPUS; cpu++)
		if (CPU_ISSET(cpu, &set))
			o->cpus[o->cpu_count++] = cpu;
	for (unsigned int i = 0; i < KINDS; i++)
		o->peer_cpus[i] = o->cpus[o->cpu_count - 1];
	/* Nobody is given one who does not ask for it. */
	o->peer_cpus[KIND_ISOLATED] = isolated_cpu(o->peer_cpus[KIND_ISOLATED]);
	for (unsigned int i = 0; i < KINDS; i++)
		if (o->kinds & 1u << i && o->peer_cpus[i] == o->cpus[0])
			die(EXIT_USAGE, "kind %s takes two CPUs", kind_names[i]);
}

static double ms(uint64_t ns)
{
	return (double)ns / (double)MS;
}

static double mib(uint64_t pages)
{
	return (double)(pages * PAGE) / (1 << 20);
}

static void print_found(const struct options *o, const struct found *f,
			const struct settings *s, enum kind kind, const char *without_tick)
{
	uint64_t bound = settings_bound_ns(s, kind), worst = f->latency.max;
	struct json json;

	if (!o->json) {
		printf("%-8s  %u of %u could be used, %.3f ms at most (bound %.0f ms), ",
		       kind_names[kind], f->used, f->rounds, ms(worst), ms(bound));
		printf("p50 %.3f, p99 %.3f ms; %u disturbed, %.3f ms without these; ",
		       ms(latency_quantile(&f->latency, 0.5)),
		       ms(latency_quantile(&f->latency, 0.99)), f->disturbed,
		       ms(f->worst_judged));
		printf("%u used after they were settled, %" PRId64 " late interrupts\n", f->after,
		       counters_get(&f->counters, "latr_late"));
		fflush(stdout);
		return;
	}
	json_begin(&json, stdout, "bound");
	json_string(&json, "kind", kind_names[kind]);
	json_string(&json, "without_tick", without_tick);
	json_unsigned(&json, "settle_ms", s->settle_ms);
	json_unsigned(&json, "late_ms", s->late_ms);
	json_real(&json, "hz", 1e9 / (double)s->tick_ns, 1);
	json_unsigned(&json, "bound_ns", bound);
	json_unsigned(&json, "rounds", f->rounds);
	json_unsigned(&json, "used", f->used);
	json_unsigned(&json, "worst_ns", worst);
	json_real(&json, "worst_of_bound", (double)worst / (double)bound, 3);
	json_unsigned(&json, "over", f->over);
	json_unsigned(&json, "gap_ns", GAP_NS);
	json_unsigned(&json, "disturbed", f->disturbed);
	json_unsigned(&json, "judged", f->judged);
	json_unsigned(&json, "worst_judged_ns", f->worst_judged);
	json_real(&json, "worst_judged_of_bound", (double)f->worst_judged / (double)bound, 3);
	json_unsigned(&json, "settled_seen", f->seen);
	json_unsigned(&json, "after_settled", f->after);
	json_unsigned(&json, "wrong", f->wrong);
	latency_json(&json, &f->latency);
	counters_json(&json, &f->counters);
	json_end(&json);
}

static void print_waiting(const struct options *o, const struct waiting *m,
			  const struct settings *s)
{
	struct json json;

	if (!o->json) {
		printf("%-8s  %.1f MiB waited at most (limit of a process %.1f MiB), ", MEMORY,
		       mib(m->peak), mib(s->held_limit));
		printf("%.3f MiB %d ms after the end; %" PRIu64 " munmaps of %u pages by %u threads\n",
		       mib(m->left), LEFT_MS, m->operations, o->pages, m->threads);
		fflush(stdout);
		return;
	}
	json_begin(&json, stdout, "waiting");
	json_unsigned(&json, "threads", m->threads);
	json_unsigned(&json, "pages", o->pages);
	json_unsigned(&json, "settle_ms", s->settle_ms);
	json_unsigned(&json, "limit_bytes", s->held_limit * PAGE);
	json_unsigned(&json, "operations", m->operations);
	json_unsigned(&json, "ns", m->ns);
	json_unsigned(&json, "peak_bytes", m->peak * PAGE);
	json_unsigned(&json, "left_after_ms", LEFT_MS);
	json_unsigned(&json, "left_bytes", m->left * PAGE);
	counters_json(&json, &m->counters);
	json_end(&json);
}

static uint64_t measure_kind(const struct options *o, const struct settings *s, enum kind kind)
{
	const char *without_tick = "";
	static struct found found;

	if (kind == KIND_ISOLATED)
		without_tick = take_tick(o->peer_cpus[kind]);
	measure_rounds(&found, o, kind, settings_bound_ns(s, kind));
	give_tick_back();
	print_found(o, &found, s, kind, without_tick);
	return found.wrong;
}

int main(int argc, char **argv)
{
	const struct mode *latr = find_mode("latr");
	static struct waiting waiting;
	struct settings settings;
	uint64_t wrong = 0;
	struct options o;

	set_program_name("bound-bench");
	options_parse(&o, argc, argv);
	require_mode(latr);
	settings_read(&settings);
	enter_mode(latr);
	if (o.json)
		print_environment_json(stdout);
	for (unsigned int kind = 0; kind < KINDS; kind++)
		if (o.kinds & 1u << kind)
			wrong += measure_kind(&o, &settings, kind);
	if (o.memory) {
		measure_memory(&waiting, &o);
		print_waiting(&o, &waiting, &settings);
	}
	if (wrong)
		die(EXIT_FAILED, "%" PRIu64 " reads found what was not in the page", wrong);
	return EXIT_OK;
}
