/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * M1, M2, M4: a table of pages is cut from a morsel, while others install pages. No CPU uses
 * a page that is free, none walks a table that is free, nobody locks one, and no page is in a
 * table that nobody finds.
 *
 * A CPU may cache the entry above before it walks on, also in lazy mode, in which it uses no
 * address of the process, and is not interrupted for pages. When lazy mode ends it compares
 * generations.
 *
 * Each sees the steps of the others at once here: the barriers are in the code.
 *
 * Follows morsel_install(), morsel_cut_table(), morsel_clean() and morsel_settle_now().
 */
#define TABLES 3
#define PAGES 3
#define NONE 0

typedef Table {
	bool lock;
	byte page;	/* its only entry */
	bool freed
};

Table table[TABLES + 1];
byte above;		/* which table the entry above leads to */
bool lock_above;
byte tables, pages;	/* so many were made */
bool freed[PAGES + 1];	/* pages */
bool reads[2];		/* RCU, of who installs */
byte cached, held;	/* by the CPU: the entry above; the page */
bool lazy, behind;
byte over;

#define LOCK(l) atomic { !l -> l = true }

active proctype Processor() {
	byte where;

end:	do
	:: d_step { above != NONE && cached == NONE -> cached = above }
	:: d_step { cached != NONE && held == NONE ->
		where = cached;
		assert(!table[where].freed);
		held = table[where].page }
	:: atomic { !lazy && held != NONE -> assert(!freed[held]) }
	:: d_step { cached = NONE; held = NONE } /* whenever it likes */
	:: d_step { !lazy -> lazy = true }
	:: d_step { lazy -> lazy = false;
		if
		:: behind -> cached = NONE; held = NONE; behind = false
		:: else -> skip
		fi }
	od
}

/* For pages; for tables lazy CPUs, too. */
inline flush(of_tables) {
	d_step {
		if
		:: lazy && !of_tables -> behind = true
		:: else -> cached = NONE; held = NONE; behind = false
		fi
	}
}

active [2] proctype Installs() {
	byte found;

again:	LOCK(lock_above);
	if
	:: above == NONE && tables < TABLES -> tables++; above = tables
	:: else -> skip
	fi;
	lock_above = false;

	reads[_pid - 1] = true;
	found = above;
	if
	:: found == NONE ->
		reads[_pid - 1] = false;
		if
		:: tables < TABLES -> goto again
		:: else -> goto done
		fi
	:: else -> skip
	fi;
	LOCK(table[found].lock);
	assert(!table[found].freed);
#ifndef MUTATE_cut_no_look
	if
	:: above != found ->
		table[found].lock = false;
		reads[_pid - 1] = false;
		goto again
	:: else -> skip
	fi;
#endif
	if
	:: table[found].page == NONE -> d_step {
		pages++;
		table[found].page = pages }
	:: else -> skip
	fi;
	table[found].lock = false;
	reads[_pid - 1] = false;
done:	over++
}

active proctype Cuts() {
	byte old, page;

	LOCK(lock_above);
	d_step { old = above; above = NONE };
	lock_above = false;
	if
	:: old != NONE ->
#ifndef MUTATE_cut_unflushed
		flush(false);
#endif
		LOCK(table[old].lock);
		d_step { page = table[old].page; table[old].page = NONE };
		table[old].lock = false;
		freed[page] = page != NONE;
#ifndef MUTATE_cut_lazy_left
		flush(true);
#endif
#ifndef MUTATE_cut_no_rcu
		!reads[0]; !reads[1];
#endif
		table[old].freed = true
	:: else -> skip
	fi;
	over++
}

/* All that was installed can be found, or is free. */
active proctype Looks() {
	byte n;

	atomic { over == 3 ->
		for (n : 1 .. pages) {
			assert(freed[n] ||
			       (above != NONE && table[above].page == n))
		}
	}
}
