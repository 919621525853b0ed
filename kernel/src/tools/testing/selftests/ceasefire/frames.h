/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Frames by their number, and those who want certain ones: memory that goes
 * offline, contiguous areas, frames that are given up because they are bad.
 */
#ifndef CEASEFIRE_SELFTEST_FRAMES_H
#define CEASEFIRE_SELFTEST_FRAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "file.h"

#define KPF_BUDDY	(1ULL << 10)
#define KPF_HWPOISON	(1ULL << 19)

/* The frames of all pages of a file; flushes this process. */
void frames_of_file(const struct tfile *f, uint64_t *frames);

/* Some go on for ever when they cannot; a signal ends them. */
bool write_for(const char *path, const char *text, unsigned int limit);

/*
 * Have the next @count frames come from memory that can go offline, for as long as
 * this process lives; skips the case where there is none.
 */
void frames_steer(size_t count);
/* A block of memory that can go offline and has one of the frames. */
long frames_block(const uint64_t *frames, size_t count);
size_t frames_in_block(const uint64_t *frames, size_t count, long block);
/* Take it offline; false with errno set when it cannot. */
bool block_offline(long block);
void block_online(long block);

/* A contiguous area; skips the case when there is none with such a frame. */
struct area {
	char name[256];
	long base, pages;
};

void area_find(struct area *a);
size_t frames_in_area(const uint64_t *frames, size_t count,
		      const struct area *a);
/* Allocate nearly all of it; false with errno set when that cannot be done. */
bool area_alloc(const struct area *a);
void area_free(const struct area *a);

/* Give a frame up, "soft" or "hard"; false with errno set. Skips without. */
bool frame_give_up(const char *how, uint64_t frame);
/* Good again; false when the kernel does not have it any more. */
bool frame_take_back(uint64_t frame);
/* KPF_* bits of many frames; 0 for those that do not exist. */
void frame_flags_read(uint64_t first, uint64_t *flags, size_t count);
/* Pages that the kernel counts as given up. */
long frames_given_up(void);

#endif
