/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * M12: a morsel is copied while a thread writes to it, first to one region and then to another one,
 * and again. The copy never has a later write without an earlier one, and gets none when it is
 * made.
 *
 * A CPU may cache the right to write at any time while an entry has it, and write by that until it
 * is flushed. Who has no right faults: he waits until the copy is made, and gets a page of his own.
 * With HOLE the first region has no table at first: whoever populates it waits as well.
 *
 * Each sees the steps of the others at once here: the barriers are in the code.
 *
 * Follows morsel_copy_all(), morsel_own_step() and morsel_make_table().
 */
#define REGIONS 2
#define WRITES 4	/* numbered, by turns to both regions */

bool there[REGIONS];	/* the origin has a table */
bool right[REGIONS];	/* its entry above has RW */
bool shared[REGIONS];	/* the copy leads there, too */
byte value[REGIONS];	/* what is in the origin's page */
byte copy[REGIONS];	/* what is in the copy's page, if it is not the same */
bool apart[REGIONS];	/* it is not */
bool cached[REGIONS];	/* by the CPU: the right to write, to what the entry led to then */
bool cached_shared[REGIONS];	/* that is what the copy has */
bool copying, made;

/* To what a CPU reaches by an entry that it has cached, or by the one of now. */
inline write(r, n, old) {
	if
	:: (old) && apart[r] -> copy[r] = n
	:: else ->
		value[r] = n;
		if
		:: shared[r] && !apart[r] -> copy[r] = n
		:: else -> skip
		fi
	fi
}

active proctype Writer() {
	byte n, r;

	for (n : 1 .. WRITES) {
		r = (n - 1) % REGIONS;
again:		if
		:: d_step { cached[r] -> write(r, n, cached_shared[r]);
			/* What is in the copy stays in order. */
			assert(!made || !shared[r] || apart[r]) }
		:: d_step { there[r] && right[r] && !cached[r] ->
			cached[r] = true;
			cached_shared[r] = shared[r] && !apart[r] }; goto again
		/* Faults. */
		:: else ->
#ifdef MUTATE_copy_unlocked
			!copying;
#endif
			/* Under the lock of the table. */
			d_step {
#if !defined(MUTATE_copy_beside) && !defined(MUTATE_copy_hole_beside) && !defined(MUTATE_copy_unlocked)
				!copying;
#endif
				if
				:: !there[r] ->
					there[r] = true; right[r] = true
				:: there[r] && !right[r] ->
					if
					:: shared[r] && !apart[r] ->
						apart[r] = true;
						copy[r] = value[r]
					:: else -> skip
					fi;
					right[r] = true
				:: else -> skip
				fi
			};
			goto again
		fi
	}
}

active proctype Copier() {
	byte r;

	d_step {
#ifndef HOLE
		there[0] = true; right[0] = true;
#endif
		there[1] = true; right[1] = true
	};
	copying = true;
	for (r : 0 .. REGIONS - 1) {
		/* Under the lock of the table. */
		d_step {
			if
			:: there[r] ->
				shared[r] = true; copy[r] = value[r];
#ifndef MUTATE_copy_writable
				right[r] = false
#endif
			:: else -> apart[r] = true; copy[r] = 0
			fi
		}
	}
#ifndef MUTATE_copy_unflushed
	atomic { cached[0] = false; cached[1] = false };
#endif
	made = true;
	/* Write n is there, so all before it are: to both regions by turns. */
	assert(copy[1] == 0 || copy[0] >= copy[1] - 1);
	assert(copy[0] <= copy[1] + 1);
	copying = false
}
