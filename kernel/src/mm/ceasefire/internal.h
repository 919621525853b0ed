/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Inside of ceasefire: the context and what its files do for each other.
 *
 *   context.c	life of a context: found, created, exit
 *   group.c	contexts of several processes
 *   tags.c	one word per frame: who may still reach it
 *   pool.c	parked frames: in by the free side, out by release
 *   account.c	their number, for all who want to see it
 *   charge.c	the control groups that pay for them
 *   recycle.c	parked frames that faults of the same context use again
 *   settle.c	generations, debts and drains
 *   pressure.c	drains for those who need memory
 *   tick.c	debts paid by the ticks of the CPUs, without interrupts
 *   arena.c	addresses of MAP_FPR mappings, left-over page tables
 *   fpr.c	policy: which mappings and which flushes may be skipped
 *   mmap.c	a short way for mmap() of small files
 *   munmap.c	munmap() inside the quarantine
 *   rights.c	what is in a frame that stale translations reach
 *   evict.c	reclaim of pages that are mapped
 *   prctl.c	what whole processes ask for
 *   sysfs.c	/sys/kernel/mm/ceasefire and the boot parameter
 *   mutate.c	debug builds: protections that can be switched off
 */
#ifndef _MM_CEASEFIRE_INTERNAL_H
#define _MM_CEASEFIRE_INTERNAL_H

#include <linux/atomic.h>
#include <linux/ceasefire.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/rcupdate.h>
#include <linux/refcount.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>

#include "arena_state.h"
#include "tag_state.h"

/**
 * struct fpr_catching_up - a debt that ticks are paying
 * @gen:	generation of the context that is paid for; 0: none
 * @rcu:	grace period after which CPUs can be believed
 * @since:	when the generation was taken, in jiffies
 */
struct fpr_catching_up {
	u64 gen;
	unsigned long rcu;
	unsigned long since;
};

/**
 * struct fpr_ctx - recycling context: who may reach the same stale frames
 * @id:		what tags say; unique among live contexts
 * @mm:		the process, pinned by mmgrab(); NULL for groups and the shared
 *		context
 * @group:	the context that frames are tagged with instead, under RCU
 * @member:	that it is in the list of the group, see group.c
 * @leaving:	groups that it is just leaving
 * @started:	flushes of a group, or of all, that were requested
 * @ref:	one for the owner, one for each queued work and each user
 * @completed:	newest completed full flush, see tag_state.h; only grows
 * @skipped:	newest started generation that a skip was tagged with, plus 1
 * @cleared:	the same for accessed bits that were cleared; see evict.c
 * @untracked:	the same for those that no tag tells of
 * @born:	the same for those that were cleared while @mm had no context;
 *		U64_MAX until that is over
 * @kept:	pages that reclaim has left alone since they were last settled
 * @stale:	frames that it can reach, or a few more: counted when a skip makes
 *		them so, 0 again with each flush for the context
 * @awaited:	generation that ticks shall catch up with
 * @owed:	1 from the first skip until the age work takes it back
 * @catching_up: what the age work waits for; for itself alone, see tick.c
 * @keyed:	a mapping has had a protection key; for good, under @mm's mmap_lock
 *		held for writing
 * @lock:	protects @single, @anon, @large, @nr, @payer and @dead; irq safe,
 *		innermost
 * @dead:	no CPU can use translations of @mm any more
 * @nr:		parked base pages
 * @payer:	the control group that pays for all that is parked, FPR_PAYERS if
 *		there are several; only while @nr is not 0
 * @single:	parked order-0 pages; also the free list of the context
 * @anon:	those that the process may still write to; only for anonymous pages
 * @large:	parked pages of higher order
 * @drain:	runs when @nr goes over the limit
 * @age:	settles what is still owed after a while
 * @free:	frees the context, which is not for every context to do
 * @settling:	one drain at a time: who waits for frames waits for those that
 *		are on their way, too
 * @rcu:	contexts are found by id under RCU
 * @arena:	addresses; under @mm's mmap_lock held for writing, stable while
 *		it is held for reading
 * @tables:	page table bytes of @mm after the last table drain
 * @hole_start:	no mapping lies in [@hole_start, @arena.next)
 * @vma:	structure of a mapping that is gone, for the next; under @mm's
 *		mmap_lock as one that is being unmapped
 */
struct fpr_ctx {
	u32 id;
	struct mm_struct *mm;
	struct fpr_ctx *group;
	struct fpr_member *member;
	atomic_t leaving;
	atomic64_t started;
	refcount_t ref;
	u64 completed;
	u64 skipped;
	u64 cleared;
	u64 untracked;
	u64 born;
	u64 awaited;
	struct fpr_catching_up catching_up;
	atomic_long_t stale;
	atomic_t kept;
	int owed;
	bool keyed;

