// SPDX-License-Identifier: GPL-2.0
/*
 * Tags: one word per page frame that says who may still reach it through a
 * stale translation (tag_state.h has the algebra).
 *
 * The words of a memory section (128 MiB of memory, 256 KiB of tags) are
 * allocated when a frame of it is to be tagged for the first time. That is in
 * the middle of an munmap(), where one cannot allocate, so this munmap()
 * flushes as ever and a work item allocates the section. Hence no cost before
 * the first use, and memory that comes later (hotplug) needs no special case.
 * They go when the last context has been gone for a while (cf_tags_retire()), so
 * whoever looks at a tag is an RCU reader.
 *
 * A tag belongs to the frame, not to the page that uses it: it survives free,
 * split and merge. It is written by
 *   - a skip, under the mmap_lock of one process for reading; two processes may
 *     tag the same page cache frame at once, hence cmpxchg,
 *   - whoever owns a frame that nobody else can find: release of a parked frame.
 * Ordering: the skip writes the tag before it drops its reference to the page
 * (tlb_flush_mmu() flushes before it frees), so whoever frees the page later
 * sees the tag; the reference count's atomics order the two.
 */
#include <linux/bitmap.h>
#include <linux/cleanup.h>
#include <linux/delay.h>
#include <linux/memblock.h>
#include <linux/memory_hotplug.h>
#include <linux/mm.h>
#include <linux/mmzone.h>
#include <linux/mutex.h>
#include <linux/rcupdate.h>
#include <linux/vmalloc.h>
#include <linux/vmstat.h>

#include "core.h"

u64 **cf_tags;				/* by section; NULL entries: no tags */
static u64 **cf_retired;		/* were there, and are to be freed */
static unsigned long *cf_wanted;	/* sections that need tags */
unsigned long cf_sections;
static atomic_long_t cf_sections_used;
static DEFINE_MUTEX(cf_tags_lock);

static void cf_tags_populate(struct work_struct *work);
static DECLARE_WORK(cf_tags_work, cf_tags_populate);

/* Some page of a section that is online; its start may be a hole. */
static struct page *cf_section_page(unsigned long pfn)
{
	unsigned long end = pfn + PAGES_PER_SECTION;
	struct page *page = NULL;

	for (; pfn < end && !page; pfn += PAGES_PER_SUBSECTION)
		page = pfn_to_online_page(pfn);
	return page;
}

static void cf_tags_populate(struct work_struct *work)
{
	unsigned long s;

	guard(mutex)(&cf_tags_lock);
	for_each_set_bit(s, cf_wanted, cf_sections) {
		struct page *page = cf_section_page(section_nr_to_pfn(s));
		u64 *tags;

		/* A section that went offline is asked for again if it returns. */
		clear_bit(s, cf_wanted);
		if (!page || cf_tags[s])
			continue;
		tags = vzalloc_node(PAGES_PER_SECTION * sizeof(u64),
				    page_to_nid(page));
		if (!tags)
			return;	/* the next munmap() asks again */
		atomic_long_inc(&cf_sections_used);
		/* Pairs with the dependent load in cf_tag_slot(). */
		smp_store_release(&cf_tags[s], tags);
	}
}

/**
 * cf_tags_init() - make the index of sections
 *
 * Context: may sleep; called with each new context.
 * Return: false without memory.
 */
bool cf_tags_init(void)
{
	unsigned long sections, *wanted;
	u64 **tags;

	/* Pairs with the release below. */
	if (smp_load_acquire(&cf_tags))
		return true;
	mutex_lock(&cf_tags_lock);
	if (!cf_tags) {
		sections = pfn_to_section_nr(max_t(unsigned long, max_pfn, max_possible_pfn)) + 1;
		wanted = bitmap_zalloc(sections, GFP_KERNEL);
		tags = kvcalloc(2 * sections, sizeof(*tags), GFP_KERNEL);
		if (wanted && tags) {
			cf_wanted = wanted;
			cf_sections = sections;
			cf_retired = tags + sections;
			/* Pairs with the loads of cf_tags. */
			smp_store_release(&cf_tags, tags);
		} else {
			bitmap_free(wanted);
			kvfree(tags);
		}
	}
	mutex_unlock(&cf_tags_lock);
	return cf_tags;
}

