// SPDX-License-Identifier: GPL-2.0-only
/*
 * options.c - the command line of munmap-bench
 *
 * What: fills struct options or ends with one line that says what to do.
 * Who:  main.c.
 */
#include "options.h"

#include "../common/util.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char *const mode_names[MODES] = {
	[MODE_OFF] = "off",
	[MODE_ON] = "on",
	[MODE_IDEAL_COMPUTE] = "ideal-compute",
	[MODE_IDEAL_IO] = "ideal-io",
};

const char *const access_names[ACCESSES] = {
	[ACCESS_READ] = "read",
	[ACCESS_PRIVATE_WRITE] = "private-write",
	[ACCESS_SHARED_WRITE] = "shared-write",
	[ACCESS_ANONYMOUS] = "anonymous",
};

static const char help[] =
"usage: munmap-bench [options]\n"
"Threads map pages of a file, read them and unmap them, while others compute.\n"
"\n"
"  --case N        1 I/O threads only (default)\n"
"                  2 one I/O thread, the others compute\n"
"                  3 one thread computes, the others do I/O\n"
"                  4 as many I/O as compute threads\n"
"                  5 every thread does both in turn\n"
"  --threads N     threads of a process in all (default: one for each CPU)\n"
"  --processes N   processes that do the same on the same files (1)\n"
"  --access HOW    read: a shared mapping (default); private-write: a private\n"
"                  one, which is written to; shared-write: a shared one, which\n"
"                  is written to; anonymous: memory, written to\n"
"  --pages N       pages of a mapping (1)\n"
"  --offsets N     distinct places in each file (256)\n"
"  --units N       compute units after each I/O of a mixed thread (4)\n"
"  --buffer N      pages of its own that a thread reads while it computes, one\n"
"                  for 64 instructions (0)\n"
"  --mode LIST     off,on,ideal-compute,ideal-io: each once a round (off,on)\n"
"  --rounds N      rounds, the order of the modes rotates (5)\n"
"  --seconds S     length of a sample (2)\n"
"  --pin           keep each thread on one CPU\n"
"  --dir DIR       make the files here; they are gone at the end ($TMPDIR, /tmp)\n"
"  --files N       how many (1)\n"
"  --file PATH     use this file or block device instead (repeatable)\n"
"  --fill          write the test pattern to it first: destroys its contents\n"
"  --json          JSON lines instead of text\n"
"\n"
"ideal-compute: as off, but the I/O threads are in another process.\n"
"ideal-io: as off, but each I/O thread is alone in a process.\n"
"Exit status: 0, 1 wrong data or an error, 2 wrong use, 77 no FPR here.\n";

static void parse_modes(struct options *options, char *text)
{
	char *save = NULL;

	options->mode_count = 0;
	for (char *word = strtok_r(text, ",", &save); word;
	     word = strtok_r(NULL, ",", &save)) {
		enum mode mode = 0;

		while (mode < MODES && strcmp(word, mode_names[mode]) != 0)
			mode++;
		if (mode == MODES)
			die(EXIT_USAGE, "unknown mode '%s': use off, on, ideal-compute or ideal-io",
			    word);
		for (unsigned int i = 0; i < options->mode_count; i++) {
			if (options->modes[i] == mode)
				die(EXIT_USAGE, "mode %s is given twice", word);
		}
		options->modes[options->mode_count++] = mode;
	}
	if (!options->mode_count)
		die(EXIT_USAGE, "--mode wants at least one mode");
}

static void check(const struct options *options)
{
	bool two_kinds = options->number >= 2 && options->number <= 4;

	if (two_kinds && options->threads < 2)
		die(EXIT_USAGE, "case %u needs --threads 2 or more",
		    options->number);
	if (options->number == 4 && options->threads % 2)
		die(EXIT_USAGE, "case 4 needs an even number of --threads");
	if (options->threads * options->processes > MAX_THREADS)
		die(EXIT_USAGE, "at most %d threads in all processes",
		    MAX_THREADS);
	if (options->fill && !options->path_count)
		die(EXIT_USAGE, "--fill is for --file; files of --dir always have the pattern");
	if (options->access == ACCESS_SHARED_WRITE && options->path_count &&
	    !options->fill)
		die(EXIT_USAGE, "shared-write destroys what is in --file: say so with --fill");
	if (options->access == ACCESS_SHARED_WRITE &&
	    options->offsets < options->threads * options->processes)
		die(EXIT_USAGE, "shared-write needs as many --offsets as there are threads");
	if (options->path_count && options->folder)
		die(EXIT_USAGE, "give --file or --dir, not both");
	for (unsigned int i = 0; i < options->mode_count; i++) {
		if (options->modes[i] == MODE_IDEAL_COMPUTE && !two_kinds)
			die(EXIT_USAGE, "case %u has no compute threads for ideal-compute",
			    options->number);
	}
}

