/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * I1 for a frame that two processes map: which tag it gets, so that who judges
 * the tag knows of both. A page cache frame, mapped and unmapped by X and Y, each
 * of which has a generation and flushes by itself; those that owe anything are
 * flushed for the shared generation, or catch up with it by ticks while the
 * processes come and go. With GROUPED each tags in the name of a group, whose
 * generation is another one than its own.
 * Of CPUs and their flushes there is only what frames.pml shows: who is asked has
 * flushed before the generation is credited.
 *
 * Follows cf_tag_gather(), cf_tag_frame(), cf_tag_cover(), cf_flush_shared()
 * and cf_take_shared_generation().
 */
#define X 0
#define Y 1
#define S 2		/* the shared context */
#define NONE 3

#ifndef CYCLES
#define CYCLES 2	/* how often each process maps the frame */
#endif

typedef Tag { byte id; byte gen };

Tag slot;
#ifdef GROUPED
#define SELF(who) (who + 3)
#define COUNTERS 5
#else
#define SELF(who) who
#define COUNTERS 3
#endif
byte started[COUNTERS] = 1;
byte completed[COUNTERS] = 1;
/* Where more is flushed beside that, the search is long enough without. */
#if !defined(OWN) && !defined(OWN_BESIDE) && !defined(ALL_BESIDE)
#define NOTES
byte skipped[2];	/* cf_ctx.skipped: 0, or a generation and 1 */
#endif
bool listed[2];		/* has a context that others find */
bool pte[2];
bool holds[2];		/* a CPU has a translation */
byte users;		/* of the frame: mappings, and unmaps under way */

#define STALE(id, gen) (id != NONE && gen >= completed[id])
#ifdef NOTES
#define OWES(who) (skipped[who] && skipped[who] - 1 >= completed[SELF(who)])
#else
#define OWES(who) true
#endif

init {
	slot.id = NONE;
	atomic { run Process(X); run Process(Y); run Walker(); run Judge();
#ifdef OWN
		 run Own(X); run Own(Y);
#endif
#ifdef OWN_BESIDE
		 run Own(X); run Own(X);
#endif
#ifdef ALL_BESIDE
		 run All();
#endif
#ifdef TICKS
		 run Ticks(X); run Ticks(Y); run Age();
#else
		 run All();
#endif
	}
}

proctype Walker() {
end:	do
	:: d_step { pte[X] && !holds[X] -> holds[X] = true }
	:: d_step { pte[Y] && !holds[Y] -> holds[Y] = true }
	od
}

/* Nobody uses the frame: what is it worth, if its tag is clean? */
proctype Judge() {
end:	do
	:: atomic { !users && !STALE(slot.id, slot.gen) ->
		assert(!holds[X] && !holds[Y]) }
	od
}

/* cf_owe(), cf_note_left() */
inline note(who) {
#ifdef NOTES
	left = started[SELF(who)];
	d_step {
		if
		:: skipped[who] < left + 1 -> skipped[who] = left + 1
		:: else -> skip
		fi;
		left = 0
	}
#else
	skip
#endif
}

proctype Process(byte me) {
	byte n, gen, old_id, old_gen, id, now, left;
	bool stale;

#ifndef MUTATE_listed_late
	listed[me] = true;
#endif
	for (n : 1 .. CYCLES) {
		d_step { users++; pte[me] = true }
#ifdef MUTATE_gen_early
		gen = started[me];
		pte[me] = false;
#else
		pte[me] = false;
		gen = started[me];
#endif
#ifndef MUTATE_notes_late
		note(me);
#endif
again:		skip;
		d_step { old_id = slot.id; old_gen = slot.gen }
		stale = old_id != me && STALE(old_id, old_gen);
#ifdef MUTATE_no_shared_tag
		stale = false;
#endif
		/* cf_tag_combine(): what to store; @now is its generation. */
		if
		:: old_id == me && old_gen >= gen -> goto done
		:: old_id != me && stale ->
			id = S;
			now = started[S];
			if
			:: old_id == S && old_gen >= now -> goto done
			:: else -> skip
			fi
		:: else -> id = me; now = gen
		fi;
		/* cmpxchg */
		if
		:: atomic { slot.id == old_id && slot.gen == old_gen ->
			slot.id = id; slot.gen = now }
		:: atomic { !(slot.id == old_id && slot.gen == old_gen) -> goto again }
		fi;
#ifndef MUTATE_no_cover
		/* cf_tag_cover() */
		do
		:: id == S && now != started[S] ->
			now = started[S];
			d_step { slot.id = S; slot.gen = now }
		:: else -> break
		od;
#endif
done:		skip;
#ifdef MUTATE_notes_late
		note(me);
#endif
#ifdef MUTATE_listed_late
		listed[me] = true;
#endif
		users--
	}
#ifdef TICKS
	/* It exits: nobody uses its translations any more. */
	if
	:: true -> d_step { holds[me] = false; listed[me] = false }
	:: true -> skip
	fi
#endif
}

/* cf_credit(); flushes may end in another order than they began. */
inline credit(who, number) {
	d_step {
		if
		:: completed[who] < number -> completed[who] = number
		:: else -> skip
		fi
	}
}

/* A flush of one process. */
proctype Own(byte who) {
	byte gen;

	d_step { started[who]++; gen = started[who] }
	holds[who] = false;
#ifdef MUTATE_own_credits_newest
	credit(who, started[who])
#else
	credit(who, gen)
#endif
}

/* Of a process, if it owes anything. */
inline flush_owing(who) {
	if
	:: OWES(who) ->
#ifdef NOTES
		d_step { started[SELF(who)]++; own = started[SELF(who)] }
		holds[who] = false;
		credit(SELF(who), own);
		own = 0
#else
		holds[who] = false
#endif
	:: else -> skip
	fi
}

/* Of both, for the shared generation; one comes after the other. */
proctype All() {
	byte gen, own;

#ifdef MUTATE_looks_early
	bool owes = OWES(X);
#endif
	d_step { started[S]++; gen = started[S] }
#ifdef MUTATE_credit_early
	credit(S, gen);
#endif
#ifdef MUTATE_looks_early
	if
	:: owes -> holds[X] = false
	:: else -> skip
	fi;
#else
	flush_owing(X);
#endif
#ifndef MUTATE_one_left
	flush_owing(Y);
#endif
#ifdef MUTATE_all_credits_newest
	credit(S, started[S])
#else
	credit(S, gen)
#endif
}

/* __cf_tick(), or a CPU that comes back. */
#ifdef TICKS
byte awaited[2];
byte caught[2];

proctype Ticks(byte who) {
	byte seen;

end:	do
	:: caught[who] < awaited[who] ->
		seen = started[who];
		holds[who] = false;
		d_step { caught[who] = seen; seen = 0 }
	od
}

inline await(who) {
	if
	:: d_step { listed[who] && OWES(who) ->
		started[who]++; awaited[who] = started[who] }
	:: !listed[who] || !OWES(who) -> skip
	fi
}

/* cf_take_shared_generation() and cf_shared_caught_up() */
proctype Age() {
	byte gen;

#ifdef MUTATE_age_gen_late
	await(X);
	await(Y);
	d_step { started[S]++; gen = started[S] }
#else
	d_step { started[S]++; gen = started[S] }
	await(X);
#ifndef MUTATE_age_one_left
	await(Y);
#endif
#endif
	!listed[X] || caught[X] >= awaited[X];
	!listed[Y] || caught[Y] >= awaited[Y];
	credit(S, gen)
}
#endif
