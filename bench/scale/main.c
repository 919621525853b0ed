// SPDX-License-Identifier: GPL-2.0-only
/*
 * main.c - scale-bench, single operations of the kernel by many tasks
 *
 * What: runs one test without MAP_FPR and with it in turn, as often as asked, and
 *       prints each sample as text or as a JSON line. Tests have the
 *       contract of those of will-it-scale, and many have their names: each task
 *       repeats its operation and counts, a monitor looks at the counts.
 * Who:  people, and the suites `scale` and `sharers` of `ceasefire bench run`.
 */
#include "sample.h"
#include "tests.h"

#include "../common/environment.h"
#include "../common/json.h"

#include <inttypes.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

const struct test *const all_tests[] = {
	&page_fault1, &page_fault2, &page_fault3, &mmap1, &mmap2, &write1,
	&tlb_flush1, &tlb_flush2, &tlb_flush3,
	&own_munmap, &own_file, &own_dontneed, &own_free, &own_protect, &own_copy,
	&own_sync, &own_move,
	&shared_munmap, &shared_dontneed, &shared_free, &shared_protect, &shared_copy,
};

const unsigned int test_count = sizeof(all_tests) / sizeof(*all_tests);

/* Clean pages with a pattern: nothing to write back while it runs. */
static int make_file(const struct options *options, unsigned int index)
{
	int fd = make_scratch_file(options->folder);
	char page[PAGE] = { 0 };

	for (unsigned int i = 0; i < options->pages; i++) {
		uint64_t word = page_word(index, i);

		memcpy(page, &word, sizeof(word));
		if (pwrite(fd, page, PAGE, (off_t)(i * PAGE)) != (ssize_t)PAGE)
			die_errno("cannot write to %s", options->folder);
	}
	if (fsync(fd))
		die_errno("cannot sync a file in %s", options->folder);
	return fd;
}

static void print_json(const struct options *options, const struct sample *sample,
		       const struct mode *mode, unsigned int round)
{
	struct json json;

	json_begin(&json, stdout, "scale");
	json_string(&json, "test", options->test->name);
	json_string(&json, "mode", mode->name);
	json_unsigned(&json, "round", round);
	json_unsigned(&json, "tasks", options->tasks);
	json_string(&json, "kind", options->processes ? "processes" : "threads");
	json_unsigned(&json, "pages", options->pages);
	json_string(&json, "place", options->apart ? "apart" : "near");
	json_unsigned(&json, "operations", sample->operations);
	json_real(&json, "rate", per_second(sample->operations, sample->ns), 3);
	json_unsigned(&json, "least", sample->least);
	json_unsigned(&json, "most", sample->most);
	json_unsigned(&json, "peer_checks", sample->peer_checks);
	json_unsigned(&json, "wrong", sample->wrong);
	json_unsigned(&json, "ns", sample->ns);
	if (options->bystander)
		latency_json(&json, &sample->pieces);
	counters_json(&json, &sample->counters);
	json_end(&json);
}

static void print_text(const struct options *options, const struct sample *sample,
		       const struct mode *mode, unsigned int round)
{
	int64_t received = counters_get(&sample->counters,
					"nr_tlb_remote_flush_received");

	printf("%s  %u %s  round %u  %-3s  %11.0f operations/s",
	       options->test->name, options->tasks,
	       options->processes ? "processes" : "threads", round,
	       mode->name, per_second(sample->operations, sample->ns));
	if (received >= 0 && sample->operations)
		printf("  %.4f shootdowns received per operation",
		       (double)received / (double)sample->operations);
	if (sample->peer_checks)
		printf("  %" PRIu64 " reads checked by peers",
		       sample->peer_checks);
	if (options->bystander)
		printf("  a bystander's %" PRIu64 " pieces: 99.9 %% below %" PRIu64 " ns",
		       sample->pieces.count, latency_quantile(&sample->pieces, 0.999));
	printf("\n");
	fflush(stdout);
}

int main(int argc, char **argv)
{
	const struct rlimit no_core = { 0, 0 };
	static int fds[MAX_TASKS];
	static struct sample sample;
	struct options options;
	uint64_t wrong = 0;

	set_program_name("scale-bench");
	options_parse(&options, argc, argv);
	require_modes(&options.modes);
	if (options.test->two_nodes && access("/sys/devices/system/node/node1", F_OK))
		die(EXIT_NO_KERNEL_SUPPORT, "%s moves pages between two nodes, and here is one",
		    options.test->name);
	setrlimit(RLIMIT_CORE, &no_core);
	for (unsigned int i = 0; options.test->wants_file && i < options.tasks; i++)
		fds[i] = make_file(&options, i);
	if (options.json)
		print_environment_json(stdout);
	for (unsigned int round = 0; round < options.rounds; round++) {
		for (unsigned int i = 0; i < options.modes.count; i++) {
			const struct mode *mode =
				mode_in_turn(&options.modes, round, i);

			sample_take(&sample, &options, fds, mode);
			wrong += sample.wrong;
			if (options.json)
				print_json(&options, &sample, mode, round);
			else
				print_text(&options, &sample, mode, round);
		}
	}
	if (wrong)
		die(EXIT_FAILED, "%" PRIu64 " times wrong data", wrong);
	return EXIT_OK;
}
