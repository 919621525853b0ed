// SPDX-License-Identifier: GPL-2.0
/*
 * In units of 512 GiB and more a GiB is cut by one entry: that of a table of level 3 (T3), which
 * leads to a table of level 2 (T2). In units of 256 TiB so are 512 GiB, by the entry of the root,
 * which leads to T3. Roots are never cut (M8), so smaller units have nothing of that kind.
 *
 * Generic code knows that tables of pages go, and looks again when it has locked one. It does not
 * know that of T2 and T3: it reads the entry that leads there twice, and takes the second value as
 * it is (follow_pmd_mask(), walk_pmd_range()); and it goes on there for long, by mmap_lock or the
 * lock of a VMA, which who cuts has nothing to do with. So
 *
 * - an entry that was cut still leads to a table: to one that is always empty, of either level, and
 *   the same for all morsels (@morsel_nothing). For a morsel that is none: see morsel_leads().
 * - T2 and T3 are freed with the object, and are never used for another part of it. Once one is
 *   empty it rests below the entry that it was for, until somebody needs a table there again.
 *   Whoever is late finds there what was there when he came, nothing, or what is there now.
 *
 *   cuts			cleans			populates
 *   lock of the object
 *   xchg(entry, nothing)
 *   unlock						makes another T2 meanwhile
 *   withdraws, flushes
 *				locks T2
 *				takes all of it
 *				unlocks
 *				T2 rests		takes it for the same GiB, or
 *							not: then both are there
 *
 * There are no more of them than were ever cut at a time, and one; all are paid for.
 *
 * T3 is opened first: who has cut it cuts its entries when he has flushed, and what those led to is
 * cleaned like any T2. T2 rests below the entry of its T3, which may rest itself then.
 *
 * Who cleans cuts the entries of T2, under its lock. From then on all is as ever: tables of pages
 * are emptied under their locks, and wait for lazy CPUs and RCU (clean.c). Who makes a table of
 * pages in T2 looks at the entry that leads to T2, by those that lead there from the top, when it
 * has the lock of T2. If that look comes before the xchg(), its entry comes before who cleans has
 * the lock. Otherwise a page could come into T2 that rests, and be back in the object later, when
 * all was depopulated again. Who makes T2 in T3 looks in the same way, under the object's lock.
 *
 * Whoever has found T2 before the cut may be late: a read() finds the page as long as it is there,
 * and a page may be installed in a table below T2 until that entry is cut as well, when the one who
 * cleans takes it. Both have begun before the cut, so that is as if they had come first; no CPU
 * finds T2. A page of the pool that CPUs may still reach (M7) does not come there: it is taken
 * before the way to its table is looked for, so before the cut, and who cuts there has flushed for
 * all that was given up (morsel_epoch_settle()). GUP without locks holds up the flush, or with
 * sharers finds the entry of the page changed before the page is free.
 *
 * A CPU that has cached the way to @morsel_nothing finds no page there, and a CPU forgets at a
 * fault by which way it came. One in lazy mode that has the way to T2 is right about the offset.
 *
 * Copies of upper tables (sharers) lead to T2 themselves. So whoever flushes withdraws that while
 * somebody is between such a cut and the end of his flush: who has found nothing there as well, as
 * with morsel_must_flush(). They never lead to @morsel_nothing: it has no owner, and nobody
 * withdraws when T2' comes in its place (sharers_whole_is_nothing()). T3 still leads
 * to T2 until it is opened; but who fills a copy comes from the root, after the cut or before the
 * withdrawal, of which he finds out.
 *
 * Entries of T2 change under its lock, by those who find that it is linked, and then by who has cut
 * it. So it knows how many tables of pages it leads to, and MORSEL_ASYNC can count what waits.
 *
 * Who shares something with copies cuts tables of pages one by one, as it may have to drop each.
 *
 * Locks: the object's, then that of T2, never both. Callers: prune.c, clean.c, async.c,
 * tree.c, steal.c, copy.c, object.c.
 */
