// SPDX-License-Identifier: GPL-2.0
/*
 * Who may hold translations of a region of 2 MiB: a bit for each slot.
 *
 * The masks of a GiB are a page, and page->private is the union of what they ever
 * were, for flushes of long ranges. Pages are made by the first access to a GiB and
 * stay as long as the process has copies, so whoever has found one may use it.
 *
 * Invariant: a bit is set before the entry of the copy (I12), and cleared only by
 * its own CPU when that has flushed everything and its copy leads there no more.
 *
 * Locks: the xarray's where a page is added; readers need none.
 * Callers: fault.c, flush.c, withdraw.c, leave.c.
 */
#include <linux/mm.h>

#include "sharers.h"

/* A flush of more than this asks nobody in particular. */
#define SHARERS_RANGE_MAX	BIT(42)

static unsigned long *sharers_mask_page(struct sharers *s, unsigned long addr)
{
	return xa_load(&s->masks, addr >> SHARERS_PAGE_SHIFT);
}

static unsigned int sharers_mask_index(unsigned long addr)
{
	return (addr & ~PUD_MASK) >> SHARERS_REGION_SHIFT;
}

/**
 * sharers_mask() - the mask of a region
 * @s: of the process
 * @addr: an address in it
 *
 * Return: where it is, or NULL: nobody has ever been there.
 */
unsigned long *sharers_mask(struct sharers *s, unsigned long addr)
{
	unsigned long *masks = sharers_mask_page(s, addr);

	return masks ? masks + sharers_mask_index(addr) : NULL;
}

/**
 * sharers_mask_make() - see to it that a region has a mask
 * @s: of the process
 * @addr: an address in it
 *
 * Context: may sleep.
 * Return: false without memory.
 */
bool sharers_mask_make(struct sharers *s, unsigned long addr)
{
	unsigned long index = addr >> SHARERS_PAGE_SHIFT;
	void *masks, *old;

	if (xa_load(&s->masks, index))
		return true;
	masks = (void *)get_zeroed_page(GFP_KERNEL_ACCOUNT | SHARERS_GFP);
	if (!masks)
		return false;
	set_page_private(virt_to_page(masks), 0);
	old = xa_cmpxchg_irq(&s->masks, index, NULL, masks, GFP_KERNEL_ACCOUNT);
	if (old)
		free_page((unsigned long)masks);
	return !xa_is_err(old);
}

/**
 * sharers_mask_set() - a CPU is about to walk to a region
 * @mask: of the region
 * @slot: of the CPU
 *
 * Both are full barriers: the bits are there before the caller fills its entry.
 */
void sharers_mask_set(unsigned long *mask, unsigned int slot)
{
	set_bit(slot, &virt_to_page(mask)->private);
	set_bit(slot, mask);
}

static unsigned long sharers_mask_union(unsigned long *masks,
					unsigned long start, unsigned long end)
{
	unsigned int i, last = sharers_mask_index(end - 1);
	unsigned long slots = 0;

	i = sharers_mask_index(start);
	if (!i && last == PTRS_PER_PMD - 1)
		return READ_ONCE(virt_to_page(masks)->private);
	for (; i <= last; i++)
		slots |= READ_ONCE(masks[i]);
	return slots;
}

/**
 * sharers_mask_range() - who may hold a translation of a range?
 * @s: of the process
 * @start: first address
 * @end: first address behind it
 * @slots: where the answer goes
 *
 * Return: false if that is too much to ask.
 */
bool sharers_mask_range(struct sharers *s, unsigned long start,
			unsigned long end, unsigned long *slots)
{
	unsigned long next, *masks;

	*slots = 0;
	if (end <= start || end - start > SHARERS_RANGE_MAX)
		return false;
	for (; start < end; start = next) {
		next = min((start | ~PUD_MASK) + 1, end);
		masks = sharers_mask_page(s, start);
		if (masks)
			*slots |= sharers_mask_union(masks, start, next);
	}
	return true;
}

/**
 * sharers_mask_free() - free all pages of masks
 * @s: of a process that nobody runs, and that nobody flushes for
 */
void sharers_mask_free(struct sharers *s)
{
	unsigned long index;
	void *masks;

	xa_for_each(&s->masks, index, masks) {
		set_page_private(virt_to_page(masks), 0);
		free_page((unsigned long)masks);
	}
	xa_destroy(&s->masks);
}
