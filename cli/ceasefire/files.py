# SPDX-License-Identifier: GPL-2.0-only
"""Files that are there as a whole or not at all, and folders that are for one user alone."""

import os
import stat
import tempfile
from pathlib import Path

from ceasefire.errors import Failure


def write_whole(path: Path, text: str) -> None:
    """Write a file, whole or not at all. Something that is no regular file is written to.

    Errors: OSError; what was there before is still there then.
    """
    if path.exists() and not path.is_file():
        path.write_text(text, encoding="utf-8")
        return
    number, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(number, "w", encoding="utf-8") as file:
            file.write(text)
        mask = os.umask(0)
        os.umask(mask)
        Path(name).chmod(0o666 & ~mask)
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
