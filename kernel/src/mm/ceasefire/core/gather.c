// SPDX-License-Identifier: GPL-2.0
/*
 * The flush of an munmap(): whether it is needed now, and what is noted if not.
 *
 * A gather that munmap() has marked (munmap.c) asks here before it flushes. The
 * flush is left out if neither the mechanism that the process uses has a reason
 * against it (struct cf_policy) nor there is one for all of them: all entries
 * that the gather has cleared are clean page cache pages or anonymous ones of
 * this process alone, no table goes, no secondary MMU listens, another CPU runs
 * the process and may hold some of it. Then the frames are tagged instead.
 *
 * Why clean: a CPU writes through a dirty entry without asking the page tables,
 * which would change a file long after munmap(), msync() or sealing. Through a
 * clean entry it has to set the dirty bit first, walks the tables, and faults.
 * Reclaim relies on the same (try_to_unmap_one()).
 *
 * Anonymous pages are dirty, and what is written through a stale entry is
 * memory of the process itself, as long as the frame is that, or parked. So the
 * tag says that the frame may be written to, and it becomes nothing else before
 * the flush (pool.c). A page that another process may map (after fork, merged)
 * is not exclusive, and flushed for: it lives on there, and may be written to.
 * What becomes of an anonymous page whose frame is still reached:
 *   - fork: flushes the parent, with mmap_lock held for writing, before the
 *     child runs
 *   - other rights, KSM, swap: the mechanism sees to it
 *   - migration: the old frame keeps the tag and parks; the new one has none
 *   - a gift to a pipe that FUSE takes for its page cache: __cf_folio_stale()
 *
 * Locks: the caller may hold page table locks; RCU while frames are tagged.
 * Callers: tlb_flush_mmu_tlbonly(), zap_present_ptes().
 */
#include <linux/delay.h>
#include <linux/mm.h>
#include <linux/mmu_notifier.h>
#include <linux/vmstat.h>

#include <asm/tlb.h>
#include <asm/tlbflush.h>

#define CREATE_TRACE_POINTS
#include <trace/events/ceasefire.h>

#include "core.h"

/* Frames that one context may still reach, above which munmap() flushes. */
unsigned long cf_stale_limit __read_mostly = ULONG_MAX;

/* Is there a tag that says the whole generation? */
static bool cf_can_tag(u64 gen)
{
	CF_MUTATION(fpr_gen_cut, return true);
	return likely(cf_gen_fits(gen));
}

/* The tag of what a context leaves now, and that it owes for that; 0: none. */
static u64 cf_tag_now(struct cf_ctx *ctx)
{
	u64 gen = cf_started(ctx);

	if (!cf_can_tag(gen))
		return 0;
	/* Before the first tag: a tag that nobody owes for is never settled. */
	cf_owe(ctx, gen);
	return cf_tag_make(ctx->id, gen);
}

/*
 * Is one of the frames bad that were tagged just now?
 *
 *   munmap()				memory_failure()
 *   clears the entry, drops rmap
 *					marks the frame as bad
 *					finds nobody who maps it
 *					__cf_poisoned(): no tag, no flush
 *   tags the frame, skips: others may read what is bad
 *
 * So this looks for the mark after the tag is there, and __cf_poisoned() for
 * the tag after the mark is. Both have a full barrier in between (the tag is
 * written by cmpxchg; one that was there before is older than what follows), so
 * one of them flushes. Also for a bad frame that nobody could unmap.
 *
 * Soft offline marks a frame when there is no reference but its own; the gather
 * has one until the frame is tagged.
 */
static bool cf_any_bad(unsigned long pfn, unsigned long nr)
{
	bool bad = false;

	/* The tag before the mark. */
	smp_mb__after_atomic();
	for (; nr--; pfn++)
		bad |= PageHWPoison(pfn_to_page(pfn));
	CF_MUTATION(fpr_poison_unseen, return false);
	return bad;
}

