/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The core of ceasefire: what is owed, to whom, since when, and how it is
 * settled. It knows no mechanism: those in the folders beside this one say which
 * flushes they leave out, and the core keeps what CPUs may still reach.
 *
 * From the bottom up; no file uses one that comes later:
 *
 *   registry.c	all contexts, by their identifiers
 *   debt.c	generations, and what is owed
 *   tags.c	one word per frame: who may still reach it
 *   young.c	whether a CPU can have an entry, by its accessed bit
 *   account.c	parked frames: their number, for all who want to see it
 *   charge.c	the control groups that pay for them
 *   pool.c	parked frames: in by the free side, out by release
 *   held.c	pages that are not even freed before
 *   members.c	who is flushed with a context of several processes
 *   tick.c	debts paid by the ticks of the CPUs, without interrupts
 *   settle.c	the flushes that pay, and drains
 *   gather.c	whether a flush is needed, and what is noted if not
 *   pressure.c	drains for those who need memory
 *   group.c	contexts of several processes
 *   choice.c	who is in one: what processes choose, and their credentials
 *   arena.c	addresses that wait, and left-over page tables
 *   policy.c	which mechanism the munmap()s of a process use
 *   munmap.c	munmap() and the quarantine
 *   context.c	life of a context: created, exit
 *
 * Above it: sysfs.c (/sys/kernel/mm/ceasefire and the boot parameter), mutate.c
 * (debug builds: protections that can be switched off).
 */
#ifndef _MM_CEASEFIRE_CORE_H
#define _MM_CEASEFIRE_CORE_H

#include <linux/atomic.h>
#include <linux/ceasefire.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/rcupdate.h>
#include <linux/refcount.h>
#include <linux/spinlock.h>
#include <linux/timer.h>
#include <linux/vm_event_item.h>
#include <linux/workqueue.h>

#include "../mutate.h"
#include "arena_state.h"
#include "tag_state.h"

/**
 * struct cf_catching_up - a debt that ticks are paying
 * @gen:	generation of the context that is paid for; 0: none
 * @rcu:	grace period after which CPUs can be believed
 * @since:	when the oldest generation was taken that is waited for, in jiffies
 * @waiting:	of cf_ctx.waiting, what is over when it is paid
 * @overdue:	the newest generation that CPUs have had the time for
 * @late:	a CPU had to be interrupted
 * @released:	cf_ctx.completed when parked frames were last released
 */
struct cf_catching_up {
	u64 gen;
	unsigned long rcu;
	unsigned long since;
	long waiting;
	u64 overdue;
	bool late;
	u64 released;
};

/* What is decided about a flush; in the order of the counters of a mechanism. */
enum cf_verdict {
	CF_SKIP = -1,
	CF_FLUSH_LOCAL,
	CF_FLUSH_DIRTY,
	CF_FLUSH_ANON,
	CF_FLUSH_SPECIAL,
	CF_FLUSH_NOTIFIER,
	CF_FLUSH_OUTSIDE,
	CF_FLUSH_MIXED,
	CF_FLUSH_TABLES,
	CF_FLUSH_NESTED,
	CF_FLUSH_TAGS,
	CF_FLUSH_DISABLED,
	CF_FLUSH_CONTEXT,
	CF_FLUSH_LIMIT,
	CF_FLUSH_POISON,
};

/* Why a CPU may have an entry (young.c); in the order of the counters of those who ask. */
enum cf_cached {
	CF_UNCACHED = -1,
	CF_CACHED_YOUNG,
	CF_CACHED_STALE,
	CF_CACHED_DISABLED,
	CF_CACHED_NOTIFIER,
	CF_CACHED_PENDING,
	CF_CACHED_UNTRACKED,
	CF_CACHED_VENDOR,
	CF_CACHED_CLASS,	/* by CPUs of the class that it names, and no others */
};

/* Of an entry that is asked for: at an address that the caller does not know. */
#define CF_ANYWHERE	ULONG_MAX

