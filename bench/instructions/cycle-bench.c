// SPDX-License-Identifier: GPL-2.0-only
/*
 * cycle-bench.c - time short system call loops, one thread, one CPU
 *
 * What: how long one map-read-unmap cycle, one page fault, one write takes.
 *       In a guest under `qemu -icount shift=0` a nanosecond is an instruction,
 *       and the result repeats to a fraction of a percent. That is what
 *       `ceasefire bench instructions` does; elsewhere the figures are times.
 * Who:  `ceasefire bench instructions` and `idle-cost`, see ceasefire-bench(1).
 *
 * Addresses are the same in each run, see fix_addresses() and make_neighbour().
 * Each operation count is calibrated once and the same for all variants of a
 * case, so that what happens once in a while (ticks, deferred frees) weighs the
 * same. Repeats are the outer loop: a slow drift hits all cases alike.
 */
#include "../common/counters.h"
#include "../common/environment.h"
#include "../common/json.h"
#include "../common/modes.h"
#include "../common/options.h"
#include "../common/util.h"
#include "mark.h"
#include "program.h"
#include "../../lib/include/ceasefire.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <unistd.h>

#define PAGE 4096UL
#define FILE_PAGES 1024UL
#define MAX_CASES 18
#define SKIP_LOCAL "/sys/kernel/debug/ceasefire/skip_local"

enum variant {
	PLAIN,
	FPR,
	FPR_SKIP,	/* skips even with one CPU; debug kernels only */
	LATR,		/* a lazy process without the flag, or a lazy program */
	VARIANTS,
};

static const char *const variant_names[VARIANTS] = {
	"plain", "fpr", "fpr-skip", "latr",
};

struct test {
	const char *name;
	void (*run)(const struct test *test, int flag, unsigned long count);
	unsigned int pages;
	bool fpr;		/* has variants with the flag */
	const char *command;	/* of a program; one run is an operation */
};

static int data_file, null_file, tmp_file;
static bool skip_local_set;
static uint64_t program_ns;	/* of the last runs of a program */
static uint64_t wrong;

static void map_read_unmap(const struct test *test, int flag,
			   unsigned long count)
{
	size_t length = test->pages * PAGE;

	for (unsigned long n = 0; n < count; n++) {
		uint64_t first = n * test->pages % FILE_PAGES;
		char *p = mmap(NULL, length, PROT_READ, MAP_SHARED | flag,
			       data_file, (off_t)(first * PAGE));

		if (p == MAP_FAILED)
			die_errno("mmap");
		for (unsigned int i = 0; i < test->pages; i++)
			wrong += *(volatile uint64_t *)(p + i * PAGE) !=
				 page_word(0, first + i);
		if (munmap(p, length))
			die_errno("munmap");
	}
}

static void map_unmap(const struct test *test, int flag, unsigned long count)
{
	size_t length = test->pages * PAGE;

	for (unsigned long n = 0; n < count; n++) {
		char *p = mmap(NULL, length, PROT_READ, MAP_SHARED | flag,
			       data_file, 0);

		if (p == MAP_FAILED || munmap(p, length))
			die_errno("mmap and munmap");
	}
}

/* Memory as allocators and short-lived buffers use it. */
static void map_write_unmap(const struct test *test, int flag,
			    unsigned long count)
{
	size_t length = test->pages * PAGE;

	for (unsigned long n = 0; n < count; n++) {
		char *p = mmap(NULL, length, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS | flag, -1, 0);

		if (p == MAP_FAILED)
			die_errno("mmap");
		for (unsigned int i = 0; i < test->pages; i++)
			*(volatile char *)(p + i * PAGE) = 1;
		if (munmap(p, length))
			die_errno("munmap");
	}
}

/*
 * An anonymous page: fault it in, give it back. In turn in several mappings, kept apart by
 * others: how far the kernel looks for a mapping in a node of its tree depends on where it is
 * there, and a process of another kind has it elsewhere. They are made by the run before the
 * one that counts, and are in the way of no other case.
 */
#define FAULT_AREAS 8
static char *areas[2 * FAULT_AREAS];
static size_t area_length;

