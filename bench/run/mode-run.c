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
	const struct mode *mode;

	set_program_name("mode-run");
	if (argc < 3)
		die(EXIT_USAGE, "usage: mode-run MODE[+MODE...] COMMAND [ARGUMENT...]");
	mode = find_mode(argv[1]);
	if (!mode)
		die(EXIT_USAGE, "unknown mode '%s': use one of %s", argv[1], mode_names());
	require_mode(mode);
	enter_mode_for_program(mode);
	execvp(argv[2], argv + 2);
	die(errno == ENOENT ? 127 : 126, "%s: %s", argv[2], strerror(errno));
}
