/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * M2, M3, M4, I12: a table of level 2 is cut from a morsel, is emptied later, rests, and is used
 * again, while others make tables and install pages below it, and while somebody else who cuts
 * finds nothing there. When a call returns no CPU uses a page that was there before it. Nobody
 * walks or locks a table of pages that is free, what rests is empty, and no page is lost.
 *
 * The CPU walks by a table of its own, which leads to the one of level 2 (sharers): what it has
 * of that is withdrawn. Lazy mode is in cut.pml.
 *
 * Each sees the steps of the others at once here: the barriers are in the code.
 *
 * Follows morsel_cut_upper(), morsel_open_middle(), morsel_rest(), morsel_make_table(),
 * morsel_install(), morsel_flush() and morsel_must_flush().
 */
#define MIDDLES 2
#define TABLES 2
#define PAGES 2
#define NONE 0
#ifndef INSTALLS
#define INSTALLS 2
#endif
#ifndef CUTS
#define CUTS 2
#endif

typedef Middle {
	bool lock;
	byte below;	/* its only entry: a table of pages */
	bool rests
};

typedef Table {
	bool lock;
	byte page;	/* its only entry */
	bool freed
};

Middle middle[MIDDLES + 1];
Table table[TABLES + 1];
byte above;		/* which table of level 2 the entry leads to; NONE: the empty one */
bool lock_above;
byte linked;		/* the same in the CPU's own table */
byte middles, tables, pages;	/* so many were made */
bool freed[PAGES + 1];	/* pages */
bool taken[PAGES + 1];	/* a call has returned that took them */
byte cutting, unlinking;
bool reads[2];		/* RCU, of who installs */
byte way, cached, held;	/* by the CPU: tables of both levels; the page */
byte over;

#define LOCK(l) atomic { !l -> l = true }

#ifndef NO_CPU
active proctype Processor() {
end:	do
	/* A fault fills its table. */
	:: d_step { linked == NONE && above != NONE -> linked = above }
	:: d_step { linked != NONE && way == NONE -> way = linked }
	:: d_step { way != NONE && cached == NONE && middle[way].below != NONE ->
		cached = middle[way].below }
	:: d_step { cached != NONE && held == NONE ->
		assert(!table[cached].freed);
		held = table[cached].page }
	:: atomic { held != NONE -> assert(!freed[held] && !taken[held]) }
	od
}
#define FIRST 1	/* _pid of who installs */
#else
#define FIRST 0
#endif

inline flush() { d_step { way = NONE; cached = NONE; held = NONE } }

active [INSTALLS] proctype Installs() {
	byte in, found;

again:	LOCK(lock_above);
	if
	:: above == NONE ->
		if
		:: middle[1].rests -> middle[1].rests = false; above = 1
		:: middle[2].rests -> middle[2].rests = false; above = 2
		:: else ->
			if
			:: middles < MIDDLES -> middles++; above = middles
			:: else -> skip
			fi
		fi
	:: else -> skip
	fi;
	in = above;
	lock_above = false;
	if
	:: in == NONE -> goto done	/* more of them than it has room for here */
	:: else -> skip
	fi;

	LOCK(middle[in].lock);
#ifndef MUTATE_rest_unseen
	if
	:: above != in -> middle[in].lock = false; goto again
	:: else -> skip
	fi;
#endif
	if
	:: d_step { middle[in].below == NONE && tables < TABLES ->
		tables++;
		middle[in].below = tables }
	:: else -> skip
	fi;
	middle[in].lock = false;

	in = above;
	if
	:: in == NONE -> goto again
	:: else -> skip
	fi;
	reads[_pid - FIRST] = true;
	found = middle[in].below;
	if
	:: found == NONE ->
		reads[_pid - FIRST] = false;
		if
		:: tables < TABLES -> goto again
		:: else -> goto done
		fi
	:: else -> skip
	fi;
	LOCK(table[found].lock);
	assert(!table[found].freed);
	if
	:: middle[in].below != found ->
		table[found].lock = false;
		reads[_pid - FIRST] = false;
		goto again
	:: else -> skip
	fi;
	if
	:: d_step { table[found].page == NONE && pages < PAGES ->
		pages++;
		table[found].page = pages }
	:: else -> skip
	fi;
	table[found].lock = false;
	reads[_pid - FIRST] = false;
done:	over++
}

active [CUTS] proctype Cuts() {
	byte old, below, page, before, n;
	bool unlinks;

	before = pages;
	cutting++;
#ifdef MUTATE_rest_counted_early
	unlinks = above != NONE;
	if
	:: unlinks -> unlinking++
	:: else -> skip
	fi;
#endif
	LOCK(lock_above);
#ifndef MUTATE_rest_counted_early
	unlinks = above != NONE;
	if
	:: unlinks -> unlinking++
	:: else -> skip
	fi;
#endif
	d_step { old = above; above = NONE };
	lock_above = false;
	if
	:: old != NONE || cutting > 1 ->
#ifndef MUTATE_rest_linked
		if
#ifdef MUTATE_rest_linked_own
		:: old != NONE -> linked = NONE
#else
		:: unlinking > 0 -> linked = NONE
#endif
		:: else -> skip
		fi;
#endif
		flush()
	:: else -> skip
	fi;
	if
	:: unlinks -> unlinking--
	:: else -> skip
	fi;
	cutting--;
	/* It returns, and leaves the rest to others. */
	d_step {
		for (n : 1 .. before) { taken[n] = true }
		n = 0
	};
	if
	:: old != NONE ->
#ifdef MUTATE_rest_early
		middle[old].rests = true;
#endif
		LOCK(middle[old].lock);
		d_step { below = middle[old].below; middle[old].below = NONE };
		middle[old].lock = false;
#ifndef MUTATE_rest_early
		middle[old].rests = true;
#endif
		if
		:: below != NONE ->
			LOCK(table[below].lock);
			d_step { page = table[below].page; table[below].page = NONE };
			table[below].lock = false;
			freed[page] = page != NONE;
			flush();
			!reads[0]; !reads[1];
			table[below].freed = true
		:: else -> skip
		fi
	:: else -> skip
	fi;
	over++
}

/* What rests is empty; all that was installed can be found, or is free. */
active proctype Looks() {
	byte n;

	atomic { over == INSTALLS + CUTS ->
		for (n : 1 .. middles) {
			assert(n == above || middle[n].below == NONE)
		}
		for (n : 1 .. pages) {
			assert(freed[n] ||
			       (above != NONE && middle[above].below != NONE &&
				table[middle[above].below].page == n))
		}
	}
}
