/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * M2, M3, I12: a table of level 3 is cut from a morsel, and opened when all have flushed: the table
 * of level 2 that it leads to is emptied later, by others, and rests below it. Both are used
 * again, while others make tables and install pages below, and while somebody else who cuts finds
 * nothing there. When a call returns no CPU uses a page that was there before it; what rests is
 * empty, and no page is lost. Tables of pages are in rest.pml.
 *
 * The CPU walks by a table of its own, which leads to the table of level 2 (sharers). To fill that
 * takes it two steps, by the canonical tables, and what was withdrawn in between it notices.
 *
 * Each sees the steps of the others at once here: the barriers are in the code.
 *
 * Follows morsel_cut_upper(), morsel_open_uppers(), morsel_open_middle(), morsel_rest(),
 * morsel_make_table(), morsel_is_linked(), morsel_flush() and sharers_whole_fill().
 */
#define TABLES 3	/* of each level; the first one is none */
#define PAGES 2
#define NONE 0
#ifndef INSTALLS
#define INSTALLS 2
#endif
#ifndef CUTS
#define CUTS 2
#endif

typedef Table {
	bool lock;
	byte entry;	/* its only one: a table of level 2, or a page */
	byte home;	/* of level 2: in which one of level 3 it is, or rests */
	bool rests
};

Table upper[TABLES];
Table middle[TABLES];
byte root;		/* its only entry; NONE: the empty table */
bool lock;		/* of the object */
byte linked;		/* the same in the CPU's own table, of level 2 */
byte uppers, middles, pages;	/* so many were made */
bool freed[PAGES + 1];	/* pages */
bool taken[PAGES + 1];	/* a call has returned that took them */
byte cutting, unlinking, withdrawn;
byte way, held;		/* by the CPU: its table of level 2, and the page */
byte over;

#define LOCK(l) atomic { !l -> l = true }

active proctype Processor() {
	byte walked, count;

end:	do
	/* A fault walks the canonical tables, and fills its table. */
	:: d_step { linked == NONE && walked == NONE && root != NONE ->
		walked = root;
		count = withdrawn }
	:: d_step { walked != NONE ->
		if
#ifndef MUTATE_upper_filled_late
		:: count == withdrawn -> linked = upper[walked].entry
#else
		:: true -> linked = upper[walked].entry
#endif
		:: else -> skip
		fi;
		walked = NONE }
	:: d_step { linked != NONE && way == NONE -> way = linked }
	:: d_step { way != NONE && held == NONE -> held = middle[way].entry }
	:: atomic { held != NONE -> assert(!freed[held] && !taken[held]) }
	od
}

inline flush() { d_step { way = NONE; held = NONE } }

inline withdraw() { d_step { linked = NONE; withdrawn++ } }

active [INSTALLS] proctype Installs() {
	byte up, mid;

again:	LOCK(lock);
	if
	:: root == NONE ->
		if
		:: upper[1].rests -> upper[1].rests = false; root = 1
		:: upper[2].rests -> upper[2].rests = false; root = 2
		:: else ->
			if
			:: uppers < TABLES - 1 -> uppers++; root = uppers
			:: else -> skip
			fi
		fi
	:: else -> skip
	fi;
	up = root;
	lock = false;
	if
	:: up == NONE -> goto done	/* more of them than it has room for here */
	:: else -> skip
	fi;

	LOCK(lock);
#ifndef MUTATE_upper_unseen
	if
	:: root != up -> lock = false; goto again
	:: else -> skip
	fi;
#endif
	if
	:: upper[up].entry == NONE ->
		if
		:: middle[1].rests && middle[1].home == up ->
			middle[1].rests = false; upper[up].entry = 1
		:: middle[2].rests && middle[2].home == up ->
			middle[2].rests = false; upper[up].entry = 2
		:: else ->
			if
			:: middles < TABLES - 1 ->
				middles++;
				middle[middles].home = up;
				upper[up].entry = middles
			:: else -> skip
			fi
		fi
	:: else -> skip
	fi;
	mid = upper[up].entry;
	lock = false;
	if
	:: mid == NONE -> goto done
	:: else -> skip
	fi;

	LOCK(middle[mid].lock);
	/* From the top, an entry at a time. */
	up = root;
	if
#ifndef MUTATE_upper_below_unseen
	:: up == NONE || upper[up].entry != mid -> middle[mid].lock = false; goto again
#endif
	:: else -> skip
	fi;
	if
	:: d_step { middle[mid].entry == NONE && pages < PAGES ->
		pages++;
		middle[mid].entry = pages }
	:: else -> skip
	fi;
	middle[mid].lock = false;
done:	over++
}

active [CUTS] proctype Cuts() {
	byte old, mid, page, before, n;
	bool unlinks;

	before = pages;
	cutting++;
	LOCK(lock);
	unlinks = root != NONE;
	if
	:: unlinks -> unlinking++
	:: else -> skip
	fi;
	d_step { old = root; root = NONE };
	lock = false;
#ifdef MUTATE_upper_early
	if
	:: old != NONE -> upper[old].rests = true
	:: else -> skip
	fi;
#endif
	if
	:: old != NONE || cutting > 1 ->
		if
#ifndef MUTATE_upper_linked
		:: unlinking > 0 -> withdraw()
#endif
		:: else -> skip
		fi;
		flush()
	:: else -> skip
	fi;
	if
	:: unlinks -> unlinking--
	:: else -> skip
	fi;
	cutting--;
	if
	:: old != NONE ->
		LOCK(lock);
		d_step { mid = upper[old].entry; upper[old].entry = NONE };
		lock = false;
#ifndef MUTATE_upper_early
		upper[old].rests = true;
#endif
	:: else -> skip
	fi;
	/* It returns, and leaves the rest to others. */
	d_step {
		for (n : 1 .. before) { taken[n] = true }
		n = 0
	};
	if
	:: mid != NONE ->
		LOCK(middle[mid].lock);
		d_step { page = middle[mid].entry; middle[mid].entry = NONE };
		middle[mid].lock = false;
		LOCK(lock);
		middle[mid].rests = true;
		lock = false;
		freed[page] = page != NONE
	:: else -> skip
	fi;
	over++
}

/* What rests is empty; all that was installed can be found, or is free. */
active proctype Looks() {
	byte n;

	atomic { over == INSTALLS + CUTS ->
		for (n : 1 .. uppers) {
			assert(n == root || upper[n].entry == NONE)
		}
		for (n : 1 .. middles) {
			assert((root != NONE && upper[root].entry == n) ||
			       middle[n].entry == NONE)
		}
		for (n : 1 .. pages) {
			assert(freed[n] ||
			       (root != NONE && upper[root].entry != NONE &&
				middle[upper[root].entry].entry == n))
		}
	}
}
