/* SPDX-License-Identifier: GPL-2.0-only */
/* mark.h - where steps-plugin.c begins and ends to count. */
#ifndef BENCH_MARK_H
#define BENCH_MARK_H

/* An instruction that does nothing, which steps-plugin.c looks for. */
#define MARK() __asm__ volatile("nopl 0x0cea5ef1(%%rax)" ::: "memory")

#endif /* BENCH_MARK_H */
