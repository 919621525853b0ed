// SPDX-License-Identifier: GPL-2.0
/* The thread that holds stale translations, and the probes, see peer.h. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <sys/rseq.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "env.h"
#include "ktap.h"
#include "peer.h"

/* A request takes microseconds; the machine may be a busy emulator. */
#define PEER_LIMIT_S	60

enum request { IDLE, READ, WRITE, CALL, WATCH };

static struct {
	enum request request;
	uint64_t *addr;
	size_t pages;
	uint64_t word;
	uint64_t words[PEER_PAGES];
	uint64_t alien;
	bool saw_alien;
	bool stop_watch;
	bool ready;
	int cpu;
} peer;

static __thread sigjmp_buf probe_env;
static __thread volatile sig_atomic_t probing;

static void on_fault(int signal_number)
{
	if (probing)
		siglongjmp(probe_env, 1);
	signal(signal_number, SIG_DFL);
}

static void catch_faults(void)
{
	/* No mask to restore: a probe makes no system call. */
	struct sigaction action = {
		.sa_handler = on_fault, .sa_flags = SA_NODEFER,
	};

	sigaction(SIGSEGV, &action, NULL);
	sigaction(SIGBUS, &action, NULL);
}

uint64_t probe_read(const void *addr)
{
	volatile uint64_t word = FAULTED;

	catch_faults();
	if (!sigsetjmp(probe_env, 0)) {
		probing = 1;
		word = *(const volatile uint64_t *)addr;
	}
	probing = 0;
	return word;
}

bool probe_write(void *addr, uint64_t word)
{
	volatile bool done = false;

	catch_faults();
	if (!sigsetjmp(probe_env, 0)) {
		probing = 1;
		*(volatile uint64_t *)addr = word;
		done = true;
	}
	probing = 0;
	return done;
}

/* The accesses of the peer: no system call, so not through probe_read(). */
static uint64_t quiet_read(const uint64_t *addr)
{
	volatile uint64_t word = FAULTED;

	if (!sigsetjmp(probe_env, 0)) {
		probing = 1;
		word = *(const volatile uint64_t *)addr;
	}
	probing = 0;
	return word;
}

static bool quiet_write(uint64_t *addr, uint64_t word)
{
	volatile bool done = false;

	if (!sigsetjmp(probe_env, 0)) {
		probing = 1;
		*(volatile uint64_t *)addr = word;
		done = true;
	}
	probing = 0;
	return done;
}

static uint64_t quiet_call(const void *addr)
{
	volatile uint64_t result = FAULTED;

	if (!sigsetjmp(probe_env, 0)) {
		unsigned int (*call)(void) = (unsigned int (*)(void))addr;

		probing = 1;
		result = call();
	}
	probing = 0;
	return result;
}

static void serve_watch(void)
{
	size_t i;

	while (!__atomic_load_n(&peer.stop_watch, __ATOMIC_ACQUIRE)) {
		for (i = 0; i < peer.pages; i++) {
			uint64_t *at = peer.addr + i * PAGE / sizeof(*at);
			uint64_t word = quiet_read(at);

			if (word == peer.word || word == FAULTED)
				continue;
			if (!peer.saw_alien)
				peer.alien = word;
			peer.saw_alien = true;
		}
	}
}

static void serve(enum request request)
{
	size_t i;

	if (request == WATCH) {
		serve_watch();
		return;
	}
	for (i = 0; i < peer.pages; i++) {
		uint64_t *at = peer.addr + i * PAGE / sizeof(*at);

		if (request == READ)
			peer.words[i] = quiet_read(at);
		else if (request == CALL)
			peer.words[i] = quiet_call(at);
		else
			peer.words[i] = quiet_write(at, peer.word);
	}
}

/*
 * The kernel writes to it whenever a thread goes on after an interrupt, through memory that a
 * fork() of another thread may have write protected: the peer would wait for that to end.
 */
static void leave_rseq(void)
{
	struct rseq *own = (struct rseq *)((char *)__builtin_thread_pointer() +
					   __rseq_offset);

	if (__rseq_size)
		MUST(syscall(SYS_rseq, own, sizeof(*own), RSEQ_FLAG_UNREGISTER,
			     RSEQ_SIG));
}

