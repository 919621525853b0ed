# SPDX-License-Identifier: GPL-2.0-only
"""How busy this machine was with other things while a guest ran; `ceasefire try` tells it."""

import os
import resource
import time
from dataclasses import dataclass
from pathlib import Path

STAT = Path("/proc/stat")
_TICKS = os.sysconf("SC_CLK_TCK")
# user nice system (idle iowait) irq softirq steal
_BUSY = (0, 1, 2, 5, 6, 7)
# The tools themselves, and rounding.
_TOLERATED = 0.25


@dataclass(frozen=True)
class Load:
    """cpus: of this machine. others: how many of them other programs took, on average.

    average: the load average of the last minute.
    """

    cpus: int
    others: float
    average: float

    def busy(self, wanted: int) -> bool:
        """Say whether a guest with so many CPUs had to share them."""
        return self.cpus - self.others < min(wanted, self.cpus) - _TOLERATED

    def text(self) -> str:
        """Say it."""
        taken = f"{self.others:.1f} of its {self.cpus} CPUs"
        return f"other programs took {taken}, load {self.average:.1f}"


class Meter:
    """Measures from when it is made."""

    def __init__(self) -> None:
        self._begin = _now()

    def read(self) -> Load:
        """Return what others did until now; our children that have ended are not others."""
        seconds, busy, ours = (now - then for now, then in zip(_now(), self._begin, strict=True))
        others = max(busy - ours, 0.0) / max(seconds, 0.01)
        cpus = os.cpu_count() or 1
        return Load(cpus, min(others, float(cpus)), os.getloadavg()[0])


def _now() -> tuple[float, float, float]:
    fields = STAT.read_text(encoding="ascii").split("\n", 1)[0].split()[1:]
    busy = sum(int(fields[i]) for i in _BUSY if i < len(fields)) / _TICKS
    ours = 0.0
    for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN):
        usage = resource.getrusage(who)
        ours += usage.ru_utime + usage.ru_stime
    return time.monotonic(), busy, ours
