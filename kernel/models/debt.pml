/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * I6, I9: what is owed is paid, without anybody asking. Skips note the newest
 * generation and make it due, unless something is due already; a tick and the timer
 * take back what is due, look, and take a generation that all CPUs catch up with.
 * A work item waits for that, which gives up when nothing is awaited: whoever takes
 * a generation queues it. When nobody skips any more, nothing is due, nobody is at
 * work and all have caught up, nothing may be owed: parked frames would stay for ever.
 *
 * Follows cf_owe(), cf_kick_age(), cf_start_due(), __cf_tick(), cf_old_timer() and
 * cf_age_work(). Full flushes that others send pay, too, at any time.
 */
#ifndef SKIPS
#define SKIPS 2
#endif
#ifndef THREADS
#define THREADS 2
#endif

byte started = 1;	/* tlb_gen */
byte completed = 1;
byte awaited;		/* ticks shall catch up */
byte skipped;		/* cf_ctx.skipped: 0, or a generation and 1 */
bool due;
bool armed;		/* the timer */
bool queued;		/* the age work */
byte threads = THREADS;
byte busy;		/* the tick, the timer and the work, while they do something */

#define QUIET (!threads && !due && !armed && !queued && !busy)

inline raise(newest, gen) {
	d_step {
		if
		:: newest < gen -> newest = gen
		:: else -> skip
		fi
	}
}

#define NOTE() raise(skipped, gen + 1)

/* Unless it is due; cmpxchg. Whose timer has not expired yet has the work queued. */
inline make_due() {
	seen = due;
	if
	:: seen -> skip
	:: else ->
		atomic {
			seen = due;
			due = true
		};
		if
		:: seen -> skip
		:: else ->
			atomic {
				queued = queued || armed;
				armed = true
			}
		fi
	fi
}

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
		:: else -> atomic { due = true; queued = queued || armed; armed = true }
		fi
#else
		gen = started;
#ifdef MUTATE_notes_late
		make_due();
		NOTE()
#else
		NOTE();
		make_due()
#endif
#endif
	}
	atomic { gen = 0; seen = false; n = 0; threads-- }
}

/* cf_start_due(): @took if a generation was taken. */
inline start_due() {
	took = false;
#ifdef MUTATE_looks_early
	owed = skipped && skipped - 1 >= completed;
#endif
#ifdef MUTATE_takes_early
	d_step { started++; gen = started };
#endif
	atomic { had = due; due = false };
	if
	:: had ->
#ifndef MUTATE_looks_early
		owed = skipped && skipped - 1 >= completed;
#endif
		if
		:: owed ->
#ifndef MUTATE_takes_early
			d_step { started++; gen = started };
#endif
			raise(awaited, gen);
			took = true
		:: else -> skip
		fi
	:: else -> skip
	fi
}

/* What is of no use any more is no difference either. */
inline done() {
	atomic { owed = false; had = false; took = false; gen = 0; busy-- }
}

active proctype Tick() {
	bool owed, had, took;
	byte gen;

end:	do
	:: atomic { due -> busy++ };
		start_due();
#ifndef MUTATE_tick_unqueued
		if
		:: took -> queued = true
		:: else -> skip
		fi;
#endif
		done()
	:: QUIET -> break
	od
}

active proctype Timer() {
	bool owed, had, took;
	byte gen;

end:	do
	:: atomic { armed -> armed = false; busy++ };
		start_due();
		queued = true;
		done()
	:: QUIET -> break
	od
}

/* cf_age_work(): all CPUs catch up with what is awaited; it looks until they have. */
active proctype Work() {
	bool owed, had, took;
	byte gen;

end:	do
	:: atomic { queued -> queued = false; busy++ };
		start_due();
		gen = awaited;
		if
		:: gen > completed ->
			raise(completed, gen);
			queued = true
		:: else -> skip
		fi;
		done()
	:: atomic { QUIET ->
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
