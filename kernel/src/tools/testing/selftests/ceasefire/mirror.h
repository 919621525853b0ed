/* SPDX-License-Identifier: GPL-2.0 */
/* A device that mirrors the page tables of a process: lib/test_hmm.c, and its uapi. */
#ifndef CEASEFIRE_SELFTEST_MIRROR_H
#define CEASEFIRE_SELFTEST_MIRROR_H

#include <fcntl.h>
#include <stdint.h>
#include <sys/ioctl.h>

#include "ktap.h"

struct hmm_dmirror_cmd {
	uint64_t addr, ptr, npages, cpages, faults;
};

#define HMM_DMIRROR_READ	_IOWR('H', 0x00, struct hmm_dmirror_cmd)
#define HMM_DMIRROR_WRITE	_IOWR('H', 0x01, struct hmm_dmirror_cmd)
#define HMM_DMIRROR_EXCLUSIVE	_IOWR('H', 0x05, struct hmm_dmirror_cmd)

/* Skips the case where there is none. */
static inline int mirror_open(void)
{
	int device = open("/dev/hmm_dmirror0", O_RDWR | O_CLOEXEC);

	if (device < 0)
		ktap_skip("no /dev/hmm_dmirror0: boot the debug kernel");
	return device;
}

#endif
