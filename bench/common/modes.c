// SPDX-License-Identifier: GPL-2.0-only
/*
 * modes.c - the modes that a benchmark is run in
 *
 * What: the names are those of cli/ceasefire/modes.py: off, a mechanism, or several
 *       joined by +. What a mechanism is stands in mechanisms.c.
 * Who:  all benchmark programs that have --mode, and mode-run.
 */
#include "modes.h"
#include "util.h"

#include <stdio.h>
#include <string.h>

/* All that there can be, by what they consist of; one is made when it is asked for. */
static struct mode made[1 << MECHANISMS];
/* As long as all mechanisms joined; a name that is longer is none. */
static char made_names[1 << MECHANISMS][40];

static const struct mode *mode_of(unsigned int set)
{
	struct mode *mode = &made[set];
	char *name = made_names[set];
	size_t used = 0;

	if (mode->name)
		return mode;
	for (unsigned int i = 0; i < MECHANISMS; i++) {
		if (!(set & 1u << i))
			continue;
		used += (size_t)snprintf(name + used, sizeof(*made_names) - used, "%s%s",
					 used ? "+" : "", mechanisms[i].name);
		mode->map_flags |= mechanisms[i].map_flags;
	}
	mode->set = set;
	mode->name = set ? name : "off";
	return mode;
}

static unsigned int bit_of(const char *name, size_t length)
{
	for (unsigned int i = 0; i < MECHANISMS; i++) {
		if (strlen(mechanisms[i].name) == length &&
		    !strncmp(mechanisms[i].name, name, length))
			return 1u << i;
	}
	return 0;
}

static const struct mode *find(const char *name, size_t length)
{
	const char *end = name + length;
	unsigned int set = 0;

	if (length == 3 && !strncmp(name, "off", 3))
		return mode_of(0);
	for (;;) {
		const char *plus = memchr(name, '+', (size_t)(end - name));
		unsigned int bit = bit_of(name, (size_t)((plus ? plus : end) - name));

		if (!bit || set & bit)
			return NULL;
		set |= bit;
		if (!plus)
			return mode_of(set);
		name = plus + 1;
	}
}

static void ask(const struct mode *mode, bool on, bool of_mappings)
{
	for (unsigned int i = 0; i < MECHANISMS; i++) {
		const struct mechanism *m = &mechanisms[i];

		if (mode->set & 1u << i && (m->of_process || of_mappings) && m->ask(on))
			die_errno(on ? "cannot ask for %s" : "cannot leave %s", m->name);
	}
}

void enter_mode(const struct mode *mode)
{
	ask(mode, true, false);
}

void leave_mode(const struct mode *mode)
{
	ask(mode, false, false);
}

void enter_mode_for_program(const struct mode *mode)
{
	ask(mode, true, true);
}

bool mode_is_offered(const struct mode *mode)
{
	for (unsigned int i = 0; i < MECHANISMS; i++) {
		if (mode->set & 1u << i && !mechanisms[i].offered())
			return false;
	}
	return true;
}

void require_mode(const struct mode *mode)
{
	for (unsigned int i = 0; i < MECHANISMS; i++) {
		if (mode->set & 1u << i)
			mechanisms[i].require();
	}
}

const char *mode_names(void)
{
	static char names[200] = "off";
	size_t used = strlen("off");

	for (unsigned int i = 0; i < MECHANISMS && used < sizeof(names); i++)
		used += (size_t)snprintf(names + used, sizeof(names) - used, ", %s",
					 mechanisms[i].name);
	if (used < sizeof(names))
		snprintf(names + used, sizeof(names) - used, " (or joined by +)");
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
	for (unsigned int i = 0; i < list->count; i++)
		require_mode(list->modes[i]);
}

const struct mode *mode_in_turn(const struct mode_list *list, unsigned int round,
				unsigned int i)
{
	return list->modes[(round + i) % list->count];
}
