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
 * They go when the last context has been gone for a while (fpr_tags_retire()), so
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

#include "internal.h"

u64 **fpr_tags;				/* by section; NULL entries: no tags */
static u64 **fpr_retired;		/* were there, and are to be freed */
static unsigned long *fpr_wanted;	/* sections that need tags */
unsigned long fpr_sections;
static atomic_long_t fpr_sections_used;
static DEFINE_MUTEX(fpr_tags_lock);

static void fpr_tags_populate(struct work_struct *work);
static DECLARE_WORK(fpr_tags_work, fpr_tags_populate);

/* Some page of a section that is online; its start may be a hole. */
static struct page *fpr_section_page(unsigned long pfn)
{
	unsigned long end = pfn + PAGES_PER_SECTION;
	struct page *page = NULL;

	for (; pfn < end && !page; pfn += PAGES_PER_SUBSECTION)
		page = pfn_to_online_page(pfn);
	return page;
}

static void fpr_tags_populate(struct work_struct *work)
{
	unsigned long s;

	guard(mutex)(&fpr_tags_lock);
	for_each_set_bit(s, fpr_wanted, fpr_sections) {
		struct page *page = fpr_section_page(section_nr_to_pfn(s));
		u64 *tags;

		/* A section that went offline is asked for again if it returns. */
		clear_bit(s, fpr_wanted);
		if (!page || fpr_tags[s])
			continue;
		tags = vzalloc_node(PAGES_PER_SECTION * sizeof(u64),
				    page_to_nid(page));
		if (!tags)
			return;	/* the next munmap() asks again */
		atomic_long_inc(&fpr_sections_used);
		/* Pairs with the dependent load in fpr_tag_slot(). */
		smp_store_release(&fpr_tags[s], tags);
	}
}

/**
 * fpr_tags_init() - make the index of sections
 *
 * Context: may sleep; called with each new context.
 * Return: false without memory.
 */
bool fpr_tags_init(void)
{
	unsigned long sections, *wanted;
	u64 **tags;

	/* Pairs with the release below. */
	if (smp_load_acquire(&fpr_tags))
		return true;
	mutex_lock(&fpr_tags_lock);
	if (!fpr_tags) {
		sections = pfn_to_section_nr(max_t(unsigned long, max_pfn, max_possible_pfn)) + 1;
		wanted = bitmap_zalloc(sections, GFP_KERNEL);
		tags = kvcalloc(2 * sections, sizeof(*tags), GFP_KERNEL);
		if (wanted && tags) {
			fpr_wanted = wanted;
			fpr_sections = sections;
			fpr_retired = tags + sections;
			/* Pairs with the loads of fpr_tags. */
			smp_store_release(&fpr_tags, tags);
		} else {
			bitmap_free(wanted);
			kvfree(tags);
		}
	}
	mutex_unlock(&fpr_tags_lock);
	return fpr_tags;
}

/**
 * fpr_tags_retire() - no process has a context: nobody needs the tags
 *
 * What they say is settled. Whoever has found one before is an RCU reader, and
 * believes nothing of a context that is gone; a context that comes later finds
 * none, and has to ask for them again.
 *
 * Context: the lock that contexts are counted under.
 */
void fpr_tags_retire(void)
{
	unsigned long s;

	for (s = 0; s < fpr_sections; s++) {
		if (!fpr_tags[s] || fpr_retired[s])
			continue;
		fpr_retired[s] = fpr_tags[s];
		WRITE_ONCE(fpr_tags[s], NULL);
		atomic_long_dec(&fpr_sections_used);
	}
}

/**
 * fpr_tags_free() - give back the memory of tags that were retired
 *
 * Context: may sleep; the only one who calls this and fpr_tags_retire().
 */
void fpr_tags_free(void)
{
	unsigned long s;

	/* Frees, faults and reclaim that have seen them. */
	synchronize_rcu();
	for (s = 0; s < fpr_sections; s++) {
		vfree(fpr_retired[s]);
		fpr_retired[s] = NULL;
	}
}

/**
 * fpr_tags_bytes() - memory used for tags
 *
 * Return: bytes.
 */
