# SPDX-License-Identifier: GPL-2.0-only
"""Where everything lies in the pictures of a page: bars with their intervals, and curves with axes.

pictures.svg.j2 makes SVG of it. A library for plots draws neither in the colours of the reader's
theme nor to the width of a phone, and a page would be many times as large.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from ceasefire.bench.report.axes import Axis
from ceasefire.pages import render

TEMPLATE = "bench/report/pictures.svg.j2"
_WIDTH = 360
# Of bars.
_TEXT = 15
_BAR = 10
_ROW = 32
_GROUP = 8
_BARS_TOP = 4
# Of curves.
_HEIGHT = 190
_LEFT = 62
_RIGHT = 8
_TOP = 24
_BOTTOM = 24

Point = tuple[float, float]


@dataclass(frozen=True)
class Bar:
    """One bar. low and high: its interval, None for none. kind: a class, that of its mode."""

    label: str
    value: float
    text: str
    kind: str
    low: float | None = None
    high: float | None = None
    # Begins a group of bars.
    first: bool = False


@dataclass(frozen=True)
class Curve:
    """points: x and y, in order of x. kind: a class, that of its mode.

    spreads: lowest and highest of each point, or none. marks: points are shown as such. area: what
    is below is shaded.
    """

    label: str
    kind: str
    points: tuple[Point, ...]
    spreads: tuple[Point, ...] = ()
    marks: bool = False
    area: bool = False


def bars(title: str, rows: Sequence[Bar], *, one: bool = False) -> Markup:
    """Return bars below their labels, so that a phone has room for them. one: a line at 1."""
    if not rows:
        return Markup()
    most = max([*(max(r.value, r.high or 0.0) for r in rows), 1.0 if one else 0.0]) or 1.0

    def place(value: float) -> float:
        return _WIDTH * min(max(value / most, 0.0), 1.0)

    drawn: list[dict[str, object]] = []
    y = _BARS_TOP
    for row in rows:
        y += _GROUP if row.first and drawn else 0
        top = y + _TEXT
        middle = top + _BAR // 2
        spread = ""
        if row.low is not None and row.high is not None and row.high > row.low:
            left, right = place(row.low), place(row.high)
            spread = f"M{left:.1f} {middle}H{right:.1f}M{left:.1f} {middle - 4}v8"
            spread += f"M{right:.1f} {middle - 4}v8"
        drawn.append(
            {
                "bar": row,
                "base": top - 4,
                "top": top,
                "length": f"{max(place(row.value), 1.5):.1f}",
                "spread": spread,
                "one": f"M{place(1.0):.1f} {top - 3}v{_BAR + 6}" if one else "",
            }
        )
        y += _ROW
    height = y + _BARS_TOP
    picture = {"title": title, "width": _WIDTH, "height": height, "thick": _BAR, "rows": drawn}
    return render(TEMPLATE, kind="bars", picture=picture)


def curves(title: str, x: Axis, y: Axis, lines: Sequence[Curve], *, one: bool = False) -> Markup:
    """Return curves with a key above them. one: a dashed line where y is 1."""

    def at(point: Point) -> Point:
        across, up = x.share(point[0]), y.share(point[1])
        return (
            _LEFT + across * (_WIDTH - _LEFT - _RIGHT),
            _TOP + (1 - up) * (_HEIGHT - _TOP - _BOTTOM),
        )

    bottom, end = _HEIGHT - _BOTTOM, _WIDTH - _RIGHT
    grid, texts = [], []
    for value, text in y.ticks:
        height = at((x.low, value))[1]
        grid.append(f"M{_LEFT} {height:.1f}H{end}")
        texts.append(_text("y", _LEFT - 5, height + 4, text))
    for value, text in x.ticks:
        place = at((value, y.low))[0]
        grid.append(f"M{place:.1f} {_TOP}V{bottom}")
        last = place > _WIDTH - 3 * _RIGHT
        texts.append(_text("x last" if last else "x", _WIDTH if last else place, bottom + 16, text))
    drawn, key = [], _LEFT
    for curve in lines:
        drawn.append({**_curve(curve, [at(p) for p in curve.points]), "key": f"M{key} 10h16"})
        drawn[-1]["spreads"] = [
            f"M{at(p)[0]:.1f} {at((x.low, high))[1]:.1f}V{at((x.low, low))[1]:.1f}"
            for p, (low, high) in zip(curve.points, curve.spreads, strict=False)
        ]
        texts.append(_text("key", key + 21, 14, curve.label))
        key += 21 + 7 * len(curve.label) + 18
    picture = {
        "title": title,
        "width": _WIDTH,
        "height": _HEIGHT,
        "grid": grid,
        "texts": texts,
        "one": f"M{_LEFT} {at((x.low, 1.0))[1]:.1f}H{end}" if one else "",
        "curves": drawn,
    }
    return render(TEMPLATE, kind="curves", picture=picture)


def _curve(curve: Curve, places: Sequence[Point]) -> dict[str, object]:
    line = "M" + "L".join(f"{across:.1f} {down:.1f}" for across, down in places)
    marks = [
        {"x": f"{across:.1f}", "y": f"{down:.1f}", "text": f"{point[1]:.4g}"}
        for (across, down), point in zip(places, curve.points, strict=True)
    ]
    return {
        "label": curve.label,
        "kind": curve.kind,
        "line": line,
        "area": f"{line}V{_HEIGHT - _BOTTOM}H{places[0][0]:.1f}Z" if curve.area else "",
        "marks": marks if curve.marks else [],
    }


def _text(kind: str, across: float, down: float, text: str) -> dict[str, str]:
    return {"kind": kind, "x": f"{across:.1f}", "y": f"{down:.1f}", "text": text}
