// SPDX-License-Identifier: GPL-2.0
/*
 * Who may hold translations of a region of 2 MiB: a bit for each slot.
 *
 * The masks of a GiB are in a page, beside what is known of the GiB as a whole. It is
 * made by the first access to the GiB and stays as long as the process has copies, so
 * whoever has found one may use it.
 *
 * Invariant: a bit is set before the entry of the copy (I12), and cleared only by
 * its own CPU when that has flushed everything and its copy leads there no more.
 *
 * Locks: the xarray's where a GiB is added; readers need none.
 * Callers: fault.c, flush.c, withdraw.c, leave.c.
 */
#include <linux/mm.h>
#include <linux/slab.h>

#include "../../../../mm/ceasefire/mutate.h"
#include "sharers.h"

/* A flush of more than this asks nobody in particular. */
#define SHARERS_RANGE_MAX	BIT(42)

static unsigned int sharers_mask_index(unsigned long addr)
{
	return (addr & ~PUD_MASK) >> SHARERS_REGION_SHIFT;
}

/**
 * sharers_gib() - what is known of a GiB
 * @s: of the process
 * @addr: an address in it
 *
 * Return: NULL: nobody has ever been there.
 */
struct sharers_gib *sharers_gib(struct sharers *s, unsigned long addr)
{
	struct sharers_cpu *sc = READ_ONCE(s->cpu[raw_smp_processor_id()]);
	unsigned long index = addr >> SHARERS_GIB_SHIFT;
	struct sharers_gib *gib = sc ? READ_ONCE(sc->last) : NULL;

	/* Most often the same one again. */
	if (gib && gib->index == index)
		return gib;
	gib = xa_load(&s->gibs, index);
	if (gib && sc)
		WRITE_ONCE(sc->last, gib);
	return gib;
}

static void sharers_gib_free(struct mm_struct *mm, struct sharers_gib *gib)
{
	mm_dec_nr_puds(mm);
	free_page((unsigned long)gib->regions);
	kfree(gib);
}

static struct sharers_gib *sharers_gib_alloc(struct mm_struct *mm,
					     unsigned long index)
{
	struct sharers_gib *gib = kzalloc(sizeof(*gib), GFP_KERNEL_ACCOUNT | SHARERS_GFP);

	if (!gib)
		return NULL;
	gib->regions = (void *)get_zeroed_page(GFP_KERNEL_ACCOUNT | SHARERS_GFP);
	if (!gib->regions) {
		kfree(gib);
		return NULL;
	}
	gib->index = index;
	/* A page that is there because of tables. */
	mm_inc_nr_puds(mm);
	return gib;
}

/**
 * sharers_gib_make() - see to it that a GiB has masks
 * @s: of the process
 * @addr: an address in it
 *
 * Context: may sleep.
 * Return: false without memory.
 */
bool sharers_gib_make(struct sharers *s, unsigned long addr)
{
	unsigned long index = addr >> SHARERS_GIB_SHIFT;
	struct sharers_gib *gib;
	void *old;

	if (sharers_gib(s, addr))
		return true;
	gib = sharers_gib_alloc(s->mm, index);
	if (!gib)
		return false;
	old = xa_cmpxchg_irq(&s->gibs, index, NULL, gib,
			     GFP_KERNEL_ACCOUNT | SHARERS_GFP);
	if (old)
		sharers_gib_free(s->mm, gib);
	return !xa_is_err(old);
}

/**
 * sharers_mask() - the mask of a region
 * @gib: of the GiB
 * @addr: an address in the region
 */
unsigned long *sharers_mask(struct sharers_gib *gib, unsigned long addr)
{
	return gib->regions + sharers_mask_index(addr);
}

/**
 * sharers_mask_set() - a CPU is about to walk to a region
 * @gib: of the GiB
 * @addr: an address in the region
 * @slot: of the CPU
 *
 * The bits are there before the caller fills its entry: both are full barriers. If its
 * own bit is set already, then by this CPU, in such a way, and only it clears it.
 *
 * Context: interrupts off, on that CPU.
 * Return: false: it was noted already.
 */
bool sharers_mask_set(struct sharers_gib *gib, unsigned long addr,
		      unsigned int slot)
{
	unsigned long *mask = sharers_mask(gib, addr);

	if (test_bit(slot, mask))
		return false;
	set_bit(slot, &gib->ever);
	set_bit(slot, mask);
	return true;
}

/**
 * sharers_mask_set_whole() - a CPU is about to walk to all of a GiB
 * @gib: the GiB
 * @slot: of the CPU
 *
 * As sharers_mask_set().
 */
void sharers_mask_set_whole(struct sharers_gib *gib, unsigned int slot)
{
	set_bit(slot, &gib->ever);
	set_bit(slot, &gib->whole);
}

/**
 * sharers_mask_clear_regions() - a CPU that has a GiB whole needs no bits below
 * @gib: the GiB
 * @slot: of the CPU, which has flushed everything since it is noted for the GiB
 *
 * Who reads the masks without the bit has changed its entries before that flush, or
 * sees that the CPU is noted for the GiB.
 */
void sharers_mask_clear_regions(struct sharers_gib *gib, unsigned int slot)
{
	int i;

	/* The flush before the bits. */
	smp_mb__before_atomic();
	for (i = 0; i < PTRS_PER_PMD; i++)
		if (READ_ONCE(gib->regions[i]) & BIT(slot))
			clear_bit(slot, &gib->regions[i]);
}

/* Of a part of a GiB. */
static unsigned long sharers_mask_union(struct sharers_gib *gib,
					unsigned long start, unsigned long end)
{
	unsigned int i, last = sharers_mask_index(end - 1);
	unsigned long slots = READ_ONCE(gib->whole);

	CF_MUTATION(sharers_ever_asked, return READ_ONCE(gib->ever));
	for (i = sharers_mask_index(start); i <= last; i++)
		slots |= READ_ONCE(gib->regions[i]);
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
	/* Of many GiB, each mask would be too much: who was ever there will do. */
	bool many = end - start > PUD_SIZE;
	struct sharers_gib *gib;
	unsigned long next;

	*slots = 0;
	if (end <= start || end - start > SHARERS_RANGE_MAX)
		return false;
	for (; start < end; start = next) {
		next = min((start | ~PUD_MASK) + 1, end);
		gib = sharers_gib(s, start);
		if (gib)
			*slots |= many && next - start == PUD_SIZE ?
				  READ_ONCE(gib->ever) :
				  sharers_mask_union(gib, start, next);
	}
	return true;
}

/**
 * sharers_gibs_free() - free all masks
 * @s: of a process that nobody runs, and that nobody flushes for
 */
void sharers_gibs_free(struct sharers *s)
{
	struct sharers_gib *gib;
	unsigned long index;

	xa_for_each(&s->gibs, index, gib)
		sharers_gib_free(s->mm, gib);
	xa_destroy(&s->gibs);
}
