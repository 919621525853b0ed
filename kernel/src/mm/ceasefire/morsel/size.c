// SPDX-License-Identifier: GPL-2.0
/*
 * The layout of a morsel, and its size.
 *
 * It has a layout from its first size on, or from MORSEL_IOC_GEOMETRY before that, and
 * then keeps it.
 *
 * A smaller size takes away what is behind it, as depopulation does; the size comes first, see
 * tree.c. The tables that mappings link stay, so a mapping may be larger than the object:
 * behind the end it gets SIGBUS.
 *
 * Locks: the inode's. Callers: file.c, object.c.
 */
#include <linux/capability.h>
#include <linux/cpufeature.h>
#include <linux/fs.h>
#include <linux/mm.h>

#include "morsel.h"

/**
 * morsel_set_base() - how large the pages of a morsel are
 * @m: the morsel, which has no layout
 * @bytes: 4 KiB, 2 MiB or 1 GiB
 *
 * One of 1 GiB makes others move out of the way: it is for those who may lock memory.
 *
 * Return: 0; -EINVAL: there are no such pages; -EOPNOTSUPP: not on this machine, or not in this
 * kernel; -EPERM: 1 GiB without CAP_IPC_LOCK.
 */
int morsel_set_base(struct morsel *m, u64 bytes)
{
	unsigned int base;

	for (base = 1; base <= MORSEL_BASE_MAX; base++)
		if (bytes == morsel_span(base))
			break;
	if (base > MORSEL_BASE_MAX)
		return -EINVAL;
	/* Generic code knows entries of that size only then. */
	if (base > 1 && !IS_ENABLED(CONFIG_TRANSPARENT_HUGEPAGE))
		return -EOPNOTSUPP;
	if (base > 2 && (!IS_ENABLED(CONFIG_CONTIG_ALLOC) ||
			 !cpu_feature_enabled(X86_FEATURE_GBPAGES)))
		return -EOPNOTSUPP;
	if (base > 2 && !capable(CAP_IPC_LOCK))
		return -EPERM;
	m->base = base;
	return 0;
}

/* Above its roots a process has a table of its own. */
static unsigned int morsel_level_max(void)
{
	return pgtable_l5_enabled() ? MORSEL_LEVEL_MAX : MORSEL_LEVEL_MAX - 1;
}

/* Of 2 MiB, 1 GiB, 512 GiB or 256 TiB, and larger than a page of it. */
static int morsel_set_unit(struct morsel *m, u64 unit)
{
	unsigned int level;

	for (level = m->base; level <= MORSEL_LEVEL_MAX; level++) {
		if (unit != morsel_span(level + 1))
			continue;
		if (level > morsel_level_max())
			return -EOPNOTSUPP;
		WRITE_ONCE(m->level, level);
		return 0;
	}
	return -EINVAL;
}

/**
 * morsel_set_geometry() - how a morsel is laid out
 * @m: the morsel, inode lock held
 * @g: the layout; without a size of pages they are as before
 *
 * Return: 0; -EBUSY: it has a layout; -ENODEV: it was destroyed; -EINVAL: there is no such unit, or
 * no such pages; -EOPNOTSUPP: not on this machine, or not together; -EPERM as of
 * morsel_set_base(); -ENOMEM.
 */
int morsel_set_geometry(struct morsel *m, const struct morsel_geometry *g)
{
	unsigned int base = m->base;
	int err;

	if (morsel_is_gone(m))
		return -ENODEV;
	if (m->level || i_size_read(&m->inode))
		return -EBUSY;
	err = g->base ? morsel_set_base(m, g->base) : 0;
	if (!err && g->flags & MORSEL_ALLOW_LAZY && morsel_is_huge(m))
		err = -EOPNOTSUPP;
	if (!err && g->flags & MORSEL_ALLOW_LAZY)
		err = morsel_pool_begin(m);
	if (!err)
		err = morsel_set_unit(m, g->unit);
	if (err) {
		m->base = base;
		return err;
	}
	m->address = g->address;
	m->lazy = g->flags & MORSEL_ALLOW_LAZY;
	return 0;
}

static bool morsel_is_too_large(u64 size, unsigned int level)
{
	return size > MORSEL_UNITS_MAX * morsel_span(level + 1);
}

/* The smallest unit of which a mapping can have enough. */
static u64 morsel_unit_of(const struct morsel *m, u64 size)
{
	unsigned int level = m->base;

	while (level < morsel_level_max() && morsel_is_too_large(size, level))
		level++;
	return morsel_span(level + 1);
}

static int morsel_shrink(struct morsel *m, u64 size)
{
	struct morsel_range range = { size, morsel_end(m) - size };
	int err = m->level ? morsel_own_ends(m, &range) : 0;

	if (err)
		return morsel_errno(m, err);
	i_size_write(&m->inode, size);
	return morsel_depopulate(m, &range, 1, false);
}

/**
 * morsel_set_size() - ftruncate()
 * @m: the morsel, inode lock held
 * @size: in bytes
 *
 * Return: 0; -EFBIG: too many units; -ENODEV: it was destroyed; an error of morsel_own_ends().
 */
int morsel_set_size(struct morsel *m, u64 size)
{
	u64 old = i_size_read(&m->inode);
	int err;

	if (morsel_is_gone(m))
		return -ENODEV;
	if (size < old)
		return morsel_shrink(m, size);
	if (size == old)
		return 0;
	if (!m->level) {
		err = morsel_set_unit(m, morsel_unit_of(m, size));
		if (err)
			return err;
	}
	if (morsel_is_too_large(size, m->level))
		return -EFBIG;
	/* What mappings have written behind the end is no part of it, and may be much. */
	if (morsel_is_huge(m))
		morsel_zero(m, old, min(size, morsel_page_end(m, old)));
	i_size_write(&m->inode, size);
	morsel_steal_begin(m);
	return 0;
}
