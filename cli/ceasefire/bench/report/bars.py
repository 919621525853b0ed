# SPDX-License-Identifier: GPL-2.0-only
"""Draws bars with their intervals as SVG that is part of a page: colours are classes of its style
sheet, text is text, and the width is that of the place it stands in.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from ceasefire.text import html_text

_WIDTH = 360
_TEXT = 15
_BAR = 10
_ROW = 32
_GROUP = 8
_TOP = 4


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


def bars(title: str, rows: Sequence[Bar], *, one: bool = False) -> str:
    """Return bars below their labels, so that a phone has room for them. one: a line at 1."""
    if not rows:
        return ""
    most = max([*(max(r.value, r.high or 0.0) for r in rows), 1.0 if one else 0.0]) or 1.0

    def place(value: float) -> float:
        return _WIDTH * min(max(value / most, 0.0), 1.0)

    parts = []
    y = float(_TOP)
    for row in rows:
        y += _GROUP if row.first and y > _TOP else 0
        base, top = y + _TEXT - 4, y + _TEXT
        middle = top + _BAR / 2
        parts += [
            f'<text x="0" y="{base:.0f}">{html_text(row.label)}</text>',
            f'<text class="value" x="{_WIDTH}" y="{base:.0f}">{html_text(row.text)}</text>',
            f'<rect class="bar {row.kind}" x="0" y="{top:.0f}" '
            f'width="{max(place(row.value), 1.5):.1f}" height="{_BAR}" rx="2">'
            f"<title>{html_text(row.label)}: {html_text(row.text)}</title></rect>",
        ]
        if row.low is not None and row.high is not None and row.high > row.low:
            left, right = place(row.low), place(row.high)
            parts.append(
                f'<path class="spread" d="M{left:.1f} {middle:.1f}H{right:.1f}'
                f'M{left:.1f} {middle - 4:.1f}v8M{right:.1f} {middle - 4:.1f}v8"/>'
            )
        if one:
            parts.append(f'<path class="one" d="M{place(1.0):.1f} {top - 3:.0f}v{_BAR + 6}"/>')
        y += _ROW
    return (
        f'<svg viewBox="0 0 {_WIDTH} {y + _TOP:.0f}" role="img" aria-label="{html_text(title)}">'
        f"{''.join(parts)}</svg>"
    )
