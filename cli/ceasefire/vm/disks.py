# SPDX-License-Identifier: GPL-2.0-only
"""Disk images made from directories of the host, without root.

`ceasefire try --data DIR` gives the guest DIR's files on ext4 over a virtio disk: the guest sees
the host's tree through 9p, where a file mapping behaves unlike on a real file system. An image is
as private as the most private file in it: it and its folder are for the user alone.

Images are kept for the next run: `data-FOLDER-STAMP.ext4` beside `data-FOLDER.source`, which says
of which folder it is. Whoever makes or drops images holds the lock of their folder, and a run holds
a shared lock on each image that it has asked for until it ends. So a file `new-*` that is there
when the lock is free was left by a run that was killed. The kernel drops locks with the process.

Called by `ceasefire try` and by the data of benchmarks.
"""

import contextlib
import fcntl
import hashlib
import os
import shutil
import stat
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from ceasefire import paths, remedies
from ceasefire.errors import Failure, UsageError
from ceasefire.files import private_directory
from ceasefire.output import progress
from ceasefire.process_group import end_with_parent, kill_group, signals_held, signals_raise
from ceasefire.vm.survey import BLOCK, Survey, survey

__all__ = ["ext4_image", "release", "require_directory", "survey"]

# What is kept for later runs, docs/tools.md has it too.
KEPT_BYTES = 10 << 30
KEPT_SECONDS = 30 * 24 * 3600.0
_LOCK = "lock"
_MARGIN = 96 << 20
_MAKE_LIMIT = 1800.0
_KILL_WAIT = 2.0
_ERRORS_SHOWN = 65536

# The images that this process has asked for, open and locked.
_held: dict[Path, int] = {}


def ext4_image(directory: Path) -> Path:
    """Return an image with ext4 that holds a copy of the directory, made if needed.

    It stays as long as this process lives, whatever others do.
    """
    directory = directory.resolve()
    require_directory(directory)
    place = private_directory(paths.disks_dir())
    if place.resolve().is_relative_to(directory):
        raise UsageError(
            f"--data {directory}: the images of such folders are in it: give a folder below it, "
            "or set CEASEFIRE_BUILD to a folder elsewhere"
        )
    found = survey(directory)
    if not found.entries:
        raise UsageError(f"--data {directory}: the directory is empty")
    folder = hashlib.sha256(os.fsencode(directory)).hexdigest()[:16]
    image = place / f"data-{folder}-{found.stamp}.ext4"
    with signals_raise(), _locked(place):
        for rest in place.glob("new-*"):
            rest.unlink()
        _drop(place, _outdated(place, image))
        if not image.exists():
            progress(f"copying {found.entries:,} files of {_shown(directory)} to an ext4 image ...")
            _make(directory, found, image)
            (place / f"data-{folder}.source").write_bytes(os.fsencode(directory))
        _hold(image)
        os.utime(image)
        _drop(place, _too_many(place))
    return image


def require_directory(directory: Path) -> None:
    """Refuse what is no folder to copy."""
    if not directory.is_dir():
        raise UsageError(f"--data {directory}: there is no such directory")


def release() -> None:
    """Let the images go that this process has asked for; the end of the process does it, too."""
    while _held:
        os.close(_held.popitem()[1])


def free_bytes(place: Path) -> int:
    """Return how much can be written to the file system of a folder."""
    return shutil.disk_usage(place).free


