// SPDX-License-Identifier: GPL-2.0
/* See context.h. */
#include <stdlib.h>
#include <sys/prctl.h>

#include "context.h"
#include "ktap.h"

int context_choose(unsigned long kind)
{
	return prctl(PR_FPR, PR_FPR_SET_CONTEXT, kind, 0, 0);
}

int context_chosen(void)
{
	unsigned int kind = 0;

	if (prctl(PR_FPR, PR_FPR_GET_CONTEXT, &kind, 0, 0))
		return -1;
	return (int)kind;
}

int context_lazy(unsigned long on)
{
	return prctl(PR_LATR, PR_LATR_SET, on, 0, 0);
}

int context_is_lazy(void)
{
	unsigned int on = 0;

	if (prctl(PR_LATR, PR_LATR_GET, &on, 0, 0))
		return -1;
	return (int)on;
}

int context_sharers(unsigned long on)
{
	return prctl(PR_SHARERS, PR_SHARERS_SET, on, 0, 0);
}

int context_has_sharers(void)
{
	unsigned int on = 0;

	if (prctl(PR_SHARERS, PR_SHARERS_GET, &on, 0, 0))
		return -1;
	return (int)on;
}

int context_abis(unsigned long on)
{
	return prctl(PR_ABIS, PR_ABIS_SET, on, 0, 0);
}

int context_has_abis(void)
{
	unsigned int on = 0;

	if (prctl(PR_ABIS, PR_ABIS_GET, &on, 0, 0))
		return -1;
	return (int)on;
}

void context_from_environment(void)
{
	const char *kind = getenv("CEASEFIRE_TEST_CONTEXT");

	if (kind)
		MUST(context_choose(strtoul(kind, NULL, 10)));
}
