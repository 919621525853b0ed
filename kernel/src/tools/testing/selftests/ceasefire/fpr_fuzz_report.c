// SPDX-License-Identifier: GPL-2.0
/*
 * What differs between two runs: the operation and both results in words, what
 * the thread did before, and fewer operations that show it as well.
 *
 * Called by the process of the case, once it has found a difference.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "env.h"
#include "fpr_fuzz.h"
#include "ktap.h"

/* Operations before the one that differs. */
#define CONTEXT		10
#define SHRINK_TRIES	3
#define SHRINK_S	20

static const char *backing_name(uint32_t backing)
{
	static const char *const names[] = {
		"no file", "read-only disk", "read-only memory", "area",
		"own disk", "own memory", "anonymous",
	};

	return names[backing];
}

static void print_operation(unsigned int number, const struct fuzz_record *r)
{
	char rights[] = "---";

	if (!r->op) {
		ktap_note("  %u: not reached", number);
		return;
	}
	if (r->prot & PROT_READ)
		rights[0] = 'r';
	if (r->prot & PROT_WRITE)
		rights[1] = 'w';
	if (r->prot & PROT_EXEC)
		rights[2] = 'x';
	ktap_note("  %u: %s, block %u page %u, %u pages, %s, %s, flags %#x, argument %llu",
		  number, fuzz_op_name(r->op), r->block, r->first, r->pages,
		  backing_name(r->backing), rights, r->flags,
		  (unsigned long long)r->argument);
}

static void print_result(enum fuzz_arm arm, const struct fuzz_record *r,
			 int status)
{
	const char *half = fuzz_arm_name(arm);
	char fault[96] = "no fault";

	if (WIFSIGNALED(status))
		ktap_note("  %s: the process was killed by SIG%s", half,
			  sigabbrev_np(WTERMSIG(status)));
	else if (status)
		ktap_note("  %s: the process gave up, see above", half);
	if (!r->op)
		return;
	if (r->fault.signal)
		snprintf(fault, sizeof(fault), "SIG%s code %d at %#llx",
			 sigabbrev_np(r->fault.signal), r->fault.code,
			 (unsigned long long)r->fault.at);
	ktap_note("  %s: %s, %s, result %016llx", half,
		  r->error ? strerrorname_np(r->error) : "no error", fault,
		  (unsigned long long)r->value);
}

/* The operation was the same in both halves, or they differ in what was done. */
static void print_difference(const struct fuzz_plan *plan,
			     const struct fuzz_difference *d)
{
	const struct fuzz_record *off = fuzz_recorded(0, d->thread,
						      d->operation);
	const struct fuzz_record *on = fuzz_recorded(1, d->thread,
						     d->operation);
	unsigned int from = plan->first, i;

	ktap_note("%s makes a difference: seed %llu, thread %u of %u, operation %u of %u",
		  fuzz_arm_name(d->arm), (unsigned long long)plan->seed, d->thread, plan->threads,
		  d->operation, plan->operations);
	if (d->operation > from + CONTEXT)
		from = d->operation - CONTEXT;
	for (i = from; i < d->operation; i++)
		print_operation(i, fuzz_recorded(0, d->thread, i));
	print_operation(d->operation, off->op ? off : on);
	if (off->op && on->op && off->argument != on->argument)
		print_operation(d->operation, on);
	print_result(FUZZ_PLAIN, off, d->status[0]);
	print_result(d->arm, on, d->status[1]);
}

static void print_command(const struct fuzz_plan *plan, enum fuzz_arm arm)
{
	ktap_note("again: fpr_fuzz --with %s --replay %llu --threads %u --first %u --operations %u",
		  fuzz_arm_name(arm), (unsigned long long)plan->seed, plan->threads, plan->first,
		  plan->operations);
}

/* Is it Linux, or the fuzzer, that does not do the same twice? */
static void check_repeatable(const struct fuzz_plan *plan)
{
	struct fuzz_difference d = {
		.status = {
			fuzz_half(plan, 0, FUZZ_PLAIN),
			fuzz_half(plan, 1, FUZZ_PLAIN),
		},
	};

	fuzz_compare(plan, &d);
	ktap_note("two runs without a mechanism %s", d.found ? "differ as well" :
		  "do not differ");
}

void fuzz_report(const struct fuzz_plan *plan, const struct fuzz_difference *d)
{
	print_difference(plan, d);
	print_command(plan, d->arm);
}

static bool differs(const struct fuzz_plan *plan, struct fuzz_difference *d,
		    double end)
{
	int i;

	for (i = 0; i < SHRINK_TRIES && seconds() < end; i++) {
		d->status[0] = fuzz_half(plan, 0, FUZZ_PLAIN);
		d->status[1] = fuzz_half(plan, 1, d->arm);
		fuzz_compare(plan, d);
		if (d->found)
			return true;
	}
	return false;
}

/*
 * Operations behind the one that differs have no part in it. How many of those
 * before it have none is found by bisection, as far as timing allows.
 */
void fuzz_shrink(const struct fuzz_plan *plan, const struct fuzz_difference *d)
{
	unsigned int low = plan->first, last = d->operation, high = last;
	struct fuzz_plan least = *plan, try = *plan;
	double end = seconds() + SHRINK_S;
	struct fuzz_difference found = { .arm = d->arm };

	check_repeatable(plan);
	while (low < high && seconds() < end) {
		try.first = low + (high - low + 1) / 2;
		try.operations = last < plan->operations ? last + 1 : last;
		if (try.first == try.operations || !differs(&try, &found, end)) {
			high = try.first - 1;
			continue;
		}
		least = try;
		low = try.first;
		last = found.operation;
		if (high > last)
			high = last;
		print_difference(&try, &found);
	}
	print_command(&least, d->arm);
}
