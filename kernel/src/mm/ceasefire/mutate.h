/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Debug builds: protections that can be switched off, one at a time, so that a
 * test shows that it sees the absence of each; see mutate.c.
 */
#ifndef _MM_CEASEFIRE_MUTATE_H
#define _MM_CEASEFIRE_MUTATE_H

#include <linux/compiler.h>
#include <linux/types.h>

/* Exactly one protection, or none, is switched off. */
#define CF_MUTATIONS(M)	\
	M(fpr_no_park_page)	\
	M(fpr_no_park_folios)	\
	M(fpr_no_park_large)	\
	M(fpr_credit_started)	\
	M(fpr_credit_partial)	\
	M(fpr_no_claim_mmap)	\
	M(fpr_no_claim_mremap)	\
	M(fpr_no_claim_grow)	\
	M(fpr_no_claim_brk)	\
	M(fpr_no_claim_stack)	\
	M(fpr_no_claim_insert)	\
	M(fpr_no_claim_placed)	\
	M(fpr_no_wrap_drain)	\
	M(fpr_allow_dirty)	\
	M(fpr_allow_anon)	\
	M(fpr_unwiped)		\
	M(fpr_recycle_writable)	\
	M(fpr_allow_exec)	\
	M(fpr_allow_keyed)	\
	M(fpr_allow_tables)	\
	M(fpr_skip_forced)	\
	M(fpr_no_settle_flush)	\
	M(fpr_arena_stays)	\
	M(fpr_stack_behind)	\
	M(fpr_hole_passed)	\
	M(fpr_stale_hole)	\
	M(fpr_tables_unbounded)	\
	M(fpr_single_any)	\
	M(fpr_no_mapped)	\
	M(fpr_present_shared)	\
	M(fpr_present_writable)	\
	M(fpr_never_merged)	\
	M(fpr_no_clamp)		\
	M(fpr_no_munmap_prepare)	\
	M(fpr_no_exit_gaps)	\
	M(fpr_no_exit_last)	\
	M(fpr_no_fuse_check)	\
	M(fpr_no_ksm_check)	\
	M(fpr_recycle_any)	\
	M(fpr_recycle_early)	\
	M(fpr_recycle_remote)	\
	M(fpr_recycle_anywhere)	\
	M(fpr_recycle_keyed)	\
	M(fpr_no_mprotect)	\
	M(fpr_protect_marked)	\
	M(fpr_protect_any)	\
	M(fpr_no_key_notice)	\
	M(fpr_no_swap_flush)	\
	M(fpr_flush_in_free)	\
	M(fpr_no_drain_limit)	\
	M(fpr_no_total_limit)	\
	M(fpr_no_stale_limit)	\
	M(fpr_gather_unbounded)	\
	M(fpr_no_shrinker)	\
	M(fpr_no_drain_cgroup)	\
	M(fpr_park_uncharged)	\
	M(fpr_park_unpaid)	\
	M(fpr_charge_stays)	\
	M(fpr_hide_parked)	\
	M(fpr_no_drain_age)	\
	M(fpr_no_tick)		\
	M(fpr_tick_unqueued)	\
	M(fpr_no_drain_kswapd)	\
	M(fpr_no_drain_reclaim)	\
	M(fpr_no_drain_oom)	\
	M(fpr_no_drain_isolate)	\
	M(fpr_no_drain_pcp)	\
	M(fpr_no_drain_compact)	\
	M(fpr_no_poison_flush)	\
	M(fpr_poison_unseen)	\
	M(fpr_no_exit_drain)	\
	M(fpr_no_shared_tag)	\
	M(fpr_flush_everybody)	\
	M(fpr_release_unchecked)	\
	M(fpr_keep_tags)	\
	M(fpr_no_cover)		\
	M(fpr_gen_cut)		\
	M(fpr_no_stack_gap)	\
	M(fpr_auto_secure)	\
	M(fpr_leave_unflushed)	\
	M(fpr_leave_early)	\
	M(fpr_creds_ignored)	\
	M(fpr_admit_any)	\
	M(fpr_exec_kept)	\
	M(fpr_group_anon)	\
	M(fpr_mapping_skips)	\
	M(fpr_evict_young)	\
	M(fpr_evict_stale)	\
	M(fpr_evict_unproven)	\
	M(fpr_evict_untagged)	\
	M(fpr_evict_now)	\
	M(fpr_evict_unsettled)	\
	M(fpr_evict_unseen)	\
	M(fpr_evict_untracked)	\
	M(fpr_evict_notifiers)	\
	M(fpr_evict_counted)	\
	M(fpr_evict_youngest)	\
	M(fpr_ignore_notifiers)	\
	M(cf_covered_partly)	\
	M(cf_release_waits)	\
	M(latr_recycles)	\
	M(latr_off_unsettled)	\
	M(latr_any_mapping)	\
	M(latr_no_held_limit)	\
	M(latr_held_fresh)	\
	M(cf_held_unpaid)	\
	M(cf_held_left)		\
	M(cf_held_late)		\
	M(cf_rewritten_old)	\
	M(latr_never_late)	\
	M(latr_late_for_one)	\
	M(latr_tag_head)	\
	M(latr_short_any)	\
	M(latr_owes_pages)	\
	M(latr_keeps_own)	\
	M(latr_keeps_due)	\
	M(latr_hint_unseen)	\
	M(latr_hint_unpaid)	\
	M(latr_on_untracked)	\
	M(sharers_unnoted)	\
	M(sharers_no_second_look)	\
	M(sharers_looks_at_entry)	\
	M(sharers_copies_stay)	\
	M(sharers_behind_unseen)	\
	M(sharers_range_only)	\
	M(sharers_mine_noted)	\
	M(sharers_mine_unconfined)	\
	M(sharers_gives_up)	\
	M(sharers_leave_unflushed)	\
	M(sharers_gone_unseen)	\
	M(sharers_gone_stays)	\
	M(sharers_ever_asked)	\
	M(sharers_ldt_unseen)	\
	M(sharers_ldt_narrow)	\
	M(sharers_tables_stay)	\
	M(sharers_defer_unasked)	\
	M(sharers_defer_undone)	\
	M(sharers_defer_unconfined)	\
	M(sharers_defer_unfinished)	\
	M(sharers_let_go_unseen)	\
	M(sharers_slotless_unnoted)	\
	M(sharers_slotless_unflushed)	\
	M(sharers_slotless_current)	\
	M(sharers_exit_any)	\
	M(sharers_place_any)	\
	M(sharers_never_whole)	\
	M(sharers_never_stop)	\
	M(sharers_whole_unnoted)	\
	M(sharers_links_nothing)	\
	M(sharers_whole_stays)	\
	M(sharers_not_placed)	\
	M(sharers_granules_stay)	\
	M(sharers_place_aligned)	\
	M(sharers_place_single)	\
	M(sharers_halves_together)	\
	M(sharers_stacks_together)	\
	M(cf_young_pending_unseen)	\
	M(cf_gathers_apart)	\
	M(cf_batch_unseen)	\
	M(abis_locked_unseen)	\
	M(abis_tables_unseen)	\
	M(abis_use_lost)	\
	M(abis_secure)	\
	M(abis_class_unseen)	\
	M(abis_class_mine)	\
	M(abis_class_shared)	\
	M(abis_left_off)	\
	M(abis_awaited_unseen)	\
	M(abis_fork_unseen)	\
	M(abis_reuse_unseen)	\
	M(abis_again_any)	\
	M(abis_again_huge)	\
	M(abis_class_away)	\
	M(abis_batch_split)	\
	M(abis_way_cached)	\
	M(abis_way_left)	\
	M(sharers_links_below)	\
	M(sharers_links_writable)	\
	M(morsel_no_look)	\
	M(morsel_any_size)	\
	M(morsel_below_hasty)	\
	M(morsel_no_limit)	\
	M(morsel_uncharged)	\
	M(morsel_pins_unpaid)	\
	M(morsel_no_rcu)	\
	M(morsel_links_none)	\
	M(morsel_link_writes)	\
	M(morsel_detach_unflushed)	\
	M(morsel_protect_stays)	\
	M(morsel_unshared)	\
	M(morsel_bad_rights)	\
	M(morsel_gup_leaves)	\
	M(morsel_hmm_leaves)	\
	M(morsel_unflushed)	\
	M(morsel_flush_one)	\
	M(morsel_flush_own)	\
	M(morsel_flush_twice)	\
	M(morsel_unnoticed)	\
	M(morsel_reads_broken)	\
	M(morsel_huge_ends)	\
	M(morsel_huge_loose)	\
	M(morsel_huge_pinned)	\
	M(morsel_lost_unseen)	\
	M(morsel_fill_beside)	\
	M(morsel_splits)	\
	M(morsel_upper_stays)	\
	M(morsel_walked)	\
	M(morsel_break_stays)	\
	M(morsel_break_here)	\
	M(morsel_owns_tables)	\
	M(morsel_super_goes)	\
	M(morsel_any_makes)	\
	M(morsel_any_takes)	\
	M(morsel_destroy_mapped)	\
	M(morsel_gone_unseen)	\
	M(morsel_tables_wait)	\
	M(morsel_populate_single)	\
	M(morsel_waits_unbounded)	\
	M(morsel_limit_hasty)	\
	M(morsel_fsync_hasty)	\
	M(morsel_destroy_hasty)	\
	M(morsel_end_hasty)	\
	M(morsel_cleaner_stays)	\
	M(morsel_finish_beside)	\
	M(morsel_settle_beside)	\
	M(morsel_owed_unseen)	\
	M(morsel_marks_dropped)	\
	M(morsel_marks_early)	\
	M(morsel_any_owes)	\
	M(morsel_lazy_never)	\
	M(morsel_own_unseen)	\
	M(morsel_pool_hasty)	\
	M(morsel_pool_hoards)	\
	M(morsel_pool_pinned)	\
	M(morsel_pool_unbounded)	\
	M(morsel_steal_hasty)	\
	M(morsel_steal_in_use)	\
	M(morsel_steal_pinned)	\
	M(morsel_steal_unflushed)	\
	M(morsel_copy_open)	\
	M(morsel_copy_beside)	\
	M(morsel_copy_reuse)	\
	M(morsel_copy_writable)	\
	M(morsel_copy_unflushed)	\
	M(morsel_copy_pinned)	\
	M(morsel_copy_ends)	\
	M(morsel_own_unflushed)	\
	M(morsel_held_unseen)	\
	M(morsel_share_writable)	\
	M(morsel_drop_hasty)	\
	M(morsel_dropped_left)	\
	M(morsel_cut_none)	\
	M(morsel_rest_unseen)	\
	M(morsel_link_stays)

