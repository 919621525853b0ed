/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * M12: a page that a morsel shares with its copy is replaced by one of its own, which is then written
 * to; after that something else is written, which another CPU of the morsel reads first. It never
 * sees the later write without the earlier one. Meanwhile the copy goes: nobody reads a page that
 * is free.
 *
 * Two threads may write at the same time. Who comes second finds the page without RW, and flushes if
 * somebody may not have (@cutting). Each sees the steps of the others at once here.
 *
 * Follows morsel_own_leaf() and morsel_page_put().
 */
#define SHARED 1
#define OWN 2

byte entry = SHARED;	/* of the morsel: which page, */
bool right;		/* and may it be written to? */
byte cached;		/* by the CPU that reads: which page */
bool written;		/* the page of its own has what was written */
bool later;		/* what is written after that */
byte users = 2;		/* tables that lead to the shared page */
bool freed;		/* it is */
byte cutting;

active proctype Reader() {
	bool saw;

end:	do
	:: d_step { cached == 0 -> cached = entry }
	:: d_step { cached != 0 ->
		assert(cached == OWN || !freed);
		assert(!saw || (cached == OWN && written)) }
	:: later -> saw = true
	:: d_step { cached = 0 }
	od
}

inline put() {
	d_step {
		users--;
		if
		:: users == 0 -> freed = true
		:: else -> skip
		fi
	}
}

active [2] proctype Writer() {
	bool mine, found, flushes;

again:	atomic {
		if
		:: entry == OWN && right -> goto writes
		:: else -> cutting++
		fi
	};
	/* Under the lock of the table. */
	d_step {
		mine = entry == SHARED;
		if
		:: mine -> entry = OWN;
#ifdef MUTATE_own_right
			right = true
#endif
		:: else -> skip
		fi
	};
#ifdef MUTATE_own_put_early
	if
	:: mine -> put()
	:: else -> skip
	fi;
#endif
	flushes = mine;
#ifndef MUTATE_own_second
	d_step { flushes = flushes || cutting > 1 };
#endif
	if
#ifndef MUTATE_own_unflushed
	:: flushes -> cached = 0
	:: else -> skip
#else
	:: skip
#endif
	fi;
	/* Under the lock again. */
	right = true;
	cutting--;
#ifndef MUTATE_own_put_early
	if
	:: mine -> put()
	:: else -> skip
	fi;
#endif
	goto again;
writes:	written = true;
	later = true
}

/* The copy goes, or gives the page up; whoever maps it has flushed. */
active proctype Copy() {
	put()
}
