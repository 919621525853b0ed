/* SPDX-License-Identifier: GPL-2.0-only */
/* modes.h - the modes that a benchmark is run in: without a mechanism, with one; see modes.c. */
#ifndef BENCH_MODES_H
#define BENCH_MODES_H

#include <stdbool.h>

#define MAX_MODES 16

struct mode {
	const char *name;
	int map_flags;		/* of mappings that are to use it */
	bool (*offered)(void);	/* by this kernel, now; NULL: always */
	void (*require)(void);	/* ends the program where it is not, and says why */
	int (*ask)(bool on);	/* for all mappings of this process and what it becomes */
	bool of_process;	/* no mapping asks for it: it is the process that does */
};

struct mode_list {
	unsigned int count;
	const struct mode *modes[MAX_MODES];
};

/* Ends the program where FPR would do nothing. */
void require_fpr(void);
/* All of them, for messages. */
const char *mode_names(void);
/* What a process under test does first, if it is for the process to ask. */
void enter_mode(const struct mode *mode);
/* And when it is over. */
void leave_mode(const struct mode *mode);
bool mode_is_offered(const struct mode *mode);
/* NULL: there is none of that name. */
const struct mode *find_mode(const char *name);
/* A list such as "off,fpr", as given to --mode; ends the program if it is none. */
void parse_modes(struct mode_list *list, const char *text);
/* Ends the program if the kernel does not offer all of them. */
void require_modes(const struct mode_list *list);
/* The mode that is number @i of a round; each round begins with another one. */
const struct mode *mode_in_turn(const struct mode_list *list, unsigned int round,
				unsigned int i);

#endif /* BENCH_MODES_H */