/*
 * The most frames that one gather tags, 64 MiB of memory: under a page table lock
 * one cannot make way for others, and to tag more takes longer than to flush. Of
 * base pages a gather holds fewer, but each of its entries can be a large folio.
 */
#define CF_GATHER_MAX	16384

/* More single pages than this cost more than a flush; as tlb.c has it. */
#define CF_SINGLE_FLUSHES	33UL

static bool cf_gather_too_many(unsigned long pages)
{
	CF_MUTATION(fpr_gather_unbounded, return false);
	return pages > CF_GATHER_MAX;
}

/*
 * The frames that an entry of a gather stands for: a huge page has one entry for
 * all of them. Of a folio of that size that is mapped by small entries too many
 * are tagged, which does no harm.
 */
static unsigned long cf_frames_of(struct mmu_gather *tlb, struct page *page,
				  const struct cf_policy *policy)
{
	struct folio *folio;

	if (likely(!tlb->cleared_pmds) || !policy->huge)
		return 1;
	CF_MUTATION(latr_tag_head, return 1);
	folio = page_folio(page);
	return page == &folio->page && folio_test_pmd_mappable(folio) ?
	       folio_nr_pages(folio) : 1;
}

/*
 * Anonymous pages wait when they are unmapped, so a mechanism that has no use for
 * them holds only so many of them, and gives them up at once when they are many.
 * What was paid for counts until a work item has released it, all of it. Above the
 * limit can be what other threads unmap at the same moment.
 *
 * All @pages count, not only those that nobody could reach before: reclaim may have
 * cleared the accessed bit of an entry, and its page counts from now on only.
 *
 * From a quarter of the limit on nobody waits for the debt to get old: that a process
 * unmaps so fast is reason enough to have ticks pay, and they need a while.
 */
static bool cf_holds_too_many(struct cf_ctx *ctx, const struct cf_policy *policy,
			      unsigned long pages)
{
	unsigned long limit, held;

	if (!policy->held_limit)
		return false;
	CF_MUTATION(latr_no_held_limit, return false);
	limit = READ_ONCE(*policy->held_limit);
	if (pages > limit / 4)
		return true;
	held = atomic_long_add_return(pages, &ctx->held);
	if (held > limit / 4 && held - pages <= limit / 4)
		cf_settle_soon(ctx);
	return held + atomic_long_read(&ctx->waiting) > limit ||
	       READ_ONCE(ctx->nr) + READ_ONCE(ctx->returning) + pages > limit;
}

/* What cf_tag_gather() tags: by [0] pages of files, by [1] anonymous ones. */
struct cf_tagging {
	struct cf_ctx *left[2];	/* with whose tag; anonymous pages are not for a group */
	u64 tags[2];		/* 0: not read yet */
	unsigned long fresh[2];	/* frames that nobody could reach before */
	unsigned long pages;
	unsigned long anons;
};

/* Tag frames that follow each other. */
static enum cf_verdict cf_tag_run(struct cf_tagging *t, unsigned long pfn,
				  unsigned long nr, bool anon)
{
	if (!t->tags[anon])
		t->tags[anon] = cf_tag_now(t->left[anon]) |
				(anon ? CF_TAG_WRITABLE : 0);
	t->pages += nr;
	t->anons += anon ? nr : 0;
	if (cf_gather_too_many(t->pages))
		return CF_FLUSH_LIMIT;
	if (!cf_tag_id(t->tags[anon]) ||
	    !cf_tag_frames(pfn, nr, t->left[anon], t->tags[anon],
			   &t->fresh[anon]))
		return CF_FLUSH_TAGS;
	if (unlikely(cf_any_bad(pfn, nr)))
		return CF_FLUSH_POISON;
	return CF_SKIP;
}

/*
 * Tag all frames that the gather holds, @pages of them; or say why not. Pages of
 * a file often lie one after the other: to look up their tags one by one would take
 * as long as all else that a munmap() does for a page.
 */
