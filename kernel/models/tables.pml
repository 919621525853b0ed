/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * I4: a page table is not freed while a CPU may walk it. One table hangs off an
 * upper entry. munmap() leaves it there, and a settle takes it off, flushes and
 * frees it. CPUs walk, also ahead of what they execute, so a CPU in lazy mode
 * does, too; and they keep the upper entry in a paging-structure cache.
 *
 * cpu[].holds is that cache here. Follows cf_arena_settle(), which frees tables
 * through a gather: freed_tables asks lazy CPUs, too, where a flush of pages
 * leaves them alone, and RCU waits for those that are leaving the process.
 */
#define FREED_TABLES
#include "cpu.h"

#define ROUNDS 2

bool linked = true;	/* the upper entry names the table */
bool table = true;	/* the frame is a page table */
bool over;

/* The upper entry, from the cache or memory, then an entry of the table. */
inline walk(c) {
	atomic {
		cpu[c].cr3 && (cpu[c].holds || linked) ->
		cpu[c].holds = true;
		assert(table)
	}
}

active [CPUS] proctype Cpus() {
end:	do
	:: ASKED(_pid) -> interrupt(_pid)
	:: cpu[_pid].loaded == MM && !cpu[_pid].lazy -> switch_out(_pid)
	:: (cpu[_pid].loaded != MM || cpu[_pid].lazy) && !over -> switch_in(_pid)
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

active proctype Settle() {
	byte n, c;

	for (n : 1 .. ROUNDS) {
#ifdef MUTATE_flush_first
		flush_tlb_mm(0, true);
		linked = false;
#else
		linked = false;
#ifndef MUTATE_no_flush
		flush_tlb_mm(0, true);
#endif
#endif
#ifndef MUTATE_no_grace
		/* MMU_GATHER_RCU_TABLE_FREE: CPUs that switch have interrupts off. */
		for (c : 0 .. CPUS - 1) { !cpu[c].off };
		c = 0;
#endif
		table = false;
		/* A fault in a new mapping makes another one. */
		table = true;
		linked = true
	}
	over = true
}
