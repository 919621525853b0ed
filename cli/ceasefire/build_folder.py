# SPDX-License-Identifier: GPL-2.0-only
"""The build folder as a place that may be cleaned up: whose it is, and who is using it.

A marker says that the folder is ours, so that cleaning up removes nothing else. Who uses the
folder holds a shared lock on it, who cleans it up an exclusive one. scripts/lib-folder.sh does the
same for the scripts. Called by ceasefire.paths.
"""

import contextlib
import fcntl
import os
import stat
import sys
import time
from collections.abc import Collection
from pathlib import Path

from ceasefire.errors import Failure

MARKER = ".ceasefire-build"
LOCK = ".lock"
# Ten times what removing everything takes.
_CLEANING_LIMIT = 600.0

_held: dict[Path, int] = {}


def trusted(folder: Path, users: Collection[int]) -> bool:
    """Say whether the folder belongs to root, to us or to one of these, and strangers cannot write
    to it.
    """
    info = folder.stat()
    return info.st_uid in (0, os.geteuid(), *users) and not info.st_mode & stat.S_IWOTH


def use(folder: Path, *, owner: Path | None, chosen: bool, users: Collection[int]) -> None:
    """Make the folder if needed, and keep it from being cleaned up until this process ends.

    owner: the checkout it belongs to; chosen: by CEASEFIRE_BUILD, so it may be anything.
    Errors: Failure when it is not ours or strangers can change it; OSError.
    """
    if folder in _held and os.fstat(_held[folder]).st_nlink:
        return
    deadline = time.monotonic() + _CLEANING_LIMIT
    while True:
        folder.mkdir(parents=True, exist_ok=True)
        if not trusted(folder, users):
            raise Failure(
                f"{folder} belongs to a stranger, or strangers can write to it: chown and chmod "
                "it, or set CEASEFIRE_BUILD"
            )
        _mark(folder, owner, chosen=chosen)
        number = _shared(folder / LOCK, deadline)
        # Cleaning up has removed it meanwhile: a lock on nothing.
        if os.fstat(number).st_nlink:
            _held[folder] = number
            return
        os.close(number)


def _mark(folder: Path, owner: Path | None, *, chosen: bool) -> None:
    marker = folder / MARKER
    if marker.is_file() and not marker.is_symlink():
        return
    if chosen and any(folder.iterdir()):
        raise Failure(
            f"{folder} has files that are not of ceasefire: set CEASEFIRE_BUILD to a new or empty "
            f"folder (or `touch {marker}` if all in it may be removed)"
        )
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with (
        contextlib.suppress(FileExistsError),
        os.fdopen(os.open(marker, flags, 0o644), "wb") as file,
    ):
        file.write(os.fsencode(owner or "installed") + b"\n")


def _shared(path: Path, deadline: float) -> int:
    # What another has planted there is neither followed nor waited for nor changed.
    flags = os.O_RDONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        number = os.open(path, flags, 0o644)
    except OSError as error:
        raise Failure(f"{path} is no lock of ceasefire ({error.strerror}): remove it") from None
    if not stat.S_ISREG(os.fstat(number).st_mode):
        os.close(number)
        raise Failure(f"{path} is no lock of ceasefire (no plain file): remove it")
    told = False
    while True:
        try:
            fcntl.flock(number, fcntl.LOCK_SH | fcntl.LOCK_NB)
            return number
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise Failure(f"{path.parent} is being cleaned up: wait for that first") from None
        if not told:
            print(f"waiting until {path.parent} is cleaned up ...", file=sys.stderr)
            told = True
        time.sleep(0.1)
