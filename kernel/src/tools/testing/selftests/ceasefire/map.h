/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Mappings under attack: made with MAP_FPR, taken away with a munmap of which
 * the test knows whether it flushed.
 */
#ifndef CEASEFIRE_SELFTEST_MAP_H
#define CEASEFIRE_SELFTEST_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "file.h"

/* Settings under which debts stay owed until something else settles them. */
void hold_debts(void);

/*
 * mmap with MAP_FPR, of anonymous memory if @f is NULL; fails the case unless
 * the kernel counts it as such. In lazy processes it passes no flag.
 */
void *fpr_map(const struct tfile *f, size_t first, size_t pages, int prot,
	      int flags);
/*
 * munmap of a mapping that may skip; true if it did. The kernel flushes the
 * first time that it sees frames of a memory section, for which it then makes
 * room to note who holds them, while the peer does not run, and while it changes
 * other entries of the process; any other reason for a flush fails the case.
 */
bool fpr_unmap(void *addr, size_t pages);
/* The same where a skip is certain. */
void fpr_unmap_skips(void *addr, size_t pages);
/* munmap that must really have flushed. */
void fpr_unmap_flushes(void *addr, size_t pages);

/*
 * Leave stale translations: map the pages, have the peer read them, unmap with
 * a skip. Repeated until the peer still reads the file's byte through them (a
 * process that ran on its CPU in between would have flushed them); returns the
 * address, at which nothing is mapped.
 */
void *leave_stale(const struct tfile *f, size_t first, size_t pages, int prot,
		  int flags, unsigned char byte);

/* leave_stale() of a whole file, whose frames are parked then. */
char *park_stale(const struct tfile *f, size_t pages, unsigned char byte);

/*
 * The same with translations that write, where nothing is mapped: the peer has
 * written @word through them. Private memory, of @f or anonymous.
 */
char *leave_writable(const struct tfile *f, size_t pages, uint64_t word);

/* So many that an attack is one: a TLB does not hold everything. */
bool holds_enough(size_t held, size_t pages);
/* leave_stale() without a look at what the peer holds. */
void *leave_skipped(const struct tfile *f, size_t first, size_t pages);

/* A full flush of this process, which has touched memory on all its CPUs. */
void full_flush(void);
/* A flush of one page elsewhere. */
void partial_flush(void);

/* Frame number behind a mapped address; 0: none, or not root. */
uint64_t frame_of(const void *addr);
/* The same for each page from there on, read at once. */
void frames_of(const void *addr, size_t pages, uint64_t *frames);
/* KPF_* bits of the frame. */
uint64_t frame_flags(uint64_t frame);

#endif
