// SPDX-License-Identifier: GPL-2.0-only
/*
 * morsel-bench.c - what morsels take beside other shared memory, in instructions
 *
 * What: map         mmap() of an object that has all pages, and its first read;
 *                   beside it shared memory with MAP_POPULATE
 *       mmap,       of an object with one page: mmap() alone, and the first
 *       link        access, for many sizes
 *       take        memory is taken from an object, by one call for each SIZE
 *                   of it, also with pages of 2 MiB; beside it MADV_REMOVE and
 *                   holes in shared memory, and MADV_DONTNEED of anonymous
 *                   memory
 *       call        one that leaves it to others to free the memory: cuts and
 *                   the flush, and nothing of what follows
 *       sparse      the same, of an object with one page in each 2 MiB
 *       copy        FICLONE of an object that has all pages, in units of 1 GiB;
 *                   beside it fork() with as much anonymous memory
 *       table,      the first write after that to 2 MiB, and to a page of them;
 *       page        beside it that to a page after fork()
 *       wait        nothing but the wait that is a part of `take`
 *       What a call leaves to others (RCU, workers) belongs to it: `take` ends
 *       SETTLE_NS after the calls, when tables that were cut have been freed.
 * Who:  `ceasefire bench morsels`, see ceasefire-bench(1) and
 *       cli/ceasefire/bench/cost/morsels.py, which takes `wait` off again.
 *       Between two marks steps-plugin.c counts; without it there are no figures.
 *
 * Ends with 77 where the kernel has no morsels.
 */
#include "../../kernel/src/include/uapi/linux/morsel.h"
#include "../common/environment.h"
#include "../common/json.h"
#include "../common/options.h"
#include "../common/util.h"
#include "mark.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/memfd.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE		4096UL
#define MIB		(1UL << 20)
#define GIB		(1UL << 30)
/* Tables that were cut wait for at most a second. */
#define SETTLE_NS	1500000000UL
#define LIMIT		"/sys/kernel/mm/ceasefire/morsel/limit"
#define HUGE_SHM	"/sys/kernel/mm/transparent_hugepage/shmem_enabled"

/* Of what the memory is, and how it is taken. */
enum kind { MORSEL, SHM_REMOVE, SHM_PUNCH, ANONYMOUS };

static const struct variant {
	const char *name;
	enum kind kind;
	/* Pages come one by one, in no order. */
	bool faults;
	bool huge;
} variants[] = {
	{ "morsel", MORSEL, false, false },
	{ "morsel-faults", MORSEL, true, false },
	{ "morsel-huge", MORSEL, false, true },
	{ "shm-remove", SHM_REMOVE, false, false },
	{ "shm-remove-faults", SHM_REMOVE, true, false },
	{ "shm-remove-huge", SHM_REMOVE, false, true },
	{ "shm-punch", SHM_PUNCH, false, false },
	{ "anonymous", ANONYMOUS, false, false },
	{ "anonymous-huge", ANONYMOUS, false, true },
};

struct area {
	int fd;
	char *at;
	unsigned long size;
	/* Whole units of a morsel. */
	unsigned long mapped;
};

struct options {
	unsigned int repeats;
	uint64_t largest;
};

static void write_to(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, text, strlen(text)) < 0 || close(fd))
		die_errno("%s", path);
}

static int make(unsigned int flags, unsigned long size)
{
	int fd = memfd_create("bench", MFD_CLOEXEC | flags);

	if (fd < 0)
		die_errno("memfd_create");
	if (ftruncate(fd, (off_t)size))
		die_errno("ftruncate to %lu", size);
	return fd;
}

static char *map(int fd, unsigned long size, int flags)
{
	char *at = mmap(NULL, size, PROT_READ | PROT_WRITE, flags, fd, 0);

	if (at == MAP_FAILED)
		die_errno("mmap of %lu", size);
	return at;
}

