# SPDX-License-Identifier: GPL-2.0-only
"""Files of guests and of test jobs: a directory while one runs, and a log that stays.

A directory is removed when its run ends. One that was left by a process which was killed with
SIGKILL is removed by the next run.
"""

import contextlib
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from ceasefire import paths
from ceasefire.files import private_directory

_KEPT_LOGS = 200
# A file that gets the name of each log: so the test driver counts the guests of a job.
LIST = "CEASEFIRE_LOG_LIST"


@contextlib.contextmanager
def run_directory(kind: str) -> Iterator[Path]:
    """Make a directory for one run and remove it afterwards."""
    _sweep()
    prefix = f"{kind}-{os.getpid()}-"
    directory = Path(tempfile.mkdtemp(prefix=prefix, dir=private_directory(paths.runs_dir())))
    try:
        yield directory
    finally:
        shutil.rmtree(directory)


def new_log(name: str, suffix: str) -> Path:
    """Return a fresh, empty log file; the oldest of the same name are dropped."""
    directory = paths.logs_dir()
    old = sorted(directory.glob(f"{name}-2*{suffix}"), key=lambda path: path.stat().st_mtime)
    for stale in old[:-_KEPT_LOGS]:
        stale.unlink(missing_ok=True)
    stamp = time.strftime("%Y%m%d-%H%M%S")
    number = 0
    while True:
        log = directory / f"{name}-{stamp}-{os.getpid()}.{number}{suffix}"
        try:
            log.touch(0o600, exist_ok=False)
        except FileExistsError:
            number += 1
        else:
            _enlist(log)
            return log


def _enlist(log: Path) -> None:
    listed = os.environ.get(LIST)
    if listed:
        with Path(listed).open("a", encoding="utf-8") as file:
            file.write(f"{log.name}\n")


def _sweep() -> None:
    """Remove the directories of processes that are gone."""
    for directory in paths.runs_dir().iterdir():
        pid = directory.name.split("-")[1:2]
        if pid and pid[0].isdecimal() and not Path("/proc", pid[0]).exists():
            shutil.rmtree(directory, ignore_errors=True)