/**
 * struct cf_policy - what a mechanism decides about the munmap()s of a process
 * @map_area:	an address for a mapping, with the arguments of mmap(); 0: as if
 *		the process had not asked for anything. NULL where only MAP_FPR asks
 * @wanted:	flags of mappings for which somebody has asked for it
 * @eligible:	can the flush for such a mapping be left out?
 * @must_flush:	what it has against leaving out the flush of a marked gather,
 *		beside what all have (gather.c); CF_SKIP: nothing
 * @huge:	can the flush for huge entries be left out?
 * @recycles:	may parked frames be used again before a flush?
 * @start_ms:	after that time ticks shall pay for a skip; NULL: half of
 *		cf_debt_age_ms
 * @late_ms:	after that time CPUs are interrupted that have not; NULL:
 *		cf_debt_age_ms
 * @held_limit:	anonymous pages that may wait until one flush pays for them, and a
 *		quarter of them for one gather; NULL: no limit but those for all
 * @tables_max:	bytes of page tables that may be left
 * @late:	counts CPUs that were interrupted, an event; 0: nobody counts them
 * @skipped:	counts flushes that were left out
 * @skipped_pages: counts the frames that were tagged instead
 * @flushed:	the first of the counters of enum cf_verdict, an event, too
 */
struct cf_policy {
	unsigned long (*map_area)(struct file *file, unsigned long addr,
				  unsigned long len, unsigned long pgoff,
				  unsigned long flags, vm_flags_t vm_flags);
	vm_flags_t wanted;
	bool (*eligible)(struct vm_area_struct *vma);
	enum cf_verdict (*must_flush)(struct mmu_gather *tlb);
	bool huge;
	bool recycles;
	const unsigned int *start_ms;
	const unsigned int *late_ms;
	const unsigned long *held_limit;
	unsigned long tables_max;
	enum vm_event_item late;
	enum vm_event_item skipped;
	enum vm_event_item skipped_pages;
	int flushed;
};

/**
 * struct cf_ctx - recycling context: who may reach the same stale frames
 * @id:		what tags say; unique among live contexts
 * @mm:		the process, pinned by mmgrab(); NULL for groups and the shared
 *		context
 * @group:	the context that frames are tagged with instead, under RCU
 * @member:	that it is in the list of the group, see group.h
 * @leaving:	groups that it is just leaving
 * @started:	flushes of a group, or of all, that were requested
 * @ref:	one for the owner, one for each queued work and each user
 * @completed:	newest completed full flush, see tag_state.h; only grows
 * @skipped:	newest started generation that a skip was tagged with, plus 1
 * @cleared:	the same for accessed bits that were cleared; see young.c
 * @hinted:	the same for entries that were made inaccessible, see ../latr/hint.c
 * @untracked:	@cleared for those that no tag tells of
 * @born:	the same for those that were cleared while @mm had no context, or
 *		another mechanism; U64_MAX until that is over
 * @kept:	pages that reclaim has left alone since they were last settled
 * @stale:	frames that it can reach, or a few more: counted when a skip makes
 *		them so, 0 again with each flush for the context
 * @held:	anonymous pages that were unmapped and wait, since the last generation
 *		that ticks were to catch up with; a few more at times
 * @waiting:	those before it
 * @awaited:	generation that ticks shall catch up with
 * @oldest:	when the first generation was taken that the age work does not wait
 *		for yet, in jiffies; 0: there is none
 * @shared:	generation that the age work of the shared context waits for; 0: it
 *		does not. For that work alone
 * @due:	when the oldest debt that is not awaited is old enough, in jiffies;
 *		0: there is none. See cf_owe()
 * @catching_up: what the age work waits for; for itself alone, see tick.c
 * @keyed:	a mapping has had a protection key; for good, under @mm's mmap_lock
 *		held for writing
 * @lock:	protects @single, @anon, @large, @held_lists, @nr, @payer and @dead,
 *		and who arms @old; irq safe, innermost
 * @dead:	no CPU can use translations of @mm any more
 * @nr:		base pages that are parked or held
 * @payer:	the control group that pays for all that is parked, CF_PAYERS if
 *		there are several; only while @nr is not 0
 * @single:	parked order-0 pages; also the free list of the context
 * @anon:	those that the process may still write to; only for anonymous pages
 * @large:	parked pages of higher order
 * @held_lists:	pages that are not freed yet, see held.c
 * @returning:	base pages that were taken from there, and are not free yet; for
 *		those who hold @settling, others may look
 * @drain:	runs when @nr goes over the limit
 * @old:	expires when a debt is old enough
 * @age:	sees to it that an old debt is paid
 * @free:	frees the context; its last reference may go where nobody can sleep
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
struct cf_ctx {
	u32 id;
	struct mm_struct *mm;
	struct cf_ctx *group;
	struct cf_member *member;
	atomic_t leaving;
	atomic64_t started;
	refcount_t ref;
	u64 completed;
	u64 skipped;
	u64 cleared;
	u64 hinted;
	u64 untracked;
	u64 born;
	u64 awaited;
	struct cf_catching_up catching_up;
	atomic_long_t stale;
	atomic_long_t held;
	atomic_long_t waiting;
	atomic_t kept;
	unsigned long oldest;
	u64 shared;
	unsigned long due;
	bool keyed;

	/* Protects the pool: the members down to @held_lists. */
	spinlock_t lock;
	bool dead;
	unsigned long nr;
	struct mem_cgroup *payer;
	struct list_head single;
	struct list_head anon;
	struct list_head large;
	struct list_head held_lists;

	unsigned long returning;

	struct work_struct drain;
	struct timer_list old;
	struct delayed_work age;
	struct work_struct free;
	/* Serializes drains; nothing is allocated under it. */
	struct mutex settling;
	struct rcu_head rcu;

	struct cf_arena arena;
	unsigned long tables;
	unsigned long hole_start;
	struct vm_area_struct *vma;
};

