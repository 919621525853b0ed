/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Counters of ceasefire in /proc/vmstat: one list, used for the enums in
 * vm_event_item.h and mmzone.h and for the names in mm/vmstat.c, so that they
 * cannot drift.
 */
#ifndef _LINUX_CEASEFIRE_EVENTS_H
#define _LINUX_CEASEFIRE_EVENTS_H

#ifdef CONFIG_CEASEFIRE_CORE

#define CEASEFIRE_VM_EVENTS(E)						\
	/* mmap() with MAP_FPR: honoured, or why not */			\
	E(FPR_MAP,			"fpr_map")			\
	E(FPR_MAP_INELIGIBLE_DISABLED,	"fpr_map_ineligible_disabled")	\
	E(FPR_MAP_INELIGIBLE_FILE,	"fpr_map_ineligible_file")	\
	E(FPR_MAP_INELIGIBLE_EXEC,	"fpr_map_ineligible_exec")	\
	E(FPR_MAP_INELIGIBLE_ADDRESS,	"fpr_map_ineligible_address")	\
	E(FPR_MAP_INELIGIBLE_LIMIT,	"fpr_map_ineligible_limit")	\
	E(FPR_MAP_INELIGIBLE_ARENA,	"fpr_map_ineligible_arena")	\
	/* munmap() of such mappings: flush skipped, or why not */	\
	E(FPR_SKIP,			"fpr_skip")			\
	E(FPR_SKIP_PAGES,		"fpr_skip_pages")		\
	E(FPR_FLUSH_LOCAL,		"fpr_flush_local")		\
	E(FPR_FLUSH_DIRTY,		"fpr_flush_dirty")		\
	E(FPR_FLUSH_ANON,		"fpr_flush_anon")		\
	E(FPR_FLUSH_SPECIAL,		"fpr_flush_special")		\
	E(FPR_FLUSH_NOTIFIER,		"fpr_flush_notifier")		\
	E(FPR_FLUSH_OUTSIDE,		"fpr_flush_outside")		\
	E(FPR_FLUSH_MIXED,		"fpr_flush_mixed")		\
	E(FPR_FLUSH_TABLES,		"fpr_flush_tables")		\
	E(FPR_FLUSH_NESTED,		"fpr_flush_nested")		\
	E(FPR_FLUSH_TAGS,		"fpr_flush_tags")		\
	E(FPR_FLUSH_DISABLED,		"fpr_flush_disabled")		\
	E(FPR_FLUSH_CONTEXT,		"fpr_flush_context")		\
	E(FPR_FLUSH_LIMIT,		"fpr_flush_limit")		\
	E(FPR_FLUSH_POISON,		"fpr_flush_poison")		\
	/* frames */							\
	E(FPR_SHARED,			"fpr_shared")			\
	E(FPR_PARK,			"fpr_park")			\
	E(FPR_RECYCLE,			"fpr_recycle")			\
	E(FPR_RELEASE,			"fpr_release")			\
	/* eviction: flush not needed, or why; left alone for now */	\
	E(FPR_EVICT_SKIP,		"fpr_evict_skip")		\
	E(FPR_EVICT_FLUSH_YOUNG,	"fpr_evict_flush_young")	\
	E(FPR_EVICT_FLUSH_STALE,	"fpr_evict_flush_stale")	\
	E(FPR_EVICT_FLUSH_DISABLED,	"fpr_evict_flush_disabled")	\
	E(FPR_EVICT_FLUSH_NOTIFIER,	"fpr_evict_flush_notifier")	\
	E(FPR_EVICT_FLUSH_PENDING,	"fpr_evict_flush_pending")	\
	E(FPR_EVICT_FLUSH_UNTRACKED,	"fpr_evict_flush_untracked")	\
	E(FPR_EVICT_FLUSH_VENDOR,	"fpr_evict_flush_vendor")	\
	E(FPR_EVICT_LATER,		"fpr_evict_later")		\
	E(FPR_EVICT_SETTLE,		"fpr_evict_settle")		\
	/* madvise(MADV_COLD): accessed bits noted, no flush */		\
	E(FPR_COLD_SKIP,		"fpr_cold_skip")		\
	/* drains, by what asked for them: order of enum fpr_drain_reason */ \
	E(FPR_DRAIN_LIMIT,		"fpr_drain_limit")		\
	E(FPR_DRAIN_AGE,		"fpr_drain_age")		\
	E(FPR_DRAIN_KSWAPD,		"fpr_drain_kswapd")		\
	E(FPR_DRAIN_SHRINKER,		"fpr_drain_shrinker")		\
	E(FPR_DRAIN_RECLAIM,		"fpr_drain_reclaim")		\
	E(FPR_DRAIN_OOM,		"fpr_drain_oom")		\
	E(FPR_DRAIN_ISOLATE,		"fpr_drain_isolate")		\
	E(FPR_DRAIN_PCP,		"fpr_drain_pcp")		\
	E(FPR_DRAIN_COMPACT,		"fpr_drain_compact")		\
	E(FPR_DRAIN_POISON,		"fpr_drain_poison")		\
	E(FPR_DRAIN_CGROUP,		"fpr_drain_cgroup")		\
	E(FPR_DRAIN_EXIT,		"fpr_drain_exit")		\
	/* flushes issued by drains, left-over tables, address claims */ \
	E(FPR_DRAIN_FLUSH,		"fpr_drain_flush")		\
	E(FPR_TICK_FLUSH,		"fpr_tick_flush")		\
	E(FPR_DRAIN_TABLES,		"fpr_drain_tables")		\
	E(FPR_VA_FLUSH,			"fpr_va_flush")			\
	E(FPR_LEAVE_FLUSH,		"fpr_leave_flush")

