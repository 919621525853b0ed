/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * I2: a recycled frame gives a stale translation no right that its thread lacks.
 * With protection keys the threads of a process differ in their rights. One
 * thread unmaps a page with a skipped flush; one gives a key to mapping V; one
 * faults on V and may get the frame; the peer has the stale translation, which
 * has no key, and does not have the key.
 *
 * Follows __cf_skip_flush(), fpr_has_keys(), __fpr_recycle(), __fpr_mprotect().
 */
bool lock;		/* mmap_lock, held for writing or through a munmap() */
bool pool;		/* cf_ctx.lock */
bool keyed;		/* cf_ctx.keyed: some mapping has had a key */
bool v_key;		/* V has one */
bool parked;
bool secret;		/* the frame has what V shows */
bool holds = true;	/* the peer has a translation of the frame, without key */
bool pte = true;	/* which is right as long as the page is mapped */
bool owed;

#define LOCK(l) atomic { !l -> l = true }

active proctype Peer() {
end:	do
	:: atomic { holds -> assert(!(secret && v_key)) }
	:: d_step { pte && !holds -> holds = true }
	od
}

active proctype Unmaps() {
	LOCK(lock);
	pte = false;
	owed = true;
	LOCK(pool);
	d_step { parked = true; pool = false }
	lock = false
}

/*
 * pkey_mprotect(), and pkey_free() behind it, which V does not notice. Or mmap()
 * of V to be executed only.
 */
active proctype GivesKey() {
	LOCK(lock);
	/* __fpr_mprotect(), __fpr_placed() */
	keyed = true;
#ifndef MUTATE_no_mprotect
	if
	:: owed -> holds = false; owed = false
	:: else -> skip
	fi;
#endif
	v_key = true;
	lock = false
}

/* Has given up its locks to read, so it meets any of the others anywhere. */
active proctype Faults() {
	bool got;

#ifndef MUTATE_no_pool_lock
	LOCK(pool);
#endif
#ifdef MUTATE_recycle_keyed
	got = true;
#else
	got = !keyed;
#endif
	d_step { got = got && parked; parked = parked && !got };
	pool = false;
	if
	:: got -> secret = true
	:: else -> skip
	fi
}
