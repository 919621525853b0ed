// SPDX-License-Identifier: GPL-2.0
/*
 * Operations of the fuzzer of morsels, each of which a memfd does as well. What one does
 * depends on nothing but random numbers of its process, and stays in pages that are its
 * process' own; so what comes of it does not depend on what others do.
 *
 * Called by the processes of morsel_fuzz_run.c.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "env.h"
#include "ktap.h"
#include "morsel_fuzz.h"
#include "morsels.h"

/* Through a buffer, or by one access after the other. */
#define MOST_PAGES	16
#define MOST_BYTES	(MOST_PAGES * PAGE)
#define RANGES		8

static uint64_t buffer[MOST_BYTES / sizeof(uint64_t)] __attribute__((aligned(4096)));

/* Pages of the process, @most of them or fewer; the record says which. */
struct morsel_range mfuzz_pages(struct mfuzz_process *p, uint64_t most)
{
	const struct mfuzz_layout *l = p->layout;
	const struct mfuzz_run *run;
	uint64_t first, pages;

	do
		run = &l->run[mfuzz_pick(p, l->nr)];
	while (run->owner != p->number);
	pages = 1 + mfuzz_pick(p, run->pages < most ? run->pages : most);
	/* Often all of it: the ends of tables are in there. */
	if (run->pages <= most && !mfuzz_pick(p, 3))
		pages = run->pages;
	first = mfuzz_pick(p, run->pages - pages + 1);
	p->record->offset = (run->first + first) * PAGE;
	p->record->length = pages * PAGE;
	return (struct morsel_range){ p->record->offset, p->record->length };
}

/* The same, and often neither begin nor end are those of a page. */
static struct morsel_range pick_bytes(struct mfuzz_process *p, uint64_t most)
{
	struct morsel_range r = mfuzz_pages(p, most);
	uint64_t cut;

	if (mfuzz_pick(p, 2))
		return r;
	cut = 8 * mfuzz_pick(p, PAGE / 16);
	r.offset += cut;
	r.length -= cut + 8 * mfuzz_pick(p, PAGE / 16);
	p->record->offset = r.offset;
	p->record->length = r.length;
	return r;
}

void mfuzz_result(struct mfuzz_process *p, long value)
{
	if (value == -1)
		p->record->error = errno;
	else
		p->record->value = fuzz_mix(p->record->value, (uint64_t)value);
}

static void sum_buffer(struct mfuzz_process *p, size_t bytes)
{
	size_t i;

	for (i = 0; i < bytes / sizeof(uint64_t); i++)
		p->record->value = fuzz_mix(p->record->value, buffer[i]);
}

static void fill_buffer(struct mfuzz_process *p, size_t bytes)
{
	size_t i;

	for (i = 0; i < bytes / sizeof(uint64_t); i++)
		buffer[i] = mfuzz_random(p);
}

static void op_write(struct mfuzz_process *p)
{
	struct morsel_range r = mfuzz_pages(p, 64);
	uint64_t at;

	for (at = 0; at < r.length; at += PAGE) {
		uint64_t word = 8 * mfuzz_pick(p, PAGE / 8);

		p->record->value += fuzz_store(p->map + r.offset + at + word,
					       mfuzz_random(p), &p->record->fault);
	}
}

static void op_read(struct mfuzz_process *p)
{
	struct morsel_range r = mfuzz_pages(p, 64);

	p->record->value = fuzz_sum(p->map + r.offset, r.length / sizeof(uint64_t),
				    &p->record->fault);
}

static void op_pwrite(struct mfuzz_process *p)
{
	struct morsel_range r = pick_bytes(p, MOST_PAGES);

	fill_buffer(p, r.length);
	mfuzz_result(p, pwrite(p->fd, buffer, r.length, (off_t)r.offset));
}

static void op_pread(struct mfuzz_process *p)
{
	struct morsel_range r = pick_bytes(p, MOST_PAGES);

	mfuzz_result(p, pread(p->fd, buffer, r.length, (off_t)r.offset));
	sum_buffer(p, r.length);
}

/* One call for ranges; a memfd has none, and does one after the other. */
static long depopulate(struct mfuzz_process *p, struct morsel_range *ranges,
		       unsigned int nr, unsigned int flags)
{
	struct morsel_vec vec = {
		.ranges = (uintptr_t)ranges, .nr = nr, .flags = flags,
	};
	unsigned int i;

	if (p->arm != MFUZZ_MEMFD)
		return ioctl(p->fd, MORSEL_IOC_DEPOPULATE, &vec);
	for (i = 0; i < nr; i++)
		if (fallocate(p->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
			      (off_t)ranges[i].offset, (off_t)ranges[i].length))
			return -1;
	return 0;
}

