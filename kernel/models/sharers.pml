/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * I11, I12: CPUs walk a copy of the upper page tables, and are noted before they do.
 * One changes an entry of a table and flushes for it; another one takes the table
 * away. When the first is done no CPU may use the old entry, and no CPU reads the table
 * after it was freed.
 *
 * There is one region, and one table that it leads to. A CPU caches that it does, and
 * the translation, a while after it has read it; both go with any flush, as INVLPG
 * has it for the former. Switches keep them (PCID).
 *
 *   fill		count, canonical entry, mask, entry, count
 *   flush	entry changed, mask, asked, who is there, interrupts
 *   mine	entry changed, mask; interrupts off: loaded, unconfined, flush
 *   withdrawal	canonical entry, count, mask, copies, flush, RCU
 *   leaving	entry, flush, mask
 *   switch	who is there, asked
 *
 * With MOVES the table is not freed: it goes to another address, where its entry changes
 * and nobody is asked, since nobody has used that, and comes back.
 *
 * With MINE the one that flushes is on a CPU that may run the process. If nobody else can hold
 * the entry it flushes there, and neither asks nor counts (sharers_flush_mine()). With ALONE
 * nobody takes the table away.
 *
 * Every step is seen by all at once; where the code has a barrier, a mutation that swaps
 * two steps shows what it is for. Follows arch/x86/mm/sharers.
 */
#ifndef CPUS
#define CPUS 1		/* that run the process, beside those that change it */
#endif
#define FLUSHER 0
#define WITHDRAWER 1

typedef Cpu {
	bool there;	/* in mm_cpumask */
	bool lazy;
	bool off;	/* interrupts are off, between two steps */
	bool cr3;	/* a root of the process is loaded */
	bool own;	/* it is the copy's */
	bool confined;
	bool leads;	/* cached: the region leads to the table */
	bool walks;	/* the entry was read, and is not in the TLB yet */
	bool holds;	/* the TLB has the translation */
	byte asked;
	byte done;
	bool ipi[2];
	byte number[2]	/* of the request that the interrupt is for */
};

Cpu cpu[CPUS];
bool copy[CPUS];	/* its entry leads to the table */
bool mask[CPUS];
bool unconfined[CPUS];
bool canonical = true;	/* leads to the table */
byte count;		/* withdrawals */
bool entry = true;	/* of the table, as it was */
bool freed;		/* the table */
bool promised;		/* nobody uses the old entry any more */

/* Whom each of the two asks. */
typedef Request {
	bool target[CPUS]
};
Request request[2];

#ifdef MINE
byte flushes_on;	/* the CPU that the flusher is on, from 1 */
bool mine;		/* it has flushed there, for nobody else */
#endif

#define RUNS(c) (cpu[c].cr3 && !cpu[c].lazy && !cpu[c].off)
#define ASKED(c) ((cpu[c].ipi[0] || cpu[c].ipi[1]) && !cpu[c].off)

inline flush_local(c) {
	cpu[c].leads = false;
	cpu[c].walks = false;
	cpu[c].holds = false
}

/* __sharers_flush_here(); of a table that goes, CPUs in lazy mode, too. */
inline flush_here(f, c) {
	d_step {
		if
		:: cpu[c].lazy && f == WITHDRAWER ->
			cpu[c].lazy = false;
			cpu[c].cr3 = false;
			cpu[c].there = false
		:: cpu[c].lazy || !cpu[c].cr3 -> skip
		:: else ->
			if
			:: !cpu[c].confined -> flush_local(c)
			:: cpu[c].confined && cpu[c].number[f] > cpu[c].done ->
				flush_local(c);
				cpu[c].done = cpu[c].asked
			:: else -> skip
			fi
		fi;
		cpu[c].ipi[f] = false
	}
}

/* sharers_leave(), within an interrupt. */
inline leave(c) {
	cpu[c].off = true;
	copy[c] = false;
#ifndef MUTATE_leave_unflushed
	d_step { flush_local(c); cpu[c].done = cpu[c].asked }
#endif
	mask[c] = false;
	cpu[c].off = false
}

