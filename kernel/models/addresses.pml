/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * I3: a correct program never sees a stale translation. One address is mapped,
 * unmapped with a skipped flush, and mapped again to another frame: because the
 * arena wraps, or because a mapping is placed there by MAP_FIXED, mremap(), brk,
 * a stack. CPUs use the address only while it is mapped, and come and go.
 *
 * Follows cf_arena_get(), __cf_va_claim() and cf_arena_settle(); everything
 * that changes mappings has mmap_lock for writing, so it is one process here.
 */
#include "cpu.h"

#define MAPPINGS 3

byte pte;		/* the frame that is mapped, 0: none */
bool quarantined;	/* the address is in [settled, next) */
bool over;

#define RUNS(c) (cpu[c].loaded == MM && !cpu[c].lazy)

inline fill(c) {
	d_step { cpu[c].cr3 && pte && !cpu[c].holds ->
		cpu[c].holds = true;
		cpu[c].frame = pte
	}
}

active [CPUS] proctype Cpus() {
end:	do
	:: ASKED(_pid) -> interrupt(_pid)
	/* The program knows what it has mapped, and uses nothing else. */
	:: atomic { RUNS(_pid) && pte && cpu[_pid].holds -> assert(cpu[_pid].frame == pte) }
	:: RUNS(_pid) -> switch_out(_pid)
	:: !RUNS(_pid) && !over -> switch_in(_pid)
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

/* The address will get another meaning. */
inline claim() {
	if
#ifndef MUTATE_no_claim
	:: quarantined ->
#ifndef MUTATE_no_settle_flush
		flush_tlb_mm(0, true);
#endif
		quarantined = false
#endif
	:: else -> skip
	fi
}

active proctype Maps() {
	byte n;

	for (n : 1 .. MAPPINGS) {
#ifdef MUTATE_claim_late
		pte = n;
		claim();
#else
		claim();
		pte = n;
#endif
		if
		:: true ->		/* munmap(), skipped */
			pte = 0;
			quarantined = true
		:: true ->		/* munmap(), the usual way */
			pte = 0;
			flush_tlb_mm(0, true)
		:: true ->		/* MAP_FIXED over it: munmap() does not skip */
#ifdef MUTATE_claim_early
			/* the claim does not see what this munmap() leaves */
			claim();
			pte = 0;
			quarantined = true;
			if
			:: n < MAPPINGS -> n++; pte = n
			:: else -> skip
			fi;
			pte = 0
#else
			pte = 0;
			flush_tlb_mm(0, true)
#endif
		fi
	}
	over = true
}

/* fork(), mprotect() elsewhere, ... */
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
