// SPDX-License-Identifier: GPL-2.0
/*
 * In units of 512 GiB a GiB is cut by one entry: that of a table of level 3, which leads to a
 * table of level 2 (T2). Roots are never cut (M8), so smaller units have nothing of that kind.
 *
 * Generic code knows that tables of pages go, and looks again when it has locked one. It does not
 * know that of T2: it reads the entry that leads there twice, and takes the second value as it
 * is (follow_pmd_mask(), walk_pmd_range()); and it goes on there for long, by mmap_lock or the
 * lock of a VMA, which who cuts has nothing to do with. So
 *
 * - an entry that was cut still leads to a table of level 2: to one that is always empty, and the
 *   same for all morsels (@morsel_nothing). For a morsel that is none: see morsel_leads().
 * - T2 is freed with the object, and is never used for another GiB. Once it is empty it rests,
 *   until somebody needs a table for that GiB again. Whoever is late finds there what was there
 *   when he came, nothing, or what is there now.
 *
 *   cuts			cleans			populates
 *   lock of level 3
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
 * Who cleans cuts the entries of T2, under its lock. From then on all is as ever: tables of pages
 * are emptied under their locks, and wait for lazy CPUs and RCU (clean.c). Who makes a table of
 * pages in T2 looks at the entry that leads to T2 when it has the lock of T2. If that look
 * comes before the xchg(), its entry comes before who cleans has the lock. Otherwise a page
 * could come into T2 that rests, and be back in the object later, when all was depopulated again.
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
 * with morsel_must_flush(). They never lead to @morsel_nothing, which has no owner.
 *
 * Entries of T2 change under its lock, by those who find that it is linked, and then by who has cut
 * it. So it knows how many tables of pages it leads to, and MORSEL_ASYNC can count what waits.
 *
 * Who shares something with copies cuts tables of pages one by one, as it may have to drop each.
 *
 * Locks: that of level 3, then that of T2, never both. Callers: prune.c, clean.c, async.c,
 * tree.c, steal.c, copy.c, object.c.
 */
#include <linux/list.h>
#include <linux/mm.h>
#include <linux/string.h>

#include "morsel.h"

/* See above. */
unsigned long *morsel_nothing __ro_after_init;

/*
 * @pt_index of T2: to how many tables it leads, under its lock; when it was cut also which GiB of
 * the object it is for.
 */
#define MORSEL_BELOW_BITS	16
#define MORSEL_BELOW_MASK	(BIT(MORSEL_BELOW_BITS) - 1)

/*
 * Behind a table of level 3 is a page that no CPU walks: for each entry the tables that rest, one
 * after the other by the first word of @pt_list. It cannot fail to have room.
 */
static struct list_head **morsel_resting(unsigned long *entry)
{
	BUILD_BUG_ON(sizeof(struct list_head *) != sizeof(*entry));
	return (struct list_head **)(entry + PTRS_PER_PTE);
}

/* Where the entry for a GiB is, of a table of level 3, which is a root; NULL: there is none. */
static unsigned long *morsel_gib_entry(struct morsel *m, u64 offset)
{
	unsigned long root = READ_ONCE(m->top[offset >> morsel_shift(4)]);

	return root ? morsel_table(root) + morsel_index(offset, 3) : NULL;
}

static unsigned long morsel_cut_value(void)
{
	CF_MUTATION(morsel_cut_none, return 0);
	return __pa(morsel_nothing) | _PAGE_TABLE;
}

/**
 * morsel_is_linked() - does the tree still lead to a table of level 2?
 * @m: the morsel
 * @offset: in bytes, of its GiB
 * @in: an entry of the table; its lock is held, or that of a table below
 */
bool morsel_is_linked(struct morsel *m, u64 offset, const unsigned long *in)
{
	unsigned long now;

	CF_MUTATION(morsel_rest_unseen, return true);
	if (!morsel_cuts_gib(m))
		return true;
	now = READ_ONCE(*morsel_gib_entry(m, offset));
	return morsel_leads(now) &&
	       morsel_table(now) == PTR_ALIGN_DOWN((unsigned long *)in, PAGE_SIZE);
}

/**
 * morsel_below_add() - a table of level 2 leads to more tables of pages
 * @entry: an entry of it; its lock is held, or nobody else knows it
 * @nr: so many, or less by so many
 */
void morsel_below_add(unsigned long *entry, int nr)
{
	virt_to_ptdesc(entry)->pt_index += nr;
}

