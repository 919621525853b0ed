/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * M3: one process unmaps a morsel and maps it again, while another one takes a page away. Who
 * takes it away flushes those that he finds in i_mmap. No CPU uses a page that is free.
 *
 * Each sees the steps of the others at once here.
 *
 * Follows morsel_unmap(), morsel_attach(), morsel_flush_begin() and morsel_depopulate().
 */
bool i_mmap;		/* its lock: who reads and who writes are one each */
bool listed = true;	/* the mapping is there */
bool attached = true;	/* the entry of the process' own table leads to the root */
bool entry = true;	/* of the page */
bool held;		/* by the CPU */
bool freed;

#define LOCK(l) atomic { !l -> l = true }

active proctype Processor() {
end:	do
	:: d_step { attached && entry && !held -> held = true }
	:: atomic { held -> assert(!freed) }
	:: held = false		/* whenever it likes */
	od
}

active proctype Maps() {
	/* munmap() */
	attached = false;
#ifndef MUTATE_detach_unflushed
	held = false;
#endif
	LOCK(i_mmap);
	listed = false;
	i_mmap = false;
	/* mmap(), and the first access */
#ifdef MUTATE_detach_early
	attached = true;
#endif
	LOCK(i_mmap);
	listed = true;
	i_mmap = false;
	attached = true
}

active proctype Takes() {
#ifdef MUTATE_detach_unheld
	bool seen;

	seen = listed;
#endif
	LOCK(i_mmap);
	entry = false;
#ifdef MUTATE_detach_unheld
	i_mmap = false;
	if
	:: seen -> held = false
	:: else -> skip
	fi;
#else
	if
	:: listed -> held = false
	:: else -> skip
	fi;
	i_mmap = false;
#endif
	freed = true
}
