// SPDX-License-Identifier: GPL-2.0-only
/*
 * options.c - the command line of munmap-bench
 *
 * What: fills struct options or ends with one line that says what to do.
 * Who:  main.c.
 */
#include "options.h"

#include "../common/options.h"
#include "../common/util.h"

#include <string.h>
#include <unistd.h>

const char *const access_names[ACCESSES] = {
	[ACCESS_READ] = "read",
	[ACCESS_PRIVATE_WRITE] = "private-write",
	[ACCESS_SHARED_WRITE] = "shared-write",
	[ACCESS_ANONYMOUS] = "anonymous",
};

static struct run_mode find_run_mode(const char *word)
{
	static const struct run_mode ideals[] = {
		{ "ideal-compute", LAYOUT_IDEAL_COMPUTE, NULL },
		{ "ideal-io", LAYOUT_IDEAL_IO, NULL },
	};
	struct run_mode found = { word, LAYOUT_TOGETHER, find_mode(word) };

	for (size_t i = 0; i < sizeof(ideals) / sizeof(*ideals); i++) {
		if (!strcmp(word, ideals[i].name)) {
			found = ideals[i];
			found.mode = find_mode("off");
			return found;
		}
	}
	/* Other names may mean the same. */
	if (found.mode)
		found.name = found.mode->name;
	return found;
}

static void read_run_modes(void *to, char *text)
{
	struct options *options = to;
	char *save = NULL;

	options->mode_count = 0;
	for (char *word = strtok_r(text, ",", &save); word;
	     word = strtok_r(NULL, ",", &save)) {
		struct run_mode found = find_run_mode(word);

		if (!found.mode)
			die(EXIT_USAGE, "unknown mode '%s': use %s, ideal-compute or ideal-io",
			    word, mode_names());
		for (unsigned int i = 0; i < options->mode_count; i++) {
			if (!strcmp(options->modes[i].name, found.name))
				die(EXIT_USAGE, "mode %s is given twice", found.name);
		}
		if (options->mode_count == MAX_MODES)
			die(EXIT_USAGE, "at most %d modes", MAX_MODES);
		options->modes[options->mode_count++] = found;
	}
	if (!options->mode_count)
		die(EXIT_USAGE, "--mode wants at least one mode");
}

static void check(const struct options *options)
{
	bool two_kinds = options->number >= 2 && options->number <= 4;

	if ((two_kinds || options->number == CASE_PEERS) && options->threads < 2)
		die(EXIT_USAGE, "case %u needs --threads 2 or more",
		    options->number);
	if (options->number == CASE_PEERS && options->processes > 1)
		die(EXIT_USAGE, "case 6 is of one process");
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
		if (options->modes[i].layout == LAYOUT_IDEAL_COMPUTE && !two_kinds)
			die(EXIT_USAGE, "case %u has no compute threads for ideal-compute",
			    options->number);
		if (options->modes[i].layout == LAYOUT_IDEAL_IO &&
		    options->number == CASE_PEERS)
			die(EXIT_USAGE, "the threads of case 6 share mappings: no ideal-io");
	}
}

static void read_access(void *to, char *text)
{
	for (enum access access = 0; access < ACCESSES; access++) {
		if (!strcmp(text, access_names[access])) {
			*(enum access *)to = access;
			return;
		}
	}
	die(EXIT_USAGE, "unknown access '%s': use read, private-write, shared-write or anonymous",
	    text);
}

static void add_path(void *to, char *text)
{
	struct options *options = to;

	if (options->path_count == MAX_FILES)
		die(EXIT_USAGE, "at most %d times --file", MAX_FILES);
	options->paths[options->path_count++] = text;
}

void options_parse(struct options *o, int argc, char **argv)
{
	static char default_modes[] = "off,fpr";
	static const struct program program = {
		"munmap-bench [options]",
		"Threads map pages of a file, read them and unmap them, while others compute.",
		"ideal-compute: as off, but the I/O threads are in another process.\n"
		"ideal-io: as off, but each I/O thread is alone in a process.\n"
	};
	const struct program_option list[] = {
		NUMBER("case", "N", &o->number, 1, CASE_PEERS,
		       "1 I/O threads only (default)\n"
		       "2 one I/O thread, the others compute\n"
		       "3 one thread computes, the others do I/O\n"
		       "4 as many I/O as compute threads\n"
		       "5 every thread does both in turn\n"
		       "6 one thread unmaps what all others have read, and\n"
		       "measures the calls of munmap"),
		NUMBER("threads", "N", &o->threads, 1, MAX_THREADS,
		       "threads of a process in all (one for each CPU)"),
		NUMBER("processes", "N", &o->processes, 1, MAX_THREADS,
		       "processes that do the same on the same files (1)"),
		CALL("access", "HOW", &o->access, read_access,
		     "read: a shared mapping (default); private-write: a private\n"
		     "one, which is written to; shared-write: a shared one, which\n"
		     "is written to; anonymous: memory, written to"),
		NUMBER("pages", "N", &o->pages, 1, 4096, "pages of a mapping (1)"),
		NUMBER("offsets", "N", &o->offsets, 1, 1 << 20,
		       "distinct places in each file (256)"),
		NUMBER("units", "N", &o->units, 1, 1 << 20,
		       "compute units after each I/O of a mixed thread (4)"),
		NUMBER("buffer", "N", &o->buffer, 0, 65536,
		       "pages of its own that a thread reads while it computes,\n"
		       "one for 64 instructions (0)"),
		CALL("mode", "LIST", o, read_run_modes,
		     "off,fpr,ideal-compute,ideal-io: each once a round (off,fpr)"),
		NUMBER("rounds", "N", &o->rounds, 1, 100000,
		       "rounds, the order of the modes rotates (5)"),
		DURATION("seconds", &o->seconds, "length of a sample (2)"),
		FLAG("pin", &o->pin, "keep each thread on one CPU"),
		TEXT("dir", "DIR", &o->folder,
		     "make the files here; they are gone at the end ($TMPDIR, /tmp)"),
		NUMBER("files", "N", &o->files, 1, MAX_FILES, "how many (1)"),
		CALL("file", "PATH", o, add_path,
		     "use this file or block device instead (repeatable)"),
		FLAG("fill", &o->fill,
		     "write the test pattern to it first: destroys its contents"),
		FLAG("json", &o->json, "JSON lines instead of text"),
		{ 0 }
	};

	*o = (struct options){
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
	read_run_modes(o, default_modes);
	parse_options(&program, list, argc, argv);
	check(o);
}
