/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the tests of the checker share: check.c has the functions. */
#ifndef CHECK_H
#define CHECK_H

#include "guest.h"

extern char user_read[], user_write[], user_cpuid[];
extern char slid_read[], _text[];

/* An address space with four pages at UVA, all of frame old; another frame. */
extern u64 root, old, new;

#define N(name) tlb_check_counter(TLB_CHECK_N_##name)

/* Make and load that address space, all counters 0. */
void start(void);

/* Cache UVA, then remap it without a flush. */
void make_stale(void);

/* Run code in user mode: one of user_read and so on, and its arguments. */
u64 user(char *entry, u64 a, u64 b, u64 c, u64 d);

/* A test of its own, and what does not happen with fetch=off. */
void fetch(void);

#endif /* CHECK_H */