/**
 * cf_tags_retire() - no process has a context: nobody needs the tags
 *
 * What they say is settled. Whoever has found one before is an RCU reader, and
 * believes nothing of a context that is gone; a context that comes later finds
 * none, and has to ask for them again.
 *
 * Context: the lock that contexts are counted under.
 */
void cf_tags_retire(void)
{
	unsigned long s;

	for (s = 0; s < cf_sections; s++) {
		if (!cf_tags[s] || cf_retired[s])
			continue;
		cf_retired[s] = cf_tags[s];
		WRITE_ONCE(cf_tags[s], NULL);
		atomic_long_dec(&cf_sections_used);
	}
}

/**
 * cf_tags_free() - give back the memory of tags that were retired
 *
 * Context: may sleep; the only one who calls this and cf_tags_retire().
 */
void cf_tags_free(void)
{
	unsigned long s;

	/* Frees, faults and reclaim that have seen them. */
	synchronize_rcu();
	for (s = 0; s < cf_sections; s++) {
		vfree(cf_retired[s]);
		cf_retired[s] = NULL;
	}
}

/**
 * cf_tags_bytes() - memory used for tags
 *
 * Return: bytes.
 */
unsigned long cf_tags_bytes(void)
{
	return atomic_long_read(&cf_sections_used) *
	       PAGES_PER_SECTION * sizeof(u64) +
	       (cf_tags ? 2 * cf_sections * sizeof(u64 *) : 0);
}

/*
 * A frame that gets the shared tag: the generation has to be one that was read
 * after the tag was there. Else, a member of group X and Y skip, and F flushes
 * both, which takes the generations of processes further, but not that of X:
 *
 *   Y reads the tag X(5), still stale, and the shared generation 10
 *   F takes the shared generation 11 and flushes
 *   X maps the frame again and unmaps it: finds the tag X(5), which is enough,
 *     and writes nothing
 *   Y stores SHARED(10), which F has settled; X can still reach the frame
 *
 * Who skips later than the store finds a shared tag and does the same. Who
 * skipped before has cleared its entries before the generation is read here:
 * its look at the tag comes before our store (both are full barriers).
 */
static void cf_tag_cover(u64 *slot, u64 stored)
{
	u64 writable = stored & CF_TAG_WRITABLE;
	u64 now = cf_shared_tag_now() | writable;

	CF_MUTATION(fpr_no_cover, return);
	while (now != stored) {
		stored = now;
		/* Whatever is there by now is covered, too. */
		xchg(slot, stored);
		now = cf_shared_tag_now() | writable;
	}
}

/* Debug builds: makes the time long in which a shared generation gets old. */
static void cf_tag_pause(void)
{
#ifdef CONFIG_CEASEFIRE_DEBUG
	u32 us = READ_ONCE(cf_tag_delay_us);

	if (us)
		mdelay(DIV_ROUND_UP(us, USEC_PER_MSEC));
#endif
}

/* Can the one whom a tag names reach the frame? Most often it is who skips now. */
static bool cf_tag_reaches(u64 tag, struct cf_ctx *ctx)
{
	if (!tag)
		return false;
	if (likely(cf_tag_id(tag) == ctx->id))
		return cf_tag_is_stale(tag, ctx);
	guard(rcu)();
	return cf_tag_is_stale(tag, cf_ctx_find(cf_tag_id(tag)));
}

/* Returns whether several contexts may reach the frame now. */
static bool cf_tag_frame(u64 *slot, struct cf_ctx *ctx, u64 new,
			 unsigned long *fresh)
{
	u64 old = READ_ONCE(*slot), next;
	bool stale;

	do {
		bool other = cf_tag_id(old) != cf_tag_id(new);

		stale = cf_tag_reaches(old, ctx);
		CF_MUTATION_IF(fpr_no_shared_tag, other, stale = false);
		next = cf_tag_combine(old, stale, new,
				      stale && other ? cf_shared_tag_now() : 0);
		if (next == old)
			return cf_tag_id(next) == CF_ID_SHARED;
		if (stale && other)
			cf_tag_pause();
	} while (!try_cmpxchg64(slot, &old, next));

	*fresh += !stale;
	if (cf_tag_id(next) != CF_ID_SHARED)
		return false;
	cf_tag_cover(slot, next);
	count_vm_event(FPR_SHARED);
	return true;
}

