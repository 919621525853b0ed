/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * I1 for a recycling context of several processes, a group: frames that one
 * member left are recycled by another. A member joins, leaves or starts another
 * program, and maps and unmaps before and after; meanwhile reclaim removes its
 * entries, its threads fault, the other member does the same and may leave, too,
 * and the group and the process are flushed. A second thread of it may leave at
 * any time, also before it has joined, or change the rights of a mapping. One frame.
 *
 * A process in a group tags with the id and the generation of the group, else with
 * its own. A flush of the group takes a number, flushes the members of its list,
 * one after the other, and is credited. Who joins is listed before it tags; who
 * leaves stops to tag, waits for those who do, flushes all, and goes off the list;
 * who finds that another thread has begun that waits for it.
 * Whether the entry is cleared before the group is looked at does not matter, if
 * both are in one RCU read side.
 *
 * Of CPUs and their flushes there is only what frames.pml shows: who is asked has
 * flushed before the generation is credited. A frame that two contexts can reach
 * gets the shared tag, which nobody settles here (shared.pml).
 *
 * Follows cf_group_enter(), cf_group_change(), cf_group_end(), cf_group_flush(),
 * cf_owes_skips(), cf_tag_ctx() and __fpr_recycle().
 */
#define A 0		/* comes and goes */
#define B 1		/* is in the group from the start */
#define G 2		/* the group */
#define SHARED 3
#define NONE 4

#ifndef CYCLES
#define CYCLES 1	/* how often B maps the frame */
#endif

typedef Tag { byte id; byte gen };

/* COMMON: of a file that anybody may read. FILE: of one for @user only. */
mtype = { COMMON, FILE, PARKED, FREE };
mtype frame = COMMON;
byte user;
bool agreed;		/* who was @user was in the group, and has not left since */
byte users;		/* references: mappings, and unmaps under way */
Tag slot;
byte started[3] = 1;
byte completed[3] = 1;
byte skipped[3];	/* newest generation that was tagged with, plus 1 */

bool pte[2];
bool holds[2];		/* a CPU has a translation */
bool listed[2];		/* in the list of members */
bool group[2];		/* ctx->group */
bool chosen[2] = true;	/* mm->cf_group */
byte leaving[2];	/* ctx->leaving */
bool mmap_lock;		/* of A, if rights are changed */
bool inside[2];		/* has agreed to be in the group, and may be in it yet */

bool reads[3];		/* RCU: reclaim from A, faults of A, faults of B */

#define STALE (slot.id == SHARED || \
	       (slot.id != NONE && slot.gen >= completed[slot.id]))

init {
	d_step {
		slot.id = NONE;
		listed[B] = true;
		group[B] = true;
		inside[B] = true
	}
	atomic { run Walker(); run Judge(); run Frees();
		 run Guest(); run Stays();
#ifdef RECLAIM
		 run Reclaim();
#endif
#ifdef FAULTS
		 run Faults(A, 1); run Faults(B, 2);
#endif
#ifdef OWN
		 run Own();
#endif
#ifdef FLUSHES
		 run Flush();
#endif
#ifdef SECOND
		 run Second();
#endif
#ifdef PROTECTS
		 run Protects();
#endif
	}
}

proctype Walker() {
end:	do
	:: d_step { pte[A] && !holds[A] -> holds[A] = true }
	:: d_step { pte[B] && !holds[B] -> holds[B] = true }
	od
}

#define MAY_SEE(who) (frame != FREE && \
	(frame != FILE || user == who || (inside[who] && agreed)))

/* What is clean nobody can reach, and who can reach a frame may see what it has. */
proctype Judge() {
end:	do
	:: atomic { !users && !STALE -> assert(!holds[A] && !holds[B]) }
	:: atomic { holds[A] -> assert(MAY_SEE(A)) }
	:: atomic { holds[B] -> assert(MAY_SEE(B)) }
	od
}

