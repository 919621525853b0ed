/* SPDX-License-Identifier: GPL-2.0 */
/* Morsels of which a part goes by one entry: a GiB, or 512 GiB in units of 256 TiB. */
#ifndef CEASEFIRE_SELFTEST_GIB_H
#define CEASEFIRE_SELFTEST_GIB_H

#include <stdint.h>

/* Pages of tables: a root, and what is behind it; one of pages that are all there, with them. */
#define ROOT	2
#define FULL	513

/* The unit, and the part; 512 GiB and a GiB at the begin of a case. */
extern uint64_t gib_unit, gib_part;
/* Of tables that a page in such a part has above those of pages, in pages. */
extern unsigned int gib_tables;

/* Units of 256 TiB from here on; skips the case without five levels. */
void gib_in_256_tib(void);

/* The same case in such units. */
#define IN_256_TIB(name)						\
	static void name##_256(void)					\
	{								\
		gib_in_256_tib();					\
		name();							\
	}

#endif
