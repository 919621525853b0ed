# SPDX-License-Identifier: GPL-2.0-only
"""What a guest prints, moved to where it is kept, up to a limit.

All that a guest can write on this machine without end comes through a pipe and a thread of ours:
the command's output and error, the console, QEMU's own messages. A file that QEMU writes itself has
no limit, and root in the guest can print for as long as the guest runs. Called by guest.py.
"""

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

Sink = Callable[[bytes], object]

# No run that means well comes near: a kernel log of hours has a few MiB, and so have results.
LOG_LIMIT = 32 << 20
OUTPUT_LIMIT = 256 << 20
_CHUNK = 65536


class Pump(threading.Thread):
    """Moves a stream to its sink until the stream ends.

    Keeps reading when the sink fails or the limit is reached, or the guest would block.
    what: its name for a person. limit: bytes for the sink, None for any number. rest: seconds
    between two reads, for a stream that comes in single bytes: a read for each would cost more than
    the guest. cut: more came than the limit.
    """

    def __init__(
        self, number: int, sink: Sink, what: str, limit: int | None, rest: float = 0.0
    ) -> None:
        super().__init__(daemon=True)
        self.what = what
        self.limit = limit
        self.cut = False
        self.error: Exception | None = None
        self._number = number
        self._sink = sink
        self._rest = rest

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
            if self._rest:
                time.sleep(self._rest)
        os.close(self._number)

    def text(self) -> str:
        """Say what was too much."""
        return f"more than {(self.limit or 0) >> 20} MiB {self.what}"


class Fifo:
    """A named pipe that QEMU opens as a file. It ends once the writers and the keeper are gone."""

    def __init__(self, path: Path) -> None:
        os.mkfifo(path, 0o600)
        # Without a writer the first read would end it.
        self.reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        self._keeper = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
        os.set_blocking(self.reader, True)

    def end(self) -> None:
        """Let it end with its last writer."""
        os.close(self._keeper)