/* Of each node, not only counted up: pages that wait in pools. */
#define CEASEFIRE_NODE_STAT_ITEMS	NR_FPR_PARKED, CEASEFIRE_MORSEL_STAT_ITEMS
#define CEASEFIRE_NODE_STAT_NAMES	"nr_fpr_parked", CEASEFIRE_MORSEL_STAT_NAMES

/* Pages of memory objects with page tables of their own. */
#ifdef CONFIG_CEASEFIRE_MORSEL
#define CEASEFIRE_MORSEL_STAT_ITEMS	NR_MORSEL_PAGES,
#define CEASEFIRE_MORSEL_STAT_NAMES	"nr_morsel_pages",
#else
#define CEASEFIRE_MORSEL_STAT_ITEMS
#define CEASEFIRE_MORSEL_STAT_NAMES
#endif

/* Of each memory control group: those that it pays for; mm/ceasefire/charge.c. */
#define CEASEFIRE_MEMCG_COUNTERS	atomic_long_t cf_parked

#ifdef CONFIG_CEASEFIRE_LATR
#define CEASEFIRE_LATR_EVENTS(E)					\
	/* munmap() of lazy processes: flush skipped, or why not */	\
	E(LATR_SKIP,			"latr_skip")			\
	E(LATR_SKIP_PAGES,		"latr_skip_pages")		\
	E(LATR_FLUSH_LOCAL,		"latr_flush_local")		\
	E(LATR_FLUSH_DIRTY,		"latr_flush_dirty")		\
	E(LATR_FLUSH_ANON,		"latr_flush_anon")		\
	E(LATR_FLUSH_SPECIAL,		"latr_flush_special")		\
	E(LATR_FLUSH_NOTIFIER,		"latr_flush_notifier")		\
	E(LATR_FLUSH_OUTSIDE,		"latr_flush_outside")		\
	E(LATR_FLUSH_MIXED,		"latr_flush_mixed")		\
	E(LATR_FLUSH_TABLES,		"latr_flush_tables")		\
	E(LATR_FLUSH_NESTED,		"latr_flush_nested")		\
	E(LATR_FLUSH_TAGS,		"latr_flush_tags")		\
	E(LATR_FLUSH_DISABLED,		"latr_flush_disabled")		\
	E(LATR_FLUSH_CONTEXT,		"latr_flush_context")		\
	E(LATR_FLUSH_LIMIT,		"latr_flush_limit")		\
	E(LATR_FLUSH_POISON,		"latr_flush_poison")		\
	/* NUMA hints: flush left to ticks, or not needed by others */	\
	E(LATR_HINT_SKIP,		"latr_hint_skip")		\
	E(LATR_HINT_FLUSH,		"latr_hint_flush")		\
	/* Flush of all hints for one whose page is to be moved */	\
	E(LATR_HINT_SETTLE,		"latr_hint_settle")		\
	/* CPUs that had to be interrupted */				\
	E(LATR_LATE,			"latr_late")
