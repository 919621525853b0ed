// SPDX-License-Identifier: GPL-2.0-only
/*
 * sample.c - starts the tasks, watches them, stops them
 *
 * What: the tasks are threads of one process or processes of one thread, each
 *       on a CPU of its own as long as there are enough. The monitor, which takes no
 *       part, reads what they have counted at both ends of a window, and the
 *       kernel's counters; the tasks never know about the window.
 * Who:  main.c. The children die with it.
 */
#include "sample.h"
#include "tests.h"

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

static struct task tasks[MAX_TASKS];
static pid_t children[MAX_TASKS];
static unsigned int child_count;

static void plan(const struct options *options, const int *fds, const struct mode *mode,
		 struct control *control)
{
	for (unsigned int i = 0; i < options->tasks; i++) {
		tasks[i] = (struct task){
			.options = options,
			.control = control,
			.progress = &control->progress[i],
			.index = i,
			.cpu = nth_cpu(i),
			.peer_cpu = nth_cpu(i + 1),
			.fd = options->test->wants_file ? fds[i] : -1,
			.flags = mode->map_flags,
			.spoil = options->spoil,
		};
	}
}

/* The tasks that carry out the test. */
static unsigned int worker_count(const struct options *options)
{
	return options->tasks - options->bystander;
}

static void *run_task(void *argument)
{
	struct task *task = argument;

	run_on_cpu(task->cpu);
	if (task->index < worker_count(task->options))
		task->options->test->run(task);
	else
		run_bystander(task);
	return NULL;
}

/* A process with tasks @first to @first + @count - 1. */
static void run_child(unsigned int first, unsigned int count, const struct mode *mode,
		      pid_t parent)
{
	static pthread_t threads[MAX_TASKS];

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(EXIT_FAILED);
	enter_mode(mode);
	for (unsigned int i = 0; i < count; i++) {
		int error = pthread_create(&threads[i], NULL, run_task,
					   &tasks[first + i]);

		if (error)
			die(EXIT_FAILED, "cannot start a thread: %s",
			    strerror(error));
	}
	for (unsigned int i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
	_exit(EXIT_OK);
}

static void start(const struct options *options, const struct mode *mode)
{
	unsigned int each = options->processes ? 1 : options->tasks;
	pid_t parent = getpid();

	fflush(stdout);
	for (child_count = 0; child_count * each < options->tasks; child_count++) {
		pid_t pid = fork();

		if (pid < 0)
			die_errno("fork");
		if (!pid)
			run_child(child_count * each, each, mode, parent);
		children[child_count] = pid;
	}
}

static void kill_children(void)
{
	for (unsigned int i = 0; i < child_count; i++) {
		if (children[i] > 0)
			kill(children[i], SIGKILL);
	}
}

/* It has said why. */
static void end_with_child(int status)
{
	kill_children();
	if (WIFSIGNALED(status))
		die(EXIT_FAILED, "a task was killed by signal %d",
		    WTERMSIG(status));
	exit(WEXITSTATUS(status) ? WEXITSTATUS(status) : EXIT_FAILED);
}

static void check_alive(void)
{
	int status;

	if (waitpid(-1, &status, WNOHANG) > 0)
		end_with_child(status);
}

static void give_up_after(uint64_t begin, const char *why)
{
	if (now_ns() - begin > PATIENCE_NS) {
		kill_children();
		die(EXIT_FAILED, "%s", why);
	}
	sleep_ns(1000000);
}

static void wait_until_ready(struct control *control, unsigned int count)
{
	uint64_t begin = now_ns();

	while (atomic_load(&control->ready) < count) {
		check_alive();
		give_up_after(begin, "the tasks did not start in time");
	}
}

static void stop(struct control *control)
{
	uint64_t begin = now_ns();

	atomic_store(&control->stop, true);
	for (unsigned int i = 0; i < child_count; i++) {
		int status = 0;

		while (waitpid(children[i], &status, WNOHANG) == 0)
			give_up_after(begin, "the tasks did not end in time");
		children[i] = 0;
		if (status)
			end_with_child(status);
	}
}

static void read_progress(uint64_t *done, struct control *control,
			  unsigned int count)
{
	for (unsigned int i = 0; i < count; i++)
		done[i] = atomic_load_explicit(&control->progress[i].done,
					       memory_order_relaxed);
}

static void sum_up(struct sample *sample, struct control *control,
		   const uint64_t *before, const uint64_t *after,
		   unsigned int count)
{
	sample->operations = sample->wrong = sample->peer_checks = 0;
	sample->least = UINT64_MAX;
	sample->most = 0;
	for (unsigned int i = 0; i < count; i++) {
		struct progress *progress = &control->progress[i];
		uint64_t done = after[i] - before[i];

		sample->operations += done;
		if (done < sample->least)
			sample->least = done;
		if (done > sample->most)
			sample->most = done;
		sample->wrong += atomic_load(&progress->wrong) +
				 atomic_load(&progress->peer_wrong);
		sample->peer_checks += atomic_load(&progress->peer_checks);
	}
}

void sample_take(struct sample *sample, const struct options *options,
		 const int *fds, const struct mode *mode)
{
	uint64_t window = (uint64_t)(options->seconds * 1e9), begin;
	static uint64_t before[MAX_TASKS], after[MAX_TASKS];
	static struct counters counters;
	struct control *control;

	control = mmap(NULL, sizeof(*control), PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (control == MAP_FAILED)
		die_errno("mmap");
	plan(options, fds, mode, control);
	start(options, mode);
	wait_until_ready(control, options->tasks);
	/* A tenth to run in. */
	sleep_ns(window / 10);

	counters_read(&counters);
	atomic_store(&control->measures, true);
	read_progress(before, control, options->tasks);
	begin = now_ns();
	sleep_ns(window);
	read_progress(after, control, options->tasks);
	atomic_store(&control->measures, false);
	sample->ns = now_ns() - begin;
	counters_read(&sample->counters);
	check_alive();

	stop(control);
	counters_subtract(&sample->counters, &counters);
	sum_up(sample, control, before, after, worker_count(options));
	sample->pieces = control->pieces;
	munmap(control, sizeof(*control));
}