/* The page cache drops the page; a drain finds it clean, and a stranger takes it. */
proctype Frees() {
end:	do
	:: d_step { (frame == COMMON || frame == FILE) && !users ->
		if
		:: STALE -> frame = PARKED
		:: else -> frame = FREE; slot.id = NONE
		fi }
	:: d_step { frame == PARKED && !STALE -> frame = FREE; slot.id = NONE }
	od
}

/* cf_owe(), then cf_tag_combine() */
inline store(owner, now) {
#ifdef PROTECTS
	owe(owner, now);
#endif
	d_step {
		if
		:: slot.id == owner && slot.gen >= now -> skip
		:: slot.id == owner || !STALE -> slot.id = owner; slot.gen = now
		:: else -> slot.id = SHARED; slot.gen = 0
		fi
	}
}

inline owe(owner, now) {
	d_step {
		if
		:: skipped[owner] <= now -> skipped[owner] = now + 1
		:: else -> skip
		fi
	}
}

#define OWED(who) (skipped[who] && skipped[who] - 1 >= completed[who])

inline map(me) {
	if
	:: d_step { !pte[me] &&
		    (frame == COMMON || (frame == FILE && user == me)) ->
		users++;
		pte[me] = true }
	:: true -> skip
	fi
}

/* Whose frame will it be, and since when? */
inline read_tag(me) {
	owner = (group[me] -> G : me);
	gen = started[owner]
}

/* Clears the entry, unless others were faster, and skips the flush. */
inline unmap(me) {
#ifdef MUTATE_gen_early
	read_tag(me);
#endif
	if
	:: d_step { pte[me] -> pte[me] = false };
#ifndef MUTATE_gen_early
		read_tag(me);
#endif
		store(owner, gen);
		users--
	:: !pte[me] -> skip
	fi;
	d_step { owner = 0; gen = 0 }
}

/* Removes an entry of A without its mmap_lock. Looks at the group when it likes. */
proctype Reclaim() {
	byte owner, gen;

	reads[0] = true;
	if
	:: unmap(A)
	:: owner = (group[A] -> G : A);
		if
		:: d_step { pte[A] -> pte[A] = false };
			gen = started[owner];
			store(owner, gen);
			users--
		:: !pte[A] -> skip
		fi;
		d_step { owner = 0; gen = 0 }
	fi;
	reads[0] = false
}

/* __fpr_recycle(), without mmap_lock, too. */
proctype Faults(byte me, reader) {
	bool member;

	reads[reader] = true;
	member = group[me];
#ifdef MUTATE_recycle_no_rcu
	reads[reader] = false;
#endif
	if
	:: d_step { frame == PARKED && (slot.id == me || (slot.id == G && member)) ->
		frame = FILE; user = me; agreed = inside[me] }
	:: true -> skip
	fi;
	reads[reader] = false
}

inline flush_group(gen) {
	d_step { started[G]++; gen = started[G] }
#ifdef MUTATE_credit_early
	credit(gen);
#endif
	if
	:: listed[A] -> holds[A] = false
	:: else -> skip
	fi;
#ifdef MUTATE_credit_between
	credit(gen);
#endif
	if
	:: listed[B] -> holds[B] = false
	:: else -> skip
	fi;
	credit(gen)
}

inline credit(number) {
	d_step {
		if
		:: completed[G] < number -> completed[G] = number
		:: else -> skip
		fi
	}
}

#ifdef FLUSHES
proctype Flush() {
	byte gen, n;

	for (n : 1 .. FLUSHES) { flush_group(gen) }
}
#endif

/* A flush of A alone, for whatever reason. */
proctype Own() {
	byte gen;

#ifdef MUTATE_own_credits_group
	d_step { started[G]++; gen = started[G] }
	holds[A] = false;
	credit(gen)
#else
	d_step { started[A]++; gen = started[A] }
	holds[A] = false;
	completed[A] = gen
#endif
}

