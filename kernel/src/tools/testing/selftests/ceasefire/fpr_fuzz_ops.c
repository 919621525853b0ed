// SPDX-License-Identifier: GPL-2.0
/*
 * Operations of the fuzzer: what each of them does, and how often.
 *
 * What an operation does depends on the seed, the thread, its number, and on
 * what the thread has mapped; never on an address or on time. Where the kernel
 * may do one thing or another (a hint, growth in place), what comes of it is
 * the same in the end.
 *
 * Called by all threads, and by what they fork.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "env.h"
#include "fpr_fuzz.h"
#include "ktap.h"

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ	22
#endif

/* Pages that are read or written by one operation. */
#define TOUCH		8
#define FEW		16
#define MANY		64
#define CHILD_OPS	3
/* Operations of a child have numbers of their own. */
#define CHILD_FIRST	1000000

static void touch(struct fuzz_thread *t, const struct fuzz_range *r,
		  struct fuzz_record *record)
{
	size_t i, offset = fuzz_pick(t, PAGE / 8) * 8;

	for (i = 0; i < r->pages && i < TOUCH; i++) {
		const char *word = fuzz_word(t, r, i, offset);

		record->value = fuzz_mix(record->value,
					 fuzz_sum(word, 1, &record->fault));
	}
}

static void read_pages(struct fuzz_thread *t, struct fuzz_range *r,
		       struct fuzz_record *record)
{
	touch(t, r, record);
}

/* Its value says which of the pages could be written to. */
static void write_pages(struct fuzz_thread *t, struct fuzz_range *r,
			struct fuzz_record *record)
{
	size_t i, offset = fuzz_pick(t, PAGE / 8) * 8;

	for (i = 0; i < r->pages && i < TOUCH; i++)
		if (fuzz_store(fuzz_word(t, r, i, offset), fuzz_random(t),
			       &record->fault))
			record->value |= 1ULL << i;
}

static size_t pick_length(struct fuzz_thread *t)
{
	switch (fuzz_pick(t, 64)) {
	case 0:
		return FUZZ_PAGES - fuzz_pick(t, FUZZ_PAGES / 4);
	case 1 ... 4:
		return 1 + fuzz_pick(t, MANY);
	default:
		return 1 + fuzz_pick(t, FEW);
	}
}

static uint32_t pick_rights(struct fuzz_thread *t)
{
	static const uint32_t rights[] = {
		PROT_READ, PROT_READ, PROT_READ, PROT_READ | PROT_WRITE,
		PROT_READ | PROT_WRITE, PROT_READ | PROT_WRITE, PROT_NONE,
		PROT_READ | PROT_EXEC,
	};

	return rights[fuzz_pick(t, KTAP_COUNT(rights))];
}

/* What to map; of files that cannot be written to mostly something that works. */
static void pick_mapping(struct fuzz_thread *t, struct fuzz_record *record)
{
	static const enum fuzz_backing backings[] = {
		FUZZ_READ_DISK, FUZZ_READ_DISK, FUZZ_READ_DISK,
		FUZZ_READ_MEMORY, FUZZ_READ_MEMORY, FUZZ_AREA, FUZZ_OWN_DISK,
		FUZZ_OWN_DISK, FUZZ_OWN_MEMORY, FUZZ_ANON, FUZZ_ANON,
	};

	record->backing = backings[fuzz_pick(t, KTAP_COUNT(backings))];
	record->prot = pick_rights(t);
	if (record->backing <= FUZZ_READ_MEMORY && fuzz_pick(t, 4))
		record->prot = PROT_READ;
	record->flags = fuzz_pick(t, 2) ? MAP_SHARED : MAP_PRIVATE;
	if (!fuzz_pick(t, 4))
		record->flags |= MAP_POPULATE;
	if (record->backing == FUZZ_ANON)
		record->flags |= MAP_ANONYMOUS;
	else
		record->argument = fuzz_pick(t, fuzz_file_pages(record->backing));
}