unsigned long fpr_tags_bytes(void)
{
	return atomic_long_read(&fpr_sections_used) *
	       PAGES_PER_SECTION * sizeof(u64) +
	       (fpr_tags ? 2 * fpr_sections * sizeof(u64 *) : 0);
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
static void fpr_tag_cover(u64 *slot, u64 stored)
{
	u64 writable = stored & FPR_TAG_WRITABLE;
	u64 now = fpr_shared_tag_now() | writable;

	if (fpr_mutated(MUTATE_fpr_no_cover))
		return;
	while (now != stored) {
		stored = now;
		/* Whatever is there by now is covered, too. */
		xchg(slot, stored);
		now = fpr_shared_tag_now() | writable;
	}
}

/* Debug builds: makes the time long in which a shared generation gets old. */
static void fpr_tag_pause(void)
{
#ifdef CONFIG_CEASEFIRE_DEBUG
	u32 us = READ_ONCE(fpr_tag_delay_us);

	if (us)
		mdelay(DIV_ROUND_UP(us, USEC_PER_MSEC));
#endif
}

static bool fpr_tag_frame(u64 *slot, u64 new, unsigned long *fresh)
{
	u64 old = READ_ONCE(*slot), next;
	bool stale;

	do {
		bool other = fpr_tag_id(old) != fpr_tag_id(new);

		rcu_read_lock();
		stale = old && fpr_tag_is_stale(old,
						fpr_ctx_find(fpr_tag_id(old)));
		rcu_read_unlock();
		if (other && fpr_mutated(MUTATE_fpr_no_shared_tag))
			stale = false;
		next = fpr_tag_combine(old, stale, new,
				       stale && other ? fpr_shared_tag_now() : 0);
		if (next == old)
			return fpr_tag_id(next) == FPR_ID_SHARED;
		if (stale && other)
			fpr_tag_pause();
	} while (!try_cmpxchg64(slot, &old, next));

	*fresh += !stale;
	if (fpr_tag_id(next) != FPR_ID_SHARED)
		return false;
	fpr_tag_cover(slot, next);
	count_vm_event(FPR_SHARED);
	return true;
}

/**
 * fpr_tag_frames() - note that a context was left with stale translations
 * @pfn: first frame
 * @nr:	number of frames, of one folio
 * @new: tag of the context that skips, read after the entries were cleared
 * @fresh: the number of those that nobody could reach before is added to it
 *
 * Context: any; the caller holds a reference to the frames.
 * Return: false if the frames have no tags (yet): the caller must flush. Tags
 * already written stay; the caller owes for them.
 */
bool fpr_tag_frames(unsigned long pfn, unsigned long nr, u64 new,
		    unsigned long *fresh)
{
	bool shared = false, all = true;
	unsigned long i;

	for (i = 0; i < nr && all; i++) {
		u64 *slot = fpr_tag_slot(pfn + i);

		if (unlikely(!slot)) {
			unsigned long section = pfn_to_section_nr(pfn + i);

			if (section < fpr_sections) {
				set_bit(section, fpr_wanted);
				schedule_work(&fpr_tags_work);
			}
			all = false;
			continue;
		}
		if (likely(READ_ONCE(*slot) == new))
			continue;
		shared |= fpr_tag_frame(slot, new, fresh);
	}
	if (shared)
		fpr_owe(&fpr_shared, fpr_tag_gen(fpr_shared_tag_now()));
	return all;
}

/**
 * fpr_frames_tagged() - cheap screen for the free side
 * @pfn: a frame
 *
 * Return: false if no frame of its section was ever tagged.
 */
bool fpr_frames_tagged(unsigned long pfn)
{
	return fpr_tag_slot(pfn);
}

/**
 * fpr_frame_owner() - the context that may still reach a frame
 * @pfn: the frame
 * @found: gets its tag, if not NULL
 *
 * Context: any, RCU read side.
 * Return: the context, NULL if no CPU can reach the frame through a stale
 * translation.
 */
struct fpr_ctx *fpr_frame_owner(unsigned long pfn, u64 *found)
{
	u64 *slot = fpr_tag_slot(pfn);
	struct fpr_ctx *ctx;
	u64 tag;

	if (!slot)
		return NULL;
	tag = READ_ONCE(*slot);
	if (likely(!tag))
		return NULL;
	if (found)
		*found = tag;
	ctx = fpr_ctx_find(fpr_tag_id(tag));
	return fpr_tag_is_stale(tag, ctx) ? ctx : NULL;
}

/**
 * fpr_frames_tags() - the tags of frames in one look
 * @pfn: first frame
 * @nr: number of frames, of one page, which does not leave its section
 *
 * For pages that are freed and may be reached; fpr_page_tagged() has asked before.
 *
 * Return: all their tags together: 0 if none has one, and FPR_TAG_WRITABLE is
 * set if one says that those who can reach it can write, whether settled or not.
 */
u64 fpr_frames_tags(unsigned long pfn, unsigned long nr)
{
	u64 *slot, tags = 0;

	rcu_read_lock();
	slot = fpr_tag_slot(pfn);
	if (slot) {
		do {
			tags |= READ_ONCE(*slot++);
		} while (--nr);
	}
	rcu_read_unlock();
	return tags;
}

/**
 * fpr_frames_reached() - may a stale translation lead to one of some frames?
 * @pfn: first frame
 * @nr: number of frames
 *
 * Context: any.
 * Return: true if it may.
 */
bool fpr_frames_reached(unsigned long pfn, unsigned long nr)
{
	bool reached = false;

	rcu_read_lock();
	for (; nr-- && !reached; pfn++)
		reached = fpr_frame_owner(pfn, NULL);
	rcu_read_unlock();
	return reached;
}

/**
 * fpr_tags_clear() - forget the tags of frames that a context cannot reach
 * @pfn: first frame
 * @nr: number of frames
 * @id: the context, which was flushed after the frames were freed; FPR_ID_NONE
 *	if nobody can reach the frames
 */
void fpr_tags_clear(unsigned long pfn, unsigned long nr, u32 id)
{
	guard(rcu)();
	for (; nr--; pfn++) {
		u64 *slot = fpr_tag_slot(pfn);

		if (slot && *slot &&
		    (id == FPR_ID_NONE || fpr_tag_id(*slot) == id))
			WRITE_ONCE(*slot, 0);
	}
}
