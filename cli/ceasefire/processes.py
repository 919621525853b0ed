# SPDX-License-Identifier: GPL-2.0-only
"""Ends a process group and waits until it is gone; used by the harness and the test driver."""

import os
import signal
import subprocess
import time

_POLL = 0.02


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
