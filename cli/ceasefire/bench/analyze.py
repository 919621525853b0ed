# SPDX-License-Identifier: GPL-2.0-only
"""From samples to figures: paired ratios of modes, shootdowns received per operation.

Modes that were measured in the same round are compared with each other, so that a machine that
was slow for a while was slow for both. Counts are summed over all rounds.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from ceasefire.bench.records import MunmapSample

RECEIVED = "nr_tlb_remote_flush_received"
_INTERRUPTS = "interrupts_tlb"
_DRAIN = "fpr_drain_"


@dataclass(frozen=True)
class Ratio:
    """A ratio of two modes over the rounds."""

    median: float
    low: float
    high: float
    rounds: int


@dataclass(frozen=True)
class Figures:
    """What came of one case at one number of CPUs and processes. None: not measured here."""

    case: int
    cpus: int
    processes: int
    pages: int
    comparable: bool
    wrong: int
    io_vs_off: Ratio | None
    compute_vs_off: Ratio | None
    io_vs_ideal: Ratio | None
    compute_vs_ideal: Ratio | None
    ideal_io_vs_off: Ratio | None
    ideal_compute_vs_off: Ratio | None
    received_off: float | None
    received_on: float | None

    @property
    def received_percent(self) -> float | None:
        """Shootdowns received per operation with FPR, as percent of those without."""
        if self.received_on is None or not self.received_off:
            return None
        return 100.0 * self.received_on / self.received_off


def figures_of(samples: Iterable[MunmapSample]) -> list[Figures]:
    """Return the figures of every case, CPU number and process number among the samples."""
    groups: dict[tuple[int, int, int, int], list[MunmapSample]] = {}
    for sample in samples:
        key = (sample.case, sample.cpus, sample.processes, sample.pages)
        groups.setdefault(key, []).append(sample)
    return [_figures(key, groups[key]) for key in sorted(groups)]


def paired_ratio(samples: Sequence[MunmapSample], kind: str, mode: str, base: str) -> Ratio | None:
    """Return how the rate of one kind of operation in `mode` compares with `base`."""
    rates = {(s.mode, s.round): _rate(s, kind) for s in samples if s.mode in (mode, base)}
    ratios = [
        rate / rates[base, number]
        for (name, number), rate in rates.items()
        if name == mode and rates.get((base, number))
    ]
    if not ratios or not any(ratios):
        return None
    return Ratio(median(ratios), min(ratios), max(ratios), len(ratios))


def received_per_operation(samples: Iterable[MunmapSample], mode: str) -> float | None:
    """Return the shootdowns received for each I/O operation, None where nothing counts them."""
    received = operations = 0
    for sample in samples:
        if sample.mode != mode:
            continue
        count = sample.counters.get(RECEIVED, sample.counters.get(_INTERRUPTS))
        if count is None:
            return None
        received += count
        operations += sample.io.ops
    return received / operations if operations else None


def settled(samples: Iterable[MunmapSample]) -> str:
    """Say what the kernel still flushed for with MAP_FPR, as far as it counts reasons."""
    reasons: dict[str, int] = {}
    seconds = 0.0
    for sample in samples:
        if sample.mode == "on":
            seconds += sample.seconds
            for name, value in sample.counters.items():
                if name.startswith(_DRAIN):
                    reasons[name] = reasons.get(name, 0) + value
    flushes = reasons.pop(_DRAIN + "flush", 0)
    why = ", ".join(f"{name.removeprefix(_DRAIN)} {n}" for name, n in reasons.items() if n)
    return f"{flushes} flushes settled what was owed in {seconds:.0f} s" + (
        f": {why}" if why else ""
    )


def _figures(key: tuple[int, int, int, int], samples: Sequence[MunmapSample]) -> Figures:
    comparable = all(sample.comparable for sample in samples)

    def ratio(kind: str, mode: str, base: str) -> Ratio | None:
        return paired_ratio(samples, kind, mode, base) if comparable else None

    case, cpus, processes, pages = key
    return Figures(
        case=case,
        cpus=cpus,
        processes=processes,
        pages=pages,
        comparable=comparable,
        wrong=sum(sample.wrong for sample in samples),
        io_vs_off=ratio("io", "on", "off"),
        compute_vs_off=ratio("compute", "on", "off"),
        io_vs_ideal=ratio("io", "on", "ideal-io"),
        # A mixed thread that is alone is its own ideal line for both kinds.
        compute_vs_ideal=ratio("compute", "on", "ideal-io" if case == 5 else "ideal-compute"),
        ideal_io_vs_off=ratio("io", "ideal-io", "off"),
        ideal_compute_vs_off=ratio("compute", "ideal-io" if case == 5 else "ideal-compute", "off"),
        received_off=received_per_operation(samples, "off"),
        received_on=received_per_operation(samples, "on"),
    )


def _rate(sample: MunmapSample, kind: str) -> float:
    return sample.io.rate if kind == "io" else sample.compute.rate
