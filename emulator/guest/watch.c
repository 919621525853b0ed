/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Preload library for process=on: has the checker look at every process that
 * loads it, and at its children
 *
 * Each address space asks for itself: a constructor after exec, a handler
 * after fork. With TLBCHECK_WATCH=exec children are left out until they
 * execute a program. Does nothing where no checker runs.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <exec/tlb-check-guest.h>

static void watch(void)
{
	static const char full[] =
		"libtlbcheck-watch: too many processes, this one is not checked\n";

	if (tlb_check_call(TLB_CHECK_WATCH, 0, 0, 0, 0) &&
	    write(STDERR_FILENO, full, sizeof(full) - 1) < 0)
		return;
}

__attribute__((constructor)) static void tlb_check_watch_start(void)
{
	const char *mode = getenv("TLBCHECK_WATCH");

	if (!tlb_check_present())
		return;
	watch();
	if (!mode || strcmp(mode, "exec"))
		pthread_atfork(0, 0, watch);
}