extern struct cf_ctx cf_shared;

/* Generations only grow; several may be noted at once. */
static inline void cf_raise(u64 *newest, u64 gen)
{
	u64 old = READ_ONCE(*newest);

	while (old < gen && !try_cmpxchg64(newest, &old, gen))
		;
}

/* Knobs, set by ../sysfs.c. */
extern unsigned long cf_pool_limit;
extern unsigned long cf_parked_limit;
extern unsigned long cf_stale_limit;
extern unsigned int cf_debt_age_ms;

/* registry.c */
extern const struct cf_policy *cf_usual_policy;
extern struct workqueue_struct *cf_wq;
bool cf_ctx_register(struct cf_ctx *ctx);
void cf_ctx_unregister(struct cf_ctx *ctx);
struct cf_ctx *cf_ctx_find(u32 id);
struct cf_ctx *cf_ctx_next(unsigned long *id);
void cf_ctx_put(struct cf_ctx *ctx);

/* What decides about a process. */
static inline const struct cf_policy *cf_policy_of(struct mm_struct *mm)
{
	return READ_ONCE(mm->cf_policy) ?: cf_usual_policy;
}

/* The same for a context; several processes have what is usual. */
static inline const struct cf_policy *cf_ctx_policy(struct cf_ctx *ctx)
{
	return ctx->mm ? cf_policy_of(ctx->mm) : cf_usual_policy;
}

/* context.c */
struct cf_ctx *cf_ctx_create(struct mm_struct *mm);
unsigned int cf_ctx_count(void);

/* group.c */
unsigned int cf_group_count(void);
unsigned long cf_group_bytes(void);
void cf_group_end(struct cf_ctx *ctx);

/* members.c */
void cf_group_flush(struct cf_ctx *ctx);

/* choice.c */
void cf_group_join(struct cf_ctx *ctx);
unsigned int cf_group_kind(void);
int cf_group_choose(unsigned long kind);
void cf_group_leave(struct mm_struct *mm);
bool cf_is_mapping_only(struct mm_struct *mm);

/* tags.c */
bool cf_tags_init(void);
bool cf_tag_frames(unsigned long pfn, unsigned long nr, struct cf_ctx *ctx,
		   u64 new, unsigned long *fresh);
