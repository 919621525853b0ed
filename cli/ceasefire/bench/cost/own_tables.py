# SPDX-License-Identifier: GPL-2.0-only
"""What upper page tables of each CPU's own cost that CPU, in instructions.

own-tables-bench runs in a guest with one CPU, under -icount: with nobody else there to be
interrupted, what a mode takes longer than `off` is the work of the mechanism itself.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ceasefire import modes
from ceasefire.bench.cost import count
from ceasefire.bench.measure import machine, programs
from ceasefire.bench.results.store import Folder, Sample
from ceasefire.errors import Failure
from ceasefire.output import progress
from ceasefire.vm import GuestSpec, run_guest

KERNEL = "run"
OFF = modes.OFF.name
SHARERS = modes.SHARERS.name
# Each first touch fills an entry; without that there were no tables to look at.
_FILLING = "first-touch"
_FILLS = "sharers_fill"


@dataclass(frozen=True)
class Limit:
    """How much more an operation may take: percent, or instructions."""

    percent: float | None = None
    instructions: float | None = None

    def words(self) -> str:
        """Return it for a table."""
        return f"+{self.percent:g} %" if self.percent is not None else f"+{self.instructions:g}"

    def is_kept(self, off: float, on: float) -> bool:
        """Tell whether an operation is within it."""
        if self.percent is not None:
            return 100 * (on - off) <= self.percent * off
        return self.instructions is None or on - off <= self.instructions


LIMITS: Mapping[str, Limit] = {
    "first-touch": Limit(percent=5),
    "known-region": Limit(percent=1),
    "madvise-2": Limit(percent=3),
    "switch": Limit(instructions=30),
    "one-thread": Limit(percent=0.1),
}


@dataclass(frozen=True)
class Row:
    """The lowest samples of a case in both modes, and how far they lie apart, in percent.

    Where pages come from and what was freed before add up to some percent to a sample, and never
    take anything away.
    """

    case: str
    off: float
    on: float
    spread: float


def measure(folder: Folder, boots: int, repeats: int) -> None:
    """Add the samples of own-tables-bench."""
    command = [str(programs.find("own-tables-bench")), "--repeats", str(repeats)]
    for boot in range(boots):
        progress(f"{KERNEL} kernel under -icount, boot {boot + 1} of {boots}, a minute each")
        spec = GuestSpec(
            kernel=KERNEL,
            cpus=1,
            icount=True,
            accel="tcg",
            timeout=count.GUEST_LIMIT,
            qemu_args=("-icount", count.ICOUNT),
        )
        result = run_guest(spec, command, name="bench-sharers-cost", cwd=Path("/"))
        machine.judge(result.check(), result.stderr.decode(errors="replace"))
        folder.add(
            machine.host_record(
                "bench sharers-cost",
                where="in a guest with one emulated CPU, -icount shift=0",
                accel="tcg",
                kernel_kind=KERNEL,
                cpus=1,
                comparable=False,
            )
        )
        lines = result.stdout.decode("utf-8", errors="replace").split("\n")
        for record in with_tables(count.samples_in(lines, boot * repeats)):
            folder.add(record)


def with_tables(samples: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the samples; raise Failure where a CPU should have had tables and had none."""
    for sample in samples:
        filled = sample["counters"].get(_FILLS, 0) >= sample["operations"]
        if sample["benchmark"] == _FILLING and filled != (sample["mode"] == SHARERS):
            raise Failure(f"{_FILLING} in mode {sample['mode']}: not the page tables of the mode")
        yield sample


def rows_of(samples: Iterable[Sample]) -> list[Row]:
    """Return a row for each case, in the order of the samples."""
    groups: dict[str, dict[str, list[float]]] = {}
    for sample in samples:
        group = groups.setdefault(sample.benchmark, {OFF: [], SHARERS: []})
        group[sample.mode].append(sample.metrics[count.METRIC])
    rows = []
    for case, found in groups.items():
        if not all(found.values()):
            raise Failure(f"no samples of {case} in one of the modes")
        spread = max(100 * (max(v) - min(v)) / min(v) for v in found.values())
        rows.append(Row(case, min(found[OFF]), min(found[SHARERS]), spread))
    if not rows:
        raise Failure("own-tables-bench has printed no samples")
    return rows