static void op_depopulate(struct mfuzz_process *p)
{
	struct morsel_range r = pick_bytes(p, 1024);

	mfuzz_result(p, depopulate(p, &r, 1, mfuzz_pick(p, 2) ? MORSEL_ASYNC : 0));
}

static void op_vector(struct mfuzz_process *p)
{
	struct morsel_range ranges[RANGES];
	unsigned int i;

	for (i = 0; i < RANGES; i++)
		ranges[i] = pick_bytes(p, 256);
	mfuzz_result(p, depopulate(p, ranges, RANGES, mfuzz_pick(p, 2) ? MORSEL_ASYNC : 0));
}

/* What was given up is defined again when it was populated. */
static void op_give_up(struct mfuzz_process *p)
{
	struct morsel_range r = mfuzz_pages(p, 256);
	struct morsel_vec vec = { .ranges = (uintptr_t)&r, .nr = 1 };

	mfuzz_result(p, depopulate(p, &r, 1, p->arm == MFUZZ_LAZY ? MORSEL_LAZY : 0));
	if (p->arm != MFUZZ_MEMFD)
		mfuzz_result(p, ioctl(p->fd, MORSEL_IOC_POPULATE, &vec));
	else
		mfuzz_result(p, fallocate(p->fd, FALLOC_FL_KEEP_SIZE, (off_t)r.offset,
					  (off_t)r.length));
}

static void op_punch(struct mfuzz_process *p)
{
	struct morsel_range r = pick_bytes(p, 1024);

	mfuzz_result(p, fallocate(p->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
				  (off_t)r.offset, (off_t)r.length));
}

static void op_remove(struct mfuzz_process *p)
{
	struct morsel_range r = mfuzz_pages(p, 1024);

	mfuzz_result(p, madvise(p->map + r.offset, r.length, MADV_REMOVE));
}

/* Those that a file of memory may have or not: the same here. */
static void op_fallocate(struct mfuzz_process *p)
{
	static const int modes[] = {
		0, 0, 0, FALLOC_FL_KEEP_SIZE, FALLOC_FL_ZERO_RANGE,
		FALLOC_FL_COLLAPSE_RANGE, FALLOC_FL_INSERT_RANGE,
		FALLOC_FL_PUNCH_HOLE, FALLOC_FL_UNSHARE_RANGE,
	};
	struct morsel_range r = pick_bytes(p, 1024);

	mfuzz_result(p, fallocate(p->fd, modes[mfuzz_pick(p, KTAP_COUNT(modes))],
				  (off_t)r.offset, (off_t)r.length));
}

static void op_advise(struct mfuzz_process *p)
{
	static const int advice[] = {
		MADV_POPULATE_READ, MADV_POPULATE_WRITE, MADV_DONTNEED,
		MADV_WILLNEED, MADV_COLD, MADV_PAGEOUT, MADV_FREE,
		MADV_RANDOM, MADV_NORMAL,
	};
	size_t which = mfuzz_pick(p, KTAP_COUNT(advice));
	struct morsel_range r = mfuzz_pages(p, 1024);

	/* Of a morsel, as its mappings, only as a whole. */
	if (advice[which] == MADV_RANDOM || advice[which] == MADV_NORMAL)
		r = (struct morsel_range){ 0, p->layout->size };
	mfuzz_result(p, madvise(p->map + r.offset, r.length, advice[which]));
}

void mfuzz_map(struct mfuzz_process *p)
{
	p->map = mmap(mfuzz_hint(p->layout), p->layout->size, p->prot, MAP_SHARED, p->fd, 0);
	ENSURE(p->map != MAP_FAILED, "mmap: %m");
}

static void op_remap(struct mfuzz_process *p)
{
	static const int prots[] = {
		PROT_READ | PROT_WRITE, PROT_READ | PROT_WRITE, PROT_READ,
		PROT_NONE,
	};

	MUST(munmap(p->map, p->layout->size));
	p->prot = prots[mfuzz_pick(p, KTAP_COUNT(prots))];
	mfuzz_map(p);
}

static void op_protect(struct mfuzz_process *p)
{
	static const int prots[] = {
		PROT_READ | PROT_WRITE, PROT_READ | PROT_WRITE, PROT_READ,
		PROT_NONE,
	};
	int prot = prots[mfuzz_pick(p, KTAP_COUNT(prots))];

	p->record->length = (uint64_t)prot;
	MUST(mprotect(p->map, p->layout->size, prot));
	p->prot = prot;
}

