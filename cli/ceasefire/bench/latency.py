# SPDX-License-Identifier: GPL-2.0-only
"""Latency histograms: as applications print them, and what a plot needs of them.

A sample has `histogram`, a list of [ns, count]: the least time of each bucket that is not empty.
A power of two has eight buckets of equal width; below 32 ns they are 4 ns wide. The C programs
print the same (bench/common/latency.h).
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import log2

_PARTS = 8
_LEAST = 4
# Buckets are drawn together, so that a plot for a phone is not all teeth.
_DRAWN_PARTS = 4
_QUANTILES = {"p50": 0.5, "p99": 0.99, "p99.9": 0.999}


def fields(values: Iterable[tuple[float, int]]) -> dict[str, object]:
    """Return the fields `latency_ns` and `histogram` of a sample; nothing without operations.

    values: (nanoseconds, how many operations took that long).
    """
    counts: Counter[int] = Counter()
    most = 0
    for ns, count in values:
        counts[bucket(int(ns))] += count
        most = max(most, int(ns))
    total = sum(counts.values())
    if not total:
        return {}
    ordered = sorted(counts.items())
    found = {name: quantile(ordered, total * share) for name, share in _QUANTILES.items()}
    return {
        "latency_ns": {**found, "max": most},
        "histogram": [[least, count] for least, count in ordered],
    }


def bucket(ns: int, parts: int = _PARTS) -> int:
    """Return the least time of the bucket of a latency."""
    width = _width(ns, parts)
    return ns // width * width


def quantile(ordered: Sequence[tuple[int, int]], wanted: float) -> int:
    """Return the least time of the bucket in which so many operations are reached."""
    seen = 0
    for least, count in ordered:
        seen += count
        if seen >= wanted:
            return least
    return ordered[-1][0]


@dataclass(frozen=True)
class Step:
    """A piece of a histogram. low, high: in nanoseconds. share: of all operations, 0 to 1, and
    for a quarter of a doubling, so that pieces of different widths can be compared.
    """

    low: float
    high: float
    share: float


@dataclass(frozen=True)
class Histogram:
    """Operations by the least time of their bucket, in nanoseconds. There is at least one."""

    counts: Mapping[int, int]

    @property
    def total(self) -> int:
        """Return how many operations there were."""
        return sum(self.counts.values())

    @property
    def median(self) -> float:
        """Return the middle of the bucket that the median is in, in nanoseconds."""
        least = quantile(sorted(self.counts.items()), self.total / 2)
        return least + _width(least, _PARTS) / 2

    def steps(self) -> list[Step]:
        """Return what is not empty, in order."""
        drawn: Counter[int] = Counter()
        for least, count in self.counts.items():
            drawn[bucket(least, _DRAWN_PARTS)] += count
        found = []
        for low, count in sorted(drawn.items()):
            high = low + _width(low, _DRAWN_PARTS)
            # What is shorter than the clock can tell stands at its lowest bucket.
            left = max(low, _LEAST)
            doublings = log2(high / left) if high > left else 1 / _DRAWN_PARTS
            found.append(
                Step(left, max(high, left + 1), count / self.total / doublings / _DRAWN_PARTS)
            )
        return found


def added(histograms: Iterable[Mapping[int, int]]) -> Histogram | None:
    """Return all of them as one, None if they are empty."""
    counts: Counter[int] = Counter()
    for one in histograms:
        counts.update(one)
    return Histogram(dict(counts)) if sum(counts.values()) else None


def _width(ns: int, parts: int) -> int:
    return max(1 << max(ns.bit_length() - 1, 0), _PARTS * _LEAST) // parts
