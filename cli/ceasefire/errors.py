# SPDX-License-Identifier: GPL-2.0-only
"""What can go wrong and which exit status it has; used by every verb and by the test driver.

A verb raises one of these with a single line that says what to do. `ceasefire.__main__` prints
the line on stderr and exits with the status, so that nobody ever sees a traceback. What others have
chosen in it (a name, the output of a guest) cannot pass for a line of ours, see said().
"""

from ceasefire.text import shown

EXIT_USAGE = 2
EXIT_GUEST = 70
EXIT_UNSUPPORTED = 77
EXIT_TIMEOUT = 124
EXIT_NOT_EXECUTABLE = 126
EXIT_NOT_FOUND = 127


class Failure(Exception):
    """Something failed that the user can do something about."""

    status = 1
    # Lines behind the first are quoted from elsewhere; without them all is one line.
    quotes = False


def said(failure: Failure) -> str:
    """Return what to print about a failure: one line, and below it what it quotes."""
    if not failure.quotes:
        return shown(str(failure))
    first, *others = str(failure).split("\n")
    return "\n".join([shown(first), *(f"  | {shown(line)}" for line in others)])


class Interrupted(Exception):
    """The work was given up from outside while it was under way; its processes are gone."""


class UsageError(Failure):
    """The command was called in a way that makes no sense."""

    status = EXIT_USAGE


class Unsupported(Failure):
    """The running kernel cannot do what was asked."""

    status = EXIT_UNSUPPORTED


class GuestError(Failure):
    """The guest did not boot, crashed, or its kernel complained."""

    status = EXIT_GUEST
    quotes = True


class GuestTimeout(Failure):
    """The guest did not finish in time and was killed."""

    status = EXIT_TIMEOUT