static void read_byte(const char *at)
{
	(void)*(const volatile char *)at;
}

static void for_morsel(int fd, unsigned long request, unsigned long offset,
		       unsigned long length, unsigned int flags)
{
	struct morsel_range range = { offset, length };
	struct morsel_vec vec = { .ranges = (uintptr_t)&range, .nr = 1, .flags = flags };

	if (ioctl(fd, request, &vec))
		die_errno("range of a morsel");
}

/* Touch all pages, each once, in an order that looks like none. */
static void touch_all(char *at, unsigned long size)
{
	unsigned long pages = size / PAGE, page = 0, i;

	/* An odd step meets each page of a power of two. */
	for (i = 0; i < pages; i++) {
		*(volatile char *)(at + page * PAGE) = 1;
		page = (page + 0x9e3779b1UL) % pages;
	}
}

static struct area area_of(const struct variant *v, unsigned long size)
{
	struct area area = { -1, NULL, size, size };

	if (v->kind == ANONYMOUS) {
		/* From a boundary of huge pages on; the rest has no memory. */
		area.at = map(-1, size + 2 * MIB, MAP_PRIVATE | MAP_ANONYMOUS);
		area.at = (char *)(((uintptr_t)area.at + 2 * MIB - 1) &
				   ~(uintptr_t)(2 * MIB - 1));
	} else {
		area.fd = make(v->kind != MORSEL ? 0 : v->huge ? MFD_MORSEL | MFD_HUGE_2MB :
			       MFD_MORSEL, size);
		if (v->kind == MORSEL && v->huge)
			area.mapped = (size + GIB - 1) / GIB * GIB;
		area.at = map(area.fd, area.mapped, MAP_SHARED);
	}
	if (v->huge && v->kind != MORSEL && madvise(area.at, size, MADV_HUGEPAGE))
		die_errno("MADV_HUGEPAGE");
	if (v->faults)
		touch_all(area.at, size);
	else if (v->kind == MORSEL)
		for_morsel(area.fd, MORSEL_IOC_POPULATE, 0, size, 0);
	else if (madvise(area.at, size, MADV_POPULATE_WRITE))
		die_errno("MADV_POPULATE_WRITE");
	/* A morsel that was populated is not linked yet. */
	read_byte(area.at);
	return area;
}

static void drop(const struct area *area)
{
	if (munmap(area->at, area->mapped))
		die_errno("munmap");
	if (area->fd >= 0)
		close(area->fd);
}

static void take(const struct variant *v, const struct area *area,
		 unsigned long offset, unsigned long length)
{
	int err = 0;

	switch (v->kind) {
	case MORSEL:
		for_morsel(area->fd, MORSEL_IOC_DEPOPULATE, offset, length, 0);
		break;
	case SHM_REMOVE:
		err = madvise(area->at + offset, length, MADV_REMOVE);
		break;
	case SHM_PUNCH:
		err = fallocate(area->fd,
				FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
				(off_t)offset, (off_t)length);
		break;
	case ANONYMOUS:
		err = madvise(area->at + offset, length, MADV_DONTNEED);
		break;
	}
	if (err)
		die_errno("%s of %lu bytes", v->name, length);
}

/* All memory has been taken: nothing was counted that did not happen. */
static void require_empty(const struct variant *v, const struct area *area)
{
	struct morsel_stat of_morsel;
	unsigned char resident = 0;
	struct stat of_file;

	if (v->kind == MORSEL) {
		if (ioctl(area->fd, MORSEL_IOC_STAT, &of_morsel))
			die_errno("MORSEL_IOC_STAT");
		if (of_morsel.pages)
			die(EXIT_FAILED, "a morsel has %llu pages left",
			    (unsigned long long)of_morsel.pages);
	} else if (v->kind == ANONYMOUS) {
		if (mincore(area->at, PAGE, &resident) || (resident & 1))
			die(EXIT_FAILED, "anonymous memory is still there");
	} else if (fstat(area->fd, &of_file) || of_file.st_blocks) {
		die(EXIT_FAILED, "shared memory has blocks left");
	}
}

