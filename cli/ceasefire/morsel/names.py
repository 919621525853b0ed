# SPDX-License-Identifier: GPL-2.0-only
"""Morsels that have a name in a file system of their own, see morsel(5)."""

import os
from collections.abc import Iterator
from pathlib import Path

from ceasefire.errors import Failure
from ceasefire.morsel import abi
from ceasefire.text import decoded

_TYPE = "morsel"
_HOW = "mount one: mount -t morsel morsel FOLDER"


def is_path(text: str) -> bool:
    """Return whether a word names a morsel by its path."""
    return "/" in text


def mounts(proc: Path) -> list[str]:
    """Return where file systems of morsels are mounted."""
    found = []
    for line in decoded((proc / "self" / "mountinfo").read_bytes()).splitlines():
        fields, _, rest = line.partition(" - ")
        if rest.split(" ")[0] == _TYPE:
            found.append(_unescaped(fields.split(" ")[4]))
    return found


def _unescaped(text: str) -> str:
    """Return a path as it is; /proc/self/mountinfo has octal numbers for blanks."""
    for number in ("040", "011", "012", "134"):
        text = text.replace(f"\\{number}", chr(int(number, 8)))
    return text


def all_names(proc: Path) -> Iterator[str]:
    """Yield the path of each morsel that has one, as far as this user may look."""
    try:
        folders = mounts(proc)
    except OSError:
        return
    for folder in folders:
        for path, _, files in os.walk(folder):
            for name in sorted(files):
                yield str(Path(path) / name)


def opened(path: str, flags: int) -> int:
    """Return a descriptor of the morsel of this name. flags: O_RDONLY or O_RDWR."""
    try:
        # What is no morsel may be a pipe that nobody writes to.
        fd = os.open(path, flags | os.O_CLOEXEC | os.O_NONBLOCK)
    except PermissionError:
        raise Failure(f"{path}: it is somebody else's: use sudo") from None
    except OSError as error:
        raise Failure(f"{path}: {error.strerror}") from None
    if abi.is_morsel(fd):
        return fd
    os.close(fd)
    raise Failure(f"{path} is no morsel: `ceasefire morsel list` shows those there are")


def create(path: str, size: int, unit: int | None, mode: int) -> int:
    """Make a morsel with a name and return its descriptor, which exec closes.

    If it fails there is no such name. mode: of the file, whatever the umask is.
    """
    try:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise Failure(f"{path}: {_why(error, path)}") from None
    try:
        if not abi.is_morsel(fd):
            raise Failure(f"{path} is in no file system of morsels: {_HOW}")
        abi.lay_out(fd, size, unit)
        os.fchmod(fd, mode)
    except BaseException:
        os.close(fd)
        Path(path).unlink()
        raise
    return fd


def _why(error: OSError, path: str) -> str:
    if isinstance(error, FileExistsError):
        return f"there is something with this name: rm {path}"
    if isinstance(error, FileNotFoundError):
        return f"there is no such folder: {_HOW}"
    if isinstance(error, PermissionError):
        return f"{error.strerror}: the folder is somebody else's, or morsels are switched off"
    return str(error.strerror)
