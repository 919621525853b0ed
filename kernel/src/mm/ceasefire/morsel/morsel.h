/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Morsels: memory objects with page tables of their own, which are linked into every
 * process that maps one.
 *
 * A morsel has units of 2 MiB, 1 GiB, 512 GiB, or with five levels 256 TiB. The table of a unit,
 * its root, is what processes link: an entry of their own table of PMDs, PUDs, P4Ds or PGDs leads
 * there, the attach entry. It has the rights of the mapping; entries of pages always allow all but
 * execution. Roots are in turn found by a table of the object, its top, which no CPU
 * walks. So software walks one tree, from the top, whoever maps it where.
 *
 *   object.c	the object: made, destroyed
 *   names.c	objects with names: the file system that is mounted
 *   size.c	its layout and its size
 *   file.c	what a program does with it: read(), write(), fallocate(), ioctl()
 *   memory.c	its pages: where they come from
 *   charge.c	who pays for them, and the limit
 *   huge.c	the same and more for pages of 2 MiB and 1 GiB
 *   table.c	its tables
 *   way.c	the way from the top to an entry
 *   tree.c	entries: made, installed, read
 *   map.c	mappings: attach entries come, change and go
 *   fault.c	the first access
 *   populate.c	pages for many, in blocks
 *   prune.c	depopulation: entries are cut
 *   flush.c	all who map it flush
 *   clean.c	what was cut is freed
 *   rest.c	tables of level 2 and 3 are cut, rest, and are used again
 *   async.c	the same by others
 *   lazy.c	depopulation without a flush
 *   epochs.c	which offsets CPUs may still reach then (lazy_state.h)
 *   pool.c	pages that were given up so
 *   steal.c	what is zero or empty goes when memory is short
 *   copy.c	a copy of a morsel is made
 *   share.c	what copies share, and who may write there
 *   own.c	what is shared becomes its own
 *   family.c	who has made what copies share
 *   destroy.c	nothing is left, whoever maps it
 *   poison.c	a page is broken
 *   show.c	what can be seen of it
 *
 * Tables by level: 1 has entries of pages, 2 leads to those, 3 to these, 4 to those. The top has
 * the level above roots. Where pages have 2 MiB or 1 GiB, their entries are in tables of level 2 or
 * 3, and there are none below.
 *
 * M1 An entry is cut by xchg() or cmpxchg(). Who got the old value owns what it leads to. An
 *    entry that is not present leads to nothing: the page was broken (M10), or given up (M7).
 * M2 Into a table one installs under its lock, after a look at the entry above, and at
 *    the size of the object.
 * M3 What was cut is freed when every mapping in i_mmap was flushed. A mapping that
 *    leaves i_mmap has flushed itself before.
 * M4 Who walks: entries of pages by the table's lock; tables of level 1 by RCU. Tables
 *    above stay as long as the object, for the offset that they were made for. Roots are never
 *    cut; others may be, and an entry that leads to a table of level 2 or 3 always leads to one.
 * M5 Rights of a mapping are in its attach entry. Who reads entries of pages only must
 *    not trust them.
 * M6 Generic code changes no entry below an attach entry.
 * M8 Roots outlive all attach entries.
 *
 * M9 What was cut and is left to others is bounded, and nothing waits for it but who
 *    needs it: fsync(), a limit, the end of the object.
 *
 * M10 A page that was broken is used by nobody, and its offset says so until it is
 *    depopulated.
 *
 * M11 A page that is taken under pressure is zero, nobody has a reference, and no CPU reaches
 *    it; until that is known the table is locked.
 *
 * M7 What was given up without a flush stays in the object, and its offset without another
 *    page, until each process that maps it has flushed. An entry that is not present may have
 *    a mark that says so.
 *
 * M12 What several morsels lead to is not written to, and not freed before all who led there have
 *    flushed. A morsel writes to what it has made and nobody shares, after a flush; not while it is
 *    copied, so the copy is what it was at one moment. Nobody writes to what somebody had a
 *    reference to when a morsel gave it up.
 *
 * Locks, from the outside: inode lock (size), mmap_lock or a VMA's lock, @filling, that of steal.c,
 * of a family, @finishing, @settling, @freeing, @lazy_lock, i_mmap_rwsem, @left_lock, the lock of
 * one table, @pool_lock, that of family.c. Locks of two tables are never held at once, but steal.c
 * tries for a second one.
 */