static void print(const char *name, const char *variant, unsigned long size,
		  unsigned long calls, unsigned long faults, unsigned int repeat)
{
	struct json json;

	json_begin(&json, stdout, "morsel");
	json_string(&json, "case", name);
	json_string(&json, "variant", variant);
	json_unsigned(&json, "size", size);
	json_unsigned(&json, "calls", calls);
	json_unsigned(&json, "faults", faults);
	json_unsigned(&json, "repeat", repeat);
	json_end(&json);
}

static unsigned long faults_now(void)
{
	struct rusage usage;

	if (getrusage(RUSAGE_SELF, &usage))
		die_errno("getrusage");
	return (unsigned long)usage.ru_minflt;
}

/* Enough calls that what the kernel does by itself while they wait is little beside them. */
static unsigned long calls_for(unsigned long size)
{
	unsigned long calls = 128 * MIB / size;

	return calls < 1 ? 1 : calls > 4096 ? 4096 : calls;
}

static void measure_take(unsigned long size, unsigned int repeat)
{
	unsigned long calls = calls_for(size);
	unsigned long all = calls * size < 2 * MIB ? 2 * MIB : calls * size;

	for (size_t i = 0; i < sizeof(variants) / sizeof(*variants); i++) {
		const struct variant *v = &variants[i];
		struct area area;

		/* Of a part of a huge page there is nothing to take. */
		if (v->kind == MORSEL && v->huge && size < 2 * MIB)
			continue;
		area = area_of(v, all);
		MARK();
		for (unsigned long n = 0; n < calls; n++)
			take(v, &area, n * size, size);
		sleep_ns(SETTLE_NS);
		MARK();
		if (calls * size == all)
			require_empty(v, &area);
		print("take", v->name, size, calls, 0, repeat);
		drop(&area);
	}
	MARK();
	sleep_ns(SETTLE_NS);
	MARK();
	print("wait", "-", size, 1, 0, repeat);
}

/* Before all others, or as one of them. */
static void set_first(bool first)
{
	struct sched_param param = { .sched_priority = first };

	if (sched_setscheduler(0, first ? SCHED_FIFO : SCHED_OTHER, &param))
		die_errno("sched_setscheduler");
}

static unsigned long cuts_of(int fd)
{
	struct morsel_stat of_morsel;

	if (ioctl(fd, MORSEL_IOC_STAT, &of_morsel))
		die_errno("MORSEL_IOC_STAT");
	return of_morsel.cuts;
}

static const struct layout {
	unsigned long unit;
	const char *name;
} layouts[] = {
	{ 2 * MIB, "unit-2M" },
	{ GIB, "unit-1G" },
	{ 512 * GIB, "unit-512G" },
};

/* Roots are never cut: nothing but pages, whole tables of them, or what leads to 512 of these. */
static unsigned long cuts_for(unsigned long size, unsigned long unit)
{
	if (unit > GIB && size >= GIB)
		return size / GIB;
	return unit > 2 * MIB && size >= 2 * MIB ? size / (2 * MIB) : size / PAGE;
}