static char *map(struct fuzz_thread *t, struct fuzz_record *record, void *addr,
		 size_t pages, unsigned int flags)
{
	char *p;

	if (fuzz_uses(t->arm, FUZZ_FPR))
		flags |= MAP_FPR;
	p = mmap(addr, pages * PAGE, (int)record->prot,
		 (int)(record->flags | flags), t->fd[record->backing],
		 (off_t)(record->argument * PAGE));
	record->error = p == MAP_FAILED ? errno : 0;
	return p;
}

static struct fuzz_page new_piece(struct fuzz_thread *t, uint32_t backing)
{
	return (struct fuzz_page){ backing, (uint32_t)fuzz_random(t) };
}

static void map_at(struct fuzz_thread *t, struct fuzz_range *r,
		   struct fuzz_record *record, void *hint, bool exactly)
{
	size_t pages = pick_length(t);
	char *p = MAP_FAILED;

	pick_mapping(t, record);
	if (exactly)
		p = map(t, record, hint, pages, MAP_FIXED_NOREPLACE);
	if (p == MAP_FAILED)
		p = map(t, record, hint, pages, 0);
	if (p == MAP_FAILED)
		return;
	fuzz_new_block(t, p, pages, new_piece(t, record->backing), r);
	touch(t, r, record);
}

static void map_anywhere(struct fuzz_thread *t, struct fuzz_range *r,
			 struct fuzz_record *record)
{
	map_at(t, r, record, NULL, false);
}

/* Where something was unmapped, mostly the last thing, if it is still free. */
static void map_again(struct fuzz_thread *t, struct fuzz_range *r,
		      struct fuzz_record *record)
{
	unsigned int back = fuzz_pick(t, 2) ? 1 :
			    1 + (unsigned int)fuzz_pick(t, FUZZ_HOLES);
	void *hole = t->holes[(t->next_hole - back) % FUZZ_HOLES];

	map_at(t, r, record, hole, hole && fuzz_pick(t, 2));
}

/*
 * Something else where a mapping was, as soon as that is unmapped. The CPU that
 * unmaps may flush by itself: so it is another one that may hold what is stale,
 * and the thread comes back to it.
 */
static void replace(struct fuzz_thread *t, struct fuzz_range *r,
		    struct fuzz_record *record)
{
	size_t elsewhere = fuzz_pick(t, t->cpus);
	void *hole;

	fuzz_pick_run(t, r);
	hole = r->addr;
	touch(t, r, record);
	pin_to_cpu((int)elsewhere);
	MUST(munmap(r->addr, r->pages * PAGE));
	fuzz_forget(t, r);
	map_at(t, r, record, hole, true);
	pin_to_cpu((int)t->cpu);
	if (!record->error)
		touch(t, r, record);
}

/* In the place of a mapping. */
static void map_over(struct fuzz_thread *t, struct fuzz_range *r,
		     struct fuzz_record *record)
{
	pick_mapping(t, record);
	if (map(t, record, r->addr, r->pages, MAP_FIXED) == MAP_FAILED)
		return;
	fuzz_set_pages(r, new_piece(t, record->backing));
	touch(t, r, record);
}

/* A part of a mapping, several mappings, or all up to the next hole. */
static void unmap(struct fuzz_thread *t, struct fuzz_range *r,
		  struct fuzz_record *record)
{
	if (fuzz_pick(t, 2))
		fuzz_pick_run(t, r);
	record->error = munmap(r->addr, r->pages * PAGE) ? errno : 0;
	if (!record->error)
		fuzz_forget(t, r);
}

/* Shrink, grow where it is or elsewhere. */
static void remap(struct fuzz_thread *t, struct fuzz_range *r,
		  struct fuzz_record *record)
{
	struct fuzz_page page = r->block->page[r->first];
	size_t pages = 1 + fuzz_pick(t, 2 * FEW);
	struct fuzz_range rest;
	char *p = MAP_FAILED;