#include <linux/list.h>
#include <linux/mm.h>
#include <linux/string.h>

#include "morsel.h"

/* See above. */
unsigned long *morsel_nothing __ro_after_init;

/*
 * @pt_index of T2, and of T3: to how many tables it leads, under its lock; when it was cut also the
 * entry that it is for, by its physical address in words.
 */
#define MORSEL_BELOW_BITS	12
#define MORSEL_BELOW_MASK	(BIT(MORSEL_BELOW_BITS) - 1)
static_assert(PTRS_PER_PTE <= MORSEL_BELOW_MASK);
static_assert(MAX_POSSIBLE_PHYSMEM_BITS - 3 + MORSEL_BELOW_BITS <= 64);

/*
 * Behind a table of level 3 or 4 is a page that no CPU walks: for each entry the tables that rest,
 * one after the other by the first word of @pt_list. It cannot fail to have room.
 */
static struct list_head **morsel_resting(unsigned long *entry)
{
	BUILD_BUG_ON(sizeof(struct list_head *) != sizeof(*entry));
	return (struct list_head **)(entry + PTRS_PER_PTE);
}

static pgoff_t morsel_home(unsigned long *entry)
{
	return __pa(entry) / sizeof(*entry) << MORSEL_BELOW_BITS;
}

/* A table was cut, under its lock. */
static void morsel_go_home(struct ptdesc *table, unsigned long *entry)
{
	VM_WARN_ON_ONCE(table->pt_index > PTRS_PER_PTE);
	table->pt_index |= morsel_home(entry);
}

static unsigned long *morsel_home_of(struct ptdesc *table)
{
	return __va((table->pt_index >> MORSEL_BELOW_BITS) * sizeof(unsigned long));
}

static unsigned long morsel_cut_value(void)
{
	CF_MUTATION(morsel_cut_none, return 0);
	return __pa(morsel_nothing) | _PAGE_TABLE;
}

/**
 * morsel_is_linked() - does the tree still lead to a table?
 * @m: the morsel
 * @offset: in bytes, of what the table is for
 * @in: an entry of the table; its lock is held, or that of a table below
 * @level: of the table
 */
bool morsel_is_linked(struct morsel *m, u64 offset, const unsigned long *in,
		      unsigned int level)
{
	unsigned long *entry, now;

	CF_MUTATION(morsel_rest_unseen, return true);
	if (!morsel_may_rest(m, level + 1))
		return true;
	entry = morsel_entry(m, offset, level + 1);
	now = entry ? READ_ONCE(*entry) : 0;
	return morsel_leads(now) &&
	       morsel_table(now) == PTR_ALIGN_DOWN((unsigned long *)in, PAGE_SIZE);
}

/**
 * morsel_below_add() - a table of level 2 or 3 leads to more tables
 * @entry: an entry of it; its lock is held, or nobody else knows it
 * @nr: so many, or less by so many
 */
void morsel_below_add(unsigned long *entry, int nr)
{
	virt_to_ptdesc(entry)->pt_index += nr;
}

/* A table is about to be cut, and nobody else can do it first. */
static void morsel_unlink_begin(struct morsel *m, struct morsel_gather *g)
{
	if (g->unlinks)
		return;
	g->unlinks = true;
	/* Before the cut, which is a full barrier. */
	atomic_inc(&m->unlinking);
}

/**
 * morsel_unlink_end() - no copy of upper tables leads there, and all have flushed
 * @m: the morsel
 * @g: of who has cut
 */
void morsel_unlink_end(struct morsel *m, struct morsel_gather *g)
{
	if (!g->unlinks)
		return;
	g->unlinks = false;
	/* After the flush. */
	smp_mb__before_atomic();
	atomic_dec(&m->unlinking);
}

