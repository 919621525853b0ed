# SPDX-License-Identifier: GPL-2.0-only
"""From samples to what is said: each mode against `off`, round by round, with an interval.

Ratios are of samples of the same round, which were taken one after the other; the figure is their
median. The interval is a bootstrap (percentiles of the median of resampled rounds, 95 %) with a
fixed seed, so that the same samples always give the same interval. Nothing is thrown away:
outliers are named, and count.
"""

import random
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from ceasefire.bench.catalog.spec import BASELINE
from ceasefire.bench.results.store import Results, Sample, works
from ceasefire.counters import INTERRUPTS, RECEIVED

RESAMPLES = 2000
_LEVEL = 0.95
# A sample is an outlier that is so many median deviations and this share away from the median.
_OUTLIER = 5.0
_FAR = 0.1
# Counters of flushes that settle what is owed, by reason, and all of them.
_DRAIN = "fpr_drain_"
# Fewer shootdowns than this without FPR are noise of the machine, no load.
FEW = 20


@dataclass(frozen=True)
class Interval:
    """A median and its interval. values: what it is the median of."""

    middle: float
    low: float
    high: float
    values: tuple[float, ...]

    def contains(self, value: float) -> bool:
        """Say whether a value is inside."""
        return self.low <= value <= self.high


@dataclass(frozen=True)
class Shootdowns:
    """Shootdowns received for each operation, all rounds together, and how many there were.

    base: in the mode that is compared with. own: in the mode that is compared.
    """

    base: float
    own: float
    received_base: int
    received_own: int

    @property
    def share(self) -> float | None:
        """Return those that are left, 0 to 1; None if there were hardly any to begin with."""
        if self.received_base < FEW or not self.base:
            return None
        return self.own / self.base


@dataclass(frozen=True)
class Comparison:
    """One mode of a benchmark against `off`, on guests of one size.

    ratios: by metric; only where times mean something (see Sample.comparable). different: rounds in
    which it did not print what `off` printed. outliers: in words.
    """

    benchmark: str
    mode: str
    cpus: int
    comparable: bool
    rounds: int
    ratios: dict[str, Interval]
    shootdowns: Shootdowns | None
    latency: dict[str, Interval]
    wrong: int
    different: int
    failed: tuple[str, ...]
    outliers: tuple[str, ...]


def comparisons(
    results: Results, baseline: str = BASELINE, *, alone: bool = False
) -> list[Comparison]:
    """Return one for each benchmark, number of CPUs and other mode, in the order measured.

    baseline: the mode that the others are compared with. alone: where there is no other mode, it is
    compared with itself.
    """
    groups: dict[tuple[str, int], list[Sample]] = {}
    for sample in results.samples:
        groups.setdefault((sample.benchmark, sample.cpus), []).append(sample)
    found = []
    for (name, cpus), samples in groups.items():
        facts = results.suite.get("benchmarks", {}).get(name, {})
        same = facts.get("verify") == "same"
        measured = dict.fromkeys(s.mode for s in samples)
        for mode in measured if baseline in measured else ():
            both = [s for s in samples if s.mode in (mode, baseline)]
            if mode != baseline or (alone and len(measured) == 1):
                found.append(_compare(name, cpus, (baseline, mode), both, same=same))
    return found


def _compare(
    name: str, cpus: int, modes: tuple[str, str], both: Sequence[Sample], *, same: bool
) -> Comparison:
    """Compare the second of two modes with the first. both: the samples of these modes."""
    good = [s for s in both if not s.failed]
    pairs = paired(good, modes[1], modes[0])
    comparable = bool(good) and all(s.comparable for s in good)
    metrics = dict.fromkeys(m for s in good for m in s.metrics)
    quantiles = dict.fromkeys(q for s in good for q in s.latency_ns)
    expected = next((s.output for s in good if s.mode == modes[0]), "")
    return Comparison(
        benchmark=name,
        mode=modes[1],
        cpus=cpus,
        comparable=comparable,
        rounds=len(pairs),
        ratios={
            m: interval([on.metrics[m] / off.metrics[m] for off, on in pairs if off.metrics.get(m)])
            for m in metrics
            if comparable and any(off.metrics.get(m) for off, _ in pairs)
        },
        shootdowns=shootdowns(pairs),
        latency={
            q: interval([on.latency_ns[q] / off.latency_ns[q] for off, on in pairs])
            for q in quantiles
            if comparable and pairs and all(off.latency_ns.get(q) for off, _ in pairs)
        },
        wrong=sum(s.wrong for s in both),
        different=sum(s.output != expected for s in good) if same else 0,
        failed=tuple(f"{s.mode}, round {s.round}: {s.failed}" for s in both if s.failed),
        outliers=tuple(outliers(good)),
    )


