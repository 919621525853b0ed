/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The algebra of epochs: which offsets of a morsel can CPUs still reach by what they have
 * cached, after they were given up without a flush?
 *
 * Pure functions without kernel dependencies, so that the same code is tested in userspace
 * (tools/testing/ceasefire/).
 *
 * Each page that is given up gets the number of the epoch that it was in, its mark. When an
 * epoch is closed, every process that maps the morsel notes which flushes it has requested
 * up to then; when each has completed a later one, the epoch is settled, and all before it.
 *
 *   gives up a page			closes the epoch
 *   clears the entry			now = k + 1
 *   smp_mb()				smp_mb()
 *   mark = now				target = flushes requested
 *
 * A mark of k was read before now became k + 1; so the entry was cleared before the target
 * was read, and a flush that was requested after that finds it cleared on each CPU.
 *
 * Two wrong ways, and what breaks:
 *
 *   mark before the clear:	CPU0 reads mark 5, and is slow
 *				CPU1 closes 5, all flush, 5 is settled
 *				CPU2 uses the page once more
 *				CPU0 clears the entry, with mark 5: "settled"
 *
 *   target before the number:	CPU1 reads target 7
 *				CPU2 requests flush 8, which passes CPU3
 *				CPU0 clears the entry, mark 5; CPU3 has used it just before
 *				CPU1 closes 5; flush 8 completes: "settled"
 */
#ifndef _MM_CEASEFIRE_MORSEL_LAZY_STATE_H
#define _MM_CEASEFIRE_MORSEL_LAZY_STATE_H

#include <linux/types.h>

/**
 * struct morsel_epochs - how far a morsel is
 * @now:	mark of what is given up now; only grows, the first one is 1
 * @closed:	newest epoch with targets; 0: there was none
 * @settled:	newest epoch after which all have flushed
 */
struct morsel_epochs {
	u64 now;
	u64 closed;
	u64 settled;
};

static inline void morsel_epochs_begin(struct morsel_epochs *e)
{
	e->now = 1;
	e->closed = 0;
	e->settled = 0;
}

/* Are targets of an epoch still to be met? Then the next one is not closed for ticks. */
static inline bool morsel_epochs_wait(const struct morsel_epochs *e)
{
	return e->closed != e->settled;
}

/* May the page with that mark still be reached? */
static inline bool morsel_epoch_is_owed(u64 mark, u64 settled)
{
	return mark > settled;
}

#endif /* _MM_CEASEFIRE_MORSEL_LAZY_STATE_H */
