/* SPDX-License-Identifier: GPL-2.0 */
/* Threads that sleep until they are told to do something. */
#ifndef CEASEFIRE_SELFTEST_WORKER_H
#define CEASEFIRE_SELFTEST_WORKER_H

#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>

struct worker {
	pthread_t thread;
	int cpu;
	sem_t go, done;
	bool stop;
	void (*job)(void *arg);
	void *arg;
	/* Of its stack. */
	char *stack;
};

/* Start one, with these attributes or NULL; on any CPU if @cpu is negative. */
void worker_start(struct worker *w, int cpu, const pthread_attr_t *attr);
/* Have it do something; the two halves of it, or both. */
void worker_begin(struct worker *w, void (*job)(void *arg), void *arg);
void worker_end(struct worker *w);
void worker_run(struct worker *w, void (*job)(void *arg), void *arg);
/* The thread is gone when it returns. */
void worker_stop(struct worker *w);

#endif
