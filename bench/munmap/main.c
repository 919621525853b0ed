// SPDX-License-Identifier: GPL-2.0-only
/*
 * main.c - munmap-bench, the microbenchmark of munmap and its shootdowns
 *
 * What: runs the modes in turn, as often as asked, and prints each sample as
 *       text or as a JSON line. The order rotates from round to round, so that
 *       a machine that slows down does not favour one mode.
 * Who:  people, and `ceasefire bench munmap`, which boots guests, computes
 *       ratios and draws plots. See ceasefire-bench(1).
 */
#include "data.h"
#include "options.h"
#include "sample.h"

#include "../common/environment.h"
#include "../common/util.h"

#include <inttypes.h>
#include <sys/resource.h>

static double rate(uint64_t operations, uint64_t ns)
{
	return (double)operations * 1e9 / (double)ns;
}

static void print_tally_json(const char *name, const struct tally *tally,
			     uint64_t ns)
{
	printf(",\"%s\":{\"threads\":%u,\"ops\":%" PRIu64 ",\"rate\":%.3f,\"least\":%"
	       PRIu64 ",\"most\":%" PRIu64 "}",
	       name, tally->threads, tally->operations,
	       rate(tally->operations, ns), tally->least, tally->most);
}

static void print_json(const struct options *options, const struct data *data,
		       const struct sample *sample, enum mode mode,
		       unsigned int round, unsigned int position)
{
	printf("{\"schema\":%d,\"type\":\"munmap\",\"case\":%u,\"mode\":\"%s\"",
	       JSON_SCHEMA, options->number, mode_names[mode]);
	printf(",\"round\":%u,\"position\":%u,\"processes\":%u,\"threads\":%u",
	       round, position, options->processes, options->threads);
	printf(",\"access\":\"%s\"", access_names[options->access]);
	printf(",\"pages\":%u,\"files\":%u,\"offsets\":%u,\"buffer\":%u,\"pinned\":%s",
	       options->pages, data->count, options->offsets, options->buffer,
	       options->pin ? "true" : "false");
	printf(",\"checked\":%s,\"wrong\":%" PRIu64 ",\"ns\":%" PRIu64,
	       data->checked ? "true" : "false", sample->wrong, sample->ns);
	print_tally_json("io", &sample->io, sample->ns);
	print_tally_json("compute", &sample->compute, sample->ns);
	printf(",\"counters\":");
	counters_print_json(&sample->counters, stdout);
	printf("}\n");
	fflush(stdout);
}

static void print_text(const struct options *options,
		       const struct sample *sample, enum mode mode,
		       unsigned int round)
{
	int64_t received = counters_get(&sample->counters,
					"nr_tlb_remote_flush_received");

	printf("case %u  round %u  %-13s", options->number, round,
	       mode_names[mode]);
	if (sample->io.threads)
		printf("  %9.0f I/O/s", rate(sample->io.operations, sample->ns));
	if (sample->compute.threads)
		printf("  %9.0f compute/s",
		       rate(sample->compute.operations, sample->ns));
	if (received >= 0 && sample->io.operations)
		printf("  %.4f shootdowns received per I/O",
		       (double)received / (double)sample->io.operations);
	printf("\n");
	fflush(stdout);
}

static bool wants(const struct options *options, enum mode mode)
{
	for (unsigned int i = 0; i < options->mode_count; i++) {
		if (options->modes[i] == mode)
			return true;
	}
	return false;
}

static void warn_if_vacuous(const struct sample *sample, enum mode mode)
{
	static bool warned;

	if (mode != MODE_ON || warned)
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
	if (wants(&options, MODE_ON))
		require_fpr();
	setrlimit(RLIMIT_CORE, &no_core);
	data_open(&data, &options);
	if (options.json)
		print_environment_json("munmap-bench", stdout);
	if (!data.checked)
		fprintf(stderr, "munmap-bench: the files hold other data than the test pattern, so it is not checked (--fill writes it)\n");

	for (unsigned int round = 0; round < options.rounds; round++) {
		for (unsigned int i = 0; i < options.mode_count; i++) {
			static struct sample sample;
			enum mode mode = options.modes[(round + i) %
						       options.mode_count];

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
