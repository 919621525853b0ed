// SPDX-License-Identifier: GPL-2.0-only
/*
 * counters.c - the kernel's counters of shootdowns, of reclaim, of NUMA balancing and of FPR
 *
 * What: all nr_tlb_*, fpr_*, latr_*, sharers_*, pgscan_*, pgsteal_* and allocstall_*
 *       lines of /proc/vmstat, page faults, what NUMA balancing does, and the sum of the TLB
 *       line of /proc/interrupts as "interrupts_tlb". No list of names: what the
 *       kernel has is what is reported.
 * Who:  all benchmark programs, before and after each sample.
 */
#include "counters.h"
#include "util.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static void add(struct counters *counters, const char *name, uint64_t value)
{
	struct counter *counter;

	if (counters->count == MAX_COUNTERS)
		die(EXIT_FAILED, "more than %d counters in /proc/vmstat",
		    MAX_COUNTERS);
	counter = &counters->list[counters->count++];
	snprintf(counter->name, sizeof(counter->name), "%s", name);
	counter->value = value;
}

static void read_vmstat(struct counters *counters)
{
	FILE *file = fopen("/proc/vmstat", "re");
	char name[COUNTER_NAME];
	uint64_t value;

	if (!file)
		die_errno("/proc/vmstat");
	while (fscanf(file, "%47s %" SCNu64, name, &value) == 2) {
		if (strncmp(name, "nr_tlb_", 7) == 0 ||
		    strncmp(name, "fpr_", 4) == 0 ||
		    strncmp(name, "latr_", 5) == 0 ||
		    strncmp(name, "sharers_", 8) == 0 ||
		    strncmp(name, "morsel_", 7) == 0 ||
		    strncmp(name, "numa_hint_", 10) == 0 ||
		    strncmp(name, "numa_pages_", 11) == 0 ||
		    strncmp(name, "numa_pte_", 9) == 0 ||
		    strncmp(name, "numa_huge_", 10) == 0 ||
		    strcmp(name, "pgfault") == 0 ||
		    strncmp(name, "pgscan_", 7) == 0 ||
		    strncmp(name, "pgsteal_", 8) == 0 ||
		    strncmp(name, "allocstall_", 11) == 0)
			add(counters, name, value);
	}
	fclose(file);
}

/* " TLB:   12   34   TLB shootdowns": one number for each CPU. */
static void read_interrupts(struct counters *counters)
{
	FILE *file = fopen("/proc/interrupts", "re");
	char *line = NULL;
	size_t size = 0;

	if (!file)
		die_errno("/proc/interrupts");
	while (getline(&line, &size, file) >= 0) {
		char *at = line + strspn(line, " "), *end;
		uint64_t sum = 0;

		if (strncmp(at, "TLB:", 4) != 0)
			continue;
		for (at += 4;; at = end) {
			uint64_t value = strtoull(at, &end, 10);

			if (end == at)
				break;
			sum += value;
		}
		add(counters, "interrupts_tlb", sum);
	}
	free(line);
	fclose(file);
}

void counters_read(struct counters *counters)
{
	counters->count = 0;
	read_vmstat(counters);
	read_interrupts(counters);
}

/* @before has the same names: the kernel's list does not change. */
void counters_subtract(struct counters *counters, const struct counters *before)
{
	for (unsigned int i = 0; i < counters->count; i++)
		counters->list[i].value -= before->list[i].value;
}

/* Returns -1 where the kernel has no such counter. */
int64_t counters_get(const struct counters *counters, const char *name)
{
	for (unsigned int i = 0; i < counters->count; i++) {
		if (strcmp(counters->list[i].name, name) == 0)
			return (int64_t)counters->list[i].value;
	}
	return -1;
}

/* One member, an object. A counter may fall (a gauge): signed. */
void counters_json(struct json *json, const struct counters *counters)
{
	json_open_object(json, "counters");
	for (unsigned int i = 0; i < counters->count; i++)
		json_signed(json, counters->list[i].name,
			    (int64_t)counters->list[i].value);
	json_close_object(json);
}
