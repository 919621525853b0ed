/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Two processes that recycle together: the case with its peer, and a stranger.
 * The case leaves frames of a file that is gone, which its peer still reads; the
 * other process maps a second file, and takes them or does not.
 */
#ifndef CEASEFIRE_SELFTEST_MEMBERS_H
#define CEASEFIRE_SELFTEST_MEMBERS_H

#include <stdbool.h>
#include <stddef.h>

#include "env.h"
#include "file.h"
#include "stranger.h"

#define PAGES		16
#define LENGTH		(PAGES * PAGE)
/* What the pages of the two files are made of. */
#define OWN		0x5a
#define OTHERS		0x22
#define MEMBER_TRIES	50

extern struct tfile own, others;
extern struct stranger other;

/* Files, another process that has made the choice, and a peer. */
void members_start(unsigned long kind);
/* The other process is a member, not only one that may become one. */
void members_take_part(void);
/* Frames of a file that is gone, parked; the peer still reads them there. */
char *members_leave_parked(void);

/* In any process: map and read @fd; the pages that are right, -1: no mapping. */
long members_map(int fd, int prot);
/* In the other process: the same with the second file; for stranger_call(). */
long members_map_others(long prot);
/* How many frames the other process takes from a pool when it does so. */
long members_other_recycles(void);
/* What was left between members is gone when one of them goes. */
void members_gone(char *p, const char *who);

#endif
