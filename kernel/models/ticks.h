/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Settling without interrupts (Promela): a generation is taken, each CPU catches
 * up at its next tick or when it comes back, and what it was taken for is paid.
 *
 * Follows cf_take_generation(), cf_catch_up_done() and __cf_tick(). A CPU that is
 * late is interrupted, and does then what it does in a tick. Who takes the
 * generation, and when, is in debt.pml. Used by the models whose CPUs are those of
 * cpu.h.
 */
byte awaited;		/* cf_ctx.awaited: ticks shall catch up */

#define RUNS(c) (cpu[c].loaded == MM && !cpu[c].lazy)

/* __cf_tick(), a hard interrupt. */
inline tick(c) {
	byte seen;

	cpu[c].off = true;
	if
	:: RUNS(c) && cpu[c].gen < awaited ->
#ifdef MUTATE_tick_reads_late
		d_step { flush_local(c) }
		seen = tlb_gen;
#else
		seen = tlb_gen;
		d_step { flush_local(c) }
#endif
		d_step { cpu[c].gen = seen; seen = 0 }
	:: else -> skip
	fi;
	cpu[c].off = false
}

/* cf_take_generation() and the age work: a generation, no interrupts, wait. */
inline settle_by_ticks() {
	byte gen, c;

	d_step { tlb_gen++; gen = tlb_gen; awaited = gen }
#ifndef MUTATE_no_rcu
	/* synchronize_rcu(): each CPU has had its interrupts on since. */
	for (c : 0 .. CPUS - 1) { !cpu[c].off }
#endif
#ifndef MUTATE_no_wait
	for (c : 0 .. CPUS - 1) {
		/* cf_cpu_caught_up(); with the ASID of before, any generation. */
		cpu[c].loaded == OTHER || cpu[c].lazy ||
		(cpu[c].loaded == MM && (!cpu[c].asid || cpu[c].gen >= gen))
	}
#endif
	skip;
	d_step {
#ifdef MUTATE_tick_credits_newest
		gen = tlb_gen;
#endif
		if
		:: completed < gen -> completed = gen
		:: else -> skip
		fi;
		gen = 0; c = 0
	}
}
