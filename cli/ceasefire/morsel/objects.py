# SPDX-License-Identifier: GPL-2.0-only
"""The morsels of this machine: those that processes have descriptors of, and those with a name.

/proc/PID/fdinfo/N has their figures. One that is only mapped and has no name is not found.
"""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from ceasefire.errors import Failure, UsageError
from ceasefire.morsel import names
from ceasefire.text import decoded

PROC = Path("/proc")
Key = tuple[int, int]
_LINE = re.compile(r"morsel_(\w+):\t([0-9]{1,20})(?: kB)?")
_NAME = re.compile(r"/memfd:(.*) \(deleted\)", re.DOTALL)
_HOLDER = re.compile(r"([0-9]{1,10}):([0-9]{1,10})", re.ASCII)


@dataclass(frozen=True)
class Morsel:
    """One of them. Sizes are in bytes. holders: PID:FD of each descriptor.

    page: size of its pages. pool: what was given up lazily and is still part of memory.

    name: its path where it has one in a file system, else what it was called by who made it.
    """

    name: str
    size: int
    unit: int
    page: int
    memory: int
    tables: int
    pool: int
    mappings: int
    inode: int
    holders: tuple[str, ...]


def found(proc: Path = PROC) -> list[Morsel]:
    """Return all that this user may see, the largest in memory first."""
    all_ = _held(proc)
    for path in names.all_names(proc):
        try:
            key, morsel = _named(path, proc)
        except Failure:
            # Somebody else's, or removed meanwhile.
            continue
        holders = all_[key].holders if key in all_ else ()
        all_[key] = replace(morsel, holders=holders)
    return sorted(all_.values(), key=lambda m: (-m.memory, m.inode))


def _held(proc: Path) -> dict[Key, Morsel]:
    """Return those that processes have open, but for this one."""
    all_: dict[Key, Morsel] = {}
    for pid in sorted(int(p.name) for p in proc.iterdir() if p.name.isdecimal()):
        if pid == os.getpid():
            continue
        for key, morsel in _of_process(proc, pid):
            before = all_[key].holders if key in all_ else ()
            all_[key] = replace(morsel, holders=before + morsel.holders)
    return all_


def _named(path: str, proc: Path) -> tuple[Key, Morsel]:
    """Return the morsel of this name, without those who have it open."""
    fd = names.opened(path, os.O_RDONLY)
    try:
        morsel = at(proc, os.getpid(), fd)
        where = os.fstat(fd)
    finally:
        os.close(fd)
    if morsel is None:
        raise Failure(f"{path} is no morsel")
    return (where.st_dev, where.st_ino), replace(morsel, name=path, holders=())


def _of_process(proc: Path, pid: int) -> Iterator[tuple[Key, Morsel]]:
    folder = proc / str(pid) / "fdinfo"
    try:
        names = sorted((p.name for p in folder.iterdir() if p.name.isdecimal()), key=int)
    except OSError:
        # It has ended, or is somebody else's.
        return
    for name in names:
        try:
            morsel = at(proc, pid, int(name))
            where = (proc / str(pid) / "fd" / name).stat()
        except OSError:
            continue
        if morsel is not None:
            yield (where.st_dev, where.st_ino), morsel


def at(proc: Path, pid: int, fd: int) -> Morsel | None:
    """Return what a descriptor is of, or None: it is no morsel. Raises OSError."""
    text = decoded((proc / str(pid) / "fdinfo" / str(fd)).read_bytes())
    figures = {m[1]: int(m[2]) for line in text.split("\n") if (m := _LINE.fullmatch(line))}
    if "unit" not in figures:
        return None
    path = proc / str(pid) / "fd" / str(fd)
    is_ = path.stat()
    target = decoded(os.fsencode(path.readlink()))
    name = _NAME.fullmatch(target)
    return Morsel(
        name=name[1] if name else target,
        size=is_.st_size,
        unit=figures["unit"] << 10,
        page=figures.get("base", 4) << 10,
        memory=figures.get("pages", 0) << 10,
        tables=figures.get("tables", 0) << 10,
        pool=figures.get("pool", 0) << 10,
        mappings=figures.get("mappings", 0),
        inode=is_.st_ino,
        holders=(f"{pid}:{fd}",),
    )


def holder_of(text: str) -> tuple[int, int]:
    """Return the process and the descriptor of 'PID:FD'."""
    match = _HOLDER.fullmatch(text)
    if match is None:
        raise UsageError(
            f"{text}: name a morsel as PID:FD, as `ceasefire morsel list` shows it, or by a path "
            "that has a slash"
        )
    return int(match[1]), int(match[2])


def one(text: str, proc: Path = PROC) -> Morsel:
    """Return the morsel that is named as PID:FD or by a path; raise Failure if there is none."""
    if names.is_path(text):
        key, named = _named(text, proc)
        held = _held(proc)
        return replace(named, holders=held[key].holders if key in held else ())
    pid, fd = holder_of(text)
    try:
        morsel = at(proc, pid, fd)
    except PermissionError:
        raise Failure(f"{text}: process {pid} is somebody else's: use sudo") from None
    except OSError:
        raise Failure(f"{text}: process {pid} has no descriptor {fd}") from None
    if morsel is None:
        raise Failure(f"{text} is no morsel: `ceasefire morsel list` shows those there are")
    return morsel


def opened(text: str, proc: Path = PROC, *, flags: int = os.O_RDWR) -> int:
    """Return a descriptor of our own of the morsel named as PID:FD or by a path.

    flags: O_RDWR, or O_RDONLY for one that cannot be changed by it.
    """
    if names.is_path(text):
        return names.opened(text, flags)
    one(text, proc)
    pid, fd = holder_of(text)
    try:
        return os.open(proc / str(pid) / "fd" / str(fd), flags | os.O_CLOEXEC)
    except OSError as error:
        raise Failure(f"{text}: {error.strerror}: use sudo") from None