#ifndef _MM_CEASEFIRE_MORSEL_H
#define _MM_CEASEFIRE_MORSEL_H

#include <linux/ceasefire_morsel.h>
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/pgtable.h>
#include <linux/swap.h>
#include <linux/swapops.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>

#include <uapi/linux/morsel.h>

#include "../mutate.h"
#include "lazy_state.h"

/* Who may make morsels: /sys/kernel/mm/ceasefire/morsel/enabled. */
enum morsel_enabled {
	MORSEL_NEVER,
	MORSEL_ASK,
};

/* Units that a mapping can link; one less than a table has, so that none is like a unit. */
#define MORSEL_UNITS_MAX	(PTRS_PER_PTE - 1)

/* Of units: their roots are tables of level 1, 2, 3, 4. */
#define MORSEL_LEVEL_MAX	4

/* Of tables that have entries of pages. */
#define MORSEL_BASE_MAX		3

struct obj_cgroup;
struct morsel_family;

/*
 * What was cut and others may lead to: it is put when all have flushed. There is no list for it,
 * since its fields are for who frees it.
 */
#define MORSEL_DROPS	32
struct morsel_drops {
	unsigned int	nr;
	bool		tables;
	/* Pages; tables of pages with bit 0. */
	unsigned long	what[MORSEL_DROPS];
};

/* What was cut, and is not free yet. It allocates nothing. */
struct morsel_gather {
	/* By page->lru, in the order of offsets. */
	struct list_head	pages;
	/* Tables of level 1, by pt_list. */
	struct list_head	tables;
	unsigned long		nr_tables;
	/* Those of level 3; by who has cut them they become some of level 2. */
	struct list_head	uppers;
	/* Those of level 2, and how many of level 1 they lead to. */
	struct list_head	middles;
	unsigned long		nr_middles;
	unsigned long		nr_below;
	/* Pages and tables; @dropped of them are nowhere else here. */
	unsigned long		cuts;
	unsigned long		dropped;
	/* It counts in @unlinking. */
	bool			unlinks;
	/* NULL: the morsel shares nothing. */
	struct morsel_drops	*drops;
};

static inline void morsel_gather_init(struct morsel_gather *g)
{
	INIT_LIST_HEAD(&g->pages);
	INIT_LIST_HEAD(&g->tables);
	g->nr_tables = 0;
	INIT_LIST_HEAD(&g->uppers);
	INIT_LIST_HEAD(&g->middles);
	g->nr_middles = 0;
	g->nr_below = 0;
	g->cuts = 0;
	g->dropped = 0;
	g->unlinks = false;
	g->drops = NULL;
}

/* Frees what was left to it, see async.c. */
struct morsel_cleaner {
	struct work_struct	work;
	struct morsel		*m;
};

/* Pages of a pool are free after this time, if nobody has used them again. */
#define MORSEL_POOL_AGE		HZ

/* More than that take turns at the locks of the page allocator. */
#define MORSEL_CLEANERS		4

