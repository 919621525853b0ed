// SPDX-License-Identifier: GPL-2.0-only
/*
 * wordcount.c - wordcount-bench: how often does each word come in a file?
 *
 * What: a map-reduce. Each map task maps its split of the file, counts into a
 *       table of its own, hands the counts over in a block for each part of
 *       reduce, and unmaps the split and the table. Then each thread adds up one
 *       part and unmaps what it was handed: memory goes in another thread than
 *       the one that took it. An operation is a map task, and a round is the
 *       whole file. The result is compared with that of one thread, one table
 *       and read(2).
 * Who:  people, and `ceasefire bench run wordcount`.
 *
 * A word belongs to the split in which it begins. So a task maps a page more on
 * both sides: no word is as long as a page, since the text is made here.
 */
#include "table.h"
#include "team.h"

#include "../common/util.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE 4096UL
#define KIB 1024UL
#define LONGEST_WORD 12U

struct options {
	struct team_options team;
	unsigned long kib;	/* of text */
	unsigned long split_kib;
	unsigned int words;	/* different ones at most */
	const char *dir;
};

/* What a task hands to a part of reduce. */
struct block {
	struct block *next;
	size_t bytes;
	size_t count;
	struct entry entries[];
};

static struct options options;
static int fd;
static size_t size;
static unsigned int tasks;
static struct result expected;

/* Of a round. */
static atomic_uint next_task;
static struct block *_Atomic handed[MAX_MEMBERS];
static atomic_ullong checksum, words, different;

static void parse(int argc, char **argv)
{
	static const struct program program = {
		"wordcount-bench [options]",
		"Threads count the words of a file by map and reduce.", NULL
	};
	struct options *o = &options;
	const struct program_option list[] = {
		TEAM_OPTIONS(&o->team),
		NUMBER("kib", "KIB", &o->kib, 4, 1 << 22, "size of the file (2048)"),
		NUMBER("split", "KIB", &o->split_kib, 4, 1 << 20,
		       "of it for each map task, a multiple of 4 (64)"),
		NUMBER("words", "N", &o->words, 1, 1 << 20, "different words in it (4096)"),
		TEXT("dir", "DIR", &o->dir,
		     "make the file here; it is gone at the end ($TMPDIR, /tmp)"),
		{ 0 }
	};

	*o = (struct options){
		.kib = 2048,
		.split_kib = 64,
		.words = 4096,
		.dir = getenv("TMPDIR"),
	};
	team_defaults(&o->team);
	parse_options(&program, list, argc, argv);
	if (o->split_kib * KIB % PAGE)
		die(EXIT_USAGE, "--split wants a multiple of 4");
	if (!o->dir || !*o->dir)
		o->dir = "/tmp";
}

/* Word number @rank, with a blank or a line break behind it. */
static size_t write_word(char *to, unsigned int rank, bool line)
{
	uint64_t random = mix(rank + 1);
	size_t length = 2 + random % (LONGEST_WORD - 2);

	for (size_t i = 0; i < length; i++)
		to[i] = (char)('a' + (mix(random + i) >> 8) % 26);
	to[length] = line ? '\n' : ' ';
	return length + 1;
}

/* A few words come often, most of them rarely. */
static char *make_text(void)
{
	char *text = malloc(size + LONGEST_WORD + 1);
	uint64_t state = 1;

	if (!text)
		die(EXIT_FAILED, "no memory for %zu bytes of text", size);
	for (size_t at = 0; at < size;) {
		uint64_t u;

		state = mix(state + 0x9e3779b97f4a7c15ULL);
		u = state >> 44;
		u = (u * u >> 20) * u >> 20;
		at += write_word(text + at, (unsigned int)(u * options.words >> 20),
				 state % 12 == 0);
	}
	return text;
}

static void make_file(void)
{
	char *text;

	size = options.kib * KIB;
	tasks = (unsigned int)((options.kib + options.split_kib - 1) / options.split_kib);
	text = make_text();
	fd = make_scratch_file(options.dir);
	for (size_t at = 0; at < size;) {
		ssize_t n = pwrite(fd, text + at, size - at, (off_t)at);

		if (n <= 0)
			die_errno("cannot write to %s", options.dir);
		at += (size_t)n;
	}
	/* Clean pages: nothing to write back while it runs. */
	if (fsync(fd))
		die_errno("cannot sync a file in %s", options.dir);
	free(text);
}

