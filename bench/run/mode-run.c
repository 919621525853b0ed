// SPDX-License-Identifier: GPL-2.0-only
/*
 * mode-run.c - start a program in one of the modes
 *
 * What: mode-run MODE[+MODE...] COMMAND [ARGUMENT...] becomes the command. In a
 *       mode other than "off" all that it maps asks for the mechanism, as with
 *       `ceasefire run`, which takes longer to start than many programs run.
 * Who:  the suites of `ceasefire bench run`.
 */
#include "../common/modes.h"
#include "../common/util.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	char *name, *rest;

	set_program_name("mode-run");
	if (argc < 3)
		die(EXIT_USAGE, "usage: mode-run MODE[+MODE...] COMMAND [ARGUMENT...]");
	rest = argv[1];
	while ((name = strsep(&rest, "+"))) {
		const struct mode *mode = find_mode(name);

		if (!mode)
			die(EXIT_USAGE, "unknown mode '%s': use one of %s", name, mode_names());
		if (mode->require)
			mode->require();
		if (mode->ask && mode->ask(true))
			die_errno("cannot ask for %s", mode->name);
	}
	execvp(argv[2], argv + 2);
	die(errno == ENOENT ? 127 : 126, "%s: %s", argv[2], strerror(errno));
}
