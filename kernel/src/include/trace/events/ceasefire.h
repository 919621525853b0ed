/* SPDX-License-Identifier: GPL-2.0 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM ceasefire

#if !defined(_TRACE_CEASEFIRE_H) || defined(TRACE_HEADER_MULTI_READ)
#define _TRACE_CEASEFIRE_H

#include <linux/tracepoint.h>
#include <linux/types.h>

/* Reasons of fpr_flush, in the order of the fpr_flush_* counters. */
#define FPR_FLUSH_REASONS		\
	EM(0, "local")			\
	EM(1, "dirty")			\
	EM(2, "anon")			\
	EM(3, "special")		\
	EM(4, "notifier")		\
	EM(5, "outside")		\
	EM(6, "mixed")			\
	EM(7, "tables")			\
	EM(8, "nested")			\
	EM(9, "tags")			\
	EM(10, "disabled")		\
	EM(11, "context")		\
	EM(12, "limit")			\
	EMe(13, "poison")

/* What became of an entry that is evicted, in the order of fpr_evict_*. */
#define FPR_EVICTIONS			\
	EM(0, "skip")			\
	EM(1, "young")			\
	EM(2, "stale")			\
	EM(3, "disabled")		\
	EM(4, "notifier")		\
	EM(5, "pending")		\
	EM(6, "untracked")		\
	EMe(7, "vendor")

/* Reasons of fpr_drain: enum cf_drain_reason. */
#define FPR_DRAIN_REASONS		\
	EM(0, "limit")			\
	EM(1, "age")			\
	EM(2, "kswapd")			\
	EM(3, "shrinker")		\
	EM(4, "reclaim")		\
	EM(5, "oom")			\
	EM(6, "isolate")		\
	EM(7, "pcp")			\
	EM(8, "compact")		\
	EM(9, "poison")			\
	EM(10, "cgroup")		\
	EMe(11, "exit")

/* Who claims addresses: enum cf_claim. */
#define FPR_CLAIMS			\
	EM(0, "mmap")			\
	EM(1, "mremap")			\
	EM(2, "grow")			\
	EM(3, "brk")			\
	EM(4, "stack")			\
	EM(5, "insert")			\
	EMe(6, "placed")

/* Why a flush goes to all CPUs: order of the sharers_all_* counters. */
#define SHARERS_ALL_REASONS		\
	EM(0, "whole")			\
	EM(1, "long")			\
	EMe(2, "stopped")

/* What of the entries of a flush: order of abis_none to abis_narrow. */
#define ABIS_FLUSHES			\
	EM(0, "none")			\
	EM(1, "some")			\
	EM(2, "all")			\
	EM(3, "local")			\
	EMe(4, "narrow")

/* Why CPUs may have entries: order of the abis_cached_* counters. */
#define ABIS_REASONS			\
	EM(0, "uncached")		\
	EM(1, "young")			\
	EM(2, "stale")			\
	EM(3, "disabled")		\
	EM(4, "notifier")		\
	EM(5, "pending")		\
	EM(6, "untracked")		\
	EM(7, "vendor")			\
	EM(8, "class")			\
	EM(9, "special")		\
	EMe(10, "locked")

/* Why a CPU goes on with the canonical root: enum sharers_unconfined. */
#define SHARERS_UNCONFINED		\
	EM(0, "tables")			\
	EM(1, "large")			\
	EMe(2, "stopped")

#undef EM
#undef EMe
#define EM(a, b)	{ a, b },
#define EMe(a, b)	{ a, b }

TRACE_EVENT(fpr_skip,
	TP_PROTO(u32 ctx, unsigned long start, unsigned long end, u64 gen),
	TP_ARGS(ctx, start, end, gen),
	TP_STRUCT__entry(
		__field(u64, gen)
		__field(unsigned long, start)
		__field(unsigned long, end)
		__field(u32, ctx)
	),
	TP_fast_assign(
		__entry->gen = gen;
		__entry->start = start;
		__entry->end = end;
		__entry->ctx = ctx;
	),
	TP_printk("ctx=%u start=0x%lx end=0x%lx gen=%llu", __entry->ctx,
		  __entry->start, __entry->end, __entry->gen)
);

TRACE_EVENT(fpr_evict,
	TP_PROTO(u32 ctx, unsigned long pfn, int reason),
	TP_ARGS(ctx, pfn, reason),
	TP_STRUCT__entry(
		__field(unsigned long, pfn)
		__field(u32, ctx)
		__field(int, reason)
	),
	TP_fast_assign(
		__entry->pfn = pfn;
		__entry->ctx = ctx;
		__entry->reason = reason;
	),
	TP_printk("ctx=%u pfn=0x%lx reason=%s", __entry->ctx, __entry->pfn,
		  __print_symbolic(__entry->reason, FPR_EVICTIONS))
);

