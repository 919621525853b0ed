// SPDX-License-Identifier: GPL-2.0-only
/*
 * sample.c - one measurement of one mode
 *
 * What: starts the processes and threads of the mode, lets them run in, reads
 *       all progress and the kernel's counters at both ends of a window, and
 *       stops them. The threads never know about the window.
 * Who:  main.c.
 *
 * The measuring process has no thread of the load: what it unmaps interrupts
 * nobody. Its children die with it.
 */
#include "sample.h"
#include "worker.h"

#include "../common/util.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* Ten times what the slowest emulated machine has needed. */
#define PATIENCE_NS 120000000000ULL

/* The threads of one process. */
struct group {
	unsigned int count;
	pid_t pid;
	struct job jobs[MAX_THREADS];
};

static struct group *groups;
static unsigned int group_count;

static void kill_all(void)
{
	for (unsigned int i = 0; i < group_count; i++) {
		if (groups[i].pid > 0)
			kill(groups[i].pid, SIGKILL);
	}
}

static enum kind kind_of(const struct options *options, unsigned int thread)
{
	switch (options->number) {
	case 1:
		return KIND_IO;
	case 2:
		return thread == 0 ? KIND_IO : KIND_COMPUTE;
	case 3:
		return thread == options->threads - 1 ? KIND_COMPUTE : KIND_IO;
	case 4:
		/* In turn, so that pinned neighbours differ. */
		return thread % 2 ? KIND_COMPUTE : KIND_IO;
	case CASE_PEERS:
		return thread == 0 ? KIND_OWNER : KIND_PEER;
	default:
		return KIND_MIXED;
	}
}

/*
 * Which process of the sample thread @thread of process @process belongs to.
 * Processes without threads are not started.
 */
static unsigned int group_of(const struct options *options, enum layout layout,
			     unsigned int process, unsigned int thread)
{
	unsigned int stride = options->threads + 1;
	bool io = kind_of(options, thread) != KIND_COMPUTE;

	if (layout == LAYOUT_IDEAL_COMPUTE)
		return process * stride + io;
	if (layout == LAYOUT_IDEAL_IO)
		return process * stride + (io ? 1 + thread : 0);
	return process * stride;
}

static const int map_flags[ACCESSES] = {
	[ACCESS_READ] = MAP_SHARED,
	[ACCESS_PRIVATE_WRITE] = MAP_PRIVATE,
	[ACCESS_SHARED_WRITE] = MAP_SHARED,
	[ACCESS_ANONYMOUS] = MAP_PRIVATE | MAP_ANONYMOUS,
};

static void plan(const struct options *options, const struct data *data,
		 const struct run_mode *mode, struct control *control)
{
	group_count = options->processes * (options->threads + 1);
	groups = calloc(group_count, sizeof(*groups));
	if (!groups)
		die(EXIT_FAILED, "out of memory");
	for (unsigned int p = 0; p < options->processes; p++) {
		for (unsigned int t = 0; t < options->threads; t++) {
			struct group *group =
				&groups[group_of(options, mode->layout, p, t)];
			unsigned int index = p * options->threads + t;

			group->jobs[group->count++] = (struct job){
				.options = options,
				.data = data,
				.control = control,
				.index = index,
				.cpu = options->pin ? nth_cpu(index) : -1,
				.flags = map_flags[options->access] |
					 mode->mode->map_flags,
				.kind = kind_of(options, t),
			};
		}
	}
}

static void run_group(struct group *group, const struct mode *mode, pid_t parent)
{
	pthread_t threads[MAX_THREADS];

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(EXIT_FAILED);
	enter_mode(mode);
	for (unsigned int i = 0; i < group->count; i++) {
		int error = pthread_create(&threads[i], NULL, worker_run,
					   &group->jobs[i]);

		if (error)
			die(EXIT_FAILED, "cannot start a thread: %s",
			    strerror(error));
	}
	for (unsigned int i = 0; i < group->count; i++)
		pthread_join(threads[i], NULL);
	_exit(EXIT_OK);
}

static void start_all(const struct mode *mode)
{
	pid_t parent = getpid();

	fflush(stdout);
	for (unsigned int i = 0; i < group_count; i++) {
		if (!groups[i].count)
			continue;
		groups[i].pid = fork();
		if (groups[i].pid < 0)
			die_errno("fork");
		if (!groups[i].pid)
			run_group(&groups[i], mode, parent);
	}
}