/* By one thread, in one piece. */
static void count_alone(void)
{
	char *text = malloc(size);
	struct table table;

	if (!text)
		die(EXIT_FAILED, "no memory for %zu bytes of text", size);
	for (size_t at = 0; at < size;) {
		ssize_t n = pread(fd, text + at, size - at, (off_t)at);

		if (n <= 0)
			die_errno("cannot read the file again");
		at += (size_t)n;
	}
	table_make(&table);
	table_add_text(&table, text, 0, size, size);
	expected = table_result(&table);
	table_end(&table);
	free(text);
}

static void count_split(struct table *table, unsigned int task)
{
	size_t split = options.split_kib * KIB;
	size_t start = task * split;
	size_t end = start + split < size ? start + split : size;
	size_t from = start ? start - PAGE : 0;
	size_t length = (end + PAGE < size ? end + PAGE : size) - from;
	char *text = mmap(NULL, length, PROT_READ, MAP_SHARED, fd, (off_t)from);

	if (text == MAP_FAILED)
		die_errno("mmap of %zu bytes of the file", length);
	table_add_text(table, text, start - from, end - from, length);
	team_give(text, length);
}

static unsigned int part_of(const struct entry *entry)
{
	return (unsigned int)((entry->word >> 32) % options.team.threads);
}

static void hand_over(const struct table *table, unsigned int part)
{
	struct block *block;
	size_t count = 0, bytes;

	for (size_t i = 0; i < table->capacity; i++)
		count += table->entries[i].word && part_of(&table->entries[i]) == part;
	bytes = sizeof(*block) + count * sizeof(struct entry);
	block = team_take(bytes);
	block->bytes = bytes;
	for (size_t i = 0; i < table->capacity; i++) {
		if (table->entries[i].word && part_of(&table->entries[i]) == part)
			block->entries[block->count++] = table->entries[i];
	}
	block->next = atomic_load(&handed[part]);
	while (!atomic_compare_exchange_weak(&handed[part], &block->next, block))
		;
}

static void map_phase(unsigned int round)
{
	unsigned int task;

	while ((task = atomic_fetch_add(&next_task, 1)) < tasks) {
		struct table table;

		table_make(&table);
		count_split(&table, task);
		if (options.team.spoil && !task && !round)
			table_add(&table, 1, 1);
		for (unsigned int part = 0; part < options.team.threads; part++)
			hand_over(&table, part);
		table_end(&table);
		team_did(1, 0);
	}
}

static void reduce_phase(unsigned int part)
{
	struct block *block = atomic_exchange(&handed[part], NULL), *next;
	struct result result;
	struct table table;

	table_make(&table);
	for (; block; block = next) {
		for (size_t i = 0; i < block->count; i++)
			table_add(&table, block->entries[i].word, block->entries[i].count);
		next = block->next;
		team_give(block, block->bytes);
	}
	result = table_result(&table);
	table_end(&table);
	atomic_fetch_add(&checksum, result.checksum);
	atomic_fetch_add(&words, result.words);
	atomic_fetch_add(&different, result.different);
	team_did(0, result.words);
}

static void run_round(unsigned int member, unsigned int round)
{
	map_phase(round);
	team_meet();
	reduce_phase(member);
}

static void check_round(unsigned int member, unsigned int round)
{
	(void)round;
	if (member)
		return;
	team_wrong(atomic_load(&checksum) != expected.checksum ||
		   atomic_load(&words) != expected.words ||
		   atomic_load(&different) != expected.different);
	atomic_store(&checksum, 0);
	atomic_store(&words, 0);
	atomic_store(&different, 0);
	atomic_store(&next_task, 0);
}

static void describe(struct json *json)
{
	json_unsigned(json, "kib", options.kib);
	json_unsigned(json, "split_kib", options.split_kib);
	json_unsigned(json, "words", expected.words);
	json_unsigned(json, "different", expected.different);
}

static const struct work work = {
	.type = "wordcount",
	.operation = "map tasks",
	.item = "words",
	.round = run_round,
	.check = check_round,
	.describe = describe,
};

int main(int argc, char **argv)
{
	set_program_name("wordcount-bench");
	parse(argc, argv);
	team_place(&options.team);
	make_file();
	count_alone();
	return team_run(&options.team, &work);
}
