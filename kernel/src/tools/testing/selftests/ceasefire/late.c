// SPDX-License-Identifier: GPL-2.0
/* One who is late, see late.h. */
#define _GNU_SOURCE
#include "env.h"
#include "ktap.h"
#include "late.h"
#include "morsels.h"
#include "peer.h"

int late_write(char *at)
{
	return probe_write(at, WORD(0x5a)) ? 1 : -1;
}

static void *act(void *arg)
{
	struct late *l = arg;

	pin_to_cpu(1);
	l->result = l->act(l->at);
	return NULL;
}

void late_begin(struct late *l, int (*what)(char *at), char *at, unsigned int ms)
{
	need_cpus(2);
	pin_to_cpu(0);
	l->act = what;
	l->at = at;
	l->result = 0;
	morsel_install_delay(ms);
	ENSURE(!pthread_create(&l->thread, NULL, act, l), "no thread");
	sleep_ms(ms / 4);
	/* Only the first step of it is late. */
	morsel_install_delay(0);
}

int late_end(struct late *l)
{
	PREMISE(!l->result, "it was too early");
	pthread_join(l->thread, NULL);
	return l->result;
}
