# SPDX-License-Identifier: GPL-2.0-only
"""Shows how the run goes: one line a job, with the seconds counting up on a terminal."""

import sys
import threading
import time
from types import TracebackType

from ceasefire.output import fancy

_TICK = 1.0
_HEARTBEAT = 60.0


class LiveLine:
    """The line of a running job; a context manager around it.

    A terminal shows one line that is rewritten every second. Elsewhere (a log of CI) a line is
    printed every minute, so that nobody takes a long job for a dead one.
    """

    def __init__(self, name: str, place: str) -> None:
        self.name = name
        self.place = place
        self.started = time.monotonic()
        self._fancy = fancy(sys.stdout)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._tick, daemon=True)

    def __enter__(self) -> "LiveLine":
        self._show()
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._over.set()
        self._thread.join()
        if self._fancy:
            print("\r\033[K", end="", flush=True)

    def seconds(self) -> float:
        """Return how long the job has been running."""
        return time.monotonic() - self.started

    def _tick(self) -> None:
        step = _TICK if self._fancy else _HEARTBEAT
        while not self._over.wait(step):
            self._show()

    def _show(self) -> None:
        seconds = self.seconds()
        if self._fancy:
            print(f"\r\033[K{self.place} {self.name} ... {seconds:.0f} s", end="", flush=True)
        elif seconds >= _HEARTBEAT:
            print(f"{self.place} {self.name}: still running, {seconds:.0f} s", flush=True)
