// SPDX-License-Identifier: GPL-2.0
/* Commands for an emulator that checks TLB entries, see checker.h. */
#include <stdint.h>
#include <string.h>

#include "checker.h"
#include "env.h"
#include "ktap.h"

/* The interface of mm/ceasefire/check.c, as far as user mode may use it. */
#define LEAF		0x40544c42
#define SIGNATURE	"TLBcheckQEMU"
#define IDENTIFY	0
#define ARM		2
#define DISARM		3
#define WATCH		4

static unsigned int call(unsigned int command, uint64_t a, uint64_t b,
			 unsigned int answer[3])
{
	uint64_t ax = LEAF, bx = 0, cx = command, dx = 0;

	asm volatile("cpuid"
		     : "+a" (ax), "+b" (bx), "+c" (cx), "+d" (dx)
		     : "S" (a), "D" (b) : "memory");
	if (answer) {
		answer[0] = (unsigned int)bx;
		answer[1] = (unsigned int)cx;
		answer[2] = (unsigned int)dx;
	}
	return (unsigned int)ax;
}

bool checker_present(void)
{
	static enum { UNKNOWN, ABSENT, PRESENT } state;
	unsigned int answer[3];

	if (state == UNKNOWN)
		state = !call(IDENTIFY, 0, 0, answer) &&
			!memcmp(answer, SIGNATURE, sizeof(answer)) ?
			PRESENT : ABSENT;
	return state == PRESENT;
}

void checker_watch(void)
{
	if (checker_present())
		call(WATCH, 0, 0, NULL);
}

void checker_forbid(const void *addr, size_t pages)
{
	if (checker_present())
		ENSURE(!call(ARM, (uintptr_t)addr, pages * PAGE, NULL),
		       "the emulator watches no more ranges");
}

void checker_allow(const void *addr, size_t pages)
{
	if (checker_present())
		ENSURE(!call(DISARM, (uintptr_t)addr, pages * PAGE, NULL),
		       "the emulator watched no such range");
}