/* Somewhere else, at an address that a mapping has just had. */
static void op_move(struct mfuzz_process *p)
{
	size_t size = p->layout->size;
	char *to = mmap(mfuzz_hint(p->layout), size, PROT_READ, MAP_SHARED, p->fd, 0);

	ENSURE(to != MAP_FAILED, "mmap: %m");
	if (mfuzz_pick(p, 2))
		MUST(munmap(to, size));
	to = mremap(p->map, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, to);
	ENSURE(to != MAP_FAILED, "mremap: %m");
	p->map = to;
}

static void op_second(struct mfuzz_process *p)
{
	size_t size = p->layout->size;
	char *map = mmap(mfuzz_hint(p->layout), size, PROT_READ, MAP_SHARED, p->fd, 0);
	struct morsel_range r = mfuzz_pages(p, 64);

	ENSURE(map != MAP_FAILED, "mmap: %m");
	p->record->value = fuzz_sum(map + r.offset, r.length / sizeof(uint64_t),
				    &p->record->fault);
	/* Not where it is writable by another one. */
	fuzz_store(map + r.offset, 1, &p->record->fault);
	MUST(munmap(map, size));
}

/* A child has the mapping, and writes by it; the parent reads that. */
static void op_fork(struct mfuzz_process *p)
{
	struct morsel_range r = mfuzz_pages(p, MOST_PAGES);
	uint64_t at, seed = mfuzz_random(p);
	int status;
	pid_t pid;

	pid = (pid_t)MUST(fork());
	if (!pid) {
		struct fuzz_fault fault = { };
		bool written = true;

		for (at = 0; at < r.length; at += PAGE)
			written &= fuzz_store(p->map + r.offset + at,
					      fuzz_mix(seed, at), &fault);
		_exit(written ? 0 : fault.signal);
	}
	MUST(waitpid(pid, &status, 0));
	p->record->value = fuzz_sum(p->map + r.offset, r.length / sizeof(uint64_t),
				    &p->record->fault);
	p->record->error = status;
}

/* The kernel reads from the mapping and writes to it, with a page that faults. */
static void op_pipe(struct mfuzz_process *p)
{
	struct morsel_range r = pick_bytes(p, 8);
	long n;

	n = write(p->ends[1], p->map + r.offset, r.length);
	mfuzz_result(p, n);
	if (n <= 0)
		return;
	if (mfuzz_pick(p, 2)) {
		n = read(p->ends[0], buffer, (size_t)n);
		sum_buffer(p, (size_t)n);
		return;
	}
	r = mfuzz_pages(p, 1);
	if (n > (long)r.length)
		n = (long)r.length;
	mfuzz_result(p, read(p->ends[0], p->map + r.offset, (size_t)n));
	/* What is left of it. */
	fcntl(p->ends[0], F_SETFL, O_NONBLOCK);
	while (read(p->ends[0], buffer, sizeof(buffer)) > 0)
		;
	fcntl(p->ends[0], F_SETFL, 0);
}

/* The device reads from its pages and writes to them: they are pinned. */
static void op_direct(struct mfuzz_process *p)
{
	struct morsel_range r = mfuzz_pages(p, MOST_PAGES);

	if (mfuzz_pick(p, 2)) {
		mfuzz_result(p, pwrite(p->disk, p->map + r.offset, r.length, 0));
		return;
	}
	/* There are always so many in the file. */
	mfuzz_result(p, pread(p->disk, p->map + r.offset, r.length, 0));
}

/* As a debugger does it. */
static void op_remote(struct mfuzz_process *p)
{
	struct iovec here = { .iov_base = buffer }, there;
	struct morsel_range r = pick_bytes(p, MOST_PAGES);

	here.iov_len = r.length;
	there.iov_len = r.length;
	there.iov_base = p->map + r.offset;
	if (mfuzz_pick(p, 2)) {
		fill_buffer(p, r.length);
		mfuzz_result(p, process_vm_writev(getpid(), &here, 1, &there, 1, 0));
		return;
	}
	memset(buffer, 0, r.length);
	mfuzz_result(p, process_vm_readv(getpid(), &here, 1, &there, 1, 0));
	sum_buffer(p, r.length);
}

/* Also where the mapping has no right to it; not for one that is shared. */
static void op_forced(struct mfuzz_process *p)
{
	int fd = (int)MUST(open("/proc/self/mem", O_RDWR | O_CLOEXEC));
	struct morsel_range r = pick_bytes(p, 4);

	fill_buffer(p, r.length);
	mfuzz_result(p, pwrite(fd, buffer, r.length, (off_t)(uintptr_t)p->map + (off_t)r.offset));
	close(fd);
}

