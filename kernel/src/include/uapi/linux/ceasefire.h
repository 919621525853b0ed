/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * ceasefire: user visible constants.
 */
#ifndef _UAPI_LINUX_CEASEFIRE_H
#define _UAPI_LINUX_CEASEFIRE_H

/*
 * mmap(2) flag for file mappings: munmap() of the mapping may leave stale
 * translations behind in the TLBs of other CPUs instead of interrupting them.
 * The frames stay inside the process until those translations are gone, so
 * only a program that touches memory it has unmapped can notice.
 *
 * A hint: honoured with MAP_PRIVATE, MAP_SHARED and MAP_SHARED_VALIDATE.
 * Kernels without it ignore the flag, except with MAP_SHARED_VALIDATE, which
 * fails with EOPNOTSUPP there; so a program can probe.
 */
#define MAP_FPR		0x800000

#endif /* _UAPI_LINUX_CEASEFIRE_H */
