// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * output.c - say something on standard error without disturbing the program
 *
 * What: builds a line on the stack and writes it with one write(2).
 * Who:  config.c (warnings), mmap.c (CEASEFIRE_VERBOSE, CEASEFIRE_STATS).
 *
 * Dangers that a plain write(2, ..) has inside a stranger's program:
 * - descriptor 2 may have become the program's data file: the line is written
 *   only while 2 is the file that it was at the start. The number of a removed
 *   file may belong to another one, so the time of its birth is compared, too;
 * - a write may be a signal: the reader has gone (SIGPIPE), files may not grow
 *   (SIGXFSZ), the terminal is for the foreground (SIGTTOU). They are held back
 *   and taken away again;
 * - names may hold escape sequences of terminals, or lines like ours: only
 *   printable ASCII is written as it is.
 */
#include "output.h"
#include "rawsys.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <time.h>

#define STANDARD_ERROR 2
/* The kernel's signal set, one bit a signal. */
#define BIT(signal) (1UL << ((signal) - 1))

static long signal_mask(int how, const unsigned long *set, unsigned long *old)
{
	return raw4(SYS_rt_sigprocmask, how, (long)set, (long)old, sizeof(*set));
}

static bool look(struct statx *file)
{
	return raw6(SYS_statx, STANDARD_ERROR, (long)"", AT_EMPTY_PATH,
		    STATX_TYPE | STATX_INO | STATX_BTIME, (long)file, 0) == 0;
}

void output_remember(struct output_target *target)
{
	target->usable = look(&target->file);
}

static bool is_remembered(const struct output_target *target)
{
	const struct statx *old = &target->file;
	struct statx now;

	if (!target->usable || !look(&now) ||
	    now.stx_ino != old->stx_ino || now.stx_mask != old->stx_mask ||
	    now.stx_dev_major != old->stx_dev_major ||
	    now.stx_dev_minor != old->stx_dev_minor ||
	    (now.stx_mode & S_IFMT) != (old->stx_mode & S_IFMT))
		return false;
	return !(old->stx_mask & STATX_BTIME) ||
	       (now.stx_btime.tv_sec == old->stx_btime.tv_sec &&
		now.stx_btime.tv_nsec == old->stx_btime.tv_nsec);
}

/* All of it or nothing; room is kept for the end that line_send() makes. */
static void line_bytes(struct line *line, const char *text, size_t length)
{
	size_t room = sizeof(line->text) - sizeof("...") - line->length;

	line->full |= length > room;
	if (line->full)
		return;
	memcpy(line->text + line->length, text, length);
	line->length += length;
}

void line_text(struct line *line, const char *text)
{
	line_bytes(line, text, strlen(text));
}

/* What others choose: names, patterns, values. */
void line_name(struct line *line, const char *name, size_t length)
{
	static const char digits[] = "0123456789abcdef";
	char escaped[] = "\\x00";

	for (size_t i = 0; i < length && !line->full; i++) {
		unsigned char c = (unsigned char)name[i];

		escaped[2] = digits[c >> 4];
		escaped[3] = digits[c & 15];
		if (c < ' ' || c > '~' || c == '\\')
			line_bytes(line, escaped, sizeof(escaped) - 1);
		else
			line_bytes(line, name + i, 1);
	}
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
	line->full = false;
	line_text(line, "ceasefire[");
	line_number(line, (unsigned long)raw_getpid());
	line_text(line, "]: ");
}

void line_send(struct line *line, const struct output_target *target)
{
	const unsigned long held = BIT(SIGPIPE) | BIT(SIGXFSZ) | BIT(SIGTTOU);
	const struct timespec now = { 0, 0 };
	unsigned long old = 0, waiting = 0, caused;
	long result;

	if (!is_remembered(target))
		return;
	if (line->full) {
		memcpy(line->text + line->length, "...", 3);
		line->length += 3;
	}
	line->text[line->length++] = '\n';

	raw4(SYS_rt_sigpending, (long)&waiting, sizeof(waiting), 0, 0);
	signal_mask(SIG_BLOCK, &held, &old);
	result = raw_write(STANDARD_ERROR, line->text, line->length);
	caused = result == -EPIPE ? BIT(SIGPIPE) :
		 result == -EFBIG ? BIT(SIGXFSZ) : 0;
	caused &= ~waiting;
	if (caused)
		raw4(SYS_rt_sigtimedwait, (long)&caused, 0, (long)&now,
		     sizeof(caused));
	signal_mask(SIG_SETMASK, &old, NULL);
}
