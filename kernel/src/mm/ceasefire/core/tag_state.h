/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The algebra of tags: who may still reach a frame, and until when.
 *
 * Pure functions without kernel dependencies, so that the same code is tested
 * in userspace (tools/testing/ceasefire/).
 *
 * A tag says: context @id was left with a stale translation of this frame when
 * its generation was @gen. Two counters of a context give it a meaning:
 *
 *   started	counts flushes when they are requested (for a process that is
 *		mm->context.tlb_gen, for the shared context a counter of its own)
 *   completed	the number of the newest *full* flush that has returned, that is,
 *		which every CPU has carried out
 *
 * A skip reads @started after it cleared the entries. A full flush numbered
 * N > gen was requested after that read, so it saw the entries cleared on every
 * CPU; once it has completed, nobody can use the translation any more. A flush
 * with N <= gen may have passed a CPU before the entry was cleared and proves
 * nothing. Hence the one comparison in cf_gen_stale().
 *
 * Two wrong ways, and what breaks:
 *
 *   testing against @started:	   CPU0 skips (gen 5)
 *				   CPU2 requests flush 6, IPI on its way
 *				   CPU0 frees the frame: 5 < 6, "clean"
 *				   CPU3 allocates it, writes a secret
 *				   CPU1 reads it, then takes the IPI
 *
 *   counting partial flushes:	   CPU0 skips page A (gen 5)
 *				   CPU0 flushes page B only, number 6
 *				   page A is freed: 5 < 6, "clean"
 *				   CPU1 still holds the translation of A
 */
#ifndef _MM_CEASEFIRE_TAG_STATE_H
#define _MM_CEASEFIRE_TAG_STATE_H

#include <linux/types.h>

/* Tests build with narrow fields, in which all values can be tried. */
#ifndef CF_TAG_ID_BITS
#define CF_TAG_ID_BITS		22
#define CF_TAG_GEN_BITS	41
#endif
#define CF_TAG_GEN_MASK	((1ULL << CF_TAG_GEN_BITS) - 1)

/* One of the translations may write: the frame was an anonymous page (I2). */
#define CF_TAG_WRITABLE	(CF_TAG_GEN_MASK + 1)
#define CF_TAG_ID_SHIFT	(CF_TAG_GEN_BITS + 1)

/* No context; a tag of 0 is "never tagged". */
#define CF_ID_NONE		0U
/* Frames that several contexts may reach, settled by flushes of all of them. */
#define CF_ID_SHARED		((1U << CF_TAG_ID_BITS) - 1)
#define CF_ID_MAX		(CF_ID_SHARED - 1)

static inline u64 cf_tag_make(u32 id, u64 gen)
{
	return (u64)id << CF_TAG_ID_SHIFT | (gen & CF_TAG_GEN_MASK);
}

static inline u32 cf_tag_id(u64 tag)
{
	return tag >> CF_TAG_ID_SHIFT;
}

static inline u64 cf_tag_gen(u64 tag)
{
	return tag & CF_TAG_GEN_MASK;
}

/**
 * cf_gen_fits() - can a skip at @gen be noted in a tag?
 * @gen: started generation of a context, which counts on
 *
 * A generation that was cut off would look old, and its frames clean. A process
 * gets there after weeks of nothing but flushes; from then on each of its
 * unmaps flushes.
 */
static inline bool cf_gen_fits(u64 gen)
{
	return gen <= CF_TAG_GEN_MASK;
}

/**
 * cf_gen_stale() - may a translation that was left at @gen still be used?
 * @gen:	started generation at the skip
 * @completed:	newest completed full flush of the context
 */
static inline bool cf_gen_stale(u64 gen, u64 completed)
{
	return gen >= completed;
}

/**
 * cf_tag_combine() - the tag of a frame after one more skip
 * @old:	tag of the frame
 * @old_stale:	whether some CPU may still reach the frame through @old
 * @new:	tag of the context that skips now
 * @shared:	tag of the shared context now, read after the entries were
 *		cleared
 *
 * A frame that two contexts can reach belongs to neither: it gets the shared
 * tag, which covers every translation left before now, whoever left it. A
 * shared tag that is still owed stays shared. What may be written to stays so.
 *
 * Return: the tag to store; equal to @old if nothing changes.
 */
static inline u64 cf_tag_combine(u64 old, bool old_stale, u64 new, u64 shared)
{
	u64 writable = (old | new) & CF_TAG_WRITABLE;

	if (cf_tag_id(old) == cf_tag_id(new))
		return (cf_tag_gen(old) >= cf_tag_gen(new) ? old : new) |
		       writable;
	if (!old_stale)
		return new;
	if (cf_tag_id(old) == CF_ID_SHARED &&
	    cf_tag_gen(old) >= cf_tag_gen(shared))
		return old | writable;
	return shared | writable;
}

#endif /* _MM_CEASEFIRE_TAG_STATE_H */
