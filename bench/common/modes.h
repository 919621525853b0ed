/* SPDX-License-Identifier: GPL-2.0-only */
/* modes.h - the modes that a benchmark is run in: without a mechanism, with some; see modes.c. */
#ifndef BENCH_MODES_H
#define BENCH_MODES_H

#include <stdbool.h>

#include "mechanisms.h"

#define MAX_MODES 16

struct mode {
	const char *name;
	int map_flags;		/* of mappings that are to use it */
	unsigned int set;	/* of what it consists, bits by place in mechanisms[] */
};

struct mode_list {
	unsigned int count;
	const struct mode *modes[MAX_MODES];
};

/* All of them, for messages. */
const char *mode_names(void);
/* What a process under test does first, if it is for the process to ask. */
void enter_mode(const struct mode *mode);
/* And when it is over. */
void leave_mode(const struct mode *mode);
/* What a process does before it becomes a program under test that knows nothing of modes. */
void enter_mode_for_program(const struct mode *mode);
bool mode_is_offered(const struct mode *mode);
/* Ends the program where the kernel does not offer it, and says why. */
void require_mode(const struct mode *mode);
/* The same one for names that mean the same; NULL: there is none of that name. */
const struct mode *find_mode(const char *name);
/* A list such as "off,fpr+latr", as given to --mode; ends the program if it is none. */
void parse_modes(struct mode_list *list, const char *text);
/* Ends the program if the kernel does not offer all of them. */
void require_modes(const struct mode_list *list);
/* The mode that is number @i of a round; each round begins with another one. */
const struct mode *mode_in_turn(const struct mode_list *list, unsigned int round,
				unsigned int i);

#endif /* BENCH_MODES_H */
