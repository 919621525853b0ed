/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * options.h - the command line of a benchmark program, as a table
 *
 * What: getopt_long() reads it, and --help and each error come from the same
 *       table: an option is one entry. Wrong use ends the program with one line.
 * Who:  all benchmark programs.
 */
#ifndef BENCH_OPTIONS_H
#define BENCH_OPTIONS_H

#include <stddef.h>
#include <stdint.h>

enum option_kind { OPTION_END, OPTION_FLAG, OPTION_NUMBER, OPTION_SECONDS,
		   OPTION_TEXT, OPTION_CALL };

struct program_option {
	enum option_kind kind;
	const char *name;	/* without the dashes */
	const char *argument;	/* what --help calls it; NULL: there is none */
	const char *help;	/* lines, the default in parentheses */
	void *to;
	size_t size;		/* of a number */
	uint64_t low, high;	/* of a number */
	void (*call)(void *to, char *text);
};

/* Sets a bool. */
#define FLAG(NAME, TO, HELP) \
	{ .kind = OPTION_FLAG, .name = NAME, .to = TO, .help = HELP }
/* An unsigned integer of four or eight bytes, from LOW to HIGH. */
#define NUMBER(NAME, ARGUMENT, TO, LOW, HIGH, HELP) \
	{ .kind = OPTION_NUMBER, .name = NAME, .argument = ARGUMENT, .to = TO, \
	  .size = sizeof(*(TO)), .low = LOW, .high = HIGH, .help = HELP }
/* A double. */
#define DURATION(NAME, TO, HELP) \
	{ .kind = OPTION_SECONDS, .name = NAME, .argument = "S", .to = TO, .help = HELP }
/* A const char *. */
#define TEXT(NAME, ARGUMENT, TO, HELP) \
	{ .kind = OPTION_TEXT, .name = NAME, .argument = ARGUMENT, .to = TO, .help = HELP }
/* Something else: CALL(TO, text) reads it, text is NULL without ARGUMENT. */
#define CALL(NAME, ARGUMENT, TO, FUNCTION, HELP) \
	{ .kind = OPTION_CALL, .name = NAME, .argument = ARGUMENT, .to = TO, \
	  .call = FUNCTION, .help = HELP }

/* --mode of most programs; TO is a struct mode_list. */
#define MODES(TO) \
	CALL("mode", "LIST", TO, read_modes, \
	     "off: without a mechanism, and the names of mechanisms (off,fpr)")
void read_modes(void *to, char *text);

struct program {
	const char *usage;	/* NAME and what follows it */
	const char *what;	/* it does, in a sentence */
	const char *notes;	/* below the options */
};

/* @options ends with an empty entry. */
void parse_options(const struct program *program, const struct program_option *options,
		   int argc, char **argv);

#endif /* BENCH_OPTIONS_H */
