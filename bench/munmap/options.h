/* SPDX-License-Identifier: GPL-2.0-only */
/* options.h - what munmap-bench is asked to do; see options.c. */
#ifndef MUNMAP_OPTIONS_H
#define MUNMAP_OPTIONS_H

#include <stdbool.h>

#define MAX_FILES 64
#define MAX_THREADS 512

enum mode {
	MODE_OFF,		/* plain mmap */
	MODE_ON,		/* MAP_FPR */
	MODE_IDEAL_COMPUTE,	/* the I/O threads are in another process */
	MODE_IDEAL_IO,		/* each I/O thread is alone in a process */
	MODES,
};

extern const char *const mode_names[MODES];

enum access {
	ACCESS_READ,
	ACCESS_PRIVATE_WRITE,
	ACCESS_SHARED_WRITE,
	ACCESS_ANONYMOUS,
	ACCESSES,
};

extern const char *const access_names[ACCESSES];

struct options {
	unsigned int number;	/* case 1 to 5 */
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
	enum mode modes[MODES];
	unsigned int mode_count;
	const char *paths[MAX_FILES];	/* --file */
	unsigned int path_count;
	const char *folder;		/* --dir */
	unsigned int files;		/* made there */
};

void options_parse(struct options *options, int argc, char **argv);

#endif /* MUNMAP_OPTIONS_H */
