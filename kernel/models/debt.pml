/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * I6, I9: what is owed is paid, without anybody asking. Skips note the newest
 * generation and make it due, unless something is due already; ticks and the timer
 * take back what is due, look, and take a generation that all CPUs catch up with.
 * When nobody skips any more, nothing is due and all have caught up, nothing may be
 * owed: parked frames would stay for ever.
 *
 * Follows cf_owe(), cf_kick_age() and cf_start_due(). Full flushes that others
 * send pay, too, at any time.
 */
#define SKIPS 2
#define THREADS 2
#define STARTERS 2	/* ticks of two CPUs, or one and the timer */

byte started = 1;	/* tlb_gen */
byte completed = 1;
byte awaited;		/* ticks shall catch up */
byte skipped;		/* cf_ctx.skipped: 0, or a generation and 1 */
bool due;
byte threads = THREADS;
byte starting;		/* starters that are at work */

inline raise(newest, gen) {
	d_step {
		if
		:: newest < gen -> newest = gen
		:: else -> skip
		fi
	}
}

#define NOTE() raise(skipped, gen + 1)

/* Unless it is due; cmpxchg. */
#define MAKE_DUE() seen = due; if :: seen -> skip :: else -> due = true fi

active [THREADS] proctype Skips() {
	byte n, gen;
	bool seen;

	for (n : 1 .. SKIPS) {
#ifdef MUTATE_due_early
		seen = due;
		gen = started;
		NOTE();
		if
		:: seen -> skip
		:: else -> due = true
		fi
#else
		gen = started;
#ifdef MUTATE_notes_late
		MAKE_DUE();
		NOTE()
#else
		NOTE();
		MAKE_DUE()
#endif
#endif
	}
	threads--
}

active [STARTERS] proctype Start() {
	bool owed;
	byte gen;

end:	do
	:: atomic { due -> starting++ };
#ifdef MUTATE_looks_early
		owed = skipped && skipped - 1 >= completed;
#endif
#ifdef MUTATE_takes_early
		d_step { started++; gen = started };
#endif
		atomic {
			if
			:: due -> due = false
			:: else -> starting--; goto end
			fi
		};
#ifndef MUTATE_looks_early
		owed = skipped && skipped - 1 >= completed;
#endif
		if
		:: owed ->
#ifndef MUTATE_takes_early
			d_step { started++; gen = started };
#endif
			raise(awaited, gen)
		:: else -> skip
		fi;
		starting--
	:: atomic { !due && !threads && !starting -> break }
	od
}

/* All CPUs have caught up with what is awaited. */
active proctype Ticks() {
	byte gen;

end:	do
	:: awaited > completed ->
		gen = awaited;
		raise(completed, gen)
	:: atomic { awaited <= completed && !due && !threads && !starting ->
		assert(!skipped || skipped - 1 < completed);
		break }
	od
}

/* A full flush for another reason: fork(), a limit. */
active proctype Flush() {
	byte gen;

	d_step { started++; gen = started };
	raise(completed, gen)
}
