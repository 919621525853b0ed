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
 * It is told of flushes, too: when one has returned, nobody may use what was loaded
 * before it began.
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
u32 __ceasefire_flush_begin(struct mm_struct *mm, unsigned long start,
			    unsigned long end, unsigned int stride_shift);
void __ceasefire_flush_done(u32 flush);
void __ceasefire_root(struct mm_struct *mm, pgd_t *root);

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

static inline u32 ceasefire_flush_begin(struct mm_struct *mm,
					unsigned long start, unsigned long end,
					unsigned int stride_shift)
{
	if (static_branch_unlikely(&ceasefire_checked))
		return __ceasefire_flush_begin(mm, start, end, stride_shift);
	return 0;
}

static inline void ceasefire_flush_done(const u32 *flush)
{
	if (static_branch_unlikely(&ceasefire_checked) && *flush)
		__ceasefire_flush_done(*flush);
}

/*
 * A declaration, the last one of a function that flushes this range: it begins here,
 * and is done wherever the function returns.
 */
#define ceasefire_flush(mm, start, end, stride_shift)			\
	u32 __cf_flush __cleanup(ceasefire_flush_done) =		\
		ceasefire_flush_begin(mm, start, end, stride_shift)

/* From now on CPUs may walk @root for @mm. */
static inline void ceasefire_root(struct mm_struct *mm, pgd_t *root)
{
	if (static_branch_unlikely(&ceasefire_checked))
		__ceasefire_root(mm, root);
}

#else

#define ceasefire_event(page, nr, event)	((void)0)
static inline void ceasefire_moved(struct folio *folio) { }
static inline void ceasefire_recycled(struct page *page) { }
static inline void ceasefire_skipped(unsigned long start, unsigned long end) { }
static inline void ceasefire_settled(struct mm_struct *mm, unsigned long start,
				     unsigned long end) { }
#define ceasefire_flush(mm, start, end, stride_shift)			\
	do { } while (0)
static inline void ceasefire_root(struct mm_struct *mm, pgd_t *root) { }

#endif /* CONFIG_CEASEFIRE_TLB_CHECK */

#endif /* _LINUX_CEASEFIRE_CHECK_H */
