# SPDX-License-Identifier: GPL-2.0-only
"""Looks at the mappings of processes, which may take for ever.

/proc/PID/maps waits for a lock of the process, and a process can have its memory locked for as long
as it likes: by a file system of its own that does not answer. Nothing but the end of the reader
ends that wait, so a thread reads, and is given up when it does not come back.
"""

import contextlib
import queue
import threading
from collections.abc import Iterable

from ceasefire.record.mappings import Region
from ceasefire.record.processes import maps_of

_LIMIT = 2.0


class Looker:
    """Reads mappings in a thread of its own. stuck: it hangs, and looks no more."""

    def __init__(self) -> None:
        """Start it."""
        self.stuck = False
        self._wanted: queue.SimpleQueue[list[int]] = queue.SimpleQueue()
        self._found: queue.SimpleQueue[list[tuple[int, list[Region]]]] = queue.SimpleQueue()
        # It does not keep the process from ending.
        threading.Thread(target=self._run, daemon=True).start()

    def look(self, pids: Iterable[int]) -> list[tuple[int, list[Region]]]:
        """Return the mappings of those processes that have any now."""
        if self.stuck:
            return []
        self._wanted.put(list(pids))
        with contextlib.suppress(queue.Empty):
            return self._found.get(timeout=_LIMIT)
        self.stuck = True
        return []

    def _run(self) -> None:
        while True:
            seen = [(pid, maps_of(pid)) for pid in self._wanted.get()]
            self._found.put([(pid, regions) for pid, regions in seen if regions])