struct morsel {
	struct inode		inode;
	/* Entries of roots; of level @level + 1. @lock */
	unsigned long		*top;
	/*
	 * Which of them there are: most units of a sparse object have none. Set under @lock,
	 * and read without it.
	 */
	DECLARE_BITMAP(roots, MORSEL_UNITS_MAX);
	/* Of roots; 0: nobody has chosen yet. Set once, inode lock. */
	unsigned int		level;
	/* Of tables that have entries of pages: 1; 2 or 3 with huge ones. Set before @level. */
	unsigned int		base;
	/* By who makes a huge page. */
	struct mutex		filling;
	/* Huge pages that were broken, by their number in the object; see huge.c. */
	struct xarray		lost;
	/* A page was broken, ever: populating takes the way that says so. */
	bool			broken;
	/* It counts as a page of its own, so that there are not too many of them. */
	bool			counted;
	/* Where mmap() maps it by itself. */
	unsigned long		address;
	/* The top, and tables of level 3 and 4, with what rests. */
	spinlock_t		lock;
	/* Who pays; NULL: the root group. */
	struct obj_cgroup	*objcg;
	/* Mappings, or negative: it was destroyed, see destroy.c. */
	atomic_long_t		mapped;
	atomic_long_t		pages;
	atomic_long_t		tables;
	atomic_long_t		cuts;
	atomic_long_t		flushes;
	/* Who is between morsel_flush_begin() and the end of the flush. */
	atomic_t		cutting;
	/* The same who cuts tables of level 2 or 3; see rest.c. */
	atomic_t		unlinking;
	/* Tables that were cut, and are empty, but may be walked. @cut_lock */
	spinlock_t		cut_lock;
	struct list_head	cut;
	unsigned int		nr_cut;
	struct delayed_work	settle;
	/* By who frees them. */
	struct mutex		settling;
	/* MORSEL_ASYNC: by who takes of it and is no cleaner; see async.c */
	struct mutex		finishing;
	/* What nobody has taken yet. @left_lock */
	spinlock_t		left_lock;
	struct morsel_gather	left;
	/* The same and what is being freed, as if each table was full. */
	atomic_long_t		waiting;
	struct morsel_cleaner	cleaners[MORSEL_CLEANERS];
	/* It may be depopulated without a flush. Set once, inode lock; see lazy.c. */
	bool			lazy;
	/* @now and @settled may be read without it. @lazy_lock */
	struct morsel_epochs	epochs;
	/* Newest mark of all. Raised under the lock of the table that has it. */
	u64			newest;
	/* By who closes an epoch, or looks whether it is settled. */
	struct mutex		lazy_lock;
	/* By who frees pages of the pool. */
	struct mutex		freeing;
	/* Pages that were given up; only with @lazy, see pool.c. @pool_lock */
	spinlock_t		pool_lock;
	struct morsel_pool	*pool;
	unsigned long		nr_pool;
	struct delayed_work	pool_age;
	/* See steal.c, whose lock these are under: where the next look begins. */
	struct list_head	steal;
	u64			steal_at;
	/*
	 * Taken since a pass has begun; pages and tables then, and when one has begun that has
	 * found nothing.
	 */
	unsigned long		steal_taken;
	long			steal_weight;
	long			steal_barren;
	/* It was copied, or is a copy: it may have tables and pages of others. Set once. */
	bool			shares;
	/* It is being copied. Set under the inode lock; see copy.c. */
	bool			copying;
	/* It becomes a copy: nobody has had a way to its pages yet. */
	bool			becoming;
	/* Who may have pinned pages had it mapped. Set before the mapping leaves i_mmap. */
	bool			pinned;
	/* See family.c: the list is under the family's lock. */
	struct morsel_family	*family;
	struct list_head	kin;
	/* It has gone, and others still use what it has made. */
	bool			dead;
	/* Of its memory: the file system's, and that of others then. */
	atomic_t		held;
	struct rcu_head		gone;
};

static inline struct morsel *morsel_of(struct inode *inode)
{
	return container_of(inode, struct morsel, inode);
}

static inline struct morsel *morsel_of_vma(struct vm_area_struct *vma)
{
	return morsel_of(file_inode(vma->vm_file));
}

/* Of an entry of a table of this level: what it leads to has so many bytes. */
static inline unsigned int morsel_shift(unsigned int level)
{
	return PAGE_SHIFT + (PMD_SHIFT - PAGE_SHIFT) * (level - 1);
}

static inline u64 morsel_span(unsigned int level)
{
	return 1ULL << morsel_shift(level);
}

/* What one entry of a page stands for, in bytes. */
static inline u64 morsel_page_size(const struct morsel *m)
{
	return morsel_span(m->base);
}

/* The same for the page allocator. */
static inline unsigned int morsel_page_order(const struct morsel *m)
{
	return morsel_shift(m->base) - PAGE_SHIFT;
}

static inline u64 morsel_page_start(const struct morsel *m, u64 offset)
{
	return round_down(offset, morsel_page_size(m));
}

static inline u64 morsel_page_end(const struct morsel *m, u64 offset)
{
	return round_up(offset, morsel_page_size(m));
}

static inline bool morsel_is_huge(const struct morsel *m)
{
	return m->base > 1;
}

static inline u64 morsel_unit(const struct morsel *m)
{
	return morsel_span(m->level + 1);
}

static inline unsigned int morsel_index(u64 offset, unsigned int level)
{
	return (offset >> morsel_shift(level)) & (PTRS_PER_PTE - 1);
}

