/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * I6 and I7: the charge of a page that is to be parked, beside the end of the
 * last context. The charge is kept when the page is uncharged and found again
 * when it is freed, if the flag of the hooks is still set then.
 *
 * One context comes after the other, pages are freed all the time.
 *
 * Follows __cf_keep_charge(), cf_charge_take(), __cf_park() and
 * cf_contexts_dec().
 */
#define CONTEXTS 2
#define PAGES 2

bool used;		/* cf_used */
bool reached;		/* a context is alive that can reach the frames */
byte kept;		/* cf_nr_kept */
byte freed;

/* uncharge_folio(), then free_unref_page(). */
proctype Frees() {
	bool record;

	if
	:: used && reached ->
#ifndef MUTATE_counted_late
		kept++;
#endif
		if
		:: reached -> record = true
		:: else -> kept--
		fi
#ifdef MUTATE_counted_late
		; kept++
#endif
	:: else -> skip
	fi;
	if
	:: used ->
		if
		/* Parked, or given back at once. */
		:: record -> kept--; record = false
		:: else -> skip
		fi
	:: else -> assert(!record)
	fi;
	freed++
}

proctype Lives() {
	byte n;

	for (n : 1 .. CONTEXTS) {
		used = true;
		reached = true;
		reached = false;
		/* cf_contexts_dec() */
#ifdef MUTATE_cleared_anyway
		used = false
#else
		if
		:: !kept -> used = false
		:: else -> skip
		fi
#endif
	}
	/* The last one: nobody frees any more. */
	freed == PAGES;
	used = true;
	if
	:: !kept -> used = false
	:: else -> skip
	fi;
	assert(!used)
}

init {
	byte n;

	atomic {
		run Lives();
		for (n : 1 .. PAGES) {
			run Frees()
		}
	}
}
