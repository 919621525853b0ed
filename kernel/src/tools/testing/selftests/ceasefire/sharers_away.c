// SPDX-License-Identifier: GPL-2.0
/*
 * Sharers: a CPU that does not run a process any more is not interrupted, but keeps what it
 * had (PCIDs). It finds out that it was asked to flush when it comes back (I11), also where
 * it is the one that has asked.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "context.h"
#include "env.h"
#include "ktap.h"
#include "map.h"
#include "peer.h"
#include "regions.h"

#define ROUNDS		10
#define LET_GO_ROUNDS	3
#define DELAY_MS	1000
#define LIMIT_S		60
#define KSM		"/sys/kernel/mm/ksm/"
#define OLD		0x5a5a5a5aUL
#define NEW		0x42424242UL

/* A word that the thread is to read, and to write before. */
struct order {
	volatile uint64_t *at;
	bool writes;
};

static int to_thread[2], from_thread[2];
static volatile uint64_t *page;

/* The only thread that uses the page; on CPU 1, which is idle in between. */
static void *user(void *unused)
{
	struct order order;
	uint64_t word;

	(void)unused;
	pin_to_cpu(1);
	while (read(to_thread[0], &order, sizeof(order)) == sizeof(order)) {
		if (order.writes)
			*order.at = OLD;
		word = probe_read((const void *)order.at);
		MUST(write(from_thread[1], &word, sizeof(word)));
	}
	return NULL;
}

static uint64_t ask(volatile uint64_t *at, bool writes)
{
	struct order order = { .at = at, .writes = writes };
	uint64_t word = 0;

	MUST(write(to_thread[1], &order, sizeof(order)));
	MUST(read(from_thread[0], &word, sizeof(word)));
	return word;
}

static void start(void)
{
	pthread_t thread;

	need_cpus(2);
	if (context_sharers(1))
		ktap_skip("prctl(PR_SHARERS): %m");
	pin_to_cpu(0);
	MUST(pipe(to_thread));
	MUST(pipe(from_thread));
	ENSURE(!pthread_create(&thread, NULL, user, NULL), "no thread");
}

/* A child on the CPU of the thread writes to the memory of its parent. */
static void write_from_there(pid_t parent)
{
	uint64_t word = NEW;
	struct iovec from = { .iov_base = &word, .iov_len = sizeof(word) };
	struct iovec to = { .iov_base = (void *)page, .iov_len = sizeof(word) };

	pin_to_cpu(1);
	_exit(process_vm_writev(parent, &from, 1, &to, 1, 0) != sizeof(word));
}

/*
 * The page belongs to a child, too, so it is copied when another process writes to it:
 * what the thread has in its TLB is the old one.
 */
static void copied_by_child(void)
{
	int go[2], status, i;
	uint64_t word;
	pid_t child;
	char c;

	start();
	page = (volatile uint64_t *)regions(1);
	for (i = 0; i < ROUNDS; i++) {
		ENSURE(ask(page, true) == OLD, "it does not find what it has written");
		MUST(pipe(go));
		child = MUST(fork());
		if (!child) {
			MUST(read(go[0], &c, 1));
			write_from_there(getppid());
		}
		/* After the fork, which flushes everything. */
		ENSURE(ask(page, false) == OLD, "it does not find what it has written");
		sleep_ms(20);
		MUST(write(go[1], "", 1));
		MUST(waitpid(child, &status, 0));
		ENSURE(!status, "the child ends with status %x", status);
		word = ask(page, false);
		ENSURE(word == NEW, "it finds %llx after another process has written",
		       (unsigned long long)word);
		close(go[0]);
		close(go[1]);
	}
}

/* The same of a CPU that has no copy, and no number of what it was asked for. */
static void without_copy(void)
{
	sharers_slots(1);
	copied_by_child();
}

static pid_t find_thread(const char *wanted)
{
	DIR *folder = opendir("/proc");
	char path[300], name[32];
	struct dirent *entry;
	pid_t pid = 0;
	FILE *f;

	ENSURE(folder, "/proc: %m");
	while (!pid && (entry = readdir(folder))) {
		snprintf(path, sizeof(path), "/proc/%s/comm", entry->d_name);
		f = atoi(entry->d_name) ? fopen(path, "re") : NULL;
		if (!f)
			continue;
		if (fscanf(f, "%31s", name) == 1 && !strcmp(name, wanted))
			pid = atoi(entry->d_name);
		fclose(f);
	}
	closedir(folder);
	return pid;
}