static enum cf_verdict cf_tag_gather(struct mmu_gather *tlb,
				     struct cf_ctx *ctx,
				     const struct cf_policy *policy,
				     unsigned long *pages)
{
	struct cf_ctx *owner = cf_tag_ctx(ctx);
	struct cf_tagging t = { .left = { owner, ctx } };
	unsigned long first = 0, run = 0;
	struct mmu_gather_batch *batch;
	enum cf_verdict why = CF_SKIP;
	bool run_anon = false;

	if (owner != ctx)
		cf_note_left(ctx);
	CF_MUTATION(fpr_group_anon, t.left[true] = owner);
	for (batch = &tlb->local; batch && batch->nr; batch = batch->next) {
		unsigned int i;

		for (i = 0; i < batch->nr && why == CF_SKIP; i++) {
			struct encoded_page *enc = batch->encoded_pages[i];
			struct page *page = encoded_page_ptr(enc);
			unsigned long nr = cf_frames_of(tlb, page, policy);
			unsigned long pfn = page_to_pfn(page);
			bool anon = PageAnon(page);

			/* See __tlb_remove_folio_pages_size(). */
			if (unlikely(encoded_page_flags(enc) &
				     ENCODED_PAGE_BIT_NR_PAGES_NEXT))
				nr = encoded_nr_pages(batch->encoded_pages[++i]);
			if (pfn == first + run && anon == run_anon) {
				run += nr;
				continue;
			}
			if (run)
				why = cf_tag_run(&t, first, run, run_anon);
			first = pfn;
			run = nr;
			run_anon = anon;
		}
	}
	if (run && why == CF_SKIP)
		why = cf_tag_run(&t, first, run, run_anon);
	*pages += t.pages;
	atomic_long_add(t.fresh[false], &owner->stale);
	atomic_long_add(t.fresh[true], &ctx->stale);
	CF_MUTATION(latr_held_fresh, t.anons = t.fresh[true]);
	if (why == CF_SKIP && t.anons &&
	    cf_holds_too_many(ctx, policy, t.anons))
		why = CF_FLUSH_LIMIT;
	return why;
}

/* A limit was reached: the flush is one of everything, and pays for all. */
static void cf_flush_all(struct mmu_gather *tlb, struct cf_ctx *ctx)
{
	/* First, so that what is left meanwhile counts. */
	atomic_long_set(&ctx->stale, 0);
	atomic_long_set(&ctx->held, 0);
	atomic_long_set(&ctx->waiting, 0);
	tlb->need_flush_all = 1;
}

/**
 * cf_skip_pause() - entries were changed, and nothing is noted yet
 *
 * Debug builds: makes the time in between long.
 */
void cf_skip_pause(void)
{
#ifdef CONFIG_CEASEFIRE_DEBUG
	u32 us = READ_ONCE(cf_skip_delay_us);

	if (!us)
		return;
	/* Others need this CPU, too: memory_failure() drains its lists. */
	if (preemptible())
		msleep(DIV_ROUND_UP(us, USEC_PER_MSEC));
	else
		mdelay(DIV_ROUND_UP(us, USEC_PER_MSEC));
#endif
}

/*
 * Frames that may be reached may have to be parked, all of them at once: here
 * is where their number can be held down by the one who makes them.
 *
 * A flush of everything pays for all that the process has left. What it has left
 * with its group waits for the next drain, and this goes on until then.
 */
static bool cf_stale_too_many(struct mmu_gather *tlb)
{
	long limit = min(READ_ONCE(cf_stale_limit), LONG_MAX);
	struct cf_ctx *ctx = tlb->mm->cf;
	bool too_many;

	CF_MUTATION(fpr_no_stale_limit, return false);
	if (atomic_long_read(&ctx->stale) > limit) {
		cf_flush_all(tlb, ctx);
		return true;
	}
	rcu_read_lock();
	too_many = atomic_long_read(&cf_tag_ctx(ctx)->stale) > limit;
	rcu_read_unlock();
	return too_many;
}

