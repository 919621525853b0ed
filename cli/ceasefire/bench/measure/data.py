# SPDX-License-Identifier: GPL-2.0-only
"""The data that benchmarks read: disks of a guest, or folders of this machine.

  null_blk, brd-ext4, image   as for `ceasefire vm`
  tree                        a copy of a folder with thousands of files
  made:COMMAND                what a shell command makes in an empty folder, kept for the next time

The last two are virtio disks with ext4, mounted where the folder is; what a guest writes to them is
gone after it.
"""

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

from ceasefire import paths
from ceasefire.bench.measure.programs import search_path
from ceasefire.errors import Failure
from ceasefire.output import progress
from ceasefire.vm.disks import ext4_image
from ceasefire.vm.spec import DiskSpec, parse_disk

_TREE = "tree"
_MADE = "made:"
_LIMIT = 3600.0


def disk(text: str) -> DiskSpec:
    """Return the disk that a benchmark asks for, made if need be."""
    place = folder(text)
    return (
        parse_disk(text) if place is None else DiskSpec("image", str(ext4_image(place)), str(place))
    )


def folder(text: str) -> Path | None:
    """Return the folder that a disk is made from, None for one without."""
    if text == _TREE:
        return tree()
    return made(text.removeprefix(_MADE)) if text.startswith(_MADE) else None


def has_files(text: str) -> bool:
    """Say whether a folder of this machine can stand for a disk."""
    return text == _TREE or text.startswith((_MADE, "brd-ext4"))


def tree() -> Path:
    """Return a folder with thousands of files: the kernel's documentation, or Debian's."""
    own = paths.linux_dir() / "Documentation"
    return own if own.is_dir() else Path("/usr/share/doc")


def made(command: str) -> Path:
    """Return the folder in which a command has made its data."""
    name = hashlib.sha256(command.encode()).hexdigest()[:16]
    place = paths.build_dir() / "bench-data" / name
    if place.is_dir():
        return place
    part = place.with_suffix(".part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    progress(f"making data: {command}")
    try:
        done = subprocess.run(
            ["sh", "-c", command],
            cwd=part,
            env={**os.environ, "PATH": search_path()},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_LIMIT,
            check=False,
        )
        if done.returncode:
            lines = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
            raise Failure(f"making data failed: {lines[-1]}")
        part.rename(place)
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return place
