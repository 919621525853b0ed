// SPDX-License-Identifier: GPL-2.0
/*
 * Operations of the fuzzer of morsels on a copy of the object, of which each process has one. A
 * memfd, and a morsel that may be lazy or has huge pages, have none: there it is another memfd,
 * with the pages of the process in it. What others have written at that moment is for nobody to
 * say.
 *
 * Called by morsel_fuzz_ops.c.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/falloc.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "env.h"
#include "ktap.h"
#include "morsel_fuzz.h"

static uint64_t page[PAGE / sizeof(uint64_t)];

/* What is there of a run of pages. */
static void copy_run(struct mfuzz_process *p, const struct mfuzz_run *run)
{
	off_t at = (off_t)(run->first * PAGE), end = at + (off_t)(run->pages * PAGE);

	for (; at < end; at += PAGE) {
		at = lseek(p->fd, at, SEEK_DATA);
		/* Behind the last one there is none. */
		if (at < 0 || at >= end)
			return;
		MUST(pread(p->fd, page, PAGE, at));
		MUST(pwrite(p->copy, page, PAGE, at));
	}
}

static void drop(struct mfuzz_process *p)
{
	if (!p->copy_map)
		return;
	MUST(munmap(p->copy_map, p->layout->size));
	close(p->copy);
}

void mfuzz_copy(struct mfuzz_process *p)
{
	const struct mfuzz_layout *l = p->layout;
	bool clones = p->arm == MFUZZ_MORSEL && l->copies;
	unsigned int i;

	drop(p);
	p->copy = (int)MUST(memfd_create("copy", clones ? MFD_MORSEL : 0));
	if (clones) {
		MUST(ioctl(p->copy, FICLONE, p->fd));
	} else {
		MUST(ftruncate(p->copy, (off_t)l->size));
		for (i = 0; i < l->nr; i++)
			if (l->run[i].owner == p->number)
				copy_run(p, &l->run[i]);
	}
	p->copy_map = mmap(mfuzz_hint(l), l->size, PROT_READ | PROT_WRITE, MAP_SHARED,
			   p->copy, 0);
	ENSURE(p->copy_map != MAP_FAILED, "mmap: %m");
}

static void need_copy(struct mfuzz_process *p)
{
	if (!p->copy_map)
		mfuzz_copy(p);
}

void mfuzz_copy_read(struct mfuzz_process *p)
{
	struct morsel_range r = mfuzz_pages(p, 64);

	need_copy(p);
	p->record->value = fuzz_sum(p->copy_map + r.offset,
				    r.length / sizeof(uint64_t), &p->record->fault);
}

void mfuzz_copy_write(struct mfuzz_process *p)
{
	struct morsel_range r = mfuzz_pages(p, 64);
	uint64_t at;

	need_copy(p);
	for (at = 0; at < r.length; at += PAGE)
		p->record->value += fuzz_store(p->copy_map + r.offset + at +
					       8 * mfuzz_pick(p, PAGE / 8),
					       mfuzz_random(p), &p->record->fault);
}

void mfuzz_copy_punch(struct mfuzz_process *p)
{
	struct morsel_range r = mfuzz_pages(p, 1024);

	need_copy(p);
	mfuzz_result(p, fallocate(p->copy, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
				  (off_t)r.offset, (off_t)r.length));
}
