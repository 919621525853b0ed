/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * I1 for a page of two frames. Two processes map frames of it, each as many as it
 * likes, and unmap them with skipped flushes, so that the frames have tags of their
 * own. Then the page is freed, whole or in two halves: what is freed waits with one
 * context after the other, until no frame of it can be reached. One of the two is
 * also flushed for another reason.
 *
 * Follows cf_pool_hold(), cf_pool_stale() and cf_pool_release(). Of flushes
 * there is only what frames.pml shows. A frame that both can reach has the shared
 * tag, whose flush is one of both.
 */
#define X 0
#define Y 1
#define S 2		/* the shared context */
#define NONE 3

#define FRAMES 2
typedef Frame {
	byte id;	/* the tag */
	byte gen;
	byte users;	/* references: mappings, and unmaps under way */
	bool holds[2]	/* CPUs of X, of Y have a translation */
};
Frame frame[FRAMES];
bool pte[4];		/* of X: 0 and 1, of Y: 2 and 3 */

byte started[3] = 1;
byte completed[3] = 1;

/* A page begins at its first frame; a half of it is a page. */
mtype = { USED, WAITS, TAKEN, FREE };
mtype page[FRAMES] = USED;
byte order[FRAMES];
byte pool[FRAMES];	/* whose, if it waits */

#define STALE(f) (frame[f].id != NONE && frame[f].gen >= completed[frame[f].id])
#define REACHED(f) (frame[f].holds[X] || frame[f].holds[Y])

init {
	d_step {
		frame[0].id = NONE;
		frame[1].id = NONE;
		order[0] = 1
	}
	atomic {
		run Walker(0); run Walker(1);
		run Process(X); run Process(Y);
		run Frees(); run Drains(X); run Drains(Y); run Drains(S);
		run Flusher();
		run Judge()
	}
}

proctype Walker(byte f) {
end:	do
	:: d_step { pte[f] && !frame[f].holds[X] -> frame[f].holds[X] = true }
	:: d_step { pte[2 + f] && !frame[f].holds[Y] -> frame[f].holds[Y] = true }
	od
}

proctype Judge() {
end:	do
	:: atomic { page[0] == FREE ->
		assert(!REACHED(0) && (!order[0] || !REACHED(1)));
		break }
	:: atomic { page[1] == FREE && !order[0] -> assert(!REACHED(1)); break }
	od
}

/* cf_tag_combine() */
inline tag_frame(f, me, gen) {
	d_step {
		if
		:: frame[f].id == me || !STALE(f) ->
			frame[f].id = me;
			frame[f].gen = gen
		:: else -> frame[f].id = S; frame[f].gen = started[S]
		fi
	}
}

/* munmap(), of what it has mapped. */
proctype Process(byte me) {
	byte f, gen;

	for (f : 0 .. 1) {
		if
		:: d_step { page[0] == USED && page[1] == USED ->
			frame[f].users++;
			pte[2 * me + f] = true }
		:: true -> skip
		fi
	}
	for (f : 0 .. 1) {
		if
		:: pte[2 * me + f] ->
			pte[2 * me + f] = false;
			gen = started[me];
			tag_frame(f, me, gen);
			frame[f].users--
		:: else -> skip
		fi
	}
}

/* cf_pool_hold(): page @p waits with the first that can reach a frame of it. */
inline hold(p) {
	d_step {
		if
		:: STALE(p) -> page[p] = WAITS; pool[p] = frame[p].id
#ifndef MUTATE_head_only
		:: !STALE(p) && order[p] && STALE(1) ->
			page[p] = WAITS;
			pool[p] = frame[1].id
#endif
		:: else -> page[p] = FREE
		fi
	}
}

proctype Frees() {
end:	d_step { !frame[0].users && !frame[1].users ->
		page[0] = TAKEN;
		page[1] = TAKEN };
	if
	:: hold(0)
	:: order[0] = 0;
		hold(0);
		hold(1)
	fi
}

#define MINE(f) (frame[f].id == me && STALE(f))

inline clear(f) {
	d_step {
		if
#ifdef MUTATE_clear_all
		:: true -> frame[f].id = NONE
#else
		:: me == S || frame[f].id == me -> frame[f].id = NONE
#endif
		:: else -> skip
		fi
	}
}

inline flush_process(who) {
	frame[0].holds[who] = false;
	frame[1].holds[who] = false
}

inline flush(who) {
	d_step { started[who]++; gen = started[who] }
	if
	:: who == S -> flush_process(X); flush_process(Y)
	:: else -> flush_process(who)
	fi;
	d_step {
		if
		:: completed[who] < gen -> completed[who] = gen
		:: else -> skip
		fi
	}
}

/* Beside: fork(), ... */
proctype Flusher() {
	byte gen;

	flush(X)
}

/* cf_settle_one() */
proctype Drains(byte me) {
	byte p, gen;

end:	do
	:: d_step { page[0] == WAITS && pool[0] == me -> page[0] = TAKEN; p = 0 };
		goto settle
	:: d_step { page[1] == WAITS && pool[1] == me -> page[1] = TAKEN; p = 1 };
settle:		skip;
		if
#ifdef MUTATE_stale_head
		:: MINE(p) ->
#else
		:: (MINE(p) || (order[p] && MINE(1))) ->
#endif
			flush(me);
			clear(p);
			if
			:: order[p] -> clear(1)
			:: else -> skip
			fi
		:: else -> skip
		fi;
#ifdef MUTATE_release_unchecked
		page[p] = FREE;
#else
		hold(p);
#endif
		/* I6: no drain has this page to look at again. */
		assert(page[p] != WAITS || pool[p] != me);
		d_step { p = 0; gen = 0 }
	od
}
