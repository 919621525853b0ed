/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The arena: where MAP_FPR mappings live, and which of its addresses may still
 * be cached by a TLB.
 *
 * Pure functions without kernel dependencies, so that the same code is tested
 * in userspace (tools/testing/ceasefire/).
 *
 *   base                    next              settled          end
 *    |-----------------------|====================|--------------|
 *      not handed out since    quarantine: handed   may be given
 *      the last wrap           out since the last   out again
 *                              settle
 *
 * Addresses are handed out downwards, as mmap() does it: programs look below a
 * mapping for what came after it. None comes back before the whole arena was
 * used; then everything is settled (full flush, left-over tables freed) and
 * @next starts again at @end. The quarantine also holds live mappings; what is
 * in it and unmapped may still be cached (I3), and may still have page tables
 * (I4).
 */
#ifndef _MM_CEASEFIRE_ARENA_STATE_H
#define _MM_CEASEFIRE_ARENA_STATE_H

#include <linux/types.h>

struct cf_arena {
	unsigned long base, next, settled, end;
};

/* How the range [start, end) of an munmap() lies to the arena. */
enum cf_arena_range {
	CF_RANGE_OUTSIDE,	/* nothing to do with it */
	CF_RANGE_INSIDE,	/* was handed out by the arena */
	CF_RANGE_STRADDLES,	/* both: settle first */
};

static inline bool cf_arena_quarantined(const struct cf_arena *a,
					unsigned long start, unsigned long end)
{
	return a->next < a->settled && end > a->next && start < a->settled;
}

static inline enum cf_arena_range
cf_arena_range(const struct cf_arena *a, unsigned long start,
	       unsigned long end)
{
	if (end <= a->next || start >= a->end)
		return CF_RANGE_OUTSIDE;
	if (start < a->next || end > a->end)
		return CF_RANGE_STRADDLES;
	return CF_RANGE_INSIDE;
}

/**
 * cf_arena_enter() - put an address range back under quarantine
 * @a:		the arena
 * @end:	end of a range that is CF_RANGE_INSIDE
 *
 * Called before a mapping is unmapped that is older than the last settle.
 */
static inline void cf_arena_enter(struct cf_arena *a, unsigned long end)
{
	if (end > a->settled)
		a->settled = end;
}

/**
 * cf_arena_place() - next candidate for a mapping
 * @a:		the arena
 * @from:	where it has to end, at most @a->next
 * @len:	length in bytes, page aligned
 * @offset:	offset of the mapping in its file, in bytes
 * @huge:	size of a huge page; mappings of at least this size start where
 *		huge pages of the file and of the address space coincide
 *
 * Return: the address, or 0 when [base, from) has no room.
 */
static inline unsigned long
cf_arena_place(const struct cf_arena *a, unsigned long from,
	       unsigned long len, unsigned long long offset,
	       unsigned long huge)
{
	unsigned long at;

	if (from < a->base || len > from - a->base)
		return 0;
	at = from - len;
	if (len >= huge) {
		unsigned long phase = offset & (huge - 1);

		at = ((at - phase) & ~(huge - 1)) + phase;
	}
	return at >= a->base ? at : 0;
}

/**
 * cf_arena_clamp() - keep a neighbour's page table removal off the quarantine
 * @a:		the arena
 * @start:	start of the mapping whose tables go
 * @end:	its end
 * @floor:	lowest address whose tables may go
 * @ceiling:	end of the addresses whose tables may go, 0 for no limit
 *
 * free_pgtables() takes floor and ceiling from the neighbouring mappings and
 * frees an upper table when nothing mapped is left below it. Left-over tables
 * of the quarantine are below it, too; they would leak, or be walked after the
 * upper table was reused.
 */
static inline void cf_arena_clamp(const struct cf_arena *a,
				  unsigned long start, unsigned long end,
				  unsigned long *floor, unsigned long *ceiling)
{
	unsigned long low = 0, high = 0;

	if (a->settled == a->next)
		return;
	if (start >= a->settled) {
		low = a->settled;
	} else if (end <= a->next) {
		high = a->next;
	} else {
		low = start;
		high = end;
	}
	if (*floor < low)
		*floor = low;
	if (high && (!*ceiling || *ceiling > high))
		*ceiling = high;
}

#endif /* _MM_CEASEFIRE_ARENA_STATE_H */
