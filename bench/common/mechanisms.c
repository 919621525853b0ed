// SPDX-License-Identifier: GPL-2.0-only
/*
 * mechanisms.c - how a program asks for a mechanism of the kernel
 *
 * What: an entry for each one, with the name that it has in cli/ceasefire/modes.py:
 *       how a mapping asks for it, how a whole process does, how to see that the
 *       kernel offers it, and what to say where it does not.
 * Who:  modes.c.
 */
#include "mechanisms.h"
#include "util.h"

#include "../../lib/include/ceasefire.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>

/* linux/mman.h and linux/ceasefire.h */
#ifndef MAP_FPR
#define MAP_FPR 0x800000
#endif
#ifndef PR_FPR
#define PR_FPR		0x465052
#define PR_FPR_SET_AUTO	1
#endif
#ifndef PR_LATR
#define PR_LATR		0x4c415452
#define PR_LATR_SET	1
#define PR_LATR_GET	2
#endif
#ifndef PR_ABIS
#define PR_ABIS		0x41424953
#define PR_ABIS_SET	1
#define PR_ABIS_GET	2
#endif

#ifndef PR_SHARERS
#define PR_SHARERS	0x53485253
#define PR_SHARERS_SET	1
#define PR_SHARERS_GET	2
#endif

#define SYSFS "/sys/kernel/mm/ceasefire/"

void require_fpr(void)
{
	switch (ceasefire_fpr_state()) {
	case 1:
		return;
	case 0:
		die(EXIT_NO_KERNEL_SUPPORT,
		    "FPR is switched off: echo 1 > " CEASEFIRE_FPR_ENABLED);
	default:
		die(EXIT_NO_KERNEL_SUPPORT,
		    "this kernel has no FPR (no " CEASEFIRE_FPR_ENABLED
		    "); boot a ceasefire kernel or leave the modes out that use it");
	}
}

static bool offers_fpr(void)
{
	return ceasefire_fpr_state() == 1;
}

static int ask_fpr(bool on)
{
	return prctl(PR_FPR, PR_FPR_SET_AUTO, on ? ULONG_MAX : 0UL, 0, 0);
}

/* All that a switch can be, the present one in brackets. */
static void require_not_never(const char *title, const char *path)
{
	FILE *file = fopen(path, "re");
	char text[100] = "";
	bool never;

	never = file && fgets(text, sizeof(text), file) && strstr(text, "[never]");
	if (file)
		fclose(file);
	if (never)
		die(EXIT_NO_KERNEL_SUPPORT, "%s is switched off: echo ask > %s", title, path);
}

static void require_prctl(const char *title, bool offered)
{
	if (!offered)
		die(EXIT_NO_KERNEL_SUPPORT,
		    "this kernel has no %s; boot a ceasefire kernel or leave the modes out that use it",
		    title);
}

static bool offers_latr(void)
{
	unsigned int on;

	return !prctl(PR_LATR, PR_LATR_GET, &on, 0, 0);
}

static void require_latr(void)
{
	require_prctl("LATR", offers_latr());
	require_not_never("LATR", SYSFS "latr/enabled");
}

static int ask_latr(bool on)
{
	return prctl(PR_LATR, PR_LATR_SET, (unsigned long)on, 0, 0);
}

static bool offers_sharers(void)
{
	unsigned int on;

	return !prctl(PR_SHARERS, PR_SHARERS_GET, &on, 0, 0);
}

/* That the machine gives CPUs no page tables of their own `ceasefire bench run` sees. */
static void require_sharers(void)
{
	require_prctl("Sharers", offers_sharers());
	require_not_never("Sharers", SYSFS "sharers/enabled");
}

/* Before there are threads, and once: a process that was told to stop stays as it is. */
static int ask_sharers(bool on)
{
	return prctl(PR_SHARERS, PR_SHARERS_SET, (unsigned long)on, 0, 0);
}

static bool offers_abis(void)
{
	unsigned int on;

	return !prctl(PR_ABIS, PR_ABIS_GET, &on, 0, 0);
}

static void require_abis(void)
{
	require_prctl("ABIS", offers_abis());
	require_not_never("ABIS", SYSFS "abis/enabled");
}

static int ask_abis(bool on)
{
	return prctl(PR_ABIS, PR_ABIS_SET, (unsigned long)on, 0, 0);
}

const struct mechanism mechanisms[MECHANISMS] = {
	{ .name = "fpr", .map_flags = MAP_FPR, .offered = offers_fpr,
	  .require = require_fpr, .ask = ask_fpr },
	{ .name = "latr", .offered = offers_latr, .require = require_latr, .ask = ask_latr,
	  .of_process = true },
	{ .name = "sharers", .offered = offers_sharers, .require = require_sharers,
	  .ask = ask_sharers, .of_process = true },
	{ .name = "abis", .offered = offers_abis, .require = require_abis, .ask = ask_abis,
	  .of_process = true },
};