static void measure_call(const char *name, unsigned long size, const struct layout *layout,
			 unsigned int repeat)
{
	unsigned long unit = layout->unit, all = size < 2 * MIB ? 2 * MIB : size;
	struct morsel_geometry geometry = { .unit = unit, .base = PAGE };
	int fd = memfd_create("bench", MFD_CLOEXEC | MFD_MORSEL);
	bool sparse = !strcmp(name, "sparse");
	char *at;

	if (fd < 0 || ioctl(fd, MORSEL_IOC_GEOMETRY, &geometry) || ftruncate(fd, (off_t)all))
		die_errno("a morsel of %lu", all);
	all = (all + unit - 1) / unit * unit;
	at = map(fd, all, MAP_SHARED);
	for (unsigned long n = 0; n < size; n += sparse ? 2 * MIB : size)
		for_morsel(fd, MORSEL_IOC_POPULATE, n, sparse ? PAGE : size, 0);
	read_byte(at);
	/* Those who free do not run on this CPU before it is over. */
	set_first(true);
	MARK();
	for_morsel(fd, MORSEL_IOC_DEPOPULATE, 0, size, MORSEL_ASYNC);
	MARK();
	set_first(false);
	if (cuts_of(fd) != cuts_for(size, unit))
		die(EXIT_FAILED, "%lu cuts for %lu bytes", cuts_of(fd), size);
	if (fsync(fd))
		die_errno("fsync");
	print(name, layout->name, size, 1, 0, repeat);
	if (munmap(at, all))
		die_errno("munmap");
	close(fd);
}

static void write_byte(char *at)
{
	*(volatile char *)at = 2;
}

/* Two writes to what is shared, a page apart: what each takes. */
static void measure_writes(char *at, const char *variant, unsigned long size,
			   unsigned int repeat)
{
	MARK();
	write_byte(at);
	MARK();
	print("table", variant, size, 1, 0, repeat);
	MARK();
	write_byte(at + PAGE);
	MARK();
	print("page", variant, size, 1, 0, repeat);
}

static void measure_copy(unsigned long size, unsigned int repeat)
{
	struct morsel_geometry geometry = { .unit = GIB, .base = PAGE };
	int fd = memfd_create("bench", MFD_CLOEXEC | MFD_MORSEL);
	int copy = memfd_create("copy", MFD_CLOEXEC | MFD_MORSEL);
	char *at;

	if (fd < 0 || copy < 0 || ioctl(fd, MORSEL_IOC_GEOMETRY, &geometry) ||
	    ftruncate(fd, (off_t)size))
		die_errno("a morsel of %lu", size);
	at = map(fd, GIB, MAP_SHARED);
	for_morsel(fd, MORSEL_IOC_POPULATE, 0, size, 0);
	write_byte(at);
	MARK();
	if (ioctl(copy, FICLONE, fd))
		die_errno("FICLONE");
	MARK();
	print("copy", "morsel", size, 1, 0, repeat);
	measure_writes(at, "morsel", size, repeat);
	if (munmap(at, GIB))
		die_errno("munmap");
	close(copy);
	close(fd);
}

static void measure_fork(unsigned long size, unsigned int repeat)
{
	char *at = map(-1, size, MAP_PRIVATE | MAP_ANONYMOUS);
	int status;
	pid_t pid;

	if (madvise(at, size, MADV_NOHUGEPAGE) || madvise(at, size, MADV_POPULATE_WRITE))
		die_errno("%lu bytes of anonymous memory", size);
	/* The child does not run on this CPU before all is over. */
	set_first(true);
	MARK();
	pid = fork();
	if (!pid)
		_exit(0);
	MARK();
	if (pid < 0)
		die_errno("fork");
	print("copy", "fork", size, 1, 0, repeat);
	measure_writes(at, "fork", size, repeat);
	set_first(false);
	if (waitpid(pid, &status, 0) != pid || status)
		die(EXIT_FAILED, "a child ends with %#x", status);
	if (munmap(at, size))
		die_errno("munmap");
}

static void measure_map(unsigned long size, unsigned int repeat)
{
	for (int kind = MORSEL; kind <= SHM_REMOVE; kind++) {
		const struct variant *v = &variants[kind == MORSEL ? 0 : 3];
		struct area area = area_of(v, size);
		unsigned long before;
		char *at;

		before = faults_now();
		MARK();
		at = map(area.fd, size, kind == MORSEL ? MAP_SHARED :
			 MAP_SHARED | MAP_POPULATE);
		read_byte(at);
		MARK();
		print("map", kind == MORSEL ? "morsel" : "shm", size, 1,
		      faults_now() - before, repeat);
		if (munmap(at, size))
			die_errno("munmap");
		drop(&area);
	}
}

