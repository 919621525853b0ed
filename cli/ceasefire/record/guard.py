# SPDX-License-Identifier: GPL-2.0-only
"""A process that cleans up when the one that started it has gone, however that ended.

A recorder that is killed outright, by the program that it records or for want of memory, can remove
nothing any more; its trace buffers would take memory and time until somebody looks.
"""

import contextlib
import os
import signal
import time
from collections.abc import Callable

# The files of a process that is killed are closed one by one, and an open one is in the way.
_LIMIT = 10.0
_POLL = 0.05


class Guard:
    """Stands by from its making until release()."""

    def __init__(self, clean_up: Callable[[], bool]) -> None:
        """clean_up: run in another process when this one has gone, until it returns true."""
        end, self._held = os.pipe()
        before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        try:
            self._pid = os.fork()
            if self._pid == 0:
                _stand_by(end, clean_up)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
            os.close(end)

    def release(self) -> None:
        """End it: all is cleaned up."""
        # It may have been stopped, so it is not asked.
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._pid, signal.SIGKILL)
        os.close(self._held)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self._pid, 0)


def _stand_by(end: int, clean_up: Callable[[], bool]) -> None:
    """Wait for the other end of the pipe to be closed, by whoever; in the child."""
    try:
        os.setsid()
        os.chdir("/")
        null = os.open(os.devnull, os.O_RDWR)
        for number, target in ((null, 0), (null, 1), (null, 2), (end, 3)):
            os.dup2(number, target)
        os.closerange(4, os.sysconf("SC_OPEN_MAX"))
        os.read(3, 1)
        limit = time.monotonic() + _LIMIT
        while not clean_up() and time.monotonic() < limit:
            time.sleep(_POLL)
    finally:
        os._exit(0)
