/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The fuzzer: what its files share. fpr_fuzz.c says what it is about.
 *
 *   fpr_fuzz.c		options, rounds, the verdict
 *   fpr_fuzz_run.c	one run of a plan in a process of its own; comparison
 *   fpr_fuzz_ops.c	operations on memory
 *   fpr_fuzz_files.c	files, and operations on them
 *   fpr_fuzz_blocks.c	what a thread has mapped
 *   fpr_fuzz_access.c	accesses that survive faults
 *   fpr_fuzz_report.c	what differs, in words, and in fewer operations
 */
#ifndef CEASEFIRE_SELFTEST_FPR_FUZZ_H
#define CEASEFIRE_SELFTEST_FPR_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define FUZZ_THREADS	16
#define FUZZ_BLOCKS	16
#define FUZZ_HOLES	8
/* More than one page table has; a mapping of that size is aligned to it. */
#define FUZZ_PAGES	640
/* Of a file of a thread; mappings go beyond. */
#define FUZZ_OWN_PAGES	64
/* Bytes of each page of the area that are of one thread. */
#define FUZZ_AREA_STRIDE	64

enum fuzz_backing {
	FUZZ_HOLE,
	FUZZ_READ_DISK,		/* read only, the same for all threads */
	FUZZ_READ_MEMORY,
	FUZZ_AREA,		/* all threads write, each its own words */
	FUZZ_OWN_DISK,		/* of the thread */
	FUZZ_OWN_MEMORY,
	FUZZ_ANON,
	FUZZ_BACKINGS,
};

/* What a process uses while it goes through a plan. */
enum fuzz_arm {
	FUZZ_PLAIN,
	FUZZ_FPR,
	FUZZ_LATR,
	FUZZ_SHARERS,
	FUZZ_ABIS,
	FUZZ_ALL,		/* the four of them */
	FUZZ_ARMS,
};

static inline bool fuzz_uses(enum fuzz_arm arm, enum fuzz_arm mechanism)
{
	return arm == mechanism || arm == FUZZ_ALL;
}

/* Everything that a run depends on, but for the timing and the arm. */
struct fuzz_plan {
	uint64_t seed;
	unsigned int threads;
	/* Those before @first are left out: each draws its own random numbers. */
	unsigned int first, operations;
};

/* A fault: what the signal said, its address relative to the access. */
struct fuzz_fault {
	int32_t signal, code;
	uint64_t at;
};

/*
 * What one operation did and what came of it; nothing that depends on the
 * address. Compared as bytes, so without padding.
 */
struct fuzz_record {
	uint32_t op;		/* number in the table plus 1; 0: not reached */
	uint32_t block, first, pages;
	uint32_t backing, prot, flags;
	int32_t error;
	uint64_t argument;
	struct fuzz_fault fault;
	uint64_t value;		/* number returned, or sum of what was read */
};

/* Pages of the same piece are one mapping for the kernel, if they touch. */
struct fuzz_page {
	uint32_t backing, piece;
};

/* Addresses that one call has given us; each page belongs to one block only. */
struct fuzz_block {
	char *addr;
	size_t pages, mapped;
	struct fuzz_page page[FUZZ_PAGES];
};

/* Pages of a block, none of them a hole. */
struct fuzz_range {
	struct fuzz_block *block;
	size_t first, pages;
	char *addr;
};

struct fuzz_thread {
	unsigned int number, operation, cpus, cpu;
	enum fuzz_arm arm;
	bool child;
	uint64_t seed, random;
	struct fuzz_record *record;
	int fd[FUZZ_BACKINGS];
	struct fuzz_block blocks[FUZZ_BLOCKS];
	/* Where something was unmapped; others may have taken the place. */
	void *holes[FUZZ_HOLES];
	unsigned int next_hole;
};

/*
 * The first difference between two halves, without a mechanism and with @arm;
 * the operation behind the last one is the end.
 */
struct fuzz_difference {
	enum fuzz_arm arm;
	bool found;
	unsigned int thread, operation;
	int status[2];
};

static inline uint64_t fuzz_mix(uint64_t a, uint64_t b)
{
	a = (a ^ b) + 0x9e3779b97f4a7c15ULL;
	a = (a ^ a >> 30) * 0xbf58476d1ce4e5b9ULL;
	a = (a ^ a >> 27) * 0x94d049bb133111ebULL;
	return a ^ a >> 31;
}

static inline uint64_t fuzz_random(struct fuzz_thread *t)
{
	t->random = fuzz_mix(t->random, 1);
	return t->random;
}

static inline size_t fuzz_pick(struct fuzz_thread *t, size_t below)
{
	return fuzz_random(t) % below;
}

/* fpr_fuzz_access.c */
void fuzz_catch_faults(void);
uint64_t fuzz_sum(const void *addr, size_t words, struct fuzz_fault *fault);
bool fuzz_store(void *addr, uint64_t word, struct fuzz_fault *fault);

/* fpr_fuzz_blocks.c */
void fuzz_make_room(struct fuzz_thread *t);
bool fuzz_pick_range(struct fuzz_thread *t, size_t most, struct fuzz_range *r);
bool fuzz_pick_run(struct fuzz_thread *t, struct fuzz_range *r);
void fuzz_one_piece(struct fuzz_range *r);
void fuzz_no_area(struct fuzz_range *r);
void fuzz_new_block(struct fuzz_thread *t, void *addr, size_t pages,
		    struct fuzz_page page, struct fuzz_range *r);
void fuzz_set_pages(struct fuzz_range *r, struct fuzz_page page);
void fuzz_forget(struct fuzz_thread *t, struct fuzz_range *r);
char *fuzz_word(const struct fuzz_thread *t, const struct fuzz_range *r,
		size_t page, size_t offset);
uint64_t fuzz_sum_blocks(const struct fuzz_thread *t, size_t words);

/* fpr_fuzz_files.c */
typedef void fuzz_call(struct fuzz_thread *t, struct fuzz_range *r,
		       struct fuzz_record *record);

void fuzz_shared_files(void);
void fuzz_area(void);
void fuzz_own_files(struct fuzz_thread *t);
size_t fuzz_file_pages(enum fuzz_backing backing);
uint64_t fuzz_sum_files(const struct fuzz_thread *t);
fuzz_call fuzz_pread, fuzz_pwrite, fuzz_truncate, fuzz_punch, fuzz_fadvise,
	  fuzz_drop_caches, fuzz_clear_refs, fuzz_reclaim;

/* fpr_fuzz_ops.c */
void fuzz_operation(struct fuzz_thread *t, struct fuzz_record *record);
const char *fuzz_op_name(uint32_t op);

/* fpr_fuzz_run.c */
/* As the tools call it: off, fpr, latr. */
const char *fuzz_arm_name(enum fuzz_arm arm);
void fuzz_start(unsigned int threads, unsigned int operations);
struct fuzz_record *fuzz_recorded(unsigned int half, unsigned int thread,
				  unsigned int operation);
int fuzz_half(const struct fuzz_plan *plan, unsigned int half,
	      enum fuzz_arm arm);
void fuzz_compare(const struct fuzz_plan *plan, struct fuzz_difference *d);

/* fpr_fuzz_report.c */
void fuzz_report(const struct fuzz_plan *plan,
		 const struct fuzz_difference *d);
void fuzz_shrink(const struct fuzz_plan *plan, const struct fuzz_difference *d);

#endif