	/* Protects the pool: the members down to @large. */
	spinlock_t lock;
	bool dead;
	unsigned long nr;
	struct mem_cgroup *payer;
	struct list_head single;
	struct list_head anon;
	struct list_head large;

	struct work_struct drain;
	struct delayed_work age;
	struct work_struct free;
	/* Serializes drains; nothing is allocated under it. */
	struct mutex settling;
	struct rcu_head rcu;

	struct fpr_arena arena;
	unsigned long tables;
	unsigned long hole_start;
	struct vm_area_struct *vma;
};

extern struct fpr_ctx fpr_shared;

/* Generations only grow; several may be noted at once. */
static inline void fpr_raise(u64 *newest, u64 gen)
{
	u64 old = READ_ONCE(*newest);

	while (old < gen && !try_cmpxchg64(newest, &old, gen))
		;
}

/* Knobs, see sysfs.c. */
extern bool fpr_enabled;
extern unsigned long fpr_pool_limit;
extern unsigned long fpr_parked_limit;
extern unsigned long fpr_stale_limit;
extern unsigned int fpr_debt_age_ms;
extern bool fpr_evict_skips;

/* context.c */
struct fpr_ctx *fpr_ctx_find(u32 id);
struct fpr_ctx *fpr_ctx_next(unsigned long *id);
struct fpr_ctx *fpr_ctx_create(struct mm_struct *mm);
bool fpr_ctx_register(struct fpr_ctx *ctx);
void fpr_ctx_end(struct fpr_ctx *ctx);
void fpr_ctx_put(struct fpr_ctx *ctx);
unsigned int fpr_ctx_count(void);

/* group.c */
void fpr_group_join(struct fpr_ctx *ctx);
void fpr_group_end(struct fpr_ctx *ctx);
void fpr_group_flush(struct fpr_ctx *ctx);
unsigned int fpr_group_kind(void);
unsigned int fpr_group_count(void);
unsigned long fpr_group_bytes(void);
int fpr_group_choose(unsigned long kind);
void fpr_group_leave(struct mm_struct *mm);
bool fpr_is_mapping_only(struct mm_struct *mm);

/* tags.c */
bool fpr_tags_init(void);
bool fpr_tag_frames(unsigned long pfn, unsigned long nr, u64 new,
		    unsigned long *fresh);
bool fpr_frames_tagged(unsigned long pfn);
u64 fpr_frames_tags(unsigned long pfn, unsigned long nr);
bool fpr_frames_reached(unsigned long pfn, unsigned long nr);
struct fpr_ctx *fpr_frame_owner(unsigned long pfn, u64 *found);
void fpr_tags_clear(unsigned long pfn, unsigned long nr, u32 id);
void fpr_tags_retire(void);
void fpr_tags_free(void);
unsigned long fpr_tags_bytes(void);

/* pool.c */
void fpr_pool_init(struct fpr_ctx *ctx);
unsigned long fpr_pool_take(struct fpr_ctx *ctx, struct list_head *list);
bool fpr_pool_stale(struct fpr_ctx *ctx, struct list_head *list);
unsigned long fpr_pool_release(struct list_head *list, struct fpr_ctx *flushed,
			       bool *again);
void fpr_wipe(struct page *page, unsigned int order);

/* In page->private of a parked page, beside the order. */
#define FPR_PARKED_WRITABLE	0x100UL
/* The same while it becomes a page in use; no page has it by accident. */
#define FPR_RECYCLED		((unsigned long)&fpr_shared)

/* account.c */
long fpr_parked(void);
void fpr_account_parked(struct page *page, long nr);
ssize_t fpr_meminfo(char *buf);

/* charge.c */
#define FPR_PAYERS	((struct mem_cgroup *)ERR_PTR(-E2BIG))
#ifdef CONFIG_MEMCG
bool fpr_charges_kept(void);
bool fpr_charge_hold(struct page *page, unsigned int order);
void fpr_charge_drop(struct page *page, unsigned int order);
void fpr_charge_noted(struct fpr_ctx *ctx, struct page *page);
bool fpr_charge_concerns(struct fpr_ctx *ctx, struct mem_cgroup *memcg);
unsigned long fpr_charged(struct mem_cgroup *memcg);
#else
static inline bool fpr_charges_kept(void)
{
	return false;
}

static inline bool fpr_charge_hold(struct page *page, unsigned int order)
{
	return false;
}

