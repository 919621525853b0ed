// SPDX-License-Identifier: GPL-2.0
/*
 * What a thread of the fuzzer has mapped, page by page.
 *
 * A correct program touches no address that is not its own. So no operation
 * goes to a hole, which the kernel may have given to another thread, unless as
 * a hint; and which block, which page is all that operations know of addresses:
 * where the kernel puts a mapping has no influence on what comes next.
 *
 * Called by the thread that it is about, and by what that forks.
 */
#define _GNU_SOURCE
#include <sys/mman.h>

#include "env.h"
#include "fpr_fuzz.h"
#include "ktap.h"

static void set_range(struct fuzz_range *r, struct fuzz_block *block,
		      size_t first, size_t pages)
{
	r->block = block;
	r->first = first;
	r->pages = pages;
	r->addr = block->addr + first * PAGE;
}

static size_t run_length(const struct fuzz_block *b, size_t first, size_t most)
{
	size_t n = 0;

	while (n < most && first + n < b->pages &&
	       b->page[first + n].backing != FUZZ_HOLE)
		n++;
	return n;
}

/* Somewhere in mapped memory; false if nothing is mapped. */
static bool pick_page(struct fuzz_thread *t, struct fuzz_block **block,
		      size_t *page)
{
	size_t i, from = fuzz_pick(t, FUZZ_BLOCKS);
	struct fuzz_block *b;

	for (i = 0; i < FUZZ_BLOCKS; i++) {
		b = &t->blocks[(from + i) % FUZZ_BLOCKS];
		if (b->mapped)
			break;
	}
	if (!b->mapped)
		return false;
	*page = fuzz_pick(t, b->pages);
	while (b->page[*page].backing == FUZZ_HOLE)
		*page = (*page + 1) % b->pages;
	*block = b;
	return true;
}

/* At most @most pages of a block. */
bool fuzz_pick_range(struct fuzz_thread *t, size_t most, struct fuzz_range *r)
{
	struct fuzz_block *b;
	size_t page;

	if (!pick_page(t, &b, &page))
		return false;
	set_range(r, b, page, run_length(b, page, 1 + fuzz_pick(t, most)));
	return true;
}

/* All pages between two holes. */
bool fuzz_pick_run(struct fuzz_thread *t, struct fuzz_range *r)
{
	struct fuzz_block *b;
	size_t page;

	if (!pick_page(t, &b, &page))
		return false;
	while (page && b->page[page - 1].backing != FUZZ_HOLE)
		page--;
	set_range(r, b, page, run_length(b, page, FUZZ_PAGES));
	return true;
}

/* Cut it to what is one mapping. */
void fuzz_one_piece(struct fuzz_range *r)
{
	const struct fuzz_page *page = r->block->page + r->first;
	size_t n = 1;

	while (n < r->pages && page[n].piece == page[0].piece)
		n++;
	r->pages = n;
}

/* Cut it to what belongs to this thread alone, maybe to nothing. */
void fuzz_no_area(struct fuzz_range *r)
{
	const struct fuzz_page *page = r->block->page + r->first;
	size_t n = 0;

	while (n < r->pages && page[n].backing != FUZZ_AREA)
		n++;
	r->pages = n;
}

void fuzz_set_pages(struct fuzz_range *r, struct fuzz_page page)
{
	size_t i;

	for (i = 0; i < r->pages; i++)
		r->block->page[r->first + i] = page;
}

/* All of it is in the range. There must be room, see fuzz_make_room(). */
void fuzz_new_block(struct fuzz_thread *t, void *addr, size_t pages,
		    struct fuzz_page page, struct fuzz_range *r)
{
	struct fuzz_block *b = t->blocks;

	while (b->mapped)
		b++;
	b->addr = addr;
	b->pages = pages;
	b->mapped = pages;
	set_range(r, b, 0, pages);
	fuzz_set_pages(r, page);
}

/* The pages are not mapped there any more. */
void fuzz_forget(struct fuzz_thread *t, struct fuzz_range *r)
{
	fuzz_set_pages(r, (struct fuzz_page){ .backing = FUZZ_HOLE });
	r->block->mapped -= r->pages;
	t->holes[t->next_hole++ % FUZZ_HOLES] = r->addr;
}

/* An operation makes one block at most. */
void fuzz_make_room(struct fuzz_thread *t)
{
	struct fuzz_range r;
	size_t i;

	for (i = 0; i < FUZZ_BLOCKS; i++)
		if (!t->blocks[i].mapped)
			return;
	while (t->blocks[0].mapped) {
		i = 0;
		while (t->blocks[0].page[i].backing == FUZZ_HOLE)
			i++;
		set_range(&r, &t->blocks[0], i,
			  run_length(&t->blocks[0], i, FUZZ_PAGES));
		MUST(munmap(r.addr, r.pages * PAGE));
		fuzz_forget(t, &r);
	}
}

/* The word at @offset of a page of the range; in the area, our own one. */
char *fuzz_word(const struct fuzz_thread *t, const struct fuzz_range *r,
		size_t page, size_t offset)
{
	if (r->block->page[r->first + page].backing == FUZZ_AREA)
		offset = (size_t)t->number * FUZZ_AREA_STRIDE;
	return r->addr + page * PAGE + offset;
}

/* A sum of all memory of the thread, of some words of each page. */
uint64_t fuzz_sum_blocks(const struct fuzz_thread *t, size_t words)
{
	struct fuzz_fault unused = { 0 };
	uint64_t sum = 0;
	size_t i, page;

	for (i = 0; i < FUZZ_BLOCKS; i++) {
		const struct fuzz_block *b = &t->blocks[i];
		struct fuzz_range r = { (struct fuzz_block *)b, 0, b->pages,
					b->addr };

		for (page = 0; b->mapped && page < b->pages; page++) {
			enum fuzz_backing backing = b->page[page].backing;

			if (backing == FUZZ_HOLE)
				continue;
			sum = fuzz_mix(sum,
				       fuzz_sum(fuzz_word(t, &r, page, 0),
						backing == FUZZ_AREA ? 1 : words,
						&unused));
		}
	}
	return sum;
}
