/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * I2: what may not be written to is not written to through a stale translation.
 * One thread unmaps memory with a skipped flush; one faults and gets the frame,
 * in a mapping Q that may recycle; one moves the page to a mapping R that has
 * nothing to do with it (UFFDIO_MOVE); one makes R usable, and read-only after
 * that. The peer has the stale translation, which writes.
 *
 * Follows __fpr_recycle_anon(), __fpr_mprotect() and move_pages().
 */
mtype = { mapped, parked, in_q, in_r };

bool lock;		/* mmap_lock, held for writing or through a munmap() */
bool r_lock;		/* of R: a move, or a change of its flags */
mtype at = mapped;
bool r_write;		/* VM_WRITE of R */
bool promised;		/* mprotect() has said that R is read-only */
bool holds = true;
bool owed;

#define LOCK(l) atomic { !l -> l = true }

active proctype Peer() {
end:	do
	:: atomic { promised -> assert(!(holds && at == in_r)) }
	:: d_step { at == mapped && !holds -> holds = true }
	od
}

active proctype Unmaps() {
	LOCK(lock);
	owed = true;
	at = parked;
	lock = false
}

active proctype Faults() {
	if
	:: d_step { at == parked -> at = in_q }
#ifdef MUTATE_recycle_forced
	/* A write that is forced on a mapping without the right. */
	:: d_step { at == parked -> at = in_r }
#endif
	:: skip
	fi
}

active proctype Moves() {
#ifndef MUTATE_move_unlocked
	LOCK(r_lock);
#endif
	if
	:: r_write -> if
		:: at == in_q -> at = in_r
		:: else -> skip
		fi
	:: else -> skip
	fi;
#ifndef MUTATE_move_unlocked
	r_lock = false
#endif
}

/* mprotect(): PROT_NONE to writable, without a flush, and to read-only. */
active proctype Protects() {
	LOCK(lock);
	LOCK(r_lock);
	r_write = true;
	r_lock = false;
	lock = false;
	LOCK(lock);
	LOCK(r_lock);
	r_write = false;
#ifdef MUTATE_protect_marked
	skip;
#else
	if
	:: owed -> d_step { holds = false; owed = false }
	:: else -> skip
	fi;
#endif
	promised = true;
	r_lock = false;
	lock = false
}
