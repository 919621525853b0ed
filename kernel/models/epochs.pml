/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * M7: an offset of a morsel that is given up without a flush, and gets another page only
 * when no CPU can reach the old one. One offset, one process that maps it, whose CPUs walk its
 * entry whenever there is one; epochs that are closed and settled by flushes of the process,
 * whoever sends them, or by one that an installation sends, of this offset or another one.
 *
 * That a flush which is numbered later than the targets has passed all CPUs is what
 * frames.pml shows; here it is one step, after its number, and credited after that.
 *
 * Follows morsel_give_up(), morsel_epoch_begin(), morsel_epoch_look(), morsel_epoch_flush(),
 * morsel_install() and lazy_state.h.
 */
#ifndef CYCLES
#define CYCLES 2	/* how often it is given up */
#endif
#ifndef TURNS
#define TURNS 3		/* looks at what has been paid, which close an epoch */
#endif
#ifndef FLUSHES
#define FLUSHES 2	/* of the process, by others */
#endif

bool entry = true;	/* leads to a page */
byte mark;		/* in the entry; 0: there is none */
bool holds;		/* a CPU has a translation */
byte now = 1, closed, settled, newest;
byte target;		/* of the process, plus 1; 0: none */
byte started = 1, completed = 1;
bool lazy_lock, ptl;

init {
	atomic { run Giver(); run Walker(); run Installer(); run Elsewhere();
		 run Turns(); run Flusher() }
}

proctype Walker() {
end:	do
	:: d_step { entry && !holds -> holds = true }
	od
}

inline lock(l) { atomic { !l -> l = true } }
inline unlock(l) { l = false }

/* morsel_give_up() */
proctype Giver() {
	byte n, k;

	for (n : 1 .. CYCLES) {
		/* There is a page again. */
		entry;
		lock(ptl);
#ifdef MUTATE_marks_early
		k = now;
		entry = false;
#else
		entry = false;
		k = now;
#endif
		d_step { mark = k; newest = (newest < k -> k : newest) }
		unlock(ptl)
	}
}

/* cf_credit() */
inline credit(gen) {
	d_step {
		if
		:: completed < gen -> completed = gen
		:: else -> skip
		fi
	}
}

inline flush(gen) {
	d_step { started++; gen = started }
	holds = false;
	credit(gen)
}

proctype Flusher() {
	byte n, gen;

	for (n : 1 .. FLUSHES) {
		flush(gen)
	}
}

/* morsel_epoch_look(); cf_is_owed_for() */
inline look() {
	if
#ifdef MUTATE_settled_by_started
	:: closed != settled && (!target || target - 1 < started) ->
#else
	:: closed != settled && (!target || target - 1 < completed) ->
#endif
		settled = closed
	:: else -> skip
	fi
}

/* morsel_epoch_turn(), morsel_epoch_begin() */
proctype Turns() {
	byte n, gen;

	for (n : 1 .. TURNS) {
		lock(lazy_lock);
		look();
		if
		:: closed == settled ->
			/* Something is owed, here or at another offset. */
#ifdef MUTATE_target_early
			gen = started;
			d_step { closed = now; now++ };
			target = gen + 1
#else
			d_step { closed = now; now++ };
			target = started + 1
#endif
		:: else -> skip
		fi;
		unlock(lazy_lock)
	}
}

/* morsel_epoch_flush(), for the newest mark of those that are known */
inline flush_for(wanted) {
	lock(lazy_lock);
	look();
	if
	:: wanted > settled ->
#ifdef MUTATE_flush_early
		flush(gen);
		d_step { epoch = now; closed = now; now++ };
#else
		d_step { epoch = now; closed = now; now++ };
		flush(gen);
#endif
		settled = epoch
	:: else -> skip
	fi;
	unlock(lazy_lock)
}

/* Something that was given up at another offset is populated again. */
proctype Elsewhere() {
	byte epoch, gen, wanted;

	wanted = now;
	flush_for(wanted)
}

/* morsel_install(), morsel_epoch_wait() */
proctype Installer() {
	byte epoch, gen, wanted;

end:	do
	:: atomic { mark && !ptl -> ptl = true };
		if
		:: mark <= settled ->
			/* The page that was there is nobody's, and another one comes. */
			assert(!holds);
			d_step { mark = 0; entry = true };
			unlock(ptl)
		:: else ->
			wanted = newest;
			unlock(ptl);
			flush_for(wanted)
		fi
	od
}
