/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What processes choose: who recycles together, prctl(PR_FPR), and whether they
 * are lazy, prctl(PR_LATR).
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

#ifndef PR_LATR
#define PR_LATR			0x4c415452
#define PR_LATR_SET		1
#define PR_LATR_GET		2
#endif

#ifndef PR_SHARERS
#define PR_SHARERS		0x53485253
#define PR_SHARERS_SET		1
#define PR_SHARERS_GET		2
#endif

#ifndef PR_ABIS
#define PR_ABIS			0x41424953
#define PR_ABIS_SET		1
#define PR_ABIS_GET		2
#endif

enum { CONTEXT_PROCESS, CONTEXT_MAPPING, CONTEXT_CHILDREN };

/* 0, or -1 with errno set. */
int context_choose(unsigned long kind);
/* What the process has chosen; -1 with errno set. */
int context_chosen(void);
/* Is munmap() of this process lazy? 0, or -1 with errno set. */
int context_lazy(unsigned long on);
/* Whether it is; -1 with errno set. */
int context_is_lazy(void);
/* Do CPUs note what they use of this process? 0, or -1 with errno set. */
int context_sharers(unsigned long on);
/* Whether they are to; -1 with errno set. */
int context_has_sharers(void);
/* Are flushes of this process for entries that a CPU can have? 0, or -1 with errno set. */
int context_abis(unsigned long on);
/* Whether they are; -1 with errno set. */
int context_has_abis(void);
/* As CEASEFIRE_TEST_CONTEXT says, if it is set. */
void context_from_environment(void);

#endif
