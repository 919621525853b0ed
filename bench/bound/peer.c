// SPDX-License-Identifier: GPL-2.0-only
/*
 * peer.c - the thread that goes on using what was unmapped, until it faults
 *
 * What: it reads the page of a window and notes the time after each read. Kinds
 *       busy and isolated do nothing else; kind idle sleeps between two reads, so
 *       that its CPU is idle while the page is unmapped. A read that faults ends
 *       the window. Of the peer's own memory nothing is unmapped meanwhile, so
 *       that no other fault is taken for the end.
 *
 *       How long it could use the page is told by the time after a read, which is
 *       never too early. Where it is too late the peer did not run between the read
 *       and the clock: a gap like any other in which it did not run. Whether a read
 *       came after something else is told by the time before it.
 * Who:  rounds.c. One peer at a time.
 */
#include "bound.h"

#include "../common/util.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <string.h>

#define IDLE_POLL_NS (MS / 2)

/* What a kernel with page_poison=1 writes to a page when it is freed: it waits like this. */
#define POISON 0xaaaaaaaaaaaaaaaaULL

static struct {
	struct window *window;
	enum kind kind;
	int cpu;
	pthread_t thread;
} peer;

static _Thread_local sigjmp_buf end_of_window;
static _Thread_local volatile sig_atomic_t using;

static void on_fault(int number)
{
	if (using)
		siglongjmp(end_of_window, 1);
	/* One of our own: again, without this handler. */
	signal(number, SIG_DFL);
}

/*
 * Uses the page, and notes when that was if it was possible. @began is a time before
 * it, @expected one at which the peer would have come here if it had run.
 */
static void use(struct window *w, uint64_t began, uint64_t expected)
{
	uint64_t word = *w->page, now = now_ns();

	if (word != w->word && word != POISON)
		w->wrong++;
	if (now > expected + GAP_NS)
		w->gap_end = now;
	w->began = began;
	w->last = now;
}

/* Does not return: the fault ends it. */
static void use_all_the_time(struct window *w)
{
	for (;;)
		use(w, w->last, w->last);
}

static void use_now_and_then(struct window *w)
{
	uint64_t sleep = w->first_sleep;

	for (;;) {
		sleep_ns(sleep);
		use(w, now_ns(), w->last + sleep);
		sleep = w->later_sleep;
	}
}

static void use_until_fault(struct window *w, enum kind kind)
{
	w->gap_end = 0;
	w->wrong = 0;
	w->last = now_ns();
	if (!sigsetjmp(end_of_window, 0)) {
		using = 1;
		use(w, w->last, w->last);
		atomic_store(&w->touched, atomic_load(&w->turn));
		if (kind == KIND_IDLE)
			use_now_and_then(w);
		use_all_the_time(w);
	}
	using = 0;
}

static void *run_peer(void *unused)
{
	struct window *w = peer.window;
	unsigned int done = 0, turn;

	(void)unused;
	run_on_cpu(peer.cpu);
	for (;;) {
		turn = atomic_load(&w->turn);
		if (turn == LAST_TURN)
			return NULL;
		if (turn != done) {
			use_until_fault(w, peer.kind);
			done = turn;
			atomic_store(&w->ended, turn);
		} else if (peer.kind == KIND_IDLE) {
			sleep_ns(IDLE_POLL_NS);
		}
	}
}

void peer_start(struct window *w, enum kind kind, int cpu)
{
	/* No mask to restore: it is not changed either. */
	struct sigaction action = { .sa_handler = on_fault, .sa_flags = SA_NODEFER };

	memset(w, 0, sizeof(*w));
	peer.window = w;
	peer.kind = kind;
	peer.cpu = cpu;
	if (sigaction(SIGSEGV, &action, NULL))
		die_errno("sigaction");
	if (pthread_create(&peer.thread, NULL, run_peer, NULL))
		die(EXIT_FAILED, "cannot start a thread");
}

void peer_stop(void)
{
	atomic_store(&peer.window->turn, LAST_TURN);
	pthread_join(peer.thread, NULL);
}
