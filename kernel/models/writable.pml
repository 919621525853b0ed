/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * I2 and what the page allocator promises, for frames that a stale translation
 * can write to. A process unmaps an anonymous page with a skipped flush; a CPU
 * writes to it for as long as it holds the translation. Until the flush the frame
 * is memory of the process, as an anonymous page or in its pool, and nothing
 * else; and a page that was zeroed when it was freed is zero when it is handed
 * out, whatever was written in between.
 *
 * Follows cf_tag_gather(), __cf_park(), cf_pool_add(), __fpr_recycle(),
 * __fpr_recycle_anon(), cf_pool_release() and cf_wipe().
 */
#include "cpu.h"

#ifndef CYCLES
#define CYCLES 2	/* unmaps of the page */
#endif

mtype = { ANON, CACHE, PREPARED, POOLED, POOLED_ANON, GOES, FREE, STRANGER };
mtype is = ANON;	/* what the frame is */
bool pte = true;	/* the page is mapped; by a stranger or a file it is not */
bool zero;		/* its contents */
byte tag;		/* 0: none, else generation and 1 */
bool writable;		/* the tag says that it can be written to */
bool parked_writable;	/* CF_PARKED_WRITABLE in page->private */
bool over;

#define RUNS(c) (cpu[c].loaded == MM && !cpu[c].lazy)
#define STALE (tag && tag - 1 >= completed)
#define CLEAR_TAG tag = 0; writable = false

active [CPUS] proctype Cpus() {
end:	do
	:: ASKED(_pid) -> interrupt(_pid)
	:: d_step { RUNS(_pid) && pte && !cpu[_pid].holds -> cpu[_pid].holds = true }
	:: atomic { RUNS(_pid) && cpu[_pid].holds ->
		/* A page of a file, free memory, memory of somebody else. */
		assert(is != CACHE && is != FREE && is != STRANGER);
		zero = false }
	:: RUNS(_pid) -> switch_out(_pid)
	:: !RUNS(_pid) && !over -> switch_in(_pid)
	od
}

/* cf_wipe() */
inline wipe() {
#ifndef MUTATE_unwiped
	zero = true
#else
	skip
#endif
}

/* Under cf_ctx.lock: parked, or not any more. */
inline pool_add() {
	d_step {
		if
		:: STALE ->
			parked_writable = writable;
#ifdef MUTATE_recycle_writable
			is = POOLED
#else
			is = (writable -> POOLED_ANON : POOLED)
#endif
		:: else -> skip
		fi
	}
}

/* munmap() of the anonymous page; its last reference goes. */
inline unmap_and_free() {
	byte gen;

	pte = false;
	gen = tlb_gen;
	d_step {
		tag = gen + 1;
#ifndef MUTATE_tag_plain
		writable = true;
#endif
		gen = 0
	}
	/* free_pages_prepare() */
	zero = true;
	is = PREPARED;
	pool_add();
	if
	:: is == PREPARED ->
		/* It may be settled since a moment ago only. */
#ifndef MUTATE_settled_unwiped
		if
		:: writable -> wipe()
		:: else -> skip
		fi;
#endif
		d_step { CLEAR_TAG; is = FREE }
	:: else -> skip
	fi
}

/* What becomes of the frame next; a fault, or the allocator. */
inline use_again() {
	if
	/* __fpr_recycle_anon(): from both lists; the page is handed out as zero. */
	:: atomic { is == POOLED_ANON || is == POOLED -> is = GOES };
		if
		:: parked_writable -> wipe()
		:: else -> skip
		fi;
		d_step { is = ANON; pte = true }
	/* __fpr_recycle(): for a page of a file. */
	:: d_step { is == POOLED -> is = CACHE }
	/* Handed out as it is, to this process or another one. */
	:: atomic { is == FREE -> assert(zero); is = ANON; pte = true }
	:: atomic { is == FREE -> assert(zero); is = STRANGER }
	:: d_step { is == FREE -> is = CACHE }
	fi
}

active proctype Program() {
	byte i;

	for (i : 1 .. CYCLES) {
		unmap_and_free();
		use_again();
		if
		:: is != ANON -> break
		:: else -> skip
		fi
	}
	over = true
}

/* A drain: cf_pool_take(), cf_flush(), cf_pool_release(). */
active proctype Drains() {
	bool stale;

	do
	:: atomic { is == POOLED || is == POOLED_ANON -> is = GOES; stale = STALE };
#ifdef MUTATE_wipe_early
		if
		:: parked_writable -> wipe()
		:: else -> skip
		fi;
#endif
		if
		:: stale -> flush_tlb_mm(0, true)
		:: else -> skip
		fi;
		d_step { stale = false; CLEAR_TAG }
#ifndef MUTATE_wipe_early
		if
		:: parked_writable -> wipe()
		:: else -> skip
		fi;
#endif
		is = FREE
	:: over -> break
	od
}

#ifdef FLUSHES
/* Full flushes for whatever reason, fork() for one: what is owed is paid. */
active proctype Flushes() {
	byte n;

	for (n : 1 .. FLUSHES) {
		flush_tlb_mm(1, true)
	}
}
#endif
