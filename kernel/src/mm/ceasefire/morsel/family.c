// SPDX-License-Identifier: GPL-2.0
/*
 * Morsels that were copied from each other are a family: they may share tables and pages.
 *
 * Who has made a page or a table pays for it, and counts it, until it is free; whoever of the
 * family gives it back last. Its @mapping says who that is. So a morsel that goes may leave
 * something behind that others of its family use. Then its memory stays, with what counts and
 * pays, until the last of that is free (@held). It is no inode of a file system by then, and
 * igrab() says so.
 *
 *   goes				another one
 *   leaves the family
 *   gives back what is its own
 *   @dead_lock: something is left?	gives back what the dead one has made:
 *   @dead := true			@dead_lock: takes it off its counts, and if nothing
 *					is left and @dead: puts its memory, after RCU
 *
 * What a morsel counts goes down under that lock unless it does it itself, which it does not
 * any more when it is dead. Nobody makes anything for a dead one.
 *
 * Locks: the family's, of its list, inside inode locks; @dead_lock. Callers: copy.c, object.c,
 * memory.c, poison.c.
 */
#include <linux/atomic.h>
#include <linux/list.h>
#include <linux/memcontrol.h>
#include <linux/mm.h>
#include <linux/mutex.h>
#include <linux/rcupdate.h>
#include <linux/refcount.h>
#include <linux/slab.h>

#include "morsel.h"

struct morsel_family {
	refcount_t members;
	/* Of the list. */
	struct mutex lock;
	/* @kin of members. */
	struct list_head list;
};

/* Of what is given back for others. */
static DEFINE_SPINLOCK(morsel_dead_lock);

static void morsel_family_add(struct morsel_family *family, struct morsel *m)
{
	mutex_lock(&family->lock);
	list_add_tail(&m->kin, &family->list);
	mutex_unlock(&family->lock);
	WRITE_ONCE(m->family, family);
	/* Before the first table is shared, which is under its lock. */
	WRITE_ONCE(m->shares, true);
}

/**
 * morsel_family_leave() - a morsel goes
 * @m: the morsel; nobody has a reference
 *
 * Nobody else looks at it when this returns.
 *
 * Context: may sleep.
 */
void morsel_family_leave(struct morsel *m)
{
	struct morsel_family *family = m->family;

	if (!family)
		return;
	mutex_lock(&family->lock);
	list_del(&m->kin);
	mutex_unlock(&family->lock);
	m->family = NULL;
	if (refcount_dec_and_test(&family->members))
		kfree(family);
}

/**
 * morsel_family_join() - a morsel is to be copied
 * @from: the morsel
 * @to: the copy, which has nothing yet, and no family
 *
 * Context: may sleep; both inode locks.
 * Return: 0, or -ENOMEM.
 */
int morsel_family_join(struct morsel *from, struct morsel *to)
{
	struct morsel_family *family = from->family;

	if (!family) {
		family = kzalloc(sizeof(*family), GFP_KERNEL_ACCOUNT);
		if (!family)
			return -ENOMEM;
		refcount_set(&family->members, 1);
		mutex_init(&family->lock);
		INIT_LIST_HEAD(&family->list);
		morsel_family_add(family, from);
	}
	refcount_inc(&family->members);
	morsel_family_add(family, to);
	return 0;
}

/**
 * morsel_family_each() - call a function for a morsel and all of its family
 * @m: the morsel; somebody has a reference
 * @fn: the function
 * @arg: for it
 *
 * Context: may sleep.
 */
void morsel_family_each(struct morsel *m,
			void (*fn)(struct morsel *m, void *arg), void *arg)
{
	struct morsel_family *family = READ_ONCE(m->family);
	struct morsel *kin;

	if (!family) {
		fn(m, arg);
		/* It may have got one meanwhile. */
		family = READ_ONCE(m->family);
		if (!family)
			return;
	}
	mutex_lock(&family->lock);
	list_for_each_entry(kin, &family->list, kin)
		fn(kin, arg);
	mutex_unlock(&family->lock);
}

/**
 * morsel_owner() - who counts and pays for a page or a table
 * @m: who gives it back
 * @mapping: its mapping
 */
struct morsel *morsel_owner(struct morsel *m, unsigned long mapping)
{
	if (!m->shares)
		return m;
	return morsel_of(((struct address_space *)mapping)->host);
}

/**
 * morsel_owner_begin() - something is taken off the counts of a morsel
 * @m: who gives it back
 * @owner: whose it is
 *
 * Until morsel_owner_end() the owner stays.
 */
void morsel_owner_begin(struct morsel *m, struct morsel *owner)
{
	if (m == owner)
		return;
	spin_lock(&morsel_dead_lock);
	/* Sparse cannot be told of locks that are held at times. */
	__release(&morsel_dead_lock);
}

static bool morsel_has_any(struct morsel *m)
{
	return atomic_long_read(&m->pages) || atomic_long_read(&m->tables);
}

/**
 * morsel_put_memory() - nobody needs the memory of a morsel itself, or one less
 * @m: it
 *
 * Context: any, after a grace period of RCU.
 */
void morsel_put_memory(struct morsel *m)
{
	if (!atomic_dec_and_test(&m->held))
		return;
#ifdef CONFIG_MEMCG
	if (m->objcg)
		obj_cgroup_put(m->objcg);
#endif
	free_page((unsigned long)m->top);
	kfree(m);
}

static void morsel_put_dead(struct rcu_head *head)
{
	morsel_put_memory(container_of(head, struct morsel, gone));
}

void morsel_owner_end(struct morsel *m, struct morsel *owner)
{
	if (m == owner)
		return;
	__acquire(&morsel_dead_lock);
	if (owner->dead && !morsel_has_any(owner)) {
		owner->dead = false;
		/* Who has found it by a page may still look at it. */
		call_rcu(&owner->gone, morsel_put_dead);
	}
	spin_unlock(&morsel_dead_lock);
}

/**
 * morsel_family_end() - a morsel has given back what is its own
 * @m: the morsel
 */
void morsel_family_end(struct morsel *m)
{
	spin_lock(&morsel_dead_lock);
	if (morsel_has_any(m)) {
		WARN_ON_ONCE(!m->shares);
		m->dead = true;
		atomic_inc(&m->held);
	}
	spin_unlock(&morsel_dead_lock);
}
