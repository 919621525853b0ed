/* SPDX-License-Identifier: GPL-2.0-only */
/* data.h - the files that are mapped; see data.c. */
#ifndef MUNMAP_DATA_H
#define MUNMAP_DATA_H

#include "options.h"

struct data {
	int fds[MAX_FILES];
	unsigned int count;
	bool checked;		/* the files hold the test pattern */
};

void data_open(struct data *data, const struct options *options);

#endif /* MUNMAP_DATA_H */
