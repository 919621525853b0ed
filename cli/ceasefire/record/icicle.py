# SPDX-License-Identifier: GPL-2.0-only
"""A flame graph upside down, as SVG: programs on top, below them who called whom.

The width of a box is its part of all shootdowns. Positions are per cent, so the picture fits any
screen without scripts, and the text keeps its size; each box is cut off at its own edge.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from ceasefire.record.causes import label
from ceasefire.record.model import Site
from ceasefire.text import html_text

_ROW = 20
# Boxes below this part of the whole are left out, with what is below them.
_LEAST = 0.002


@dataclass
class Node:
    """A box. saved: shootdowns of it that FPR spares."""

    name: str
    sent: int = 0
    saved: float = 0.0
    children: dict[str, "Node"] = field(default_factory=dict)

    def child(self, name: str) -> "Node":
        """Return a child, made if needed."""
        return self.children.setdefault(name, Node(name))


def tree(sites: Iterable[Site]) -> Node:
    """Return the root: all shootdowns."""
    root = Node("all")
    for site in sites:
        node = root
        for name in [None, site.program, *site.frames, label(site.cause)]:
            node = node if name is None else node.child(name)
            node.sent += site.sum.sent
            node.saved += site.sum.saved
    return root


def depth(node: Node, whole: int) -> int:
    """Return how many rows of boxes there are."""
    below = [depth(c, whole) for c in node.children.values() if c.sent >= _LEAST * whole]
    return 1 + max(below, default=0)


def svg(sites: Iterable[Site]) -> str:
    """Return the picture; empty if there is nothing to draw."""
    root = tree(sites)
    if not root.sent:
        return ""
    height = _ROW * depth(root, root.sent)
    parts = [
        f'<svg class="icicle" width="100%" height="{height}" role="img" '
        'aria-label="shootdowns by call site" xmlns="http://www.w3.org/2000/svg">'
    ]
    _draw(root, 0.0, 0, root.sent, parts)
    parts.append("</svg>")
    return "\n".join(parts)


def _draw(node: Node, left: float, row: int, whole: int, parts: list[str]) -> None:
    width = 100 * node.sent / whole
    share = node.saved / node.sent
    kind = "saved" if share >= 0.5 else "stays"
    name = html_text(node.name)
    parts.append(
        f'<svg x="{left:.3f}%" y="{row * _ROW}" width="{width:.3f}%" height="{_ROW}">'
        f'<g class="{kind}"><title>{name}: {node.sent:,} shootdowns, {width:.1f} %, '
        f"FPR saves {round(node.saved):,}</title>"
        f'<rect width="100%" height="{_ROW - 1}"/><text x="4" y="14">{name}</text></g></svg>'
    )
    for child in sorted(node.children.values(), key=lambda child: -child.sent):
        if child.sent >= _LEAST * whole:
            _draw(child, left, row + 1, whole, parts)
        left += 100 * child.sent / whole
