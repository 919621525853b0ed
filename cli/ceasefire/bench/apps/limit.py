# SPDX-License-Identifier: GPL-2.0-only
"""Runs a command in a control group with little memory, after the page cache was emptied.

The group (cgroup v2) limits what the command and its page cache take together, so that the kernel
evicts while the machine has plenty: a database on a RAM disk is larger than its memory, and nobody
waits for a disk. The code of the command is read before, outside the group: else a small group
evicts the program itself, which is not what is measured. This program becomes the command. It needs
root.
"""

import argparse
import contextlib
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from ceasefire.errors import Failure
from ceasefire.text import shown

_NAME = "ceasefire-bench"
_MOUNTS = Path("/proc/self/mounts")
_USUAL = Path("/sys/fs/cgroup")
_CACHES = Path("/proc/sys/vm/drop_caches")
_UNITS = {"K": 10, "M": 20, "G": 30}
# Less, and many programs do not even start.
_LEAST = 4 << 20
_TRIES = 50
# A line of ldd: a file, and where it is loaded.
_LIBRARY = re.compile(r"(/\S+) \(0x")


def main(args: argparse.Namespace) -> None:
    """Make the group, enter it, become the command."""
    size = memory(args.memory) if args.memory else size_of(args.share_of) // args.parts
    if size < _LEAST:
        raise Failure(f"a limit of {size:,} bytes is too little for a program")
    if not args.command:
        raise Failure("which command? Give it after --")
    drop_caches()
    read_code(args.command)
    group = make_group(size)
    (group / "cgroup.procs").write_text(f"{os.getpid()}\n", encoding="ascii")
    os.execvp(args.command[0], args.command)


def memory(text: str) -> int:
    """Return a number of bytes, which may end with K, M or G."""
    digits, unit = (text[:-1], _UNITS[text[-1]]) if text[-1:] in _UNITS else (text, 0)
    if not digits.isdecimal():
        raise Failure(f"'{text}' is no size: give 24M, for instance")
    return int(digits) << unit


def size_of(place: Path) -> int:
    """Return how many bytes a file, or the files in a folder, take on the disk."""
    files = [place] if place.is_file() else [path for path in place.rglob("*") if path.is_file()]
    if not files:
        raise Failure(f"{place}: there are no files")
    return sum(path.stat().st_blocks * 512 for path in files)


def drop_caches() -> None:
    """Write back and forget what is cached: a page belongs to the group that reads it first."""
    os.sync()
    _CACHES.write_text("1\n", encoding="ascii")


def read_code(command: Sequence[str]) -> None:
    """Read the programs that a command names, and their libraries, into the page cache."""
    programs = [found for word in command if (found := shutil.which(word))]
    listed = subprocess.run(["ldd", *programs], capture_output=True, text=True, check=False).stdout
    for path in {*programs, *_LIBRARY.findall(listed)}:
        Path(path).read_bytes()


def make_group(size: int) -> Path:
    """Return the folder of a new group that may have so many bytes, and no swap."""
    root = _mounted()
    group = root / _NAME
    with contextlib.suppress(FileNotFoundError):
        group.rmdir()
    (root / "cgroup.subtree_control").write_text("+memory\n", encoding="ascii")
    group.mkdir()
    (group / "memory.max").write_text(f"{size}\n", encoding="ascii")
    with contextlib.suppress(FileNotFoundError):
        (group / "memory.swap.max").write_text("0\n", encoding="ascii")
    return group


def times_reached() -> int:
    """Return how often what ran last in the group wanted more than it may have."""
    for line in (_mounted() / _NAME / "memory.events").read_text(encoding="ascii").splitlines():
        name, count = line.split()
        if name == "max":
            return int(count)
    return 0


def remove_group() -> None:
    """Remove the group if there is one; what was killed in it may take a moment to go."""
    for line in _MOUNTS.read_text(encoding="utf-8").splitlines():
        _, place, kind, *_ = line.split()
        group = Path(place) / _NAME
        if kind != "cgroup2" or not group.is_dir():
            continue
        for _ in range(_TRIES):
            with contextlib.suppress(OSError):
                group.rmdir()
                break
            time.sleep(0.1)


def _mounted() -> Path:
    """Return where cgroup v2 is, mounted if need be."""
    for line in _MOUNTS.read_text(encoding="utf-8").splitlines():
        _, place, kind, *_ = line.split()
        if kind == "cgroup2":
            return Path(place)
    subprocess.run(["mount", "-t", "cgroup2", "none", str(_USUAL)], check=True)
    return _USUAL


def _options() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    size = options.add_mutually_exclusive_group(required=True)
    size.add_argument("--memory", metavar="SIZE", help="bytes, or 24M")
    size.add_argument("--share-of", type=Path, metavar="PATH", help="a part of what this takes")
    options.add_argument("--parts", type=int, default=10, help="that part (default: a tenth)")
    options.add_argument("command", nargs=argparse.REMAINDER, metavar="COMMAND")
    return options


def _run() -> None:
    args = _options().parse_args()
    args.command = args.command[1:] if args.command[:1] == ["--"] else args.command
    try:
        main(args)
    except (Failure, OSError, subprocess.SubprocessError) as error:
        print(shown(f"limit: {error}"), file=sys.stderr)
        sys.exit(1)


if __name__ == "__main__":
    _run()
