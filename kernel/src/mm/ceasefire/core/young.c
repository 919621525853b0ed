// SPDX-License-Identifier: GPL-2.0
/*
 * Whether a CPU can have an entry, by its accessed bit.
 *
 * A CPU sets the accessed bit of an entry before it caches it, and caches no entry
 * without it (cf_young_init() has who promises that). So
 *
 *   kernel				CPU
 *   clears the accessed bit of an entry
 *   (no flush, as ever on x86)		may still use the entry
 *   smp_mb()
 *   gen = started; tag the frame
 *   ...				full flush N > gen: the entry is gone
 *   later: changes the entry; the
 *   accessed bit is not set		has not cached it since
 *
 * and if the tag is judged clean (debt.c has why), no CPU has the entry. It is what
 * a skip does with frames, but the mapping stays. The debt is paid by ticks, like
 * that of a skip. Both halves run under the page table lock of the entry, and who
 * moves an entry to another table holds the locks of both, so the second half sees
 * the tag of the first. The bit has to be looked at in the step that changes the
 * entry (xchg): a CPU that has begun a walk before that has set it, or finds the
 * entry changed and begins anew.
 *
 * Whoever else clears the bit must be known, or the entry must count as cached:
 *   - ptep_test_and_clear_young() tags: reclaim, MGLRU, DAMON, clear_refs, idle
 *     page tracking, MADV_COLD
 *   - madvise(MADV_FREE), for anonymous pages, clears it within an mmu_gather and
 *     flushes at the end: gathers.c knows that, and is right under the page table lock
 *   - a frame without room for its tag: cf_ctx.untracked, for the whole process
 *   - a process that has no context yet (fork() copies VM_FPR), or whose bits
 *     were nobody's concern, or that makes a child (../abis/fork.c): cf_ctx.born
 *   - migration keeps the bit when it puts an entry back before its flush; where
 *     there is no room for it (CPUs with L1TF) every entry counts as cached
 *   - swapoff makes an entry without the bit where reclaim has cleared one for the
 *     same frame, and has noted a flush that is still to come: cf_batch_pending().
 *     Fault-around, where its entries are born without the bit, asks before
 *   - fault-around may also come where a gather has cleared the entry and will flush
 *     for it. The gather has the page until then, so that nobody evicts or migrates
 *     it, and whoever has a gather there as well flushes if that is not over
 *     (tlb_finish_mmu()). All others ask gathers.c for any page
 *   - a write protected entry of userfaultfd that nobody waits for (WP_ASYNC) is read,
 *     changed and written by do_wp_page() while CPUs walk it, and the bit that one of
 *     them sets in between is lost: the entry is written with it (cf_rewritten())
 *   - an entry that was loaded by other tables (../abis/insert.c) names the CPUs that may
 *     have it, and has the use of its page in another bit. The name stays in it, whatever
 *     is changed, until ptep_test_and_clear_young() takes both, and tags, or migration, which
 *     makes of the use an entry with the bit. Who clears a set bit tags as well, so that the
 *     name is too much at worst. MADV_FREE takes the use only, and flushes in the end
 *   - other entries that are new and without the bit were never cached: those of a
 *     child, of a huge page that was split after its flush, at another address
 *     after mremap(), of a page that a device had alone (after a flush), or that has moved
 *
 * All others change an entry that is there by xchg or cmpxchg, or set the bit.
 *
 * It is about entries of pages. Upper levels are cached without a bit that could
 * be believed: who takes a table away flushes, whatever is said here.
 *
 * Locks: the page table lock of the entry.
 * Callers: ptep_test_and_clear_young(), madvise(MADV_COLD), the mechanisms.
 */
#include <linux/delay.h>
#include <linux/mm.h>
#include <linux/mm_inline.h>
#include <linux/mmu_notifier.h>
#include <linux/swap.h>
#include <linux/swapops.h>
#include <linux/vmstat.h>

#include <asm/cpu_device_id.h>
#include <asm/intel-family.h>

#include "core.h"

/* Whether an entry without the bit is in no TLB: by the processor, or by root. */
bool cf_young_trusted __read_mostly = true;

static bool cf_young_proven(void)
{
	CF_MUTATION(fpr_evict_unproven, return true);
	return READ_ONCE(cf_young_trusted);
}

/**
 * cf_rewritten() - an entry is about to be written anew, not by xchg
 * @pte: what it was a moment ago
 *
 *   kernel				CPU
 *   reads the entry, not accessed
 *					sets the bit, caches the entry
 *   writes it, not accessed
 *   changes it: no CPU has it, by the
 *   bit, so nobody is asked		goes on using the entry
 *
 * So it is written as one that CPUs may have; its page is used at this moment anyway.
 * Also if no mechanism is in use: one could be chosen between both steps.
 *
 * Context: page table lock.
 * Return: what to write.
 */
