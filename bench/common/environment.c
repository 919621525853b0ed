// SPDX-License-Identifier: GPL-2.0-only
/*
 * environment.c - what a result was measured on, as the first JSON line
 *
 * Who: munmap-bench and cycle-bench. `ceasefire bench` adds what only the
 *      host of a guest knows (accelerator, commit).
 */
#include "environment.h"
#include "util.h"

#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

void print_json_string(const char *text, FILE *file)
{
	fputc('"', file);
	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;

		if (c == '"' || c == '\\')
			fprintf(file, "\\%c", c);
		else if (c < 0x20)
			fprintf(file, "\\u%04x", c);
		else
			fputc(c, file);
	}
	fputc('"', file);
}

static void print_field(const char *name, const char *text, FILE *file)
{
	fprintf(file, ",\"%s\":", name);
	print_json_string(text, file);
}

/* The rest of the first line of @path that begins with @prefix. */
static void print_line_of(const char *path, const char *prefix,
			  const char *name, FILE *file)
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
	print_field(name, found, file);
	if (source)
		fclose(source);
}

void print_environment_json(const char *tool, FILE *file)
{
	struct utsname names;

	uname(&names);
	fprintf(file, "{\"schema\":%d,\"type\":\"environment\"", JSON_SCHEMA);
	print_field("tool", tool, file);
	print_field("kernel", names.release, file);
	print_field("kernel_build", names.version, file);
	print_line_of("/proc/cmdline", "", "cmdline", file);
	print_line_of("/proc/cpuinfo", "model name", "cpu", file);
	fprintf(file, ",\"cpus\":%ld,\"page_size\":%ld}\n",
		sysconf(_SC_NPROCESSORS_ONLN), sysconf(_SC_PAGESIZE));
	fflush(file);
}