/* A table of level 2 is about to be cut, and nobody else can do it first. */
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
static bool morsel_is_bare(unsigned long *table)
{
	spinlock_t *lock = ptlock_ptr(virt_to_ptdesc(table));
	bool bare;

	if (READ_ONCE(virt_to_ptdesc(table)->pt_index))
		return false;
	/* Who makes a table there from now on sees the size of the object. */
	spin_lock(lock);
	bare = !virt_to_ptdesc(table)->pt_index;
	spin_unlock(lock);
	return bare;
}

/* The entry leads nowhere from here on; the table, or NULL: it led nowhere before. */
static unsigned long *morsel_unlink(struct morsel *m, unsigned long *entry,
				    struct morsel_gather *g)
{
	unsigned long *table = NULL;

	/* As in morsel_is_bare(), if there is none. */
	spin_lock(&m->lock);
	if (entry && morsel_leads(READ_ONCE(*entry))) {
		morsel_unlink_begin(m, g);
		table = morsel_table(xchg(entry, morsel_cut_value()));
	}
	spin_unlock(&m->lock);
	return table;
}

/**
 * morsel_cut_gib() - all of a GiB leaves a morsel
 * @m: the morsel, for which morsel_cuts_gib()
 * @offset: where it begins
 * @g: takes what was cut
 */
void morsel_cut_gib(struct morsel *m, u64 offset, struct morsel_gather *g)
{
	unsigned long *entry = morsel_gib_entry(m, offset), *table, below;
	unsigned long found = entry ? READ_ONCE(*entry) : 0;
	struct ptdesc *middle;

	if (morsel_leads(found) && morsel_is_bare(morsel_table(found)))
		return;
	table = morsel_unlink(m, entry, g);
	if (!table)
		return;
	g->cuts++;
	middle = virt_to_ptdesc(table);
	/* Whoever has looked before the cut has set his entry. */
	spin_lock(ptlock_ptr(middle));
	below = middle->pt_index;
	middle->pt_index |= offset >> PUD_SHIFT << MORSEL_BELOW_BITS;
	spin_unlock(ptlock_ptr(middle));
	if (!below) {
		morsel_rest(m, middle);
		return;
	}
	list_add_tail(&middle->pt_list, &g->middles);
	g->nr_middles++;
	g->nr_below += below;
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
 * morsel_rest() - a table of level 2 rests, until its GiB needs one
 * @m: the morsel
 * @middle: the table, empty and on no list
 */
void morsel_rest(struct morsel *m, struct ptdesc *middle)
{
	u64 offset = (u64)middle->pt_index >> MORSEL_BELOW_BITS << PUD_SHIFT;
	struct list_head **first = morsel_resting(morsel_gib_entry(m, offset));

	middle->pt_index = 0;
	spin_lock(&m->lock);
	middle->pt_list.next = *first;
	*first = &middle->pt_list;
	spin_unlock(&m->lock);
}

/**
 * morsel_rests() - does a table for a GiB rest, most likely?
 * @m: the morsel
 * @entry: of a table of level 3
 */
bool morsel_rests(struct morsel *m, unsigned long *entry)
{
	return morsel_cuts_gib(m) && READ_ONCE(*morsel_resting(entry));
}

/**
 * morsel_wake() - take a table of level 2 that rests
 * @m: the morsel; its lock is held
 * @entry: of a table of level 3, which it was for
 *
 * Return: the table, or NULL.
 */
struct ptdesc *morsel_wake(struct morsel *m, unsigned long *entry)
{
	struct list_head **first = morsel_resting(entry);
	struct ptdesc *middle;

	if (!morsel_cuts_gib(m) || !*first)
		return NULL;
	middle = list_entry(*first, struct ptdesc, pt_list);
	WRITE_ONCE(*first, middle->pt_list.next);
	VM_WARN_ON_ONCE(memchr_inv(ptdesc_address(middle), 0, PAGE_SIZE));
	return middle;
}

/**
 * morsel_rest_end() - the object goes: free what rests
 * @m: the object
 * @table: a table of level 3
 */
void morsel_rest_end(struct morsel *m, unsigned long *table)
{
	struct ptdesc *middle;
	unsigned int i;

	for (i = 0; i < PTRS_PER_PTE; i++) {
		for (;;) {
			spin_lock(&m->lock);
			middle = morsel_wake(m, table + i);
			spin_unlock(&m->lock);
			if (!middle)
				break;
			morsel_table_free(m, middle, 2);
		}
	}
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
