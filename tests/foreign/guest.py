# SPDX-License-Identifier: GPL-2.0-only
"""Runs one test in a guest and collects all that can be compared: see judge.Run.

Each run gets an empty folder on the file system under test. Its processes are killed at its end;
after that no recycling context and no parked frame of it may be left.
"""

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path

from ceasefire import counters
from ceasefire.vm.klog import is_bad
from tests.foreign.arms import Arm
from tests.foreign.judge import Run

# Debts age within about a second; an emulated CPU is slow.
_SETTLED_AFTER = 20.0
_KILLED_AFTER = 10


def run(command: str, folder: Path, timeout: float, arm: Arm | None = None) -> Run:
    """Run a shell command; arm: the mechanism that is forced on for it."""
    before = counters.snapshot()
    with kernel_log() as log, tempfile.TemporaryDirectory(dir=folder) as place:
        words = [*(arm.words() if arm else ()), "sh", "-c", command]
        with arm.switched() if arm else nullcontext():
            status, output = _execute(words, Path(place), timeout)
        left = tuple(_left_behind())
        complaints = tuple(line for line in _lines(log) if is_bad(line))
    return Run(status, output, complaints, left, counters.difference(before, counters.snapshot()))


def _execute(words: list[str], place: Path, timeout: float) -> tuple[int | None, str]:
    """Return exit status, None for one that had to be killed, and what was printed."""
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(
            words,
            cwd=place,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        status: int | None = None
        try:
            status = process.wait(timeout)
        except subprocess.TimeoutExpired:
            # Programs such as stress-ng end their children when they are asked to.
            process.terminate()
            try:
                process.wait(_KILLED_AFTER)
            except subprocess.TimeoutExpired:
                process.kill()
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        output.seek(0)
        return status, output.read().decode(errors="replace")


def _left_behind() -> Iterator[str]:
    end = time.monotonic() + _SETTLED_AFTER
    while (found := _unsettled()) and time.monotonic() < end:
        time.sleep(0.1)
    yield from (f"left behind: {name}" for name in found)


def _unsettled() -> list[str]:
    gauges = counters.gauges()
    return [name for name in ("contexts", "parked") if gauges.get(name)]


@contextmanager
def kernel_log() -> Iterator[int]:
    """Open the kernel log behind its last line."""
    log = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        os.lseek(log, 0, os.SEEK_END)
        yield log
    finally:
        os.close(log)


def _lines(log: int) -> Iterator[str]:
    while True:
        try:
            record = os.read(log, 8192).decode(errors="replace")
        except BlockingIOError:
            return
        except BrokenPipeError:
            continue  # overwritten, go on with the rest
        yield record.partition(";")[2].partition("\n")[0]
