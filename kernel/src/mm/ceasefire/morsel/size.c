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
#include <linux/fs.h>
#include <linux/mm.h>

#include "morsel.h"

/**
 * morsel_set_unit() - how a morsel is laid out
 * @m: the morsel, inode lock held
 * @unit: 2 MiB, 1 GiB or 512 GiB
 *
 * Return: 0; -EBUSY: it has a layout; -ENODEV: it was destroyed; -EINVAL: there is no such unit;
 * -EOPNOTSUPP: not yet, or not on this machine.
 */
int morsel_set_unit(struct morsel *m, u64 unit)
{
	unsigned int level;

	if (morsel_is_gone(m))
		return -ENODEV;
	if (m->level || i_size_read(&m->inode))
		return -EBUSY;
	for (level = 1; level <= MORSEL_LEVEL_MAX; level++) {
		if (unit != morsel_span(level + 1))
			continue;
		WRITE_ONCE(m->level, level);
		return 0;
	}
	return unit == morsel_span(MORSEL_LEVEL_MAX + 2) ? -EOPNOTSUPP : -EINVAL;
}

static bool morsel_is_too_large(u64 size, unsigned int level)
{
	return size > MORSEL_UNITS_MAX * morsel_span(level + 1);
}

/* The smallest unit of which a mapping can have enough. */
static u64 morsel_unit_of(u64 size)
{
	unsigned int level = 1;

	while (level < MORSEL_LEVEL_MAX && morsel_is_too_large(size, level))
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
		err = morsel_set_unit(m, morsel_unit_of(size));
		if (err)
			return err;
	}
	if (morsel_is_too_large(size, m->level))
		return -EFBIG;
	i_size_write(&m->inode, size);
	morsel_steal_begin(m);
	return 0;
}
