# SPDX-License-Identifier: GPL-2.0-only
"""What a guest prints, up to a limit.

Root in the guest can print for as long as the guest runs. The command's output and error come
through a pipe and a thread of ours; the console and QEMU's own messages are files that QEMU writes,
and whose size is looked at. Called by guest.py.
"""

import os
import threading
from collections.abc import Callable
from pathlib import Path

Sink = Callable[[bytes], object]

# No run that means well comes near: a kernel log of hours has a few MiB, and so have results.
LOG_LIMIT = 32 << 20
OUTPUT_LIMIT = 256 << 20
_CHUNK = 65536


def _too_much(limit: int, what: str) -> str:
    return f"more than {limit >> 20} MiB {what}"


class Pump(threading.Thread):
    """Moves a stream to its sink until the stream ends.

    Keeps reading when the sink fails or the limit is reached, or the guest would block.
    what: its name for a person. limit: bytes for the sink, None for any number. cut: more came than
    the limit.
    """

    def __init__(self, number: int, sink: Sink, what: str, limit: int | None) -> None:
        super().__init__(daemon=True)
        self.what = what
        self.limit = limit
        self.cut = False
        self.error: Exception | None = None
        self._number = number
        self._sink = sink

    def run(self) -> None:
        """Read to the end and close the stream."""
        left = self.limit
        while chunk := os.read(self._number, _CHUNK):
            if left is not None:
                self.cut = self.cut or len(chunk) > left
                chunk = chunk[:left]
                left -= len(chunk)
            if chunk and self.error is None:
                try:
                    self._sink(chunk)
                except Exception as error:  # it is raised by the thread that waits for the guest
                    self.error = error
        os.close(self._number)

    def text(self) -> str:
        """Say what was too much."""
        return _too_much(self.limit or 0, self.what)


class Watched:
    """A file that QEMU writes itself: the console, its messages. The one who waits for it looks.

    No pipe: an emulated serial port whose reader is slow can lose the interrupt that goes on.
    """

    def __init__(self, path: Path, what: str, limit: int) -> None:
        self.what = what
        self.limit = limit
        self._path = path

    @property
    def cut(self) -> bool:
        """More is there than the limit."""
        return self._path.exists() and self._path.stat().st_size > self.limit

    def text(self) -> str:
        """Say what was too much."""
        return _too_much(self.limit, self.what)

    def end(self) -> None:
        """Cut off what came until the writer was ended."""
        if self.cut:
            os.truncate(self._path, self.limit)