/* The first mapping, under mmap_lock. */
inline join() {
	d_step { inside[A] = chosen[A] }
#ifdef MUTATE_join_unlisted
	group[A] = true;
	listed[A] = true
#else
	listed[A] = true;
#ifdef MUTATE_join_unchecked
	group[A] = true
#else
	if
	:: d_step { chosen[A] -> group[A] = true }
	:: !chosen[A] -> listed[A] = false
	fi
#endif
#endif
}

/* What the leaver and whoever else was told of it count on from now on. */
inline left(me) {
#ifndef MUTATE_leave_early
	!leaving[me];
#endif
	d_step { inside[me] = false; agreed = agreed && user != me }
}

/* No lock is held. */
inline leave(me, member) {
#if defined(PROTECTS) && !defined(MUTATE_leave_unowed)
	owe(me, started[me]);
#endif
	d_step {
		chosen[me] = false;
		member = group[me];
		group[me] = false;
		leaving[me] = leaving[me] + member
	}
	if
	:: member ->
#ifndef MUTATE_leave_no_rcu
		/* synchronize_rcu() */
		!reads[0];
		!reads[1];
		!reads[2];
#endif
#ifdef MUTATE_leave_unlisted
		listed[me] = false;
#endif
#ifdef MUTATE_leave_flushes_self
		d_step { started[G]++; gen = started[G] }
		holds[me] = false;
		credit(gen);
#else
#ifndef MUTATE_leave_unflushed
		flush_group(gen);
#endif
#endif
		d_step { listed[me] = false; leaving[me]--; member = false }
	:: else -> skip
	fi;
	gen = 0;
	left(me)
}

#ifdef SECOND
/* Another thread of A changes its credentials. */
proctype Second() {
	byte gen;
	bool member;

	leave(A, member)
}
#endif

/* mprotect() of what A has mapped elsewhere, in a frame that it has recycled. */
proctype Protects() {
	bool member, owed;
	byte gen;

end:	d_step { frame == FILE && user == A && !pte[A] && !mmap_lock ->
		mmap_lock = true }
#ifdef MUTATE_owes_group_last
	owed = OWED(A);
	member = group[A];
	owed = owed || (member && OWED(G));
#else
	member = group[A];
	owed = member && OWED(G);
	owed = owed || OWED(A);
#endif
	if
	:: owed ->
		d_step { started[A]++; gen = started[A] }
		holds[A] = false;
		completed[A] = gen
	:: else -> skip
	fi;
	assert(!(holds[A] && frame == FILE && user == A));
	mmap_lock = false
}

/*
 * execve() of a program with other credentials. It waits for the other threads,
 * then nobody runs in the old address space any more, and the new one has no
 * translations.
 */
inline exec() {
	atomic {
		!reads[1] ->
#ifndef MUTATE_creds_ignored
		group[A] = false;
#endif
		d_step {
			if
			:: pte[A] -> pte[A] = false; users--
			:: else -> skip
			fi;
			holds[A] = false;
			inside[A] = false
		}
	}
	listed[A] = false
}

#ifdef PROTECTS
#define LOCK d_step { !mmap_lock -> mmap_lock = true }
#define UNLOCK mmap_lock = false
#else
#define LOCK skip
#define UNLOCK skip
#endif

proctype Guest() {
	byte owner, gen;
	bool member;

	map(A);
	join();
	LOCK;
	unmap(A);
	map(A);
	UNLOCK;
#ifdef EXEC
	exec();
#else
	leave(A, member);
	LOCK;
	unmap(A);
	UNLOCK;
#endif
	LOCK;
	map(A);
	unmap(A);
	UNLOCK
}

proctype Stays() {
	byte owner, gen, n;
	bool member;

	for (n : 1 .. CYCLES) {
		map(B);
		unmap(B)
	}
#ifdef BOTH_LEAVE
	n = 0;
	leave(B, member)
#endif
}
