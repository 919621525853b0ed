/* SPDX-License-Identifier: GPL-2.0-or-later */
/* For small programs of the guest: a call that has to work, or the program ends. */
#ifndef EMULATOR_GUEST_MUST_H
#define EMULATOR_GUEST_MUST_H

#include <stdio.h>
#include <stdlib.h>

#define MUST(what) do {							\
	if ((long)(what) < 0) {						\
		perror(#what);						\
		exit(1);						\
	}								\
} while (0)

#endif