TRACE_EVENT(fpr_flush,
	TP_PROTO(u32 ctx, unsigned long start, unsigned long end, int reason),
	TP_ARGS(ctx, start, end, reason),
	TP_STRUCT__entry(
		__field(unsigned long, start)
		__field(unsigned long, end)
		__field(u32, ctx)
		__field(int, reason)
	),
	TP_fast_assign(
		__entry->start = start;
		__entry->end = end;
		__entry->ctx = ctx;
		__entry->reason = reason;
	),
	TP_printk("ctx=%u start=0x%lx end=0x%lx reason=%s", __entry->ctx,
		  __entry->start, __entry->end,
		  __print_symbolic(__entry->reason, FPR_FLUSH_REASONS))
);

TRACE_EVENT(fpr_park,
	TP_PROTO(u32 ctx, unsigned long pfn, unsigned int order),
	TP_ARGS(ctx, pfn, order),
	TP_STRUCT__entry(
		__field(unsigned long, pfn)
		__field(u32, ctx)
		__field(unsigned int, order)
	),
	TP_fast_assign(
		__entry->pfn = pfn;
		__entry->ctx = ctx;
		__entry->order = order;
	),
	TP_printk("ctx=%u pfn=0x%lx order=%u", __entry->ctx, __entry->pfn,
		  __entry->order)
);

TRACE_EVENT(fpr_recycle,
	TP_PROTO(u32 ctx, unsigned long pfn),
	TP_ARGS(ctx, pfn),
	TP_STRUCT__entry(
		__field(unsigned long, pfn)
		__field(u32, ctx)
	),
	TP_fast_assign(
		__entry->pfn = pfn;
		__entry->ctx = ctx;
	),
	TP_printk("ctx=%u pfn=0x%lx", __entry->ctx, __entry->pfn)
);

TRACE_EVENT(fpr_drain,
	TP_PROTO(u32 ctx, int reason, unsigned long nr),
	TP_ARGS(ctx, reason, nr),
	TP_STRUCT__entry(
		__field(unsigned long, nr)
		__field(u32, ctx)
		__field(int, reason)
	),
	TP_fast_assign(
		__entry->nr = nr;
		__entry->ctx = ctx;
		__entry->reason = reason;
	),
	TP_printk("ctx=%u reason=%s nr=%lu", __entry->ctx,
		  __print_symbolic(__entry->reason, FPR_DRAIN_REASONS),
		  __entry->nr)
);

TRACE_EVENT(fpr_claim,
	TP_PROTO(u32 ctx, unsigned long start, unsigned long end, int who),
	TP_ARGS(ctx, start, end, who),
	TP_STRUCT__entry(
		__field(unsigned long, start)
		__field(unsigned long, end)
		__field(u32, ctx)
		__field(int, who)
	),
	TP_fast_assign(
		__entry->start = start;
		__entry->end = end;
		__entry->ctx = ctx;
		__entry->who = who;
	),
	TP_printk("ctx=%u start=0x%lx end=0x%lx who=%s", __entry->ctx,
		  __entry->start, __entry->end,
		  __print_symbolic(__entry->who, FPR_CLAIMS))
);

TRACE_EVENT(fpr_tick,
	TP_PROTO(u32 ctx, u64 gen),
	TP_ARGS(ctx, gen),
	TP_STRUCT__entry(
		__field(u64, gen)
		__field(u32, ctx)
	),
	TP_fast_assign(
		__entry->gen = gen;
		__entry->ctx = ctx;
	),
	TP_printk("ctx=%u gen=%llu", __entry->ctx, __entry->gen)
);

TRACE_EVENT(fpr_tables,
	TP_PROTO(u32 ctx, unsigned long start, unsigned long end),
	TP_ARGS(ctx, start, end),
	TP_STRUCT__entry(
		__field(unsigned long, start)
		__field(unsigned long, end)
		__field(u32, ctx)
	),
	TP_fast_assign(
		__entry->start = start;
		__entry->end = end;
		__entry->ctx = ctx;
	),
	TP_printk("ctx=%u start=0x%lx end=0x%lx", __entry->ctx,
		  __entry->start, __entry->end)
);