static void check_alive(void)
{
	int status;
	pid_t pid = waitpid(-1, &status, WNOHANG);

	/* It has said why. */
	if (pid > 0) {
		kill_all();
		exit(WIFEXITED(status) && WEXITSTATUS(status) ?
		     WEXITSTATUS(status) : EXIT_FAILED);
	}
}

static void wait_until_ready(struct control *control, unsigned int threads)
{
	uint64_t start = now_ns();

	while (atomic_load(&control->ready) < threads) {
		check_alive();
		if (now_ns() - start > PATIENCE_NS) {
			kill_all();
			die(EXIT_FAILED, "the threads did not start in time");
		}
		sleep_ns(1000000);
	}
}

static void end_all(struct control *control)
{
	uint64_t start = now_ns();

	atomic_store(&control->stop, true);
	for (unsigned int i = 0; i < group_count; i++) {
		int status = 0;

		if (!groups[i].count)
			continue;
		while (waitpid(groups[i].pid, &status, WNOHANG) == 0) {
			if (now_ns() - start > PATIENCE_NS) {
				kill_all();
				die(EXIT_FAILED, "the threads did not end in time");
			}
			sleep_ns(1000000);
		}
		groups[i].pid = 0;
		if (!WIFEXITED(status) || WEXITSTATUS(status)) {
			kill_all();
			die(EXIT_FAILED, "a process of the load died (%#x)",
			    (unsigned int)status);
		}
	}
	free(groups);
	groups = NULL;
	group_count = 0;
}

struct reading {
	uint64_t io[MAX_THREADS];
	uint64_t compute[MAX_THREADS];
};

static void read_progress(struct reading *reading, struct control *control,
			  unsigned int threads)
{
	for (unsigned int i = 0; i < threads; i++) {
		struct progress *progress = &control->progress[i];

		reading->io[i] = atomic_load_explicit(&progress->io,
						      memory_order_relaxed);
		reading->compute[i] = atomic_load_explicit(&progress->compute,
							   memory_order_relaxed);
	}
}

static void tally(struct tally *result, const uint64_t *before,
		  const uint64_t *after, const bool *does, unsigned int threads)
{
	*result = (struct tally){ .least = UINT64_MAX };
	for (unsigned int i = 0; i < threads; i++) {
		uint64_t done = after[i] - before[i];

		if (!does[i])
			continue;
		result->threads++;
		result->operations += done;
		if (done < result->least)
			result->least = done;
		if (done > result->most)
			result->most = done;
	}
	if (!result->threads)
		result->least = 0;
}

static void summarize(struct sample *sample, const struct options *options,
		      const struct reading *before, const struct reading *after)
{
	unsigned int threads = options->threads * options->processes;
	bool io[MAX_THREADS], compute[MAX_THREADS];

	for (unsigned int i = 0; i < threads; i++) {
		enum kind kind = kind_of(options, i % options->threads);

		io[i] = kind == KIND_IO || kind == KIND_MIXED || kind == KIND_OWNER;
		compute[i] = kind == KIND_COMPUTE || kind == KIND_MIXED;
	}
	tally(&sample->io, before->io, after->io, io, threads);
	tally(&sample->compute, before->compute, after->compute, compute,
	      threads);
}

void sample_take(struct sample *sample, const struct options *options,
		 const struct data *data, const struct run_mode *mode)
{
	unsigned int threads = options->threads * options->processes;
	uint64_t window = (uint64_t)(options->seconds * 1e9);
	static struct reading before, after;
	static struct counters counters;
	struct control *control;
	uint64_t start;

	control = mmap(NULL, sizeof(*control), PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (control == MAP_FAILED)
		die_errno("mmap");
	plan(options, data, mode, control);
	start_all(mode->mode);
	wait_until_ready(control, threads);
	/* A tenth to run in. */
	sleep_ns(window / 10);

	counters_read(&counters);
	atomic_store(&control->measured, true);
	read_progress(&before, control, threads);
	start = now_ns();
	sleep_ns(window);
	read_progress(&after, control, threads);
	sample->ns = now_ns() - start;
	atomic_store(&control->measured, false);
	counters_read(&sample->counters);
	check_alive();

	end_all(control);
	counters_subtract(&sample->counters, &counters);
	summarize(sample, options, &before, &after);
	sample->calls = control->calls;
	sample->wrong = 0;
	for (unsigned int i = 0; i < threads; i++)
		sample->wrong += atomic_load(&control->progress[i].wrong);
	munmap(control, sizeof(*control));
}
