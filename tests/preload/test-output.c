// SPDX-License-Identifier: GPL-2.0-only
/*
 * test-output.c - messages of the preload library in awkward surroundings (TAP)
 *
 * What: a message kills no program, stops none, lands in no file of the
 *       program, and carries no control characters.
 * Use:  test-output AWKWARD LIBRARY
 */
#include "harness.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* As many messages as there can be. */
#define LOUD SETTINGS("CEASEFIRE_PATHS=*", "CEASEFIRE_VERBOSE=3", \
		      "CEASEFIRE_STATS=1", "CEASEFIRE_ODD=1")

static bool untouched(const char *path)
{
	char head[5] = "";
	struct stat st;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	bool same = fd >= 0 && read(fd, head, 4) == 4 &&
		    strcmp(head, "data") == 0 && fstat(fd, &st) == 0 &&
		    st.st_size == 1 << 17;

	close(fd);
	return same;
}

static void check(const char *which, const char *name)
{
	char log[400];
	char *paths[] = { files[0], log, NULL };

	snprintf(log, sizeof(log), "%s/log", folder);
	run(subject, which, paths, LOUD);
	if (trace.status == 4) {
		skip(name, "the file system does not use numbers again");
		return;
	}
	if (trace.status)
		printf("# exit status %d\n", trace.status);
	report(trace.status == 0 && untouched(files[0]), name);
}

static void test_signals(void)
{
	check("plain", "messages where nothing is odd");
	check_output("and they arrive", "MAP_FPR: 70001 bytes of ");
	check("file-size", "a limit of the size of files");
	check("file-size-waiting", "a signal of the program is left to it");
	check("pipe", "nobody reads standard error");
	check("terminal", "a terminal that stops who writes in the background");
}

static void test_descriptor(void)
{
	check("closed", "standard error was closed, a file took its number");
	check("closed-early", "a library's file took its number");
	check("log", "another file has the number of the removed log");
}

static bool no_control_characters(void)
{
	for (const char *p = trace.output; *p; p++) {
		if ((*p < ' ' && *p != '\n') || *p > '~')
			return false;
	}
	return true;
}

static void check_escaped(const char *name, const char *wanted)
{
	report(trace.status == 0 && strstr(trace.output, wanted) &&
	       !strstr(trace.output, "\nforged") && no_control_characters(),
	       name);
}

static void test_names(void)
{
	char *paths[] = { make_file("a\033[2Jb\nforged\\\177\302\233\377"), NULL };
	char value[3000] = "CEASEFIRE_PATHS=/*:";

	run(subject, "plain", paths, LOUD);
	check_escaped("the name of a file",
		      "/a\\x1b[2Jb\\x0aforged\\x5c\\x7f\\xc2\\x9b\\xff\n");
	run(subject, "plain", files, SETTINGS("CEASEFIRE_PATHS=/*:\033c\nforged",
					      "CEASEFIRE_VERBOSE=2"));
	check_escaped("a pattern", "=\\x1bc\\x0aforged\n");
	check_escaped("all patterns", "match /*:\\x1bc\\x0aforged\n");
	run(subject, "plain", files, SETTINGS("CEASEFIRE_PATHS=*",
					      "CEASEFIRE_VERBOSE=\nforged",
					      "CEASEFIRE_STATS=\033c",
					      "CEASEFIRE_DISABLE=\007"));
	check_escaped("a value", "not \\x0aforged\n");
	check_escaped("a switch", "not \\x1bc\n");
	check_escaped("another switch", "not \\x07\n");
	run(subject, "plain", files, SETTINGS("CEASEFIRE_PATHS=*",
					      "CEASEFIRE_\033c\nforged=1"));
	check_escaped("an unknown setting", "CEASEFIRE_\\x1bc\\x0aforged\n");

	for (size_t i = strlen(value); i < sizeof(value) - 1; i++)
		value[i] = '\033';
	run(subject, "plain", files, SETTINGS(value, "CEASEFIRE_VERBOSE=3"));
	check_escaped("what is too long ends with a whole character",
		      "\\x1b...\n");
}

static void test_unload(const char *library)
{
	char *paths[] = { files[0], strdup(library), NULL };

	strcpy(preload, "LD_PRELOAD=");
	run(subject, "unload", paths, LOUD);
	report(trace.status == 0, "unloaded while in use");
}

int main(int argc, char **argv)
{
	if (argc != 3) {
		fprintf(stderr, "usage: test-output AWKWARD LIBRARY\n");
		return 2;
	}
	harness_start(argv[1], argv[2]);
	test_signals();
	test_descriptor();
	test_names();
	test_unload(argv[2]);
	return harness_end();
}
