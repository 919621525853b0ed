/* SPDX-License-Identifier: GPL-2.0 */
/* KTAP output of the userspace unit tests. */
#ifndef _CEASEFIRE_TEST_KTAP_H
#define _CEASEFIRE_TEST_KTAP_H

#include <stdio.h>

struct ktap_case {
	const char *name;
	void (*run)(void);
};

static int ktap_bad;

#define CHECK(cond) do {						\
	if (!(cond)) {							\
		printf("# %s:%d: %s\n", __func__, __LINE__, #cond);	\
		ktap_bad = 1;						\
	}								\
} while (0)

static inline int ktap_run(const struct ktap_case *cases, int nr)
{
	int failed = 0, i;

	printf("KTAP version 1\n1..%d\n", nr);
	for (i = 0; i < nr; i++) {
		ktap_bad = 0;
		cases[i].run();
		printf("%s %d %s\n", ktap_bad ? "not ok" : "ok", i + 1,
		       cases[i].name);
		failed |= ktap_bad;
	}
	return failed;
}

#define KTAP_RUN(cases)	ktap_run(cases, sizeof(cases) / sizeof(*(cases)))

#endif
