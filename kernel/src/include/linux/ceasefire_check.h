/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What an emulator that checks TLB entries has to be told about page frames
 *
 * The emulator compares each use of a TLB entry with the page tables. A stale
 * entry is legal until the flush; an event says that the flush should be over:
 * no translation of the frame from before it may be used from now on. So the
 * place of an event is behind the last flush that the kernel is going to do for
 * the frame, and before anybody else can get it.
 *
 * Debug builds (CONFIG_CEASEFIRE_TLB_CHECK) only. The key is on where such an
 * emulator runs the kernel. No locks; any context.
 */
#ifndef _LINUX_CEASEFIRE_CHECK_H
#define _LINUX_CEASEFIRE_CHECK_H

#include <linux/jump_label.h>
#include <linux/mm_types.h>

/* Numbers of the emulator's interface. */
enum ceasefire_event {
	CEASEFIRE_FREED = 1,	/* goes to the page allocator */
	CEASEFIRE_OWNER = 2,	/* goes to somebody else, without being freed */
	CEASEFIRE_UNCACHED = 3,	/* leaves the page cache */
};

#ifdef CONFIG_CEASEFIRE_TLB_CHECK

DECLARE_STATIC_KEY_FALSE(ceasefire_checked);

void __ceasefire_event(struct page *page, unsigned long nr,
		       enum ceasefire_event event);
void __ceasefire_moved(struct folio *folio);
void __ceasefire_recycled(struct page *page);
void __ceasefire_skipped(unsigned long start, unsigned long end);
void __ceasefire_settled(struct mm_struct *mm, unsigned long start,
			 unsigned long end);

static __always_inline void
ceasefire_event(struct page *page, unsigned long nr, enum ceasefire_event event)
{
	if (static_branch_unlikely(&ceasefire_checked))
		__ceasefire_event(page, nr, event);
}

/* A folio is about to change its owner, unless somebody maps it. */
static inline void ceasefire_moved(struct folio *folio)
{
	if (static_branch_unlikely(&ceasefire_checked))
		__ceasefire_moved(folio);
}

/* A frame gets new content in the process that may still read it. */
static inline void ceasefire_recycled(struct page *page)
{
	if (static_branch_unlikely(&ceasefire_checked))
		__ceasefire_recycled(page);
}

/* A flush of the current process was skipped: nobody may use these addresses */
static inline void ceasefire_skipped(unsigned long start, unsigned long end)
{
	if (static_branch_unlikely(&ceasefire_checked))
		__ceasefire_skipped(start, end);
}

/* It was made up for, the addresses may be used again. */
static inline void ceasefire_settled(struct mm_struct *mm, unsigned long start,
				     unsigned long end)
{
	if (static_branch_unlikely(&ceasefire_checked))
		__ceasefire_settled(mm, start, end);
}

#else

#define ceasefire_event(page, nr, event)	((void)0)
static inline void ceasefire_moved(struct folio *folio) { }
static inline void ceasefire_recycled(struct page *page) { }
static inline void ceasefire_skipped(unsigned long start, unsigned long end) { }
static inline void ceasefire_settled(struct mm_struct *mm, unsigned long start,
				     unsigned long end) { }

#endif /* CONFIG_CEASEFIRE_TLB_CHECK */

#endif /* _LINUX_CEASEFIRE_CHECK_H */
