// SPDX-License-Identifier: GPL-2.0-only
/*
 * main.c - munmap-bench, the microbenchmark of munmap and its shootdowns
 *
 * What: runs the modes in turn, as often as asked, and prints each sample as
 *       text or as a JSON line. The order rotates from round to round, so that
 *       a machine that slows down does not favour one mode.
 * Who:  people, and `ceasefire bench`, which boots guests, computes ratios and
 *       shows them. See ceasefire-bench(1).
 */
#include "data.h"
#include "options.h"
#include "sample.h"

#include "../common/environment.h"
#include "../common/json.h"
#include "../common/modes.h"
#include "../common/util.h"

#include <inttypes.h>
#include <sys/resource.h>

static void add_tally(struct json *json, const char *name, const struct tally *tally,
		      uint64_t ns)
{
	json_open_object(json, name);
	json_unsigned(json, "threads", tally->threads);
	json_unsigned(json, "ops", tally->operations);
	json_real(json, "rate", per_second(tally->operations, ns), 3);
	json_unsigned(json, "least", tally->least);
	json_unsigned(json, "most", tally->most);
	json_close_object(json);
}

static void print_json(const struct options *options, const struct data *data,
		       const struct sample *sample, const struct run_mode *mode,
		       unsigned int round, unsigned int position)
{
	struct json json;

	json_begin(&json, stdout, "munmap");
	json_unsigned(&json, "case", options->number);
	json_string(&json, "mode", mode->name);
	json_unsigned(&json, "round", round);
	json_unsigned(&json, "position", position);
	json_unsigned(&json, "processes", options->processes);
	json_unsigned(&json, "threads", options->threads);
	json_string(&json, "access", access_names[options->access]);
	json_unsigned(&json, "pages", options->pages);
	json_unsigned(&json, "files", data->count);
	json_unsigned(&json, "offsets", options->offsets);
	json_unsigned(&json, "buffer", options->buffer);
	json_bool(&json, "pinned", options->pin);
	json_bool(&json, "checked", data->checked);
	json_unsigned(&json, "wrong", sample->wrong);
	json_unsigned(&json, "ns", sample->ns);
	add_tally(&json, "io", &sample->io, sample->ns);
	add_tally(&json, "compute", &sample->compute, sample->ns);
	if (options->number == CASE_PEERS)
		latency_json(&json, &sample->calls);
	counters_json(&json, &sample->counters);
	json_end(&json);
}

static void print_text(const struct options *options,
		       const struct sample *sample, const struct run_mode *mode,
		       unsigned int round)
{
	int64_t received = counters_get(&sample->counters,
					"nr_tlb_remote_flush_received");

	printf("case %u  round %u  %-13s", options->number, round,
	       mode->name);
	if (sample->io.threads)
		printf("  %9.0f I/O/s", per_second(sample->io.operations, sample->ns));
	if (sample->compute.threads)
		printf("  %9.0f compute/s",
		       per_second(sample->compute.operations, sample->ns));
	if (options->number == CASE_PEERS)
		printf("  munmap p50 %.1f p99 %.1f us",
		       (double)latency_quantile(&sample->calls, 0.5) / 1e3,
		       (double)latency_quantile(&sample->calls, 0.99) / 1e3);
	if (received >= 0 && sample->io.operations)
		printf("  %.4f shootdowns received per I/O",
		       (double)received / (double)sample->io.operations);
	printf("\n");
	fflush(stdout);
}

static void warn_if_vacuous(const struct sample *sample,
			    const struct run_mode *mode)
{
	static bool warned;

	if (!mode->mode->map_flags || warned)
		return;
	if (counters_get(&sample->counters, "fpr_map") == 0) {
		fprintf(stderr, "munmap-bench: the kernel has not honoured MAP_FPR for these files; see fpr_map_ineligible_* in /proc/vmstat\n");
		warned = true;
	}
}

int main(int argc, char **argv)
{
	const struct rlimit no_core = { 0, 0 };
	struct options options;
	struct data data;
	uint64_t wrong = 0;

	set_program_name("munmap-bench");
	options_parse(&options, argc, argv);
	for (unsigned int i = 0; i < options.mode_count; i++)
		require_mode(options.modes[i].mode);
	setrlimit(RLIMIT_CORE, &no_core);
	data_open(&data, &options);
	if (options.json)
		print_environment_json(stdout);
	if (!data.checked)
		fprintf(stderr, "munmap-bench: the files hold other data than the test pattern, so it is not checked (--fill writes it)\n");

	for (unsigned int round = 0; round < options.rounds; round++) {
		for (unsigned int i = 0; i < options.mode_count; i++) {
			static struct sample sample;
			const struct run_mode *mode =
				&options.modes[(round + i) % options.mode_count];

			sample_take(&sample, &options, &data, mode);
			sample.wrong += data_verify(&data, &options);
			wrong += sample.wrong;
			warn_if_vacuous(&sample, mode);
			if (options.json)
				print_json(&options, &data, &sample, mode,
					   round, i);
			else
				print_text(&options, &sample, mode, round);
		}
	}
	if (wrong)
		die(EXIT_FAILED, "%" PRIu64 " pages had wrong data", wrong);
	return EXIT_OK;
}
