// SPDX-License-Identifier: GPL-2.0-only
/* options.c - the command line of a benchmark program, see options.h. */
#include "options.h"
#include "modes.h"
#include "util.h"

#include <errno.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_OPTIONS 40
/* Where the words about an option begin in --help. */
#define COLUMN 20
/* No character: getopt_long() returns '?' for what it does not know. */
#define FIRST 256

void read_modes(void *to, char *text)
{
	parse_modes(to, text);
}

static void print_option(const char *name, const char *argument, const char *help)
{
	const char *word = argument ? argument : "";
	int width = printf("  --%s%s%s", name, argument ? " " : "", word);

	for (;;) {
		int length = (int)strcspn(help, "\n");

		if (width > COLUMN - 2) {
			putchar('\n');
			width = 0;
		}
		printf("%*s%.*s\n", COLUMN - width, "", length, help);
		if (!help[length])
			return;
		help += length + 1;
		width = 0;
	}
}

static void print_help(const struct program *program, const struct program_option *o)
{
	printf("usage: %s\n%s\n\n", program->usage, program->what);
	for (; o->kind != OPTION_END; o++)
		print_option(o->name, o->argument, o->help);
	printf("\n%sExit status: 0, 1 wrong data or an error, 2 wrong use, 77 the kernel lacks what a mode needs.\n",
	       program->notes ? program->notes : "");
}

static void read_number(const struct program_option *o, const char *text)
{
	uint64_t value;
	uint32_t small;
	char *end;

	errno = 0;
	value = strtoull(text, &end, 10);
	if (errno || end == text || *end || text[0] == '-' || value < o->low ||
	    value > o->high)
		die(EXIT_USAGE, "--%s wants a number from %llu to %llu, not '%s'", o->name,
		    (unsigned long long)o->low, (unsigned long long)o->high, text);
	small = (uint32_t)value;
	if (o->size == sizeof(small))
		memcpy(o->to, &small, sizeof(small));
	else
		memcpy(o->to, &value, sizeof(value));
}

static void read_seconds(const struct program_option *o, const char *text)
{
	double value;
	char *end;

	value = strtod(text, &end);
	if (end == text || *end || !(value >= 0.01 && value <= 86400))
		die(EXIT_USAGE, "--%s wants seconds from 0.01 to 86400, not '%s'", o->name,
		    text);
	*(double *)o->to = value;
}

static void apply(const struct program_option *o, char *text)
{
	switch (o->kind) {
	case OPTION_FLAG:
		*(bool *)o->to = true;
		break;
	case OPTION_NUMBER:
		read_number(o, text);
		break;
	case OPTION_SECONDS:
		read_seconds(o, text);
		break;
	case OPTION_TEXT:
		*(const char **)o->to = text;
		break;
	case OPTION_CALL:
		o->call(o->to, text);
		break;
	case OPTION_END:
		break;
	}
}

void parse_options(const struct program *program, const struct program_option *options,
		   int argc, char **argv)
{
	struct option longs[MOST_OPTIONS + 2] = { 0 };
	int count = 0, found;

	for (; options[count].kind != OPTION_END; count++) {
		if (count == MOST_OPTIONS)
			die(EXIT_FAILED, "there are more than %d options", MOST_OPTIONS);
		longs[count] = (struct option){
			.name = options[count].name,
			.has_arg = options[count].argument ? required_argument : no_argument,
			.val = FIRST + count,
		};
	}
	longs[count] = (struct option){ "help", no_argument, NULL, FIRST + count };
	opterr = 0;
	while ((found = getopt_long(argc, argv, "", longs, NULL)) != -1) {
		if (found == '?')
			die(EXIT_USAGE, "cannot use '%s'; %s --help lists the options",
			    argv[optind - 1], program_name());
		if (found == FIRST + count) {
			print_help(program, options);
			exit(EXIT_OK);
		}
		apply(&options[found - FIRST], optarg);
	}
	if (optind < argc)
		die(EXIT_USAGE, "'%s' is not an option; %s --help lists them", argv[optind],
		    program_name());
}