static void op_sync(struct mfuzz_process *p)
{
	struct morsel_range r = mfuzz_pages(p, 1024);

	mfuzz_result(p, mfuzz_pick(p, 2) ? fsync(p->fd) :
		     msync(p->map + r.offset, r.length, MS_SYNC));
}

/* Pages of zeroes go, and nothing else; see morsel_steal.c. */
static void op_press(struct mfuzz_process *p)
{
	(void)p;
	write_text("/proc/sys/vm/drop_caches", "2");
}

static const struct {
	const char *name;
	void (*run)(struct mfuzz_process *p);
	unsigned int weight;
} operations[] = {
	{ "write", op_write, 8 },
	{ "read", op_read, 8 },
	{ "pwrite", op_pwrite, 3 },
	{ "pread", op_pread, 3 },
	{ "depopulate", op_depopulate, 4 },
	{ "depopulate a vector", op_vector, 3 },
	{ "give up and populate", op_give_up, 4 },
	{ "punch a hole", op_punch, 2 },
	{ "MADV_REMOVE", op_remove, 2 },
	{ "fallocate", op_fallocate, 2 },
	{ "madvise", op_advise, 3 },
	{ "unmap and map", op_remap, 1 },
	{ "mprotect", op_protect, 2 },
	{ "mremap", op_move, 1 },
	{ "map once more", op_second, 1 },
	{ "fork", op_fork, 1 },
	{ "pipe", op_pipe, 2 },
	{ "O_DIRECT", op_direct, 2 },
	{ "process_vm_readv", op_remote, 2 },
	{ "/proc/self/mem", op_forced, 1 },
	{ "sync", op_sync, 1 },
	{ "memory is short", op_press, 1 },
	{ "copy", mfuzz_copy, 1 },
	{ "read the copy", mfuzz_copy_read, 3 },
	{ "write to the copy", mfuzz_copy_write, 3 },
	{ "punch a hole in the copy", mfuzz_copy_punch, 2 },
};

#define CLEARS	(KTAP_COUNT(operations) + 1)

const char *mfuzz_op_name(uint32_t op)
{
	if (op == CLEARS)
		return "all is taken away, or a part";
	return op && op <= KTAP_COUNT(operations) ? operations[op - 1].name :
	       "the end";
}

void mfuzz_operation(struct mfuzz_process *p)
{
	unsigned int all = 0, which;
	size_t i;

	for (i = 0; i < KTAP_COUNT(operations); i++)
		all += operations[i].weight;
	which = (unsigned int)mfuzz_pick(p, all);
	for (i = 0; which >= operations[i].weight; i++)
		which -= operations[i].weight;
	operations[i].run(p);
	p->record->op = (uint32_t)i + 1;
}

void mfuzz_noise(struct mfuzz_process *p)
{
	const struct mfuzz_layout *l = p->layout;
	const struct mfuzz_run *run = &l->run[mfuzz_pick(p, l->nr)];
	char *at = p->map + (run->first + mfuzz_pick(p, run->pages)) * PAGE;
	struct fuzz_fault fault = { };

	fuzz_sum(at, 1, &fault);
	if (!mfuzz_pick(p, 8))
		madvise(at, PAGE, MADV_POPULATE_READ);
}

void mfuzz_clear(struct mfuzz_process *p)
{
	uint64_t size = p->layout->size, units = size / p->layout->unit;
	struct morsel_range all = { 0, size };
	uint64_t keep;

	p->record->op = CLEARS;
	/* Or all that is there stays as it is. */
	switch (mfuzz_pick(p, 3)) {
	case 0:
		keep = 1 + mfuzz_pick(p, units - 1);
		p->record->offset = keep * p->layout->unit;
		mfuzz_result(p, ftruncate(p->fd, (off_t)(keep * p->layout->unit)));
		mfuzz_result(p, ftruncate(p->fd, (off_t)size));
		break;
	case 1:
		p->record->length = size;
		mfuzz_result(p, depopulate(p, &all, 1, MORSEL_ASYNC));
		break;
	}
}

uint64_t mfuzz_sum_all(struct mfuzz_process *p)
{
	const struct mfuzz_layout *l = p->layout;
	uint64_t sum = 0;
	unsigned int i;

	for (i = 0; i < l->nr; i++)
		sum = fuzz_mix(sum, fuzz_sum(p->map + l->run[i].first * PAGE,
					     l->run[i].pages * PAGE / sizeof(uint64_t),
					     &p->record->fault));
	return sum;
}