def paired(
    samples: Iterable[Sample], mode: str, base: str = BASELINE
) -> list[tuple[Sample, Sample]]:
    """Return (base, mode) of each round that has both."""
    by_round: dict[int, dict[str, Sample]] = {}
    for sample in samples:
        by_round.setdefault(sample.round, {})[sample.mode] = sample
    return [
        (found[base], found[mode])
        for _, found in sorted(by_round.items())
        if base in found and mode in found
    ]


def interval(values: Sequence[float]) -> Interval:
    """Return the median with its bootstrap interval; of one value, the value itself."""
    ordered = tuple(values)
    if len(ordered) < 2:
        value = ordered[0] if ordered else 0.0
        return Interval(value, value, value, ordered)
    chance = random.Random(0)
    medians = sorted(median(chance.choices(ordered, k=len(ordered))) for _ in range(RESAMPLES))
    tail = (1 - _LEVEL) / 2
    return Interval(
        median(ordered),
        medians[int(tail * RESAMPLES)],
        medians[int((1 - tail) * RESAMPLES) - 1],
        ordered,
    )


def received(sample: Sample) -> int | None:
    """Return the shootdowns that CPUs received in a sample, None where nothing counts them."""
    count = sample.counters.get(RECEIVED, sample.counters.get(INTERRUPTS))
    return count if count is not None else sample.counters.get("interrupts_tlb")


def settled(samples: Iterable[Sample]) -> str:
    """Say what the kernel still flushed for, as far as it counts reasons; "" if for nothing."""
    reasons: Counter[str] = Counter()
    operations = 0.0
    for sample in samples:
        drained = {n: v for n, v in sample.counters.items() if n.startswith(_DRAIN)}
        if works(sample.mode) and drained:
            reasons.update(drained)
            operations += sample.operations
    flushes = reasons.pop(_DRAIN + "flush", 0)
    if not flushes:
        return ""
    why = ", ".join(f"{name.removeprefix(_DRAIN)} {n}" for name, n in reasons.items() if n)
    return (
        f"With a mechanism, in all samples together: {flushes} flushes settled what was owed, of "
        f"{operations:,.0f} operations" + (f": {why}." if why else ".")
    )


def shootdowns(pairs: Sequence[tuple[Sample, Sample]]) -> Shootdowns | None:
    """Return what was received for each operation; None if nothing counts it."""
    offs, ons = [off for off, _ in pairs], [on for _, on in pairs]
    counts = [[received(s) for s in side] for side in (offs, ons)]
    if not pairs or any(c is None for side in counts for c in side):
        return None
    off, on = (sum(c for c in side if c is not None) for side in counts)
    done_off, done_on = (sum(s.operations for s in side) for side in (offs, ons))
    if not done_off or not done_on:
        return None
    return Shootdowns(off / done_off, on / done_on, off, on)


def outliers(samples: Sequence[Sample]) -> list[str]:
    """Return in words which samples are far from the others of their mode."""
    found = []
    for mode in dict.fromkeys(s.mode for s in samples):
        own = [s for s in samples if s.mode == mode]
        for metric in dict.fromkeys(m for s in own for m in s.metrics):
            values = [s.metrics[metric] for s in own if metric in s.metrics]
            middle = median(values)
            deviation = median(abs(v - middle) for v in values)
            found += [
                f"{mode}, round {s.round}: {metric}: {s.metrics[metric] / middle:.2f} of the median"
                for s in own
                if middle
                and deviation
                and abs(s.metrics.get(metric, middle) - middle) > _OUTLIER * deviation
                and abs(s.metrics.get(metric, middle) / middle - 1) > _FAR
            ]
    return found