#else
#define CEASEFIRE_LATR_EVENTS(E)
#endif

#ifdef CONFIG_CEASEFIRE_SHARERS
#define CEASEFIRE_SHARERS_EVENTS(E)					\
	/* flushes: others were interrupted, nobody was, all were */	\
	E(SHARERS_FLUSH_REMOTE,		"sharers_flush_remote")		\
	E(SHARERS_FLUSH_LOCAL,		"sharers_flush_local")		\
	E(SHARERS_FLUSH_ALL,		"sharers_flush_all")		\
	/* of the last ones: no range, a long one, being changed */	\
	E(SHARERS_ALL_WHOLE,		"sharers_all_whole")		\
	E(SHARERS_ALL_LONG,		"sharers_all_long")		\
	E(SHARERS_ALL_STOPPED,		"sharers_all_stopped")		\
	/* what reclaim puts off: entries for which only some are asked */ \
	E(SHARERS_DEFER,		"sharers_defer")		\
	/* entries of copies; a fault was for nothing else; too late */	\
	E(SHARERS_FILL,			"sharers_fill")			\
	E(SHARERS_FILL_ONLY,		"sharers_fill_only")		\
	E(SHARERS_FILL_RACE,		"sharers_fill_race")		\
	/* a CPU got all of a GiB */					\
	E(SHARERS_WHOLE,		"sharers_whole")		\
	/* mmap(): placed beside what the thread has; granules of threads */	\
	E(SHARERS_PLACE,		"sharers_place")		\
	E(SHARERS_GRANULE,		"sharers_granule")		\
	/* CPUs: gave up a region, went on with the canonical root */	\
	E(SHARERS_LEAVE,		"sharers_leave")		\
	E(SHARERS_UNCONFINE,		"sharers_unconfine")
#else
#define CEASEFIRE_SHARERS_EVENTS(E)
#endif

#ifdef CONFIG_CEASEFIRE_ABIS
#define CEASEFIRE_ABIS_EVENTS(E)					\
	/* flushes: fell away, for fewer entries, as ever */		\
	E(ABIS_NONE,			"abis_none")			\
	E(ABIS_SOME,			"abis_some")			\
	E(ABIS_ALL,			"abis_all")			\
	/* went to the CPU that did it, or to others of a few classes */ \
	E(ABIS_LOCAL,			"abis_local")			\
	E(ABIS_NARROW,			"abis_narrow")			\
	/* entries that were changed: in no TLB, or why they may be */	\
	E(ABIS_UNCACHED,		"abis_uncached")		\
	E(ABIS_CACHED_YOUNG,		"abis_cached_young")		\
	E(ABIS_CACHED_STALE,		"abis_cached_stale")		\
	E(ABIS_CACHED_DISABLED,		"abis_cached_disabled")		\
	E(ABIS_CACHED_NOTIFIER,		"abis_cached_notifier")		\
	E(ABIS_CACHED_PENDING,		"abis_cached_pending")		\
	E(ABIS_CACHED_UNTRACKED,	"abis_cached_untracked")	\
	E(ABIS_CACHED_VENDOR,		"abis_cached_vendor")		\
	E(ABIS_CACHED_CLASS,		"abis_cached_class")		\
	E(ABIS_CACHED_SPECIAL,		"abis_cached_special")		\
	E(ABIS_CACHED_LOCKED,		"abis_cached_locked")		\
	/* entries without an accessed bit: new ones, flushed ones */	\
	E(ABIS_BORN,			"abis_born")			\
	E(ABIS_CLEANED,			"abis_cleaned")			\
	/* entries that only the CPU has that has asked for them */	\
	E(ABIS_INSERTED,		"abis_inserted")
