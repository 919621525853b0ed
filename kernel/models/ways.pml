/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * I11, the tables by which a CPU loads one page at a time: no address is ever found to
 * lead to the page of another one.
 *
 * Two pages lie in two regions, at different places of a table. The CPU has one table, T,
 * for all regions; it may keep "this region is translated by T" after it has gone back to
 * the tables of the process, and walk there at any time, for any place. It does not keep
 * what is absent. Follows abis_load().
 */
#define PAGES 2
#define NONE 0

bool leads[PAGES];	/* the own tables lead from the region of that page to T */
byte place[PAGES];	/* T: which page is at the place of that page, and 1 */
bool own;		/* CR3 has the own tables */
bool upper[PAGES];	/* cached: the region of that page is translated by T */

/* The walker: from CR3, or from what it has cached. */
inline walk(region, at) {
	if
	:: d_step { own && leads[region] -> upper[region] = true }
	:: d_step { upper[region] && place[at] != NONE ->
		/* The page of this region at this place, and nothing else. */
		assert(region == at && place[at] == at + 1) }
	fi
}

active proctype Walker() {
end:	do
	:: walk(0, 0)
	:: walk(0, 1)
	:: walk(1, 0)
	:: walk(1, 1)
	od
}

active proctype Cpu() {
	byte n, page;

	for (n : 1 .. 3) {
		if
		:: page = 0
		:: page = 1
		fi;
		place[page] = page + 1;
		leads[page] = true;
		own = true;
		own = false;
#ifndef MUTATE_way_left
		leads[page] = false;
		place[page] = NONE;
#endif
		/* INVLPG, of any address. */
#ifndef MUTATE_way_cached
		d_step { upper[0] = false; upper[1] = false }
#endif
	}
}