	fuzz_one_piece(r);
	record->argument = pages;
	if (fuzz_pick(t, 2))
		p = mremap(r->addr, r->pages * PAGE, pages * PAGE, 0);
	if (p == MAP_FAILED)
		p = mremap(r->addr, r->pages * PAGE, pages * PAGE,
			   MREMAP_MAYMOVE);
	if (p == MAP_FAILED) {
		record->error = errno;
		return;
	}
	rest = *r;
	if (pages > r->pages) {
		fuzz_forget(t, &rest);
		fuzz_new_block(t, p, pages, page, r);
	} else if (pages < r->pages) {
		rest.addr += pages * PAGE;
		rest.first += pages;
		rest.pages -= pages;
		fuzz_forget(t, &rest);
		r->pages = pages;
	}
	touch(t, r, record);
}

static bool overlap(const struct fuzz_range *a, const struct fuzz_range *b)
{
	return a->block == b->block && a->first < b->first + b->pages &&
	       b->first < a->first + a->pages;
}

/* In the place of another mapping, which this CPU may have stale; see replace(). */
static void remap_over(struct fuzz_thread *t, struct fuzz_range *r,
		       struct fuzz_record *record)
{
	struct fuzz_page page = r->block->page[r->first];
	size_t elsewhere = fuzz_pick(t, t->cpus);
	struct fuzz_range to;

	fuzz_one_piece(r);
	fuzz_pick_range(t, FEW, &to);
	if (overlap(r, &to))
		return;
	record->argument = to.pages;
	touch(t, &to, record);
	pin_to_cpu((int)elsewhere);
	record->error = mremap(r->addr, r->pages * PAGE, to.pages * PAGE,
			       MREMAP_MAYMOVE | MREMAP_FIXED, to.addr) ==
			MAP_FAILED ? errno : 0;
	pin_to_cpu((int)t->cpu);
	if (record->error) {
		fuzz_forget(t, &to);
		return;
	}
	fuzz_forget(t, r);
	fuzz_set_pages(&to, page);
	*r = to;
	touch(t, r, record);
}

static void protect(struct fuzz_thread *t, struct fuzz_range *r,
		    struct fuzz_record *record)
{
	uint32_t split = (uint32_t)fuzz_random(t);
	size_t i;

	record->prot = pick_rights(t);
	record->error = mprotect(r->addr, r->pages * PAGE, (int)record->prot) ?
			errno : 0;
	/* Maybe a mapping less than they were, never more. */
	for (i = 0; i < r->pages; i++)
		r->block->page[r->first + i].piece ^= split;
	if (fuzz_pick(t, 2))
		touch(t, r, record);
}

static void advise(struct fuzz_thread *t, struct fuzz_range *r,
		   struct fuzz_record *record)
{
	static const int advices[] = {
		MADV_DONTNEED, MADV_DONTNEED, MADV_WILLNEED, MADV_COLD,
		MADV_PAGEOUT, MADV_PAGEOUT, MADV_FREE, MADV_POPULATE_READ,
		MADV_REMOVE,
	};
	int advice = advices[fuzz_pick(t, KTAP_COUNT(advices))];

	record->argument = (uint64_t)advice;
	/* That would be for all threads. */
	if (advice == MADV_REMOVE)
		fuzz_no_area(r);
	record->error = madvise(r->addr, r->pages * PAGE, advice) ? errno : 0;
	/* Pages may be gone or not until then. */
	if (advice == MADV_FREE)
		MUST(madvise(r->addr, r->pages * PAGE, MADV_DONTNEED));
	if (fuzz_pick(t, 2))
		touch(t, r, record);
}

static void sync_pages(struct fuzz_thread *t, struct fuzz_range *r,
		       struct fuzz_record *record)
{
	static const int flags[] = { MS_ASYNC, MS_SYNC, MS_SYNC | MS_INVALIDATE };

	record->flags = (uint32_t)flags[fuzz_pick(t, KTAP_COUNT(flags))];
	record->error = msync(r->addr, r->pages * PAGE, (int)record->flags) ?
			errno : 0;
}

/* Stale translations stay behind. */
static void move(struct fuzz_thread *t, struct fuzz_range *r,
		 struct fuzz_record *record)
{
	(void)r;
	(void)record;
	t->cpu = (unsigned int)fuzz_pick(t, t->cpus);
	pin_to_cpu((int)t->cpu);
}