/**
 * morsel_is_unlinking() - may copies of upper tables lead to what was cut?
 * @m: the morsel
 */
bool morsel_is_unlinking(struct morsel *m)
{
	CF_MUTATION(morsel_link_stays, return false);
	/* The entries before the count, as in morsel_must_flush(). */
	smp_rmb();
	return atomic_read(&m->unlinking);
}

/* Is there nothing below? Then it stays where it is, and nobody has to flush. */
static bool morsel_is_bare(struct morsel *m, unsigned long *table, unsigned int level)
{
	spinlock_t *lock = morsel_lockptr(m, table, level);
	bool bare;

	if (READ_ONCE(virt_to_ptdesc(table)->pt_index))
		return false;
	/* Who makes a table there from now on sees the size of the object. */
	spin_lock(lock);
	bare = !virt_to_ptdesc(table)->pt_index;
	spin_unlock(lock);
	return bare;
}

/*
 * The entry, of a table of a level, leads nowhere from here on; the table below, or NULL: it led
 * nowhere before. @g: of who cuts; NULL: no flush is due.
 */
static struct ptdesc *morsel_unlink(struct morsel *m, unsigned long *entry,
				    unsigned int level, struct morsel_gather *g)
{
	struct ptdesc *table = NULL;

	/* As in morsel_is_bare(), if there is none. */
	spin_lock(&m->lock);
	if (entry && morsel_leads(READ_ONCE(*entry))) {
		if (g)
			morsel_unlink_begin(m, g);
		table = virt_to_ptdesc(morsel_table(xchg(entry, morsel_cut_value())));
		if (level == 3)
			morsel_below_add(entry, -1);
		else
			morsel_go_home(table, entry);
	}
	spin_unlock(&m->lock);
	return table;
}

/* A table of level 2 was cut: what it leads to goes with it. */
static void morsel_take_middle(struct morsel *m, struct ptdesc *middle,
			       unsigned long *entry, struct morsel_gather *g)
{
	unsigned long below;

	/* Whoever has looked before the cut has set his entry. */
	spin_lock(ptlock_ptr(middle));
	below = middle->pt_index;
	morsel_go_home(middle, entry);
	spin_unlock(ptlock_ptr(middle));
	g->cuts++;
	list_add_tail(&middle->pt_list, &g->middles);
	g->nr_middles++;
	g->nr_below += below;
}

/**
 * morsel_cut_upper() - all of a GiB leaves a morsel, or of 512 GiB
 * @m: the morsel
 * @offset: where it begins
 * @level: of the table whose entry is cut; morsel_may_rest()
 * @g: takes what was cut
 */
void morsel_cut_upper(struct morsel *m, u64 offset, unsigned int level,
		      struct morsel_gather *g)
{
	unsigned long *entry = morsel_entry(m, offset, level);
	unsigned long found = entry ? READ_ONCE(*entry) : 0;
	struct ptdesc *table;

	if (morsel_leads(found) && morsel_is_bare(m, morsel_table(found), level - 1))
		return;
	table = morsel_unlink(m, entry, level, g);
	if (!table)
		return;
	if (level == 3) {
		morsel_take_middle(m, table, entry, g);
		return;
	}
	g->cuts++;
	list_add_tail(&table->pt_list, &g->uppers);
}

/**
 * morsel_open_uppers() - take tables of level 2 out of those of level 3 that were cut
 * @m: the morsel; all who map it have flushed
 * @g: what was cut, for somebody else to clean
 *
 * Context: may sleep.
 */
void morsel_open_uppers(struct morsel *m, struct morsel_gather *g)
{
	struct ptdesc *upper, *middle, *next;
	unsigned int i;

	list_for_each_entry_safe(upper, next, &g->uppers, pt_list) {
		unsigned long *table = ptdesc_address(upper);

		list_del(&upper->pt_list);
		g->cuts--;
		for (i = 0; i < PTRS_PER_PTE; i++) {
			if (!morsel_leads(READ_ONCE(table[i])))
				continue;
			middle = morsel_unlink(m, table + i, 3, NULL);
			if (middle)
				morsel_take_middle(m, middle, table + i, g);
		}
		morsel_rest(m, upper);
		cond_resched();
	}
}

