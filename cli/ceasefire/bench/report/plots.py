# SPDX-License-Identifier: GPL-2.0-only
"""Draws curves with axes as SVG that is part of a page, in the manner of svg.py: colours are
classes of the style sheet, text is text, and the width is that of the place it stands in.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor, log10

from ceasefire.text import html_text

_WIDTH = 360.0
_HEIGHT = 190.0
_LEFT = 62.0
_RIGHT = 8.0
_TOP = 24.0
_BOTTOM = 24.0
_MARK = 3.5
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


@dataclass(frozen=True)
class Curve:
    """points: x and y, in order of x. kind: a class, "off", "on" or "other".

    spreads: lowest and highest of each point, or none. marks: points are shown as such. area: what
    is below is shaded.
    """

    label: str
    kind: str
    points: tuple[tuple[float, float], ...]
    spreads: tuple[tuple[float, float], ...] = ()
    marks: bool = False
    area: bool = False


def plot(title: str, x: Axis, y: Axis, curves: Sequence[Curve], *, one: bool = False) -> str:
    """Return a plot with a key above it. one: a dashed line where y is 1."""

    def at(point: tuple[float, float]) -> tuple[float, float]:
        across, up = x.share(point[0]), y.share(point[1])
        return (
            _LEFT + across * (_WIDTH - _LEFT - _RIGHT),
            _TOP + (1 - up) * (_HEIGHT - _TOP - _BOTTOM),
        )

    bottom = _HEIGHT - _BOTTOM
    parts = []
    for value, text in y.ticks:
        height = at((x.low, value))[1]
        parts.append(f'<path class="grid" d="M{_LEFT:.0f} {height:.1f}H{_WIDTH - _RIGHT:.0f}"/>')
        parts.append(_text("y", _LEFT - 5, height + 4, text))
    for value, text in x.ticks:
        place = at((value, y.low))[0]
        parts.append(f'<path class="grid" d="M{place:.1f} {_TOP:.0f}V{bottom:.0f}"/>')
        anchor = "x last" if place > _WIDTH - 3 * _RIGHT else "x"
        parts.append(_text(anchor, _WIDTH if "last" in anchor else place, bottom + 16, text))
    if one:
        parts.append(
            f'<path class="one" d="M{_LEFT:.0f} {at((x.low, 1.0))[1]:.1f}H{_WIDTH - _RIGHT:.0f}"/>'
        )
    key = _LEFT
    for curve in curves:
        places = [at(point) for point in curve.points]
        line = "M" + "L".join(f"{across:.1f} {down:.1f}" for across, down in places)
        if curve.area:
            closed = f"{line}V{bottom:.0f}H{places[0][0]:.1f}Z"
            parts.append(f'<path class="area {curve.kind}" d="{closed}"/>')
        parts.append(f'<path class="curve {curve.kind}" d="{line}"/>')
        for (across, _), (low, high) in zip(places, curve.spreads, strict=False):
            top, foot = at((x.low, high))[1], at((x.low, low))[1]
            parts.append(f'<path class="spread" d="M{across:.1f} {top:.1f}V{foot:.1f}"/>')
        if curve.marks:
            parts += [
                f'<circle class="mark {curve.kind}" cx="{across:.1f}" cy="{down:.1f}" r="{_MARK}">'
                f"<title>{html_text(curve.label)}: {point[1]:.4g}</title></circle>"
                for (across, down), point in zip(places, curve.points, strict=True)
            ]
        parts.append(f'<path class="curve {curve.kind}" d="M{key:.0f} 10h16"/>')
        parts.append(_text("key", key + 21, 14, curve.label))
        key += 21 + 7 * len(curve.label) + 18
    return (
        f'<svg viewBox="0 0 {_WIDTH:.0f} {_HEIGHT:.0f}" role="img" aria-label="{html_text(title)}">'
        f"{''.join(parts)}</svg>"
    )


def _text(kind: str, across: float, down: float, text: str) -> str:
    return f'<text class="{kind}" x="{across:.1f}" y="{down:.1f}">{html_text(text)}</text>'


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
