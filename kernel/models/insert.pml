/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * I11 for entries that only the CPU has that has asked for them: an entry without the
 * accessed bit names that CPU, and is flushed there only. When the change is over, no
 * CPU may use what was there before.
 *
 *   Faults	a CPU makes an entry without the bit, and loads it by other tables
 *   Changes	takes the entry away: by the bit all flush, by the name that CPU,
 *		itself if it is the one that does it
 *
 * CPUs that walk there set the bit; CPUs run other processes meanwhile, and come back
 * with what they had. Reclaim clears the bit and the name, and tags (LOOKS).
 * Follows __abis_install(), abis_flush_classes() and abis_clear_class(); the way of the
 * other tables is in ways.pml.
 */
#define FLUSHERS 1
#include "cpu.h"

bool pte;		/* the entry is present */
bool young;		/* its accessed bit */
byte class;		/* 0, or the CPU that it names and 1 */
byte now;		/* which page it leads to */
bool locked;		/* the page table lock */
bool tagged;		/* its frame owes a flush of everything */
bool over[8];		/* of a page: who has taken it away has flushed */
byte busy = CPUS;	/* the CPU that has the lock in a fault: it runs on */

#ifndef FAULTS
#define FAULTS 2
#endif

inline lock() { atomic { !locked -> locked = true } }
inline unlock() { locked = false }

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
		assert(!over[cpu[_pid].frame]) }
	:: RUNS(_pid) && busy != _pid -> switch_out(_pid)
	:: !RUNS(_pid) -> switch_in(_pid)
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

/* The entry, and what its CPU has; others walk there as soon as it is present. */
inline insert(c) {
	d_step { RUNS(c) -> busy = c };
	d_step { pte = true; young = false; tagged = false; class = c + 1; now++ };
	if
	:: d_step { cpu[c].holds || cpu[c].walks -> skip }
	:: d_step { else -> cpu[c].holds = true; cpu[c].frame = now }
	fi;
	busy = CPUS
}

active proctype Faults() {
	byte n;

	for (n : 1 .. FAULTS) {
		atomic { !locked && !pte -> locked = true };
		if
		:: insert(0)
#if CPUS > 1
		:: insert(1)
#endif
		fi;
		unlock()
	}
}

/* Asks the CPU with that name, and whoever else of it comes back. */
inline flush_class(k) {
	d_step {
#ifndef MUTATE_class_away
		tlb_gen++;
#endif
		flush[0].gen = tlb_gen;
		flush[0].whole = true
	}
	if
	:: cpu[k].loaded != OTHER && !cpu[k].lazy -> flush[0].ipi[k] = true
	:: else -> skip
	fi;
	!flush[0].ipi[k];
	flush[0].gen = 0
}

/* Of the CPU where the change is made: it has the process loaded. */
inline flush_mine(k) {
	d_step { RUNS(k) && busy != k -> flush_local(k) }
}

inline flush_named(name) {
	if
#ifdef MUTATE_class_mine
	:: flush_mine(0)
#else
	:: name == 1 -> if :: flush_mine(0) :: flush_class(0) fi
	:: name == 2 -> if :: flush_mine(1) :: flush_class(1) fi
	:: name == 0 -> skip
#endif
	fi
}

inline flush_for(was, name) {
	if
	:: was -> flush_tlb_mm(0, true)
#ifdef MUTATE_class_unseen
	:: else -> skip
#else
	:: else -> flush_named(name)
#endif
	fi
}

active proctype Changes() {
	bool was;
	byte n, page, name;

	for (n : 1 .. FAULTS) {
		atomic { !locked && pte -> locked = true };
		d_step {
			was = young || tagged;
			name = class;
			page = now;
			pte = false;
			young = false
		}
#ifdef MUTATE_class_young
		was = tagged;
#endif
		flush_for(was, name);
		over[page] = true;
		d_step { was = false; name = 0; page = 0 };
		unlock()
	}
}

/* ptep_test_and_clear_young(): the frame owes a flush, and nobody is named any more. */
#ifdef LOOKS
active proctype Looks() {
	atomic { !locked -> locked = true };
#ifdef MUTATE_class_cleared
	d_step { class = 0 }
#else
	d_step { tagged = tagged || young || class != 0; young = false; class = 0 }
#endif
	unlock()
}
#endif