/* Of an entry that leads to a table. */
static inline unsigned long *morsel_table(unsigned long entry)
{
	return __va(entry & PTE_PFN_MASK);
}

/* A table of level 2 or 3 that is always empty: entries that were cut lead there, see rest.c. */

/* Does an entry lead to a table of the object? */
static inline bool morsel_leads(unsigned long entry)
{
	return entry && morsel_table(entry) != morsel_nothing;
}

/* May tables be cut to which those of a level lead, 3 or 4? Then they rest below the same entry. */
static inline bool morsel_may_rest(const struct morsel *m, unsigned int level)
{
	return level > 2 && level <= m->level && !morsel_is_huge(m);
}

/* Of an entry of a page that is not 0 and has no mark: is there a page, or was it broken? */
static inline bool morsel_leaf_is_broken(unsigned long entry)
{
	return !(entry & _PAGE_PRESENT);
}

/* Generic code takes an entry with a mark for none: it is a marker of no known kind. */
#define MORSEL_MARK_SHIFT	3
static_assert(PTE_MARKER_MASK >> MORSEL_MARK_SHIFT == 0);

static inline unsigned long morsel_leaf_marked(u64 mark)
{
	swp_entry_t entry = swp_entry(SWP_PTE_MARKER, mark << MORSEL_MARK_SHIFT);

	return pte_val(swp_entry_to_pte(entry));
}

static inline bool morsel_leaf_is_marked(unsigned long entry)
{
	return entry && !(entry & _PAGE_PRESENT) &&
	       is_pte_marker_entry(pte_to_swp_entry(__pte(entry)));
}

static inline u64 morsel_leaf_mark(unsigned long entry)
{
	return swp_offset(pte_to_swp_entry(__pte(entry))) >> MORSEL_MARK_SHIFT;
}

/* Is a page what was at an offset when it got its mark? */
static inline bool morsel_is_own(struct page *page, u64 offset, u64 mark)
{
	return page_private(page) == mark && page->index == offset >> PAGE_SHIFT;
}

/* Is there a page, or was there one that is broken? */
static inline bool morsel_leaf_is_there(unsigned long entry)
{
	return entry && !morsel_leaf_is_marked(entry);
}

static inline struct page *morsel_leaf_page(unsigned long entry)
{
	return pte_page(__pte(entry));
}

/* Do both lead to the same? Hardware sets other bits. */
static inline bool morsel_same(unsigned long one, unsigned long other)
{
	return !((one ^ other) & (PTE_PFN_MASK | _PAGE_PRESENT));
}

/* Are both pages made by the same one? */
static inline bool morsel_same_owner(struct page *one, struct page *other)
{
	return one->mapping == other->mapping;
}

/* object.c */
#define MORSEL_MAGIC		0x4d4f5253
extern enum morsel_enabled morsel_enabled;
extern const struct super_operations morsel_sops;
extern const struct address_space_operations morsel_aops;
int morsel_allowed(void);
int morsel_setup(struct inode *inode);

/* size.c */
int morsel_set_base(struct morsel *m, u64 bytes);
int morsel_set_geometry(struct morsel *m, const struct morsel_geometry *g);
int morsel_set_size(struct morsel *m, u64 size);

/* destroy.c */
bool morsel_is_gone(const struct morsel *m);
long morsel_errno(struct morsel *m, long err);
bool morsel_map_begin(struct morsel *m);
void morsel_map_copy(struct morsel *m);
void morsel_map_end(struct morsel *m);
int morsel_destroy(struct morsel *m, bool force);

/* charge.c */
extern unsigned long morsel_limit;
unsigned long morsel_total(void);
void __init morsel_memory_init(void);
int morsel_count_object(struct morsel *m);
void morsel_uncount_object(struct morsel *m);
int morsel_charge(struct morsel *m, unsigned long nr);
void morsel_uncharge(struct morsel *m, unsigned long nr);
void morsel_count(struct morsel *m, pg_data_t *node, long nr);
void morsel_page_leave(struct morsel *m, struct page *page);
void morsel_page_lost(struct morsel *m, struct page *page);

/* memory.c */
struct page *morsel_block_alloc(struct morsel *m, unsigned int *order,
				int *err);
void morsel_page_discard(struct morsel *m, struct page *page);
void morsel_pages_free(struct morsel *m, struct list_head *pages);
void morsel_page_put(struct morsel *m, struct page *page);

