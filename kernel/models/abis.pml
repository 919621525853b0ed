/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * I11 for one entry: it is changed without a flush where its accessed bit says that
 * no CPU has it. When the change is over, no CPU may use what was there before.
 *
 * A CPU sets the accessed bit of a present entry, and caches it later; what it has
 * cached it uses without the bit. Beside the change, each under the lock of the page table:
 *
 *   Looks	clears the bit, and tags the frame: reclaim and others
 *   Advises	clears the bit within a gather, which flushes in the end: MADV_FREE
 *   Cleans	clears the bit of an entry that it flushes for in the same step: msync()
 *   Forks	clears the bit, and says that for all of them a flush comes: fork()
 *   Evicts	clears the entry, and notes a flush, which comes later
 *   Faults	makes the entry again without the bit: fault-around, swapoff
 *   Rewrites	reads the entry and writes it, in two steps: userfaultfd, WP_ASYNC
 *
 * Follows __cf_young_cleared(), cf_cached(), cf_batch_pending(), cf_rewritten(),
 * mm/ceasefire/abis/uncached.c and fork.c.
 */
#include "cpu.h"

bool pte = true;	/* the entry is present */
bool young;		/* its accessed bit */
byte now = 1;		/* which page it leads to */
byte tag;		/* 0: none, else a generation and 1 */
byte born;		/* for all entries this generation is owed; EVER: nobody knows which */
byte pending;		/* mm->tlb_flush_pending: gathers under way */
bool noted;		/* mm->tlb_flush_batched: evicted, maybe not flushed for */
bool locked;		/* the page table lock */
bool changing;		/* the change is not over */
bool over;

#define EVER 255

#ifdef MUTATE_credit_started
#define STALE(noted) (noted && noted - 1 >= tlb_gen)
#else
#define STALE(noted) (noted && noted - 1 >= completed)
#endif

#ifdef GATHER
#define OWN 1		/* the change has a gather itself, which frees in its middle */
#else
#define OWN 0
#endif

inline lock() { atomic { !locked -> locked = true } }
inline unlock() { locked = false }

/* The walker of a CPU, whenever it likes: it begins, and it ends. */
inline walk(c) {
	if
	:: d_step { cpu[c].cr3 && pte && !cpu[c].holds && !cpu[c].walks ->
		young = true;
		cpu[c].frame = now;
		cpu[c].walks = true }
	:: d_step { cpu[c].walks ->
		cpu[c].walks = false;
		cpu[c].holds = true }
	fi
}

#define RUNS(c) (cpu[c].loaded == MM && !cpu[c].lazy)

active [CPUS] proctype Cpus() {
end:	do
	:: ASKED(_pid) -> interrupt(_pid)
	:: atomic { RUNS(_pid) && cpu[_pid].holds ->
		assert(cpu[_pid].frame == now || changing) }
	:: RUNS(_pid) -> switch_out(_pid)
	:: !RUNS(_pid) && !over -> switch_in(_pid)
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

/* The entry is cleared; @was: a CPU may have it. */
inline clear() {
#ifdef MUTATE_looks_early
	was = young;
	d_step { pte = false; young = false }
#else
	d_step { was = young; pte = false; young = false }
#endif
#ifdef MUTATE_abis_young
	was = false;
#endif
#ifndef MUTATE_abis_stale
	was = was || STALE(tag);
#endif
	was = was || born > completed;
#ifndef MUTATE_abis_pending
	was = was || pending > OWN;
#endif
#ifndef MUTATE_abis_batch
	was = was || noted;
#endif
	skip
}

/* Another page comes in its place, or none; the address stays in use. */
active proctype Changes() {
	bool was;

#ifdef GATHER
	d_step { pending++ }
#endif
	lock();
	changing = true;
	clear();
	if
	:: was -> flush_tlb_mm(0, true)
	:: else -> skip
	fi;
	d_step { was = false; now = 2; pte = true; young = false }
	changing = false;
	unlock();
#ifdef GATHER
	d_step { pending-- }
#endif
	over = true
}

/* ptep_test_and_clear_young() and __cf_young_cleared(). */
#ifdef LOOKS
active proctype Looks() {
	byte gen, n;
	bool was;

	for (n : 1 .. LOOKS) {
		lock();
#ifdef MUTATE_gen_early
		gen = tlb_gen;
#endif
		d_step { was = young; young = false }
		if
		:: was ->
#ifndef MUTATE_gen_early
			gen = tlb_gen;
#endif
#ifndef MUTATE_abis_untagged
			tag = gen + 1
#else
			skip
#endif
		:: else -> skip
		fi;
		d_step { was = false; gen = 0 }
		unlock()
	}
}
#endif

#ifdef MADVISE
active proctype Advises() {
	d_step { pending++ }
	lock();
	young = false;
	unlock();
	flush_tlb_mm(1, true);
	d_step { pending-- }
}
#endif

/* The flush and the bit in one step, in which nobody can walk there. */
#ifdef CLEANS
active proctype Cleans() {
	bool was;

	lock();
#ifdef MUTATE_cleans_unflushed
	young = false;
#else
	clear();
	if
	:: was -> flush_tlb_mm(1, true)
	:: else -> skip
	fi;
	d_step { was = false; pte = true }
#endif
	unlock()
}
#endif

/* The flush comes last, and is for everything. */
#ifdef FORKS
active proctype Forks() {
	lock();
#ifdef MUTATE_fork_early
	born = tlb_gen + 1;
#else
#ifndef MUTATE_fork_unseen
	born = EVER;
#endif
#endif
	young = false;
	unlock();
#ifndef MUTATE_fork_early
#ifndef MUTATE_fork_unseen
	born = tlb_gen + 1;
#endif
#endif
	flush_tlb_mm(FLUSHERS - 1, true)
}
#endif

#ifdef EVICTS
active proctype Evicts() {
	bool was;

	lock();
	clear();
	if
	:: was -> noted = true
	:: else -> skip
	fi;
	unlock();
	if
	:: was -> flush_tlb_mm(1, true)
	:: else -> skip
	fi
}

/* The same page again, born without the bit. */
active proctype Faults() {
	lock();
	d_step {
		if
		:: !pte -> pte = true; young = false
		:: else -> skip
		fi
	}
	unlock()
}
#endif

/* Other rights, the same page: no CPU has to flush for that. */
#ifdef REWRITES
active proctype Rewrites() {
	bool was;

	lock();
	was = young;
	if
	:: pte ->
#ifdef MUTATE_rewritten_old
		young = was
#else
		young = true
#endif
	:: else -> skip
	fi;
	was = false;
	unlock()
}
#endif

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
