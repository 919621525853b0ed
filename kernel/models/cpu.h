/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the models have in common: CPUs that run threads of one process, their
 * TLBs, and the flushes of Linux with their generations (Promela).
 *
 * One address is looked at. A CPU has at most one translation of it, tagged with
 * the PCID of the process: it stays while the CPU runs something else, and is
 * used while the process runs there. Each PCID has its generation.
 *
 *   hardware	fills the TLB whenever CR3 names the process, also ahead of
 *		what is executed, in lazy mode, and with interrupts off. A walk
 *		that began before a flush of its own CPU fills nothing. An
 *		interrupt comes between two instructions.
 *   kernel	switch_mm_irqs_off(), lazy mode, flush_tlb_mm_range(),
 *		flush_tlb_func(), in the order of arch/x86/mm/tlb.c
 *
 * Every step is seen by all at once. Where the code has a barrier between two
 * steps, a mutation that swaps them shows what it is for.
 */

#ifndef CPUS
#define CPUS 2		/* that can hold the translation */
#endif

#define OTHER 0		/* loaded_mm is another process */
#define SWITCHING 1
#define MM 2

typedef Cpu {
	byte loaded;
	bool lazy;
	bool off;	/* interrupts are off, between two steps */
	bool cr3;	/* the walker uses the tables of the process */
	bool asid;	/* loaded_mm_asid is that of loaded_mm already */
	byte gen;	/* ctxs[asid].tlb_gen: what this PCID has caught up with */
	bool holds;	/* the TLB has a translation */
	byte frame;	/* and this is what it leads to */
	bool walks	/* evict.pml: an entry was read, and is not in the TLB yet */
};

Cpu cpu[CPUS];
byte tlb_gen = 1;	/* mm->context.tlb_gen: the newest request */
byte completed = 1;	/* newest full flush that has completed */

/* A flush under way: its number, and which CPUs were asked. */
#ifndef FLUSHERS
#define FLUSHERS 2
#endif
typedef Flush {
	byte gen;
	bool whole;
	bool ipi[CPUS]
};
Flush flush[FLUSHERS];

#if defined(FREED_TABLES) && !defined(MUTATE_lazy_left)
#define ASK_LAZY(c) true
#else
#define ASK_LAZY(c) (!cpu[c].lazy)
#endif

inline flush_local(c) {
	cpu[c].holds = false;
	cpu[c].frame = 0;
	cpu[c].walks = false
}

/* flush_tlb_func() on CPU c for flush f. A range elsewhere leaves the address. */
inline flush_tlb_func(f, c) {
	d_step {
		if
		:: cpu[c].lazy ->	/* to init_mm: compares when it comes back */
			cpu[c].lazy = false;
			cpu[c].cr3 = false;
			cpu[c].asid = false;
			cpu[c].loaded = OTHER
		:: cpu[c].loaded == MM && !cpu[c].lazy && cpu[c].gen < flush[f].gen ->
			if
#ifdef MUTATE_partial_jumps
			:: !flush[f].whole -> skip
#else
			:: !flush[f].whole && flush[f].gen == cpu[c].gen + 1 &&
			   flush[f].gen == tlb_gen -> skip
#endif
			:: else -> flush_local(c)
			fi;
			cpu[c].gen = tlb_gen
		:: else -> skip
		fi;
		flush[f].ipi[c] = false
	}
}

/* An interrupt of whichever flush, at the end of an instruction. */
inline interrupt(c) {
	if
	:: flush[0].ipi[c] -> flush_tlb_func(0, c)
#if FLUSHERS > 1
	:: flush[1].ipi[c] -> flush_tlb_func(1, c)
#endif
#if FLUSHERS > 2
	:: flush[2].ipi[c] -> flush_tlb_func(2, c)
#endif
	fi
}

#if FLUSHERS > 2
#define ASKED(c) (flush[0].ipi[c] || flush[1].ipi[c] || flush[2].ipi[c])
#elif FLUSHERS > 1
#define ASKED(c) (flush[0].ipi[c] || flush[1].ipi[c])
#else
#define ASKED(c) flush[0].ipi[c]
#endif

/* switch_mm_irqs_off() to the process. */
inline switch_in(c) {
	byte next_gen;

	cpu[c].off = true;
#ifdef MUTATE_switch_reads_early
	next_gen = tlb_gen;
#endif
	if
	:: cpu[c].loaded == MM ->	/* leaves lazy mode */
		cpu[c].lazy = false
	:: else ->
		cpu[c].loaded = SWITCHING
	fi;
#ifndef MUTATE_switch_reads_early
	next_gen = tlb_gen;
#endif
	/* CR3 is written without bit 63 if the PCID is to be flushed. */
	d_step {
		if
#ifndef MUTATE_no_comparison
		:: cpu[c].gen < next_gen ->
			flush_local(c);
			cpu[c].gen = next_gen
#endif
		:: else -> skip
		fi;
		cpu[c].cr3 = true;
		next_gen = 0
	}
	cpu[c].loaded = MM;
	d_step {
		cpu[c].asid = true;
		cpu[c].off = false
	}
}

/*
 * To another process, or to a kernel thread that borrows the tables. From the
 * moment that the CPU leaves mm_cpumask nobody asks it any more, and its walker
 * still uses the tables until CR3 is written.
 */
inline switch_out(c) {
	if
	:: cpu[c].off = true;
		cpu[c].loaded = SWITCHING;
		cpu[c].loaded = OTHER;
		d_step {
			cpu[c].cr3 = false;
			cpu[c].asid = false;
			cpu[c].off = false
		}
	:: cpu[c].lazy = true
	fi
}

#ifdef MUTATE_credit_newest
#define CREDIT(f) tlb_gen
#else
#define CREDIT(f) flush[f].gen
#endif

/* Is there a context that could be credited? */
#ifndef HAS_CONTEXT
#define HAS_CONTEXT true
#endif

/*
 * flush_tlb_mm_range(): takes its number, asks those who run the process, waits.
 * Credits itself if it is full, see __cf_flush_completed().
 */
inline flush_tlb_mm(f, everything) {
	byte to;

	d_step {
		tlb_gen++;
		flush[f].gen = tlb_gen;
		flush[f].whole = everything
	}
	for (to : 0 .. CPUS - 1) {
		/* should_flush_tlb(); mm_cpumask has all who are not in OTHER. */
		if
		:: cpu[to].loaded != OTHER && ASK_LAZY(to) -> flush[f].ipi[to] = true
		:: else -> skip
		fi
	}
	for (to : 0 .. CPUS - 1) {
		!flush[f].ipi[to]
	}
	to = 0;
	d_step {
		if
#ifdef MUTATE_credit_partial
		:: completed < flush[f].gen -> completed = flush[f].gen
#else
		:: flush[f].whole && HAS_CONTEXT && completed < CREDIT(f) ->
			completed = CREDIT(f)
#endif
		:: else -> skip
		fi;
		flush[f].gen = 0
	}
}
