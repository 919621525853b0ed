// SPDX-License-Identifier: GPL-2.0-only
/*
 * harness.c - run programs under the preload library and report (TAP)
 *
 * What: makes files, runs a case of a subject under the tracer with settings,
 *       and compares the mmap() calls that reach the kernel with what they
 *       must be. Needs no kernel with FPR: see tracer.c.
 * Who:  test-preload.c, test-output.c, test-sandbox.c.
 */
#include "harness.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

const char *subject;
char preload[4200];
char folder[300];
struct trace trace;
char *files[5];
static int tests, failures;

void report(bool ok, const char *name)
{
	tests++;
	failures += !ok;
	printf("%sok %d - %s\n", ok ? "" : "not ", tests, name);
	if (!ok && trace.output[0])
		printf("# stderr: %s\n", trace.output);
}

void skip(const char *name, const char *why)
{
	tests++;
	printf("ok %d - %s # SKIP %s\n", tests, name, why);
}

char *make_file(const char *name)
{
	char path[1700];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (fd < 0 || pwrite(fd, "data", 4, 0) != 4 || ftruncate(fd, 1 << 17)) {
		perror(path);
		exit(1);
	}
	close(fd);
	return strdup(path);
}

static void remove_folder(void)
{
	char command[400];

	snprintf(command, sizeof(command), "rm -rf '%s'", folder);
	if (system(command))
		fprintf(stderr, "cannot remove %s\n", folder);
}

/*
 * Run one case of the subject. @settings: "NAME=value" strings up to NULL; a
 * "%" in a value stands for the folder of the files.
 */
void run(const char *program, const char *which, char *const *paths,
	 const char *const *settings)
{
	char *argv[8] = { (char *)program, (char *)which };
	/* The longest string that the kernel takes. */
	static char values[8][131072];
	char *env[10] = { preload };
	size_t n = 0;

	for (size_t i = 0; paths && paths[i] && i < 5; i++)
		argv[2 + i] = paths[i];
	for (; settings && settings[n] && n < 8; n++) {
		const char *percent = strchr(settings[n], '%');

		if (percent)
			snprintf(values[n], sizeof(values[n]), "%.*s%s%s",
				 (int)(percent - settings[n]), settings[n],
				 folder, percent + 1);
		else
			snprintf(values[n], sizeof(values[n]), "%s",
				 settings[n]);
		env[1 + n] = values[n];
	}
	trace.argv = argv;
	trace.env = env;
	trace_run(&trace);
}

/* Compare the calls with the lengths first, first + 1, ... */
bool calls_are(unsigned long first, const char *expected)
{
	char word[64], got[64];
	bool ok = trace.status == 0;
	int used;

	if (!ok)
		printf("# exit status %d\n", trace.status);
	for (; sscanf(expected, "%63s%n", word, &used) == 1; first++) {
		expected += used;
		trace_calls_of(&trace, first, got, sizeof(got));
		if (strcmp(word, "-") != 0 && strcmp(word, got) != 0) {
			printf("# mapping %lu: calls %s, expected %s\n", first,
			       *got ? got : "none", word);
			ok = false;
		}
	}
	return ok;
}

void check_output(const char *name, const char *wanted)
{
	bool ok = trace.status == 0;

	if (!wanted)
		ok = ok && !trace.output[0];
	else
		ok = ok && strstr(trace.output, wanted);
	report(ok, name);
}

/* Under a filter the library does nothing, and nothing here would mean anything. */
static void refuse_filter(void)
{
	if (prctl(PR_GET_SECCOMP, 0, 0, 0, 0) == 0)
		return;
	printf("Bail out! a seccomp filter is on: run the tests outside of it\n");
	exit(1);
}

void harness_start(const char *program, const char *library)
{
	const char *tmp = getenv("TMPDIR");
	/* Of a relative name the linker asks where it is: one call more. */
	char *whole = realpath(library, NULL);

	refuse_filter();
	subject = realpath(program, NULL);
	if (!subject || !whole) {
		perror(library);
		exit(1);
	}
	snprintf(preload, sizeof(preload), "LD_PRELOAD=%s", whole);
	free(whole);
	snprintf(folder, sizeof(folder), "%.256s/preload-XXXXXX",
		 tmp && *tmp && strlen(tmp) <= 256 ? tmp : "/tmp");
	if (!mkdtemp(folder)) {
		perror(folder);
		exit(1);
	}
	atexit(remove_folder);
	files[0] = make_file("data.a");
	files[1] = make_file("data.b");
	files[2] = make_file("other");
	files[3] = make_file("with:colon");
}

int harness_end(void)
{
	printf("1..%d\n", tests);
	return failures ? 1 : 0;
}
