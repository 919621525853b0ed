// SPDX-License-Identifier: GPL-2.0-only
/*
 * options.c - the command line of scale-bench
 *
 * What: fills struct options or ends with one line that says what to do.
 * Who:  main.c.
 */
#include "options.h"
#include "tests.h"

#include "../common/options.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void read_test(void *to, char *name)
{
	for (unsigned int i = 0; i < test_count; i++) {
		if (!strcmp(name, all_tests[i]->name)) {
			*(const struct test **)to = all_tests[i];
			return;
		}
	}
	die(EXIT_USAGE, "unknown test '%s'; scale-bench --list prints all", name);
}

static void read_place(void *to, char *name)
{
	if (strcmp(name, "near") && strcmp(name, "apart"))
		die(EXIT_USAGE, "--place is near or apart, not '%s'", name);
	*(bool *)to = !strcmp(name, "apart");
}

static void list_tests(void *to, char *text)
{
	(void)to;
	(void)text;
	for (unsigned int i = 0; i < test_count; i++)
		printf("%-15s %s\n", all_tests[i]->name, all_tests[i]->what);
	exit(EXIT_OK);
}

void options_parse(struct options *o, int argc, char **argv)
{
	static const struct program program = {
		"scale-bench --test NAME [options]",
		"Tasks repeat one operation of the kernel; how often is counted.", NULL
	};
	unsigned int threads = 0, processes = 0;
	const struct program_option list[] = {
		CALL("test", "NAME", &o->test, read_test, "see --list"),
		CALL("list", NULL, NULL, list_tests, "print the tests"),
		NUMBER("threads", "N", &threads, 1, MAX_TASKS,
		       "tasks, threads of one process (one for each CPU)"),
		NUMBER("processes", "N", &processes, 1, MAX_TASKS,
		       "tasks, each a process"),
		/* tlb_flush* have as many in use at a time. */
		NUMBER("pages", "N", &o->pages, FLUSH_PAGES, 1 << 20,
		       "of a mapping, and of the file of each task (4096)"),
		CALL("place", "PLACE", &o->apart, read_place,
		     "own_*: near: where mmap() puts them, or apart: in areas of 4 MiB\n"
		     "(near)"),
		FLAG("bystander", &o->bystander,
		     "the last thread takes no part: it computes, and how long each piece\n"
		     "takes is printed"),
		MODES(&o->modes),
		NUMBER("rounds", "N", &o->rounds, 1, 100000, "of all modes (3)"),
		DURATION("seconds", &o->seconds, "length of a sample (2)"),
		TEXT("dir", "DIR", &o->folder,
		     "make the files here; they are gone at the end ($TMPDIR, /tmp)"),
		FLAG("spoil", &o->spoil,
		     "leave wrong data behind, which must be noticed: a test of\n"
		     "the test"),
		FLAG("json", &o->json, "JSON lines instead of text"),
		{ 0 }
	};

	*o = (struct options){
		.pages = 4096,
		.rounds = 3,
		.seconds = 2,
		.folder = getenv("TMPDIR"),
	};
	parse_modes(&o->modes, "off,fpr");
	parse_options(&program, list, argc, argv);
	if (!o->test)
		die(EXIT_USAGE, "--test is missing; scale-bench --list prints all tests");
	if (threads && processes)
		die(EXIT_USAGE, "give --threads or --processes, not both");
	o->processes = processes;
	o->tasks = threads + processes;
	if (!o->tasks)
		o->tasks = (unsigned int)sysconf(_SC_NPROCESSORS_ONLN);
	if (o->test->threads_only && processes)
		die(EXIT_USAGE, "%s is for threads: processes share no pages", o->test->name);
	if (o->bystander && (processes || o->tasks < 2))
		die(EXIT_USAGE, "--bystander is one of two or more threads");
	if (o->test->threads_only && o->tasks > FLUSH_BLOCKS)
		die(EXIT_USAGE, "%s is for %u threads at most", o->test->name, FLUSH_BLOCKS);
	if (!o->folder || !*o->folder)
		o->folder = "/tmp";
}