#ifdef CONFIG_CEASEFIRE_SHARERS
/* @mm: mm->context.ctx_id, which no other address space ever has. */
TRACE_EVENT(sharers_flush,
	TP_PROTO(u64 mm, unsigned long start, unsigned long end,
		 const struct cpumask *cpus),
	TP_ARGS(mm, start, end, cpus),
	TP_STRUCT__entry(
		__field(u64, mm)
		__field(unsigned long, start)
		__field(unsigned long, end)
		__cpumask(cpus)
	),
	TP_fast_assign(
		__entry->mm = mm;
		__entry->start = start;
		__entry->end = end;
		__assign_cpumask(cpus, cpumask_bits(cpus));
	),
	TP_printk("mm=%llu start=0x%lx end=0x%lx cpus=%s", __entry->mm,
		  __entry->start, __entry->end, __get_cpumask(cpus))
);

TRACE_EVENT(sharers_flush_all,
	TP_PROTO(u64 mm, unsigned long start, unsigned long end, int reason),
	TP_ARGS(mm, start, end, reason),
	TP_STRUCT__entry(
		__field(u64, mm)
		__field(unsigned long, start)
		__field(unsigned long, end)
		__field(int, reason)
	),
	TP_fast_assign(
		__entry->mm = mm;
		__entry->start = start;
		__entry->end = end;
		__entry->reason = reason;
	),
	TP_printk("mm=%llu start=0x%lx end=0x%lx reason=%s", __entry->mm,
		  __entry->start, __entry->end,
		  __print_symbolic(__entry->reason, SHARERS_ALL_REASONS))
);

/* The interrupt comes later, and with that of others. */
TRACE_EVENT(sharers_defer,
	TP_PROTO(u64 mm, unsigned long addr, unsigned long slots),
	TP_ARGS(mm, addr, slots),
	TP_STRUCT__entry(
		__field(u64, mm)
		__field(unsigned long, addr)
		__field(unsigned long, slots)
	),
	TP_fast_assign(
		__entry->mm = mm;
		__entry->addr = addr;
		__entry->slots = slots;
	),
	TP_printk("mm=%llu addr=0x%lx slots=0x%lx", __entry->mm,
		  __entry->addr, __entry->slots)
);

/* Both on the CPU that it is about. */
TRACE_EVENT(sharers_leave,
	TP_PROTO(u64 mm, unsigned long addr),
	TP_ARGS(mm, addr),
	TP_STRUCT__entry(
		__field(u64, mm)
		__field(unsigned long, addr)
	),
	TP_fast_assign(
		__entry->mm = mm;
		__entry->addr = addr;
	),
	TP_printk("mm=%llu addr=0x%lx", __entry->mm, __entry->addr)
);

TRACE_EVENT(sharers_unconfine,
	TP_PROTO(u64 mm, int reason),
	TP_ARGS(mm, reason),
	TP_STRUCT__entry(
		__field(u64, mm)
		__field(int, reason)
	),
	TP_fast_assign(
		__entry->mm = mm;
		__entry->reason = reason;
	),
	TP_printk("mm=%llu reason=%s", __entry->mm,
		  __print_symbolic(__entry->reason, SHARERS_UNCONFINED))
);
#endif /* CONFIG_CEASEFIRE_SHARERS */

#ifdef CONFIG_CEASEFIRE_ABIS
/* @mm: as above. One entry or several of a folio, beside each other. */
TRACE_EVENT(abis_entry,
	TP_PROTO(u64 mm, unsigned long pfn, unsigned long nr, int reason),
	TP_ARGS(mm, pfn, nr, reason),
	TP_STRUCT__entry(
		__field(u64, mm)
		__field(unsigned long, pfn)
		__field(unsigned long, nr)
		__field(int, reason)
	),
	TP_fast_assign(
		__entry->mm = mm;
		__entry->pfn = pfn;
		__entry->nr = nr;
		__entry->reason = reason;
	),
	TP_printk("mm=%llu pfn=0x%lx nr=%lu reason=%s", __entry->mm,
		  __entry->pfn, __entry->nr,
		  __print_symbolic(__entry->reason, ABIS_REASONS))
);

/* The flush of a gather, or of one entry. */
TRACE_EVENT(abis_flush,
	TP_PROTO(u64 mm, int which),
	TP_ARGS(mm, which),
	TP_STRUCT__entry(
		__field(u64, mm)
		__field(int, which)
	),
	TP_fast_assign(
		__entry->mm = mm;
		__entry->which = which;
	),
	TP_printk("mm=%llu which=%s", __entry->mm,
		  __print_symbolic(__entry->which, ABIS_FLUSHES))
);
#endif /* CONFIG_CEASEFIRE_ABIS */

#endif /* _TRACE_CEASEFIRE_H */

#include <trace/define_trace.h>
