// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * stats.c - the one line of CEASEFIRE_STATS
 *
 * Who: mmap.c when the program exits, sandbox.c when the library must fall
 *      silent before that. mmap.c counts.
 */
#include "stats.h"

void stats_say(struct stats *stats, const struct output_target *target)
{
	struct line line;

	line_start(&line);
	line_number(&line, atomic_load(&stats->added));
	line_text(&line, " mappings with MAP_FPR, without it: ");
	line_number(&line, atomic_load(&stats->other_path));
	line_text(&line, " other path, ");
	line_number(&line, atomic_load(&stats->unsuitable));
	line_text(&line, " not suitable, ");
	line_number(&line, atomic_load(&stats->failed));
	line_text(&line, " failed");
	line_send(&line, target);
}
