/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * M11: a page of zeroes is taken from a morsel, and nothing that anybody has written is
 * lost. There are two pages: the one that is looked at, and the one that somebody gets who
 * finds none. A CPU writes by what it has cached, by a walk, or by a fault; the kernel by a
 * reference that it takes at the entry, with the lock of the table or without (GUP).
 *
 * What was written last is what the offset shows. Each sees the steps of the others at once
 * here.
 *
 * Follows morsel_steal_leaves(), morsel_get_page() and gup_fast_pte_range().
 */
#define NONE 0

bool lock;		/* of the table */
byte pte = 1;		/* which page the entry leads to */
byte held;		/* which page the CPU has cached */
byte word[3];		/* what is in each page; 0: zeroes */
byte refs[3];		/* of those who use it, beside the object */
byte last;		/* what was written last */
bool over;		/* the steal is */
bool cpu_over, user_over;

#define LOCK() atomic { !lock -> lock = true }
#define UNLOCK() lock = false

#ifdef MUTATE_steal_pinned
#define UNUSED(page) true
#else
#define UNUSED(page) (refs[page] == 0)
#endif
#ifdef MUTATE_steal_hasty
#define ZERO(page) true
#else
#define ZERO(page) (word[page] == 0)
#endif

/* A page in the place of none: with zeroes. */
inline fault() {
	LOCK();
	if
	:: pte == NONE -> d_step { pte = 2; word[2] = 0 }
	:: else -> skip
	fi;
	UNLOCK()
}

active proctype Processor() {
	byte n;

	for (n : 1 .. 3) {
		if
		:: d_step { pte != NONE && held == NONE -> held = pte }
		:: d_step { held != NONE -> word[held] = n; last = n }
		:: d_step { held == NONE && pte == NONE -> skip }; fault()
		:: d_step { held != NONE -> held = NONE } /* whenever it likes */
		fi
	}
	cpu_over = true
}

/* pwrite(), or a pin: a reference, a write, the end. */
active proctype User() {
	byte page;

#ifdef FAST
	/* Without the lock: a reference, and the entry once more. */
	page = pte;
	if
	:: page != NONE -> refs[page]++;
#ifndef MUTATE_steal_no_second_look
		if
		:: pte == page -> skip
		:: else -> refs[page]--; page = NONE
		fi
#else
		skip
#endif
	:: else -> skip
	fi;
#else
	fault();
	LOCK();
	page = pte;
	if
	:: page != NONE -> refs[page]++
	:: else -> skip
	fi;
	UNLOCK();
#endif
	if
	:: page != NONE ->
		d_step { word[page] = 9; last = 9 };
		refs[page]--
	:: else -> skip
	fi;
	user_over = true
}

active proctype Steals() {
	byte page;
	bool taken;

	LOCK();
	page = pte;
	if
	:: page != NONE && word[page] == 0 ->
#ifndef MUTATE_steal_uncut
		pte = NONE;
#endif
#ifdef MUTATE_steal_unlocked
		UNLOCK();
#endif
#ifndef MUTATE_steal_unflushed
		held = NONE;
#endif
#ifdef MUTATE_steal_thaws
		/* Zeroes, and then references. */
		if
		:: ZERO(page) -> taken = UNUSED(page)
		:: else -> taken = false
		fi;
#else
		if
		:: UNUSED(page) -> taken = ZERO(page)
		:: else -> taken = false
		fi;
#endif
		if
		:: taken -> pte = NONE
		:: else -> pte = page
		fi;
#ifdef MUTATE_steal_unlocked
		LOCK()
#endif
	:: else -> skip
	fi;
	UNLOCK();
	over = true
}

/* Who reads the offset when all is over finds what was written last. */
active proctype Reads() {
	atomic { over && cpu_over && user_over ->
		assert((pte == NONE && last == 0) ||
		       (pte != NONE && word[pte] == last)) }
}
