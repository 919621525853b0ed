# SPDX-License-Identifier: GPL-2.0-only
"""What sharers cost: regions that a CPU came to, page faults, memory of page tables.

For modes in which the kernel has counted fills. The counters are machine-wide, as those of
shootdowns are; of page tables it is what the machine had at most, beyond what it had before.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from ceasefire.bench.catalog.spec import BASELINE
from ceasefire.bench.figures.compare import paired
from ceasefire.bench.results.store import Results, Sample
from ceasefire.counters import FAULTS, FILLS, TABLES


@dataclass(frozen=True)
class Copies:
    """One mode of a benchmark beside `off`, on guests of one size.

    fills: for each operation. faults: for each operation, off and in the mode. tables: KiB, the
    most of all rounds, off and in the mode. None where nobody has counted.
    """

    benchmark: str
    mode: str
    cpus: int
    fills: float
    faults: tuple[float, float] | None
    tables: tuple[int, int] | None

    def text(self) -> str:
        """Return it in words."""
        parts = [f"{self.fills:.5f} fills"]
        if self.faults is not None:
            off, own = self.faults
            parts.append(f"{own:.4f} page faults (off: {off:.4f}) for each operation")
        else:
            parts[0] += " for each operation"
        if self.tables is not None:
            parts.append(f"{self.tables[1]:,} KiB of page tables (off: {self.tables[0]:,})")
        return ", ".join(parts)


def copies(results: Results) -> list[Copies]:
    """Return one for each benchmark, number of CPUs and mode with fills, in the order measured."""
    groups: dict[tuple[str, int], list[Sample]] = {}
    for sample in results.samples:
        if not sample.failed:
            groups.setdefault((sample.benchmark, sample.cpus), []).append(sample)
    found = []
    for (name, cpus), samples in groups.items():
        for mode in dict.fromkeys(s.mode for s in samples if s.mode != BASELINE):
            pairs = paired(samples, mode)
            offs, owns = [off for off, _ in pairs], [own for _, own in pairs]
            fills = _each(owns, FILLS)
            if fills:
                faults = (_each(offs, FAULTS), _each(owns, FAULTS))
                tables = (_most(offs), _most(owns))
                found.append(
                    Copies(
                        name,
                        mode,
                        cpus,
                        fills,
                        None if faults[0] is None or faults[1] is None else (faults[0], faults[1]),
                        None if tables[0] is None or tables[1] is None else (tables[0], tables[1]),
                    )
                )
    return found


def _each(samples: Sequence[Sample], counter: str) -> float | None:
    """Return what was counted for each operation; None if it was not counted each time."""
    operations = sum(s.operations for s in samples)
    if not operations or not all(counter in s.counters for s in samples):
        return None
    return sum(s.counters[counter] for s in samples) / operations


def _most(samples: Sequence[Sample]) -> int | None:
    values = [s.counters[TABLES] for s in samples if TABLES in s.counters]
    return max(values) if values else None