enum { CASE = 256, THREADS, PROCESSES, ACCESS, PAGES, OFFSETS, UNITS, BUFFER,
       MODE, ROUNDS, SECONDS, PIN, DIR, FILES, FILE_, FILL, JSON, HELP };

static const struct option long_options[] = {
	{ "case", required_argument, NULL, CASE },
	{ "threads", required_argument, NULL, THREADS },
	{ "processes", required_argument, NULL, PROCESSES },
	{ "access", required_argument, NULL, ACCESS },
	{ "pages", required_argument, NULL, PAGES },
	{ "offsets", required_argument, NULL, OFFSETS },
	{ "units", required_argument, NULL, UNITS },
	{ "buffer", required_argument, NULL, BUFFER },
	{ "mode", required_argument, NULL, MODE },
	{ "rounds", required_argument, NULL, ROUNDS },
	{ "seconds", required_argument, NULL, SECONDS },
	{ "pin", no_argument, NULL, PIN },
	{ "dir", required_argument, NULL, DIR },
	{ "files", required_argument, NULL, FILES },
	{ "file", required_argument, NULL, FILE_ },
	{ "fill", no_argument, NULL, FILL },
	{ "json", no_argument, NULL, JSON },
	{ "help", no_argument, NULL, HELP },
	{ NULL, 0, NULL, 0 },
};

static unsigned int number(const char *option, unsigned long low,
			   unsigned long high)
{
	return (unsigned int)parse_number(option, optarg, low, high);
}

static enum access parse_access(const char *text)
{
	for (enum access access = 0; access < ACCESSES; access++)
		if (!strcmp(text, access_names[access]))
			return access;
	die(EXIT_USAGE, "unknown access '%s': use read, private-write, shared-write or anonymous",
	    text);
}

static void apply(struct options *options, int option)
{
	switch (option) {
	case CASE:
		options->number = number("--case", 1, 5);
		break;
	case THREADS:
		options->threads = number("--threads", 1, MAX_THREADS);
		break;
	case PROCESSES:
		options->processes = number("--processes", 1, MAX_THREADS);
		break;
	case ACCESS:
		options->access = parse_access(optarg);
		break;
	case PAGES:
		options->pages = number("--pages", 1, 4096);
		break;
	case OFFSETS:
		options->offsets = number("--offsets", 1, 1 << 20);
		break;
	case UNITS:
		options->units = number("--units", 1, 1 << 20);
		break;
	case BUFFER:
		options->buffer = number("--buffer", 0, 65536);
		break;
	case MODE:
		parse_modes(options, optarg);
		break;
	case ROUNDS:
		options->rounds = number("--rounds", 1, 100000);
		break;
	case SECONDS:
		options->seconds = parse_seconds("--seconds", optarg);
		break;
	case PIN:
		options->pin = true;
		break;
	case DIR:
		options->folder = optarg;
		break;
	case FILES:
		options->files = number("--files", 1, MAX_FILES);
		break;
	case FILE_:
		if (options->path_count == MAX_FILES)
			die(EXIT_USAGE, "at most %d times --file", MAX_FILES);
		options->paths[options->path_count++] = optarg;
		break;
	case FILL:
		options->fill = true;
		break;
	case JSON:
		options->json = true;
		break;
	case HELP:
		fputs(help, stdout);
		exit(EXIT_OK);
	}
}

void options_parse(struct options *options, int argc, char **argv)
{
	static char default_modes[] = "off,on";
	int option;

	*options = (struct options){
		.number = 1,
		.threads = (unsigned int)sysconf(_SC_NPROCESSORS_ONLN),
		.processes = 1,
		.pages = 1,
		.offsets = 256,
		.units = 4,
		.rounds = 5,
		.seconds = 2,
		.files = 1,
	};
	parse_modes(options, default_modes);
	opterr = 0;
	while ((option = getopt_long(argc, argv, "", long_options, NULL)) != -1) {
		if (option == '?')
			die(EXIT_USAGE, "cannot use '%s'; munmap-bench --help lists the options",
			    argv[optind - 1]);
		apply(options, option);
	}
	if (optind < argc)
		die(EXIT_USAGE, "'%s' is not an option; files are given with --file",
		    argv[optind]);
	check(options);
}
