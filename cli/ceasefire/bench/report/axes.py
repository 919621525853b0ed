# SPDX-License-Identifier: GPL-2.0-only
"""The axes of curves: from where to where, linear or logarithmic, and what is written at them."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor, log10

# A curve over less than this many times its least value needs no logarithm.
_LOG_FROM = 20.0
_MOST_TICKS = 6

Ticks = tuple[tuple[float, str], ...]


@dataclass(frozen=True)
class Axis:
    """low, high: what its ends stand for. ticks: values and what is written there."""

    low: float
    high: float
    log: bool
    ticks: Ticks

    def share(self, value: float) -> float:
        """Return where a value is, 0 at the low end, 1 at the high one and beyond."""
        low, high = self.low, self.high
        if self.log:
            low, high, value = log10(low), log10(high), log10(max(value, low))
        return min(max((value - low) / (high - low), 0.0), 1.0)


def decades(low: float, high: float) -> list[float]:
    """Return the powers of ten from below low to above high."""
    first, last = floor(log10(low) + 1e-9), ceil(log10(high) - 1e-9)
    return [10.0**power for power in range(first, max(last, first + 1) + 1)]


def thinned(ticks: Sequence[tuple[float, str]]) -> Ticks:
    """Return some of many ticks, among them the first, at equal distances."""
    return tuple(ticks[:: ceil(len(ticks) / _MOST_TICKS)])


def counts_axis(values: Sequence[float]) -> Axis:
    """Return an axis for values of 0 or more; logarithmic if they differ much.

    A logarithmic axis has no 0: its lowest tick stands for that, a decade below all others.
    """
    most = max(values, default=0.0) or 1.0
    positive = [value for value in values if value > 0]
    if not positive or (len(positive) == len(values) and most / min(positive) < _LOG_FROM):
        return linear_axis(most)
    ticks = [(value, f"{value:g}") for value in decades(min(positive), most)]
    if len(positive) < len(values):
        ticks = [(ticks[0][0] / 10, "0"), *ticks]
    return Axis(ticks[0][0], ticks[-1][0], True, thinned(ticks))


def linear_axis(most: float) -> Axis:
    """Return one from 0 to a round number that is not below `most`."""
    unit = 10.0 ** floor(log10(most))
    step = next(s * unit for s in (0.2, 0.5, 1.0, 2.0, 5.0) if most / (s * unit) <= 5)
    count = max(1, ceil(most / step - 1e-9))
    ticks = tuple((step * n, f"{step * n:g}") for n in range(count + 1))
    return Axis(0.0, step * count, False, ticks)


def cpus_axis(cpus: Sequence[int]) -> Axis:
    """Return one with the numbers of CPUs that were measured, each doubling as wide."""
    ticks = tuple((float(n), str(n)) for n in cpus)
    return Axis(min(cpus) / 1.2, max(cpus) * 1.2, True, ticks)