/* Has an munmap() marked the gather, so that it may skip (I5)? */
static bool cf_is_marked(struct mmu_gather *tlb)
{
	CF_MUTATION(fpr_skip_forced, return tlb->cf_marked || tlb->mm->cf);
	return tlb->cf_marked;
}

/*
 * Does the gather need a flush for page tables, or one of everything? A cleared
 * entry of the second level is that of a huge page, if no table goes.
 */
static bool cf_frees_tables(struct mmu_gather *tlb,
			    const struct cf_policy *policy)
{
	CF_MUTATION(fpr_allow_tables, return false);
	return tlb->freed_tables || tlb->unshared_tables ||
	       tlb->need_flush_all || (tlb->cleared_pmds && !policy->huge) ||
	       tlb->cleared_puds || tlb->cleared_p4ds;
}

/* Listeners hear of invalidations from flush_tlb_mm_range() only. */
static bool cf_is_heard(struct mm_struct *mm)
{
	CF_MUTATION(fpr_ignore_notifiers, return false);
	return mm_has_notifiers(mm);
}

/* What the gather has cleared that must not outlive the munmap(). */
static enum cf_unsafe cf_unsafe_of(struct mmu_gather *tlb)
{
	enum cf_unsafe unsafe = tlb->cf_unsafe;

	CF_MUTATION_IF(fpr_allow_dirty, unsafe == CF_UNSAFE_DIRTY,
		       unsafe = CF_SAFE);
	CF_MUTATION_IF(fpr_allow_anon, unsafe == CF_UNSAFE_ANON,
		       unsafe = CF_SAFE);
	return unsafe;
}

/**
 * cf_runs_elsewhere() - is there another CPU to interrupt?
 * @mm: the process
 *
 * If not, the local flush is cheap and leaves no debt. A CPU that starts to run
 * the process now compares generations.
 *
 * Return: true if there is one, or debug builds are to do as if.
 */
bool cf_runs_elsewhere(struct mm_struct *mm)
{
	return cpumask_any_but(mm_cpumask(mm), raw_smp_processor_id()) <
	       nr_cpu_ids || cf_skip_local;
}

/*
 * Is there another CPU that the flush would interrupt? It may be known who has used the
 * range; a flush that nobody else needs leaves no debt either.
 */
static bool cf_is_held_elsewhere(struct mmu_gather *tlb)
{
	return cf_runs_elsewhere(tlb->mm) &&
	       (cf_skip_local ||
		ceasefire_held_elsewhere(tlb->mm, tlb->start, tlb->end));
}

/*
 * The one place that decides whether a marked gather must flush: what the
 * mechanism of the process says, and then what holds for all of them.
 */
static enum cf_verdict cf_must_flush(struct mmu_gather *tlb,
				     const struct cf_policy *policy)
{
	enum cf_verdict why;

	CF_MUTATION_IF(fpr_skip_forced, !tlb->cf_marked, return CF_SKIP);
	why = policy->must_flush(tlb);
	if (why != CF_SKIP)
		return why;
	switch (cf_unsafe_of(tlb)) {
	case CF_UNSAFE_DIRTY:
		return CF_FLUSH_DIRTY;
	case CF_UNSAFE_ANON:
		return CF_FLUSH_ANON;
	case CF_UNSAFE_SPECIAL:
		return CF_FLUSH_SPECIAL;
	case CF_SAFE:
		break;
	}
	/* tlb_finish_mmu() found another gather of this process under way. */
	if (tlb->fullmm)
		return CF_FLUSH_NESTED;
	if (cf_frees_tables(tlb, policy))
		return CF_FLUSH_TABLES;
	if (cf_is_heard(tlb->mm))
		return CF_FLUSH_NOTIFIER;
	if (!cf_is_held_elsewhere(tlb))
		return CF_FLUSH_LOCAL;
	return cf_stale_too_many(tlb) ? CF_FLUSH_LIMIT : CF_SKIP;
}

