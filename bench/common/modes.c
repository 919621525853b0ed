// SPDX-License-Identifier: GPL-2.0-only
/*
 * modes.c - the modes that a benchmark is run in
 *
 * What: the names are those of cli/ceasefire/modes.py. A new mechanism is one
 *       more entry: how a mapping asks for it, how a whole process does, and
 *       how to see that the kernel offers it.
 * Who:  all benchmark programs that have --mode, and mode-run.
 */
#include "modes.h"
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

static bool offers_latr(void)
{
	unsigned int on;

	return !prctl(PR_LATR, PR_LATR_GET, &on, 0, 0);
}

static void require_latr(void)
{
	if (!offers_latr())
		die(EXIT_NO_KERNEL_SUPPORT,
		    "this kernel has no LATR; boot a ceasefire kernel or leave the modes out that use it");
}

static int ask_latr(bool on)
{
	return prctl(PR_LATR, PR_LATR_SET, (unsigned long)on, 0, 0);
}

static const struct mode all_modes[] = {
	{ .name = "off" },
	{ .name = "fpr", .map_flags = MAP_FPR, .offered = offers_fpr,
	  .require = require_fpr, .ask = ask_fpr },
	{ .name = "latr", .offered = offers_latr, .require = require_latr, .ask = ask_latr,
	  .of_process = true },
};

#define ALL_MODES (sizeof(all_modes) / sizeof(*all_modes))

static const struct mode *find(const char *name, size_t length)
{
	for (size_t i = 0; i < ALL_MODES; i++) {
		if (strlen(all_modes[i].name) == length &&
		    !strncmp(all_modes[i].name, name, length))
			return &all_modes[i];
	}
	return NULL;
}

void enter_mode(const struct mode *mode)
{
	if (mode->of_process && mode->ask(true))
		die_errno("cannot ask for %s", mode->name);
}

void leave_mode(const struct mode *mode)
{
	if (mode->of_process && mode->ask(false))
		die_errno("cannot leave %s", mode->name);
}

bool mode_is_offered(const struct mode *mode)
{
	return !mode->offered || mode->offered();
}

const char *mode_names(void)
{
	static char names[200];
	size_t used = 0;

	for (size_t i = 0; i < ALL_MODES && used < sizeof(names); i++)
		used += (size_t)snprintf(names + used, sizeof(names) - used, "%s%s",
					 i ? ", " : "", all_modes[i].name);
	return names;
}

const struct mode *find_mode(const char *name)
{
	return find(name, strlen(name));
}

void parse_modes(struct mode_list *list, const char *text)
{
	list->count = 0;
	for (;;) {
		size_t length = strcspn(text, ",");
		const struct mode *mode = find(text, length);

		if (!mode)
			die(EXIT_USAGE, "--mode wants a list of %s, not '%s'",
			    mode_names(), text);
		for (unsigned int i = 0; i < list->count; i++) {
			if (list->modes[i] == mode)
				die(EXIT_USAGE, "--mode has %s twice", mode->name);
		}
		if (list->count == MAX_MODES)
			die(EXIT_USAGE, "--mode has too many modes");
		list->modes[list->count++] = mode;
		if (!text[length])
			return;
		text += length + 1;
	}
}

void require_modes(const struct mode_list *list)
{
	for (unsigned int i = 0; i < list->count; i++) {
		if (list->modes[i]->require)
			list->modes[i]->require();
	}
}

const struct mode *mode_in_turn(const struct mode_list *list, unsigned int round,
				unsigned int i)
{
	return list->modes[(round + i) % list->count];
}
