/* SPDX-License-Identifier: GPL-2.0-only */
/* modes.h - the modes that a benchmark is run in: without a mechanism, with one; see modes.c. */
#ifndef BENCH_MODES_H
#define BENCH_MODES_H

#define MAX_MODES 16

struct mode {
	const char *name;
	int map_flags;		/* of mappings that are to use it */
	void (*require)(void);	/* ends the program where the kernel does not offer it */
	int (*ask)(void);	/* for all mappings of this process and what it becomes */
};

struct mode_list {
	unsigned int count;
	const struct mode *modes[MAX_MODES];
};

/* Ends the program where FPR would do nothing. */
void require_fpr(void);
/* All of them, for messages. */
const char *mode_names(void);
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
