# SPDX-License-Identifier: GPL-2.0-only
"""Tell what FPR would save a program, from a recording of its shootdowns on any x86-64 kernel.

Runs the command, or looks at a process with -p, or reads a recording with -i; says which calls
send shootdowns, from where, which of them FPR would not send, and how to switch it on. With a
command the page goes to standard error, and the exit status is the command's.
"""

import argparse
import io
import json
import sys
from pathlib import Path
from typing import TextIO

from ceasefire.cmdline import command_of
from ceasefire.errors import UsageError
from ceasefire.files import write_whole
from ceasefire.output import progress
from ceasefire.record import cli, model, page, web
from ceasefire.record.processes import NotStarted


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `ceasefire advise`."""
    parser.add_argument("-i", "--input", metavar="FILE", help="a recording, instead of a command")
    parser.add_argument("-o", "--output", metavar="FILE", help="write the page there")
    parser.add_argument("--html", metavar="FILE", help="also write a page for browsers")
    parser.add_argument("--json", action="store_true", help="print JSON")
    cli.add_source(parser)


def main(args: argparse.Namespace) -> int:
    """Record if needed, and print the page."""
    cli.check_source(
        args, "ceasefire advise -- rg --mmap PATTERN DIR", optional=args.input is not None
    )
    command = command_of(args, "", optional=True)
    if args.input is not None and (command or args.pid is not None):
        raise UsageError("-i reads a recording: leave the command and -p out")
    targets = [Path(name) for name in (args.output, args.html) if name is not None]
    for target in targets:
        cli.check_target(target)
    status = 0
    if args.input is not None:
        recording = model.load(Path(args.input))
    else:
        try:
            result = cli.record(args, lambda _: None)
        except NotStarted as problem:
            progress(f"ceasefire advise: {problem}")
            return problem.status
        cli.name_places(result)
        recording, status = result.recording, result.status
    if args.html is not None:
        write_whole(Path(args.html), web.document(recording))
    if args.output is not None:
        text = io.StringIO()
        _print(args, recording, text)
        write_whole(Path(args.output), text.getvalue())
    else:
        _print(args, recording, sys.stderr if command else sys.stdout)
    return status


def _print(args: argparse.Namespace, recording: model.Recording, stream: TextIO) -> None:
    if args.json:
        print(json.dumps(page.to_object(recording)), file=stream)
    else:
        page.show(recording, stream)