pte_t cf_rewritten(pte_t pte)
{
#ifdef CONFIG_CEASEFIRE_DEBUG
	mdelay(DIV_ROUND_UP(READ_ONCE(cf_rewrite_delay_us), USEC_PER_MSEC));
#endif
	CF_MUTATION(cf_rewritten_old, return pte);
	return pte_mkyoung(pte);
}

/**
 * __cf_young_cleared() - an accessed bit was cleared, and nobody flushes
 * @vma: the mapping, its page table is locked
 * @pte: the entry
 */
void __cf_young_cleared(struct vm_area_struct *vma, pte_t pte)
{
	struct cf_ctx *ctx = vma->vm_mm->cf, *owner;
	unsigned long fresh = 0;
	u64 gen;

	CF_MUTATION(fpr_evict_untagged, return);
	if (!cf_tracks(vma) || !ctx)
		return;
	/* The bit before the generation; see debt.c. */
	smp_mb__after_atomic();
	if (!cf_young_proven()) {
		/* Of no use now, but it may be switched on. */
		cf_raise(&ctx->untracked, cf_started(ctx) + 1);
		return;
	}
	rcu_read_lock();
	/* As a skip has it: what is anonymous is not for a group. */
	owner = PageAnon(pte_page(pte)) ? ctx : cf_tag_ctx(ctx);
	if (owner != ctx)
		cf_note_left(ctx);
	gen = cf_started(owner);
	cf_owe_young(owner, gen);
	if (!cf_gen_fits(gen) ||
	    !cf_tag_frames(pte_pfn(pte), 1, owner,
			   cf_tag_make(owner->id, gen), &fresh))
		cf_raise(&ctx->untracked, cf_started(ctx) + 1);
	/* One that is truncated now would be parked, too. */
	atomic_long_add(fresh, &owner->stale);
	rcu_read_unlock();
}

/**
 * __cf_cold() - madvise(MADV_COLD) has cleared accessed bits
 * @vma: the mapping, its page table is locked
 *
 * It wants the next use of the page to be seen by reclaim, and flushes for that. A
 * debt is as good: it is paid long before reclaim comes by.
 *
 * Return: true if the bits were noted.
 */
bool __cf_cold(struct vm_area_struct *vma)
{
	if (!vma->vm_mm->cf || !cf_young_proven())
		return false;
	count_vm_event(FPR_COLD_SKIP);
	return true;
}

/* Listeners hear of a change by its flush, and set no bit. */
static bool cf_young_heard(struct mm_struct *mm)
{
	CF_MUTATION(fpr_evict_notifiers, return false);
	return mm_has_notifiers(mm);
}

/* Is an accessed bit cleared by somebody who has not flushed yet? */
static bool cf_young_pending(struct mm_struct *mm, unsigned long addr,
			     unsigned long nr, const struct mmu_gather *own)
{
	CF_MUTATION(cf_young_pending_unseen, return false);
	return cf_gathers_meet(mm, own, addr, nr);
}

/* May a stale translation of the process lead to one of the frames? */
static bool cf_young_stale(unsigned long pfn, unsigned long nr)
{
	CF_MUTATION(fpr_evict_stale, return false);
	return cf_frames_reached(pfn, nr);
}

/* Were bits cleared that no tag tells of? */
static bool cf_young_untracked(struct cf_ctx *ctx)
{
	CF_MUTATION(fpr_evict_untracked, return false);
	/* That the process is tracked before what is owed since; see cf_born_begin(). */
	smp_rmb();
	return cf_is_owed_for(ctx, READ_ONCE(ctx->untracked)) ||
	       cf_is_owed_for(ctx, READ_ONCE(ctx->born));
}

/**
 * cf_batch_pending() - has reclaim noted a flush for a process, and not sent it?
 * @mm: the process
 *
 *   reclaim				swapoff
 *   clears the entry, notes a flush
 *   unlocks the page
 *					entry again, not accessed
 *   flushes
 *
 * In between a CPU may have the entry, and nothing in it or in the tag says so.
 * Who unmaps or protects a range flushes first (flush_tlb_batched_pending()), and who
 * evicts or migrates a page has taken it off its list, on which it comes back after the
 * flush. There are two exceptions, both harmless: collapse_file() puts pages of files
 * back before, and their entries are made by fault-around, which asks this; migration
 * without memory puts some back, whose entries have what the cleared ones had, and a tag
 * where that was no accessed bit.
 *
 * This is for all others, who splits a huge page among them. It goes by the number that
 * those go by who flush first, which is noted before the lock is given up under which the
 * entry was cleared. It may say so for long after the flush, and then costs a flush.
 *
 * Context: page table lock.
 * Return: true if it may be so.
 */