inline fill(c) {
	byte before;

	cpu[c].off = true;
#ifndef MUTATE_counts_late
	before = count;
#endif
	if
	:: canonical ->
#ifdef MUTATE_notes_late
		copy[c] = true;
		mask[c] = true;
#else
#ifndef MUTATE_unnoted
		mask[c] = true;
#endif
#ifdef MUTATE_counts_late
		before = count;
#endif
#ifdef MUTATE_looks_early
		if
		:: count == before -> copy[c] = true
		:: else -> skip
		fi;
#else
		copy[c] = true;
#endif
#endif
#ifdef MUTATE_looks_at_entry
		if
		:: !canonical -> d_step { copy[c] = false; flush_local(c) }
		:: else -> skip
		fi;
#elif !defined(MUTATE_no_second_look) && !defined(MUTATE_looks_early)
		if
		:: count != before -> d_step { copy[c] = false; flush_local(c) }
		:: else -> skip
		fi;
#endif
		/* The copy's root was loaded with a flush. */
		unconfined[c] = false
	:: else -> skip
	fi;
	d_step { before = 0; cpu[c].off = false }
}

/* sharers_unconfine(), and back at a tick. */
inline unconfine(c) {
	cpu[c].off = true;
#ifdef MUTATE_unconfined_late
	d_step { cpu[c].own = false; cpu[c].confined = false; flush_local(c) }
	unconfined[c] = true;
#else
	unconfined[c] = true;
	d_step { cpu[c].own = false; cpu[c].confined = false; flush_local(c) }
#endif
	cpu[c].off = false
}

inline confine(c) {
	byte asked;

	cpu[c].off = true;
	asked = cpu[c].asked;
	d_step {
#ifndef MUTATE_confined_unflushed
		flush_local(c);
#endif
		cpu[c].own = true;
		cpu[c].confined = true;
		cpu[c].done = asked;
		asked = 0
	}
	cpu[c].off = false
}

/* switch_mm_irqs_off(): from another process, or out of lazy mode. */
inline switch_in(c) {
	byte now;

	cpu[c].off = true;
#ifdef MUTATE_switch_reads_early
	now = cpu[c].asked;
#endif
	cpu[c].lazy = false;
	cpu[c].there = true;
#ifndef MUTATE_switch_reads_early
	now = cpu[c].asked;
#endif
	d_step {
		if
#ifndef MUTATE_behind_unseen
		:: now != cpu[c].done || !cpu[c].confined -> flush_local(c)
#endif
		:: else -> skip
		fi;
		cpu[c].confined = true;
		cpu[c].own = true;
		cpu[c].cr3 = true;
		cpu[c].done = now;
		now = 0
	}
	cpu[c].off = false
}

inline switch_out(c) {
	if
	:: d_step { cpu[c].there = false; cpu[c].cr3 = false }
	:: cpu[c].lazy = true
	fi
}

/*
 * sharers_flush_mine(), on any CPU: whoever was interrupted between the masks and this may be
 * on another one. They are words, and each is read at once.
 */
inline flush_mine(c) {
	byte other;

	cpu[c].off = true;
	d_step {
#ifdef MUTATE_mine_unloaded
		mine = true;
#else
		mine = cpu[c].cr3 && !cpu[c].lazy;
#endif
		for (other : 0 .. CPUS - 1) {
#ifndef MUTATE_mine_noted
			mine = mine && (other == c || !request[FLUSHER].target[other]);
#endif
#ifndef MUTATE_mine_unconfined
			mine = mine && (other == c || !unconfined[other]);
#endif
			skip
		}
		other = 0
	}
	d_step {
		if
		/* Where the process is not loaded it flushes something else. */
		:: mine && cpu[c].cr3 -> flush_local(c)
		:: else -> skip
		fi
	}
#ifdef MUTATE_mine_counts
	d_step {
		if
		:: mine -> cpu[c].done = cpu[c].asked
		:: else -> skip
		fi
	}
#endif
	d_step { cpu[c].off = false; flushes_on = 0 }
}

active [CPUS] proctype Cpus() {
end:	do
	:: ASKED(_pid) ->
		if
		:: cpu[_pid].ipi[0] -> flush_here(0, _pid)
		:: cpu[_pid].ipi[1] -> flush_here(1, _pid)
		fi;
		if
		:: RUNS(_pid) && cpu[_pid].confined -> leave(_pid)
		:: skip
		fi
	:: atomic { RUNS(_pid) && cpu[_pid].holds -> assert(!promised) }
	:: RUNS(_pid) && cpu[_pid].confined && !copy[_pid] && canonical -> fill(_pid)
#ifdef UNCONFINES
	:: RUNS(_pid) && cpu[_pid].confined -> unconfine(_pid)
	:: RUNS(_pid) && !cpu[_pid].confined -> confine(_pid)
#endif
#ifdef MINE
	:: flushes_on == _pid + 1 -> flush_mine(_pid)
#endif
	:: RUNS(_pid) -> switch_out(_pid)
	:: (!cpu[_pid].cr3 || cpu[_pid].lazy) && !cpu[_pid].off -> switch_in(_pid)
	od
}

