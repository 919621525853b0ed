/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * I1 and I7 while processes with a context come and go: the flag that switches
 * the hooks. Each process unmaps a page by one thread, and the frame is freed by
 * anybody, who parks it if the flag is set and the tag is stale.
 *
 * Frames have the shared tag, which is settled when the last context goes; all
 * other debts are always owed here, frames.pml and evict.pml have them.
 *
 * Follows cf_contexts_inc(), cf_contexts_dec(), cf_settle_shared_idle(),
 * __cf_skip_flush() and __cf_park(). What is read late is shown by evict.pml
 * for accessed bits, and argued at cf_used for the rest.
 */
#define PROCESSES 3

bool used;		/* cf_used */
bool lock;		/* cf_count_lock */
byte contexts;
byte started = 1;	/* of the shared context */
byte completed = 1;
bool context[PROCESSES];
bool unmapped[PROCESSES];
bool holds[PROCESSES];	/* a CPU has a translation of the frame */
byte gone;

#define LOCK atomic { !lock -> lock = true }
#define UNLOCK lock = false

/* munmap() skips, and whoever drops the last reference frees. */
proctype Unmaps(byte p) {
	byte gen;

	context[p];
	holds[p] = true;
	gen = started;
	if
	:: used ->
		if
		:: gen >= completed -> skip	/* parked */
		:: else -> assert(!holds[p])
		fi
	:: else -> assert(!holds[p])
	fi;
	gen = 0;
	unmapped[p] = true
}

/* cf_settle_shared_idle() */
inline settle_idle() {
	started++;
	completed = started
}

/* cf_contexts_dec() */
inline uncount() {
	LOCK;
	contexts--;
	last = !contexts;
#ifdef MUTATE_unlocked
	UNLOCK;
#endif
	if
	:: last ->
		settle_idle();
#ifndef MUTATE_stays_on
		used = false
#endif
	:: else -> skip
	fi;
#ifndef MUTATE_unlocked
	UNLOCK;
#endif
	last = false
}

proctype Lives(byte p) {
	bool last;

	LOCK;
	contexts++;
#ifdef MUTATE_flag_late
	context[p] = true;
#endif
	used = true;
	UNLOCK;
	context[p] = true;
#ifdef MUTATE_uncounted_early
	uncount();
#endif
	unmapped[p];
	/* Nobody runs any more, and its translations are used by nobody. */
	holds[p] = false;
#ifndef MUTATE_uncounted_early
	uncount();
#endif
	gone++
}

#ifdef SETTLED
active proctype Judge() {
end:	atomic { gone == PROCESSES -> assert(!used && !contexts) }
}
#endif

init {
	byte p;

	atomic {
		for (p : 0 .. PROCESSES - 1) {
			run Lives(p);
			run Unmaps(p)
		}
	}
}
