// SPDX-License-Identifier: GPL-2.0-only
/*
 * test-preload.c - what libceasefire-preload.so does to a program (TAP)
 *
 * What: runs `subject` under the library with many settings and compares the
 *       mmap() calls that reach the kernel with what they must be. Needs no
 *       kernel with FPR: see tracer.c.
 * Use:  test-preload SUBJECT SETUID-SUBJECT OWN-MMAP LIBRARY
 *       The second one needs no library of its own.
 */
#include "harness.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NOT_SUPPORTED EOPNOTSUPP
#define EARLY_LENGTH 60001UL

static const char *setuid_subject;
static char long_file[1400];

/* A file whose path is longer than the library's first buffer. */
static void make_long_file(void)
{
	char name[240];
	int n = snprintf(long_file, sizeof(long_file), "%s", folder);

	memset(name, 'd', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	for (int i = 0; i < 3; i++) {
		n += snprintf(long_file + n, sizeof(long_file) - (size_t)n,
			      "/%s", name);
		if (mkdir(long_file, 0755) && errno != EEXIST)
			perror(long_file);
	}
	snprintf(long_file + n, sizeof(long_file) - (size_t)n, "/data.a");
	free(make_file(long_file + strlen(folder) + 1));
}

/* The case `files`: which of the four files get the flag. */
static void check_files(const char *name, const char *const *settings,
			const char *expected)
{
	run(subject, "files", files, settings);
	report(calls_are(FIRST_LENGTH, expected), name);
}

static void test_paths(void)
{
	check_files("unset: nothing", NULL, "p p p p");
	check_files("empty: nothing", SETTINGS("CEASEFIRE_PATHS="), "p p p p");
	check_files("* takes every file", SETTINGS("CEASEFIRE_PATHS=*"),
		    "f f f f");
	check_files("one pattern", SETTINGS("CEASEFIRE_PATHS=%/*.a"),
		    "f p p p");
	check_files("two patterns", SETTINGS("CEASEFIRE_PATHS=/no:%/data.?"),
		    "f f p p");
	check_files("a set", SETTINGS("CEASEFIRE_PATHS=%/data.[!b]"),
		    "f p p p");
	check_files("* matches a /", SETTINGS("CEASEFIRE_PATHS=/*.b"),
		    "p f p p");
	check_files("an escaped colon",
		    SETTINGS("CEASEFIRE_PATHS=%/with\\:colon"), "p p p f");
	check_files("empty patterns are ignored",
		    SETTINGS("CEASEFIRE_PATHS=::%/other:"), "p p f p");
	check_files("* behind another pattern",
		    SETTINGS("CEASEFIRE_PATHS=/no:*"), "f f f f");
	check_files("exclude", SETTINGS("CEASEFIRE_PATHS=*",
					"CEASEFIRE_EXCLUDE=%/data.b:/no"),
		    "f p f f");
	check_files("exclude alone does nothing",
		    SETTINGS("CEASEFIRE_EXCLUDE=/no"), "p p p p");
	check_files("disable", SETTINGS("CEASEFIRE_PATHS=*",
					"CEASEFIRE_DISABLE=1"), "p p p p");
	check_files("disable=0", SETTINGS("CEASEFIRE_PATHS=*",
					  "CEASEFIRE_DISABLE=0"), "f f f f");
	check_files("executable by name",
		    SETTINGS("CEASEFIRE_PATHS=*", "CEASEFIRE_EXE=no:subj*"),
		    "f f f f");
	check_files("executable by path",
		    SETTINGS("CEASEFIRE_PATHS=*", "CEASEFIRE_EXE=/*/subject"),
		    "f f f f");
	check_files("another executable",
		    SETTINGS("CEASEFIRE_PATHS=*", "CEASEFIRE_EXE=/no/subject"),
		    "p p p p");
}

/* As long as a variable can be: many patterns, then the one that matches. */
static char *long_setting(const char *name, const char *last)
{
	const size_t size = 131072 - sizeof(folder);
	char *text = malloc(size);
	size_t n = (size_t)snprintf(text, size, "%s=", name);

	for (; n + 10 + strlen(last) < size; n += 4)
		memcpy(text + n, "/no:", 5);
	strcpy(text + n, last);
	return text;
}

static void test_odd_settings(void)
{
	check_files("as long as they can be",
		    SETTINGS(long_setting("CEASEFIRE_PATHS", "%/*.[ab]"),
			     long_setting("CEASEFIRE_EXCLUDE", "%/*.b"),
			     long_setting("CEASEFIRE_EXE", "subject")),
		    "f p p p");
	check_files("nothing but colons",
		    SETTINGS("CEASEFIRE_PATHS=:::", "CEASEFIRE_EXE=:"),
		    "p p p p");
	check_files("unfinished patterns",
		    SETTINGS("CEASEFIRE_PATHS=[:%/*.a:/[!:\\",
			     "CEASEFIRE_EXCLUDE=[!]:\\"), "f p p p");
	check_files("a number that is none",
		    SETTINGS("CEASEFIRE_PATHS=%/*.a", "CEASEFIRE_VERBOSE=99999999999999999999",
			     "CEASEFIRE_STATS=-1", "CEASEFIRE_DISABLE=11"),
		    "f p p p");
	check_files("the first of two", SETTINGS("CEASEFIRE_PATHS=%/*.a",
						 "CEASEFIRE_PATHS=*"),
		    "f p p p");
}

static void test_odd_files(void)
{
	char *paths[] = { long_file, NULL };
	char *gone[] = { make_file("gone.a"), NULL };

	run(subject, "files", paths, SETTINGS("CEASEFIRE_PATHS=%/*.a"));
	report(calls_are(FIRST_LENGTH, "f"), "a long path");
	run(subject, "files", paths, SETTINGS("CEASEFIRE_PATHS=%/*.b"));
	report(calls_are(FIRST_LENGTH, "p"), "another long path");

	run(subject, "deleted", gone, SETTINGS("CEASEFIRE_PATHS=%/gone.a"));
	report(calls_are(FIRST_LENGTH, "f"), "a removed file");
	make_file("gone.a");
	run(subject, "deleted", gone, SETTINGS("CEASEFIRE_PATHS=/*",
					       "CEASEFIRE_EXCLUDE=%/gone.a"));
	report(calls_are(FIRST_LENGTH, "p"), "a removed file, excluded");
	gone[0] = make_file("gone (deleted)");
	run(subject, "files", gone, SETTINGS("CEASEFIRE_PATHS=%/gone*)"));
	report(calls_are(FIRST_LENGTH, "f"), "a name that ends in (deleted)");

	run(subject, "memfd", NULL, SETTINGS("CEASEFIRE_PATHS=/*"));
	report(calls_are(FIRST_LENGTH, "p"), "a memfd is no path");
	run(subject, "early", NULL, SETTINGS("CEASEFIRE_PATHS=/*/subject"));
	report(calls_are(EARLY_LENGTH, "f"), "before the constructor ran");
	run(subject, "environment", files, SETTINGS("CEASEFIRE_PATHS=/*"));
	report(calls_are(FIRST_LENGTH, "f f"), "environment changed later");
}

static void test_flags(void)
{
	/* See case_flags: only the first four and mmap64 may get the flag. */
	trace.refuse = 0;
	run(subject, "flags", files, SETTINGS("CEASEFIRE_PATHS=*"));
	/* The third is refused by a kernel without FPR. */
	report(calls_are(FIRST_LENGTH, "f f - f f p p p p") &&
	       calls_are(FIRST_LENGTH + 20, "p p p f"), "flags");
	trace.refuse = NOT_SUPPORTED;
	run(subject, "flags", files, SETTINGS("CEASEFIRE_PATHS=*"));
	report(strstr(trace.output, "not supported") &&
	       trace.status == 1, "the tracer can refuse the flag");
	run(subject, "files", files, SETTINGS("CEASEFIRE_PATHS=/*"));
	report(calls_are(FIRST_LENGTH, "Fp Fp Fp Fp"),
	       "EOPNOTSUPP: again without the flag");
	trace.refuse = EPERM;
	run(subject, "files", files, SETTINGS("CEASEFIRE_PATHS=/*"));
	report(calls_are(FIRST_LENGTH, "Fp Fp Fp Fp"),
	       "another error: again without the flag");
	trace.refuse = 0;

	run(subject, "errors", files, NULL);
	report(calls_are(FIRST_LENGTH, "P P P P P P P"), "errors, unset");
	run(subject, "errors", files, SETTINGS("CEASEFIRE_PATHS=*"));
	report(calls_are(FIRST_LENGTH, "P FP FP FP P FP FP"), "errors, *");
	run(subject, "errors", files, SETTINGS("CEASEFIRE_PATHS=%/*"));
	report(calls_are(FIRST_LENGTH, "P P FP FP P FP FP"),
	       "errors, a pattern");
}

static void test_kernels(void)
{
	trace.answer = KERNEL_WITHOUT_FPR;
	check_files("a kernel without FPR", SETTINGS("CEASEFIRE_PATHS=*"),
		    "p p p p");
	trace.answer = KERNEL_WITHOUT_SYSFS;
	check_files("no sysfs: the hint is given", SETTINGS("CEASEFIRE_PATHS=*"),
		    "f f f f");
	trace.answer = KERNEL_WITH_FPR;
}

static void test_output(void)
{
	run(subject, "files", files, SETTINGS("CEASEFIRE_PATHS=*"));
	check_output("silent by default", NULL);
	run(subject, "files", files, SETTINGS("CEASEFIRE_PATHS=*",
					      "CEASEFIRE_BUILD=/b",
					      "CEASEFIRE_TEST_DIR=/t"));
	check_output("settings of the tools are known", NULL);
	run(subject, "files", files, SETTINGS("CEASEFIRE_PATHS=*",
					      "CEASEFIRE_PATH=x"));
	check_output("an unknown setting",
		     "unknown setting, see libceasefire-preload(7): CEASEFIRE_PATH\n");
	run(subject, "files", files, SETTINGS("CEASEFIRE_PATHS=*", "CEASEFIRE_X=1",
					      "CEASEFIRE_VERBOSE=0"));
	check_output("an unknown setting, VERBOSE=0", NULL);
	run(subject, "files", files, SETTINGS("CEASEFIRE_X=1"));
	check_output("an unknown setting, PATHS unset", NULL);
	run(subject, "files", files, SETTINGS("CEASEFIRE_PATHS=data/*"));
	check_output("a pattern that cannot match", "matches no file");
	run(subject, "files", files, SETTINGS("CEASEFIRE_PATHS=*",
					      "CEASEFIRE_VERBOSE=high"));
	check_output("a bad level", "CEASEFIRE_VERBOSE is 0, 1, 2 or 3, not high\n");
	run(subject, "files", files, SETTINGS("CEASEFIRE_PATHS=*",
					      "CEASEFIRE_STATS=yes"));
	check_output("a bad switch", "CEASEFIRE_STATS is 0 or 1, not yes\n");
	run(subject, "files", files, SETTINGS("CEASEFIRE_PATHS=*",
					      "CEASEFIRE_VERBOSE=2"));
	check_output("level 2", "MAP_FPR for files that match *\n");
	run(subject, "files", files, SETTINGS("CEASEFIRE_PATHS=%/*.a",
					      "CEASEFIRE_VERBOSE=3"));
	check_output("level 3", "MAP_FPR: 70001 bytes of /");
	run(subject, "files", files, SETTINGS("CEASEFIRE_PATHS=%/*.a",
					      "CEASEFIRE_STATS=1"));
	check_output("statistics", "1 mappings with MAP_FPR, without it: "
		     "4 other path, 0 not suitable, 0 failed\n");
	run(subject, "fork", files, SETTINGS("CEASEFIRE_PATHS=%/*",
					     "CEASEFIRE_STATS=1"));
	check_output("statistics of a child", "]: 1 mappings");
	check_output("statistics of its parent", "]: 2 mappings");
	run(subject, "reused-stderr", files, SETTINGS("CEASEFIRE_PATHS=*",
						      "CEASEFIRE_STATS=1",
						      "CEASEFIRE_VERBOSE=3"));
	{
		char head[5] = "";
		struct stat st;
		int fd = open(files[0], O_RDONLY | O_CLOEXEC);

		report(trace.status == 0 && read(fd, head, 4) == 4 &&
		       strcmp(head, "data") == 0 && fstat(fd, &st) == 0 &&
		       st.st_size == 1 << 17,
		       "nothing written to a file that took descriptor 2");
		close(fd);
	}
}

static unsigned long steps_of(const char *const *settings)
{
	run(subject, "instructions", files, settings);
	return trace.status ? 0 : trace.steps;
}

/* @most: more than the C library's own call takes. */
static void check_steps(const char *name, unsigned long steps,
			unsigned long plain, unsigned long most)
{
	printf("# %lu user instructions more than without the library\n",
	       steps - plain);
	report(steps && plain && steps <= plain + most, name);
}

static void test_costs(void)
{
	const char *library = strdup(preload);
	unsigned long plain;
	size_t stack = 0;
	char *mark;

	strcpy(preload, "LD_PRELOAD=");
	plain = steps_of(NULL);
	strcpy(preload, library);
	check_steps("few instructions when unset", steps_of(NULL), plain, 50);
	check_steps("few instructions with *",
		    steps_of(SETTINGS("CEASEFIRE_PATHS=*")), plain, 60);
	check_steps("some instructions with a pattern",
		    steps_of(SETTINGS("CEASEFIRE_PATHS=%/*.a")), plain, 2000);

	run(subject, "stack", files, SETTINGS("CEASEFIRE_PATHS=%/*.a"));
	mark = strstr(trace.output, "stack ");
	if (mark)
		sscanf(mark, "stack %zu", &stack);
	printf("# stack of a call: %zu bytes\n", stack);
	report(stack && stack <= 1500, "at most 1500 bytes of stack");
}

static void test_threads(void)
{
	trace.only_start = true;
	run(subject, "fork-in-threads", files, SETTINGS("CEASEFIRE_PATHS=/*",
							"CEASEFIRE_STATS=1"));
	report(trace.status == 0, "fork while every thread maps");
	trace.only_start = false;
}

/* What a program calls mmap itself is its own affair. */
static void test_own(const char *program)
{
	run(program, "own", files, SETTINGS("CEASEFIRE_PATHS=*"));
	report(calls_are(FIRST_LENGTH, "p"), "a program with its own mmap");
}

/* The dynamic linker keeps the library out of a setuid program. */
static void test_setuid(void)
{
	const char *name = "setuid program";
	char copy[sizeof(folder) + 16], command[8192];

	if (geteuid()) {
		skip(name, "only root can make one");
		return;
	}
	snprintf(copy, sizeof(copy), "%s/setuid", folder);
	snprintf(command, sizeof(command),
		 "cp '%s' '%s' && chown 65534 '%s' && chmod 4755 '%s'",
		 setuid_subject, copy, copy, copy);
	if (system(command)) {
		report(false, name);
		return;
	}
	/* A tracer takes the rights away: this one runs without. */
	snprintf(command, sizeof(command),
		 "LD_PRELOAD='%s' CEASEFIRE_PATHS='*' CEASEFIRE_VERBOSE=3 '%s' secure 2>'%s'/out",
		 preload + strlen("LD_PRELOAD="), copy, folder);
	trace.status = system(command);
	snprintf(command, sizeof(command), "%s/out", folder);
	{
		int fd = open(command, O_RDONLY | O_CLOEXEC);
		ssize_t n = read(fd, trace.output, sizeof(trace.output) - 1);

		trace.output[n > 0 ? n : 0] = '\0';
		close(fd);
	}
	if (strstr(trace.output, "secure 0"))
		skip(name, "the file system ignores setuid");
	else
		report(trace.status == 0 && strstr(trace.output, "secure 1") &&
		       !strstr(trace.output, "ceasefire["), name);
}

int main(int argc, char **argv)
{
	if (argc != 5) {
		fprintf(stderr,
			"usage: test-preload SUBJECT SETUID-SUBJECT OWN-MMAP LIBRARY\n");
		return 2;
	}
	setuid_subject = argv[2];
	harness_start(argv[1], argv[4]);
	make_long_file();

	test_paths();
	test_odd_settings();
	test_odd_files();
	test_flags();
	test_kernels();
	test_output();
	test_costs();
	test_threads();
	test_own(argv[3]);
	test_setuid();
	return harness_end();
}