#else
#define CEASEFIRE_ABIS_EVENTS(E)
#endif

#ifdef CONFIG_CEASEFIRE_MORSEL
#define CEASEFIRE_MORSEL_EVENTS(E)					\
	/* pages given up without a flush; calls that flushed, and why */ \
	E(MORSEL_LAZY_PAGES,		"morsel_lazy_pages")		\
	E(MORSEL_LAZY_FLUSH_CONTEXT,	"morsel_lazy_flush_context")	\
	E(MORSEL_LAZY_FLUSH_NOTIFIER,	"morsel_lazy_flush_notifier")	\
	E(MORSEL_LAZY_FLUSH_AGAIN,	"morsel_lazy_flush_again")	\
	E(MORSEL_LAZY_FLUSH_TAKEN,	"morsel_lazy_flush_taken")	\
	E(MORSEL_LAZY_FLUSH_LIMIT,	"morsel_lazy_flush_limit")	\
	/* taken when memory was short: pages of zeroes, tables without a page */ \
	E(MORSEL_STEAL,			"morsel_steal")			\
	E(MORSEL_STEAL_TABLE,		"morsel_steal_table")		\
	/* copies made; tables and pages that became a morsel's own */	\
	E(MORSEL_COPY,			"morsel_copy")			\
	E(MORSEL_COPY_TABLE,		"morsel_copy_table")		\
	E(MORSEL_COPY_PAGE,		"morsel_copy_page")
#else
#define CEASEFIRE_MORSEL_EVENTS(E)
#endif

#define CEASEFIRE_VM_EVENT_ITEM(item, name)	item,
#define CEASEFIRE_VM_EVENT_NAME(item, name)	name,

#define CEASEFIRE_VM_EVENT_ITEMS					\
	CEASEFIRE_VM_EVENTS(CEASEFIRE_VM_EVENT_ITEM)			\
	CEASEFIRE_LATR_EVENTS(CEASEFIRE_VM_EVENT_ITEM)			\
	CEASEFIRE_SHARERS_EVENTS(CEASEFIRE_VM_EVENT_ITEM)		\
	CEASEFIRE_ABIS_EVENTS(CEASEFIRE_VM_EVENT_ITEM)			\
	CEASEFIRE_MORSEL_EVENTS(CEASEFIRE_VM_EVENT_ITEM)
#define CEASEFIRE_VM_EVENT_NAMES					\
	CEASEFIRE_VM_EVENTS(CEASEFIRE_VM_EVENT_NAME)			\
	CEASEFIRE_LATR_EVENTS(CEASEFIRE_VM_EVENT_NAME)			\
	CEASEFIRE_SHARERS_EVENTS(CEASEFIRE_VM_EVENT_NAME)		\
	CEASEFIRE_ABIS_EVENTS(CEASEFIRE_VM_EVENT_NAME)			\
	CEASEFIRE_MORSEL_EVENTS(CEASEFIRE_VM_EVENT_NAME)

#else

#define CEASEFIRE_NODE_STAT_ITEMS
#define CEASEFIRE_NODE_STAT_NAMES
#define CEASEFIRE_MEMCG_COUNTERS	struct { }
#define CEASEFIRE_VM_EVENT_ITEMS
#define CEASEFIRE_VM_EVENT_NAMES

#endif /* CONFIG_CEASEFIRE_CORE */

#endif /* _LINUX_CEASEFIRE_EVENTS_H */
