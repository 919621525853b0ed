// SPDX-License-Identifier: GPL-2.0
/* Two processes that recycle together, see members.h. */
#define _GNU_SOURCE
#include <sys/mman.h>

#include "context.h"
#include "ktap.h"
#include "map.h"
#include "members.h"
#include "peer.h"

struct tfile own, others;
struct stranger other;

long members_map(int fd, int prot)
{
	char *p = mmap(NULL, LENGTH, prot, MAP_SHARED | MAP_FPR, fd, 0);
	size_t i, good = 0;

	if (p == MAP_FAILED)
		return -1;
	for (i = 0; i < PAGES; i++)
		good += probe_read(p + i * PAGE) == WORD(OTHERS);
	munmap(p, LENGTH);
	return (long)good;
}

long members_map_others(long prot)
{
	return members_map(others.fd, (int)prot);
}

void members_start(unsigned long kind)
{
	pin_to_cpu(0);
	file_make(&own, ON_DISK, PAGES, OWN);
	file_make(&others, ON_DISK, PAGES, OTHERS);
	file_drop(&others);
	MUST(context_choose(kind));
	stranger_start(&other);
	peer_start(1);
	hold_debts();
}

void members_take_part(void)
{
	ENSURE(stranger_call(&other, members_map_others, PROT_READ) == PAGES,
	       "the other process reads wrong data");
	file_drop(&others);
}

char *members_leave_parked(void)
{
	int tries;

	for (tries = 0; tries < MEMBER_TRIES; tries++) {
		char *p = leave_stale(&own, 0, PAGES, PROT_READ, MAP_SHARED,
				      OWN);

		file_drop(&own);
		if (fpr_sysfs("parked") >= PAGES / 2)
			return p;
	}
	ktap_retry("no frames were parked: nothing to attack with");
}

long members_other_recycles(void)
{
	long before = vmstat("fpr_recycle");

	ENSURE(stranger_call(&other, members_map_others, PROT_READ) == PAGES,
	       "the other process reads wrong data");
	return vmstat("fpr_recycle") - before;
}

void members_gone(char *p, const char *who)
{
	size_t seen = PAGES - peer_count(p, PAGES, FAULTED);

	ENSURE(!seen, "%zu stale translations outlive the leave of %s", seen,
	       who);
}
