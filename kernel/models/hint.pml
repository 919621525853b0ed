/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * I10: an entry gets a NUMA hint without a flush, and meanwhile somebody protects the
 * page by the same entry: write protection, migration. When that is done, no CPU may
 * have the entry. Both hold mmap_lock for reading; what is read and changed of the
 * entry, at one time, is so under its lock.
 *
 * A CPU caches an entry that is accessible, a while after it has read it. Gathers count
 * in tlb_flush_pending; one that is not alone at its end flushes everything. GATHERS:
 * who protects has one, too.
 *
 * Follows latr_hint(), pte_accessible(), change_protection() and tlb_finish_mmu().
 */
#include "cpu.h"
#include "ticks.h"

bool accessible = true;	/* the entry, for the walker, with all rights */
bool taken;		/* somebody took the hint, and the page stayed: read-only */
byte hinted;		/* cf_ctx.hinted: 0 for never, else a generation and 1 */
byte pending;		/* mm->tlb_flush_pending */
bool promised;		/* the page is protected */

#ifdef MUTATE_credit_started
#define OWED (hinted && hinted - 1 >= tlb_gen)
#else
#define OWED (hinted && hinted - 1 >= completed)
#endif

active [CPUS] proctype Cpus() {
end:	do
	:: ASKED(_pid) -> interrupt(_pid)
	:: atomic { RUNS(_pid) && cpu[_pid].holds -> assert(!promised) }
	:: RUNS(_pid) -> switch_out(_pid)
	:: !RUNS(_pid) && !promised -> switch_in(_pid)
#ifdef TICKS
	:: awaited -> tick(_pid)
#endif
	od
}

active [CPUS] proctype Walkers() {
	byte c = _pid - CPUS;

end:	do
	:: d_step { cpu[c].cr3 && accessible && !cpu[c].holds && !cpu[c].walks ->
		cpu[c].walks = true }
	:: d_step { cpu[c].walks ->
		cpu[c].walks = false;
		cpu[c].holds = true }
	od
}

/* change_prot_numa() */
active proctype Scanner() {
	byte gen;

	d_step { pending++ }
#ifdef MUTATE_gen_early
	gen = tlb_gen;
#endif
	accessible = false;
#ifndef MUTATE_gen_early
	gen = tlb_gen;
#endif
#ifndef MUTATE_notes_late
	hinted = gen + 1;
#endif
	if
#ifndef MUTATE_finish_alone
	:: pending > 1 -> flush_tlb_mm(1, true)
#endif
	:: else -> skip
	fi;
#ifdef MUTATE_notes_late
	hinted = gen + 1;
#endif
	d_step { pending--; gen = 0 }
}

#ifdef GATHERS
/* do_numa_page(), when migrate_misplaced_folio() fails. */
active proctype Takes() {
end:	d_step { !accessible && !promised -> taken = true }
}

/* change_protection(), with a gather. */
active proctype Protects() {
	bool needs;

	d_step { pending++ }
	/* The lock of the entry, from here... */
	d_step { needs = accessible; accessible = false }
#ifdef MUTATE_asks_by_entry
	needs = needs || (!taken && OWED);
#else
#ifndef MUTATE_hint_unseen
	needs = needs || OWED;
#endif
#endif
	/* ...to here. */
	if
	:: needs || pending > 1 -> flush_tlb_mm(0, true)
	:: else -> skip
	fi;
	d_step { pending--; promised = true; needs = false }
}
#else
/* ptep_clear_flush(): pte_accessible(), which settles all hints by one flush. */
active proctype Protects() {
	bool needs, owed;

	d_step { needs = accessible; accessible = false }
#ifdef MUTATE_looks_early
	owed = OWED;
	needs = needs || pending;
#else
	needs = needs || pending;
#ifndef MUTATE_hint_unseen
	owed = OWED;
#endif
#endif
	if
	:: needs || owed -> flush_tlb_mm(0, true)
	:: else -> skip
	fi;
	d_step { promised = true; needs = false; owed = false }
}
#endif

/* The debt is paid, or whatever else flushes. */
#ifdef FLUSHES
active proctype Flusher() {
	byte n;

	for (n : 1 .. FLUSHES) {
		if
		:: flush_tlb_mm(2, true)
		:: flush_tlb_mm(2, false)
		fi
	}
}
#endif

#ifdef TICKS
active proctype Age() {
	settle_by_ticks()
}
#endif