static void map_areas(size_t length)
{
	for (int i = 0; i < 2 * FAULT_AREAS; i++) {
		areas[i] = mmap(NULL, length,
				i % 2 ? PROT_NONE : PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (areas[i] == MAP_FAILED)
			die_errno("mmap");
	}
	area_length = length;
}

static void unmap_areas(void)
{
	for (int i = 0; i < 2 * FAULT_AREAS && area_length; i++)
		if (munmap(areas[i], area_length))
			die_errno("munmap");
	area_length = 0;
}

static void page_fault(const struct test *test, int flag, unsigned long count)
{
	size_t length = test->pages * PAGE;

	(void)flag;
	if (!area_length)
		map_areas(length);
	for (unsigned long n = 0; n < count; n++) {
		char *p = areas[n % FAULT_AREAS * 2];

		for (unsigned int i = 0; i < test->pages; i++)
			*(volatile char *)(p + i * PAGE) = 1;
		if (madvise(p, length, MADV_DONTNEED))
			die_errno("madvise");
	}
}

static void write_loop(int fd, unsigned long count, bool rewind_each)
{
	for (unsigned long n = 0; n < count; n++) {
		ssize_t done = rewind_each ? pwrite(fd, "x", 1, 0) :
					     write(fd, "x", 1);

		if (done != 1)
			die_errno("write");
	}
}

static void write_null(const struct test *test, int flag, unsigned long count)
{
	(void)test;
	(void)flag;
	write_loop(null_file, count, false);
}

static void write_file(const struct test *test, int flag, unsigned long count)
{
	(void)test;
	(void)flag;
	write_loop(tmp_file, count, true);
}

/* 16 ms of one clock without a system call: four ticks. Long blocks, see steps-plugin.c. */
static void spin(const struct test *test, int flag, unsigned long count)
{
	(void)test;
	(void)flag;
	for (unsigned long n = 0; n < count * 16000; n++)
		__asm__ volatile(".rept 1000\n\tnop\n\t.endr");
}

static void program(const struct test *test, int flag, unsigned long count)
{
	(void)flag;
	program_ns = run_program(test->name, test->command, null_file, count);
}

static struct test tests[MAX_CASES] = {
	{ "mmap-read-munmap-1", map_read_unmap, 1, true, NULL },
	{ "mmap-read-munmap-4", map_read_unmap, 4, true, NULL },
	{ "mmap-read-munmap-16", map_read_unmap, 16, true, NULL },
	{ "mmap-read-munmap-512", map_read_unmap, 512, true, NULL },
	{ "mmap-munmap", map_unmap, 1, true, NULL },
	{ "mmap-write-munmap-1", map_write_unmap, 1, true, NULL },
	{ "mmap-write-munmap-16", map_write_unmap, 16, true, NULL },
	{ "mmap-write-munmap-512", map_write_unmap, 512, true, NULL },
	{ "page-fault", page_fault, 1, false, NULL },
	{ "write-null", write_null, 0, false, NULL },
	{ "write-file", write_file, 0, false, NULL },
	{ "spin", spin, 0, false, NULL },
};

/* Those above, and those that are added for --program. */
#define LOOPS 12
static size_t nr_tests = LOOPS;

struct options {
	bool chosen[MAX_CASES];
	bool any_chosen;
	bool variants[VARIANTS];
	bool variants_given;
	unsigned int repeats;
	unsigned long marked;
	uint64_t ms;		/* of a sample */
	const char *folder;
	bool json;
	bool peer;
};

static void write_skip_local(const char *value)
{
	int fd = open(SKIP_LOCAL, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, value, 1) != 1)
		die_errno("%s", SKIP_LOCAL);
	close(fd);
	skip_local_set = value[0] == '1';
}

static void restore(void)
{
	if (skip_local_set)
		write_skip_local("0");
}

static void stop_on_signal(int signal)
{
	int fd;

	/* write_skip_local() may exit(); here only plain calls. */
	if (skip_local_set) {
		fd = open(SKIP_LOCAL, O_WRONLY | O_CLOEXEC);
		if (fd >= 0 && write(fd, "0", 1) == 1)
			close(fd);
	}
	_exit(128 + signal);
}

static void prepare(const struct options *options)
{
	const char *folder = options->folder ? options->folder : getenv("TMPDIR");

	if (!folder || !*folder)
		folder = "/tmp";
	data_file = make_scratch_file(folder);
	tmp_file = make_scratch_file(folder);
	null_file = open("/dev/null", O_WRONLY | O_CLOEXEC);
	if (null_file < 0)
		die_errno("/dev/null");
	for (uint64_t i = 0; i < FILE_PAGES; i++) {
		char page[PAGE] = { 0 };
		uint64_t word = page_word(0, i);

		memcpy(page, &word, sizeof(word));
		if (pwrite(data_file, page, PAGE, (off_t)(i * PAGE)) !=
		    (ssize_t)PAGE)
			die_errno("cannot write to %s", folder);
	}
	if (fsync(data_file))
		die_errno("cannot sync in %s", folder);
}

/*
 * The same addresses in each run: start again without randomization. Where the
 * kernel does not allow it the run goes on, and repeats less well.
 */