/* table.c */
struct ptdesc *morsel_table_alloc(struct morsel *m, unsigned int level);
void morsel_table_discard(struct morsel *m, struct ptdesc *table,
			  unsigned int level);
void morsel_table_free(struct morsel *m, struct ptdesc *table,
		       unsigned int level);

/* huge.c */
struct page *morsel_huge_alloc(struct morsel *m, int *err);
void morsel_huge_free(struct morsel *m, struct list_head *pages);
unsigned long morsel_huge_leaf(unsigned long leaf);
unsigned long morsel_lost_leaf(struct morsel *m, u64 offset);
void morsel_lost_begin(struct morsel *m, u64 offset);
void morsel_lost_note(struct morsel *m, u64 offset);
void morsel_lost_end(struct morsel *m, u64 offset);
void morsel_lost_forget(struct morsel *m, u64 start, u64 end);

/* way.c */
spinlock_t *morsel_lockptr(struct morsel *m, unsigned long *table,
			   unsigned int level);
unsigned long *morsel_entry(struct morsel *m, u64 offset, unsigned int level);
u64 morsel_gap_end(struct morsel *m, u64 offset);
unsigned long *morsel_above(struct morsel *m, u64 offset);

/* tree.c */
unsigned long morsel_leaf_at(struct morsel *m, unsigned long *table, u64 offset);
unsigned long *morsel_lock_leaves(unsigned long *above, spinlock_t **ptl);
void morsel_unlock_leaves(spinlock_t *ptl);
int morsel_make_tables(struct morsel *m, u64 offset);
unsigned long morsel_adopt(struct morsel *m, u64 offset, struct page *page);
int morsel_install(struct morsel *m, u64 offset, struct page *page,
		   unsigned int nr);
unsigned int morsel_find(struct morsel *m, u64 *offset, u64 end, bool present);
struct page *morsel_get_page(struct morsel *m, u64 offset);
int morsel_look(struct morsel *m, u64 offset);
u64 morsel_owed_mark(struct morsel *m, u64 offset);

/* map.c */
int morsel_mmap(struct file *file, struct vm_area_struct *vma);
unsigned long morsel_get_unmapped_area(struct file *file, unsigned long addr,
				       unsigned long len, unsigned long pgoff,
				       unsigned long flags);
int morsel_attach(struct vm_area_struct *vma, unsigned long addr);
bool morsel_may_pin(struct vm_area_struct *vma);

/* populate.c */
int morsel_populate_page(struct morsel *m, u64 offset);
int morsel_populate(struct morsel *m, u64 start, u64 end);

/* prune.c */
void morsel_zero(struct morsel *m, u64 start, u64 end);
bool morsel_whole_pages(struct morsel *m, u64 *start, u64 *end, bool zero);
u64 morsel_end(struct morsel *m);
int morsel_own_ends(struct morsel *m, const struct morsel_range *range);
int morsel_depopulate(struct morsel *m, const struct morsel_range *ranges,
		      unsigned int nr, bool async);

/* flush.c */
void morsel_flush_begin(struct morsel *m, u64 start, u64 end);
void morsel_flush(struct morsel *m, u64 start, u64 end, bool tables);
void morsel_flush_locked(struct morsel *m, u64 start, u64 end);
void morsel_flush_end(struct morsel *m, u64 start, u64 end);
bool morsel_must_flush(struct morsel *m, bool found);

/* clean.c */
extern struct workqueue_struct *morsel_wq;
int __init morsel_clean_init(void);
void morsel_clean_pause(void);
void morsel_clean(struct morsel *m, struct morsel_gather *g);
void morsel_table_put(struct morsel *m, unsigned long *table);
void morsel_drops_put(struct morsel *m, struct morsel_drops *drops);
void morsel_settle_now(struct morsel *m);
void morsel_settle(struct work_struct *work);
void morsel_clean_all(struct morsel *m);

/* rest.c */
int __init morsel_rest_init(void);
bool morsel_is_linked(struct morsel *m, u64 offset, const unsigned long *in,
		      unsigned int level);
void morsel_below_add(unsigned long *entry, int nr);
bool morsel_is_unlinking(struct morsel *m);
void morsel_unlink_end(struct morsel *m, struct morsel_gather *g);
void morsel_cut_upper(struct morsel *m, u64 offset, unsigned int level,
		      struct morsel_gather *g);
