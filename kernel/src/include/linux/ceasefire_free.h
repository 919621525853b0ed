/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Hooks of ceasefire where page frames go to others: they are parked, charged and
 * drained (I1, I6).
 */
#ifndef _LINUX_CEASEFIRE_FREE_H
#define _LINUX_CEASEFIRE_FREE_H

#include <linux/ceasefire_check.h>
#include <linux/ceasefire_core.h>
#include <linux/gfp_types.h>
#include <linux/rcupdate.h>

struct folio;
struct mem_cgroup;
struct page;

/* Where a page is freed; one mutation each. */
enum { CF_FREE_PAGE, CF_FREE_FOLIOS, CF_FREE_LARGE };

#ifdef CONFIG_CEASEFIRE_CORE

/* Parked base pages of all contexts. */
extern atomic_long_t cf_nr_parked;

bool __cf_park(struct page *page, unsigned int order, int site);
void __cf_assert_clean(struct page *page, unsigned int order);
bool __cf_folio_stale(struct folio *folio);
void __cf_poisoned(unsigned long pfn);
unsigned long __cf_drain(enum cf_drain_reason reason);
unsigned long __cf_drain_cgroup(struct mem_cgroup *memcg);
bool __cf_keep_charge(struct folio *folio, struct mem_cgroup *memcg);
void cf_release_page(struct page *page, unsigned int order);

/*
 * Has a page that is freed a tag, so that it is worth a call? Inline, because
 * each free of the system asks.
 */
static __always_inline bool cf_page_tagged(struct page *page,
					   unsigned int order)
{
	bool tagged;
	u64 *slot;

	/* Any of its frames may have one. */
	if (unlikely(order))
		return true;
	rcu_read_lock();
	slot = cf_tag_slot(page_to_pfn(page));
	tagged = slot && READ_ONCE(*slot);
	rcu_read_unlock();
	return unlikely(tagged);
}

/*
 * Free side of the page allocator, any context, hot: true if the page may
 * still be reached by stale translations and was parked (I1).
 */
static inline bool cf_park(struct page *page, unsigned int order, int site)
{
	if (cf_on() && cf_page_tagged(page, order) &&
	    __cf_park(page, order, site))
		return true;
	ceasefire_event(page, 1UL << order, CEASEFIRE_FREED);
	return false;
}

/* post_alloc_hook(): no stale frame may be handed out (I1), debug builds. */
static inline void cf_assert_clean(struct page *page, unsigned int order)
{
	if (IS_ENABLED(CONFIG_CEASEFIRE_DEBUG) && cf_on())
		__cf_assert_clean(page, order);
}

/* Frames that change their owner without being freed (I1). */
static inline bool cf_folio_stale(struct folio *folio)
{
	if (cf_on() && __cf_folio_stale(folio))
		return true;
	ceasefire_moved(folio);
	return false;
}

/*
 * action_result(), page_handle_poison(): a bad frame, which no entry maps any
 * more, must not be read through a stale translation either (I5).
 */
static inline void cf_poisoned(unsigned long pfn)
{
	if (cf_on())
		__cf_poisoned(pfn);
}

/* Return parked frames to the allocator; may flush, so it may sleep (I6). */
static inline unsigned long cf_drain(enum cf_drain_reason reason)
{
	return unlikely(atomic_long_read(&cf_nr_parked)) ? __cf_drain(reason) : 0;
}

/*
 * uncharge_folio(): true if the group goes on to pay for it, because it will be
 * parked (I6). cf_park() takes it from there.
 */
static inline bool cf_keep_charge(struct folio *folio,
				  struct mem_cgroup *memcg)
{
	return cf_on() && cf_page_tagged(&folio->page, folio_order(folio)) &&
	       __cf_keep_charge(folio, memcg);
}

/* try_to_free_mem_cgroup_pages(): a group gets back what is parked of it. */
static inline unsigned long cf_drain_cgroup(struct mem_cgroup *memcg)
{
	return unlikely(atomic_long_read(&cf_nr_parked)) ?
	       __cf_drain_cgroup(memcg) : 0;
}

#else

static inline bool cf_park(struct page *page, unsigned int order, int site)
{
	ceasefire_event(page, 1UL << order, CEASEFIRE_FREED);
	return false;
}

static inline void cf_assert_clean(struct page *page, unsigned int order) { }

static inline bool cf_folio_stale(struct folio *folio)
{
	ceasefire_moved(folio);
	return false;
}

static inline void cf_poisoned(unsigned long pfn) { }

static inline unsigned long cf_drain(enum cf_drain_reason reason)
{
	return 0;
}

static inline bool cf_keep_charge(struct folio *folio,
				  struct mem_cgroup *memcg)
{
	return false;
}

static inline unsigned long cf_drain_cgroup(struct mem_cgroup *memcg)
{
	return 0;
}

#endif /* CONFIG_CEASEFIRE_CORE */

#endif /* _LINUX_CEASEFIRE_FREE_H */
