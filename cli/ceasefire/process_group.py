# SPDX-License-Identifier: GPL-2.0-only
"""Starts and ends processes with ours; used by the harness, its disks and the test driver."""

import contextlib
import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

from ceasefire import paths
from ceasefire.errors import Failure

_POLL = 0.02


def keep_nice(process: subprocess.Popen[bytes]) -> None:
    """Let the nice value of the calling thread hold for a session that it has just started.

    Where the scheduler groups by session, a new one gets as much time as all others, and nice
    values count inside it only; the group has a value of its own.
    """
    nice = os.getpriority(os.PRIO_PROCESS, threading.get_native_id())
    if nice == 0:
        return
    # Not on every kernel, gone with a process that has ended, and not so often for every user.
    with contextlib.suppress(OSError):
        Path(f"/proc/{process.pid}/autogroup").write_text(f"{nice}\n", encoding="ascii")


def kill_group(process: subprocess.Popen[bytes], wait: float) -> None:
    """End every process of the group that this process leads; the leader itself may be gone.

    wait: seconds between asking (SIGTERM) and insisting (SIGKILL), and after that.
    """
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
        except ProcessLookupError:
            break
        deadline = time.monotonic() + wait
        while time.monotonic() < deadline:
            process.poll()
            try:
                os.killpg(process.pid, 0)
            except ProcessLookupError:
                return
            time.sleep(_POLL)
    process.wait()


def end_with_parent(signal_name: str) -> list[str]:
    """Return the words before a command that let the kernel end it when its parent is gone."""
    setpriv = paths.find_program("setpriv")
    if setpriv is None:
        raise Failure("setpriv is missing: install util-linux")
    return [setpriv, "--pdeathsig", signal_name, "--"]


@contextlib.contextmanager
def signals_raise() -> Iterator[None]:
    """Let SIGTERM and SIGHUP unwind the stack as Ctrl-C does, so that what was started is ended."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    numbers = (signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.signal(number, interrupt) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def signals_held() -> Iterator[None]:
    """Hold signals back while a process is started: nobody would know of it who could end it.

    Not by a mask, which the process would inherit.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    before = {}
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        # One that is ignored stays so, in the process, too.
        if signal.getsignal(number) is not signal.SIG_IGN:
            before[number] = signal.signal(number, lambda which, _frame: came.append(which))
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        for which in came[:1]:
            signal.raise_signal(which)
