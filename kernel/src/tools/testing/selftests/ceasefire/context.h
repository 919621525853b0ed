/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Who recycles together: prctl(PR_FPR), for the case and its strangers.
 */
#ifndef CEASEFIRE_SELFTEST_CONTEXT_H
#define CEASEFIRE_SELFTEST_CONTEXT_H

#ifndef PR_FPR
#define PR_FPR			0x465052
#define PR_FPR_SET_AUTO		1
#define PR_FPR_GET_AUTO		2
#define PR_FPR_SET_CONTEXT	3
#define PR_FPR_GET_CONTEXT	4
#endif

enum { CONTEXT_PROCESS, CONTEXT_MAPPING, CONTEXT_CHILDREN };

/* 0, or -1 with errno set. */
int context_choose(unsigned long kind);
/* What the process has chosen; -1 with errno set. */
int context_chosen(void);
/* As CEASEFIRE_TEST_CONTEXT says, if it is set. */
void context_from_environment(void);

#endif
