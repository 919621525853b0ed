# SPDX-License-Identifier: GPL-2.0-only
"""The part of a command line that is a command of the user's; shared by run, try, stat, vm."""

import argparse

from ceasefire.errors import UsageError


def add_command(parser: argparse.ArgumentParser) -> None:
    """Let the parser take `-- CMD ARGS...` at the end."""
    parser.add_argument("command", nargs=argparse.REMAINDER, metavar="-- CMD", help="the command")


def command_of(args: argparse.Namespace, example: str, *, optional: bool = False) -> list[str]:
    """Return the user's command; without one say how it is given."""
    words: list[str] = args.command
    if words[:1] == ["--"]:
        words = words[1:]
    if not words and not optional:
        raise UsageError(f"the command is missing: write for example `{example}`")
    return words
