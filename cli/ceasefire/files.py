# SPDX-License-Identifier: GPL-2.0-only
"""Files that are written as a whole or not at all, and files of others that are safe to open.

Who runs us is often root, and the folder, the path or what stands at the path may be somebody
else's. Opening a FIFO waits for ever, opening a device does something, a link leads elsewhere.
"""

import os
import stat
import tempfile
from pathlib import Path
from typing import BinaryIO

from ceasefire.errors import Failure

# What leads to our own open files, such as /dev/stdout and the pipes of a shell.
_OWN = ("/dev/", "/proc/self/fd/")


class NotRegular(OSError):
    """What is at a path is no regular file, so it was not opened."""


def open_regular(path: str | Path, *, follow: bool = True) -> BinaryIO:
    """Open a regular file for reading, and nothing else. Raises OSError.

    follow: a symbolic link at the end of the path is followed.
    """
    # This opens nothing yet, and what it refers to stays the same from now on.
    flags = os.O_PATH | os.O_CLOEXEC | (0 if follow else os.O_NOFOLLOW)
    place = os.open(path, flags)
    try:
        if not stat.S_ISREG(os.fstat(place).st_mode):
            raise NotRegular(f"{path}: not a regular file")
        # Without waiting for somebody who has a lease.
        number = os.open(f"/proc/self/fd/{place}", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    finally:
        os.close(place)
    return os.fdopen(number, "rb")


def write_whole(path: Path, text: str, *, mode: int | None = None) -> None:
    """Write a file, whole or not at all. A pipe or terminal is written to; a link is replaced.

    mode: whatever the umask is; None leaves that to it.
    Errors: OSError; what was there before is still there then.
    """
    if _is_stream(path):
        _write_stream(path, text)
        return
    number, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(number, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(text)
        if mode is None:
            mask = os.umask(0)
            os.umask(mask)
            mode = 0o666 & ~mask
        Path(name).chmod(mode)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def private_directory(path: Path) -> Path:
    """Make sure that nobody but this user can look into a directory, or put something there.

    It is made if needed. One that somebody else has put there is not trusted, whatever its mode.
    """
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    info = path.lstat()
    if not stat.S_ISDIR(info.st_mode):
        raise Failure(f"{path} is no directory: remove it, or set CEASEFIRE_BUILD to another place")
    if info.st_uid != os.geteuid():
        raise Failure(f"{path} belongs to another user: set CEASEFIRE_BUILD to another place")
    if stat.S_IMODE(info.st_mode) != 0o700:
        path.chmod(0o700)
    return path


def _is_stream(path: Path) -> bool:
    """Say whether a path is no place for a file, but a pipe, a terminal, /dev/null."""
    try:
        mode = path.lstat().st_mode
        if stat.S_ISLNK(mode):
            if not str(path).startswith(_OWN):
                return False
            mode = path.stat().st_mode
    except OSError:
        return False
    if stat.S_ISBLK(mode) or stat.S_ISDIR(mode):
        raise Failure(f"{path} is no place for a file: name a file")
    return not stat.S_ISREG(mode)


def _write_stream(path: Path, text: str) -> None:
    # Somebody has to be reading a FIFO already.
    number = os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    os.set_blocking(number, True)
    with os.fdopen(number, "w", encoding="utf-8", errors="backslashreplace") as file:
        file.write(text)
