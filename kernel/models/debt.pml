/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * I6: what is owed is paid, without anybody asking. Skips note the newest
 * generation and queue the age work, unless it is queued; the work takes the
 * note back, looks, and flushes. When nobody skips any more and no work is queued,
 * nothing may be owed: parked frames would stay for ever.
 *
 * Follows cf_owe() and cf_age_work(), in which xchg() keeps the two steps of
 * each in order.
 */
#define SKIPS 2
#define THREADS 2

byte started = 1;	/* tlb_gen */
byte completed = 1;
byte skipped;		/* cf_ctx.skipped: 0, or a generation and 1 */
bool owed;
bool queued;
byte threads = THREADS;

inline note() {
	d_step {
		if
		:: skipped < gen -> skipped = gen
		:: else -> skip
		fi
	}
}

inline queue() {
	if
	:: owed -> skip
	:: else -> d_step {		/* xchg(&ctx->owed, 1) */
		if
		:: !owed -> queued = true
		:: else -> skip
		fi;
		owed = true
	}
	fi
}

active [THREADS] proctype Skips() {
	byte n, gen;

	for (n : 1 .. SKIPS) {
		gen = started + 1;
#ifdef MUTATE_notes_late
		queue();
		note();
#else
		note();
		queue();
#endif
	}
	threads--
}

active proctype Age() {
	byte seen, gen;

end:	do
	:: queued ->
		queued = false;
#ifdef MUTATE_looks_early
		seen = skipped;
		owed = false;
#else
		owed = false;
		seen = skipped;
#endif
		if
		:: seen && seen - 1 >= completed ->
			d_step { started++; gen = started }
			completed = gen
		:: else -> skip
		fi
	:: atomic { !queued && !threads ->
		assert(!skipped || skipped - 1 < completed);
		break }
	od
}
