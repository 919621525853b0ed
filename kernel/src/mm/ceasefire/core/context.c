// SPDX-License-Identifier: GPL-2.0
/*
 * Life of a recycling context: who may reach the same stale frames.
 *
 * A process gets its context with its first eligible MAP_FPR mapping and keeps
 * it until exit. mm->cf is written under mmap_lock held for writing and by
 * exit_mmap(); it may be read anywhere, for instance by a flush, and the object
 * is freed by RCU. Others find it by the id in a tag (registry.c).
 *
 * Locks: cf_count_lock for the number of contexts; nothing is held while
 * flushing. Callers: the mechanisms (create), exit_mmap().
 */
#include <linux/mm.h>
#include <linux/pkeys.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>

#include "core.h"

/*
 * Switches all hooks. A static key would be cheaper for those who use nothing,
 * by a load and a compare for each hook, but to patch it interrupts every CPU,
 * isolated ones too, and any process could ask for that.
 *
 * It is set before a context can be found, and cleared when there is none. Who
 * must not miss it:
 *   - the free side. The munmap() that tags a frame drops its reference after
 *     that, and whoever frees the frame looks at the flag after the last
 *     reference has gone; both are full barriers. So do those who take a page
 *     from another owner (fuse looks at its count first).
 *   - claims, and whatever else works on one process. They hold its mmap_lock,
 *     under which its context was made.
 *   - who clears an accessed bit. One who has missed the flag, or the context,
 *     has cleared the bit before cf_ctx_create() reads @born. The flag is a plain
 *     read, which stays behind the atomic operation that clears the bit.
 *   - who has kept a charge for it: it is not cleared then (charge.c)
 *   - memory failure. It marks the page, and looks then; __cf_skip_flush()
 *     tags, and looks for the mark then.
 * All others only lose something that is left to do: a credit, a tick. Whether
 * frames are parked is another question, see cf_drain().
 */
bool __data_racy cf_used __read_mostly;
EXPORT_SYMBOL_GPL(cf_used);	/* fuse may be a module */
static DEFINE_SPINLOCK(cf_count_lock);
static unsigned int cf_contexts;	/* under cf_count_lock */

/* Tags stay for this long after the last context: the next one needs them, too. */
#define CF_TAGS_LINGER	(60 * HZ)

static void cf_idle_work(struct work_struct *work);
static DECLARE_DELAYED_WORK(cf_idle, cf_idle_work);

/*
 * Nobody has used FPR for a while. Under the lock, so that a context that comes
 * now tags nothing that is about to go. A page whose charge is kept is still to be
 * found by its tag (charge.c).
 */
static void cf_idle_work(struct work_struct *work)
{
	bool idle;

	spin_lock(&cf_count_lock);
	idle = !cf_contexts;
	if (idle && cf_charges_kept()) {
		idle = false;
		mod_delayed_work(cf_wq, &cf_idle, CF_TAGS_LINGER);
	}
	if (idle)
		cf_tags_retire();
	spin_unlock(&cf_count_lock);
	if (idle)
		cf_tags_free();
}

static void cf_contexts_inc(void)
{
	spin_lock(&cf_count_lock);
	cf_contexts++;
	WRITE_ONCE(cf_used, true);
	spin_unlock(&cf_count_lock);
}

/*
 * Under the lock, or:	sees no context		new process: counted, flag is set
 *			clears the flag		skips; its frame is freed, not parked
 */
static void cf_contexts_dec(void)
{
	bool last;

	spin_lock(&cf_count_lock);
	last = !--cf_contexts;
	if (last) {
		cf_settle_shared_idle();
		/* Else cf_park() has charges to give back, and it stays set. */
		if (!cf_charges_kept())
			WRITE_ONCE(cf_used, false);
		mod_delayed_work(cf_wq, &cf_idle, CF_TAGS_LINGER);
	}
	spin_unlock(&cf_count_lock);
	if (last)
		cf_settle(&cf_shared, CF_BY_EXIT);
}

static void cf_ctx_free(struct work_struct *work)
{
	struct cf_ctx *ctx = container_of(work, struct cf_ctx, free);

	WARN_ON_ONCE(ctx->nr);
	mmdrop(ctx->mm);
	kfree_rcu(ctx, rcu);
}

/**
 * cf_ctx_count() - live contexts, without the shared one
 *
 * Return: their number.
 */
unsigned int cf_ctx_count(void)
{
	return READ_ONCE(cf_contexts);
}

/* Has a mapping a protection key? Those that come later, __fpr_mprotect() sees */
static bool cf_any_key(struct mm_struct *mm)
{
	VMA_ITERATOR(vmi, mm, 0);
	struct vm_area_struct *vma;

	for_each_vma(vmi, vma)
		if (vma_pkey(vma))
			return true;
	return false;
}

/**
 * cf_ctx_create() - give a process its context
 * @mm: current->mm, mmap_lock held for writing
 *
 * Return: the context, NULL without memory, addresses or ids.
 */
struct cf_ctx *cf_ctx_create(struct mm_struct *mm)
{
	struct cf_ctx *ctx;

	mmap_assert_write_locked(mm);
	if (!cf_tags_init())
		return NULL;
	ctx = kzalloc(sizeof(*ctx), GFP_KERNEL_ACCOUNT);
	if (!ctx)
		return NULL;
	ctx->mm = mm;
	refcount_set(&ctx->ref, 1);
	cf_pool_init(ctx);
	cf_settle_init(ctx);
	INIT_WORK(&ctx->free, cf_ctx_free);
	cf_start_generations(mm);
	/* No skip yet: everything up to now counts as completed. */
	ctx->completed = cf_started(ctx);
	ctx->born = U64_MAX;
	ctx->tables = mm_pgtables_bytes(mm);
	ctx->keyed = cf_any_key(mm);
	if (!cf_arena_init(ctx))
		goto free;
	if (!cf_ctx_register(ctx))
		goto free;
	mmgrab(mm);
	cf_contexts_inc();
	WRITE_ONCE(mm->cf, ctx);
	/*
	 * But for accessed bits of mappings that were inherited. Who clears one
	 * and sees no context, or not even @cf_used, has done so before the
	 * barrier; a flush that is under way, and will be credited, may have
	 * passed before that.
	 */
	smp_mb();
	WRITE_ONCE(ctx->born, cf_started(ctx) + 1);
	cf_group_join(ctx);
	return ctx;
free:
	kfree(ctx);
	return NULL;
}

/**
 * __cf_exit_begin() - the last user of the process has gone
 * @mm: the process
 *
 * Called by exit_mmap() before anything is unmapped. No task runs in @mm any
 * more and none will: a CPU that still has it loaded is in the kernel, and one
 * that loads another process under the same PCID flushes it first. So nothing
 * is owed.
 */
void __cf_exit_begin(struct mm_struct *mm)
{
	struct cf_ctx *ctx = mm->cf;

	if (!ctx)
		return;
	cf_ctx_end(ctx);
	cf_group_end(ctx);
}

/**
 * __cf_exit_end() - forget the context of a process
 * @mm: the process, its page tables are gone
 */
void __cf_exit_end(struct mm_struct *mm)
{
	struct cf_ctx *ctx = mm->cf;

	if (!ctx)
		return;
	cf_arena_exit(ctx);
	/* One that was kept for the next mapping. */
	if (ctx->vma)
		vm_area_free(ctx->vma);
	ctx->vma = NULL;
	WRITE_ONCE(mm->cf, NULL);
	cf_contexts_dec();
	cf_ctx_put(ctx);
}
