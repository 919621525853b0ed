# SPDX-License-Identifier: GPL-2.0-only
"""Record where the TLB shootdowns of a program come from, on any x86-64 kernel.

With a command: from its start to its end, with all that it starts; the exit status is the
command's. With --repeat it is run several times. With -p: a process that runs, until it ends,
Ctrl-C, or --seconds are over. Takes the rights of root. `ceasefire advise -i FILE` makes a page of
the recording.
"""

import argparse
import json
import os
import stat
import sys
from pathlib import Path

from ceasefire.cmdline import add_command, command_of
from ceasefire.errors import Failure, UsageError
from ceasefire.files import write_whole
from ceasefire.output import progress
from ceasefire.record import symbols
from ceasefire.record.model import Recording, merged, to_json
from ceasefire.record.processes import NotStarted
from ceasefire.record.recorder import Keep, Recorder, Result, joined
from ceasefire.sizes import parse_size

_DEFAULT = "ceasefire.json"
_LEAST, _MOST = 64, 1 << 20
_MOST_RUNS = 1000


def add_source(parser: argparse.ArgumentParser) -> None:
    """Declare what is recorded; the same for `record` and `advise`."""
    parser.add_argument("-p", "--pid", type=int, metavar="PID", help="a process that runs already")
    parser.add_argument(
        "--seconds", type=float, metavar="SEC", help="with -p: stop after this long"
    )
    parser.add_argument(
        "--repeat",
        type=int,
        default=1,
        metavar="N",
        help="run the command N times, and tell how much the runs differ (default: 1)",
    )
    parser.add_argument(
        "--buffer",
        metavar="SIZE",
        help="memory for events, for each CPU and twice, such as 4M (default: what is free)",
    )
    add_command(parser)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `ceasefire record`."""
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        default=_DEFAULT,
        help=f"the recording (default: {_DEFAULT})",
    )
    add_source(parser)


def main(args: argparse.Namespace) -> int:
    """Record, and write the recording."""
    check_source(args, "ceasefire record -- rg --mmap PATTERN DIR")
    target = Path(args.output)
    check_target(target)

    def keep(recording: Recording) -> None:
        write_whole(target, json.dumps(to_json(recording), indent=1) + "\n")

    try:
        result = record(args, keep)
    except NotStarted as problem:
        progress(f"ceasefire record: {problem}")
        return problem.status
    # On disk by now; whatever comes of the names, it stays.
    name_places(result)
    if stat.S_ISREG(target.lstat().st_mode):
        keep(result.recording)
    received = result.recording.total().received
    progress(
        f"ceasefire record: {received:,} shootdowns received: "
        f"`ceasefire advise -i {target}` tells of them"
    )
    return result.status


def check_source(args: argparse.Namespace, example: str, *, optional: bool = False) -> None:
    """Raise if the options say nothing, or too much."""
    command = command_of(args, example, optional=True)
    if args.pid is not None:
        if command:
            raise UsageError("a command does not go with -p: leave one of them out")
        if args.pid < 1:
            raise UsageError(f"-p {args.pid}: it is at least 1")
    elif args.seconds is not None:
        raise UsageError("--seconds goes with -p: a command is recorded to its end")
    elif not command and not optional:
        raise UsageError(f"say what to record: -p PID, or a command, for example `{example}`")
    if args.seconds is not None and args.seconds <= 0:
        raise UsageError(f"--seconds {args.seconds:g}: it is more than 0")
    if not 1 <= args.repeat <= _MOST_RUNS:
        raise UsageError(f"--repeat {args.repeat}: it is 1 to {_MOST_RUNS}")
    if args.repeat > 1 and not command:
        raise UsageError("--repeat runs a command several times: give one, not -p or -i")
    if args.repeat > 1 and _is_pipe(0):
        raise UsageError("--repeat: a pipe can be read once: give the input as a file (< FILE)")
    buffer_kib(args)


def buffer_kib(args: argparse.Namespace) -> int | None:
    """Return the size of the buffers that was asked for."""
    if args.buffer is None:
        return None
    size = parse_size(args.buffer) >> 10
    if not _LEAST <= size <= _MOST:
        raise UsageError(f"--buffer {args.buffer}: it is 64K to 1G")
    return size


def record(args: argparse.Namespace, keep: Keep) -> Result:
    """Record what the options say. keep: gets the recording before names are looked for."""
    recorder = Recorder(buffer_kib(args))
    if args.pid is not None:
        return recorder.process(args.pid, args.seconds, keep)
    sys.stdout.flush()
    return _runs(recorder, command_of(args, ""), args.repeat, keep)


def _runs(recorder: Recorder, words: list[str], wanted: int, keep: Keep) -> Result:
    """Run a command so many times, each with the same input, unless a signal ends one of them."""
    start = _position(0)
    results: list[Result] = []

    def keep_all(recording: Recording) -> None:
        keep(merged([*(result.recording for result in results), recording]))

    for number in range(1, wanted + 1):
        if start is not None:
            os.lseek(0, start, os.SEEK_SET)
        results.append(recorder.command(words, keep_all))
        if wanted > 1:
            received = results[-1].recording.total().received
            progress(f"run {number} of {wanted}: {received:,} shootdowns received")
        if results[-1].stopped:
            break
    found = joined(results)
    if len(results) < wanted:
        found.recording.remarks.append(
            f"A signal has ended run {len(results)}: the other {wanted - len(results)} are missing."
        )
    return found


def _position(number: int) -> int | None:
    """Return where a file is read next, None if it is none that can be read again."""
    try:
        regular = stat.S_ISREG(os.fstat(number).st_mode)
        return os.lseek(number, 0, os.SEEK_CUR) if regular else None
    except OSError:
        return None


def _is_pipe(number: int) -> bool:
    try:
        mode = os.fstat(number).st_mode
    except OSError:
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)


def name_places(result: Result) -> None:
    """Put the names of functions into a recording."""
    found = symbols.resolve(place for site in result.places for place in site.places)
    result.name_places(found)


def check_target(path: Path) -> None:
    """Raise, before anything is run, if a file cannot be written."""
    folder = path.parent
    if path.is_dir():
        raise Failure(f"{path} is a directory")
    if not folder.is_dir():
        raise Failure(f"{folder}: there is no such directory")
    if not os.access(folder, os.W_OK):
        raise Failure(f"{folder}: not allowed to write there")
