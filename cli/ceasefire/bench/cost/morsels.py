# SPDX-License-Identifier: GPL-2.0-only
"""What morsels take beside other shared memory, in instructions.

morsel-bench runs in a guest with one CPU, under -icount, and steps-plugin counts between its marks.
What a call leaves to others belongs to it: `take` waits until all has been freed. What a wait takes
by itself is measured beside it, and taken off again.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from statistics import median
from typing import Any

from ceasefire.bench.cost import marked
from ceasefire.bench.cost.count import METRIC
from ceasefire.bench.measure import machine, programs
from ceasefire.bench.results import store
from ceasefire.bench.results.store import Folder, Sample
from ceasefire.errors import Failure
from ceasefire.output import progress

MORSEL = "morsel"
CALL = "call"
# The same of an object with one page in each 2 MiB.
SPARSE = "sparse"
# The mode in which whole tables of pages are cut, and that in which tables of those are.
TABLES, MIDDLES = "unit-1G", "unit-512G"
# Of a call that leaves it to others to free the memory: so many, and for each entry that is cut.
CALL_MOST, CUT_MOST = 4000, 100
# A GiB of pages, of morsels or of something else, and what the guest itself needs.
_MEMORY = "3G"
_CPUS = 1
_TAKE = "take"
_WAIT = "wait"
# The mode of waits.
_NONE = "-"


@dataclass(frozen=True)
class Limit:
    """A case of morsels: most instructions, as a share of another way's."""

    mode: str
    other: str
    share: float
    # In bytes.
    least: int
    most: int


KIB = 1 << 10
GIB = 1 << 30
LIMITS: Mapping[str, tuple[Limit, ...]] = {
    "map": (Limit(MORSEL, "shm", 0.001, GIB, GIB),),
    "copy": (Limit(MORSEL, "fork", 1 / 50, GIB, GIB),),
    _TAKE: (
        Limit(MORSEL, "shm-remove", 1, 4 * KIB, 4 * KIB),
        Limit(MORSEL, "shm-remove", 1 / 15, 512 * KIB, GIB),
        Limit("morsel-faults", "shm-remove-faults", 1 / 6, 512 * KIB, GIB),
    ),
}


@dataclass(frozen=True)
class Row:
    """The median of the samples of one way, and how far they lie apart, in percent.

    cost: 0 where the wait that is taken off varies by more than the calls take.
    """

    case: str
    size: int
    mode: str
    cost: float
    spread: float


def measure(folder: Folder, repeats: int, largest: int) -> None:
    """Add the samples of morsel-bench."""
    progress(f"{marked.KERNEL} kernel under -icount, about two minutes for each repeat")
    words = [str(programs.find("morsel-bench")), "--repeats", str(repeats)]
    lines = marked.count([*words, "--largest", str(largest)], "morsel", _CPUS, _MEMORY)
    folder.add(
        machine.host_record(
            "bench morsels",
            where=f"in a guest with {_CPUS} emulated CPU, -icount shift=0",
            accel="tcg",
            kernel_kind=marked.KERNEL,
            cpus=_CPUS,
            comparable=False,
        )
    )
    for sample in samples_of(lines):
        folder.add(sample)


def samples_of(lines: Iterable[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the samples among lines of morsel-bench that have their counts."""
    for line in lines:
        try:
            yield {
                "type": "sample",
                "benchmark": f"{line['case']}-{int(line['size'])}",
                "mode": str(line["variant"]),
                "round": int(line["repeat"]),
                "metrics": {METRIC: float(line["instructions"]), "faults": int(line["faults"])},
                "operations": int(line["calls"]),
            }
        except store.MALFORMED as error:
            raise Failure(f"what the program printed is damaged: {error}") from None


def rows_of(samples: Iterable[Sample]) -> list[Row]:
    """Return a row for each way of each case and size, in the order of the samples."""
    found: dict[tuple[str, int, str], list[Sample]] = {}
    for sample in samples:
        case, _, text = sample.benchmark.partition("-")
        found.setdefault((case, int(text), sample.mode), []).append(sample)
    rows = []
    for (case, size, mode), group in found.items():
        if case == _WAIT:
            continue
        # What else there is to do in a wait depends on what was done before.
        waits = found.get((_WAIT, size, _NONE), []) if case == _TAKE else []
        off = median(s.metrics[METRIC] for s in waits) if waits else 0.0
        costs = [(s.metrics[METRIC] - off) / s.operations for s in group]
        cost = median(costs)
        spread = 100 * (max(costs) - min(costs)) / cost if cost > 0 else 0.0
        rows.append(Row(case, size, mode, max(cost, 0.0), spread))
    if not rows:
        raise Failure("morsel-bench has printed no samples")
    return rows


def cuts(size: int, mode: str) -> int:
    """Return how many entries are cut for so many bytes: the highest ones but roots.

    Where a unit has 2 MiB its table of pages is its root, which is never cut.
    """
    table = 512 * 4 * KIB
    if mode == MIDDLES and size >= GIB:
        return size // GIB
    return size // table if mode in (TABLES, MIDDLES) and size >= table else size // (4 * KIB)


def missed(rows: Iterable[Row]) -> list[str]:
    """Return what takes more than it may, a line each."""
    costs = {(row.case, row.size, row.mode): row.cost for row in rows}
    lines = []
    for (case, size, mode), cost in costs.items():
        if not cost:
            lines.append(f"{case} of {size:,} bytes, {mode}: the wait took more than the calls")
            continue
        most = CALL_MOST + CUT_MOST * cuts(size, mode)
        if case in (CALL, SPARSE) and cost > most:
            lines.append(f"{case} of {size:,} bytes, {mode}: {cost:,.0f}, must be {most:,}")
        for limit in LIMITS.get(case, ()):
            other = costs.get((case, size, limit.other))
            if mode != limit.mode or not other or not limit.least <= size <= limit.most:
                continue
            if cost > limit.share * other:
                lines.append(
                    f"{case} of {size:,} bytes, {mode}: {other / cost:.1f} times less than "
                    f"{limit.other}, must be {1 / limit.share:,.0f}"
                )
    return lines
