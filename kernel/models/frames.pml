/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * I1: a frame is used by nobody else while a CPU can reach it by a stale
 * translation. One frame, one process: it is mapped, unmapped with a skipped
 * flush, freed (parked or not), recycled, drained, and taken by a stranger, while
 * CPUs run and leave the process and others flush, everything or a part.
 *
 * Follows __cf_skip_flush() (skip), cf_pool_add() and cf_pool_release(),
 * cf_settle_one() (drain), fpr_settle_by_ticks() and __cf_tick().
 */
#include "cpu.h"
#include "ticks.h"

#ifndef CYCLES
#define CYCLES 2	/* how often the frame is mapped, or read and dropped */
#endif

mtype = { CACHE, PARKED, TAKEN, FREE, STRANGER };
mtype frame = CACHE;
bool pte;		/* the process maps the frame */
byte tag;		/* 0: none, else the generation of the skip and 1 */
bool pool;		/* cf_ctx.lock */
bool over;		/* nothing is unmapped any more */

#ifdef MUTATE_credit_started
#define STALE (tag && tag - 1 >= tlb_gen)
#else
#define STALE (tag && tag - 1 >= completed)
#endif

/* The walker of a CPU, whenever it likes. */
inline fill(c) {
	d_step { cpu[c].cr3 && pte && !cpu[c].holds -> cpu[c].holds = true }
}

active [CPUS] proctype Cpus() {
end:	do
	:: ASKED(_pid) -> interrupt(_pid)
	:: atomic { RUNS(_pid) && cpu[_pid].holds -> assert(frame != STRANGER) }
	:: RUNS(_pid) -> switch_out(_pid)
	:: !RUNS(_pid) && !over -> switch_in(_pid)
#ifdef TICKS
	:: awaited -> tick(_pid)
#endif
	od
}

active proctype Walkers() {
end:	do
	:: fill(0)
#if CPUS > 1
	:: fill(1)
#endif
	od
}

/* The thread that unmaps, and whoever drops the last reference. */
active proctype Unmap() {
	byte gen, cycle;

	for (cycle : 1 .. CYCLES) {
		/* A fault: what is there, a parked frame (__fpr_recycle()), or a free one. */
		if
		:: frame == CACHE -> skip
		:: atomic { frame == PARKED && !pool -> frame = CACHE
#ifdef MUTATE_tag_lost
			; tag = 0
#endif
			}
		:: atomic { frame == FREE -> frame = CACHE }
		fi;
		/* It may also be dropped without ever being mapped: read ahead. */
		if
		:: pte = true
		:: true -> goto drop
		fi;
		/* munmap(): clear, read the generation, tag, drop the reference. */
#ifdef MUTATE_gen_early
		gen = tlb_gen;
		pte = false;
#else
		pte = false;
		gen = tlb_gen;
#endif
#ifndef MUTATE_tag_late
		tag = gen + 1;
#endif
drop:		skip;
		/* __cf_park() */
		if
#ifdef MUTATE_no_park
		:: true -> frame = FREE
#else
		:: STALE ->
			atomic { !pool -> pool = true };
			d_step {
				if
				:: STALE -> frame = PARKED
				:: else -> frame = FREE
				fi;
				pool = false
			}
		:: else -> frame = FREE
#endif
		fi;
#ifdef MUTATE_tag_late
		if
		:: gen -> tag = gen + 1
		:: else -> skip
		fi;
#endif
		gen = 0
	}
	over = true
}

/* cf_settle_one(): take the frame, flush, release. */
#ifdef DRAINS
active proctype Drain() {
	byte n;

	for (n : 1 .. DRAINS) {
#ifdef MUTATE_flush_before_take
		flush_tlb_mm(0, true);
#endif
		atomic { !pool && (frame == PARKED || over) -> pool = true };
		d_step {
			if
			:: frame == PARKED -> frame = TAKEN
			:: else -> skip
			fi;
			pool = false
		}
		if
		:: frame == TAKEN ->
#if !defined(MUTATE_release_unflushed) && !defined(MUTATE_flush_before_take)
			if
			:: STALE -> flush_tlb_mm(0, true)
			:: else -> skip
			fi;
#endif
			tag = 0;
			frame = FREE
		:: else -> skip
		fi
	}
}
#endif

/* fork(), mprotect(), ...: whatever flushes the process beside. */
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

/* At the same time as the other one. */
#ifdef FLUSHES_BESIDE
active proctype FlusherBeside() {
	if
	:: flush_tlb_mm(0, true)
	:: flush_tlb_mm(0, false)
	fi
}
#endif

#ifdef TICKS
active proctype Age() {
	settle_by_ticks();
	/* cf_release_clean() */
	atomic { !pool -> pool = true };
	d_step {
		if
		:: frame == PARKED && !STALE -> frame = FREE; tag = 0
		:: else -> skip
		fi;
		pool = false
	}
}
#endif

/* Anybody else takes a free frame and puts a secret in it. */
active proctype Stranger() {
end:	do
	:: atomic { frame == FREE -> frame = STRANGER }
	:: frame == STRANGER -> frame = FREE
	:: over -> break
	od
}