@contextlib.contextmanager
def _locked(place: Path) -> Iterator[None]:
    """Hold the lock of the folder of images."""
    lock = os.open(place / _LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        os.fchmod(lock, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            progress("waiting for another ceasefire that makes an image ...")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def _hold(image: Path) -> None:
    """Say that this process uses an image."""
    if image not in _held:
        _held[image] = os.open(image, os.O_RDONLY | os.O_CLOEXEC)
        fcntl.flock(_held[image], fcntl.LOCK_SH)


def _drop(place: Path, images: Sequence[Path]) -> None:
    """Remove images, but for those that a run has asked for, and what is known of no image."""
    for image in images:
        file = os.open(image, os.O_RDONLY | os.O_CLOEXEC)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            continue
        else:
            image.unlink()
        finally:
            os.close(file)
    for source in place.glob("data-*.source"):
        if not any(place.glob(f"{source.stem}-*.ext4")):
            source.unlink()


def _outdated(place: Path, wanted: Path) -> list[Path]:
    """Return the images that nobody will want: of folders that are gone, changed, or not known."""
    found = []
    for image in place.glob("data-*.ext4"):
        folder = image.stem.rpartition("-")[0]
        try:
            known = Path(os.fsdecode((place / f"{folder}.source").read_bytes())).is_dir()
        except OSError:
            known = False
        if image != wanted and (not known or wanted.name.startswith(f"{folder}-")):
            found.append(image)
    return found


def _too_many(place: Path) -> list[Path]:
    """Return the images that were not used for long, or are more than is kept; oldest first."""
    images = sorted((path.stat().st_mtime, path) for path in place.glob("data-*.ext4"))
    excess = sum(path.stat().st_blocks * 512 for _, path in images) - KEPT_BYTES
    found = []
    for used, path in images:
        if excess > 0 or time.time() - used > KEPT_SECONDS:
            found.append(path)
            excess -= path.stat().st_blocks * 512
    return found


def _make(directory: Path, found: Survey, image: Path) -> None:
    """Copy the directory to a new image, whole or not at all."""
    programs = [paths.find_program(name) for name in ("mke2fs", "debugfs")]
    if None in programs:
        raise Failure(f"e2fsprogs is missing (mke2fs, debugfs): {remedies.system('e2fsprogs')}")
    mke2fs, debugfs = (str(program) for program in programs)
    size = (found.size * 11 // 10 + _MARGIN) // BLOCK * BLOCK
    _require_room(directory, size, image.parent)
    info = directory.stat()
    handle, name = tempfile.mkstemp(prefix="new-", dir=image.parent)
    try:
        os.fchmod(handle, 0o600)
        os.close(handle)
        failed = _run(
            [
                *(mke2fs, "-q", "-t", "ext4", "-F", "-m", "0", "-b", str(BLOCK)),
                *("-N", str(found.entries * 11 // 10 + 1024)),
                *("-E", f"root_owner={info.st_uid}:{info.st_gid},lazy_itable_init=0"),
                *("-d", str(directory), name, str(size // BLOCK)),
            ]
        )
        # mke2fs gives the root directory a mode of its own.
        mode = f"set_inode_field <2> mode 0{stat.S_IMODE(info.st_mode) | stat.S_IFDIR:o}"
        failed = failed or _run([debugfs, "-w", "-R", mode, name])
        if failed:
            raise Failure(f"no image of {_shown(directory)} could be made: {failed}")
        if survey(directory).stamp != found.stamp:
            raise Failure(
                f"--data {_shown(directory)}: it changed while it was copied: "
                "stop the programs that write to it and try again"
            )
        Path(name).replace(image)
    finally:
        Path(name).unlink(missing_ok=True)


def _require_room(directory: Path, size: int, place: Path) -> None:
    """Refuse a copy that cannot end well, once images that are not in use have made room."""
    if size > free_bytes(place):
        _drop(place, list(place.glob("data-*.ext4")))
    free = free_bytes(place)
    if size > free:
        raise Failure(
            f"--data {_shown(directory)}: its image needs {size >> 20:,} MiB and {place} has "
            f"{free >> 20:,} MiB: give a smaller folder, or set CEASEFIRE_BUILD to one with room"
        )


def _run(words: Sequence[str]) -> str:
    """Run a program that must not outlive this one; return the last line of why it failed."""
    with tempfile.TemporaryFile() as errors:
        process: subprocess.Popen[bytes] | None = None
        try:
            with signals_held():
                process = subprocess.Popen(
                    [*end_with_parent("KILL"), *words],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=errors,
                    start_new_session=True,
                )
            status = process.wait(_MAKE_LIMIT)
        except subprocess.TimeoutExpired:
            return f"no end after {_MAKE_LIMIT:g} s"
        finally:
            if process is not None:
                kill_group(process, _KILL_WAIT)
        errors.seek(max(0, errors.tell() - _ERRORS_SHOWN))
        lines = errors.read().decode(errors="replace").strip().splitlines() or ["no reason given"]
    return lines[-1] if status else ""


def _shown(path: Path) -> str:
    """Return a path as one line that can be printed."""
    return str(path) if str(path).isprintable() else ascii(str(path))
