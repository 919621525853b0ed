# SPDX-License-Identifier: GPL-2.0-only
"""Notices that a guest hangs, long before its time is up.

There are two signs, both on the console. The kernel says that a CPU or a task has made no progress
for a long time: what waits for that will wait for ever. Or nothing is printed at all: the script of
the guest prints a line every few seconds, and starts a program for it, so this needs a CPU, memory
and the file tree. A guest that gets no CPU of this machine cannot do that either, so the time for
which QEMU has waited for one does not count. Called by guest.py.
"""

import contextlib
import os
import re
import time
from collections.abc import Sequence
from pathlib import Path

from ceasefire.vm.klog import message

# The guest prints this often. A guest is silent for too long after ten times that.
BEAT = 5
SILENCE = 50.0
_STUCK = re.compile(
    r"""^(?:
        (?:watchdog:\ )?BUG:\ (?:soft|hard)\ (?:lockup|LOCKUP)
      | watchdog:.*(?:lockup|LOCKUP)
      | rcu:.*(?:self-detected\ stall|detected\ (?:expedited\ )?stalls|kthread\ starved)
      | INFO:\ task\ .*\ blocked\ for\ more\ than
    )""",
    re.VERBOSE,
)
# The kernel says in the lines that follow where it hangs.
_LAST_WORDS = 2.0


class Pulse:
    """The signs of life of one guest.

    console: the file with what the kernel prints. silence: seconds. allow: patterns of lines that
    are no sign of a hang.
    """

    def __init__(self, console: Path, silence: float, allow: Sequence[str] = ()) -> None:
        self._console = console
        self._silence = silence
        self._allow = [re.compile(pattern) for pattern in allow]
        self._read = 0
        self._line = b""
        self._heard = time.monotonic()
        self._waited: dict[int, float] = {}
        self._stuck = ""
        self._since = 0.0

    def lost(self, group: int) -> str:
        """Return why the guest is given up, empty as long as it may live.

        group: the process group of QEMU.
        """
        now = time.monotonic()
        with self._console.open("rb") as file:
            file.seek(self._read)
            chunk = file.read()
        if chunk:
            self._read += len(chunk)
            self._heard = now
            self._waited = {}
            *lines, self._line = (self._line + chunk).split(b"\n")
            if not self._stuck and self._find(lines):
                self._since = now
        if self._stuck and now - self._since >= _LAST_WORDS:
            return f"the kernel says so: {self._stuck}"
        self._waited = self._waited or waited(group)
        if now - self._heard < self._silence:
            return ""
        kept = max((s - self._waited.get(n, s) for n, s in waited(group).items()), default=0.0)
        if now - self._heard - kept < self._silence:
            return ""
        return f"no sign of life for {self._silence:g} s"

    def _find(self, lines: Sequence[bytes]) -> bool:
        for raw in lines:
            line = raw.decode(errors="replace")
            text = message(line)
            if _STUCK.match(text) and not any(p.search(line) for p in self._allow):
                self._stuck = text.strip()
                return True
        return False


def waited(group: int) -> dict[int, float]:
    """Return for each thread of a process group how many seconds it has waited for a CPU so far."""
    found = {}
    for process in Path("/proc").iterdir():
        # It may have ended; and not every kernel counts.
        with contextlib.suppress(OSError):
            if process.name.isdecimal() and os.getpgid(int(process.name)) == group:
                for thread in (process / "task").iterdir():
                    _, wait, _ = (thread / "schedstat").read_text(encoding="ascii").split()
                    found[int(thread.name)] = int(wait) / 1e9
    return found


def heartbeat() -> list[str]:
    """Return the lines of a guest's shell script that let it print signs of life from there on.

    The kernel must not choose the heart when memory runs out. It beats on the first CPU: whatever
    runs beside the threads of a test drops the translations that they hold, and those threads are
    on the other CPUs.
    """
    return [
        "taskset -c 0 sh -c '",
        "\techo -1000 >/proc/self/oom_score_adj",
        f'\twhile sleep {BEAT}; do echo "<7>ceasefire-vm: alive" >/dev/kmsg; done',
        "' </dev/null >/dev/null 2>&1 &",
    ]
