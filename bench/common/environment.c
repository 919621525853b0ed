// SPDX-License-Identifier: GPL-2.0-only
/*
 * environment.c - what a result was measured on, as the first JSON line
 *
 * Who: all programs that print JSON. `ceasefire bench` adds what only the
 *      host of a guest knows (accelerator, commit).
 */
#include "environment.h"
#include "json.h"
#include "util.h"

#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

/* The rest of the first line of @path that begins with @prefix. */
static void add_line_of(struct json *json, const char *name, const char *path,
			const char *prefix)
{
	FILE *source = fopen(path, "re");
	char line[4096] = "";
	const char *found = "";

	while (source && fgets(line, sizeof(line), source)) {
		if (strncmp(line, prefix, strlen(prefix)) == 0) {
			line[strcspn(line, "\n")] = '\0';
			found = line + strlen(prefix);
			found += strspn(found, "\t :");
			break;
		}
	}
	json_string(json, name, found);
	if (source)
		fclose(source);
}

void print_environment_json(FILE *file)
{
	struct utsname names;
	struct json json;

	uname(&names);
	json_begin(&json, file, "environment");
	json_string(&json, "tool", program_name());
	json_string(&json, "kernel", names.release);
	json_string(&json, "kernel_build", names.version);
	add_line_of(&json, "cmdline", "/proc/cmdline", "");
	add_line_of(&json, "cpu", "/proc/cpuinfo", "model name");
	json_signed(&json, "cpus", sysconf(_SC_NPROCESSORS_ONLN));
	json_signed(&json, "page_size", sysconf(_SC_PAGESIZE));
	json_end(&json);
}
