// SPDX-License-Identifier: GPL-2.0
/* Parts of morsels, see gib.h. */
#include "gib.h"
#include "morsels.h"

uint64_t gib_unit = 512 * GIB, gib_part = GIB;
unsigned int gib_tables = 1;

void gib_in_256_tib(void)
{
	morsel_need_256_tib();
	gib_unit = 256 * TIB;
	gib_part = 512 * GIB;
	/* One of level 3, and what is behind it, and one of level 2. */
	gib_tables = 3;
}
