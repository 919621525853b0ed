# SPDX-License-Identifier: GPL-2.0-only
"""Boot a built kernel on this machine's file tree and run a command in it, as root.

The exit status is the command's; 70 when the kernel complained or the guest did not boot, 124
when the time was up. The command sees the host's files; it may write to those in /etc, /home,
/opt, /srv, /usr, /var and /tmp, which stays in the guest, and to no others.
Disk number N (from 0) is at /run/disk/N: the device, or the mounted file system of brd-ext4.
"""

import argparse
import re
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

from ceasefire.cmdline import add_command, command_of
from ceasefire.errors import UsageError
from ceasefire.output import progress
from ceasefire.vm import emulator
from ceasefire.vm.guest import run_guest
from ceasefire.vm.spec import GuestSpec, add_guest_arguments, spec_from_arguments


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `ceasefire vm`."""
    add_guest_arguments(parser)
    group = parser.add_argument_group("the run")
    group.add_argument(
        "--env", action="append", default=[], metavar="NAME=VALUE", help="set it for the command"
    )
    group.add_argument(
        "--allow-log",
        action="append",
        default=[],
        metavar="REGEX",
        help="lines of the kernel log that are no complaints for this command; may be repeated",
    )
    group.add_argument("--log", action="store_true", help="print where the kernel log is")
    add_command(parser)


def main(args: argparse.Namespace) -> int:
    """Boot, run, and return the command's exit status."""
    command = command_of(args, "ceasefire vm -- uname -r")
    spec = _with_variables(spec_from_arguments(args), args.env)
    spec = replace(spec, allow_log=_patterns(args.allow_log))
    result = run_guest(
        spec,
        command,
        cwd=Path.cwd(),
        stdout=_writer(sys.stdout.buffer),
        stderr=_writer(sys.stderr.buffer),
        limit=None,
    )
    if args.log:
        progress(str(result.log))
    status = result.check()
    if warning := emulator.warning(spec, result.log):
        progress(f"ceasefire vm: {warning}")
    return status


def _writer(stream: BinaryIO) -> Callable[[bytes], None]:
    """Return a sink that shows the command's output as it comes."""

    def write(chunk: bytes) -> None:
        stream.write(chunk)
        stream.flush()

    return write


def _patterns(texts: list[str]) -> tuple[str, ...]:
    for text in texts:
        try:
            re.compile(text)
        except re.error as error:
            raise UsageError(f"--allow-log {text}: not a regular expression: {error}") from None
    return tuple(texts)


def _with_variables(spec: GuestSpec, assignments: list[str]) -> GuestSpec:
    pairs = []
    for text in assignments:
        name, equals, value = text.partition("=")
        if not equals or not name.isidentifier():
            raise UsageError(f"--env {text}: write it like NAME=VALUE")
        pairs.append((name, value))
    return replace(spec, environment=spec.environment + tuple(pairs))