static inline void fpr_charge_drop(struct page *page, unsigned int order) { }
static inline void fpr_charge_noted(struct fpr_ctx *ctx, struct page *page) { }
static inline bool fpr_charge_concerns(struct fpr_ctx *ctx,
				       struct mem_cgroup *memcg)
{
	return true;
}

static inline unsigned long fpr_charged(struct mem_cgroup *memcg)
{
	return 0;
}
#endif

/* pressure.c */
void fpr_limit_parked(void);

/* settle.c */
extern struct workqueue_struct *fpr_wq;
u64 fpr_started(struct fpr_ctx *ctx);
struct fpr_ctx *fpr_tag_ctx(struct fpr_ctx *ctx);
u64 fpr_shared_tag_now(void);
u64 fpr_shared_take_generation(void);
void fpr_start_generations(struct mm_struct *mm);
bool fpr_tag_is_stale(u64 tag, struct fpr_ctx *ctx);
void fpr_credit(struct fpr_ctx *ctx, u64 gen);
void fpr_owe(struct fpr_ctx *ctx, u64 gen);
void fpr_owe_young(struct fpr_ctx *ctx, u64 gen);
bool fpr_is_owed_for(struct fpr_ctx *ctx, u64 newest);
bool fpr_is_owed(struct fpr_ctx *ctx);
void fpr_note_left(struct fpr_ctx *ctx);
bool fpr_owes_skips(struct fpr_ctx *ctx);
void fpr_flush(struct fpr_ctx *ctx);
bool fpr_flush_found(struct fpr_ctx *ctx);
void fpr_settle(struct fpr_ctx *ctx, enum fpr_drain_reason reason);
unsigned long fpr_settle_one(struct fpr_ctx *ctx, enum fpr_drain_reason reason,
			     bool *again);
void fpr_settle_soon(struct fpr_ctx *ctx);
void fpr_settle_init(struct fpr_ctx *ctx);
void fpr_settle_shared_idle(void);
void fpr_kick_drain(struct fpr_ctx *ctx);

/* tick.c */
bool fpr_catch_up_begin(struct fpr_ctx *ctx);
bool fpr_catch_up_done(struct fpr_ctx *ctx);

/* fpr.c */
bool fpr_vma_eligible(struct vm_area_struct *vma);

/* mmap.c */
bool fpr_vma_keep(struct fpr_ctx *ctx, struct vm_area_struct *vma);
void fpr_vma_free(struct fpr_ctx *ctx);

/* arena.c */
bool fpr_arena_init(struct fpr_ctx *ctx);
unsigned long fpr_arena_get(struct fpr_ctx *ctx, unsigned long len,
			    unsigned long pgoff);
bool fpr_arena_may_keep(struct fpr_ctx *ctx);
void fpr_arena_settle(struct fpr_ctx *ctx);
void fpr_arena_exit(struct fpr_ctx *ctx);
#define FPR_ARENA_SIZE		(256UL << 30)
#define FPR_ARENA_MAX_MAP(a)	(((a)->end - (a)->base) / 4)

/* mutate.c: exactly one protection, or none, is switched off. */
#define FPR_MUTATIONS(M)	\
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
	M(fpr_ignore_notifiers)

#define FPR_MUTATION_ENUM(name)	MUTATE_##name,
enum fpr_mutation {
	MUTATE_NONE,
	FPR_MUTATIONS(FPR_MUTATION_ENUM)
	MUTATE_NR,
};

#ifdef CONFIG_CEASEFIRE_DEBUG
extern enum fpr_mutation fpr_mutation;
extern u32 fpr_skip_local;
extern u32 fpr_flush_delay_us;
extern u32 fpr_tag_delay_us;
extern u32 fpr_skip_delay_us;
extern u64 fpr_first_generation;
extern u64 fpr_arena_size;
extern u32 fpr_id_max;

static inline bool fpr_mutated(enum fpr_mutation m)
{
	return unlikely(READ_ONCE(fpr_mutation) == m);
}

static inline bool fpr_mutated_nth(enum fpr_mutation first, unsigned int n)
{
	return fpr_mutated(first + n);
}
#else
#define fpr_skip_local	0
#define fpr_arena_size	FPR_ARENA_SIZE
#define fpr_id_max	FPR_ID_MAX

static inline bool fpr_mutated(enum fpr_mutation m)
{
	return false;
}

static inline bool fpr_mutated_nth(enum fpr_mutation first, unsigned int n)
{
	return false;
}
#endif

#endif /* _MM_CEASEFIRE_INTERNAL_H */
