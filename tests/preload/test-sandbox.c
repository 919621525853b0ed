// SPDX-License-Identifier: GPL-2.0-only
/*
 * test-sandbox.c - the preload library in programs with seccomp filters (TAP)
 *
 * What: each case of `sandboxed` maps with the flag while there is no filter
 *       (so the library is at work) and stays alive behind a filter that kills
 *       for the flag, or for any call that the library makes for itself.
 * Use:  test-sandbox SANDBOXED LIBRARY
 */
#include "harness.h"
#include "held.h"

#include <stdio.h>
#include <string.h>

/* Mapping 70001 is made without a filter, 70002 behind it. */
static void check(const char *which, const char *expected, const char *name)
{
	char *paths[] = { files[0], NULL };

	run(subject, which, paths, SETTINGS("CEASEFIRE_PATHS=*"));
	report(calls_are(FIRST_LENGTH, expected), name);
}

/* The settings in which the library has most to do and to say. */
static void check_busy(const char *which, const char *name)
{
	char *paths[] = { files[0], NULL };

	run(subject, which, paths,
	    SETTINGS("CEASEFIRE_PATHS=%/*.a", "CEASEFIRE_VERBOSE=3",
		     "CEASEFIRE_STATS=1", "CEASEFIRE_EXE=sandboxed"));
	report(calls_are(FIRST_LENGTH, "f p"), name);
}

static void test_filters(void)
{
	check("prctl", "f p", "a filter by prctl()");
	check("seccomp", "f p", "a filter by syscall(SYS_seccomp)");
	check("prctl-by-syscall", "f p", "a filter by syscall(SYS_prctl)");
	check("odd-numbers", "f p", "numbers with an upper half");
	check("announced", "f p", "a filter behind the library's back");
	check("inherited", "f p", "a filter that was there at the start");
	check("questions", "f f", "who only asks for a filter has none");
	check("calls", "f", "prctl() and syscall() do what they did");
}

static void test_own_calls(void)
{
	check_busy("tight", "no call of its own behind a filter");
	check_busy("inherited-tight", "no call of its own in a program that inherits");
	check_busy("prctl", "messages before a filter");
	check_output("what was counted is said before",
		     "]: 1 mappings with MAP_FPR");
	check_output("and why there is no more", "the program enters a sandbox");
	/* Where nothing but shared memory is treated there is as much to wait for. */
	run(subject, "prctl", (char *[]){ files[0], NULL },
	    SETTINGS("CEASEFIRE_SHARED_TABLES=4096", "CEASEFIRE_VERBOSE=2"));
	check_output("shared memory alone, before a filter", "the program enters a sandbox");
}

static void test_processes(void)
{
	check("fork-behind", "f p", "children of a program with a filter");
	check("fork-before", "f", "a child with a filter leaves its parent alone");
	check("threads", "f p", "a filter for all threads");
	check("one-thread", "f -", "a filter for one thread");
}

static void test_held(void)
{
	char *argv[] = { strdup(subject), strdup("held"), files[0], NULL };
	char *env[] = { preload, strdup("CEASEFIRE_PATHS=*"), NULL };
	struct held held = held_run(argv, env);

	printf("# status %d, held %d, calls of who waited %d\n", held.status,
	       held.was_held, held.waited);
	trace.output[0] = '\0';
	report(held.was_held && held.status == 0,
	       "a filter for all while another thread is at the door");
}

int main(int argc, char **argv)
{
	if (argc != 3) {
		fprintf(stderr, "usage: test-sandbox SANDBOXED LIBRARY\n");
		return 2;
	}
	harness_start(argv[1], argv[2]);
	test_filters();
	test_own_calls();
	test_processes();
	test_held();
	return harness_end();
}