#define CF_MUTATION_ENUM(name)	MUTATE_##name,
enum cf_mutation {
	MUTATE_NONE,
	CF_MUTATIONS(CF_MUTATION_ENUM)
	MUTATE_NR,
};

#ifdef CONFIG_CEASEFIRE_DEBUG
extern enum cf_mutation cf_mutation;
extern u32 cf_flush_delay_us;
extern u32 cf_tag_delay_us;
extern u32 cf_skip_delay_us;
extern u32 cf_rewrite_delay_us;
extern u32 abis_classes;
extern u32 abis_flush_delay_us;
extern u32 cf_install_delay_us;
extern u32 cf_clean_delay_us;
extern u32 cf_mark_delay_us;
extern u32 cf_steal_delay_us;
extern u32 cf_copy_delay_us;
extern atomic_t cf_holds;
extern u32 cf_start_delay_us;
extern u32 cf_skip_local;
extern u64 cf_first_generation;
extern u64 cf_arena_size;
extern u32 cf_id_max;
extern u32 cf_tickless_cpu;
extern u32 cf_fork_fails;
extern u32 sharers_fill_delay_us;
extern u32 sharers_send_delay_us;
extern u32 sharers_slots;

static inline bool cf_mutated(enum cf_mutation m)
{
	return unlikely(READ_ONCE(cf_mutation) == m);
}
#else
#define cf_arena_size	CF_ARENA_SIZE
#define cf_id_max	CF_ID_MAX
#define cf_skip_local	0
#define cf_tickless_cpu	U32_MAX

static inline bool cf_mutated(enum cf_mutation m)
{
	return false;
}
#endif

/*
 * CF_MUTATION(name, statements): what to do instead while @name is on. Without
 * all statements like this a file is what production compiles: they stand above
 * a decision and never in it. A break or continue would end the macro only.
 */
#define CF_MUTATION(name, ...)	CF_MUTATION_NTH(name, 0, __VA_ARGS__)

/* The same where a condition holds. */
#define CF_MUTATION_IF(name, condition, ...)			\
	do {							\
		if (IS_ENABLED(CONFIG_CEASEFIRE_DEBUG) &&	\
		    cf_mutated(MUTATE_##name) && (condition)) {	\
			__VA_ARGS__;				\
		}						\
	} while (0)

/* The same for the mutation that comes @n after the first of its family. */
#define CF_MUTATION_NTH(first, n, ...)				\
	do {							\
		if (IS_ENABLED(CONFIG_CEASEFIRE_DEBUG) &&	\
		    cf_mutated(MUTATE_##first + (n))) {		\
			__VA_ARGS__;				\
		}						\
	} while (0)

#endif /* _MM_CEASEFIRE_MUTATE_H */
