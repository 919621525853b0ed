// SPDX-License-Identifier: GPL-2.0-only
/*
 * bystander.c - a thread that has nothing to do with what the others do
 *
 * What: computes, without memory and without the kernel, and notes how long each of
 *       equal pieces takes. What makes a piece longer is an interrupt: a tick now and
 *       then, and the shootdowns of the other threads of the process.
 * Who:  sample.c, for the last task, with --bystander. It counts as no task otherwise.
 */
#include "tests.h"

/* Some microseconds, on an emulated CPU, too. */
#define PIECE 1000U

static uint64_t compute(uint64_t x)
{
	for (unsigned int i = 0; i < PIECE; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
	}
	return x;
}

void run_bystander(struct task *task)
{
	struct control *control = task->control;
	volatile uint64_t last = task->index + 1;
	uint64_t begin, end;

	task_ready(task);
	end = now_ns();
	while (!stopped(task)) {
		last = compute(last);
		begin = end;
		end = now_ns();
		if (atomic_load_explicit(&control->measures, memory_order_acquire))
			latency_add(&control->pieces, end - begin);
	}
}
