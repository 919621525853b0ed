/* SPDX-License-Identifier: GPL-2.0 */
/* Morsels of a case: made, mapped, populated and depopulated. */
#ifndef CEASEFIRE_SELFTEST_MORSELS_H
#define CEASEFIRE_SELFTEST_MORSELS_H

#include <errno.h>
#include <stddef.h>
#include <stdint.h>

#include "../../../../include/uapi/linux/morsel.h"
#include "env.h"

#define UNIT	(2 * MIB)
#define TIB	(1ULL << 40)

/* Of which there are units, and how many of them: that of 256 TiB needs five levels. */
extern const uint64_t morsel_units[4];
size_t morsel_nr_units(void);
/* Skips the case without it. */
void morsel_need_256_tib(void);

/* The call fails with this error. */
#define REFUSED(call, error)						\
	do {								\
		errno = 0;						\
		ENSURE((long)(call) == -1 && errno == (error),		\
		       "%s: %m instead of %s", #call, #error);		\
	} while (0)

/* A new one of a size, with the unit that the kernel takes; skips without morsels. */
int morsel_make(uint64_t size);
/* The same with a unit. */
int morsel_make_of(uint64_t size, uint64_t unit);
/* The same, and its pages have 2 MiB. */
int morsel_make_huge(uint64_t size, uint64_t unit);
/* The same with others, and it allows to give up memory without a flush. */
int morsel_make_lazy(uint64_t size, uint64_t unit);
/* The same object by a descriptor that only reads. */
int morsel_reader(int fd);
/* Map all of it; fails the case. */
char *morsel_map(int fd, uint64_t size, int prot);
/* An address where nothing is for that size, which is a multiple of the unit; it is reserved. */
char *morsel_room(uint64_t size, uint64_t unit);
/* 0, or a negative errno. */
int morsel_populate(int fd, uint64_t offset, uint64_t length);
int morsel_depopulate(int fd, uint64_t offset, uint64_t length);
/* The same, and others give the memory back. */
int morsel_leave(int fd, uint64_t offset, uint64_t length);
/* The same without a flush, where that is possible. */
int morsel_give_up(int fd, uint64_t offset, uint64_t length);
/*
 * An epoch waits for CPU 2, which spins and whose tick pays nothing: what is given up after this
 * is in one that has not ended. No other CPU is behind, so that a flush of a few pages is no flush
 * of everything there. The page at the offset goes.
 */
void morsel_epoch_waits(int fd, uint64_t offset);
/* A copy of it as it is now, by FICLONE. */
int morsel_copy(int fd);
int morsel_vector(int fd, unsigned long request,
		  const struct morsel_range *ranges, unsigned int nr,
		  uint64_t *done);
struct morsel_stat morsel_stat(int fd);
/* A word in each page of a range, written from this thread. */
void morsel_fill(char *p, size_t pages, uint64_t word);
/* How many pages of the range begin with the word. */
size_t morsel_count(const char *p, size_t pages, uint64_t word);
/* A value of /sys/kernel/mm/ceasefire/morsel, and the same set; skips without. */
long morsel_sysfs(const char *name);
void morsel_set(const char *name, long value);
/* Debug builds: time between finding a table and locking it; skips without. */
void morsel_install_delay(unsigned int ms);
/* The others wait for that time, and hold each piece for as long; likewise. */
void morsel_clean_delay(unsigned int ms);

#endif
