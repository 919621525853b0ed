/* SPDX-License-Identifier: GPL-2.0-only */
/* options.h - what munmap-bench is asked to do; see options.c. */
#ifndef MUNMAP_OPTIONS_H
#define MUNMAP_OPTIONS_H

#include "../common/modes.h"

#include <stdbool.h>

#define MAX_FILES 64
#define MAX_THREADS 512

/* Not a mix: one thread unmaps what all others have read. */
#define CASE_PEERS 6

/* Where the threads that do I/O are. */
enum layout {
	LAYOUT_TOGETHER,	/* in the process of those who compute */
	LAYOUT_IDEAL_COMPUTE,	/* in another process */
	LAYOUT_IDEAL_IO,	/* each alone in a process */
};

/* A mode of the kernel, or off with another layout. */
struct run_mode {
	const char *name;
	enum layout layout;
	const struct mode *mode;
};

enum access {
	ACCESS_READ,
	ACCESS_PRIVATE_WRITE,
	ACCESS_SHARED_WRITE,
	ACCESS_ANONYMOUS,
	ACCESSES,
};

extern const char *const access_names[ACCESSES];

struct options {
	unsigned int number;	/* case 1 to 6 */
	unsigned int threads;	/* of one process, all kinds together */
	unsigned int processes;
	enum access access;	/* what is done to a mapping */
	unsigned int pages;	/* of one mapping */
	unsigned int offsets;	/* distinct places in a file */
	unsigned int units;	/* compute units after an I/O, mixed threads */
	unsigned int buffer;	/* pages of its own that a compute thread reads */
	unsigned int rounds;
	double seconds;
	bool pin;
	bool fill;
	bool json;
	struct run_mode modes[MAX_MODES];
	unsigned int mode_count;
	const char *paths[MAX_FILES];	/* --file */
	unsigned int path_count;
	const char *folder;		/* --dir */
	unsigned int files;		/* made there */
};

void options_parse(struct options *options, int argc, char **argv);

#endif /* MUNMAP_OPTIONS_H */
