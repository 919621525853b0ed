/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * I1, I3, I4 and I7 while the hooks come and go. They are switched on one CPU
 * after the other, by a work item, and @ready says that they are everywhere. Two
 * processes come with a context and go, at the same time or not. Each unmaps a
 * page, whose frame is freed on any CPU, and leaves page tables, which the munmap()
 * of a neighbour spares, on any CPU; and reclaim clears the accessed bit of
 * another page and evicts it, on any CPU.
 *
 * Frames have the shared tag, which is settled when the last context goes; other
 * debts are always owed here, frames.pml and evict.pml have them.
 *
 * Follows fpr_key_update(), fpr_contexts_inc(), fpr_contexts_dec(),
 * fpr_settle_shared_idle(), __fpr_skip_flush(), fpr_arena_may_keep(),
 * __fpr_young_cleared() and __fpr_evicted().
 */
#define CPUS 2
#define PROCESSES 2

bool hooks[CPUS];	/* the code of this CPU has them */
bool ready;		/* fpr_ready */
bool lock;		/* fpr_ready_lock */
byte contexts;
byte started = 1;	/* of the shared context */
byte completed = 1;
bool queued;		/* fpr_key_work */
bool works;

typedef Process {
	bool pte;	/* the page that is evicted is mapped, and the process runs */
	bool holds;	/* a CPU has a translation of the frame that is freed, */
	bool caches;	/* and of the page that is evicted */
	bool young;	/* the accessed bit of the latter */
	bool noted	/* it was cleared, and there is a tag */
};
Process process[PROCESSES];

#define LOCK atomic { !lock -> lock = true }
#define UNLOCK lock = false

active proctype Work() {
	bool used;

end:	do
	:: d_step { queued -> queued = false; works = true };
#ifdef MUTATE_looks_unlocked
		used = contexts > 0;
		LOCK;
#else
		LOCK;
		used = contexts > 0;
#endif
#ifndef MUTATE_ready_late
		if
		:: !used -> ready = false
		:: else -> skip
		fi;
#endif
		UNLOCK;
		if
		:: used ->
#ifdef MUTATE_ready_early
			ready = true;
#endif
			hooks[0] = true;
			hooks[1] = true;
#ifndef MUTATE_no_flush_all
			/* flush_tlb_all() */
			d_step {
				process[0].holds = false;
				process[0].caches = false;
				process[1].holds = false;
				process[1].caches = false
			}
#endif
			ready = true
		:: else ->
			hooks[0] = false;
			hooks[1] = false
#ifdef MUTATE_ready_late
			; ready = false
#endif
		fi;
		d_step { used = false; works = false }
	od
}

/* When nothing is left to do the hooks are there, or not. */
#ifdef SETTLED
active proctype Judge() {
end:	do
	:: atomic { !queued && !works && !lock ->
		assert(contexts > 0 -> ready : !hooks[0] && !hooks[1]) }
	od
}
#endif

/* On which CPU? */
inline any(c) {
	if
	:: c = 0
	:: c = 1
	fi
}

/* munmap() leaves page tables, and that of a neighbour has to know (I4). */
inline keeps_tables() {
	any(c);
	if
#ifdef MUTATE_unready_keeps
	:: hooks[c] -> tables = true
#else
	:: hooks[c] -> tables = ready
#endif
	:: else -> skip
	fi;
	any(c);
	if
	:: hooks[c] -> skip
	:: else -> assert(!tables)
	fi;
	d_step { c = 0; tables = false }
}

/* munmap(), and whoever drops the last reference. */
inline unmaps(p) {
	process[p].holds = true;
	any(c);
	if
#ifdef MUTATE_unready_skips
	:: hooks[c] -> skip
#else
	:: hooks[c] ->
		if
		:: ready -> skip
		:: else -> process[p].holds = false
		fi
#endif
	:: else -> process[p].holds = false
	fi;
	gen = started;
	any(c);
	/* Parked, or free. */
	if
	:: hooks[c] && gen >= completed -> skip
	:: else -> assert(!process[p].holds)
	fi;
	d_step { c = 0; gen = 0 }
}

inline come(p) {
	LOCK;
	contexts++;
	process[p].pte = true;
	if
#ifndef MUTATE_not_queued
	:: !ready -> queued = true
#endif
	:: else -> skip
	fi;
	UNLOCK
}

/* fpr_contexts_dec(); the hooks linger for as long as it takes. */
inline uncount() {
	LOCK;
	contexts--;
#ifdef MUTATE_idle_unlocked
	last = !contexts;
	UNLOCK;
	if
	:: last -> queued = true; settle_idle()
	:: else -> skip
	fi
#else
	if
#ifndef MUTATE_stays_on
	:: !contexts -> queued = true; settle_idle()
#endif
	:: else -> skip
	fi;
	UNLOCK
#endif
}

/* fpr_settle_shared_idle() */
inline settle_idle() {
	started++;
	completed = started
}

proctype Lives(byte p) {
	byte c, gen;
#ifdef TABLES
	bool tables;
#endif
#ifdef MUTATE_idle_unlocked
	bool last;
#endif

	come(p);
#ifdef MUTATE_uncounted_early
	uncount();
#endif
#ifdef TABLES
	keeps_tables();
#endif
	unmaps(p);
	/* Nobody runs any more, and its frames go. */
	d_step {
		process[p].pte = false;
		process[p].holds = false;
		process[p].caches = false
	}
#ifndef MUTATE_uncounted_early
	uncount()
#endif
}

/* The page is used: a bit, and an entry. */
proctype Uses(byte p) {
end:	do
	:: d_step { process[p].pte && !process[p].caches ->
		process[p].young = true;
		process[p].caches = true }
	od
}

proctype Reclaim(byte p) {
	byte c;
	bool was;

	any(c);
end:	d_step { process[p].pte -> process[p].young = false };
	if
	:: hooks[c] -> process[p].noted = true
	:: else -> skip
	fi;
	any(c);
	d_step { was = process[p].young; process[p].pte = false };
	if
	:: hooks[c] -> skip
	:: else -> goto flushes
	fi;
	if
#ifndef MUTATE_unready_evicts
	:: !ready -> goto flushes
#endif
	:: else -> skip
	fi;
	assert(was || process[p].noted || !process[p].caches);
flushes: skip
}

init {
	atomic {
		run Lives(0);
		run Lives(1);
#ifdef RECLAIM
		run Uses(0);
		run Reclaim(0)
#endif
	}
}
