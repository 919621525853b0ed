// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * output.c - say something on standard error without disturbing the program
 *
 * What: builds a line on the stack and writes it with one write(2).
 * Who:  config.c (warnings), mmap.c (CEASEFIRE_VERBOSE, CEASEFIRE_STATS).
 *
 * Two dangers that a plain write(2, ..) has inside a stranger's program:
 * - descriptor 2 may have become the program's data file: the line is written
 *   only while 2 is the file that it was at the start;
 * - the reader may have gone: SIGPIPE is held back and taken away again.
 */
#include "output.h"
#include "rawsys.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <time.h>

#define STANDARD_ERROR 2
/* The kernel's signal set, one bit a signal. */
#define PIPE_BIT (1UL << (SIGPIPE - 1))

static long signal_mask(int how, const unsigned long *set, unsigned long *old)
{
	return raw4(SYS_rt_sigprocmask, how, (long)set, (long)old, sizeof(*set));
}

void output_remember(struct output_target *target)
{
	struct stat st;

	target->usable = raw_fstat(STANDARD_ERROR, &st) == 0;
	if (target->usable) {
		target->dev = st.st_dev;
		target->ino = st.st_ino;
	}
}

void line_bytes(struct line *line, const char *text, size_t length)
{
	size_t room = sizeof(line->text) - 1 - line->length;

	if (length > room)
		length = room;
	memcpy(line->text + line->length, text, length);
	line->length += length;
}

void line_text(struct line *line, const char *text)
{
	line_bytes(line, text, strlen(text));
}

void line_number(struct line *line, unsigned long number)
{
	char digits[20];
	size_t at = sizeof(digits);

	do {
		digits[--at] = (char)('0' + number % 10);
		number /= 10;
	} while (number);
	line_bytes(line, digits + at, sizeof(digits) - at);
}

void line_start(struct line *line)
{
	line->length = 0;
	line_text(line, "ceasefire[");
	line_number(line, (unsigned long)raw_getpid());
	line_text(line, "]: ");
}

void line_send(struct line *line, const struct output_target *target)
{
	const struct timespec now = { 0, 0 };
	const unsigned long pipe_set = PIPE_BIT;
	unsigned long old = 0, pending = 0;
	struct stat st;

	if (!target->usable || raw_fstat(STANDARD_ERROR, &st) != 0 ||
	    st.st_dev != target->dev || st.st_ino != target->ino)
		return;
	line->text[line->length] = '\n';

	raw4(SYS_rt_sigpending, (long)&pending, sizeof(pending), 0, 0);
	signal_mask(SIG_BLOCK, &pipe_set, &old);
	if (raw_write(STANDARD_ERROR, line->text, line->length + 1) == -EPIPE &&
	    !(pending & PIPE_BIT))
		raw4(SYS_rt_sigtimedwait, (long)&pipe_set, 0, (long)&now,
		     sizeof(pipe_set));
	signal_mask(SIG_SETMASK, &old, NULL);
}
