# SPDX-License-Identifier: GPL-2.0-only
"""Morsels that have a name in a file system of their own, see morsel(5)."""

import os
from collections.abc import Iterator
from pathlib import Path

from ceasefire.errors import Failure, Unsupported
from ceasefire.modes import MORSEL
from ceasefire.morsel import abi
from ceasefire.text import decoded

_TYPE = "morsel"
_HOW = "mount one: mount -t morsel morsel FOLDER"


def is_path(text: str) -> bool:
    """Return whether a word names a morsel by its path."""
    return "/" in text


def mounts(proc: Path) -> dict[str, int]:
    """Return where file systems of morsels are mounted, with the number of their device."""
    found = {}
    for line in decoded((proc / "self" / "mountinfo").read_bytes()).split("\n"):
        fields, _, rest = line.partition(" - ")
        if rest.split(" ")[0] == _TYPE:
            words = fields.split(" ")
            major, _, minor = words[2].partition(":")
            found[_unescaped(words[4])] = os.makedev(int(major), int(minor))
    return found


def _unescaped(text: str) -> str:
    """Return a path as it is; /proc/self/mountinfo has octal numbers for blanks."""
    for number in ("040", "011", "012", "134"):
        text = text.replace(f"\\{number}", chr(int(number, 8)))
    return text


def all_names(proc: Path) -> Iterator[str]:
    """Yield the path of each morsel that has one, as far as this user may look.

    What is mounted over them, or in one of their folders, is something else.
    """
    try:
        found = mounts(proc)
    except OSError:
        return
    for top, device in found.items():
        for path, folders, files in os.walk(top):
            try:
                here = Path(path).stat().st_dev
            except OSError:
                continue
            if here != device:
                folders.clear()
                continue
            for name in sorted(files):
                yield str(Path(path) / name)


def _require(path: str) -> None:
    if not MORSEL.present():
        raise Unsupported(f"{path}: this kernel has no morsels: see `ceasefire doctor`")


def opened(path: str, flags: int) -> int:
    """Return a descriptor of the morsel of this name. flags: O_RDONLY or O_RDWR."""
    _require(path)
    try:
        # What is no morsel may be a pipe that nobody writes to, or a terminal.
        fd = os.open(path, flags | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    except PermissionError:
        raise Failure(f"{path}: it is somebody else's: use sudo") from None
    except OSError as error:
        raise Failure(f"{path}: {error.strerror}") from None
    if abi.is_morsel(fd):
        return fd
    os.close(fd)
    raise Failure(f"{path} is no morsel: `ceasefire morsel list` shows those there are")


def create(path: str, mode: int) -> int:
    """Make a morsel in the folder of this path and return its descriptor, which exec closes.

    It has no size, and no name before name() gives it one, so nothing is left if something fails.
    mode: of the file, whatever the umask is.
    """
    _require(path)
    if os.path.lexists(path):
        raise Failure(_is_there(path))
    folder = Path(path).parent
    try:
        fd = os.open(folder, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o600)
    except FileNotFoundError:
        raise Failure(f"{path}: there is no such folder: {_HOW}") from None
    except PermissionError as error:
        raise Failure(
            f"{path}: {error.strerror}: the folder is somebody else's, or morsels are switched off"
        ) from None
    except OSError:
        raise Failure(f"{path} is in no file system of morsels: {_HOW}") from None
    if not abi.is_morsel(fd):
        os.close(fd)
        raise Failure(f"{path} is in no file system of morsels: {_HOW}")
    os.fchmod(fd, mode)
    return fd


def name(fd: int, path: str) -> None:
    """Give what create() has made its name."""
    # With a folder Python calls linkat(), which can follow the link that a descriptor is there.
    own = os.open("/proc/self/fd", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.link(str(fd), path, src_dir_fd=own, follow_symlinks=True)
    except FileExistsError:
        raise Failure(_is_there(path)) from None
    except OSError as error:
        raise Failure(f"{path}: {error.strerror}") from None
    finally:
        os.close(own)


def _is_there(path: str) -> str:
    return f"{path}: there is something with this name: remove it, or take another one"
