/* SPDX-License-Identifier: GPL-2.0-only */
/* options.h - what scale-bench is asked to do; see options.c. */
#ifndef SCALE_OPTIONS_H
#define SCALE_OPTIONS_H

#include "../common/modes.h"
#include "../common/util.h"

#define MAX_TASKS 512

struct test;

struct options {
	const struct test *test;
	unsigned int tasks;
	bool processes;		/* a task is a process, else a thread */
	bool apart;		/* own_*: areas of their own */
	bool bystander;		/* the last task has nothing to do with the test */
	unsigned int pages;	/* of a mapping, and of the file of a task */
	unsigned int rounds;
	double seconds;
	struct mode_list modes;
	const char *folder;	/* of the files */
	bool spoil;		/* leave wrong data behind, to be noticed */
	bool json;
};

void options_parse(struct options *options, int argc, char **argv);

#endif /* SCALE_OPTIONS_H */