/**
 * morsel_open_middle() - take tables of pages out of a table of level 2 that was cut
 * @middle: the table; all who map the object have flushed
 * @tables: where they go, by pt_list
 * @most: how many of them
 *
 * Return: so many; with less than @most it is empty.
 */
unsigned int morsel_open_middle(struct ptdesc *middle, struct list_head *tables,
				unsigned int most)
{
	unsigned long *table = ptdesc_address(middle), old;
	unsigned int i, nr = 0;

	spin_lock(ptlock_ptr(middle));
	for (i = 0; i < PTRS_PER_PTE && nr < most; i++) {
		if (!READ_ONCE(table[i]))
			continue;
		/* CPUs in lazy mode may set bits. */
		old = xchg(table + i, 0);
		list_add_tail(&virt_to_ptdesc(morsel_table(old))->pt_list, tables);
		nr++;
	}
	middle->pt_index -= nr;
	spin_unlock(ptlock_ptr(middle));
	return nr;
}

/**
 * morsel_middle_is_open() - is nothing left in a table of level 2 that was cut?
 * @middle: the table; nobody else opens it
 */
bool morsel_middle_is_open(struct ptdesc *middle)
{
	return !(middle->pt_index & MORSEL_BELOW_MASK);
}

/**
 * morsel_rest() - a table of level 2 or 3 rests, until one is needed there
 * @m: the morsel
 * @table: the table, empty and on no list
 */
void morsel_rest(struct morsel *m, struct ptdesc *table)
{
	struct list_head **first = morsel_resting(morsel_home_of(table));

	table->pt_index = 0;
	spin_lock(&m->lock);
	table->pt_list.next = *first;
	*first = &table->pt_list;
	spin_unlock(&m->lock);
}

/**
 * morsel_rests() - does a table rest below an entry, most likely?
 * @m: the morsel
 * @entry: the entry
 * @level: of its table
 */
bool morsel_rests(struct morsel *m, unsigned long *entry, unsigned int level)
{
	return morsel_may_rest(m, level) && READ_ONCE(*morsel_resting(entry));
}

/* Is something in a table that rests? */
static bool morsel_is_asleep(unsigned long *table)
{
	unsigned int i;

	for (i = 0; i < PTRS_PER_PTE; i++)
		if (morsel_leads(table[i]))
			return false;
	return true;
}

/**
 * morsel_wake() - take a table that rests
 * @m: the morsel; its lock is held
 * @entry: which it was for
 * @level: of the table of @entry
 *
 * Return: the table, or NULL.
 */
struct ptdesc *morsel_wake(struct morsel *m, unsigned long *entry,
			   unsigned int level)
{
	struct list_head **first;
	struct ptdesc *table;

	if (!morsel_rests(m, entry, level))
		return NULL;
	first = morsel_resting(entry);
	table = list_entry(*first, struct ptdesc, pt_list);
	WRITE_ONCE(*first, table->pt_list.next);
	VM_WARN_ON_ONCE(!morsel_is_asleep(ptdesc_address(table)));
	return table;
}

/**
 * morsel_rest_init() - make the table that is always empty
 *
 * Return: 0, or -ENOMEM.
 */
int __init morsel_rest_init(void)
{
	struct ptdesc *table = pagetable_alloc(GFP_KERNEL | __GFP_ZERO, 0);

	if (!table)
		return -ENOMEM;
	/* Generic code may lock it. */
	if (!pagetable_pmd_ctor(table)) {
		pagetable_free(table);
		return -ENOMEM;
	}
	morsel_nothing = ptdesc_address(table);
	return 0;
}
