// SPDX-License-Identifier: GPL-2.0
/* See worker.h. */
#define _GNU_SOURCE
#include <errno.h>
#include <string.h>

#include "env.h"
#include "ktap.h"
#include "worker.h"

static void wait_for(sem_t *s)
{
	while (sem_wait(s))
		ENSURE(errno == EINTR, "sem_wait: %m");
}

static void *work(void *data)
{
	struct worker *w = data;

	if (w->cpu >= 0)
		pin_to_cpu(w->cpu);
	w->stack = (char *)&w;
	sem_post(&w->done);
	for (;;) {
		wait_for(&w->go);
		if (w->stop)
			return NULL;
		w->job(w->arg);
		sem_post(&w->done);
	}
}

void worker_start(struct worker *w, int cpu, const pthread_attr_t *attr)
{
	int err;

	*w = (struct worker){ .cpu = cpu };
	sem_init(&w->go, 0, 0);
	sem_init(&w->done, 0, 0);
	err = pthread_create(&w->thread, attr, work, w);
	ENSURE(!err, "pthread_create: %s", strerror(err));
	wait_for(&w->done);
}

void worker_begin(struct worker *w, void (*job)(void *arg), void *arg)
{
	w->job = job;
	w->arg = arg;
	sem_post(&w->go);
}

void worker_end(struct worker *w)
{
	wait_for(&w->done);
}

void worker_run(struct worker *w, void (*job)(void *arg), void *arg)
{
	worker_begin(w, job, arg);
	worker_end(w);
}

void worker_stop(struct worker *w)
{
	int err;

	w->stop = true;
	sem_post(&w->go);
	err = pthread_join(w->thread, NULL);
	ENSURE(!err, "pthread_join: %s", strerror(err));
}