/* What it finds out goes to the record of the thread, which is shared. */
__attribute__((noreturn))
static void child(struct fuzz_thread *t)
{
	struct fuzz_record *record = t->record;
	uint64_t sum = 0;
	unsigned int i;
	size_t word;

	t->child = true;
	t->operation += CHILD_FIRST;
	for (i = 0; i < CHILD_OPS; i++) {
		union {
			struct fuzz_record record;
			uint64_t words[sizeof(struct fuzz_record) / 8];
		} inner = { 0 };

		fuzz_operation(t, &inner.record);
		for (word = 0; word < KTAP_COUNT(inner.words); word++)
			sum = fuzz_mix(sum, inner.words[word]);
		t->operation += CHILD_FIRST;
	}
	record->value = fuzz_mix(sum, fuzz_sum_blocks(t, 4));
	_exit(0);
}

/* The child goes on by itself for a moment, and tells what it has seen. */
static void fork_child(struct fuzz_thread *t, struct fuzz_range *r,
		       struct fuzz_record *record)
{
	int status;
	pid_t pid;

	(void)r;
	if (t->child)
		return;
	pid = (pid_t)MUST(fork());
	if (!pid)
		child(t);
	MUST(waitpid(pid, &status, 0));
	record->argument = (uint64_t)status;
	record->value = t->record->value;
}

/* @most: pages of the range that the operation gets, 0: none. */
static const struct {
	const char *name;
	fuzz_call *call;
	unsigned int weight;
	size_t most;
} ops[] = {
	{ "mmap", map_anywhere, 36, 0 },
	{ "mmap at an old address", map_again, 12, 0 },
	{ "munmap, mmap there", replace, 16, MANY },
	{ "mmap MAP_FIXED", map_over, 8, MANY },
	{ "munmap", unmap, 28, MANY },
	{ "mremap", remap, 12, FEW },
	{ "mremap MREMAP_FIXED", remap_over, 10, FEW },
	{ "mprotect", protect, 8, MANY },
	{ "madvise", advise, 16, MANY },
	{ "msync", sync_pages, 3, MANY },
	{ "read", read_pages, 36, MANY },
	{ "write", write_pages, 24, MANY },
	{ "pread into memory", fuzz_pread, 8, FEW },
	{ "pwrite from memory", fuzz_pwrite, 6, FEW },
	{ "ftruncate", fuzz_truncate, 4, 0 },
	{ "fallocate", fuzz_punch, 4, 0 },
	{ "posix_fadvise", fuzz_fadvise, 3, 0 },
	{ "drop_caches", fuzz_drop_caches, 1, 0 },
	{ "clear_refs", fuzz_clear_refs, 2, 0 },
	{ "reclaim", fuzz_reclaim, 2, 0 },
	{ "sched_setaffinity", move, 12, 0 },
	{ "fork", fork_child, 3, 0 },
};

const char *fuzz_op_name(uint32_t op)
{
	return op && op <= KTAP_COUNT(ops) ? ops[op - 1].name : "end";
}

static size_t pick_op(struct fuzz_thread *t)
{
	size_t i, all = 0, at;

	for (i = 0; i < KTAP_COUNT(ops); i++)
		all += ops[i].weight;
	at = fuzz_pick(t, all);
	for (i = 0; at >= ops[i].weight; i++)
		at -= ops[i].weight;
	return i;
}

/* Do operation t->operation. The record is zero, and written to last. */
void fuzz_operation(struct fuzz_thread *t, struct fuzz_record *record)
{
	struct fuzz_record now = { 0 };
	struct fuzz_range r = { .block = t->blocks };
	size_t op;

	t->record = record;
	t->random = fuzz_mix(fuzz_mix(t->seed, t->number), t->operation);
	fuzz_make_room(t);
	op = pick_op(t);
	/* Nothing is mapped: then that comes first. */
	if (ops[op].most && !fuzz_pick_range(t, ops[op].most, &r))
		op = 0;
	now.op = (uint32_t)op + 1;
	ops[op].call(t, &r, &now);
	now.block = (uint32_t)(r.block - t->blocks);
	now.first = (uint32_t)r.first;
	now.pages = (uint32_t)r.pages;
	*record = now;
}
