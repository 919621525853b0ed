/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* sandbox.h - no flag behind a seccomp filter; see sandbox.c. */
#ifndef CEASEFIRE_SANDBOX_H
#define CEASEFIRE_SANDBOX_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WINDOWS 64

/*
 * How many threads are between the decision to give the flag and the end of
 * the call, in cache lines of their own so that threads do not share one.
 */
struct window {
	_Alignas(64) atomic_int inside;
};

#define WINDOWS_SIZE (WINDOWS * sizeof(struct window))

extern atomic_bool sandbox_entered __attribute__((visibility("hidden")));

bool sandbox_inherited(void);

/* True for good once this program has begun to set up a sandbox. */
static inline bool sandbox_ahead(void)
{
	return atomic_load_explicit(&sandbox_entered, memory_order_relaxed);
}

/*
 * Between open and close the library may make calls that a filter punishes: a
 * filter for all threads waits. NULL: it may not.
 */
static inline struct window *window_open(struct window *windows)
{
	uintptr_t thread = (uintptr_t)__builtin_thread_pointer();
	struct window *window;

	window = &windows[(thread >> 12) * 0x9e3779b97f4a7c15UL >> 58];
	/* Ordered against the other side: both see the other, or one does. */
	atomic_fetch_add_explicit(&window->inside, 1, memory_order_seq_cst);
	if (__builtin_expect(!atomic_load_explicit(&sandbox_entered,
						   memory_order_seq_cst), 1))
		return window;
	atomic_fetch_sub_explicit(&window->inside, 1, memory_order_release);
	return NULL;
}

static inline void window_close(struct window *window)
{
	atomic_fetch_sub_explicit(&window->inside, 1, memory_order_release);
}

#endif /* CEASEFIRE_SANDBOX_H */
