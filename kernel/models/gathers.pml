/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * I11: a gather that finds an entry empty which another one has cleared does not return while a CPU
 * has it. It goes by the list of gathers, where each notes what its call is about, and by their
 * number, for those that have noted nothing (@UNNOTED: the one that clears).
 *
 * Others, which are about something else, come and go meanwhile.
 *
 * Follows mm/ceasefire/core/gathers.c and tlb_finish_mmu().
 */
bool present = true;	/* the entry */
bool cached = true;	/* a CPU has it */
byte pending;		/* tlb_flush_pending */
bool locked;		/* the list */
bool clearing;		/* on the list: the gather that clears the entry */
byte elsewhere;		/* and those that do not meet it */

inline lock() { atomic { !locked -> locked = true } }
inline unlock() { locked = false }

active proctype Clears() {
	pending++;
#ifndef UNNOTED
	lock();
	clearing = true;
	unlock();
#endif
	present = false;
	cached = false;
	lock();
	clearing = false;
	unlock();
	pending--
}

active [2] proctype Elsewhere() {
	pending++;
	lock();
	elsewhere++;
	unlock();
#ifdef MUTATE_gathers_counted_late
	pending--;
#endif
	lock();
	elsewhere--;
	unlock();
#ifndef MUTATE_gathers_counted_late
	pending--
#endif
}

active proctype Finds() {
	byte others;
	bool found, meets;

	pending++;
	found = !present;
#ifndef MUTATE_gathers_unlocked
	lock();
#endif
	others = pending - 1;
	meets = clearing;
	if
	:: others > elsewhere ->
#ifndef MUTATE_gathers_known
		meets = true
#else
		skip
#endif
	:: else -> skip
	fi;
#ifndef MUTATE_gathers_unlocked
	unlock();
#endif
#ifdef MUTATE_gathers_apart
	meets = false;
#endif
	if
	:: meets -> cached = false
	:: else -> skip
	fi;
	assert(!found || !cached);
	pending--
}
