# SPDX-License-Identifier: GPL-2.0-only
"""Standard input for a program that is run several times: kept in a file, the same for each run."""

import os
import select
import stat
from pathlib import Path

from ceasefire.errors import UsageError
from ceasefire.output import progress

LIMIT = 1 << 30
_CHUNK = 1 << 20
# After this long a person is told what is waited for.
_PATIENCE = 2.0
_NULL = os.makedev(1, 3)


def keep(path: Path, number: int = 0) -> bool:
    """Write what standard input has to a file; False where a program would get none.

    A terminal is none: nobody types the same thing again for each run.
    """
    try:
        info = os.fstat(number)
    except OSError:
        return False
    if os.isatty(number) or (stat.S_ISCHR(info.st_mode) and info.st_rdev == _NULL):
        return False
    if stat.S_ISCHR(info.st_mode) or stat.S_ISBLK(info.st_mode) or stat.S_ISDIR(info.st_mode):
        raise UsageError(
            "standard input is a device or a folder: give a file, a pipe or </dev/null"
        )
    size = 0
    told = False
    with path.open("wb") as file:
        while True:
            if not told and not select.select([number], [], [], _PATIENCE)[0]:
                progress("reading standard input to its end (without one: </dev/null) ...")
                told = True
            chunk = os.read(number, _CHUNK)
            if not chunk:
                return True
            size += len(chunk)
            if size > LIMIT:
                much = f"{LIMIT >> 30} GiB"
                raise UsageError(f"standard input has more than {much}: name a file in its place")
            file.write(chunk)
