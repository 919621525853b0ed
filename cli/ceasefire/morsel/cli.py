# SPDX-License-Identifier: GPL-2.0-only
"""Make, find, fill and empty morsels: shared memory that has page tables of its own.

A morsel is named by a process and its descriptor, PID:FD, as `list` shows them, or by its path if
it has one. create runs a command that has a new one open; its number is in MORSEL_FD. With a path
in a file system of morsels it makes one that stays, and needs no command. copy does the same with
what another one has at this moment; memory is shared until one of both writes. populate makes
memory where there is none, depopulate takes it away from all who use it, destroy for good. RANGE is
OFFSET:LENGTH in bytes or with K, M, G, T behind; without one it is all of it.
"""

import argparse
import json
import os
import re
import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial
from typing import NamedTuple

from ceasefire.cmdline import add_command, command_of
from ceasefire.errors import EXIT_NOT_EXECUTABLE, EXIT_NOT_FOUND, UsageError
from ceasefire.morsel import abi, names, objects
from ceasefire.morsel.objects import Morsel
from ceasefire.output import number, progress, say
from ceasefire.tables import print_table

SCHEMA = 1
FD = "MORSEL_FD"
_BYTES = re.compile(r"([0-9]{1,20})([KMGT]?)", re.ASCII | re.IGNORECASE)
_MODE = re.compile(r"[0-7]{1,4}", re.ASCII)
_SHIFT = {"": 0, "K": 10, "M": 20, "G": 30, "T": 40}
_MOST = (1 << 63) - 1


