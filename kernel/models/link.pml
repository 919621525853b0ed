/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * I12: a CPU links the table of a GiB that belongs to no process in its own upper tables, while the
 * morsel is cut there by one entry, and populated again. The entry leads to the empty table of all
 * morsels in between, which is never linked: nobody withdraws when another table comes in its
 * place. And whoever returns from a cut has left no CPU a way to what was there.
 *
 * Each sees the steps of the others at once here: the barriers are in sharers.pml.
 *
 * Follows sharers_fill(), sharers_whole_fill(), morsel_set_table() and morsel_withdraw().
 */
#define TABLES 3
#define NOTHING (TABLES + 1)
#define NONE 0
#define CUTS 2

byte above = NOTHING;	/* which table the entry leads to */
byte linked;		/* the same in the CPU's own table */
byte made, cut;		/* so many tables were made, and cuts are over */
byte withdrawn;		/* a count */
bool fills;		/* between its entry and its second look at the count */

active proctype Processor() {
	byte count, entry;

	do
	:: made == TABLES -> break
	:: else ->
		/* A fault makes a table where there is none. */
		d_step {
			if
			:: above == NOTHING && made < TABLES ->
				made++;
				above = made
			:: else -> skip
			fi
		}
		if
		:: linked == NONE ->
			/* The first look: there is a table to link. */
			if
			:: above != NOTHING ->
				count = withdrawn;
				entry = above;
				if
#ifndef MUTATE_link_nothing
				:: entry == NOTHING -> skip
				:: else ->
#else
				:: true ->
#endif
					d_step { fills = true; linked = entry };
#ifndef MUTATE_link_no_second_look
					if
					:: withdrawn != count -> linked = NONE
					:: else -> skip
					fi;
#endif
					fills = false
				fi
			:: else -> skip
			fi
		:: else -> skip
		fi
	od
}

active proctype Cuts() {
	byte old;

	do
	:: cut == CUTS -> break
	:: else ->
		d_step { old = above; above = NOTHING };
		if
		:: old != NOTHING ->
			withdrawn++;
			linked = NONE;
			/* What it has before its second look it does not use: see sharers_hide(). */
			atomic { !fills -> assert(linked != old) }
		:: else -> skip
		fi;
		cut++
	od
}

active proctype Looks() {
end:	atomic { !fills && linked != NONE ->
		assert(linked != NOTHING)
	}
}
