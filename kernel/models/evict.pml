/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * I1 and I3 where reclaim takes a page away without a flush. The program goes on
 * to use the address, so that the page comes back in another frame, and the
 * frame gets to a stranger: when it goes, no CPU may have the entry.
 *
 * A CPU sets the accessed bit of a present entry, and caches it later; what it has
 * cached it uses without the bit. Reclaim clears the bit, at its first looks, and
 * removes the entry in the end, each under the lock of the page table. Frames may
 * have no room for a tag, and the process may get its context late.
 *
 * Follows __cf_young_cleared(), __fpr_evicted() and cf_ctx_create().
 */
#ifdef LATE
#define HAS_CONTEXT context
bool context;		/* mm->fpr: the process has one */
#else
#define context true
#endif
#include "cpu.h"
#include "ticks.h"

#ifndef LOOKS
#define LOOKS 2		/* how often reclaim clears the bit, if it is set */
#endif

bool pte = true;	/* the entry is present */
bool young;		/* its accessed bit */
bool cached = true;	/* the frame has the page: nobody else uses it */
byte tag;		/* 0: none, else a generation and 1, like the next two */
byte untracked;		/* cf_ctx.untracked: bits that no tag tells of */
byte born;		/* cf_ctx.born: bits that were cleared without a context */
bool pending;		/* mm_tlb_flush_pending() */
bool over;

#ifdef MUTATE_credit_started
#define STALE(noted) (noted && noted - 1 >= tlb_gen)
#else
#define STALE(noted) (noted && noted - 1 >= completed)
#endif
#define ALWAYS 255

/* The walker of a CPU, whenever it likes: it begins, and it ends. */
inline walk(c) {
	if
	:: d_step { cpu[c].cr3 && pte && !cpu[c].holds && !cpu[c].walks ->
		young = true;
		cpu[c].walks = true }
	:: d_step { cpu[c].walks ->
		cpu[c].walks = false;
		cpu[c].holds = true }
	fi
}

active [CPUS] proctype Cpus() {
end:	do
	:: ASKED(_pid) -> interrupt(_pid)
	:: atomic { RUNS(_pid) && cpu[_pid].holds -> assert(cached) }
	:: RUNS(_pid) -> switch_out(_pid)
	:: !RUNS(_pid) && !over -> switch_in(_pid)
#ifdef TICKS
	:: awaited -> tick(_pid)
#endif
	od
}

active proctype Walkers() {
end:	do
	:: walk(0)
#if CPUS > 1
	:: walk(1)
#endif
	od
}

/* ptep_test_and_clear_young() and __cf_young_cleared(). */
inline look() {
#ifdef MUTATE_gen_early
	gen = tlb_gen;
#endif
	d_step { was = young; young = false }
	if
	:: was && context ->
#ifndef MUTATE_gen_early
		gen = tlb_gen;
#endif
		if
#ifndef MUTATE_evict_untagged
		:: tag = gen + 1
#else
		:: skip
#endif
#ifdef ROOMLESS
#ifndef MUTATE_evict_untracked
		:: untracked = gen + 1
#else
		:: skip
#endif
#endif
		fi
	:: else -> skip
	fi;
	d_step { was = false; gen = 0 }
}

active proctype Reclaim() {
	byte gen, n;
	bool was;

	for (n : 1 .. LOOKS) { look() }
	/* try_to_unmap_one() and fpr_evict_must_flush() */
	n = 0;
	d_step { was = young; pte = false; young = false }
#ifdef MUTATE_evict_young
	was = false;
#endif
	was = was || !context;
#ifndef MUTATE_evict_pending
	was = was || pending;
#endif
#ifndef MUTATE_evict_stale
	was = was || STALE(tag);
#endif
	was = was || STALE(untracked);
	was = was || STALE(born);
	if
	:: was -> flush_tlb_mm(0, true)
	:: else -> skip
	fi;
	cached = false;
	over = true
}

/* cf_ctx_create(): the context is there for all to see before @born is read. */
#ifdef LATE
active proctype Creates() {
#ifndef MUTATE_evict_inherited
#ifdef MUTATE_born_early
	d_step { completed = tlb_gen; born = tlb_gen + 1 }
	context = true
#else
	d_step { completed = tlb_gen; born = ALWAYS }
	context = true;
	born = tlb_gen + 1
#endif
#else
	completed = tlb_gen;
	context = true
#endif
}
#endif

/* madvise(): clears the bit without a tag, and flushes in the end. */
#ifdef MADVISE
active proctype Advises() {
	pending = true;
	young = false;
	flush_tlb_mm(1, true);
	pending = false
}
#endif

/* The debt is paid, or whatever else flushes. */
#ifdef FLUSHES
active proctype Flusher() {
	byte n;

	for (n : 1 .. FLUSHES) {
		if
		:: flush_tlb_mm(1, true)
		:: flush_tlb_mm(1, false)
		fi
	}
}
#endif

#ifdef TICKS
active proctype Age() {
	settle_by_ticks()
}
#endif