static void measure_sparse(unsigned long size, unsigned int repeat)
{
	int fd = make(MFD_MORSEL, size);
	unsigned long before;
	char *at;

	for_morsel(fd, MORSEL_IOC_POPULATE, 0, PAGE, 0);
	MARK();
	at = map(fd, size, MAP_SHARED);
	MARK();
	print("mmap", "morsel", size, 1, 0, repeat);
	before = faults_now();
	MARK();
	read_byte(at);
	MARK();
	print("link", "morsel", size, 1, faults_now() - before, repeat);
	if (munmap(at, size))
		die_errno("munmap");
	close(fd);
}

static void options_parse(struct options *o, int argc, char **argv)
{
	static const struct program program = {
		"morsel-bench [options]",
		"Maps, populates and depopulates morsels and other memory between marks.",
		"It needs a kernel with morsels, and root."
	};
	const struct program_option list[] = {
		NUMBER("repeats", "N", &o->repeats, 1, 1000, "repeats of each case (5)"),
		NUMBER("largest", "BYTES", &o->largest, PAGE, GIB,
		       "largest piece of memory that is taken (1073741824)"),
		{ 0 }
	};

	*o = (struct options){ .repeats = 5, .largest = GIB };
	parse_options(&program, list, argc, argv);
}

static void require_morsels(void)
{
	int fd = memfd_create("bench", MFD_CLOEXEC | MFD_MORSEL);

	if (fd < 0 && errno == EINVAL)
		die(EXIT_NO_KERNEL_SUPPORT, "this kernel has no morsels");
	if (fd < 0)
		die_errno("memfd_create");
	close(fd);
}

int main(int argc, char **argv)
{
	static const unsigned long pieces[] = {
		PAGE, 64 << 10, 512 << 10, 2 * MIB, 32 * MIB, 256 * MIB, GIB,
	};
	static const unsigned long sparse[] = {
		2 * MIB, 32 * MIB, 512 * MIB, 8 * GIB, 64 * GIB, 256 * GIB,
	};
	static const unsigned long thin[] = { 512 * MIB, GIB, 2 * GIB, 8 * GIB, 64 * GIB };
	struct options options;

	set_program_name("morsel-bench");
	options_parse(&options, argc, argv);
	require_morsels();
	run_on_cpu(nth_cpu(0));
	write_to(HUGE_SHM, "advise");
	/* Of what may wait to be freed by others it is a part, where each table counts as full. */
	write_to(LIMIT, "1000000000");
	setvbuf(stdout, NULL, _IOLBF, 0);
	print_environment_json(stdout);
	for (unsigned int repeat = 0; repeat < options.repeats; repeat++) {
		for (size_t i = 0; i < sizeof(sparse) / sizeof(*sparse); i++)
			measure_sparse(sparse[i], repeat);
		for (size_t i = 0; i < sizeof(thin) / sizeof(*thin) && options.largest == GIB; i++)
			for (size_t k = 1; k < sizeof(layouts) / sizeof(*layouts); k++)
				measure_call("sparse", thin[i], &layouts[k], repeat);
		for (size_t i = 0; i < sizeof(pieces) / sizeof(*pieces); i++) {
			if (pieces[i] > options.largest)
				break;
			/* There are 511 units. */
			for (size_t k = pieces[i] == GIB; k < sizeof(layouts) / sizeof(*layouts); k++)
				measure_call("call", pieces[i], &layouts[k], repeat);
			measure_take(pieces[i], repeat);
			if (pieces[i] < 2 * MIB)
				continue;
			measure_map(pieces[i], repeat);
			measure_copy(pieces[i], repeat);
			measure_fork(pieces[i], repeat);
		}
	}
	return EXIT_OK;
}