static void *peer_main(void *unused)
{
	(void)unused;
	leave_rseq();
	pin_to_cpu(peer.cpu);
	__atomic_store_n(&peer.ready, true, __ATOMIC_RELEASE);
	for (;;) {
		enum request request = __atomic_load_n(&peer.request,
						       __ATOMIC_ACQUIRE);

		/*
		 * Without PAUSE: an emulator leaves its translated code for it
		 * and takes the lock of all its devices, each time.
		 */
		if (request == IDLE)
			continue;
		serve(request);
		__atomic_store_n(&peer.request, IDLE, __ATOMIC_RELEASE);
	}
	return NULL;
}

void peer_start(int cpu)
{
	pthread_attr_t attr;
	pthread_t thread;
	sigset_t all, old;
	double end;

	need_cpus(cpu + 1);
	peer.cpu = cpu;
	/* Prefault what the peer writes: it is to fault on test pages only. */
	memset(peer.words, 1, sizeof(peer.words));
	catch_faults();
	sigfillset(&all);
	sigdelset(&all, SIGSEGV);
	sigdelset(&all, SIGBUS);
	pthread_sigmask(SIG_BLOCK, &all, &old);
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	ENSURE(!pthread_create(&thread, &attr, peer_main, NULL),
	       "the peer cannot be started");
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	end = seconds() + PEER_LIMIT_S;
	while (!__atomic_load_n(&peer.ready, __ATOMIC_ACQUIRE)) {
		ENSURE(seconds() < end, "the peer does not come up");
		sched_yield();
	}
}

static void begin(enum request request, const void *addr, size_t pages,
		  uint64_t word)
{
	ENSURE(peer.ready, "the peer was not started");
	ENSURE(pages <= PEER_PAGES, "%zu pages are too many", pages);
	peer.addr = (uint64_t *)addr;
	peer.pages = pages;
	peer.word = word;
	__atomic_store_n(&peer.request, request, __ATOMIC_RELEASE);
}

static void finish(void)
{
	double end = seconds() + PEER_LIMIT_S;

	while (__atomic_load_n(&peer.request, __ATOMIC_ACQUIRE) != IDLE)
		ENSURE(seconds() < end, "the peer does not answer");
}

void peer_read(const void *addr, size_t pages, uint64_t *words)
{
	begin(READ, addr, pages, 0);
	finish();
	memcpy(words, peer.words, pages * sizeof(*words));
}

size_t peer_count(const void *addr, size_t pages, uint64_t word)
{
	size_t i, count = 0;

	begin(READ, addr, pages, 0);
	finish();
	for (i = 0; i < pages; i++)
		count += peer.words[i] == word;
	return count;
}

void peer_touch(const void *addr, size_t pages)
{
	size_t faults = peer_count(addr, pages, FAULTED);

	ENSURE(!faults, "%zu of %zu mapped pages at %p fault", faults, pages,
	       addr);
}

size_t peer_write(void *addr, size_t pages, uint64_t word)
{
	size_t i, count = 0;

	begin(WRITE, addr, pages, word);
	finish();
	for (i = 0; i < pages; i++)
		count += peer.words[i] != 0;
	return count;
}

void peer_call(const void *addr, size_t pages, uint64_t *results)
{
	begin(CALL, addr, pages, 0);
	finish();
	memcpy(results, peer.words, pages * sizeof(*results));
}

void peer_begin_watch(const void *addr, size_t pages, uint64_t expected)
{
	peer.saw_alien = false;
	peer.alien = expected;
	__atomic_store_n(&peer.stop_watch, false, __ATOMIC_RELEASE);
	begin(WATCH, addr, pages, expected);
}

uint64_t peer_end_watch(void)
{
	__atomic_store_n(&peer.stop_watch, true, __ATOMIC_RELEASE);
	finish();
	return peer.alien;
}

bool peer_watch_saw_alien(void)
{
	return peer.saw_alien;
}