/* The hardware walks ahead of what is executed, also in lazy mode. */
active [CPUS] proctype Walkers() {
	byte c = _pid - CPUS;

end:	do
	:: d_step { cpu[c].cr3 && !cpu[c].leads &&
		((cpu[c].own && copy[c]) || (!cpu[c].own && canonical)) ->
		cpu[c].leads = true }
	:: atomic { cpu[c].cr3 && cpu[c].leads && !cpu[c].walks && !cpu[c].holds ->
		assert(!freed);
		if
		:: entry -> cpu[c].walks = true
		:: else -> skip
		fi }
	:: d_step { cpu[c].walks -> cpu[c].walks = false; cpu[c].holds = true }
	od
}

/* sharers_flush(), after the entries were changed. */
inline flush_range(f, c) {
#ifdef MUTATE_looks_who_first
	for (c : 0 .. CPUS - 1) {
		request[f].target[c] = request[f].target[c] && cpu[c].there
	}
#endif
	for (c : 0 .. CPUS - 1) {
		if
		:: request[f].target[c] -> d_step {
			cpu[c].asked++;
			cpu[c].number[f] = cpu[c].asked }
		:: else -> skip
		fi
	}
	for (c : 0 .. CPUS - 1) {
		if
#ifdef MUTATE_looks_who_first
		:: request[f].target[c] && (f == WITHDRAWER || !cpu[c].lazy) -> cpu[c].ipi[f] = true
#else
		:: request[f].target[c] && cpu[c].there &&
		   (f == WITHDRAWER || !cpu[c].lazy) -> cpu[c].ipi[f] = true
#endif
		:: else -> skip
		fi
	}
	for (c : 0 .. CPUS - 1) {
		!cpu[c].ipi[f]
	}
}

inline who(f, c) {
	for (c : 0 .. CPUS - 1) {
		request[f].target[c] = mask[c] || unconfined[c]
	}
}

#ifdef MINE
active proctype Flusher() {
	byte c;

#ifndef MUTATE_mine_masks_first
	entry = false;
#endif
	d_step {
		for (c : 0 .. CPUS - 1) {
			request[FLUSHER].target[c] = mask[c]
		}
	}
#ifdef MUTATE_mine_masks_first
	entry = false;
#endif
	if
	:: flushes_on = 1
	:: flushes_on = CPUS
	fi;
	flushes_on == 0;
	if
	:: mine -> skip
	:: else ->
		d_step {
			for (c : 0 .. CPUS - 1) {
				request[FLUSHER].target[c] =
					request[FLUSHER].target[c] || unconfined[c]
			}
		}
		flush_range(FLUSHER, c)
	fi;
	promised = true
}
#else
active proctype Flusher() {
	byte c;

#ifndef MOVES
#ifdef MUTATE_masks_first
	who(FLUSHER, c);
	entry = false;
#else
	entry = false;
	who(FLUSHER, c);
#endif
	flush_range(FLUSHER, c);
	promised = true
#endif
}
#endif

#ifndef ALONE
active proctype Withdrawer() {
	byte c;

#ifdef MUTATE_withdraws_early
	who(WITHDRAWER, c);
	canonical = false;
	count++;
#else
	canonical = false;
#ifdef MUTATE_counted_late
	who(WITHDRAWER, c);
	count++;
#else
	count++;
	who(WITHDRAWER, c);
#endif
#endif
#ifndef MUTATE_copies_stay
	for (c : 0 .. CPUS - 1) {
		if
		:: request[WITHDRAWER].target[c] -> copy[c] = false
		:: else -> skip
		fi
	}
#endif
	flush_range(WITHDRAWER, c);
#ifdef MOVES
	entry = false;
	promised = true;
	canonical = true;
#else
#ifndef MUTATE_no_rcu
	for (c : 0 .. CPUS - 1) {
		!cpu[c].off
	}
#endif
	freed = true
#endif
}
#endif