class Kind(NamedTuple):
    """What can be done: how its options are declared, and what does it."""

    add: Callable[[argparse.ArgumentParser], None]
    main: Callable[[argparse.Namespace], int]
    help: str


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what can be done, and its options."""
    kinds = parser.add_subparsers(dest="kind", metavar="WHAT", required=True)
    for name, kind in KINDS.items():
        kind.add(kinds.add_parser(name, help=kind.help, description=kind.help))


def main(args: argparse.Namespace) -> int:
    """Do it and return the exit status."""
    return KINDS[args.kind].main(args)


def bytes_of(text: str) -> int:
    """Return the bytes of '4096', '64K' or '1G'."""
    match = _BYTES.fullmatch(text)
    value = int(match[1]) << _SHIFT[match[2].upper()] if match else -1
    if not 0 <= value <= _MOST:
        raise UsageError(f"'{text}' is no number of bytes: write it like 4096, 64K or 1G")
    return value


def ranges_of(words: Sequence[str], size: int) -> list[abi.Range]:
    """Return the ranges of OFFSET:LENGTH; without words all of size."""
    ranges = []
    for word in words or [f"0:{size}"]:
        offset, colon, length = word.partition(":")
        if not colon:
            raise UsageError(f"'{word}' is no range: write it like 64K:4K, offset and length")
        found = abi.Range(bytes_of(offset), bytes_of(length))
        if found.offset + found.length > size:
            raise UsageError(f"'{word}' ends behind the morsel, which has {size:,} bytes")
        ranges.append(found)
    return ranges


def _add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON, an object a morsel")


def _add_one(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("morsel", metavar="MORSEL", help="PID:FD, or a path with a slash")


def _add_stat(parser: argparse.ArgumentParser) -> None:
    _add_one(parser)
    _add_json(parser)


def _add_ranges(parser: argparse.ArgumentParser) -> None:
    _add_one(parser)
    parser.add_argument(
        "ranges", metavar="RANGE", nargs="*", help="OFFSET:LENGTH in bytes (default: all of it)"
    )


def _add_depopulate(parser: argparse.ArgumentParser) -> None:
    _add_ranges(parser)
    parser.add_argument(
        "--async",
        action="store_true",
        dest="later",
        help="leave it to the kernel to free the memory meanwhile",
    )
    parser.add_argument(
        "--lazy",
        action="store_true",
        help="interrupt no CPU: contents are undefined until they are populated again",
    )


def _add_destroy(parser: argparse.ArgumentParser) -> None:
    _add_one(parser)
    parser.add_argument(
        "--force", action="store_true", help="also if it is mapped: users of it get SIGBUS"
    )


def _add_create(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "name", metavar="NAME", help="what it is called in /proc, or a path with a slash"
    )
    parser.add_argument("size", metavar="SIZE", help="in bytes, or like 64M or 1G")
    parser.add_argument(
        "--unit", metavar="SIZE", help="2M, 1G, 512G or 256T (default: the smallest that suffices)"
    )
    parser.add_argument(
        "--page",
        metavar="SIZE",
        default="4K",
        help="4K, or 2M or 1G in larger units (default: %(default)s)",
    )
    parser.add_argument("--populate", action="store_true", help="make all of its memory at once")
    parser.add_argument("--lazy", action="store_true", help="allow `depopulate --lazy`")
    _add_mode(parser)


def _add_mode(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--mode", metavar="OCTAL", help="who may use one that has a path (default: 600)"
    )
    add_command(parser)


def _add_copy(parser: argparse.ArgumentParser) -> None:
    _add_one(parser)
    parser.add_argument(
        "name", metavar="NAME", help="of the copy, as in create: with a path if MORSEL has one"
    )
    _add_mode(parser)


def list_main(args: argparse.Namespace) -> int:
    """Print all morsels."""
    show(objects.found(), json_=args.json)
    return 0


def stat_main(args: argparse.Namespace) -> int:
    """Print one morsel."""
    show([objects.one(args.morsel)], json_=args.json)
    return 0


def show(found: Sequence[Morsel], *, json_: bool) -> None:
    """Print morsels as JSON or as a table."""
    if json_:
        for morsel in found:
            print(json.dumps({"schema": SCHEMA, **asdict(morsel)}))
        return
    if not found:
        say("no morsels that you may see")
        return
    rows = [
        [
            m.name,
            number(m.size >> 10),
            number(m.memory >> 10),
            number(m.tables >> 10),
            number(m.unit >> 10),
            str(m.mappings),
            " ".join(m.holders),
        ]
        for m in found
    ]
    columns = ["name", "KiB", "memory", "tables", "unit", "mapped", "open as"]
    print_table(columns, rows, title="morsels, sizes in KiB")


def mode_of(text: str) -> int:
    """Return the mode of '660'."""
    if not _MODE.fullmatch(text):
        raise UsageError(f"'{text}' is no mode: write it like 660")
    return int(text, 8)


def create_main(args: argparse.Namespace) -> int:
    """Make a morsel, and become the command if there is one."""
    mode, command = _mode_and_command(args, "ceasefire morsel create pool 1G -- ./server")
    unit = None if args.unit is None else bytes_of(args.unit)
    if unit is not None and unit not in abi.UNITS:
        raise UsageError(f"--unit {args.unit}: it is 2M, 1G, 512G or 256T")
    page = bytes_of(args.page)
    if page not in abi.PAGES:
        raise UsageError(f"--page {args.page}: it is 4K, 2M or 1G")
    if unit is not None and unit <= page:
        raise UsageError(f"--unit {args.unit}: it has to be larger than a page of {args.page}")
    if args.lazy and page != abi.PAGES[0]:
        raise UsageError("--lazy is for pages of 4K")
    layout = abi.Layout(unit, page, args.lazy)
    size = bytes_of(args.size)
    if not size:
        raise UsageError("a morsel of 0 bytes is of no use: give a size like 64M")
    return _become(args, command, lambda: _create(args, size, layout, mode))


def copy_main(args: argparse.Namespace) -> int:
    """Make a copy of a morsel, and become the command if there is one."""
    mode, command = _mode_and_command(args, "ceasefire morsel copy 4711:3 pool -- ./report")
    return _become(args, command, lambda: _copy(args, mode))


def _mode_and_command(args: argparse.Namespace, example: str) -> tuple[int, list[str]]:
    stays = names.is_path(args.name)
    command = command_of(args, example, optional=stays)
    if command and command[0].startswith("-"):
        raise UsageError(f"{command[0]} stands too late: options come before the name")
    if args.mode is not None and not stays:
        raise UsageError(f"{args.name} has no path, so no mode: write it like /run/morsel/pool")
    return mode_of(args.mode or "600"), command


def _become(args: argparse.Namespace, command: list[str], make: Callable[[], int]) -> int:
    if command and names.is_path(args.name) and shutil.which(command[0]) is None:
        progress(f"ceasefire morsel: {command[0]}: command not found")
        return EXIT_NOT_FOUND
    fd = make()
    if not command:
        os.close(fd)
        return 0
    os.set_inheritable(fd, True)
    sys.stdout.flush()
    try:
        os.execvpe(command[0], command, {**os.environ, FD: str(fd)})
    except FileNotFoundError:
        progress(f"ceasefire morsel: {command[0]}: command not found")
        return EXIT_NOT_FOUND
    except OSError as error:
        progress(f"ceasefire morsel: {command[0]}: {error.strerror}")
        return EXIT_NOT_EXECUTABLE


def _create(args: argparse.Namespace, size: int, layout: abi.Layout, mode: int) -> int:
    """Make the morsel; it gets its name when it has all of its memory."""
    stays = names.is_path(args.name)
    if stays:
        fd = names.create(args.name, mode)
        abi.lay_out(fd, size, layout)
    else:
        fd = abi.create(args.name, size, layout)
    if args.populate:
        abi.populate(fd, [abi.Range(0, size)])
    if stays:
        names.name(fd, args.name)
    return fd


def _copy(args: argparse.Namespace, mode: int) -> int:
    """Make the copy; it gets its name when it is one."""
    origin = objects.opened(args.morsel, flags=os.O_RDONLY)
    try:
        if not names.is_path(args.name):
            return abi.copy_of(origin, args.name)
        fd = names.create(args.name, mode)
        abi.become_copy(fd, origin)
        names.name(fd, args.name)
        return fd
    finally:
        os.close(origin)


def populate_main(args: argparse.Namespace) -> int:
    """Make memory."""
    return _for_ranges(args, abi.populate)


def depopulate_main(args: argparse.Namespace) -> int:
    """Take memory away."""
    return _for_ranges(args, partial(abi.depopulate, later=args.later, lazy=args.lazy))


def destroy_main(args: argparse.Namespace) -> int:
    """Take all memory away for good."""
    fd = objects.opened(args.morsel)
    try:
        abi.destroy(fd, force=args.force)
    finally:
        os.close(fd)
    return 0


def _for_ranges(args: argparse.Namespace, call: Callable[[int, Sequence[abi.Range]], None]) -> int:
    fd = objects.opened(args.morsel)
    try:
        call(fd, ranges_of(args.ranges, os.fstat(fd).st_size))
    finally:
        os.close(fd)
    return 0


KINDS = {
    "list": Kind(_add_json, list_main, "all morsels that processes have open, or with a name"),
    "stat": Kind(_add_stat, stat_main, "what one has"),
    "create": Kind(_add_create, create_main, "make one, and run a command that has it open"),
    "copy": Kind(_add_copy, copy_main, "make a copy of one, which shares its memory until a write"),
    "populate": Kind(_add_ranges, populate_main, "make memory where there is none"),
    "depopulate": Kind(_add_depopulate, depopulate_main, "take memory away from all who use it"),
    "destroy": Kind(_add_destroy, destroy_main, "take all memory away for good"),
}
