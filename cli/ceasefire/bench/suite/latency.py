# SPDX-License-Identifier: GPL-2.0-only
"""Latency histograms: those of all rounds of a mode together, and what a plot needs of them.

A benchmark prints `histogram`, a list of [ns, count]: the least time of each bucket that is not
empty. A power of two has eight buckets of equal width; below 32 ns they are 4 ns wide.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import log2

from ceasefire.bench.suite.results import Sample

_PARTS = 8
_LEAST = 4
# Buckets are drawn together, so that a plot for a phone is not all teeth.
_DRAWN_PARTS = 4


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
        seen = 0
        for least, count in sorted(self.counts.items()):
            seen += count
            if 2 * seen >= self.total:
                return least + _width(least, _PARTS) / 2
        raise AssertionError("an empty histogram")

    def steps(self) -> list[Step]:
        """Return what is not empty, in order."""
        drawn: Counter[int] = Counter()
        for least, count in self.counts.items():
            width = _width(least, _DRAWN_PARTS)
            drawn[least // width * width] += count
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


def _width(least: int, parts: int) -> int:
    return max(1 << max(least.bit_length() - 1, 0), _PARTS * _LEAST) // parts


def histogram(samples: Iterable[Sample], mode: str) -> Histogram | None:
    """Return that of all samples of a mode together, None if they have none."""
    counts: Counter[int] = Counter()
    for sample in samples:
        if sample.mode == mode and not sample.failed:
            counts.update(sample.histogram)
    return Histogram(dict(counts)) if sum(counts.values()) else None
