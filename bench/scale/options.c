// SPDX-License-Identifier: GPL-2.0-only
/*
 * options.c - the command line of scale-bench
 *
 * What: fills struct options or ends with one line that says what to do.
 * Who:  main.c.
 */
#include "options.h"
#include "tests.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char help[] =
"usage: scale-bench --test NAME [options]\n"
"Tasks repeat one operation of the kernel; how often is counted.\n"
"\n"
"  --test NAME     see --list\n"
"  --list          print the tests\n"
"  --threads N     tasks, threads of one process (one for each CPU)\n"
"  --processes N   tasks, each a process\n"
"  --pages N       of a mapping, and of the file of each task (4096)\n"
"  --mode LIST     without MAP_FPR, with it (off,on)\n"
"  --rounds N      of all modes (3)\n"
"  --seconds S     length of a sample (2)\n"
"  --dir DIR       make the files here; they are gone at the end ($TMPDIR, /tmp)\n"
"  --spoil         leave wrong data behind, which must be noticed: a test of the test\n"
"  --json          JSON lines instead of text\n"
"\n"
"Exit status: 0, 1 wrong data or an error, 2 wrong use, 77 no FPR here.\n";

enum { TEST = 256, LIST, THREADS, PROCESSES, PAGES, MODE, ROUNDS, SECONDS, DIR,
       SPOIL, JSON, HELP };

static const struct option long_options[] = {
	{ "test", required_argument, NULL, TEST },
	{ "list", no_argument, NULL, LIST },
	{ "threads", required_argument, NULL, THREADS },
	{ "processes", required_argument, NULL, PROCESSES },
	{ "pages", required_argument, NULL, PAGES },
	{ "mode", required_argument, NULL, MODE },
	{ "rounds", required_argument, NULL, ROUNDS },
	{ "seconds", required_argument, NULL, SECONDS },
	{ "dir", required_argument, NULL, DIR },
	{ "spoil", no_argument, NULL, SPOIL },
	{ "json", no_argument, NULL, JSON },
	{ "help", no_argument, NULL, HELP },
	{ NULL, 0, NULL, 0 },
};

static const struct test *parse_test(const char *name)
{
	for (unsigned int i = 0; i < test_count; i++) {
		if (!strcmp(name, all_tests[i]->name))
			return all_tests[i];
	}
	die(EXIT_USAGE, "unknown test '%s'; scale-bench --list prints all", name);
}

static void list_tests(void)
{
	for (unsigned int i = 0; i < test_count; i++)
		printf("%-12s %s\n", all_tests[i]->name, all_tests[i]->what);
	exit(EXIT_OK);
}

static unsigned int number(const char *option, unsigned long low,
			   unsigned long high)
{
	return (unsigned int)parse_number(option, optarg, low, high);
}

static void set_tasks(struct options *o, const char *option, bool processes)
{
	if (o->tasks)
		die(EXIT_USAGE, "give --threads or --processes, once");
	o->tasks = number(option, 1, MAX_TASKS);
	o->processes = processes;
}

static void apply(struct options *o, int option)
{
	switch (option) {
	case TEST:
		o->test = parse_test(optarg);
		break;
	case LIST:
		list_tests();
		break;
	case THREADS:
		set_tasks(o, "--threads", false);
		break;
	case PROCESSES:
		set_tasks(o, "--processes", true);
		break;
	case PAGES:
		/* tlb_flush* have as many in use at a time. */
		o->pages = number("--pages", FLUSH_PAGES, 1 << 20);
		break;
	case MODE:
		parse_fpr_modes(&o->modes, optarg);
		break;
	case ROUNDS:
		o->rounds = number("--rounds", 1, 100000);
		break;
	case SECONDS:
		o->seconds = parse_seconds("--seconds", optarg);
		break;
	case DIR:
		o->folder = optarg;
		break;
	case SPOIL:
		o->spoil = true;
		break;
	case JSON:
		o->json = true;
		break;
	case HELP:
		fputs(help, stdout);
		exit(EXIT_OK);
	}
}

void options_parse(struct options *o, int argc, char **argv)
{
	int option;

	*o = (struct options){
		.pages = 4096,
		.rounds = 3,
		.seconds = 2,
		.folder = getenv("TMPDIR"),
	};
	parse_fpr_modes(&o->modes, "off,on");
	opterr = 0;
	while ((option = getopt_long(argc, argv, "", long_options, NULL)) != -1) {
		if (option == '?')
			die(EXIT_USAGE, "cannot use '%s'; scale-bench --help lists the options",
			    argv[optind - 1]);
		apply(o, option);
	}
	if (optind < argc)
		die(EXIT_USAGE, "'%s' is not an option; the test is given with --test",
		    argv[optind]);
	if (!o->test)
		die(EXIT_USAGE, "--test is missing; scale-bench --list prints all tests");
	if (!o->tasks)
		o->tasks = (unsigned int)sysconf(_SC_NPROCESSORS_ONLN);
	if (!o->folder || !*o->folder)
		o->folder = "/tmp";
}
