// SPDX-License-Identifier: GPL-2.0
/* A process with ABIS, see abis.h. */
#define _GNU_SOURCE
#include <linux/mempolicy.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "abis.h"
#include "context.h"
#include "ktap.h"
#include "map.h"
#include "peer.h"
#include "regions.h"

/*
 * Of this thread, and of those that it starts. A hint of NUMA balancing makes an entry one
 * that is flushed for already, whatever it was, and is of a gather that may be about anything.
 */
static void keep_hints_away(void)
{
	unsigned long node = 1;

	MUST(syscall(SYS_set_mempolicy, MPOL_BIND, &node, 64));
}

void abis_prepare(void)
{
	if (context_has_abis() < 0)
		ktap_skip("prctl(PR_ABIS): %m");
	keep_hints_away();
	hold_debts();
	pin_to_cpu(0);
	peer_start(1);
}

/* Whatever entries say: who begins to have ABIS is flushed. */
static void flush_all(void)
{
	MUST(context_abis(0));
	MUST(context_abis(1));
}

/* Frames have no room for tags until some were to be tagged. */
static void make_room(void)
{
	char *p = abis_written(64, WORD(1));

	abis_clear_accessed();
	sleep_ms(50);
	flush_all();
	MUST(munmap(p, 64 * PAGE));
}

void abis_start(void)
{
	abis_prepare();
	if (context_abis(1))
		ktap_skip("prctl(PR_ABIS): %m");
	make_room();
}

void abis_start_inserted(void)
{
	abis_start();
	if (!write_text("/sys/kernel/mm/ceasefire/abis/sources", "inserted uncached"))
		ktap_skip("abis/sources: inserted: %m");
}

void abis_clear_accessed(void)
{
	ENSURE(write_text("/proc/self/clear_refs", "1"), "clear_refs: %m");
}

void abis_settle(void)
{
	abis_clear_accessed();
	flush_all();
}

void abis_bring_to(enum abis_state state)
{
	if (state == CLEARED)
		abis_clear_accessed();
	else if (state == SETTLED)
		abis_settle();
}

char *abis_written(size_t pages, uint64_t word)
{
	char *p = regions(1);

	ENSURE(peer_write(p, pages, word) == pages, "no write");
	return p;
}

struct abis_flushes abis_flushes(void)
{
	return (struct abis_flushes) {
		.none = vmstat("abis_none"),
		.some = vmstat("abis_some"),
		.all = vmstat("abis_all"),
		.local = vmstat("abis_local"),
		.narrow = vmstat("abis_narrow"),
		.received = vmstat("nr_tlb_remote_flush_received"),
		.uncached = vmstat("abis_uncached"),
		.class = vmstat("abis_cached_class"),
		.young = vmstat("abis_cached_young"),
		.stale = vmstat("abis_cached_stale"),
		.pending = vmstat("abis_cached_pending"),
		.untracked = vmstat("abis_cached_untracked"),
		.other = vmstat("abis_cached_disabled") +
			 vmstat("abis_cached_notifier") +
			 vmstat("abis_cached_vendor") +
			 vmstat("abis_cached_special") +
			 vmstat("abis_cached_locked"),
	};
}

struct abis_flushes abis_flushes_since(struct abis_flushes before)
{
	struct abis_flushes now = abis_flushes();

	return (struct abis_flushes) {
		.none = now.none - before.none,
		.some = now.some - before.some,
		.all = now.all - before.all,
		.local = now.local - before.local,
		.narrow = now.narrow - before.narrow,
		.received = now.received - before.received,
		.uncached = now.uncached - before.uncached,
		.class = now.class - before.class,
		.young = now.young - before.young,
		.stale = now.stale - before.stale,
		.pending = now.pending - before.pending,
		.untracked = now.untracked - before.untracked,
		.other = now.other - before.other,
	};
}