/* The next munmap() will find tags of these frames. */
static void cf_tags_want(unsigned long section)
{
	if (section >= cf_sections)
		return;
	set_bit(section, cf_wanted);
	schedule_work(&cf_tags_work);
}

/**
 * cf_tag_frames() - note that a context was left with stale translations
 * @pfn: first frame
 * @nr:	number of frames
 * @ctx: the context that skips
 * @new: its tag, read after the entries were cleared
 * @fresh: the number of those that nobody could reach before is added to it
 *
 * Context: any; the caller holds a reference to the frames.
 * Return: false if the frames have no tags (yet): the caller must flush. Tags
 * already written stay; the caller owes for them.
 */
bool cf_tag_frames(unsigned long pfn, unsigned long nr, struct cf_ctx *ctx,
		   u64 new, unsigned long *fresh)
{
	unsigned long end = pfn + nr;
	bool shared = false;
	u64 *slot = NULL;

	for (; pfn < end; pfn++, slot++) {
		if (!slot || IS_ALIGNED(pfn, PAGES_PER_SECTION)) {
			slot = cf_tag_slot(pfn);
			if (unlikely(!slot))
				break;
		}
		if (READ_ONCE(*slot) != new)
			shared |= cf_tag_frame(slot, ctx, new, fresh);
	}
	if (shared)
		cf_owe(&cf_shared, cf_tag_gen(cf_shared_tag_now()));
	if (likely(pfn == end))
		return true;
	cf_tags_want(pfn_to_section_nr(pfn));
	return false;
}

/**
 * cf_frames_tagged() - cheap screen for the free side
 * @pfn: a frame
 *
 * Return: false if no frame of its section was ever tagged.
 */
bool cf_frames_tagged(unsigned long pfn)
{
	return cf_tag_slot(pfn);
}

/**
 * cf_frame_owner() - the context that may still reach a frame
 * @pfn: the frame
 * @found: gets its tag, if not NULL
 *
 * Context: any, RCU read side.
 * Return: the context, NULL if no CPU can reach the frame through a stale
 * translation.
 */
struct cf_ctx *cf_frame_owner(unsigned long pfn, u64 *found)
{
	u64 *slot = cf_tag_slot(pfn);
	struct cf_ctx *ctx;
	u64 tag;

	if (!slot)
		return NULL;
	tag = READ_ONCE(*slot);
	if (likely(!tag))
		return NULL;
	if (found)
		*found = tag;
	ctx = cf_ctx_find(cf_tag_id(tag));
	return cf_tag_is_stale(tag, ctx) ? ctx : NULL;
}

/**
 * cf_frames_tags() - the tags of frames in one look
 * @pfn: first frame
 * @nr: number of frames, of one page, which does not leave its section
 *
 * For pages that are freed and may be reached; cf_page_tagged() has asked before.
 *
 * Return: all their tags together: 0 if none has one, and CF_TAG_WRITABLE is
 * set if one says that those who can reach it can write, whether settled or not.
 */
u64 cf_frames_tags(unsigned long pfn, unsigned long nr)
{
	u64 *slot, tags = 0;

	rcu_read_lock();
	slot = cf_tag_slot(pfn);
	if (slot) {
		do {
			tags |= READ_ONCE(*slot++);
		} while (--nr);
	}
	rcu_read_unlock();
	return tags;
}

/**
 * cf_frames_reached() - may a stale translation lead to one of some frames?
 * @pfn: first frame
 * @nr: number of frames
 *
 * Context: any.
 * Return: true if it may.
 */
bool cf_frames_reached(unsigned long pfn, unsigned long nr)
{
	bool reached = false;

	rcu_read_lock();
	for (; nr-- && !reached; pfn++)
		reached = cf_frame_owner(pfn, NULL);
	rcu_read_unlock();
	return reached;
}

/**
 * cf_tags_clear() - forget the tags of frames that a context cannot reach
 * @pfn: first frame
 * @nr: number of frames
 * @id: the context, which was flushed after the frames were freed; CF_ID_NONE
 *	if nobody can reach the frames
 */
void cf_tags_clear(unsigned long pfn, unsigned long nr, u32 id)
{
	guard(rcu)();
	for (; nr--; pfn++) {
		u64 *slot = cf_tag_slot(pfn);

		if (slot && *slot &&
		    (id == CF_ID_NONE || cf_tag_id(*slot) == id))
			WRITE_ONCE(*slot, 0);
	}
}