bool cf_frames_tagged(unsigned long pfn);
u64 cf_frames_tags(unsigned long pfn, unsigned long nr);
bool cf_frames_reached(unsigned long pfn, unsigned long nr);
struct cf_ctx *cf_frame_owner(unsigned long pfn, u64 *found);
void cf_tags_clear(unsigned long pfn, unsigned long nr, u32 id);
void cf_tags_retire(void);
void cf_tags_free(void);
unsigned long cf_tags_bytes(void);

/* A mechanism with a limit of its own keeps it; then this is for what goes wrong. */
static inline unsigned long cf_pool_max(struct cf_ctx *ctx)
{
	const unsigned long *held = cf_ctx_policy(ctx)->held_limit;

	return held ? 2 * READ_ONCE(*held) : READ_ONCE(cf_pool_limit);
}

/* pool.c */
void cf_pool_init(struct cf_ctx *ctx);
unsigned long cf_pool_take(struct cf_ctx *ctx, struct list_head *list,
			   struct list_head *held);
bool cf_pool_stale(struct cf_ctx *ctx, struct list_head *list);
unsigned long cf_pool_release(struct cf_ctx *ctx, struct list_head *list,
			      bool flushed, bool *again);
void cf_wipe(struct page *page, unsigned int order);

/* held.c */
bool cf_held_stale(struct cf_ctx *ctx, struct list_head *lists);
unsigned long cf_held_release(struct cf_ctx *ctx, struct list_head *lists,
			      bool flushed);

/* In page->private of a parked page, beside the order. */
#define CF_PARKED_WRITABLE	0x100UL
/* The same while it becomes a page in use; no page has it by accident. */
#define CF_RECYCLED		((unsigned long)&cf_shared)

/* account.c */
long cf_parked(void);
void cf_account_parked(struct pglist_data *node, long nr);
extern struct work_struct *cf_limit_work;
void cf_limit_parked(void);

/* charge.c */
#define CF_PAYERS	((struct mem_cgroup *)ERR_PTR(-E2BIG))
#ifdef CONFIG_MEMCG
bool cf_charges_kept(void);
bool cf_charge_hold(struct page *page, unsigned int order);
void cf_charge_drop(struct page *page, unsigned int order);
void cf_charge_paid_by(struct cf_ctx *ctx, struct mem_cgroup *memcg);
void cf_charge_noted(struct cf_ctx *ctx, struct page *page);
struct mem_cgroup *cf_charge_of(struct folio *folio);
void cf_charge_get(struct mem_cgroup *memcg);
bool cf_charge_tryget(struct mem_cgroup *memcg);
void cf_charge_put(struct mem_cgroup *memcg);
void cf_charge_waits(struct mem_cgroup *memcg, long nr);
bool cf_charge_concerns(struct cf_ctx *ctx, struct mem_cgroup *memcg);
unsigned long cf_charged(struct mem_cgroup *memcg);
#else
static inline bool cf_charges_kept(void)
{
	return false;
}

static inline bool cf_charge_hold(struct page *page, unsigned int order)
{
	return false;
}

static inline void cf_charge_drop(struct page *page, unsigned int order) { }
static inline void cf_charge_paid_by(struct cf_ctx *ctx,
				     struct mem_cgroup *memcg) { }
static inline void cf_charge_noted(struct cf_ctx *ctx, struct page *page) { }
static inline struct mem_cgroup *cf_charge_of(struct folio *folio)
{
	return NULL;
}

static inline void cf_charge_get(struct mem_cgroup *memcg) { }
static inline bool cf_charge_tryget(struct mem_cgroup *memcg)
{
	return true;
}

static inline void cf_charge_put(struct mem_cgroup *memcg) { }
static inline void cf_charge_waits(struct mem_cgroup *memcg, long nr) { }
static inline bool cf_charge_concerns(struct cf_ctx *ctx,
				      struct mem_cgroup *memcg)
{
	return true;
}

static inline unsigned long cf_charged(struct mem_cgroup *memcg)
{
	return 0;
}
#endif