/* What nobody can write to and nobody frees leaves no tag, but translations. */
static void cf_owe_nothing(struct cf_ctx *ctx)
{
	CF_MUTATION(latr_owes_pages, return);
	cf_owe(ctx, cf_started(ctx));
}

/**
 * cf_flush_own() - this CPU gives up what a gather has changed
 * @tlb: the gather, of the process that runs here, or of another one
 *
 * Where nothing is recycled the CPU that unmaps needs no translation any more: a
 * program finds out at once that it uses what it has just unmapped, or that it is
 * to map something there.
 */
void cf_flush_own(struct mmu_gather *tlb)
{
	unsigned long addr, flags;

	CF_MUTATION(latr_keeps_own, return);
	/* CR3 is read and written, and interrupts change the root (sharers). */
	local_irq_save(flags);
	if (this_cpu_read(cpu_tlbstate.loaded_mm) == tlb->mm) {
		if (tlb->end - tlb->start > CF_SINGLE_FLUSHES << PAGE_SHIFT)
			flush_tlb_local();
		else
			for (addr = tlb->start; addr < tlb->end;
			     addr += PAGE_SIZE)
				flush_tlb_one_user(addr);
	}
	local_irq_restore(flags);
}

/**
 * __cf_skip_flush() - a gather is about to flush
 * @tlb: the gather, which has cleared something
 *
 * Also called in the middle of a gather, under page table locks, when it is
 * full; then for what it has cleared until now. What needs no flush is forgotten.
 *
 * The generation must be read after the entries were cleared, and the frames be
 * tagged before the gather drops its references (see debt.c and tags.c).
 * Entries are cleared by xchg; the barrier says so to the reader.
 *
 * Return: true if the flush is not needed now.
 */
bool __cf_skip_flush(struct mmu_gather *tlb)
{
	struct cf_ctx *ctx = tlb->mm->cf;
	const struct cf_policy *policy;
	unsigned long pages = 0;
	enum cf_verdict why;

	if (likely(!cf_is_marked(tlb)))
		return false;
	policy = cf_policy_of(tlb->mm);
	why = cf_must_flush(tlb, policy);
	if (why != CF_SKIP)
		goto flush;
	/* Entries cleared before the generation; see debt.c. */
	smp_mb();
	cf_skip_pause();
	rcu_read_lock();
	why = cf_tag_gather(tlb, ctx, policy, &pages);
	if (why == CF_FLUSH_LIMIT)
		cf_flush_all(tlb, ctx);
	rcu_read_unlock();
	if (why != CF_SKIP)
		goto flush;
	/* Entries without a frame of ours, as of the page of zeroes: owed, too (I9). */
	if (!pages)
		cf_owe_nothing(ctx);
	if (!policy->recycles)
		cf_flush_own(tlb);
	count_vm_event(policy->skipped);
	count_vm_events(policy->skipped_pages, pages);
	trace_fpr_skip(ctx->id, tlb->start, tlb->end, cf_started(ctx));
	ceasefire_skipped(tlb->start, tlb->end);
	__tlb_reset_range(tlb);
	return true;
flush:
	/* The flush covers all that was cleared until now, and why. */
	tlb->cf_unsafe = CF_SAFE;
	count_vm_event(policy->flushed + why);
	trace_fpr_flush(ctx->id, tlb->start, tlb->end, why);
	return false;
}

/**
 * __cf_gather_anon() - the gather of an munmap() unmaps anonymous pages
 * @tlb: the gather
 * @page: the first one, still mapped
 * @nr: their number
 *
 * Context: page table lock, under which a page stays exclusive.
 */
void __cf_gather_anon(struct mmu_gather *tlb, struct page *page,
		      unsigned int nr)
{
	for (; nr--; page++)
		if (!PageAnonExclusive(page))
			cf_gather_unsafe(tlb, CF_UNSAFE_ANON);
}
