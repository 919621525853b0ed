/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * I1 when a context ends and another one gets its id. X maps a page cache frame,
 * unmaps it with a skipped flush, or leaves that to its exit; Y gets the id and
 * does the same, its generations lower or higher than those in the tags of X.
 * Somebody else frees the frame, and finds a context by the id in the tag; reclaim
 * tags for X until its tables are gone; Y is drained.
 *
 * Follows cf_ctx_create(), __cf_exit_begin(), __cf_exit_end(), cf_pool_hold(),
 * cf_pool_release() and cf_tag_combine().
 */
#define X 0
#define Y 1
#define NOBODY 2
#define X_GEN 3		/* of X, which does not flush */

typedef Ctx {
	byte started;
	byte completed;
	bool dead;
	bool lock;	/* of the pool */
	bool pool;	/* it has the frame */
	bool lives;	/* threads of the process run */
	bool pte;
	bool holds;	/* a CPU has a translation */
	bool freed	/* the memory of the context is something else by now */
};
Ctx ctx[2];
byte found = NOBODY;	/* the context with the id, which both get */

/* TAKEN: on its way between two places, and not in use. */
mtype = { CACHE, PARKED, TAKEN, FREE };
mtype frame = CACHE;
byte users;		/* references: mappings, and unmaps under way */
byte tag;		/* 0: none, else the generation and 1 */
byte readers;		/* of RCU */
bool ptl;		/* lock of the page table of X */

#define STALE(c) (tag && !ctx[c].dead && tag - 1 >= ctx[c].completed)
#define LOCK(l) atomic { !l -> l = true }

init {
	d_step {
		ctx[X].started = X_GEN;
		ctx[X].completed = X_GEN;
		ctx[X].lives = true;
		ctx[X].pte = true;
		users = 1;
		found = X
	}
	atomic { run Walker(); run Judge(); run First(); run Second();
		 run Frees(); run Drains(); run Reclaim() }
}

proctype Walker() {
end:	do
	:: d_step { ctx[X].lives && ctx[X].pte && !ctx[X].holds -> ctx[X].holds = true }
	:: d_step { ctx[Y].lives && ctx[Y].pte && !ctx[Y].holds -> ctx[Y].holds = true }
	od
}

proctype Judge() {
end:	do
	:: atomic { frame == FREE ->
		assert(!(ctx[X].lives && ctx[X].holds));
		assert(!(ctx[Y].lives && ctx[Y].holds));
		break }
	od
}

/* cf_tag_combine(): two tags with the same id. */
inline put_tag(gen) {
	d_step {
		if
#ifndef MUTATE_newer_wins
		:: tag > gen -> skip
#endif
		:: else -> tag = gen + 1
		fi
	}
}

inline unmap(c) {
	if
	:: d_step { ctx[c].pte && !ptl -> ctx[c].pte = false };
		put_tag(ctx[c].started);
		users--
	:: !ctx[c].pte -> skip
	fi
}

/* cf_pool_hold(): parked with whom the tag names, or free. */
inline hold() {
	readers++;
	who = found;
	assert(who == NOBODY || !ctx[who].freed);
	if
	:: who != NOBODY && STALE(who) ->
		LOCK(ctx[who].lock);
		assert(!ctx[who].freed);
		d_step {
			if
#ifdef MUTATE_dead_unseen
			:: tag && tag - 1 >= ctx[who].completed ->
#else
			:: STALE(who) ->
#endif
				ctx[who].pool = true;
				frame = PARKED
			:: else -> frame = FREE
			fi;
			ctx[who].lock = false
		}
	:: else -> frame = FREE
	fi;
	d_step { who = 0; readers-- }
}

/* cf_pool_take() */
inline take(c) {
	LOCK(ctx[c].lock);
	d_step {
		if
		:: ctx[c].pool -> ctx[c].pool = false; frame = TAKEN; taken = true
		:: else -> skip
		fi;
		ctx[c].lock = false
	}
}

/* The page cache drops the page. */
proctype Frees() {
	byte who;

end:	d_step { frame == CACHE && !users -> frame = TAKEN };
	hold()
}

/* cf_settle_one(). What it has flushed for is clean, whatever the tag says. */
proctype Drains() {
	bool taken;
	byte gen, who;

end:	ctx[Y].pool;
	take(Y);
	d_step { ctx[Y].started++; gen = ctx[Y].started }
	ctx[Y].holds = false;
	ctx[Y].completed = gen;
#ifndef MUTATE_tag_kept
	tag = 0;
#endif
	hold();
	/* I6: it gets somewhere. */
	assert(frame == FREE)
}

proctype First() {
	bool taken;
	byte who;

	if
	:: unmap(X)
	:: true -> skip
	fi;
	/* __cf_exit_begin() */
#ifndef MUTATE_exit_early
	ctx[X].lives = false;
#endif
#ifndef MUTATE_erase_late
	found = NOBODY;
#endif
#ifndef MUTATE_dead_late
	LOCK(ctx[X].lock);
	d_step { ctx[X].dead = true; ctx[X].lock = false }
#endif
#ifndef MUTATE_no_exit_drain
	take(X);
	if
	:: taken -> hold()
	:: else -> skip
	fi;
#endif
	ctx[X].dead = true;
	/* The page tables go. */
	LOCK(ptl);
	d_step {
		if
		:: ctx[X].pte -> ctx[X].pte = false; users--
		:: else -> skip
		fi;
		ptl = false
	}
	ctx[X].lives = false;
	/* __cf_exit_end() */
#ifndef MUTATE_free_no_rcu
	!readers;
#endif
	ctx[X].freed = true;
	assert(!ctx[X].pool)
#ifdef MUTATE_erase_late
	; found = NOBODY
#endif
}

/* cf_ctx_create() */
proctype Second() {
end:	found == NOBODY;
	if
	:: ctx[Y].started = 1
	:: ctx[Y].started = X_GEN + 2
	fi;
#ifdef MUTATE_born_completed
	ctx[Y].completed = ctx[Y].started + 1;
#else
	ctx[Y].completed = ctx[Y].started;
#endif
	d_step { ctx[Y].lives = true; found = Y }
	d_step {
		if
		:: frame == CACHE -> users++; ctx[Y].pte = true
		:: else -> skip
		fi
	}
	unmap(Y)
}

/* Clears the accessed bit of an entry of X, and tags. */
proctype Reclaim() {
end:	atomic { ctx[X].pte && !ptl -> ptl = true };
	put_tag(ctx[X].started);
	ptl = false
}
