/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * I5: nobody reads a bad frame through a stale translation. One thread unmaps its
 * page and skips the flush, or takes the frame from the pool again; meanwhile
 * memory_failure() marks it, takes it out of the page tables and flushes for it,
 * if a tag says that somebody may reach it. In between the frame has neither.
 *
 * Each sees the steps of the other at once here: the barriers are in the code.
 *
 * Follows cf_any_bad(), __cf_poisoned() and fpr_recycled().
 */
bool lock;		/* of the page table */
bool pte = true;	/* the entry is there, and rmap knows */
bool holds = true;	/* the peer has the translation */
bool tag;		/* of the frame, stale until the flush */
bool bad;		/* PageHWPoison() */
bool unmapped, handled;

#define LOCK(l) atomic { !l -> l = true }

active proctype Peer() {
end:	do
	:: atomic { unmapped && handled -> assert(!(holds && bad)) }
	:: d_step { pte && !holds -> holds = true }
	od
}

active proctype Unmaps() {
#ifdef MUTATE_looks_early
	bool seen;
#endif
	LOCK(lock);
	pte = false;
	lock = false;
#ifdef MUTATE_looks_early
	seen = bad;
#endif
	tag = true;
#if defined(MUTATE_looks_early)
	if
	:: seen -> d_step { holds = false; tag = false }
	:: else -> skip
	fi;
#elif !defined(MUTATE_poison_unseen)
	if
	:: bad -> d_step { holds = false; tag = false }
	:: else -> skip
	fi;
#endif
#ifdef MUTATE_tag_taken
	/* Recycled, with the tag off for a moment. */
	if
	:: tag -> tag = false; tag = true
	:: else -> skip
	fi;
#endif
	unmapped = true
}

active proctype Fails() {
	bool reached;

#ifdef MUTATE_marks_late
	reached = tag;
#endif
	bad = true;
	LOCK(lock);
	if
	:: pte -> d_step { pte = false; holds = false }
	:: else -> skip
	fi;
	lock = false;
#ifndef MUTATE_marks_late
	reached = tag;
#endif
#ifndef MUTATE_no_poison_flush
	if
	:: reached -> d_step { holds = false; tag = false }
	:: else -> skip
	fi;
#endif
	handled = true
}