static void fix_addresses(char **argv)
{
	int persona = personality(0xffffffff);

	if (persona < 0 || (persona & ADDR_NO_RANDOMIZE) ||
	    personality((unsigned long)persona | ADDR_NO_RANDOMIZE) < 0)
		return;
	execv("/proc/self/exe", argv);
	die_errno("cannot start again");
}

/*
 * Let new mappings lie in the middle of what one page table covers, with a
 * neighbour that keeps the table. Whether each cycle allocates and frees a table
 * is otherwise a matter of luck, and worth ten percent.
 */
static void make_neighbour(void)
{
	const unsigned long reach = 2UL << 20;
	char *p = mmap(NULL, 2 * reach, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	unsigned long middle;

	if (p == MAP_FAILED)
		die_errno("mmap");
	middle = (((unsigned long)p + reach - 1) & ~(reach - 1)) + reach / 2;
	if (munmap(p, middle - (unsigned long)p))
		die_errno("munmap");
	*(volatile char *)middle = 1;
}

/* How many operations take about as long as a sample should. */
static unsigned long calibrate(const struct test *test, uint64_t ns)
{
	unsigned long count;
	uint64_t took = 0;

	for (count = 64; !took || took < ns / 8; count *= 2) {
		uint64_t start = now_ns();

		test->run(test, 0, count);
		took = now_ns() - start;
	}
	count /= 2;
	unmap_areas();
	return (unsigned long)((double)count * (double)ns / (double)took) + 1;
}

/* What a variant needs beside the flag, and the end of it. */
static void begin(enum variant variant)
{
	if (variant == FPR_SKIP)
		write_skip_local("1");
	if (variant == LATR)
		enter_mode(find_mode("latr"));
}

static void end(enum variant variant)
{
	unmap_areas();
	if (variant == FPR_SKIP)
		write_skip_local("0");
	if (variant == LATR)
		leave_mode(find_mode("latr"));
}

static void measure(const struct options *options, const struct test *test,
		    enum variant variant, unsigned long count,
		    unsigned int repeat)
{
	static struct counters before, after;
	int flag = variant == FPR || variant == FPR_SKIP ? MAP_FPR : 0;
	uint64_t start, took;
	struct json json;

	begin(variant);
	test->run(test, flag, count / 10 + 1);
	if (options->marked) {
		MARK();
		test->run(test, flag, options->marked);
		MARK();
		end(variant);
		return;
	}
	counters_read(&before);
	start = now_ns();
	if (options->peer)
		MARK();
	test->run(test, flag, count);
	if (options->peer)
		MARK();
	took = test->command ? program_ns : now_ns() - start;
	counters_read(&after);
	counters_subtract(&after, &before);
	end(variant);

	if (!options->json) {
		printf("%-20s %-9s repeat %u  %10.1f ns per operation\n",
		       test->name, variant_names[variant], repeat,
		       (double)took / (double)count);
		return;
	}
	json_begin(&json, stdout, "cycle");
	json_string(&json, "case", test->name);
	json_string(&json, "variant", variant_names[variant]);
	json_unsigned(&json, "pages", test->pages);
	json_unsigned(&json, "repeat", repeat);
	json_unsigned(&json, "ops", count);
	json_unsigned(&json, "ns", took);
	json_real(&json, "ns_per_op", (double)took / (double)count, 3);
	counters_json(&json, &after);
	json_end(&json);
}

static void *do_nothing(void *cpu)
{
	run_on_cpu(*(int *)cpu);
	for (;;)
		__asm__ volatile("pause" ::: "memory");
	return NULL;
}

/* Runs on another CPU from now on, and so this process does. */
static void start_peer(void)
{
	static int cpu;
	pthread_t thread;

	if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
		die(EXIT_USAGE, "--peer needs two CPUs");
	cpu = nth_cpu(1);
	run_on_cpu(nth_cpu(0));
	if (pthread_create(&thread, NULL, do_nothing, &cpu))
		die(EXIT_FAILED, "no thread");
	sleep_ns(50000000);
}

static void choose_case(void *to, char *name)
{
	struct options *options = to;

	for (size_t i = 0; i < nr_tests; i++) {
		if (strcmp(tests[i].name, name) == 0) {
			options->chosen[i] = options->any_chosen = true;
			return;
		}
	}
	die(EXIT_USAGE, "unknown case '%s'; cycle-bench --list shows them",
	    name);
}

static void add_program(void *to, char *text)
{
	struct options *options = to;
	char *command = strchr(text, '=');

	if (!command || command == text || !command[1])
		die(EXIT_USAGE, "--program %s: give NAME=COMMAND", text);
	if (nr_tests == MAX_CASES)
		die(EXIT_USAGE, "--program: at most %d of them", MAX_CASES - LOOPS);
	*command++ = 0;
	options->chosen[nr_tests] = options->any_chosen = true;
	tests[nr_tests++] = (struct test){ text, program, 0, false, command };
}

static void choose_variants(void *to, char *text)
{
	struct options *options = to;
	char *save = NULL;

	options->variants_given = true;
	for (char *word = strtok_r(text, ",", &save); word;
	     word = strtok_r(NULL, ",", &save)) {
		enum variant variant = 0;

		while (variant < VARIANTS &&
		       strcmp(word, variant_names[variant]) != 0)
			variant++;
		if (variant == VARIANTS)
			die(EXIT_USAGE, "unknown variant '%s': use plain, fpr, fpr-skip or latr",
			    word);
		options->variants[variant] = true;
	}
}

/* Without --variant: all that this kernel has. */
static void find_variants(struct options *options)
{
	if (!options->variants_given) {
		options->variants[PLAIN] = true;
		options->variants[FPR] = ceasefire_fpr_state() == 1;
		options->variants[FPR_SKIP] = options->variants[FPR] &&
					      access(SKIP_LOCAL, W_OK) == 0;
		options->variants[LATR] = mode_is_offered(find_mode("latr"));
		return;
	}
	if (options->variants[FPR] || options->variants[FPR_SKIP])
		require_fpr();
	if (options->variants[LATR])
		require_mode(find_mode("latr"));
	if (options->variants[FPR_SKIP] && access(SKIP_LOCAL, W_OK))
		die(EXIT_NO_KERNEL_SUPPORT, "no %s: fpr-skip needs the debug kernel and root",
		    SKIP_LOCAL);
}

static void list_cases(void *to, char *text)
{
	(void)to;
	(void)text;
	for (size_t i = 0; i < nr_tests; i++)
		puts(tests[i].name);
	exit(EXIT_OK);
}

static void options_parse(struct options *o, int argc, char **argv)
{
	static const struct program program = {
		"cycle-bench [options]",
		"Times loops of memory system calls, one thread on one CPU.", NULL
	};
	const struct program_option list[] = {
		CALL("case", "NAME", o, choose_case,
		     "only this one (repeatable); --list shows the names"),
		CALL("program", "NAME=COMMAND", o, add_program,
		     "a case of that name: runs of a shell command, whose output\n"
		     "is dropped (repeatable)"),
		CALL("variant", "LIST", o, choose_variants,
		     "plain,fpr,fpr-skip,latr (all that the kernel has)"),
		NUMBER("repeats", "N", &o->repeats, 1, 10000,
		       "repeats, all cases in turn (5)"),
		NUMBER("ms", "N", &o->ms, 1, 1000000, "length of a sample (100)"),
		TEXT("dir", "DIR", &o->folder, "make the test file here ($TMPDIR, /tmp)"),
		FLAG("peer", &o->peer,
		     "with a thread on another CPU that does nothing, so that there\n"
		     "is somebody to interrupt; each sample lies between marks, for\n"
		     "a plugin that counts instructions"),
		NUMBER("mark", "N", &o->marked, 1, 1000,
		       "only N operations of each case, between marks for a plugin\n"
		       "of the emulator: `ceasefire bench instructions --profile`"),
		FLAG("json", &o->json, "JSON lines instead of text"),
		CALL("list", NULL, NULL, list_cases, "the names of the cases"),
		{ 0 }
	};

	*o = (struct options){ .repeats = 5, .ms = 100 };
	parse_options(&program, list, argc, argv);
}

int main(int argc, char **argv)
{
	unsigned long counts[MAX_CASES] = { 0 };
	struct options options;

	set_program_name("cycle-bench");
	fix_addresses(argv);
	options_parse(&options, argc, argv);
	find_variants(&options);
	atexit(restore);
	signal(SIGINT, stop_on_signal);
	signal(SIGTERM, stop_on_signal);
	prepare(&options);
	make_neighbour();
	if (options.peer)
		start_peer();
	if (options.json)
		print_environment_json(stdout);

	for (unsigned int repeat = 0; repeat < options.repeats; repeat++) {
		for (size_t i = 0; i < nr_tests; i++) {
			const struct test *test = &tests[i];

			if (options.any_chosen && !options.chosen[i])
				continue;
			if (!counts[i])
				counts[i] = test->command ? 1 :
					    calibrate(test, options.ms * 1000000);
			for (enum variant v = 0; v < VARIANTS; v++) {
				if (options.variants[v] &&
				    (v == PLAIN || v == LATR || test->fpr))
					measure(&options, test, v, counts[i],
						repeat);
			}
		}
	}
	if (wrong)
		die(EXIT_FAILED, "%" PRIu64 " pages had wrong data", wrong);
	return EXIT_OK;
}
