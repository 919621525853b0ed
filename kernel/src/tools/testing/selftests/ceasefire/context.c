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

void context_from_environment(void)
{
	const char *kind = getenv("CEASEFIRE_TEST_CONTEXT");

	if (kind)
		MUST(context_choose(strtoul(kind, NULL, 10)));
}
