# SPDX-License-Identifier: GPL-2.0-only
"""Starts and ends process groups that are not ours; used by the harness and the test driver."""

import contextlib
import os
import signal
import subprocess
import threading
import time
from pathlib import Path

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