/* Each time that the number changes ksmd looks at all pages once, and sleeps again. */
static void scan(void)
{
	static int milliseconds = 1000000;
	char text[16];

	snprintf(text, sizeof(text), "%d", milliseconds++);
	ENSURE(write_text(KSM "sleep_millisecs", text), "ksm: %m");
}

/* On the CPU of the thread; it has looked at all pages once. */
static void scan_first(void)
{
	long scans = read_number(KSM "full_scans");
	double end = seconds() + LIMIT_S;

	scan();
	ENSURE(write_text(KSM "run", "1"), "ksm: %m");
	while (read_number(KSM "full_scans") == scans) {
		ENSURE(seconds() < end, "ksmd does not look at any page");
		sleep_ms(20);
	}
	/* Until it sleeps. */
	sleep_ms(100);
}

static bool go;

/* While the table is on its way, ksmd merges a page that the thread has used. */
static void *scan_later(void *unused)
{
	(void)unused;
	pin_to_cpu(2);
	while (!__atomic_load_n(&go, __ATOMIC_ACQUIRE))
		sleep_ms(1);
	sleep_ms(DELAY_MS / 4);
	scan();
	return NULL;
}

/*
 * ksmd, on the CPU of the thread and in lazy mode, asks that CPU to flush for the page that
 * it merges. Before it does so the CPU is interrupted for a table that goes, and lets go of
 * the process: what it would flush then is not what the thread has had.
 */
static void let_go_round(void)
{
	volatile uint64_t *other, *merged, *unmapped;
	double end = seconds() + LIMIT_S;
	pthread_t thread;
	uint64_t word;

	other = (volatile uint64_t *)regions(1);
	merged = (volatile uint64_t *)regions(1);
	unmapped = (volatile uint64_t *)regions(1);
	if (other > merged) {
		volatile uint64_t *swapped = other;

		other = merged;
		merged = swapped;
	}
	*other = OLD;
	MUST(madvise((void *)other, PAGE, MADV_MERGEABLE));
	MUST(madvise((void *)merged, PAGE, MADV_MERGEABLE));
	__atomic_store_n(&go, false, __ATOMIC_RELEASE);
	ENSURE(!pthread_create(&thread, NULL, scan_later, NULL), "no thread");
	ENSURE(ask(merged, true) == OLD && ask(unmapped, true) == OLD,
	       "it does not find what it has written");
	scan_first();
	ENSURE(ask(merged, true) == OLD && ask(unmapped, true) == OLD,
	       "it does not find what it has written");
	sleep_ms(20);
	sharers_send_delay(DELAY_MS);
	__atomic_store_n(&go, true, __ATOMIC_RELEASE);
	MUST(munmap((void *)unmapped, REGION));
	while (frame_of((const void *)other) != frame_of((const void *)merged) &&
	       seconds() < end)
		sleep_ms(20);
	sharers_send_delay(0);
	PREMISE(frame_of((const void *)other) == frame_of((const void *)merged),
		"the pages are not merged");
	word = ask(unmapped, false);
	ENSURE(word == FAULTED, "it finds %llx where nothing is mapped",
	       (unsigned long long)word);
	ENSURE(ask(merged, true) == OLD, "it does not find what it has written");
	pthread_join(thread, NULL);
	/* Or else they would be merged with those of the next round. */
	MUST(munmap((void *)other, REGION));
	MUST(munmap((void *)merged, REGION));
}

static void let_go(void)
{
	pid_t ksmd = find_thread("ksmd");
	cpu_set_t set;
	int i;

	need_cpus(3);
	if (!ksmd || access(KSM "run", W_OK))
		ktap_skip("no KSM");
	CPU_ZERO(&set);
	CPU_SET(1, &set);
	ENSURE(write_text(KSM "run", "0") && write_text(KSM "smart_scan", "0") &&
	       write_text(KSM "pages_to_scan", "10000"), "ksm: %m");
	MUST(sched_setaffinity(ksmd, sizeof(set), &set));
	start();
	for (i = 0; i < LET_GO_ROUNDS; i++) {
		let_go_round();
		ENSURE(write_text(KSM "run", "0"), "ksm: %m");
	}
	memset(&set, 0xff, sizeof(set));
	MUST(sched_setaffinity(ksmd, sizeof(set), &set));
}

int main(int argc, char **argv)
{
	static const struct ktap_case cases[] = {
		{ "copied_by_child", copied_by_child, 0 },
		{ "without_copy", without_copy, 0 },
		{ "let_go", let_go, 0 },
	};

	return ktap_main(argc, argv, cases, KTAP_COUNT(cases));
}
