/* SPDX-License-Identifier: GPL-2.0-only */
/* data.h - the files that are mapped; see data.c. */
#ifndef MUNMAP_DATA_H
#define MUNMAP_DATA_H

#include "options.h"

#include <stdint.h>

struct data {
	int fds[MAX_FILES];
	unsigned int count;
	bool checked;		/* the files hold the test pattern */
	/* shared-write: the second word of all pages of a place, by file. */
	uint32_t *versions;
};

void data_open(struct data *data, const struct options *options);
uint64_t data_verify(const struct data *data, const struct options *options);

#endif /* MUNMAP_DATA_H */
