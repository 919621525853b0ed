# SPDX-License-Identifier: GPL-2.0-only
"""Shows how the run goes: what runs at the moment, with the seconds counting up on a terminal."""

import contextlib
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from ceasefire.output import fancy
from ceasefire.text import lines_of

_TICK = 1.0
_HEARTBEAT = 60.0
_TAIL = 500


class Board:
    """The running jobs and the lines of those that ended; a context manager around the run.

    A terminal shows one line that is rewritten every second. Elsewhere (a log of CI) a line is
    printed every minute a job takes, so that nobody takes a long one for dead. Two jobs may run at
    a time: one lock keeps their lines whole.
    """

    def __init__(self) -> None:
        self._fancy = fancy(sys.stdout)
        self._lock = threading.Lock()
        self._running: dict[str, float] = {}
        self._heard: dict[str, float] = {}
        self._logs: dict[str, Path] = {}
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._tick, daemon=True)

    def __enter__(self) -> "Board":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        self._clear()

    @contextlib.contextmanager
    def job(self, title: str, log: Path) -> Iterator[Callable[[], float]]:
        """Show a job while it runs; gives a function that returns its seconds so far.

        log: where the job says how far it is, see _progress().
        """
        started = time.monotonic()
        with self._lock:
            self._running[title] = self._heard[title] = started
            self._logs[title] = log
        try:
            yield lambda: time.monotonic() - started
        finally:
            with self._lock:
                del self._running[title], self._heard[title], self._logs[title]

    def print(self, text: str) -> None:
        """Print lines that stay."""
        with self._lock:
            self._clear()
            print(text, flush=True)

    def _tick(self) -> None:
        while not self._over.wait(_TICK):
            with self._lock:
                self._show(time.monotonic())

    def _show(self, now: float) -> None:
        if self._fancy:
            shown = ", ".join(f"{t} ... {now - s:.0f} s" for t, s in self._running.items())
            print(f"\r\033[K{shown}", end="", flush=True)
            return
        for title, started in self._running.items():
            if now - self._heard[title] >= _HEARTBEAT:
                self._heard[title] += _HEARTBEAT
                far = _progress(self._logs[title])
                print(f"{title}: still running, {now - started:.0f} s{far}", flush=True)

    def _clear(self) -> None:
        if self._fancy:
            print("\r\033[K", end="", flush=True)


def _progress(log: Path) -> str:
    """Return how far a build is: the last line of its log if that is indented, else nothing."""
    try:
        lines = lines_of(log.read_bytes()[-_TAIL:])
    except OSError:
        return ""
    return f": {lines[-1].strip()}" if lines and lines[-1].startswith("  ") else ""
