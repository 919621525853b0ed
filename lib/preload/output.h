/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* output.h - messages of the preload library; see output.c. */
#ifndef CEASEFIRE_OUTPUT_H
#define CEASEFIRE_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

/* A line under construction; what does not fit is cut off and ends in "...". */
struct line {
	size_t length;
	bool full;
	char text[400];
};

/* Which file standard error was when the program started. */
struct output_target {
	bool usable;
	struct statx file;
};

void output_remember(struct output_target *target);
void line_start(struct line *line);
void line_text(struct line *line, const char *text);
void line_name(struct line *line, const char *name, size_t length);
void line_number(struct line *line, unsigned long number);
void line_send(struct line *line, const struct output_target *target);

#endif /* CEASEFIRE_OUTPUT_H */