void morsel_open_uppers(struct morsel *m, struct morsel_gather *g);
unsigned int morsel_open_middle(struct ptdesc *middle, struct list_head *tables,
				unsigned int most);
bool morsel_middle_is_open(struct ptdesc *middle);
void morsel_rest(struct morsel *m, struct ptdesc *table);
bool morsel_rests(struct morsel *m, unsigned long *entry, unsigned int level);
struct ptdesc *morsel_wake(struct morsel *m, unsigned long *entry,
			   unsigned int level);

/* async.c */
bool morsel_leave(struct morsel *m, struct morsel_gather *g);
void morsel_finish(struct morsel *m);
bool morsel_has_left(struct morsel *m);
bool morsel_free_some(struct morsel *m);
void morsel_async_end(struct morsel *m);
void morsel_async_setup(struct morsel *m);

/* epochs.c */
bool morsel_owes(struct morsel *m, u64 mark);
bool morsel_is_owed(struct morsel *m, unsigned long leaf);
void morsel_epoch_map(struct vm_area_struct *vma);
void morsel_epoch_flush(struct morsel *m, u64 mark, enum vm_event_item why);
void morsel_epoch_wait(struct morsel *m);
void morsel_epoch_settle(struct morsel *m);
void morsel_epoch_turn(struct morsel *m);
void morsel_epoch_end(struct morsel *m);

/* pool.c */
extern unsigned long morsel_pool_limit;
int morsel_pool_begin(struct morsel *m);
void morsel_pool_end(struct morsel *m);
void morsel_pool_add(struct morsel *m, struct list_head *pages);
unsigned int morsel_pool_cut(struct morsel *m, unsigned long keep,
			     struct list_head *pages);
struct page *morsel_pool_take(struct morsel *m);
struct page *morsel_pool_again(struct morsel *m, u64 offset, u64 mark);
bool morsel_pool_put(struct morsel *m, struct page *page);

/* lazy.c */
bool morsel_lazy_depopulate(struct morsel *m, const struct morsel_range *ranges,
			    unsigned int nr);
void morsel_pool_empty(struct morsel *m);
void morsel_lazy_end(struct morsel *m);
void morsel_lazy_setup(struct morsel *m);

/* copy.c */
loff_t morsel_remap_file_range(struct file *in, loff_t pos_in, struct file *out,
			       loff_t pos_out, loff_t len, unsigned int flags);

/* share.c */
void morsel_table_begin_use(struct morsel *m, struct ptdesc *table);
void morsel_table_share(unsigned long *table);
bool morsel_table_is_shared(unsigned long *table);
bool morsel_table_unshare(struct morsel *m, unsigned long *table);
bool morsel_page_is_shared(struct page *page);
bool morsel_page_is_held(struct page *page);
bool morsel_page_unshare(struct morsel *m, struct page *page);
bool morsel_is_copied(struct morsel *m);
bool morsel_is_open(struct morsel *m, unsigned long *table);
void morsel_share_leaves(unsigned long *from, unsigned long *to);

/* own.c */
int morsel_open(struct morsel *m, u64 offset);
int morsel_own_page(struct morsel *m, u64 offset);

/* family.c */
int morsel_family_join(struct morsel *from, struct morsel *to);
void morsel_family_leave(struct morsel *m);
void morsel_family_each(struct morsel *m,
			void (*fn)(struct morsel *m, void *arg), void *arg);
struct morsel *morsel_owner(struct morsel *m, unsigned long mapping);
void morsel_owner_begin(struct morsel *m, struct morsel *owner);
void morsel_owner_end(struct morsel *m, struct morsel *owner);
void morsel_family_end(struct morsel *m);
void morsel_put_memory(struct morsel *m);

/* steal.c */
void morsel_steal_begin(struct morsel *m);
void morsel_steal_end(struct morsel *m);
unsigned long morsel_steal_all(void);
void morsel_each(void (*fn)(struct morsel *m));
int __init morsel_steal_init(void);

/* show.c */
void morsel_get_stat(struct morsel *m, struct morsel_stat *stat);
void morsel_show_fdinfo(struct seq_file *s, struct file *file);

#endif /* _MM_CEASEFIRE_MORSEL_H */
