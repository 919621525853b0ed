# SPDX-License-Identifier: GPL-2.0-only
"""Draws bars with their intervals as SVG that is part of a page: colours are classes of its style
sheet, text is text, and the width is that of the place it stands in.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

_WIDTH = 640
_LABEL = 200
_VALUE = 110
_ROW = 26
_BAR = 14
_GROUP = 10
_TOP = 8
_FLOOR = 1e-5


@dataclass(frozen=True)
class Bar:
    """One bar. low and high: its interval, None for none. kind: a class, "off", "on" or "other"."""

    label: str
    value: float
    text: str
    kind: str
    low: float | None = None
    high: float | None = None
    # Begins a group of bars.
    first: bool = False


def bars(title: str, rows: Sequence[Bar], *, one: bool = False, log: bool = False) -> str:
    """Return bars below each other. one: a line at 1; log: of shares from 0.001 % to 1."""
    if not rows:
        return ""
    room = _WIDTH - _LABEL - _VALUE
    most = max([*(max(r.value, r.high or 0.0) for r in rows), 1.0 if one or log else 0.0]) or 1.0

    def place(value: float) -> float:
        if log:
            low, high = math.log10(_FLOOR), math.log10(most)
            share = (math.log10(max(value, _FLOOR)) - low) / (high - low)
        else:
            share = value / most
        return _LABEL + room * min(max(share, 0.0), 1.0)

    parts = []
    y = float(_TOP)
    for row in rows:
        y += _GROUP if row.first and y > _TOP else 0
        middle = y + _ROW / 2
        end = place(row.value)
        parts += [
            f'<text class="label" x="{_LABEL - 8}" y="{middle + 4:.1f}">{escape(row.label)}</text>',
            f'<rect class="bar {row.kind}" x="{_LABEL}" y="{middle - _BAR / 2:.1f}" '
            f'width="{max(end - _LABEL, 1.5):.1f}" height="{_BAR}" rx="2">'
            f"<title>{escape(row.label)}: {escape(row.text)}</title></rect>",
        ]
        if row.low is not None and row.high is not None and row.high > row.low:
            left, right = place(row.low), place(row.high)
            parts.append(
                f'<path class="spread" d="M{left:.1f} {middle:.1f}H{right:.1f}'
                f'M{left:.1f} {middle - 4:.1f}v8M{right:.1f} {middle - 4:.1f}v8"/>'
            )
            end = max(end, right)
        parts.append(
            f'<text class="value" x="{end + 6:.1f}" y="{middle + 4:.1f}">{escape(row.text)}</text>'
        )
        y += _ROW
    if one:
        x = place(1.0)
        parts.append(f'<path class="one" d="M{x:.1f} {_TOP}V{y:.1f}"/>')
    height = y + _TOP
    return (
        f'<svg viewBox="0 0 {_WIDTH} {height:.0f}" role="img" aria-label="{escape(title)}">'
        f"{''.join(parts)}</svg>"
    )
