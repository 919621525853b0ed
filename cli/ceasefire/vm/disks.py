# SPDX-License-Identifier: GPL-2.0-only
"""Disk images made from directories of the host, without root.

`ceasefire try --data DIR` gives the guest DIR's files on ext4 over a virtio disk: the guest sees
the host's tree through 9p, where a file mapping behaves unlike on a real file system. An image
is kept until something below DIR changes; the few that were used last are kept.
"""

import hashlib
import os
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from ceasefire import paths
from ceasefire.errors import Failure, UsageError
from ceasefire.output import progress

_KEPT_IMAGES = 6
_BLOCK = 4096
_MARGIN = 96 << 20
_MAKE_LIMIT = 1800.0


@dataclass(frozen=True)
class Survey:
    """What is below a directory: a stamp of names, sizes and times, and how much it is."""

    stamp: str
    entries: int
    size: int


def survey(directory: Path) -> Survey:
    """Walk a directory. Reads no file: name, size, mode and time of change stand for content."""
    digest = hashlib.sha256(str(directory).encode())
    entries = size = 0
    for folder, subfolders, files in os.walk(directory):
        subfolders.sort()
        for name in sorted([*subfolders, *files]):
            path = Path(folder) / name
            info = path.lstat()
            entries += 1
            size += -(-info.st_size // _BLOCK) * _BLOCK + _BLOCK // 8
            facts = (path, info.st_size, info.st_mtime_ns, info.st_mode, info.st_uid, info.st_gid)
            digest.update(repr(facts).encode())
    return Survey(digest.hexdigest()[:16], entries, size)


def ext4_image(directory: Path) -> Path:
    """Return an image with ext4 that holds a copy of the directory, made if needed."""
    if not directory.is_dir():
        raise UsageError(f"--data {directory}: there is no such directory")
    found = survey(directory)
    if not found.entries:
        raise UsageError(f"--data {directory}: the directory is empty")
    image = paths.disks_dir() / f"data-{found.stamp}.ext4"
    if not image.exists():
        progress(f"copying {found.entries:,} files of {directory} to an ext4 image ...")
        _make(directory, found, image)
    os.utime(image)
    images = sorted(paths.disks_dir().glob("data-*.ext4"), key=lambda path: path.stat().st_mtime)
    for old in images[:-_KEPT_IMAGES]:
        old.unlink(missing_ok=True)
    return image


def _make(directory: Path, found: Survey, image: Path) -> None:
    program = paths.find_program("mke2fs")
    if program is None:
        raise Failure("mke2fs is missing: run `make deps`")
    info = directory.stat()
    size = (found.size * 11 // 10 + _MARGIN) // _BLOCK
    handle, name = tempfile.mkstemp(prefix="new-", dir=image.parent)
    os.close(handle)
    fresh = Path(name)
    try:
        done = subprocess.run(
            [
                *(program, "-q", "-t", "ext4", "-F", "-m", "0", "-b", str(_BLOCK)),
                *("-N", str(found.entries * 11 // 10 + 1024)),
                *("-E", f"root_owner={info.st_uid}:{info.st_gid},lazy_itable_init=0"),
                *("-d", str(directory), str(fresh), str(size)),
            ],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_MAKE_LIMIT,
            check=False,
        )
        if done.returncode != 0:
            lines = done.stderr.strip().splitlines() or ["no reason given"]
            raise Failure(f"no image of {directory} could be made: {lines[-1]}")
        fresh.chmod(0o644)
        fresh.replace(image)
    finally:
        fresh.unlink(missing_ok=True)
