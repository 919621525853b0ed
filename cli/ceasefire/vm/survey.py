# SPDX-License-Identifier: GPL-2.0-only
"""Looks at a folder that is to be copied: is it the one of last time, how much is it.

No file is read. What the file system keeps about each stands for its content: a program cannot
write to a file or to its inode without a new time of change (ctime), and cannot set that time.
Called by disks.py, before a copy and after it.
"""

import contextlib
import hashlib
import os
import stat
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ceasefire.errors import Failure, UsageError

BLOCK = 4096
# A clock of files ticks every ten milliseconds at most; with this much between the last change and
# the survey, a change after the survey has another time.
_TICK_NS = 100_000_000


@dataclass(frozen=True)
class Survey:
    """What is below a directory.

    stamp: another one when anything has changed. entries: how many names there are. size: bytes of
    the blocks that hold data.
    """

    stamp: str
    entries: int
    size: int
    newest: int


def survey(directory: Path) -> Survey:
    """Walk a directory, late enough after its last change."""
    found = _walk(directory)
    if time.time_ns() - found.newest < _TICK_NS:
        time.sleep(_TICK_NS / 1e9)
        found = _walk(directory)
    return found


def _walk(directory: Path) -> Survey:
    digest = hashlib.sha256()
    entries = size = newest = 0
    counted: set[tuple[int, int]] = set()
    top = os.fsencode(directory)
    try:
        for path, info in _below(top, os.lstat(top)):
            facts = (
                *(path, info.st_dev, info.st_ino, info.st_mode, info.st_uid, info.st_gid),
                *(info.st_size, info.st_mtime_ns, info.st_ctime_ns, info.st_rdev),
            )
            digest.update(repr(facts).encode())
            newest = max(newest, info.st_ctime_ns)
            entries += path != top
            size += BLOCK // 8
            # A file with several names is copied once.
            if (info.st_dev, info.st_ino) not in counted:
                size += _data(path, info)
            if info.st_nlink > 1:
                counted.add((info.st_dev, info.st_ino))
    except FileNotFoundError as error:
        raise Failure(f"--data {directory}: {name_of(error)} went while it was read") from None
    except OSError as error:
        raise UsageError(
            f"--data {directory}: {name_of(error)}: {error.strerror}: "
            "give a folder of which all can be read"
        ) from None
    return Survey(digest.hexdigest()[:16], entries, size, newest)


def name_of(error: OSError) -> str:
    """Return the name of the file that an error is about, as one line."""
    name = os.fsdecode(error.filename) if isinstance(error.filename, (str, bytes)) else "a file"
    return name if name.isprintable() else ascii(name)


def _below(path: bytes, info: os.stat_result) -> Iterator[tuple[bytes, os.stat_result]]:
    """Yield a folder and all that is below it, by name. Follows no link; opens folders only."""
    folders = [(path, info)]
    while folders:
        path, info = folders.pop()
        yield path, info
        if not stat.S_ISDIR(info.st_mode):
            continue
        with os.scandir(path) as found:
            names = sorted((entry.path for entry in found), reverse=True)
        folders += ((name, os.lstat(name)) for name in names)


def _data(path: bytes, info: os.stat_result) -> int:
    """Return how much of a file is copied: all but its holes, in whole blocks.

    Fewer blocks than bytes may mean holes, or a file system that compresses: it is asked.
    """
    if not stat.S_ISREG(info.st_mode):
        return _blocks(info.st_size) if stat.S_ISDIR(info.st_mode) else BLOCK
    if not os.access(path, os.R_OK, effective_ids=True):
        raise PermissionError(13, os.strerror(13), path)
    if info.st_blocks * 512 >= info.st_size:
        return _blocks(info.st_size)
    # A FIFO may have taken its place: that must not block.
    number = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        size = end = 0
        # No more data ends it (ENXIO).
        with contextlib.suppress(OSError):
            while end < info.st_size:
                begin = os.lseek(number, end, os.SEEK_DATA)
                end = os.lseek(number, begin, os.SEEK_HOLE)
                size += _blocks(end - begin // BLOCK * BLOCK)
        return size
    finally:
        os.close(number)


def _blocks(size: int) -> int:
    return -(-size // BLOCK) * BLOCK