/* debt.c */
u64 cf_started(struct cf_ctx *ctx);
struct cf_ctx *cf_tag_ctx(struct cf_ctx *ctx);
u64 cf_shared_tag_now(void);
u64 cf_shared_take_generation(void);
void cf_start_generations(struct mm_struct *mm);
bool cf_tag_is_stale(u64 tag, struct cf_ctx *ctx);
void cf_credit(struct cf_ctx *ctx, u64 gen);
unsigned long cf_debt_age(struct cf_ctx *ctx);
unsigned long cf_debt_late(struct cf_ctx *ctx);
void cf_kick_release(struct cf_ctx *ctx);
void cf_kick_wait(struct cf_ctx *ctx);
void cf_kick_drain(struct cf_ctx *ctx);
void cf_owe(struct cf_ctx *ctx, u64 gen);
void cf_owe_young(struct cf_ctx *ctx, u64 gen);
void cf_owe_hints(struct cf_ctx *ctx, u64 gen);
bool cf_is_owed_for(struct cf_ctx *ctx, u64 newest);
bool cf_owes_frames(struct cf_ctx *ctx);
bool cf_is_owed(struct cf_ctx *ctx);
void cf_note_left(struct cf_ctx *ctx);
bool cf_owes_skips(struct cf_ctx *ctx);

/* gather.c */
bool cf_runs_elsewhere(struct mm_struct *mm);
void cf_skip_pause(void);
void cf_flush_own(struct mmu_gather *tlb);

/* settle.c */
void cf_flush(struct cf_ctx *ctx);
bool cf_flush_found(struct cf_ctx *ctx);
void cf_settle(struct cf_ctx *ctx, enum cf_drain_reason reason);
void cf_ctx_end(struct cf_ctx *ctx);
unsigned long cf_settle_one(struct cf_ctx *ctx, enum cf_drain_reason reason,
			    bool *again);
void cf_settle_soon(struct cf_ctx *ctx);
void cf_settle_init(struct cf_ctx *ctx);
void cf_settle_shared_idle(void);

/* tick.c */
bool cf_catch_up_begin(struct cf_ctx *ctx);
bool cf_catch_up_done(struct cf_ctx *ctx);
bool cf_start_due(struct cf_ctx *ctx);
void cf_flush_late(struct cf_ctx *ctx, u64 gen);

/* young.c */
extern bool cf_young_trusted;
bool cf_batch_pending(struct mm_struct *mm);
enum cf_cached cf_cached(struct vm_area_struct *vma, unsigned long addr,
			 pte_t pte, unsigned long nr,
			 const struct mmu_gather *own);
void cf_born_begin(struct cf_ctx *ctx);
void cf_born_end(struct cf_ctx *ctx);

/* gathers.c */
#ifdef CONFIG_CEASEFIRE_GATHERS
bool cf_gathers_meet(struct mm_struct *mm, const struct mmu_gather *own,
		     unsigned long addr, unsigned long nr);
#else
static inline bool cf_gathers_meet(struct mm_struct *mm,
				   const struct mmu_gather *own,
				   unsigned long addr, unsigned long nr)
{
	return atomic_read(&mm->tlb_flush_pending) > !!own;
}
#endif

/* policy.c */
int cf_policy_choose(const struct cf_policy *policy);
void cf_policy_begin(struct mm_struct *mm, const struct cf_policy *policy);
bool cf_file_eligible(struct file *file);
unsigned long cf_map_area(struct file *file, unsigned long addr,
			  unsigned long len, unsigned long pgoff,
			  unsigned long flags, vm_flags_t vm_flags);

/* arena.c */
bool cf_arena_init(struct cf_ctx *ctx);
unsigned long cf_arena_get(struct cf_ctx *ctx, struct file *file,
			   unsigned long len, unsigned long pgoff);
bool cf_arena_may_keep(struct cf_ctx *ctx);
void cf_arena_settle(struct cf_ctx *ctx);
void cf_arena_exit(struct cf_ctx *ctx);
#define CF_ARENA_SIZE		(256UL << 30)
#define CF_ARENA_MAX_MAP(a)	(((a)->end - (a)->base) / 4)

#endif /* _MM_CEASEFIRE_CORE_H */