bool cf_batch_pending(struct mm_struct *mm)
{
	int batch = atomic_read(&mm->tlb_flush_batched);

	CF_MUTATION(cf_batch_unseen, return false);
	/* Two numbers of 15 bits: noted, and flushed for; see mm/rmap.c. */
	return (batch & 0x7fff) != batch >> 16;
}

/* Does the entry name the CPUs that may have it? In each commit of the series, too. */
static bool cf_names_class(pte_t pte)
{
#ifdef _PAGE_CLASS
	return pte_flags(pte) & _PAGE_CLASS;
#else
	return false;
#endif
}

/**
 * cf_cached() - may a CPU have an entry as it was?
 * @vma: the mapping, its page table is locked
 * @addr: its address, or CF_ANYWHERE in the process
 * @pte: the entry, as it was in the step that has changed it; of several entries their
 *	 accessed bits together
 * @nr: number of pages, of one folio
 * @own: the caller's gather, or NULL
 *
 * Return: why it may have it; CF_UNCACHED if none has.
 */
enum cf_cached cf_cached(struct vm_area_struct *vma, unsigned long addr,
			 pte_t pte, unsigned long nr,
			 const struct mmu_gather *own)
{
	struct mm_struct *mm = vma->vm_mm;
	struct cf_ctx *ctx = READ_ONCE(mm->cf);

	if (!ctx)
		return CF_CACHED_UNTRACKED;
	if (!cf_young_proven())
		return CF_CACHED_VENDOR;
	CF_MUTATION(fpr_evict_young, pte = pte_mkold(pte));
	if (pte_flags(pte) & _PAGE_ACCESSED)
		return CF_CACHED_YOUNG;
	if (!migration_entry_supports_ad())
		return CF_CACHED_UNTRACKED;
	if (cf_young_heard(mm))
		return CF_CACHED_NOTIFIER;
	if (PageAnon(pte_page(pte)) && cf_young_pending(mm, addr, nr, own))
		return CF_CACHED_PENDING;
	if (cf_young_stale(pte_pfn(pte), nr))
		return CF_CACHED_STALE;
	if (cf_young_untracked(ctx))
		return CF_CACHED_UNTRACKED;
	return cf_names_class(pte) ? CF_CACHED_CLASS : CF_UNCACHED;
}

/**
 * cf_born_begin() - accessed bits of a process become somebody's concern
 * @ctx: its context, NULL: it has none yet
 *
 * Bits that were cleared before were nobody's concern, so for them everything is
 * owed:
 *
 *   choice			clears a bit		asks
 *   born = for ever		(test_and_clear_bit())	the entry
 *   smp_wmb()			(is a full barrier)
 *   the process is tracked	not tracked: no tag
 *   smp_mb()						tracked?
 *   born = started + 1					smp_rmb()
 *							born owed?
 *
 * Who has cleared a bit without a tag has done so before the generation is read, and
 * who asks sees one of both values. cf_ctx_create() does the same for a context.
 */
void cf_born_begin(struct cf_ctx *ctx)
{
	if (ctx)
		WRITE_ONCE(ctx->born, U64_MAX);
	/* Who sees the choice sees that. */
	smp_wmb();
}

/**
 * cf_born_end() - the choice is there for all to see
 * @ctx: as for cf_born_begin()
 */
void cf_born_end(struct cf_ctx *ctx)
{
	/* Who does not see the choice has cleared bits before the generation. */
	smp_mb();
	CF_MUTATION_IF(latr_on_untracked, ctx, ctx->born = 0; ctx = NULL);
	if (ctx)
		WRITE_ONCE(ctx->born, cf_started(ctx) + 1);
}

/* May set bits of entries that are gone, which nobody has measured against this. */
static const struct x86_cpu_id cf_young_leaks[] __initconst = {
	X86_MATCH_VFM(INTEL_XEON_PHI_KNL, 0),
	X86_MATCH_VFM(INTEL_XEON_PHI_KNM, 0),
	{}
};

/*
 * Does an entry without the accessed bit mean that no TLB has it?
 *
 * Intel says so (SDM volume 3, "Details of TLB Use": there is no entry in a TLB
 * unless the accessed flags are 1, and the processor sets them before). AMD (APM
 * volume 2, fields of page-translation entries) says that the bit is set with the
 * first access, and no more is known here of the order. So all processors but Intel's
 * have to be told to skip. QEMU's own processor has AMD's name, and sets the bit in
 * the walk that fills its TLB.
 */
static int __init cf_young_init(void)
{
	cf_young_trusted = (boot_cpu_data.x86_vendor == X86_VENDOR_INTEL ||
			    (boot_cpu_has(X86_FEATURE_HYPERVISOR) &&
			     hypervisor_cpuid_base("TCGTCGTCGTCG", 0))) &&
			   !x86_match_cpu(cf_young_leaks);
	return 0;
}
core_initcall(cf_young_init);
